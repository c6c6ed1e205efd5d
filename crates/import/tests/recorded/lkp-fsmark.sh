#!/bin/bash
# Records a folder in lkp's format: fs_mark on a loop-mounted ext4 while the monitors of lkp dump once a second.
# usage: record.sh OUT SLABINFO_TOOL   (root; needs fs_mark, e2fsprogs, GNU time)
set -eu
out=$1; tool=$2; mkdir -p "$out"; work=$(mktemp -d); mkdir "$work/mnt"
dd if=/dev/zero of="$work/image" bs=1M count=0 seek=512 status=none
monitor() { while :; do echo "time: $(date +%s)"; "$@"; sleep 1; done; }
monitor cat /proc/slabinfo > "$out/slabinfo" & a=$!
monitor "$tool" > "$out/slabinfo_tool" & b=$!
monitor cat /proc/meminfo > "$out/meminfo" & c=$!
for name in /sys/kernel/slab/*; do echo "${name##*/} $(cat "$name/order")"; done > "$out/orders"
sleep 1
cat > "$work/fsmark" <<INNER
mkfs -t ext4 -q -F $work/image; mount -o loop $work/image $work/mnt
for n in 1 2 3 4; do mkdir $work/mnt/\$n; dirs="\${dirs:-} -d $work/mnt/\$n"; done
cd $work
set -- fs_mark \$dirs -D 4 -N 64 -n 1500 -L 1 -S 1 -s 9
echo "\$(date '+%F %T') \$*"
"\$@"
umount $work/mnt
INNER
/usr/bin/time -v -o "$out/fsmark.time" sh "$work/fsmark" | sed "s#$work/mnt#/fs/loop#g" > "$out/fsmark"
sleep 2
kill $a $b $c; wait $a $b $c 2>/dev/null || true
sed -i "s#$work#/work#g" "$out/fsmark.time" "$out/fsmark"
echo " /lkp/result/fsmark/1HDD-9B-ext4-1x-4d-64fpd-4t-fsyncBeforeClose/perflab-vm/debian/x86_64/gcc-12/$(uname -r)/0" > "$out/job"
cat > "$out/job.yaml" <<INNER
---

#! written by hand in the shape of lkp's, for a run without lkp
suite: fsmark
testcase: fsmark
category: benchmark
iterations: 1x
nr_threads: 4t
disk: 1HDD
fs: ext4
fs2:
fsmark:
  filesize: 9B
  sync_method: fsyncBeforeClose
  nr_directories: 4d
  nr_files_per_directory: 64fpd
testbox: perflab-vm
arch: $(uname -m)
nr_cpu: $(nproc)
meminfo:
slabinfo:
slabinfo_tool:
need_kconfig:
- CONFIG_BLK_DEV_SD
kconfig: x86_64
commit: $(uname -r)
INNER
gzip -9n "$out/slabinfo" "$out/slabinfo_tool" "$out/meminfo"
rm -rf "$work"
