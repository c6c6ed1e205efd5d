//! Every kind of fact, declared once: its key, its unit, whether it varies by itself, how often it explains a change and why,
//! and what is good to measure on. Collectors, importers, comparisons, checks and tables name a fact by its constant here.

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
    /// What it says, in a sentence; empty of rows that only rank others.
    pub about: &'static str,
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
    /// those of a list of names behind one beginning; a `*` at the end of a name stands for anything
    Names(&'static str, &'static [&'static str]),
}

/// Facts that rank alike, and why.
#[derive(Debug, Clone, Copy)]
pub struct FactGroup {
    /// Why a difference here explains a change, or hardly does.
    pub reason: &'static str,
    /// The kinds of fact.
    pub specs: &'static [FactSpec],
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
        FactSpec { scope, about: "", unit, volatility, weight: FactWeight::Often, good: None }
    }

    const fn names(begin: &'static str, names: &'static [&'static str]) -> Self {
        FactSpec::new(FactScope::Names(begin, names))
    }

    const fn about(self, about: &'static str) -> Self {
        FactSpec { about, ..self }
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
            FactScope::Each(_) | FactScope::Names(..) => None,
        }
    }

    /// The keys as people write them: `cpu.model`, `disk.*.size`.
    pub fn key_patterns(&self) -> Vec<String> {
        match self.scope {
            FactScope::One(key) => vec![key.into()],
            FactScope::Each(pattern) => vec![format!("{}*{}", pattern.begin, pattern.end)],
            FactScope::Names(begin, names) => names.iter().map(|name| format!("{begin}{name}")).collect(),
        }
    }

    /// How closely the row describes a stored key: exactly, else by so many letters of its beginning and its end.
    fn closeness(&self, stored: &str) -> Option<(usize, usize)> {
        match self.scope {
            FactScope::One(key) => (key == stored).then_some((usize::MAX, 0)),
            FactScope::Each(pattern) => {
                pattern.matches(stored).then_some((pattern.begin.len(), pattern.end.len()))
            }
            FactScope::Names(begin, names) => {
                let name = stored.strip_prefix(begin)?;
                let fits = |known: &&str| match known.strip_suffix('*') {
                    Some(start) => name.starts_with(start).then_some(start.len()),
                    None => (*known == name).then_some(known.len()),
                };
                names.iter().filter_map(fits).max().map(|length| (begin.len() + length, 0))
            }
        }
    }
}

