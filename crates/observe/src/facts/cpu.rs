//! Family `cpu`: model, topology, caches, flags, frequency governor, boost, SMT.

use std::collections::BTreeSet;

use perflab_model::Value;

use super::notes::{Notes, field, members};

const CPUS: &str = "/sys/devices/system/cpu";
const CPUINFO: &str = "/proc/cpuinfo";

/// Flags that explain why the same program runs differently on two machines.
const FLAGS: &[&str] = &[
    "sse4_2",
    "avx",
    "avx2",
    "avx512f",
    "avx512_vnni",
    "amx_tile",
    "aes",
    "vaes",
    "sha_ni",
    "bmi2",
    "erms",
    "fsrm",
    "pcid",
    "invpcid",
    "pdpe1gb",
    "la57",
    "umip",
    "smap",
    "rdpid",
    "constant_tsc",
    "nonstop_tsc",
    "tsc_known_freq",
    "arch_perfmon",
    "asimd",
    "atomics",
    "sve",
    "sve2",
    "crc32",
    "paca",
    "bti",
];

/// Keys of `/proc/cpuinfo` by architecture (x86, arm64, s390, ppc64, riscv); the first that is there counts.
const MODEL: &[&str] = &["model name", "CPU part", "machine", "cpu", "uarch"];
const VENDOR: &[&str] = &["vendor_id", "CPU implementer", "mvendorid"];

pub(super) fn collect(notes: &mut Notes<'_>) {
    from_cpuinfo(notes);
    topology(notes);
    caches(notes);
    frequency(notes);
    notes.switch("cpu.smt", &format!("{CPUS}/smt/active"), "1");
    notes.file("cpu.idle_driver", &format!("{CPUS}/cpuidle/current_driver"));
    notes.file("cpu.isolated", &format!("{CPUS}/isolated"));
}

fn from_cpuinfo(notes: &mut Notes<'_>) {
    let Some(text) = notes.read(CPUINFO) else { return };
    let first = |keys: &[&str]| keys.iter().find_map(|key| field(&text, ':', key)).map(Value::from);
    notes.add_known("cpu.model", first(MODEL), CPUINFO);
    notes.add_known("cpu.vendor", first(VENDOR), CPUINFO);
    notes.add_known("cpu.microcode", first(&["microcode"]), CPUINFO);
    let flags: BTreeSet<&str> = ["flags", "Features"]
        .iter()
        .filter_map(|key| field(&text, ':', key))
        .flat_map(str::split_whitespace)
        .collect();
    let known: Vec<&str> = FLAGS.iter().copied().filter(|flag| flags.contains(flag)).collect();
    if !flags.is_empty() {
        notes.add("cpu.flags", known.join(" ").as_str(), CPUINFO);
    }
    let processors = text.lines().filter(|line| line.starts_with("processor")).count();
    notes.add_known("cpu.online", i64::try_from(processors).ok().filter(|count| *count > 0), CPUINFO);
}

/// Counts CPUs, cores and sockets among the CPUs that are online.
fn topology(notes: &mut Notes<'_>) {
    let online = format!("{CPUS}/online");
    let cpus = notes.read(&online).map(|list| members(&list)).unwrap_or_default();
    if cpus.is_empty() {
        return;
    }
    notes.add("cpu.online", size(cpus.len()), &online);
    let of = |cpu: &u32, what| notes.read(&format!("{CPUS}/cpu{cpu}/topology/{what}"));
    let place = |cpu: &u32| Some((of(cpu, "physical_package_id")?, of(cpu, "core_id")?));
    let cores: BTreeSet<(String, String)> = cpus.iter().filter_map(place).collect();
    let sockets: BTreeSet<&String> = cores.iter().map(|(socket, _)| socket).collect();
    if cores.is_empty() {
        return;
    }
    let (cores, sockets, threads) = (size(cores.len()), size(sockets.len()), size(cpus.len() / cores.len()));
    let source = format!("{CPUS}/cpu*/topology");
    notes.add("cpu.cores", cores, &source);
    notes.add("cpu.sockets", sockets, &source);
    notes.add("cpu.threads_per_core", threads, &source);
}

/// Sizes in bytes as the first CPU sees them: `cpu.cache.l1d`, `cpu.cache.l2`.
fn caches(notes: &mut Notes<'_>) {
    let directory = format!("{CPUS}/cpu0/cache");
    for index in notes.root.list(&directory).iter().filter(|name| name.starts_with("index")) {
        let read = |what| notes.read(&format!("{directory}/{index}/{what}"));
        let suffix = match read("type").as_deref() {
            Some("Data") => "d",
            Some("Instruction") => "i",
            _ => "",
        };
        if let (Some(level), Some(size)) = (read("level"), read("size")) {
            let bytes = size.strip_suffix('K').and_then(|kib| kib.parse::<i64>().ok()?.checked_mul(1024));
            notes.add_known(
                &format!("cpu.cache.l{level}{suffix}"),
                bytes,
                &format!("{directory}/{index}/size"),
            );
        }
    }
}

fn frequency(notes: &mut Notes<'_>) {
    let policy = format!("{CPUS}/cpu0/cpufreq");
    notes.file("cpu.governor", &format!("{policy}/scaling_governor"));
    notes.file("cpu.driver", &format!("{policy}/scaling_driver"));
    notes.file("cpu.energy_preference", &format!("{policy}/energy_performance_preference"));
    notes.scaled("cpu.frequency.min", &format!("{policy}/scaling_min_freq"), 1000);
    notes.scaled("cpu.frequency.max", &format!("{policy}/scaling_max_freq"), 1000);
    notes.switch("cpu.boost", &format!("{CPUS}/cpufreq/boost"), "1");
    notes.switch("cpu.boost", &format!("{CPUS}/intel_pstate/no_turbo"), "0");
}

fn size(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
