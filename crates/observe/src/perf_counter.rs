//! One perf event that counts, and is read; and how the kernel numbers an event of a name.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
#[cfg(test)]
use std::os::fd::AsRawFd as _;

use perf_event_open_sys::bindings as sys;
use perflab_formats::kernel::counter_event::{CounterEvent, CounterMode, CounterSource, encode_event_terms};
use perflab_formats::kernel::small_values::parse_cpu_list;
use perflab_model::problem::suggest_name;

use crate::perf_event::{filter_event, open_perf_event, switch_event};
use crate::root::Root;
use crate::tracepoint::Tracepoint;

/// Where the kernel describes the units that count.
pub(crate) const UNITS: &str = "/sys/bus/event_source/devices";

/// An event as the kernel of this machine numbers it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EventCode {
    kind: u32,
    configs: [u64; 3],
    /// The CPUs on which it is counted for all; of a unit that is no CPU's.
    pub(crate) cpus: Option<Vec<u32>>,
    /// What its counts are multiplied by to be in `unit`.
    pub(crate) scale: f64,
    pub(crate) unit: &'static str,
}

impl EventCode {
    fn new(kind: u32, config: u64, unit: &'static str) -> Self {
        EventCode { kind, configs: [config, 0, 0], cpus: None, scale: 1.0, unit }
    }

    /// The number of an event here.
    ///
    /// # Errors
    /// What this machine lacks.
    pub(crate) fn resolve(root: &Root, event: &CounterEvent) -> Result<Self, String> {
        match &event.source {
            CounterSource::Hardware { config } => {
                Ok(EventCode::new(sys::PERF_TYPE_HARDWARE, *config, event.unit()))
            }
            CounterSource::Cache { config } => {
                Ok(EventCode::new(sys::PERF_TYPE_HW_CACHE, *config, event.unit()))
            }
            CounterSource::Raw { config } => Ok(EventCode::new(sys::PERF_TYPE_RAW, *config, event.unit())),
            CounterSource::Software(software) => {
                Ok(EventCode::new(sys::PERF_TYPE_SOFTWARE, software.config, event.unit()))
            }
            CounterSource::Pmu { pmu, terms } => Self::resolve_of_unit(root, pmu, terms),
            CounterSource::TopDown => Err("this processor describes no events of the top-down method (/sys/bus/event_source/devices/cpu/events/topdown-*)".into()),
            CounterSource::Tracepoint { group, name } => {
                let id = Tracepoint::find(root, group, name)?.id;
                Ok(EventCode::new(sys::PERF_TYPE_TRACEPOINT, id, event.unit()))
            }
        }
    }

    /// The event of a unit: the name of one that sysfs has, or terms.
    pub(crate) fn resolve_of_unit(root: &Root, pmu: &str, terms: &str) -> Result<Self, String> {
        let folder = format!("{UNITS}/{pmu}");
        let read = |file: &str| root.read(&format!("{folder}/{file}"));
        let Some(kind) = read("type").ok().and_then(|text| text.trim().parse().ok()) else {
            let units = root.list(UNITS);
            let hint = suggest_name(pmu, units.iter().map(String::as_str));
            return Err(format!("this machine has no unit `{pmu}` that counts; {hint}"));
        };
        let named = read(&format!("events/{terms}")).ok();
        let is_name = !terms.contains(['=', ',']);
        if named.is_none() && is_name && read(&format!("format/{terms}")).is_err() {
            let mut events = root.list(&format!("{folder}/events"));
            events.retain(|name| !name.contains('.'));
            let hint = suggest_name(terms, events.iter().map(String::as_str));
            return Err(format!("`{pmu}` has no event `{terms}`; {hint}"));
        }
        let terms_of_name = named.as_deref().unwrap_or(terms).trim();
        let configs = encode_event_terms(terms_of_name, |term| read(&format!("format/{term}")).ok())
            .map_err(|reason| format!("`{pmu}`: {reason}"))?;
        let (scale, unit) =
            match (read(&format!("events/{terms}.scale")), read(&format!("events/{terms}.unit"))) {
                (Ok(scale), unit) => convert_unit(scale.trim(), unit.unwrap_or_default().trim()),
                _ => (1.0, "1"),
            };
        let cpus = read("cpumask").ok().map(|text| parse_cpu_list(&text));
        Ok(EventCode { kind, configs, cpus, scale, unit })
    }
}

