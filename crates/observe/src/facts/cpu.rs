//! Families `cpu`, `mitigations`, `hypervisor`, `clocksource`, `load`: the processor, who shares it and how busy it
//! is.
//!
//! `load` (load, steal time, uptime) varies by itself, and `Facts::differences` leaves it out by its keys.

use std::collections::BTreeSet;

use perflab_formats::kernel::small_values::{find_field, parse_cpu_list};
use perflab_formats::kernel::stat::CpuTimes;
use perflab_model::Scalar;
use perflab_model::fact_table;

use crate::cpu_topology::{find_last_cache, last_level_sharers};
use crate::facts::collector::FactCollector;
use crate::facts::firmware::DMI;
use crate::facts::idle_states::collect_idle_states;

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

pub(crate) fn collect_cpu_facts(notes: &mut FactCollector<'_>) {
    collect_cpuinfo_facts(notes);
    collect_topology_facts(notes);
    collect_cache_facts(notes);
    collect_frequency_facts(notes);
    notes.add_flag(fact_table::CPU_SMT, &format!("{CPUS}/smt/active"), "1");
    collect_idle_states(notes);
    notes.add_file(fact_table::CPU_ISOLATED, &format!("{CPUS}/isolated"));
}

fn collect_cpuinfo_facts(notes: &mut FactCollector<'_>) {
    let Some(text) = notes.read(CPUINFO) else { return };
    let first = |keys: &[&str]| keys.iter().find_map(|key| find_field(&text, ':', key)).map(Scalar::from);
    notes.add_optional(fact_table::CPU_MODEL, first(MODEL), CPUINFO);
    notes.add_optional(fact_table::CPU_VENDOR, first(VENDOR), CPUINFO);
    notes.add_optional(fact_table::CPU_MICROCODE, first(&["microcode"]), CPUINFO);
    let flags: BTreeSet<&str> = ["flags", "Features"]
        .iter()
        .filter_map(|key| find_field(&text, ':', key))
        .flat_map(str::split_whitespace)
        .collect();
    let known: Vec<&str> = FLAGS.iter().copied().filter(|flag| flags.contains(flag)).collect();
    if !flags.is_empty() {
        notes.add(fact_table::CPU_FLAGS, known.join(" ").as_str(), CPUINFO);
    }
    let processors = text.lines().filter(|line| line.starts_with("processor")).count();
    notes.add_optional(
        fact_table::CPU_ONLINE,
        i64::try_from(processors).ok().filter(|count| *count > 0),
        CPUINFO,
    );
}

/// Counts CPUs, cores and sockets among the CPUs that are online.
fn collect_topology_facts(notes: &mut FactCollector<'_>) {
    let online = format!("{CPUS}/online");
    let cpus = notes.read(&online).map(|list| parse_cpu_list(&list)).unwrap_or_default();
    if cpus.is_empty() {
        return;
    }
    notes.add(fact_table::CPU_ONLINE, count_as_integer(cpus.len()), &online);
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
    notes.add(fact_table::CPU_CORES, cores, &source);
    notes.add(fact_table::CPU_SOCKETS, sockets, &source);
    notes.add(fact_table::CPU_THREADS_PER_CORE, threads, &source);
}

/// Sizes in bytes as the first CPU sees them, and who shares them: `cpu.cache.l1d`, `cpu.cache_sharers.l2`.
fn collect_cache_facts(notes: &mut FactCollector<'_>) {
    let directory = format!("{CPUS}/cpu0/cache");
    for index in notes.root.list(&directory).iter().filter(|name| name.starts_with("index")) {
        let read = |what| notes.read(&format!("{directory}/{index}/{what}"));
        let suffix = match read("type").as_deref() {
            Some("Data") => "d",
            Some("Instruction") => "i",
            _ => "",
        };
        let (level, size, sharers) = (read("level"), read("size"), read("shared_cpu_list"));
        let Some(level) = level else { continue };
        let name = format!("l{level}{suffix}");
        let bytes = size.and_then(|size| parse_cache_size(&size));
        notes.add_optional(fact_table::CPU_CACHE.key(&name), bytes, &format!("{directory}/{index}/size"));
        // Always text: a list of one CPU is not a number.
        let file = format!("{directory}/{index}/shared_cpu_list");
        notes.add_optional(fact_table::CPU_CACHE_SHARERS.key(&name), sharers.map(Scalar::Text), &file);
    }
    collect_last_level_facts(notes);
}

/// How many caches there are of the last level, by the lists of CPUs that share one, and how large that of the first CPU is.
fn collect_last_level_facts(notes: &mut FactCollector<'_>) {
    let Some(last) = find_last_cache(notes.root, 0) else { return };
    let file = format!("{last}/size");
    let Some(bytes) = notes.read(&file).and_then(|size| parse_cache_size(&size)) else { return };
    let cpus = notes.read(&format!("{CPUS}/online")).map(|list| parse_cpu_list(&list)).unwrap_or_default();
    let caches: BTreeSet<String> =
        cpus.iter().filter_map(|cpu| last_level_sharers(notes.root, *cpu)).collect();
    let count = count_as_integer(caches.len());
    let source = format!("{CPUS}/cpu*/cache/*/shared_cpu_list");
    notes.add_optional(fact_table::CPU_LLCS, Some(count).filter(|count| *count > 0), &source);
    notes.add(fact_table::CPU_LLC_SIZE, bytes, &file);
}

