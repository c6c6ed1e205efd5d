#!/bin/bash
# Records what lkp's monitors record, around one small fs_mark on a loop-mounted ext4: OUT/slabinfo, OUT/slabinfo_tool,
# OUT/meminfo, OUT/orders. Needs root, fs_mark, e2fsprogs and the kernel's slabinfo tool (tools/mm/slabinfo.c).
set -eu
OUT=$1 TOOL=$2
mkdir -p "$OUT"; IMAGE=$(mktemp /tmp/slab-recording.XXXXXX); MOUNT=$(mktemp -d)
truncate -s 2G "$IMAGE"
for f in /sys/kernel/slab/*/order; do d=${f%/order}; echo "${d##*/} $(cat "$f")"; done >"$OUT/orders"
(for i in $(seq 14); do
  now="time: $(date +%s)"
  { echo "$now"; cat /proc/slabinfo; } >>"$OUT/slabinfo"
  { echo "$now"; "$TOOL"; } >>"$OUT/slabinfo_tool"
  { echo "$now"; cat /proc/meminfo; } >>"$OUT/meminfo"
  sleep 1
done) & MONITOR=$!
sleep 3
mkfs.ext4 -q -F "$IMAGE"; mount -o loop "$IMAGE" "$MOUNT"
dirs=(); for i in $(seq 0 7); do dirs+=(-d "$MOUNT/$i"); done
(cd "$MOUNT" && fs_mark "${dirs[@]}" -D 16 -N 256 -n 800 -L 1 -S 1 -s 9 >"$OUT/fsmark" 2>&1) || true
umount "$MOUNT"; rm -rf "$IMAGE" "$MOUNT"
wait $MONITOR
