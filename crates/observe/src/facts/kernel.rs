//! Families `kernel`, `sysctl`, `distribution`: release, configuration, tunables.
//!
//! Of the kernel's configuration there is a hash of all of it, which tells two kernels apart, and the options that
//! most often explain a difference. `sysctl` holds the tunables that move benchmarks, each by the name that
//! sysctl(8) knows. `distribution` is os-release(5).

use std::collections::HashMap;
use std::io::Read;

use flate2::read::GzDecoder;
use hmac::{Hmac, KeyInit as _, Mac as _};
use perflab_formats::kernel::kernel_config::{find_config_option, list_config_options};
use perflab_formats::kernel::small_values::find_field;
use perflab_model::Scalar;
use sha2::{Digest, Sha256};

use crate::facts::collector::FactCollector;
use crate::io::file_ioctls::format_hexadecimal;
use crate::root::Root;
use perflab_model::fact_table;

pub(crate) fn collect_kernel_facts(notes: &mut FactCollector<'_>) {
    notes.add_file(fact_table::KERNEL_RELEASE, "/proc/sys/kernel/osrelease");
    notes.add_file(fact_table::KERNEL_VERSION, "/proc/sys/kernel/version");
    notes.add_file(fact_table::KERNEL_ARCH, "/proc/sys/kernel/arch");
    collect_build_facts(notes);
    let parameters = notes.read(CMDLINE).map(|text| hide_secret_parameters(&text));
    notes.add_optional(fact_table::KERNEL_CMDLINE, parameters.as_deref(), CMDLINE);
    notes.add_file(fact_table::KERNEL_TAINTED, "/proc/sys/kernel/tainted");
    collect_config_facts(notes);
}

const CMDLINE: &str = "/proc/cmdline";

/// Parts of names of boot parameters whose values are secrets: credentials (systemd.system-credentials(7)), keys of disks
/// (dracut.cmdline(7)), passwords and tokens of installers and clouds; and the machine's name.
const SECRET_PARAMETERS: &[&str] =
    &["password", "passwd", "secret", "token", "credential", "luks.key", "cryptkey", "hostname"];

/// What stands in the place of a secret.
const LEFT_OUT: &str = "(left out)";

/// The command line of the kernel without the values of secrets.
fn hide_secret_parameters(text: &str) -> String {
    let hide = |word: &str| match word.split_once('=') {
        Some((name, _)) if is_secret_parameter(name) => format!("{name}={LEFT_OUT}"),
        _ => word.to_owned(),
    };
    text.split_whitespace().map(hide).collect::<Vec<_>>().join(" ")
}

fn is_secret_parameter(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_PARAMETERS.iter().any(|part| name.contains(part))
}

const VERSION: &str = "/proc/version";

/// Who built it and with what; the commit where the release names it (`CONFIG_LOCALVERSION_AUTO`).
fn collect_build_facts(notes: &mut FactCollector<'_>) {
    notes.add_file(fact_table::KERNEL_BUILD, VERSION);
    let text = notes.read(VERSION).unwrap_or_default();
    notes.add_optional(fact_table::KERNEL_COMPILER, find_compiler(&text), VERSION);
    let release = notes.read(RELEASE).unwrap_or_default();
    notes.add_optional(fact_table::KERNEL_COMMIT, find_commit(&release).as_deref(), RELEASE);
}

const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// The compiler in `Linux version RELEASE (BUILDER) (COMPILER, LINKER) #1 …`; before 5.8 it stood as `(gcc version 8.3.0 (…))`.
fn find_compiler(version: &str) -> Option<&str> {
    let (_, rest) = version.split_once(") (")?;
    let mut depth = 1_u32;
    let end = rest.find(|letter| {
        depth = match letter {
            '(' => depth + 1,
            ')' => depth - 1,
            _ => depth,
        };
        depth == 0 || (depth == 1 && letter == ',')
    })?;
    rest.get(..end).map(str::trim).filter(|compiler| !compiler.is_empty())
}

