//! Every kind of fact, declared once: its key, its unit, whether it varies by itself, how often it explains a change, and
//! what is good to measure on. Collectors, importers, comparisons, checks and tables name a fact by its constant here.

use std::borrow::Cow;
use std::fmt;

use crate::Scalar;

/// The key of a declared fact. Only the constants of this file make one, so a misspelt key does not build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactKey(Cow<'static, str>);

impl FactKey {
    /// The key as it is stored: `cpu.model`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key as it is stored.
    pub(crate) fn into_stored(self) -> String {
        self.0.into_owned()
    }
}

impl PartialEq<str> for FactKey {
    fn eq(&self, stored: &str) -> bool {
        self.0 == stored
    }
}

/// Facts of one kind, one for each device, option or file: their keys differ in one part, which only the machine knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactPattern {
    begin: &'static str,
    end: &'static str,
}

impl FactPattern {
    /// The key of the fact of `part`: `disk.vda.size`.
    pub fn key(self, part: impl fmt::Display) -> FactKey {
        FactKey(Cow::Owned(format!("{}{part}{}", self.begin, self.end)))
    }

    /// Whether a stored key is of this kind.
    pub fn matches(self, stored: &str) -> bool {
        stored
            .strip_prefix(self.begin)
            .is_some_and(|rest| rest.len() > self.end.len() && rest.ends_with(self.end))
    }
}

/// What is known of a kind of fact before it is read.
#[derive(Debug, Clone, Copy)]
pub struct FactSpec {
    /// Which facts it is about.
    scope: FactScope,
    /// What its numbers are.
    pub unit: FactUnit,
    /// Whether it varies by itself.
    pub volatility: FactVolatility,
    /// How often its difference explains a change.
    pub weight: FactWeight,
    /// What is good to measure on, where it is judged.
    pub good: Option<GoodFact>,
}

/// Which facts a row is about.
#[derive(Debug, Clone, Copy)]
enum FactScope {
    /// the one of this key
    One(&'static str),
    /// those of a kind
    Each(FactPattern),
}

/// What the numbers of a fact are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactUnit {
    /// a text, a switch or a bare number
    Plain,
    /// bytes
    Bytes,
    /// nanoseconds
    Nanoseconds,
    /// hertz
    Hertz,
}

/// Whether a fact varies by itself from run to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactVolatility {
    /// it holds until somebody changes it
    Holds,
    /// it varies by itself, or is of the run itself
    Varies,
}

/// How likely a difference in a fact explains a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactWeight {
    /// It often does: rows are flagged.
    Often,
    /// It changes by itself from run to run, and does where it changed a lot.
    WhenLarge,
    /// It says when, where or from what a run was made, and hardly ever does.
    Hardly,
}

/// Which values of a fact are good to measure on.
#[derive(Debug, Clone, Copy)]
pub struct GoodFact {
    /// The good ones.
    pub values: GoodValues,
    /// What would be better than a bad one.
    pub better: &'static str,
    /// What a bad one does.
    pub why: &'static str,
}

/// Values that are good.
#[derive(Debug, Clone, Copy)]
pub enum GoodValues {
    /// these texts
    OneOf(&'static [&'static str]),
    /// all but this text
    AllBut(&'static str),
    /// numbers up to this
    AtMost(f64),
}

impl GoodFact {
    /// Whether the value is one of the good ones; one that is not judged is.
    pub fn holds_for(&self, value: &Scalar) -> bool {
        match self.values {
            GoodValues::OneOf(good) => good.contains(&value.to_string().as_str()),
            GoodValues::AllBut(bad) => value.to_string() != bad,
            GoodValues::AtMost(most) => value.as_number().is_none_or(|number| number <= most),
        }
    }
}

impl FactSpec {
    const fn one(key: &'static str) -> Self {
        FactSpec::new(FactScope::One(key))
    }

    const fn each(pattern: FactPattern) -> Self {
        FactSpec::new(FactScope::Each(pattern))
    }

