# Pairs of 32-bit numbers as dots over a logarithmic axis, in one picture. `points`, `picture` and `terminal` are given by -e.
# At the end gnuplot tells what the kernel has on it: nanoseconds of CPU, and KiB at the peak.
eval("set terminal ".terminal." size 2160,1920")
set output picture
set logscale y
unset key
plot points binary format="%uint32%uint32" using 1:2 with dots linecolor rgb "#8f1d1d"
unset output
print system("cut -d' ' -f1 /proc/$PPID/schedstat; awk '/VmHWM/ { print $2 }' /proc/$PPID/status")