/// The commit of `6.12.0-rc1-00012-gabcdef123456-dirty`, with a `+` where there were changes over it.
fn find_commit(release: &str) -> Option<String> {
    let is_hash =
        |text: &&str| (7..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hash = release.split(['-', '+']).filter_map(|part| part.strip_prefix('g')).find(is_hash)?;
    let changed = if release.ends_with("-dirty") || release.ends_with('+') { "+" } else { "" };
    Some(format!("{hash}{changed}"))
}

/// More than any configuration has (they have 100 to 300 KB), so that a wrong file cannot fill the memory.
const LARGEST: u64 = 4 << 20;

/// Options that move benchmarks; each that the configuration mentions becomes a fact, `n` where it is not set.
const OPTIONS: &[&str] = &[
    "HZ",
    "PREEMPT",
    "PREEMPT_NONE",
    "PREEMPT_VOLUNTARY",
    "PREEMPT_LAZY",
    "PREEMPT_DYNAMIC",
    "PREEMPT_RT",
    "NO_HZ_FULL",
    "SLUB",
    "SLAB",
    "SLOB",
    "SLUB_DEBUG_ON",
    "SLUB_CPU_PARTIAL",
    "SLAB_MERGE_DEFAULT",
    "SLAB_FREELIST_RANDOM",
    "SLAB_FREELIST_HARDENED",
    "RANDOM_KMALLOC_CACHES",
    "MEMCG",
    "MEM_ALLOC_PROFILING",
    "LRU_GEN_ENABLED",
    "TRANSPARENT_HUGEPAGE",
    "TRANSPARENT_HUGEPAGE_ALWAYS",
    "TRANSPARENT_HUGEPAGE_MADVISE",
    "NUMA_BALANCING",
    "COMPACTION",
    "SCHEDSTATS",
    "SCHED_CORE",
    "SCHED_AUTOGROUP",
    "SCHED_CLASS_EXT",
    "FAIR_GROUP_SCHED",
    "PSI",
    "KASAN",
    "KCSAN",
    "KMSAN",
    "UBSAN",
    "KFENCE",
    "DEBUG_KERNEL",
    "DEBUG_PAGEALLOC",
    "PAGE_POISONING",
    "LOCKDEP",
    "PROVE_LOCKING",
    "LOCK_STAT",
    "DEBUG_OBJECTS",
    "INIT_ON_ALLOC_DEFAULT_ON",
    "INIT_ON_FREE_DEFAULT_ON",
    "HARDENED_USERCOPY",
    "FORTIFY_SOURCE",
    "RANDOMIZE_BASE",
    "PAGE_TABLE_ISOLATION",
    "MITIGATION_PAGE_TABLE_ISOLATION",
    "LTO_NONE",
    "LTO_CLANG_THIN",
    "CC_OPTIMIZE_FOR_SIZE",
    "PERF_EVENTS",
    "FTRACE",
    "BPF_JIT_ALWAYS_ON",
    "PARAVIRT",
    "KVM_GUEST",
];

fn collect_config_facts(notes: &mut FactCollector<'_>) {
    let Some((text, source)) = read_kernel_config(notes.root) else { return };
    notes.add(fact_table::KERNEL_CONFIG_SHA256, hash_config(&text).as_str(), &source);
    let values: HashMap<&str, &str> = list_config_options(&text).collect();
    for option in OPTIONS {
        notes.add_optional(fact_table::KERNEL_CONFIG.key(option), values.get(option).copied(), &source);
    }
}

/// The options of the running kernel, as its configuration says them.
#[derive(Debug, Clone)]
pub struct KernelConfig(String);

impl KernelConfig {
    /// Reads it; none where neither the kernel nor the system has it.
    pub fn read(root: &Root) -> Option<Self> {
        read_kernel_config(root).map(|(text, _)| KernelConfig(text))
    }

    /// The value of an option, named without `CONFIG_`: `y`, `m`, a number or a text; `n` where it is not set or not known to it.
    pub fn option(&self, name: &str) -> &str {
        find_config_option(&self.0, name).unwrap_or("n")
    }
}

/// The text, from the running kernel where it carries it, else from the file installed or built beside it.
pub(crate) fn read_kernel_config(root: &Root) -> Option<(String, String)> {
    let release = root.read_at_most(RELEASE, LARGEST).unwrap_or_default();
    let modules = format!("/lib/modules/{release}");
    let installed =
        [format!("/boot/config-{release}"), format!("{modules}/config"), format!("{modules}/build/.config")];
    read_gzipped_config(root, "/proc/config.gz").or_else(|| {
        installed.into_iter().find_map(|path| {
            let text = root.read_at_most(&path, LARGEST).ok();
            Some((text.filter(|text| !text.is_empty())?, path))
        })
    })
}

/// One that is longer than any is none.
fn read_gzipped_config(root: &Root, path: &str) -> Option<(String, String)> {
    let packed = root.read_bytes(path, LARGEST).ok()?;
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).take(LARGEST + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= LARGEST).then(|| (text.trim_end().to_owned(), path.into()))
}

