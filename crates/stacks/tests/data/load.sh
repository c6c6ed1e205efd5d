i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done; cat /proc/kallsyms | wc -l > /dev/null; ls -lR /usr/include > /dev/null
