#!/bin/bash
# Records log directories in MMTests' layouts with netperf and STREAM, which are in no package: run as its shellpacks run them.
# usage: mmtests-streams.sh OUT current|2020 NETPERF STREAM   (NETPERF: the folder of netperf and netserver, built with
# --enable-demo from HewlettPackard/netperf; STREAM: built from jeffhammond/STREAM with -O2 -fopenmp -DSTREAM_ARRAY_SIZE=200000)
set -eu
out=$1; layout=$2; netperf=$3; stream=$4
stamp() { echo "$*" >> "$iter/tests-timestamp"; }
bench() { # NAME FUNCTION ARGUMENTS
    name=$1; shift; logs=$iter/$name/logs; mkdir -p "$logs"; stamp "test begin :: $name $(date +%s)"
    TIMEFORMAT='%U %S %R'; { time "$@" > /dev/null 2>&1; } 2> times
    read -r user system elapsed < times; rm times
    stamp "test end :: $name $(date +%s) 0"; stamp "time :: $name $user user $system system $elapsed elapsed"
}
netperf() { # PROTOCOL UNITS SIZES
    echo "$1" > "$logs/protocols"; echo "$2" > "$logs/units-$1"; echo 127.0.0.1 > "$logs/server-host"
    for size in $3; do for i in 1 2 3; do
        sizes=; [ "${1%STREAM}" != "$1" ] && sizes="-m $size -M $size"
        "$netperf/netperf" -4 -i 1,1 -I 95,5 -l 1 -f "$2" -D 1 -p 7393 -t "$1" -H 127.0.0.1 -- $sizes > "$logs/$1-$size.$i" 2>&1; done; done; }
stream() { for i in 1 2 3; do
    log=benchlog-2-_-$i; [ "$layout" = 2020 ] && log=stream-$i.log
    OMP_NUM_THREADS=2 "$stream" > "$logs/$log" 2>&1; done; }
"$netperf/netserver" -4 -D -p 7393 > /dev/null 2>&1 & server=$!; sleep 1
for n in 0 1; do
    iter=$out/iter-$n; mkdir -p "$iter"; stamp "start :: $(date +%s)"; uname -a > "$iter/kernel.version"
    if [ "$layout" = current ]; then # netperf's logs have had the same names ever since
        bench netperf-tcp netperf TCP_STREAM m "64 1024"; bench netperf-udp netperf UDP_STREAM m 1024
        bench netperf-rr netperf TCP_RR k 1; fi
    bench stream stream
    stamp "finish :: $(date +%s)"
done
kill $server