fn hash_config(text: &str) -> String {
    format_hexadecimal(&Sha256::digest(text.as_bytes()))
}

/// Files under /proc/sys. Those that the kernel changes by itself (`perf_event_max_sample_rate`) are left out, as
/// they would look like a change of the environment.
const TUNABLES: &[&str] = &[
    "vm/swappiness",
    "vm/dirty_ratio",
    "vm/dirty_background_ratio",
    "vm/dirty_bytes",
    "vm/dirty_background_bytes",
    "vm/dirty_expire_centisecs",
    "vm/dirty_writeback_centisecs",
    "vm/overcommit_memory",
    "vm/overcommit_ratio",
    "vm/vfs_cache_pressure",
    "vm/min_free_kbytes",
    "vm/watermark_scale_factor",
    "vm/watermark_boost_factor",
    "vm/zone_reclaim_mode",
    "vm/compaction_proactiveness",
    "vm/page-cluster",
    "vm/max_map_count",
    "vm/nr_hugepages",
    "vm/nr_overcommit_hugepages",
    "vm/laptop_mode",
    "kernel/randomize_va_space",
    "kernel/numa_balancing",
    "kernel/nmi_watchdog",
    "kernel/watchdog",
    "kernel/timer_migration",
    "kernel/perf_event_paranoid",
    "kernel/kptr_restrict",
    "kernel/pid_max",
    "kernel/threads-max",
    "fs/file-max",
    "fs/aio-max-nr",
    "net/core/somaxconn",
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/default_qdisc",
    "net/core/busy_poll",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
];

/// Where the scheduler's settings moved in 5.13; readable by root, with debugfs mounted.
const SCHEDULER: &str = "/sys/kernel/debug/sched";

const SCHEDULER_TUNABLES: &[&str] = &[
    "base_slice_ns",
    "latency_ns",
    "min_granularity_ns",
    "wakeup_granularity_ns",
    "migration_cost_ns",
    "nr_migrate",
];

pub(crate) fn collect_sysctl_facts(notes: &mut FactCollector<'_>) {
    for knob in TUNABLES {
        notes.add_file(fact_table::SYSCTL.key(knob.replace('/', ".")), &format!("/proc/sys/{knob}"));
    }
    // They come and go with the version, so whatever is there is taken.
    for name in notes.root.list("/proc/sys/kernel").iter().filter(|name| name.starts_with("sched_")) {
        notes.add_file(
            fact_table::SYSCTL.key(format_args!("kernel.{name}")),
            &format!("/proc/sys/kernel/{name}"),
        );
    }
    for knob in SCHEDULER_TUNABLES {
        notes.add_file(fact_table::SYSCTL.key(format_args!("sched.{knob}")), &format!("{SCHEDULER}/{knob}"));
    }
    notes.add_choice(fact_table::SYSCTL.key("sched.preempt"), &format!("{SCHEDULER}/preempt"));
}

