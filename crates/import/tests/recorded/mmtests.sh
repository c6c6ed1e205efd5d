#!/bin/bash
# Records log directories in MMTests' layout with the real benchmarks and monitors, run as its shellpacks run them.
# usage: mmtests.sh OUT current|2020   (root; needs perf, sysbench, dbench, redis, fio, PostgreSQL 15, sysstat, procps, GNU time)
set -eu
out=$1; layout=$2; here=$(mktemp -d); cd "$here"
pg=/usr/lib/postgresql/15/bin
latency() { perl -MTime::HiRes=time -e '$|=1; $s=$l=time; while(<STDIN>){$n=time; printf "%16.4f %8.4f %10.4f -- %s",$n,$n-$s,$n-$l,$_; $l=$n}'; }
stamp() { echo "$*" >> "$iter/tests-timestamp"; }
monitors() { # as monitors.sh starts them: with latency, gzip; each in a process group of its own, which stop ends
    date '+%s 100.00' | tee "$iter/vmstat-$1.start" > "$iter/iostat-$1.start"; pids=(); export -f latency
    start() { setsid bash -c "$1" & pids+=($!); }
    start "stdbuf -oL vmstat -n 1 | latency > $iter/vmstat-$1"
    start "stdbuf -oL iostat -xz 1 | latency > $iter/iostat-$1"
    start "while :; do echo time: \$(date +%s); cat /proc/vmstat; sleep 1; done > $iter/proc-vmstat-$1"
    start "while :; do echo time: \$(date +%s); perf stat -a sleep 1 2>&1; done > $iter/perf-time-stat-$1"
    start "(echo time: \$(date +%s); stdbuf -oL mpstat -P ALL -u 1 | perl -e '\$|=1; while(<>){print; print \"time: \".time.\"\n\" if /^\$/}') > $iter/mpstat-$1"
}
stop() {
    for pid in "${pids[@]}"; do kill -- "-$pid" 2>/dev/null || true; done
}
bench() { # NAME FUNCTION [monitored]
    logs=$iter/$1/logs; mkdir -p "$logs"; stamp "test begin :: $1 $(date +%s)"
    if [ -n "${3:-}" ]; then monitors "$1"; sleep 1; fi
    rc=0; begin=$(date +%s.%N); TIMEFORMAT='%U %S %R'; { time $2 > /dev/null 2>&1; } 2> times || rc=$?
    read -r user system elapsed < times
    if [ -n "${3:-}" ]; then sleep 2; stop "$1"; fi
    stamp "test end :: $1 $(date +%s) $rc"; stamp "time :: $1 $user user $system system $elapsed elapsed"
}
hackbench() { for g in 1 2; do for i in 1 2 3; do
    if [ "$layout" = 2020 ]; then command time -o "$logs/time-$g-$i" perf bench sched messaging -g $g -l 50 > "$logs/hackbench-$g-$i"
    else perf bench sched messaging -g $g -l 50 >> "$logs/hackbench-$g"; fi; done; done; }
perfpipe() { for i in 1 2 3; do
    name=benchlog-_-_-$i; [ "$layout" = 2020 ] && name=pipe-$i.log
    perf bench sched pipe -l 3000 > "$logs/$name" 2>&1; done; }
sysbenchcpu() { for t in 1 2; do for i in 1 2; do
    name=benchlog-$t-_-$i; [ "$layout" = 2020 ] && name=sysbench-raw-$t-$i
    command time -o "$logs/time-$t-$i" sysbench cpu --time=1 --threads=$t run > "$logs/$name"; done; done; }
dbench4() { for c in 1 2; do mkdir -p data
    command dbench -D data -t 4 $c > "$logs/dbench-$c.log" 2>&1
    if [ "$layout" = 2020 ]; then gzip "$logs/dbench-$c.log"; else
        grep execute "$logs/dbench-$c.log" > "$logs/benchlog-tput-$c"
        grep -A 99 Operation "$logs/dbench-$c.log" | sed -e '/-----/d' -e '/^$/d' -e '/Throughput/d' -e '/Operation/d' > "$logs/benchlog-op-$c"
        xz "$logs/dbench-$c.log" "$logs/benchlog-tput-$c" "$logs/benchlog-op-$c"; fi; done; }
redis() { redis-server --port 7391 --save '' > server.log 2>&1 & server=$!; sleep 1
    for c in 1 8; do for i in 1 2; do
        redis-benchmark -p 7391 --csv -t set,get,lpush,lrange_100,mset -c $c -n 2000 > "$logs/redis-$c-$i.log" 2>&1
        # Redis of that time printed neither a head nor latencies.
        if [ "$layout" = 2020 ]; then sed -i -e 1d -e 's/^\("[^"]*","[^"]*"\).*/\1/' "$logs/redis-$c-$i.log"; fi; done; done
    kill $server; wait $server 2>/dev/null || true; }
fio() { (cd "$here"; command fio --minimal --write_lat_log "$logs/fio" --name=randrw --rw=randrw --size=1m --bs=64k --ioengine=psync --numjobs=1 --filename=fio.data \
    --name=seqwrite --stonewall --rw=write --size=1m --bs=128k --ioengine=psync --filename=fio.data > "$logs/fio.log")
    rm -f "$logs"/fio_[cs]lat* ; gzip "$logs"/fio*.log; }
pgbench() { for c in 1 2; do
    command time -o "$logs/time-$c-1" su postgres -c "cd $here/pgwork && $pg/pgbench -h $here/pgwork -p 7392 -b tpcb-like -n -T 21 -l --aggregate-interval=1 -c $c -j 1 bench" > "$logs/pgbench-$c.log" 2>/dev/null
    cat pgwork/pgbench_log.* > "$logs/pgbench-transactions-$c.log"; rm pgwork/pgbench_log.*; gzip "$logs/pgbench-transactions-$c.log"; done; }
mkdir pgwork; chmod 755 "$here"; chown postgres pgwork
su postgres -c "$pg/initdb -D $here/pgwork/data > /dev/null; $pg/pg_ctl -D $here/pgwork/data -o '-k $here/pgwork -p 7392 -h \"\"' -l $here/pgwork/log -w start > /dev/null; \
    $pg/createdb -h $here/pgwork -p 7392 bench; $pg/pgbench -h $here/pgwork -p 7392 -i -s 1 -q bench 2> /dev/null"
for n in 0 1; do
    iter=$out/iter-$n; mkdir -p "$iter"; stamp "start :: $(date +%s)"
    uname -a > "$iter/kernel.version"; lscpu | grep -vi vulnerab > "$iter/lscpu.txt"; gzip "$iter/lscpu.txt"
    bench hackbench-process-pipes hackbench; bench perfpipe perfpipe; bench sysbenchcpu sysbenchcpu monitored
    bench dbench4 dbench4; bench redis redis; bench fio-randread fio; [ $n = 0 ] && bench pgbench pgbench
    stamp "finish :: $(date +%s)"; grep -h MemTotal /proc/meminfo > "$iter/tests-sysstate"; gzip "$iter/tests-sysstate" "$iter"/*-sysbenchcpu
done
su postgres -c "$pg/pg_ctl -D $here/pgwork/data -m fast stop > /dev/null"
rm -rf "$here"
