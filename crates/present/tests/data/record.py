#!/usr/bin/env python3
"""Records what tests/data/recorded/ holds: a real run of a small memory sweep under monitors, as CSV.

Run as root: python3 record.py. One iteration is stopped on purpose (see `doomed`), and the monitor
`diskstats` pauses for a while, so that the report has a failure and a gap to show.
"""
import csv, json, mmap, os, random, resource, threading, time

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded")
SIZES, PAGES, PLACEBO, ITERATIONS = (16, 64), ("ordinary", "huge"), ("off", "on"), 12
CACHES = "dentry inode_cache kmalloc-64 kmalloc-256 kmalloc-1k vm_area_struct anon_vma radix_tree_node buffer_head filp task_struct mm_struct proc_inode_cache ext4_inode_cache shmem_inode_cache".split()
now = time.monotonic_ns


def pairs(path, strip=":"):
    with open(path) as f:
        return [(w[0].rstrip(strip), int(w[1])) for w in (line.split() for line in f)]


def vmstat(): return [dict(pairs("/proc/vmstat"))]
def meminfo(): return [dict((k, v * 1024) for k, v in pairs("/proc/meminfo"))]


def stat():
    names = "user nice system idle iowait irq softirq steal".split()
    with open("/proc/stat") as f:
        rows = [line.split() for line in f if line.startswith("cpu") and line[3] != " "]
    return [dict([("cpu", r[0])] + [(n, int(v) * 10_000_000) for n, v in zip(names, r[1:])]) for r in rows]


def loadavg():
    one, five, fifteen, tasks, _ = open("/proc/loadavg").read().split()
    running, total = tasks.split("/")
    return [dict(load1=float(one), load5=float(five), load15=float(fifteen), running=int(running), tasks=int(total))]


def slabinfo():
    with open("/proc/slabinfo") as f:
        rows = [line.split() for line in f]
    return [dict(cache=r[0], active_objs=int(r[1]), num_objs=int(r[2]), num_slabs=int(r[14])) for r in rows if r[0] in CACHES]


def diskstats():
    rows = [line.split() for line in open("/proc/diskstats")]
    names = ["reads", "sectors_read", "writes", "sectors_written"]
    return [dict([("device", r[2])] + list(zip(names, (int(r[3]), int(r[5]), int(r[7]), int(r[9]))))) for r in rows if not r[2].startswith(("loop", "ram"))]


def pressure():
    out = []
    for what in ("cpu", "io", "memory"):
        for line in open("/proc/pressure/" + what):
            w = line.split()
            f = dict(p.split("=") for p in w[1:])
            out.append(dict(resource=what + " " + w[0], avg10=float(f["avg10"]), total=int(f["total"])))
    return out


MONITORS = dict(vmstat=vmstat, meminfo=meminfo, stat=stat, loadavg=loadavg, slabinfo=slabinfo, diskstats=diskstats, pressure=pressure)
rows, gaps, stop = {m: [] for m in MONITORS}, {}, threading.Event()


def watch(begin):
    due = now()
    while not stop.is_set():
        for name, read in MONITORS.items():
            paused = name == "diskstats" and 3e9 < now() - begin < 4.5e9
            if paused or name in gaps:
                continue
            try:
                at = now()
                rows[name] += [dict(at=at, **row) for row in read()]
            except OSError as error:
                gaps[name] = f"{error.filename}: {error.strerror}".lower()
        due += 100_000_000
        time.sleep(max(0, due - now()) / 1e9)


def sweep(size, pages):
    area = mmap.mmap(-1, size << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.madvise(14 if pages == "huge" else 15)
    page, start = b"x" * 4096, now()
    for _ in range(max(1, 320 // size)):
        for at in range(0, size << 20, 4096):
            area[at:at + 4096] = page
    spent = (now() - start) / 1e9
    area.close()
    return max(1, 320 // size) * size / spent


def main():
    os.makedirs(OUT, exist_ok=True)
    cases = [(s, p, q) for s in SIZES for p in PAGES for q in PLACEBO]
    dice, slots, samples, begin = random.Random(20261121), [], [], now()
    watcher = threading.Thread(target=watch, args=(begin,)); watcher.start()
    time.sleep(0.5)
    for block in range(-1, ITERATIONS):
        order = list(range(len(cases))); dice.shuffle(order)
        for case in order:
            size, pages, _ = cases[case]
            doomed = block == 6 and case == 5
            start, faults = now(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            rate = sweep(size, pages)
            faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
            end = now()
            slots.append([case, max(block, 0), int(block < 0), start, end, "ended by signal 9 (SIGKILL)" if doomed else ""])
            if block >= 0 and not doomed:
                samples += [[case, block, "bandwidth", rate, "MiB/s", "higher", 1, start, end], [case, block, "minor_faults", faults, "faults", "lower", 0, start, end]]
            time.sleep(0.01)
    time.sleep(0.5); stop.set(); watcher.join()
    write(begin, cases, slots, samples)


def write(begin, cases, slots, samples):
    def table(name, header, body):
        with open(os.path.join(OUT, name + ".csv"), "w", newline="") as f:
            w = csv.writer(f, lineterminator="\n"); w.writerow(header); w.writerows(body)
    for name, body in rows.items():
        if body:
            keys = [k for k in body[0] if k != "at"]
            table(name, ["at"] + keys, [[r["at"] - begin] + [r.get(k, "") for k in keys] for r in body])
    table("slots", "case iteration warmup start end failure".split(), [[*s[:3], s[3] - begin, s[4] - begin, s[5]] for s in slots])
    table("samples", "case iteration metric value unit direction primary start end".split(), [[*s[:7], s[7] - begin, s[8] - begin] for s in samples])
    facts = {"kernel.release": os.uname().release, "cpu.online": os.cpu_count(), "memory.total": dict(pairs("/proc/meminfo"))["MemTotal"] * 1024,
             "cpu.model": next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "unknown")}
    json.dump(dict(cases=cases, facts=facts, gaps=gaps), open(os.path.join(OUT, "run.json"), "w"), indent=1)


main()