/// Counts are whole numbers: of joules and mebibytes that is too coarse.
fn convert_unit(scale: &str, unit: &str) -> (f64, &'static str) {
    let Some(scale) = scale.parse::<f64>().ok().filter(|scale| scale.is_finite() && *scale > 0.0) else {
        return (1.0, "1");
    };
    match unit {
        "Joules" => (scale * 1e6, "uJ"),
        "MiB" => (scale * 1_048_576.0, "B"),
        "" if scale >= 1.0 => (scale, "1"),
        _ => (1.0, "1"),
    }
}

/// Whose events are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CounterScope {
    /// of whatever this thread starts from now on, and of all that it starts: from its `exec` on
    Started,
    /// of everybody on a CPU
    Cpu(u32),
}

/// What a counter says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CounterReading {
    /// What it counted.
    pub(crate) count: u64,
    /// How long it was to count, ns; of several tasks the sum.
    pub(crate) enabled: u64,
    /// How long it did: less where events took turns.
    pub(crate) running: u64,
}

/// A counter, from when it was opened. Closed when dropped.
#[derive(Debug)]
pub(crate) struct PerfCounter(File);

impl PerfCounter {
    /// Begins to count: in these modes of the processor, in all where there are none; at the same times as `leader`.
    ///
    /// A thread's own counter is never switched on: it is inherited by what the thread starts, where it begins with `exec`. So
    /// nothing that perflab does is among its counts, and nothing that the workload does is missing. It needs an anchor beside it.
    ///
    /// # Errors
    /// The processor or hypervisor lacks the event, or one may not count it (`kernel.perf_event_paranoid`).
    pub(crate) fn open(
        code: &EventCode,
        modes: &[CounterMode],
        scope: CounterScope,
        leader: Option<&PerfCounter>,
    ) -> io::Result<Self> {
        let [config, config1, config2] = code.configs;
        let mut attr = sys::perf_event_attr {
            type_: code.kind,
            size: size_of::<sys::perf_event_attr>() as u32,
            config,
            read_format: u64::from(sys::PERF_FORMAT_TOTAL_TIME_ENABLED | sys::PERF_FORMAT_TOTAL_TIME_RUNNING),
            ..Default::default()
        };
        attr.__bindgen_anon_3.config1 = config1;
        attr.__bindgen_anon_4.config2 = config2;
        let excludes = |mode| u64::from(!modes.is_empty() && !modes.contains(&mode));
        attr.set_exclude_user(excludes(CounterMode::User));
        attr.set_exclude_kernel(excludes(CounterMode::Kernel));
        attr.set_exclude_hv(excludes(CounterMode::Hypervisor));
        let leader = leader.map(|leader| leader.0.as_fd());
        let fd = match scope {
            CounterScope::Cpu(cpu) => {
                // A group counts once it is whole: who joins one that counts already does not until the kernel looks at it again.
                attr.set_disabled(u64::from(leader.is_none()));
                open_perf_event(&attr, -1, Some(cpu), leader)
            }
            CounterScope::Started => {
                attr.set_inherit(1);
                attr.set_disabled(1);
                attr.set_enable_on_exec(1);
                open_perf_event(&attr, 0, None, leader)
            }
        };
        Ok(PerfCounter(fd?.into()))
    }