/// What machine-id(5) calls an application-specific key: perflab's.
const MACHINE_ID_KEY: &[u8] = b"perflab machine.id";

/// The machine's id as others may see it: HMAC-SHA256 of our key under /etc/machine-id, its first 16 bytes in hexadecimal.
fn derive_machine_id(machine_id: &str) -> Option<String> {
    let is_id = machine_id.len() == 32 && machine_id.bytes().all(|sign| sign.is_ascii_hexdigit());
    let mut mac = Hmac::<Sha256>::new_from_slice(machine_id.as_bytes()).ok().filter(|_| is_id)?;
    mac.update(MACHINE_ID_KEY);
    mac.finalize().into_bytes().get(..16).map(format_hexadecimal)
}

pub(crate) fn collect_distribution_facts(notes: &mut FactCollector<'_>) {
    const MACHINE_ID: &str = "/etc/machine-id";
    let machine = notes.read(MACHINE_ID).and_then(|id| derive_machine_id(id.trim()));
    notes.add_optional(fact_table::MACHINE_ID, machine.map(Scalar::Text), MACHINE_ID);
    let paths = ["/etc/os-release", "/usr/lib/os-release"];
    let Some((path, text)) = paths.iter().find_map(|path| Some((path, notes.read(path)?))) else { return };
    let keys = [
        (fact_table::DISTRIBUTION_NAME, "PRETTY_NAME"),
        (fact_table::DISTRIBUTION_ID, "ID"),
        (fact_table::DISTRIBUTION_VERSION, "VERSION_ID"),
        (fact_table::DISTRIBUTION_BUILD, "BUILD_ID"),
    ];
    for (key, name) in keys {
        notes.add_optional(
            key,
            find_field(&text, '=', name).map(|value| value.trim_matches(['"', '\''])),
            path,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_told_apart_without_their_ids() {
        let id = derive_machine_id("3d1219c7c4c5404aaa1f6d2a48adfda4").unwrap();
        // printf 'perflab machine.id' | openssl dgst -sha256 -hmac 3d1219c7c4c5404aaa1f6d2a48adfda4
        assert_eq!(id, "3e17c7a4fd885b81f6463249280b5668");
        assert_eq!(derive_machine_id("uninitialized"), None);
        assert_eq!(derive_machine_id(""), None);
    }

    #[test]
    fn compilers_and_commits_are_found_where_they_are_named() {
        let new = "Linux version 6.18.44 (builder@sandboxing) (gcc (GCC) 15.3.0, GNU ld (GNU Binutils) 2.46) #1 SMP @0";
        let old = "Linux version 5.0.0-31-generic (buildd@lcy01) (gcc version 8.3.0 (Ubuntu 8.3.0-6ubuntu1)) #33-Ubuntu SMP";
        assert_eq!(find_compiler(new), Some("gcc (GCC) 15.3.0"));
        assert_eq!(find_compiler(old), Some("gcc version 8.3.0 (Ubuntu 8.3.0-6ubuntu1)"));
        assert_eq!(find_compiler("Linux version 1 (a) (b"), None);
        assert_eq!(find_compiler(") ("), None);
        assert_eq!(find_commit("6.12.0-rc1-00012-gabcdef123456").as_deref(), Some("abcdef123456"));
        assert_eq!(find_commit("6.12.0-gabcdef123456-dirty").as_deref(), Some("abcdef123456+"));
        assert_eq!(find_commit("6.1.0-18-generic"), None);
    }

    #[test]
    fn secrets_of_a_command_line_are_left_out() {
        let text = "quiet rd.luks.key=/k:UUID=1 systemd.set_credential=a:b root=/dev/vda1 isolcpus=2-3";
        let safe =
            "quiet rd.luks.key=(left out) systemd.set_credential=(left out) root=/dev/vda1 isolcpus=2-3";
        assert_eq!(hide_secret_parameters(text), safe);
    }
}
