#!/usr/bin/env python3
"""Makes the files of this folder, as root: what 2007's tools would have written of one reading of files on an ext2 whose
partition begins at sector 63, and the figures that a test expects of them, counted here without perflab.

    make.py FOLDER
"""
import collections, ctypes, os, re, struct, subprocess, sys, time

START, BLOCK = 63, 4096
where = os.path.abspath(sys.argv[1]); top = os.path.join(where, "tmp"); os.makedirs(top + "/m", exist_ok=True)
run = lambda *a, **k: subprocess.run(a, check=True, capture_output=True, text=True, errors="replace", **k).stdout
image = top + "/image"
with open(image, "wb") as f: f.truncate(16 << 20)
# By addpart, as kernels need not know tables of partitions.
loop = run("losetup", "-f", "--show", image).strip(); part = top + "/part"
run("addpart", loop, "1", str(START), str((16 << 11) - START))
name = os.path.basename(loop); major, minor = open(f"/sys/block/{name}/{name}p1/dev").read().split(":")
run("mknod", part, "b", major.strip(), minor.strip())
run("mkfs.ext2", "-q", "-b", str(BLOCK), "-I", "128", "-N", "128", part)
run("mount", "-o", "noatime", part, top + "/m")
files = {"lib/big": 150, "lib/part": 100, "share/one": 1, "share/two names": 7, "share/left out": 20}
try:
    for file, pages in files.items():
        path = f"{top}/m/{file}"; os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "wb").write(os.urandom(pages * 4096))
    run("sync"); run("umount", top + "/m"); run("mount", "-o", "noatime", part, top + "/m")
    open("/proc/sys/vm/drop_caches", "w").write("3")
    # The kernel's blk tracer, since lockdown refuses the relay files that the program blktrace reads.
    t, sysfs = "/sys/kernel/tracing", f"/sys/block/{os.path.basename(loop)}/trace/enable"
    if not os.path.exists(t + "/trace"): run("mount", "-t", "tracefs", "tracefs", t)
    def put(path, text):
        with open(path, "w") as f: f.write(text)
    put(t + "/current_tracer", "blk"); put(t + "/options/bin", "1"); put(t + "/options/context-info", "0"); put(sysfs, "1")
    pipe = os.open(t + "/trace_pipe", os.O_RDONLY | os.O_NONBLOCK)
    m = top + "/m"
    # A program whose name has a dot, as soffice.bin.
    os.symlink("/bin/cat", top + "/cat.bin")
    run("cat", m + "/lib/big", m + "/share/two names", m + "/share/left out")
    run(top + "/cat.bin", m + "/share/one")
    run("head", "-c", "40960", m + "/lib/part")
    time.sleep(.3); raw = b""
    while True:
        try: got = os.read(pipe, 1 << 16)
        except BlockingIOError: break
        if not got: break
        raw += got
    names_of = dict(line.split(None, 1) for line in open(t + "/saved_cmdlines").read().splitlines() if " " in line)
    put(sysfs, "0"); os.close(pipe); put(t + "/options/bin", "0"); put(t + "/options/context-info", "1"); put(t + "/current_tracer", "nop")
    # What of each file is in memory now, in place of the module's walk over the page cache.
    libc = ctypes.CDLL(None, use_errno=True); ranges = []
    disk = os.stat(part).st_rdev; device = (os.major(disk), os.minor(disk))
    for file, pages in files.items():
        if file == "share/left out": continue
        fd = os.open(f"{m}/{file}", os.O_RDONLY); inode = os.fstat(fd).st_ino
        vec = (ctypes.c_ubyte * pages)(); libc.mmap.restype = ctypes.c_void_p
        p = libc.mmap(None, ctypes.c_size_t(pages * 4096), 1, 1, fd, ctypes.c_long(0)); libc.mincore(ctypes.c_void_p(p), ctypes.c_size_t(pages * 4096), vec)
        libc.munmap(ctypes.c_void_p(p), ctypes.c_size_t(pages * 4096))
        here = [page for page in range(pages) if vec[page] & 1]
        ranges.append((inode, 0, 0))
        for page in here:
            if len(ranges) and ranges[-1][0] == inode and ranges[-1][1] + ranges[-1][2] == page and ranges[-1][2]: ranges[-1] = (inode, ranges[-1][1], ranges[-1][2] + 1)
            else: ranges.append((inode, page, 1))
        os.close(fd)
finally:
    run("umount", top + "/m")
# Records, told apart by CPU and numbered anew.
cpus, numbers, at = collections.defaultdict(bytearray), collections.Counter(), 0
records = []
while at + 48 <= len(raw):
    head = list(struct.unpack_from("<IIQQIIIIIHH", raw, at)); size = 48 + head[10]; records.append((head, raw[at + 48:at + size])); at += size
# Kernels of 2007 did not flag reading ahead; and they put the name of a process before its first record.
for head, _ in records: head[5] &= ~(1 << 27)
first = {}
for head, _ in records: first.setdefault(head[6], head)
for pid, head in first.items():
    if pid and str(pid) in names_of:
        name = names_of[str(pid)].encode()[:15].ljust(16, b"\0")
        at = next(n for n, (other, _) in enumerate(records) if other is head)
        records.insert(at, ([head[0], 0, head[2], 0, 0, 1 << 26, pid, head[7], head[8], 0, len(name)], name))