/// Declares constants and rows at once. `one` is a [`FactKey`], `each` a [`FactPattern`], where `*` stands between the two
/// texts; `rest` and `names` have no constant: they rank facts that older versions and other programs recorded, and give a few
/// of a kind a weight of their own. Rows of one bracket rank alike, for the reason before it.
macro_rules! declare_facts {
    ($($reason:literal: [$($row:tt)+])+) => {
        $(declare_facts!(@constants $($row)+);)+

        /// All kinds, the likeliest cause of a change first; those of one group rank alike.
        const FACT_GROUPS: &[FactGroup] =
            &[$(FactGroup { reason: $reason, specs: &declare_facts!(@rows [] $($row)+) }),+];
    };

    (@constants $(#[doc = $doc:literal])+ one $name:ident = $key:literal $(, $change:ident($($value:expr),*))*; $($row:tt)*) => {
        $(#[doc = $doc])+
        pub const $name: FactKey = FactKey(Cow::Borrowed($key));
        declare_facts!(@constants $($row)*);
    };
    (@constants $(#[doc = $doc:literal])+ each $name:ident = $begin:literal * $end:literal $(, $change:ident($($value:expr),*))*; $($row:tt)*) => {
        $(#[doc = $doc])+
        pub const $name: FactPattern = FactPattern { begin: $begin, end: $end };
        declare_facts!(@constants $($row)*);
    };
    (@constants rest $begin:literal * $end:literal $(, $change:ident($($value:expr),*))*; $($row:tt)*) => {
        declare_facts!(@constants $($row)*);
    };
    (@constants $(#[doc = $doc:literal])+ names $begin:literal [$($known:literal),+] $(, $change:ident($($value:expr),*))*; $($row:tt)*) => {
        declare_facts!(@constants $($row)*);
    };
    (@constants) => {};

    (@rows [$($spec:expr,)*] $(#[doc = $doc:literal])+ one $name:ident = $key:literal $(, $change:ident($($value:expr),*))*; $($row:tt)*) => {
        declare_facts!(@rows [$($spec,)* FactSpec::one($key).about(concat!($($doc),+))$(.$change($($value),*))*,] $($row)*)
    };
    (@rows [$($spec:expr,)*] $(#[doc = $doc:literal])+ each $name:ident = $begin:literal * $end:literal $(, $change:ident($($value:expr),*))*; $($row:tt)*) => {
        declare_facts!(@rows [$($spec,)* FactSpec::each($name).about(concat!($($doc),+))$(.$change($($value),*))*,] $($row)*)
    };
    (@rows [$($spec:expr,)*] rest $begin:literal * $end:literal $(, $change:ident($($value:expr),*))*; $($row:tt)*) => {
        declare_facts!(@rows [$($spec,)* FactSpec::each(FactPattern { begin: $begin, end: $end })$(.$change($($value),*))*,] $($row)*)
    };
    (@rows [$($spec:expr,)*] $(#[doc = $doc:literal])+ names $begin:literal [$($known:literal),+] $(, $change:ident($($value:expr),*))*; $($row:tt)*) => {
        declare_facts!(@rows [$($spec,)* FactSpec::names($begin, &[$($known),+]).about(concat!($($doc),+))$(.$change($($value),*))*,] $($row)*)
    };
    (@rows [$($spec:expr,)*]) => { [$($spec),*] };
}

declare_facts! {
    "what is measured is built from another commit": [
        /// The commit of the tree from which what was measured was built, where a watch of that tree did.
        one TREE_COMMIT = "tree.commit";
    ]
    "another kernel is another program below every workload": [
        /// Release: `6.18.44`.
        one KERNEL_RELEASE = "kernel.release";
    ]
    "a check at every access, lock or allocation: such a kernel takes several times as long (Documentation/dev-tools)": [
        /// The option that finds invalid accesses of memory.
        one KERNEL_CONFIG_KASAN = "kernel.config.KASAN", good(
            GoodValues::AllBut("y"),
            "n",
            "a debug kernel: its costs are not those of a production kernel"
        );
        /// An option that checks the kernel while it runs.
        names "kernel.config." [
            "KASAN*", "KCSAN*", "KMSAN*", "UBSAN*", "KCOV*", "GCOV_*", "LOCKDEP*", "PROVE_*", "LOCK_STAT",
            "DEBUG_*", "SLUB_DEBUG_ON", "PAGE_POISONING*", "PAGE_OWNER", "KFENCE*", "FAULT_INJECTION*",
            "TRACE_IRQFLAGS*", "RCU_STRICT_GRACE_PERIOD"
        ];
    ]
    "parameters of the boot switch mitigations, isolate CPUs and reserve memory (Documentation/admin-guide/kernel-parameters.txt)": [
        /// Command line.
        one KERNEL_CMDLINE = "kernel.cmdline";
    ]
    "a mitigation costs at each system call, interrupt or context switch (Documentation/admin-guide/hw-vuln)": [
        /// What the kernel does about a vulnerability of the CPU.
        each MITIGATION = "mitigations." * "";
    ]
    "an option that every wake-up, tick, allocation, entry or function of the kernel follows (the option's help in Kconfig)": [
        /// An option of how the kernel schedules, preempts, ticks, allocates, mitigates and is compiled.
        names "kernel.config." [
            "PREEMPT*", "HZ", "HZ_*", "NO_HZ*", "HIGH_RES_TIMERS", "NR_CPUS*", "MAXSMP", "MITIGATION*",
            "PAGE_TABLE_ISOLATION", "RETPOLINE", "RETHUNK", "SLS", "CPU_UNRET_ENTRY", "CPU_IBPB_ENTRY",
            "CPU_IBRS_ENTRY", "CPU_SRSO", "CALL_DEPTH_TRACKING", "GDS_FORCE_MITIGATION", "X86_INTEL_TSX_MODE_*",
            "SLUB*", "SLAB*", "SLOB", "RANDOM_KMALLOC_CACHES", "MEMCG*", "MEM_ALLOC_PROFILING*", "LRU_GEN*",
            "TRANSPARENT_HUGEPAGE*", "NUMA*", "COMPACTION", "SCHEDSTATS", "SCHED_*", "FAIR_GROUP_SCHED",
            "CFS_BANDWIDTH", "RT_GROUP_SCHED", "UCLAMP*", "PSI*", "INIT_ON_*", "INIT_STACK*",
            "HARDENED_USERCOPY*", "FORTIFY_SOURCE", "STACKPROTECTOR*", "RANDOMIZE_*", "GCC_PLUGIN*", "LTO*",
            "CFI*", "CC_OPTIMIZE*", "CC_IS_*", "GCC_VERSION", "CLANG_VERSION", "RCU_*", "VIRT_CPU_ACCOUNTING*",
            "IRQ_TIME_ACCOUNTING", "PERF_EVENTS", "FTRACE*", "FUNCTION_TRACER", "DYNAMIC_FTRACE*", "KPROBES",
            "BPF_JIT*", "PARAVIRT*", "KVM_GUEST", "HYPERVISOR_GUEST", "JUMP_LABEL", "VMAP_STACK", "AUDIT*",
            "SECURITY*", "LSM", "ZSWAP*", "KSM", "CPU_FREQ_DEFAULT_*", "CPU_IDLE_GOV_*", "BLK_WBT*",
            "MQ_IOSCHED*", "IOSCHED_*", "DEFAULT_TCP_CONG", "QUEUED_*", "AUTOFDO*", "PROPELLER*"
        ];
    ]
    "another machine, of which no list of facts is complete": [
        /// Which machine it is: what machine-id(5) has programs derive from its file, so that the id itself stays there.
        one MACHINE_ID = "machine.id";
        /// Which node of a cluster it is, as Slurm calls it.
        one SLURM_NODE = "slurm.node";
        /// What Slurm knows a node by, and a `constraint` may name.
        one SLURM_FEATURES = "slurm.features";
    ]
    "another processor": [
        /// Model name.
        one CPU_MODEL = "cpu.model";
    ]
    "microcode brings mitigations and slows instructions down (INTEL-SA-00828: gathers)": [
        /// Revision of the microcode.
        one CPU_MICROCODE = "cpu.microcode";
    ]
    "caches, cores, frequencies and idle states set how fast code runs and how soon a CPU wakes (Documentation/admin-guide/pm)": [
        /// Vendor.
        one CPU_VENDOR = "cpu.vendor";
        /// Instruction set, as an imported file names it: `x86_64`. What perflab measures has kernel.arch.
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
        /// What the firmware is asked for, speed, quiet or coolness.
        one CPU_PLATFORM_PROFILE = "cpu.platform_profile";
        /// Governor of idle states.
        one CPU_IDLE_GOVERNOR = "cpu.idle_governor";
        /// How long a CPU takes to leave an idle state: `cpu.idle_state.C6.latency`.
        each CPU_IDLE_LATENCY = "cpu.idle_state." * ".latency", unit(FactUnit::Nanoseconds);
        /// How long a CPU must stay in an idle state to save energy.
        each CPU_IDLE_RESIDENCY = "cpu.idle_state." * ".residency", unit(FactUnit::Nanoseconds);
        /// The CPUs on which an idle state is disabled, or `none`.
        each CPU_IDLE_DISABLED = "cpu.idle_state." * ".disabled";
        /// The CPUs that share a cache with the first one: `cpu.cache_sharers.l2`.
        each CPU_CACHE_SHARERS = "cpu.cache_sharers." * "";
        rest "cpu." * "";
    ]
    "a hypervisor takes CPU time, and exits to it cost": [
        /// Kind of hypervisor.
        one HYPERVISOR_TYPE = "hypervisor.type";
        /// Name of the machine by its firmware.
        one HYPERVISOR_PRODUCT = "hypervisor.product";
        /// Vendor of the machine by its firmware.
        one HYPERVISOR_VENDOR = "hypervisor.vendor";
        /// Whether this is a virtual machine.
        one HYPERVISOR_PRESENT = "hypervisor.present", good(
            GoodValues::AllBut("true"),
            "bare metal",
            "neighbours and steal time are part of what is measured"
        );
        rest "hypervisor." * "";
    ]
    "firmware sets power limits, prefetchers, memory timings and what is hidden from the kernel": [
        /// Vendor of the firmware.
        one FIRMWARE_VENDOR = "firmware.vendor";
        /// Version of the firmware.
        one FIRMWARE_VERSION = "firmware.version";
        /// Release of the firmware.
        one FIRMWARE_RELEASE = "firmware.release";
        /// When the firmware was made.
        one FIRMWARE_DATE = "firmware.date";
        rest "firmware." * "";
    ]
    "compiler, build and options change every function of the kernel": [
        /// Version: the number of the build, and its options.
        one KERNEL_VERSION = "kernel.version";
        /// Instruction set: `x86_64`.
        one KERNEL_ARCH = "kernel.arch";
        /// Compiler and builder.
        one KERNEL_BUILD = "kernel.build";
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
    "huge pages save page faults and TLB misses, and cost compaction (Documentation/admin-guide/mm/transhuge.rst)": [
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
    "memory of another node is slower": [
        /// Nodes.
        one NUMA_NODES = "numa.nodes";
        /// Memory of a node.
        each NUMA_NODE_MEMORY = "numa.node" * ".memory", in_bytes();
        /// CPUs of a node.
        each NUMA_NODE_CPUS = "numa.node" * ".cpus";
        /// How far a node is from each node, itself 10.
        each NUMA_NODE_DISTANCES = "numa.node" * ".distances";
        rest "numa." * "";
    ]
    "the page cache and reclaim follow the size of memory": [
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
    "limits throttle CPU time and start reclaim (Documentation/admin-guide/cgroup-v2.rst)": [
        /// Version of control groups.
        one CGROUP_VERSION = "cgroup.version";
        /// The strictest limit of memory that holds for perflab.
        one CGROUP_MEMORY_LIMIT = "cgroup.memory_limit", in_bytes();
        /// The strictest limit of CPUs that holds for perflab.
        one CGROUP_CPU_LIMIT = "cgroup.cpu_limit";
        /// The controllers that perflab's group has.
        one CGROUP_CONTROLLERS = "cgroup.controllers";
        /// What is set on the way from the root to perflab's group, the root first: `cgroup.limit.memory.high`.
        each CGROUP_LIMIT = "cgroup.limit." * "";
        rest "cgroup." * "";
    ]
    "a tunable that memory, scheduler, disks or the network follow (Documentation/admin-guide/sysctl)": [
        /// A tunable of memory, the scheduler, disks or the network.
        names "sysctl." [
            "vm.*", "kernel.sched*", "sched.*", "kernel.numa*", "kernel.randomize_va_space",
            "kernel.nmi_watchdog", "kernel.watchdog*", "kernel.soft_watchdog", "kernel.timer_migration",
            "kernel.perf_event_paranoid", "kernel.perf_cpu_time_max_percent", "kernel.kptr_restrict",
            "kernel.pid_max", "kernel.threads-max", "kernel.io_uring*", "kernel.task_delayacct",
            "kernel.ftrace_enabled", "kernel.bpf_stats_enabled", "kernel.shm*", "kernel.sem", "kernel.msg*",
            "fs.file-max", "fs.nr_open", "fs.aio-max-nr", "fs.pipe-*", "fs.inotify.*", "fs.epoll.*", "fs.xfs.*",
            "fs.nfs.*", "sunrpc.*", "net.core.*", "net.ipv4.tcp_*", "net.ipv4.udp_*",
            "net.ipv4.ip_local_port_range", "net.ipv4.ip_forward", "net.netfilter.*", "net.unix.*",
            "net.mptcp.*", "dev.raid.*"
        ];
    ]
    "what reclaims pages ahead of need makes reads from disks out of hits": [
        /// Which generations of pages the kernel ages.
        one RECLAIM_LRU_GEN = "reclaim.lru_gen";
        /// What a thread of DAMON does about memory: `reclaim.damon.0`.
        each RECLAIM_DAMON = "reclaim.damon." * "";
        /// Whether the kernel's module reclaims pages ahead of need.
        one RECLAIM_DAMON_RECLAIM = "reclaim.damon.reclaim";
        rest "reclaim." * "";
    ]
    "reading a clock is a system call where the clock source has no vDSO": [
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
    "another distribution has other libraries and services": [
        /// Name with version: `Debian GNU/Linux 12 (bookworm)`.
        one DISTRIBUTION_NAME = "distribution.name";
        /// Short name: `debian`.
        one DISTRIBUTION_ID = "distribution.id";
        /// Version.
        one DISTRIBUTION_VERSION = "distribution.version";
        /// Build, where it has no versions.
        one DISTRIBUTION_BUILD = "distribution.build";
        rest "distribution." * "";
        /// The packages of a root that a target of the study has, by what the study calls it: how many, and a digest of their names and
        /// versions.
        each ROOT_PACKAGES = "root.packages." * "";
    ]
    "what runs beside the workload takes CPU time, memory and disks; a profile of tuned sets dozens of tunables": [
        /// What starts services: `systemd`, else the name of the first process.
        one SERVICES_MANAGER = "services.manager";
        /// A service of systemd that runs: `service.cron`.
        each SERVICE = "service." * "";
        /// The profile of tuned that is in force.
        one TUNED_PROFILE = "tuned.profile";
        /// Whether tuned chose the profile by itself: `auto`, `manual`.
        one TUNED_MODE = "tuned.mode";
    ]
    "requests are ordered, merged and read ahead as the queue says (Documentation/block/queue-sysfs.rst)": [
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
    "variables choose the libraries, the allocator, the threads, the compiler and the language of what is run": [
        /// A variable of the environment that workloads inherit: those that the study's commands name, and some that many programs read.
        each ENVIRONMENT = "environment." * "";
    ]
    "a job is run as its settings say": [
        /// A setting of a job of lkp-tests.
        each JOB = "job." * "";
    ]
    "what else runs takes CPU time, cache and memory bandwidth": [
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
    "with less of it the kernel reclaims": [
        /// Memory that can be had without swapping.
        one MEMORY_AVAILABLE = "memory.available", in_bytes(), varies(), when_large();
    ]
    "when, where or from what a run was made: it names the run more than it explains it": [
        /// Time since the boot.
        one UPTIME = "uptime", unit(FactUnit::Nanoseconds), varies(), hardly();
        /// A variable that says who runs perflab, and where.
        names "environment." ["HOME", "HOSTNAME", "LOGNAME", "PATH", "PWD", "SHELL", "TERM", "TMPDIR", "USER"], hardly();
        /// Version of a workload's program.
        each WORKLOAD_VERSION = "workload." * ".version", hardly();
        /// The job of Slurm's that a node was of.
        one SLURM_JOB = "slurm.job", varies(), hardly();
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
    "systemd starts these when somebody logs in or asks": [
        /// A service of a session, or of systemd itself.
        names "service." ["user@*", "user-runtime-dir@*", "systemd-*", "polkit", "packagekit", "fprintd", "udisks2"], hardly();
    ]
    "it hardly runs in what is measured: a driver, a file system, a name, a switch of security": [
        /// An option of the configuration; `n` where it is not set.
        each KERNEL_CONFIG = "kernel.config." * "", hardly();
        /// Options that cost nothing while the kernel runs.
        names "kernel.config." [
            "DEBUG_INFO*", "DEBUG_FS*", "DEBUG_MISC", "DEBUG_BUGVERBOSE"
        ], hardly();
        /// A tunable by the name that sysctl(8) knows.
        each SYSCTL = "sysctl." * "", hardly();
    ]
    "a counter, an id or a size that the kernel sets by itself, an interface of a container, or a fact of its own": [
        /// A tunable that changes by itself, or that is another fact already.
        names "sysctl." [
            "kernel.random.*", "kernel.ns_last_pid", "kernel.pty.nr", "kernel.cad_pid",
            "kernel.perf_event_max_sample_rate", "kernel.sched_domain.*", "fs.dentry-state", "fs.file-nr",
            "fs.inode-nr", "fs.inode-state", "fs.aio-nr", "fs.quota.*", "net.netfilter.nf_conntrack_count",
            "net.ipv4.tcp_mem", "net.ipv4.udp_mem", "net.sctp.sctp_mem", "vm.user_reserve_kbytes",
            "vm.admin_reserve_kbytes", "kernel.osrelease", "kernel.ostype", "kernel.version", "kernel.arch",
            "kernel.tainted", "net.ipv4.conf.veth*", "net.ipv4.conf.br-*", "net.ipv4.conf.docker*",
            "net.ipv4.conf.virbr*", "net.ipv4.conf.vnet*", "net.ipv4.conf.tap*", "net.ipv4.conf.tun*",
            "net.ipv4.conf.cali*", "net.ipv4.conf.flannel*", "net.ipv4.conf.cni*", "net.ipv4.conf.lxc*",
            "net.ipv4.conf.ifb*", "net.ipv4.neigh.veth*", "net.ipv4.neigh.br-*", "net.ipv4.neigh.docker*",
            "net.ipv4.neigh.virbr*", "net.ipv4.neigh.vnet*", "net.ipv4.neigh.tap*", "net.ipv4.neigh.tun*",
            "net.ipv4.neigh.cali*", "net.ipv4.neigh.flannel*", "net.ipv4.neigh.cni*", "net.ipv4.neigh.lxc*",
            "net.ipv4.neigh.ifb*", "net.ipv6.conf.veth*", "net.ipv6.conf.br-*", "net.ipv6.conf.docker*",
            "net.ipv6.conf.virbr*", "net.ipv6.conf.vnet*", "net.ipv6.conf.tap*", "net.ipv6.conf.tun*",
            "net.ipv6.conf.cali*", "net.ipv6.conf.flannel*", "net.ipv6.conf.cni*", "net.ipv6.conf.lxc*",
            "net.ipv6.conf.ifb*", "net.ipv6.neigh.veth*", "net.ipv6.neigh.br-*", "net.ipv6.neigh.docker*",
            "net.ipv6.neigh.virbr*", "net.ipv6.neigh.vnet*", "net.ipv6.neigh.tap*", "net.ipv6.neigh.tun*",
            "net.ipv6.neigh.cali*", "net.ipv6.neigh.flannel*", "net.ipv6.neigh.cni*", "net.ipv6.neigh.lxc*",
            "net.ipv6.neigh.ifb*"
        ], varies(), hardly();
        /// perflab's own group: sessions and jobs have numbers.
        one CGROUP_PATH = "cgroup.path", varies(), hardly();
    ]
    "a file system that is nearly full allocates worse; it changes with every file": [
        /// Free bytes of a mounted file system.
        each DISK_FREE = "disk.free." * "", in_bytes(), varies(), hardly();
    ]
    "other programs attach and detach loop devices": [
        // Loop devices come and go.
        rest "disk.loop" * "", hardly();
        rest "disk.loop" * ".size", in_bytes(), hardly();
        rest "disk.loop" * ".read_ahead", in_bytes(), hardly();
        rest "disk.loop" * ".logical_block_size", in_bytes(), hardly();
    ]
    "other programs mount and unmount": [
        // Other processes mount and unmount.
        /// Type of a mounted file system.
        each DISK_MOUNT_TYPE = "disk.mount." * ".type", hardly();
        /// Options of a mounted file system.
        each DISK_MOUNT_OPTIONS = "disk.mount." * ".options", hardly();
        /// Device of a mounted file system.
        each DISK_MOUNT_DEVICE = "disk.mount." * ".device", hardly();
        rest "disk.mount." * "", hardly();
    ]
    "the options that differ are named one by one": [
        /// Digest of the whole configuration.
        one KERNEL_CONFIG_SHA256 = "kernel.config.sha256", hardly();
    ]
    "it counts repetitions": [
        /// Number of the run of a job.
        one JOB_RUN = "job.run", hardly();
    ]
    "how a run came here says nothing of what ran": [
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
    FACT_GROUPS.iter().flat_map(|group| group.specs)
}

/// The groups of kinds that rank alike, the likeliest cause of a change first.
pub fn all_fact_groups() -> &'static [FactGroup] {
    FACT_GROUPS
}

/// What is declared of a stored key, and its rank among causes: 0 is the likeliest.
pub fn ranked_fact_spec(stored: &str) -> (&'static FactSpec, usize) {
    let groups = FACT_GROUPS.iter().zip(0..);
    let rows = groups.flat_map(|(group, rank)| group.specs.iter().map(move |row| (row, rank)));
    let fits = rows.filter_map(|(row, rank)| Some((row.closeness(stored)?, (row, rank))));
    fits.max_by_key(|(closeness, _)| *closeness).map_or((&UNKNOWN, FACT_RANKS), |(_, found)| found)
}

/// Why a difference of a stored key explains a change, or hardly does.
pub fn fact_reason(stored: &str) -> &'static str {
    FACT_GROUPS.get(ranked_fact_spec(stored).1).map_or("nothing is known of it", |group| group.reason)
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
        let mut rows: Vec<String> = all_fact_specs().flat_map(FactSpec::key_patterns).collect();
        rows.sort_unstable();
        let all = rows.len();
        rows.dedup();
        assert_eq!(rows.len(), all, "a row stands twice");
    }

    #[test]
    fn options_and_tunables_that_cost_time_rank_above_the_rest() {
        let options = [
            "KASAN",
            "PROVE_LOCKING",
            "DEBUG_LIST",
            "HZ",
            "PREEMPT_RT",
            "NR_CPUS",
            "SLUB_DEBUG",
            "MITIGATION_SLS",
        ];
        for option in options.map(|name| KERNEL_CONFIG.key(name)) {
            assert!(
                ranked_fact_spec(option.as_str()).1 < ranked_fact_spec("kernel.config.E1000").1,
                "{option:?}"
            );
            assert_eq!(fact_spec(option.as_str()).weight, FactWeight::Often, "{option:?}");
        }
        assert_eq!(fact_spec("kernel.config.DEBUG_INFO_DWARF5").weight, FactWeight::Hardly);
        assert_eq!(fact_spec("kernel.config.E1000").weight, FactWeight::Hardly);
        assert_eq!(fact_spec("kernel.config.sha256").key(), Some(KERNEL_CONFIG_SHA256));
        assert_eq!(fact_spec("sysctl.vm.swappiness").weight, FactWeight::Often);
        assert_eq!(fact_spec("sysctl.kernel.core_pattern").weight, FactWeight::Hardly);
        let volatile = [
            "kernel.random.uuid",
            "fs.dentry-state",
            "fs.file-nr",
            "kernel.ns_last_pid",
            "net.ipv4.conf.veth1a.tag",
        ];
        for name in volatile.map(|name| SYSCTL.key(name)) {
            assert_eq!(fact_spec(name.as_str()).volatility, FactVolatility::Varies, "{name:?}");
        }
        assert!(FACT_GROUPS.iter().all(|group| !group.reason.is_empty()));
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