/// Bytes of a cache's `size`, which the kernel writes in KiB: `32768K`.
fn parse_cache_size(text: &str) -> Option<i64> {
    text.strip_suffix('K')?.parse::<i64>().ok()?.checked_mul(1024)
}

fn collect_frequency_facts(notes: &mut FactCollector<'_>) {
    let policy = format!("{CPUS}/cpu0/cpufreq");
    notes.add_file(fact_table::CPU_GOVERNOR, &format!("{policy}/scaling_governor"));
    notes.add_file(fact_table::CPU_DRIVER, &format!("{policy}/scaling_driver"));
    notes.add_file(fact_table::CPU_ENERGY_PREFERENCE, &format!("{policy}/energy_performance_preference"));
    notes.add_scaled(fact_table::CPU_FREQUENCY_MIN, &format!("{policy}/scaling_min_freq"), 1000);
    notes.add_scaled(fact_table::CPU_FREQUENCY_MAX, &format!("{policy}/scaling_max_freq"), 1000);
    notes.add_flag(fact_table::CPU_BOOST, &format!("{CPUS}/cpufreq/boost"), "1");
    notes.add_flag(fact_table::CPU_BOOST, &format!("{CPUS}/intel_pstate/no_turbo"), "0");
    notes.add_file(fact_table::CPU_PLATFORM_PROFILE, "/sys/firmware/acpi/platform_profile");
}

fn count_as_integer(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

const VULNERABILITIES_DIRECTORY: &str = "/sys/devices/system/cpu/vulnerabilities";

pub(crate) fn collect_mitigation_facts(notes: &mut FactCollector<'_>) {
    for name in notes.root.list(VULNERABILITIES_DIRECTORY) {
        notes.add_file(fact_table::MITIGATION.key(&name), &format!("{VULNERABILITIES_DIRECTORY}/{name}"));
    }
}

pub(crate) fn collect_hypervisor_facts(notes: &mut FactCollector<'_>) {
    notes.add_file(fact_table::HYPERVISOR_TYPE, "/sys/hypervisor/type");
    notes.add_file(fact_table::HYPERVISOR_PRODUCT, &format!("{DMI}/product_name"));
    notes.add_file(fact_table::HYPERVISOR_VENDOR, &format!("{DMI}/sys_vendor"));
    // Only x86 has the flag, so its absence says something only where there are flags.
    let text = notes.read(CPUINFO).unwrap_or_default();
    let flag = find_field(&text, ':', "flags")
        .map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    notes.add_optional(fact_table::HYPERVISOR_PRESENT, flag.map(Scalar::Bool), CPUINFO);
}

const CLOCKSOURCE_DIRECTORY: &str = "/sys/devices/system/clocksource/clocksource0";

pub(crate) fn collect_clocksource_facts(notes: &mut FactCollector<'_>) {
    notes.add_file(fact_table::CLOCKSOURCE_CURRENT, &format!("{CLOCKSOURCE_DIRECTORY}/current_clocksource"));
    notes.add_file(
        fact_table::CLOCKSOURCE_AVAILABLE,
        &format!("{CLOCKSOURCE_DIRECTORY}/available_clocksource"),
    );
}

const LOADAVG: &str = "/proc/loadavg";

const STAT: &str = "/proc/stat";

const UPTIME: &str = "/proc/uptime";

pub(crate) fn collect_load_facts(notes: &mut FactCollector<'_>) {
    let text = notes.read(LOADAVG).unwrap_or_default();
    for (key, word) in [fact_table::LOAD_1, fact_table::LOAD_5, fact_table::LOAD_15]
        .into_iter()
        .zip(text.split_ascii_whitespace())
    {
        notes.add_optional(key, parse_float_value(word), LOADAVG);
    }
    let stolen = notes.read(STAT).and_then(|text| CpuTimes::parse(&text)?.steal_percent());
    notes.add_optional(fact_table::LOAD_STEAL_PERCENT, stolen.map(Scalar::Float), STAT);
    let seconds =
        notes.read(UPTIME).and_then(|text| text.split_ascii_whitespace().next()?.parse::<f64>().ok());
    notes.add_optional(
        fact_table::UPTIME,
        seconds.map(|seconds| Scalar::Int((seconds * 1e9) as i64)),
        UPTIME,
    );
}

fn parse_float_value(word: &str) -> Option<Scalar> {
    word.parse().ok().filter(|number: &f64| number.is_finite()).map(Scalar::Float)
}