for head, behind in records:
    cpu = head[8]; numbers[cpu] += 1; head[1] = numbers[cpu]; cpus[cpu] += struct.pack("<IIQQIIIIIHH", *head) + behind
for old in os.listdir(where):
    if old.startswith("partition."): os.remove(os.path.join(where, old))
for n, cpu in enumerate(sorted(cpus)): open(f"{where}/partition.blktrace.{n}", "wb").write(cpus[cpu])
# The map: of each inode whose blocks were asked for, by debugfs.
asked = set()
for head, _ in records:
    action, kind, sector, size = head[5] & 0xffff, head[5] >> 16, head[3], head[4]
    if not kind & 1 << 10 and action & 0xff == 1 and size: asked.update(range((sector - START) // 8, (sector - START + size // 512) // 8))
debug = lambda command: run("debugfs", "-R", command, part)
owners = {}
for line in debug("icheck " + " ".join(map(str, sorted(asked)))).splitlines()[1:]:
    block, inode = line.split("\t")[:2]
    if inode.isdigit(): owners.setdefault(int(inode), []).append(int(block))
names = dict(line.split("\t", 1) for line in debug("ncheck " + " ".join(map(str, owners))).splitlines()[1:])
extents = []
for inode in owners:
    covered = 0
    for offset, first in re.findall(r"\(([^)]+)\):(\d+(?:-\d+)?)", debug(f"stat <{inode}>")):
        a, b = (list(map(int, first.split("-"))) * 2)[:2]
        if offset in ("IND", "DIND", "TIND"): number = -(covered << 2 | ("IND", "DIND", "TIND").index(offset))
        else: number = int(offset.split("-")[0]); covered = number + b - a + 1
        for block in range(a, b + 1):
            if block not in asked: continue
            o = number if number < 0 else number + block - a
            last = extents[-1] if extents else None
            if last and last[0] == inode and o >= 0 and last[3] >= 0 and last[1] + last[2] == block and last[3] + last[2] == o: last[2] += 1
            else: extents.append([inode, block, 1, o])
run("delpart", loop, "1"); run("losetup", "-d", loop)
path = lambda inode: names.get(str(inode), "").replace("//", "/").strip()
with open(where + "/partition.map", "w") as f:
    last = None
    for inode, block, count, offset in extents:
        if inode != last: f.write(f"{path(inode)} (ino {inode}):\n" if path(inode) else f"Inode {inode}:\n"); last = inode
        f.write(f"  {block}+{count} {offset}\n")
with open(where + "/partition.times", "w") as f:
    for inode, block, count, offset in sorted(extents, key=lambda e: e[1]): f.write(f"{block}+{count} {offset} INO {inode} {path(inode)}\n")
    f.write("9+3 unmapped\n")
# The dump, as text, as the file of a 32-bit and of a 64-bit kernel.
with open(where + "/prefetch-trace.txt", "w") as f: f.write("A trace\nprefetch trace\n" + "".join(f"{device[0]}:{device[1]}\t{i}\t{a}\t{n}\n" for i, a, n in ranges))
number = device[0] << 20 | device[1]
head = b"PFCH" + struct.pack("<HHH", 1, 0, 10)
open(where + "/prefetch-trace.32", "wb").write(head + b"".join(struct.pack("<IIII", number, *r) for r in ranges))
open(where + "/prefetch-trace.64", "wb").write(head + b"".join(struct.pack("<IIQQQ", number, 0, *r) for r in ranges))
run("rm", "-r", top)
# What is to be found, counted by block, and as the comparison of 2007 counted.
block_of = {block + n: (inode, offset + n if offset >= 0 else offset) for inode, block, count, offset in extents for n in range(count)}
first_of = {block + n: (inode, offset) for inode, block, count, offset in extents for n in range(count)}
have = {(i, a + n) for i, a, count in ranges for n in range(count)}
comm, right, wrong, left = {}, collections.Counter(), collections.Counter(), 0
for head, behind in records:
    if head[5] >> 16 & 1 << 10 and head[5] & 0xff == 0: comm[head[6]] = behind.split(b"\0")[0].decode()
for head, behind in records:
    action, kind, sector, size = head[5] & 0xff, head[5] >> 16, head[3], head[4]
    if kind & 1 << 10 or kind & 2 or not size: continue
    if action == 7:
        for n in range(0, size // 512):
            who = block_of.get((sector + n - START) // 8)
            # A block that is in no map, of a request that says that it is for metadata, is metadata.
            right[("indirect" if kind & 1 << 12 else "unknown") if who is None else "found" if who in have else "indirect" if who[1] < 0 else "missing"] += 512
    if action == 1 and not kind & (1 << 3 | 1 << 11):
        if not re.fullmatch(r"\w+", comm.get(head[6], "")): left += 1; continue
        who = first_of.get((sector - START) // 8)
        # Block N counts as found where the dump has page N / 8.
        wrong["unknown" if who is None else "found" if who[1] >= 0 and (who[0], who[1] // 8) in have else "indirect" if who[1] < 0 else "missing"] += 1
print("bytes by class:", dict(right)); print("requests as in 2007:", dict(wrong), "left out:", left); print(run("uname", "-r").strip(), device)
print(collections.Counter((head[5] & 0xff, head[5] >> 16 & ~0x1) for head, _ in records if not head[5] >> 16 & 1 << 10))
