//! Family `cpu`: model, topology, caches, flags, frequency governor, boost, SMT.

use std::collections::BTreeSet;

use perflab_model::Scalar;

use super::notes::{FactCollector, find_field, parse_cpu_list};

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

pub(super) fn collect_cpu_facts(notes: &mut FactCollector<'_>) {
    collect_cpuinfo_facts(notes);
    collect_topology_facts(notes);
    collect_cache_facts(notes);
    collect_frequency_facts(notes);
    notes.add_flag("cpu.smt", &format!("{CPUS}/smt/active"), "1");
    notes.add_file("cpu.idle_driver", &format!("{CPUS}/cpuidle/current_driver"));
    notes.add_file("cpu.isolated", &format!("{CPUS}/isolated"));
}

fn collect_cpuinfo_facts(notes: &mut FactCollector<'_>) {
    let Some(text) = notes.read(CPUINFO) else { return };
    let first = |keys: &[&str]| keys.iter().find_map(|key| find_field(&text, ':', key)).map(Scalar::from);
    notes.add_optional("cpu.model", first(MODEL), CPUINFO);
    notes.add_optional("cpu.vendor", first(VENDOR), CPUINFO);
    notes.add_optional("cpu.microcode", first(&["microcode"]), CPUINFO);
    let flags: BTreeSet<&str> = ["flags", "Features"]
        .iter()
        .filter_map(|key| find_field(&text, ':', key))
        .flat_map(str::split_whitespace)
        .collect();
    let known: Vec<&str> = FLAGS.iter().copied().filter(|flag| flags.contains(flag)).collect();
    if !flags.is_empty() {
        notes.add("cpu.flags", known.join(" ").as_str(), CPUINFO);
    }
    let processors = text.lines().filter(|line| line.starts_with("processor")).count();
    notes.add_optional("cpu.online", i64::try_from(processors).ok().filter(|count| *count > 0), CPUINFO);
}

/// Counts CPUs, cores and sockets among the CPUs that are online.
fn collect_topology_facts(notes: &mut FactCollector<'_>) {
    let online = format!("{CPUS}/online");
    let cpus = notes.read(&online).map(|list| parse_cpu_list(&list)).unwrap_or_default();
    if cpus.is_empty() {
        return;
    }
    notes.add("cpu.online", count_as_integer(cpus.len()), &online);
    let of = |cpu: &u32, what| notes.read(&format!("{CPUS}/cpu{cpu}/topology/{what}"));
    let place = |cpu: &u32| Some((of(cpu, "physical_package_id")?, of(cpu, "core_id")?));
    let cores: BTreeSet<(String, String)> = cpus.iter().filter_map(place).collect();
    let sockets: BTreeSet<&String> = cores.iter().map(|(socket, _)| socket).collect();
    if cores.is_empty() {
        return;
    }
    let (cores, sockets, threads) = (
        count_as_integer(cores.len()),
        count_as_integer(sockets.len()),
        count_as_integer(cpus.len() / cores.len()),
    );
    let source = format!("{CPUS}/cpu*/topology");
    notes.add("cpu.cores", cores, &source);
    notes.add("cpu.sockets", sockets, &source);
    notes.add("cpu.threads_per_core", threads, &source);
}

/// Sizes in bytes as the first CPU sees them: `cpu.cache.l1d`, `cpu.cache.l2`.
fn collect_cache_facts(notes: &mut FactCollector<'_>) {
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
            notes.add_optional(
                &format!("cpu.cache.l{level}{suffix}"),
                bytes,
                &format!("{directory}/{index}/size"),
            );
        }
    }
}

fn collect_frequency_facts(notes: &mut FactCollector<'_>) {
    let policy = format!("{CPUS}/cpu0/cpufreq");
    notes.add_file("cpu.governor", &format!("{policy}/scaling_governor"));
    notes.add_file("cpu.driver", &format!("{policy}/scaling_driver"));
    notes.add_file("cpu.energy_preference", &format!("{policy}/energy_performance_preference"));
    notes.add_scaled("cpu.frequency.min", &format!("{policy}/scaling_min_freq"), 1000);
    notes.add_scaled("cpu.frequency.max", &format!("{policy}/scaling_max_freq"), 1000);
    notes.add_flag("cpu.boost", &format!("{CPUS}/cpufreq/boost"), "1");
    notes.add_flag("cpu.boost", &format!("{CPUS}/intel_pstate/no_turbo"), "0");
}

fn count_as_integer(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