    const fn new(scope: FactScope) -> Self {
        let (unit, volatility) = (FactUnit::Plain, FactVolatility::Holds);
        FactSpec { scope, unit, volatility, weight: FactWeight::Often, good: None }
    }

    const fn unit(self, unit: FactUnit) -> Self {
        FactSpec { unit, ..self }
    }

    const fn in_bytes(self) -> Self {
        self.unit(FactUnit::Bytes)
    }

    const fn varies(self) -> Self {
        FactSpec { volatility: FactVolatility::Varies, ..self }
    }

    const fn weighing(self, weight: FactWeight) -> Self {
        FactSpec { weight, ..self }
    }

    const fn good(self, values: GoodValues, better: &'static str, why: &'static str) -> Self {
        FactSpec { good: Some(GoodFact { values, better, why }), ..self }
    }

    const fn hardly(self) -> Self {
        self.weighing(FactWeight::Hardly)
    }

    const fn when_large(self) -> Self {
        self.weighing(FactWeight::WhenLarge)
    }

    /// The key, where the row is about one fact.
    pub fn key(&self) -> Option<FactKey> {
        match self.scope {
            FactScope::One(key) => Some(FactKey(Cow::Borrowed(key))),
            FactScope::Each(_) => None,
        }
    }

    /// How closely the row describes a stored key: exactly, else by so many letters of its beginning and its end.
    fn closeness(&self, stored: &str) -> Option<(usize, usize)> {
        match self.scope {
            FactScope::One(key) => (key == stored).then_some((usize::MAX, 0)),
            FactScope::Each(pattern) => {
                pattern.matches(stored).then_some((pattern.begin.len(), pattern.end.len()))
            }
        }
    }
}