    /// Has the leader of a CPU's group count, and the others with it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn start(&self) -> io::Result<()> {
        switch_event(&self.0, true)
    }

    /// Has a tracepoint count only what the kernel's filter lets through.
    ///
    /// # Errors
    /// The kernel does not take it.
    pub(crate) fn filter(&self, filter: &str) -> io::Result<()> {
        filter_event(&self.0, &std::ffi::CString::new(filter).map_err(io::Error::other)?)
    }

    /// An event of this thread that counts nothing, and that nothing inherits. Without one, what the thread starts has a context of
    /// events that is a clone of its own, and the kernel exchanges the two where it switches from one to the other
    /// (`perf_event_context_sched_out` in kernel/events/core.c): a thread's events that are off would be switched on in its place, once,
    /// and never be inherited again.
    ///
    /// # Errors
    /// As [`PerfCounter::open`].
    pub(crate) fn open_anchor() -> io::Result<Self> {
        let mut attr = sys::perf_event_attr {
            type_: sys::PERF_TYPE_SOFTWARE,
            size: size_of::<sys::perf_event_attr>() as u32,
            config: u64::from(sys::PERF_COUNT_SW_DUMMY),
            ..Default::default()
        };
        attr.set_disabled(1);
        attr.set_exclude_kernel(1);
        Ok(PerfCounter(open_perf_event(&attr, 0, None, None)?.into()))
    }

    /// What it counted since it was opened; nothing of a CPU that went offline, or of an event whose group did not fit.
    pub(crate) fn read(&self) -> Option<CounterReading> {
        let mut words = [0; 24];
        (&self.0).read_exact(&mut words).ok()?;
        let word = |index: usize| {
            let bytes = words.get(index * 8..)?.first_chunk::<8>()?;
            Some(u64::from_ne_bytes(*bytes))
        };
        Some(CounterReading { count: word(0)?, enabled: word(1)?, running: word(2)? })
    }

    /// Its descriptor's number, for tests of leaks.
    #[cfg(test)]
    fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(root: &Root, name: &str) -> Result<EventCode, String> {
        EventCode::resolve(root, &CounterEvent::parse(name).unwrap())
    }

    #[test]
    fn a_counter_of_this_machine_grows_and_is_closed() {
        let clock = resolve(&Root::host(), "cpu-clock").unwrap();
        let counter = match PerfCounter::open(&clock, &[], CounterScope::Cpu(0), None) {
            Ok(counter) => counter,
            Err(error) => return eprintln!("SKIP a_counter_of_this_machine_grows_and_is_closed: {error}"),
        };
        counter.start().unwrap();
        let first = counter.read().unwrap();
        let second = counter.read().unwrap();
        assert!(first.count < second.count && second.running == second.enabled, "{first:?} {second:?}");
        let path = format!("/proc/self/fd/{}", counter.descriptor());
        let target = std::fs::read_link(&path);
        drop(counter);
        // Another test may have got the number meanwhile, but not of a counter.
        assert!(std::fs::read_link(&path).ok() != target.ok() || std::fs::read_link(&path).is_err());
    }

    fn recorded_tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = home.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        home
    }

    /// As Intel's memory controllers are described (Documentation/ABI/testing/sysfs-bus-event_source-devices-events).
    #[test]
    fn an_event_of_a_unit_is_as_sysfs_says_and_what_is_not_there_is_said() {
        let home = recorded_tree(&[
            ("/sys/bus/event_source/devices/uncore_imc_0/type", "13\n"),
            ("/sys/bus/event_source/devices/uncore_imc_0/cpumask", "0,24\n"),
            ("/sys/bus/event_source/devices/uncore_imc_0/format/event", "config:0-7\n"),
            ("/sys/bus/event_source/devices/uncore_imc_0/format/umask", "config:8-15\n"),
            ("/sys/bus/event_source/devices/uncore_imc_0/events/cas_count_read", "event=0x04,umask=0x03\n"),
            ("/sys/bus/event_source/devices/uncore_imc_0/events/cas_count_read.scale", "6.103515625e-5\n"),
            ("/sys/bus/event_source/devices/uncore_imc_0/events/cas_count_read.unit", "MiB\n"),
            ("/sys/kernel/tracing/events/sched/sched_switch/id", "316\n"),
        ]);
        let root = Root(home.path().into());
        let found = resolve(&root, "uncore_imc_0/cas_count_read/").unwrap();
        assert_eq!(
            (found.kind, found.configs, found.cpus.as_deref()),
            (13, [0x304, 0, 0], Some(&[0, 24][..]))
        );
        assert_eq!((found.scale, found.unit), (64.0, "B"));
        assert_eq!(resolve(&root, "sched:sched_switch").unwrap().configs, [316, 0, 0]);
        let said = [
            "uncore_imc/cas_count_read/",
            "uncore_imc_0/cas_count_wread/",
            "uncore_imc_0/event=0x100/",
            "shed:sched_switch",
            "sched:sched_swich",
        ];
        let said = said.map(|name| resolve(&root, name).unwrap_err());
        insta::assert_snapshot!(said.join("\n"), @r"
        this machine has no unit `uncore_imc` that counts; did you mean `uncore_imc_0`?
        `uncore_imc_0` has no event `cas_count_wread`; did you mean `cas_count_read`?
        `uncore_imc_0`: `event=0x100`: it does not fit into `config:0-7`
        this kernel has no group `shed` of tracepoints; did you mean `sched`?
        this kernel has no tracepoint `sched:sched_swich`; did you mean `sched_switch`?
        ");
    }
}