/// Declares constants and rows at once. `one` is a [`FactKey`], `each` a [`FactPattern`], where `*` stands between the two
/// texts; `rest` has no constant: it ranks facts that older versions and other programs recorded, and gives a few of a kind
/// a weight of their own. Rows of one bracket rank alike.
macro_rules! declare_facts {
    ($([$($row:tt)+])+) => {
        $(declare_facts!(@constants $($row)+);)+

        /// All kinds, the likeliest cause of a change first; those of one group rank alike.
        const FACT_GROUPS: &[&[FactSpec]] = &[$(&declare_facts!(@rows [] $($row)+)),+];
    };

    (@constants $(#[$doc:meta])+ one $name:ident = $key:literal $(, $change:ident($($value:expr),*))*; $($row:tt)*) => {
        $(#[$doc])+
        pub const $name: FactKey = FactKey(Cow::Borrowed($key));
        declare_facts!(@constants $($row)*);
    };
    (@constants $(#[$doc:meta])+ each $name:ident = $begin:literal * $end:literal $(, $change:ident($($value:expr),*))*; $($row:tt)*) => {
        $(#[$doc])+
        pub const $name: FactPattern = FactPattern { begin: $begin, end: $end };
        declare_facts!(@constants $($row)*);
    };
    (@constants rest $begin:literal * $end:literal $(, $change:ident($($value:expr),*))*; $($row:tt)*) => {
        declare_facts!(@constants $($row)*);
    };
    (@constants) => {};

    (@rows [$($spec:expr,)*] $(#[$doc:meta])+ one $name:ident = $key:literal $(, $change:ident($($value:expr),*))*; $($row:tt)*) => {
        declare_facts!(@rows [$($spec,)* FactSpec::one($key)$(.$change($($value),*))*,] $($row)*)
    };
    (@rows [$($spec:expr,)*] $(#[$doc:meta])+ each $name:ident = $begin:literal * $end:literal $(, $change:ident($($value:expr),*))*; $($row:tt)*) => {
        declare_facts!(@rows [$($spec,)* FactSpec::each($name)$(.$change($($value),*))*,] $($row)*)
    };
    (@rows [$($spec:expr,)*] rest $begin:literal * $end:literal $(, $change:ident($($value:expr),*))*; $($row:tt)*) => {
        declare_facts!(@rows [$($spec,)* FactSpec::each(FactPattern { begin: $begin, end: $end })$(.$change($($value),*))*,] $($row)*)
    };
    (@rows [$($spec:expr,)*]) => { [$($spec),*] };
}

declare_facts! {
    [
        /// Release: `6.18.44`.
        one KERNEL_RELEASE = "kernel.release";
    ]
    [
        /// Command line.
        one KERNEL_CMDLINE = "kernel.cmdline";
    ]
    [
        /// What the kernel does about a vulnerability of the CPU.
        each MITIGATION = "mitigations." * "";
    ]
    [
        /// Model name.
        one CPU_MODEL = "cpu.model";
    ]
    [
        /// Revision of the microcode.
        one CPU_MICROCODE = "cpu.microcode";
    ]
    [
        /// Vendor.
        one CPU_VENDOR = "cpu.vendor";
        /// Instruction set, as an imported file names it: `x86_64`. What perflab measures has [`KERNEL_ARCH`].
        one CPU_ARCHITECTURE = "cpu.architecture";
        /// Those flags that explain why a program runs differently on two machines.
        one CPU_FLAGS = "cpu.flags";
        /// CPUs online.
        one CPU_ONLINE = "cpu.online";
        /// Cores online.
        one CPU_CORES = "cpu.cores";
        /// Sockets.
        one CPU_SOCKETS = "cpu.sockets";
        /// Threads of a core.
        one CPU_THREADS_PER_CORE = "cpu.threads_per_core";
        /// Last-level caches.
        one CPU_LLCS = "cpu.llcs";
        /// Size of the last-level cache as the first CPU sees it.
        one CPU_LLC_SIZE = "cpu.llc_size", in_bytes();
        /// Size of a cache as the first CPU sees it: `cpu.cache.l1d`.
        each CPU_CACHE = "cpu.cache." * "", in_bytes();
        /// Whether cores run several threads.
        one CPU_SMT = "cpu.smt";
        /// Driver of idle states.
        one CPU_IDLE_DRIVER = "cpu.idle_driver";
        /// CPUs that the scheduler leaves alone.
        one CPU_ISOLATED = "cpu.isolated";
        /// Frequency governor; whether it is good to measure on, its preset in `settings/` says.
        one CPU_GOVERNOR = "cpu.governor";
        /// Driver of frequencies.
        one CPU_DRIVER = "cpu.driver";
        /// What the processor prefers, speed or saving energy.
        one CPU_ENERGY_PREFERENCE = "cpu.energy_preference";
        /// Lowest frequency.
        one CPU_FREQUENCY_MIN = "cpu.frequency.min", unit(FactUnit::Hertz);
        /// Highest frequency.
        one CPU_FREQUENCY_MAX = "cpu.frequency.max", unit(FactUnit::Hertz);
        /// Whether it may exceed its nominal frequency.
        one CPU_BOOST = "cpu.boost";
        rest "cpu." * "";
    ]
    [
        /// Kind of hypervisor.
        one HYPERVISOR_TYPE = "hypervisor.type";
        /// Name of the machine by its firmware.
        one HYPERVISOR_PRODUCT = "hypervisor.product";
        /// Vendor of the machine by its firmware.
        one HYPERVISOR_VENDOR = "hypervisor.vendor";
        /// Version of the firmware.
        one HYPERVISOR_BIOS = "hypervisor.bios";
        /// Whether this is a virtual machine.
        one HYPERVISOR_PRESENT = "hypervisor.present", good(
            GoodValues::AllBut("true"),
            "bare metal",
            "neighbours and steal time are part of what is measured"
        );
        rest "hypervisor." * "";
    ]
    [
        /// Version: the number of the build, and its options.
        one KERNEL_VERSION = "kernel.version";
        /// Instruction set: `x86_64`.
        one KERNEL_ARCH = "kernel.arch";
        /// Compiler and builder.
        one KERNEL_BUILD = "kernel.build";
        /// An option of the configuration; `n` where it is not set.
        each KERNEL_CONFIG = "kernel.config." * "";
        /// The option that finds invalid accesses of memory.
        one KERNEL_CONFIG_KASAN = "kernel.config.KASAN", good(
            GoodValues::AllBut("y"),
            "n",
            "a debug kernel: its costs are not those of a production kernel"
        );
        /// What the study calls it, where perflab built it: the recipe, with its tree and revision.
        one KERNEL_RECIPE = "kernel.recipe";
        /// Where its sources are from.
        one KERNEL_SOURCES = "kernel.sources";
        /// The commit that was built; `+` where there were changes over it.
        one KERNEL_COMMIT = "kernel.commit";
        /// The patches in it.
        one KERNEL_PATCHES = "kernel.patches";
        /// The compiler that built it.
        one KERNEL_COMPILER = "kernel.compiler";
        /// Variables of make and flags of single files that it was built with.
        one KERNEL_FLAGS = "kernel.flags";
        /// Why it is tainted: 0 is not.
        one KERNEL_TAINTED = "kernel.tainted", good(
            GoodValues::AtMost(0.0),
            "0",
            "out-of-tree modules or warnings: this is not a clean kernel"
        );
        rest "kernel." * "";
    ]
    [
        /// When anonymous memory gets huge pages.
        one THP_ENABLED = "thp.enabled";
        /// How hard the kernel tries to find huge pages.
        one THP_DEFRAG = "thp.defrag";
        /// When shared memory gets huge pages.
        one THP_SHMEM = "thp.shmem";
        /// Size of a transparent huge page.
        one THP_SIZE = "thp.size", in_bytes();
        /// Whether reads of memory never written share a huge page of zeros.
        one THP_ZERO_PAGE = "thp.zero_page";
        /// Whether khugepaged defragments.
        one THP_KHUGEPAGED_DEFRAG = "thp.khugepaged_defrag";
        /// When memory gets huge pages of one size: `thp.size.64kB`.
        each THP_OF_SIZE = "thp.size." * "";
        rest "thp." * "";
    ]
    [
        /// Nodes.
        one NUMA_NODES = "numa.nodes";
        /// Memory of a node.
        each NUMA_NODE_MEMORY = "numa.node" * ".memory", in_bytes();
        /// CPUs of a node.
        each NUMA_NODE_CPUS = "numa.node" * ".cpus";
        rest "numa." * "";
    ]
    [
        /// All memory.
        one MEMORY_TOTAL = "memory.total", in_bytes();
        /// Swap.
        one MEMORY_SWAP = "memory.swap", in_bytes();
        /// Size of a page.
        one MEMORY_PAGE_SIZE = "memory.page_size", in_bytes();
        /// Size of a huge page.
        one MEMORY_HUGE_PAGE_SIZE = "memory.huge_page_size", in_bytes();
        /// Huge pages set aside.
        one MEMORY_HUGE_PAGES = "memory.huge_pages";
        /// Whether swapped pages are kept compressed.
        one MEMORY_ZSWAP = "memory.zswap";
        /// Whether equal pages are merged.
        one MEMORY_KSM = "memory.ksm";
        rest "memory." * "";
    ]
    [
        /// Version of control groups.
        one CGROUP_VERSION = "cgroup.version";
        /// The strictest limit of memory that holds for perflab.
        one CGROUP_MEMORY_LIMIT = "cgroup.memory_limit", in_bytes();
        /// The strictest limit of CPUs that holds for perflab.
        one CGROUP_CPU_LIMIT = "cgroup.cpu_limit";
        rest "cgroup." * "";
    ]
    [
        /// A tunable by the name that sysctl(8) knows.
        each SYSCTL = "sysctl." * "";
    ]
    [
        /// Which generations of pages the kernel ages.
        one RECLAIM_LRU_GEN = "reclaim.lru_gen";
        /// What a thread of DAMON does about memory: `reclaim.damon.0`.
        each RECLAIM_DAMON = "reclaim.damon." * "";
        /// Whether the kernel's module reclaims pages ahead of need.
        one RECLAIM_DAMON_RECLAIM = "reclaim.damon.reclaim";
        rest "reclaim." * "";
    ]
    [
        /// What the kernel tells the time by.
        one CLOCKSOURCE_CURRENT = "clocksource.current", good(
            GoodValues::OneOf(&["tsc", "kvm-clock", "arch_sys_counter"]),
            "tsc",
            "reading the clock takes a slow system call"
        );
        /// What it could tell the time by.
        one CLOCKSOURCE_AVAILABLE = "clocksource.available";
        rest "clocksource." * "";
    ]
    [
        /// Name with version: `Debian GNU/Linux 12 (bookworm)`.
        one DISTRIBUTION_NAME = "distribution.name";
        /// Short name: `debian`.
        one DISTRIBUTION_ID = "distribution.id";
        /// Version.
        one DISTRIBUTION_VERSION = "distribution.version";
        /// Build, where it has no versions.
        one DISTRIBUTION_BUILD = "distribution.build";
        rest "distribution." * "";
    ]
    [
        /// Size of a block device.
        each DISK_SIZE = "disk." * ".size", in_bytes();
        /// Model of a block device.
        each DISK_MODEL = "disk." * ".model";
        /// Whether it has heads to move.
        each DISK_ROTATIONAL = "disk." * ".rotational";
        /// What orders its requests.
        each DISK_SCHEDULER = "disk." * ".scheduler";
        /// How many requests it queues.
        each DISK_NR_REQUESTS = "disk." * ".nr_requests";
        /// How far the kernel reads ahead.
        each DISK_READ_AHEAD = "disk." * ".read_ahead", in_bytes();
        /// Whether it has a cache of writes.
        each DISK_WRITE_CACHE = "disk." * ".write_cache";
        /// Its smallest request.
        each DISK_LOGICAL_BLOCK_SIZE = "disk." * ".logical_block_size", in_bytes();
        /// The latency that write-back is throttled for, in microseconds.
        each DISK_WBT_LAT_USEC = "disk." * ".wbt_lat_usec";
        rest "disk." * "";
        // What is mounted on `/`.
        rest "disk.mount./." * "";
    ]
    [
        /// A setting of a job of lkp-tests.
        each JOB = "job." * "";
    ]
    [
        /// Mean number of runnable tasks over a minute.
        one LOAD_1 = "load.1", varies(), when_large(), good(
            GoodValues::AtMost(0.5),
            "below 0.5",
            "something else is running"
        );
        /// The same over five minutes.
        one LOAD_5 = "load.5", varies(), when_large();
        /// The same over fifteen minutes.
        one LOAD_15 = "load.15", varies(), when_large();
        /// CPU time since the boot that the hypervisor gave to others, in per cent.
        one LOAD_STEAL_PERCENT = "load.steal_percent", varies(), when_large(), good(
            GoodValues::AtMost(0.1),
            "below 0.1",
            "the hypervisor gives CPU time of this machine to others"
        );
        rest "load." * "", varies(), when_large();
    ]
    [
        /// Memory that can be had without swapping.
        one MEMORY_AVAILABLE = "memory.available", in_bytes(), varies(), when_large();
    ]
    [
        /// Time since the boot.
        one UPTIME = "uptime", unit(FactUnit::Nanoseconds), varies(), hardly();
        /// Version of a workload's program.
        each WORKLOAD_VERSION = "workload." * ".version", hardly();
        /// Operating system that a Go benchmark ran on.
        one GO_OS = "go.os", hardly();
        /// Version of the Python that ran benchmarks.
        one PYTHON_VERSION = "python.version", hardly();
        /// System as Python names it.
        one PLATFORM = "platform", hardly();
        /// Command that recorded a profile.
        one PROFILE_COMMAND = "profile.command", hardly();
        /// Release of the kernel that was profiled.
        one PROFILE_KERNEL = "profile.kernel", hardly();
        /// Instruction set of the machine that was profiled.
        one PROFILE_ARCH = "profile.arch", hardly();
        /// Name of the machine that was profiled.
        one PROFILE_HOSTNAME = "profile.hostname", hardly();
        /// Version of the perf that recorded it.
        one PROFILE_PERF = "profile.perf", hardly();
        /// Command whose operations were traced.
        one TRACE_COMMAND = "trace.command", hardly();
        /// Where probes were set.
        one TRACE_PLACES = "trace.places", hardly();
        /// What an event cost in the middle of the trace.
        one TRACE_EVENT_COST = "trace.event-cost-ns", unit(FactUnit::Nanoseconds), hardly();
        /// What an event cost before the trace.
        one TRACE_EVENT_COST_BEFORE = "trace.event-cost-ns.before", unit(FactUnit::Nanoseconds), hardly();
        /// What an event cost at the end of the trace.
        one TRACE_EVENT_COST_AT_END = "trace.event-cost-ns.at-end", unit(FactUnit::Nanoseconds), hardly();
        /// What a probe at the beginning of a function cost.
        each TRACE_COST_ENTRY = "trace.cost-ns.entry." * "", unit(FactUnit::Nanoseconds), hardly();
        /// What a probe at the end of a function cost.
        each TRACE_COST_EXIT = "trace.cost-ns.exit." * "", unit(FactUnit::Nanoseconds), hardly();
        /// How often a function was entered.
        each TRACE_ENTRIES = "trace.entries." * "", hardly();
        /// How much slower probes made the program.
        one TRACE_SLOWDOWN = "trace.slowdown", hardly();
        /// Share of the program's time that was traced, in per cent.
        one TRACE_WATCHED_PERCENT = "trace.watched-percent", hardly();
        /// How the program ended.
        one TRACE_ENDED = "trace.ended", hardly();
        rest "time." * "", varies(), hardly();
        rest "" * "", hardly();
    ]
    [
        /// Free bytes of a mounted file system.
        each DISK_FREE = "disk.free." * "", in_bytes(), varies(), hardly();
    ]
    [
        // Loop devices come and go.
        rest "disk.loop" * "", hardly();
        rest "disk.loop" * ".size", in_bytes(), hardly();
        rest "disk.loop" * ".read_ahead", in_bytes(), hardly();
        rest "disk.loop" * ".logical_block_size", in_bytes(), hardly();
    ]
    [
        // Other processes mount and unmount.
        /// Type of a mounted file system.
        each DISK_MOUNT_TYPE = "disk.mount." * ".type", hardly();
        /// Options of a mounted file system.
        each DISK_MOUNT_OPTIONS = "disk.mount." * ".options", hardly();
        /// Device of a mounted file system.
        each DISK_MOUNT_DEVICE = "disk.mount." * ".device", hardly();
        rest "disk.mount." * "", hardly();
    ]
    [
        /// Digest of the whole configuration.
        one KERNEL_CONFIG_SHA256 = "kernel.config.sha256", hardly();
    ]
    [
        /// Number of the run of a job.
        one JOB_RUN = "job.run", hardly();
    ]
    [
        /// Importer that read the run.
        one IMPORT_KIND = "import.kind", varies(), hardly();
        /// Whether its files say what was set up anew for each repetition; missing where they do not.
        one IMPORT_BOOTS = "import.boots", varies(), hardly();
        /// What it was imported from.
        one IMPORT_PATH = "import.path", varies(), hardly();
        /// Version of the program whose results they are.
        one IMPORT_VERSION = "import.version", varies(), hardly();
        /// When the benchmark ran within an import.
        one IMPORT_BENCHMARK = "import.benchmark", varies(), hardly();
        /// Digest of the files, by which an import of the same is recognised.
        one IMPORT_SHA256 = "import.sha256", varies(), hardly();
        /// How many rows all files gave, where there are many.
        one IMPORT_ROWS = "import.rows", varies(), hardly();
        /// How many rows a file gave.
        each IMPORT_ROWS_OF_FILE = "import.rows." * "", varies(), hardly();
        rest "import." * "", varies(), hardly();
    ]
}

/// Whatever has no row.
const UNKNOWN: FactSpec = FactSpec::each(FactPattern { begin: "", end: "" }).hardly();

/// How many ranks there are.
pub const FACT_RANKS: usize = FACT_GROUPS.len();

/// All kinds of facts, the likeliest cause of a change first.
pub fn all_fact_specs() -> impl Iterator<Item = &'static FactSpec> {
    FACT_GROUPS.iter().copied().flatten()
}

/// What is declared of a stored key, and its rank among causes: 0 is the likeliest.
pub fn ranked_fact_spec(stored: &str) -> (&'static FactSpec, usize) {
    let rows = FACT_GROUPS.iter().zip(0..).flat_map(|(group, rank)| group.iter().map(move |row| (row, rank)));
    let fits = rows.filter_map(|(row, rank)| Some((row.closeness(stored)?, (row, rank))));
    fits.max_by_key(|(closeness, _)| *closeness).map_or((&UNKNOWN, FACT_RANKS), |(_, found)| found)
}

/// What is declared of a stored key.
pub fn fact_spec(stored: &str) -> &'static FactSpec {
    ranked_fact_spec(stored).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_row_counts_and_whatever_has_none_is_read() {
        assert_eq!(fact_spec("load.1").key(), Some(LOAD_1));
        assert_eq!(fact_spec("load.15").key(), Some(LOAD_15));
        assert_eq!(fact_spec("memory.of_an_older_version").unit, FactUnit::Plain);
        assert_eq!(fact_spec(DISK_SIZE.key("vda").as_str()).unit, FactUnit::Bytes);
        assert_eq!(fact_spec("disk.loop3.size").unit, FactUnit::Bytes);
        assert_eq!(fact_spec("disk.loop3.size").weight, FactWeight::Hardly);
        assert_eq!(fact_spec("job.runtime").weight, FactWeight::Often);
        assert_eq!(fact_spec("memory.total").unit, FactUnit::Bytes);
        assert_eq!(fact_spec("memory.huge_pages").unit, FactUnit::Plain);
        assert_eq!(fact_spec("disk.mount./.options").weight, FactWeight::Often);
        assert_eq!(fact_spec("disk.mount./home.options").weight, FactWeight::Hardly);
        assert_eq!(fact_spec("unheard.of").weight, FactWeight::Hardly);
        assert!(ranked_fact_spec("kernel.release").1 < ranked_fact_spec("kernel.config.HZ").1);
        let mut rows: Vec<String> = all_fact_specs().map(|spec| format!("{:?}", spec.scope)).collect();
        rows.sort_unstable();
        let all = rows.len();
        rows.dedup();
        assert_eq!(rows.len(), all, "a row stands twice");
    }

    #[test]
    fn a_kind_forms_its_keys_and_recognises_them() {
        assert_eq!(DISK_SIZE.key("vda").as_str(), "disk.vda.size");
        assert!(DISK_SIZE.matches("disk.vda.size") && !DISK_SIZE.matches("disk.size"));
        assert!(RECLAIM_DAMON.matches("reclaim.damon.0") && !RECLAIM_DAMON.matches("reclaim.damon."));
    }

    #[test]
    fn values_are_judged_where_good_ones_are_declared() {
        let judge = |key: &str, value: Scalar| fact_spec(key).good.map(|good| good.holds_for(&value));
        assert_eq!(judge("cpu.governor", "powersave".into()), None, "its preset says what is good");
        assert_eq!(judge("load.1", Scalar::Float(0.4)), Some(true));
        assert_eq!(judge("load.1", Scalar::Float(0.6)), Some(false));
        assert_eq!(judge("hypervisor.present", Scalar::Bool(true)), Some(false));
        assert_eq!(judge("kernel.tainted", Scalar::Int(1)), Some(false));
        assert_eq!(judge("kernel.config.KASAN", "y".into()), Some(false));
        assert_eq!(judge("cpu.model", "x".into()), None);
    }
}
