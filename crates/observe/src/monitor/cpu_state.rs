//! Series `cpu-state` on a clock: a row a CPU that is online.
//!
//! Cycles are those of the PMU `msr` (APERF, MPERF and TSC; Intel SDM volume 3, 15.2), else of /dev/cpu/N/msr. Idle states are
//! those of cpuidle, and of the PMU `cstate_core` where it counts. The schema says which of these the machine had.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use perflab_formats::kernel::cpu_state::idle_state_name;
use perflab_model::{CellRow, ColumnSpec, Nanos, SeriesSchema, TableCell};

use crate::clock::monotonic_now;
use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::folder::SmallFile;
use crate::monitor::online_cpus::OnlineCpus;
use crate::perf_counter::{CounterScope, EventCode, PerfCounter};
use crate::root::{Root, open_unblocked};

/// Cycles by name, with the number of the register (arch/x86/include/asm/msr-index.h).
const CYCLES: [(&str, u64); 3] = [("tsc", 0x10), ("aperf", 0xe8), ("mperf", 0xe7)];

/// What else may count, each with its PMU and event.
const RESIDENCIES: &[(&str, &str)] = &[
    ("msr", "smi"),
    ("cstate_core", "c1-residency"),
    ("cstate_core", "c3-residency"),
    ("cstate_core", "c6-residency"),
    ("cstate_core", "c7-residency"),
];

/// Most CPUs of which residencies of `cstate_core` are counted by events, as each takes a descriptor.
const FEW_CPUS: usize = 16;

/// A counter of cycles.
enum CycleCounter {
    Event(PerfCounter),
    Register(File, u64),
}

impl CycleCounter {
    fn read(&self) -> Option<u64> {
        match self {
            CycleCounter::Event(counter) => Some(counter.read()?.count),
            CycleCounter::Register(file, number) => {
                let mut value = [0; 8];
                file.read_exact_at(&mut value, *number).ok()?;
                Some(u64::from_le_bytes(value))
            }
        }
    }
}

/// One CPU, and all that is read of it.
struct CpuSources {
    cpu: u32,
    cycles: [Option<CycleCounter>; 3],
    residencies: Vec<Option<PerfCounter>>,
    /// Time and number of each idle state,
    idle: Vec<[SmallFile; 2]>,
    /// the frequency, and how often it was throttled.
    frequency: SmallFile,
    throttled: SmallFile,
    before: Option<CpuReading>,
}

/// What the gauges of a row are made of.
#[derive(Debug, Clone, Copy)]
struct CpuReading {
    at: Nanos,
    cycles: [Option<u64>; 3],
    idle: Option<u64>,
}

struct CpuStateMonitor {
    root: Root,
    schema: SeriesSchema,
    /// Which events there are.
    events: Vec<EventCode>,
    states: Vec<String>,
    cpus: Vec<CpuSources>,
    online: OnlineCpus,
    buffer: Vec<u8>,
}

fn open_on_cpu(event: &EventCode, cpu: u32) -> Option<PerfCounter> {
    let counter = PerfCounter::open(event, &[], CounterScope::Cpu(cpu), None).ok()?;
    counter.start().ok().map(|()| counter)
}

pub(crate) fn open_cpu_state(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let root = opening.root;
    let online = OnlineCpus::open(root)?;
    let cpus = online.cpus();
    let first = cpus.first().copied().unwrap_or(0);
    let folder = format!("{}/cpu{first}/cpuidle", opening.file.source);
    let states: Vec<String> = root
        .list(&folder)
        .into_iter()
        .filter(|name| name.starts_with("state"))
        .map(|state| {
            root.read(&format!("{folder}/{state}/name")).map_or(state, |name| idle_state_name(&name))
        })
        .collect();
    let counts = |event: &EventCode| root.is_host() && open_on_cpu(event, first).is_some();
    let residencies: Vec<(&str, &str, EventCode)> = RESIDENCIES
        .iter()
        .filter_map(|(pmu, event)| {
            Some((*pmu, *event, EventCode::resolve_of_unit(root, pmu, event).ok().filter(counts)?))
        })
        .filter(|(pmu, ..)| *pmu == "msr" || cpus.len() <= FEW_CPUS)
        .collect();
    let mut monitor = CpuStateMonitor {
        root: root.clone(),
        schema: opening.schema_with_columns(Vec::new()),
        events: residencies.iter().map(|(.., event)| event.clone()).collect(),
        states,
        cpus: Vec::new(),
        online,
        buffer: vec![0; 4096],
    };
    monitor.open_cpus();
    let sources = monitor.describe_sources(&residencies);
    if sources.is_empty() {
        return Err(ObserveError::read_failed(opening.file.source, rustix::io::Errno::NODEV.into()));
    }
    monitor.schema.source = sources.join(", ");
    monitor.schema.columns = monitor.columns(&residencies);
    Ok(Box::new(monitor))
}

impl CpuStateMonitor {
    /// Opens the CPUs that came, and closes those that went.
    fn open_cpus(&mut self) {
        let mut before = std::mem::take(&mut self.cpus);
        for &cpu in self.online.cpus() {
            let known = before.iter().position(|one| one.cpu == cpu).map(|index| before.swap_remove(index));
            let sources = known.unwrap_or_else(|| self.open_cpu(cpu));
            self.cpus.push(sources);
        }
    }

    fn open_cpu(&self, cpu: u32) -> CpuSources {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
        let file = |path: String| SmallFile::new(self.root.path(&path));
        let state = |index: usize| {
            ["time", "usage"].map(|name| file(format!("{folder}/cpuidle/state{index}/{name}")))
        };
        CpuSources {
            cpu,
            cycles: CYCLES.map(|(name, register)| self.open_cycles(cpu, name, register)),
            residencies: self.events.iter().map(|event| open_on_cpu(event, cpu)).collect(),
            idle: (0..self.states.len()).map(state).collect(),
            frequency: file(format!("{folder}/cpufreq/scaling_cur_freq")),
            throttled: file(format!("{folder}/thermal_throttle/core_throttle_count")),
            before: None,
        }
    }

    fn open_cycles(&self, cpu: u32, name: &str, register: u64) -> Option<CycleCounter> {
        let event = EventCode::resolve_of_unit(&self.root, "msr", name).ok().filter(|_| self.root.is_host());
        let event = event.and_then(|event| open_on_cpu(&event, cpu)).map(CycleCounter::Event);
        event.or_else(|| {
            let file = open_unblocked(&self.root.path(&format!("/dev/cpu/{cpu}/msr"))).ok()?;
            let counter = CycleCounter::Register(file, register);
            counter.read().map(|_| counter)
        })
    }

    /// Where the numbers come from: what the first CPU has is what all have.
    fn describe_sources(&mut self, residencies: &[(&str, &str, EventCode)]) -> Vec<String> {
        let mut sources = Vec::new();
        let Some(first) = self.cpus.first_mut() else { return sources };
        for ((name, _), counter) in CYCLES.iter().zip(&first.cycles) {
            sources.extend(counter.as_ref().map(|counter| match counter {
                CycleCounter::Event(_) => format!("perf msr/{name}/"),
                CycleCounter::Register(..) => format!("/dev/cpu/N/msr {name}"),
            }));
        }
        sources.extend(residencies.iter().map(|(pmu, event, _)| format!("perf {pmu}/{event}/")));
        sources.extend((!first.idle.is_empty()).then(|| "cpuidle".to_owned()));
        let mut has = |file: &mut SmallFile| file.read(&mut self.buffer).is_ok();
        sources.extend(has(&mut first.frequency).then(|| "cpufreq scaling_cur_freq".to_owned()));
        sources.extend(has(&mut first.throttled).then(|| "thermal_throttle".to_owned()));
        sources
    }

    fn columns(&self, residencies: &[(&str, &str, EventCode)]) -> Vec<ColumnSpec> {
        let mut columns = vec![
            ColumnSpec::key("cpu"),
            ColumnSpec::float_gauge("busy", "1"),
            ColumnSpec::float_gauge("average_mhz", "MHz"),
            ColumnSpec::float_gauge("busy_mhz", "MHz"),
            ColumnSpec::gauge("scaling_cur_freq", "kHz"),
            ColumnSpec::counter("core_throttle_count", "1"),
        ];
        columns.extend(CYCLES.iter().map(|(name, _)| ColumnSpec::counter(name, "cycles")));
        columns.extend(residencies.iter().map(|(_, event, _)| ColumnSpec::counter(event, "1")));
        for state in &self.states {
            columns.push(ColumnSpec::counter(&format!("idle_{state}_ns"), "ns"));
            columns.push(ColumnSpec::counter(&format!("idle_{state}_usage"), "1"));
        }
        columns
    }
}

impl CpuSources {
    fn read_row(&mut self, width: usize, buffer: &mut Vec<u8>) -> CellRow {
        let mut number =
            |file: &mut SmallFile| file.read(buffer).ok().and_then(|text| text.trim().parse::<u64>().ok());
        let idle: Vec<[Option<u64>; 2]> = self
            .idle
            .iter_mut()
            .map(|[time, usage]| [number(time).and_then(|micros| micros.checked_mul(1000)), number(usage)])
            .collect();
        let (frequency, throttled) = (number(&mut self.frequency), number(&mut self.throttled));
        let times: Option<Vec<u64>> = idle.iter().map(|[time, _]| *time).collect();
        let now = CpuReading {
            at: monotonic_now(),
            cycles: [0, 1, 2].map(|index| self.cycles.get(index)?.as_ref()?.read()),
            idle: times.filter(|times| !times.is_empty()).map(|times| times.iter().sum()),
        };
        let gauges = self.before.replace(now).map_or([None; 3], |before| now.gauges_since(before));
        let cell = |number: Option<u64>| {
            number.and_then(|number| i64::try_from(number).ok()).map_or(TableCell::Missing, TableCell::Int)
        };
        let mut row = CellRow::with_capacity(width);
        row.push(TableCell::Text(format!("cpu{}", self.cpu)));
        row.extend(gauges.map(|gauge| gauge.map_or(TableCell::Missing, TableCell::Float)));
        row.extend([cell(frequency), cell(throttled)]);
        row.extend(now.cycles.map(cell));
        row.extend(
            self.residencies
                .iter()
                .map(|counter| cell(counter.as_ref().and_then(|counter| Some(counter.read()?.count)))),
        );
        row.extend(idle.into_iter().flatten().map(cell));
        row.resize(width, TableCell::Missing);
        row
    }
}

impl CpuReading {
    /// Busy share, and MHz on average and while busy, since an earlier reading.
    fn gauges_since(&self, before: CpuReading) -> [Option<f64>; 3] {
        let grown = |now: Option<u64>, before: Option<u64>| Some(now?.checked_sub(before?)? as f64);
        let [tsc, aperf, mperf] = [0, 1, 2]
            .map(|index| grown(self.cycles.get(index).copied()?, before.cycles.get(index).copied()?));
        let nanos = self.at.since(before.at).0 as f64;
        let share = |part: f64, of: f64| (of > 0.0).then(|| (part / of).clamp(0.0, 1.0));
        // MPERF counts at the TSC's rate while the CPU is not idle.
        let by_cycles = tsc.and_then(|tsc| share(mperf?, tsc));
        let by_idle = || share(nanos - grown(self.idle, before.idle)?, nanos);
        let busy = by_cycles.or_else(by_idle);
        let average = aperf.filter(|_| nanos > 0.0).map(|cycles| cycles * 1e3 / nanos);
        let while_busy =
            average.and_then(|average| busy.filter(|busy| *busy > 0.0).map(|busy| average / busy));
        [busy, average, while_busy]
    }
}

impl Monitor for CpuStateMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        if self.online.read_changes()?.is_some() {
            self.open_cpus();
        }
        let width = self.schema.columns.len();
        rows.extend(self.cpus.iter_mut().map(|cpu| cpu.read_row(width, &mut self.buffer)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_frequencies_are_of_what_grew() {
        let reading =
            |at, cycles: [u64; 3], idle| CpuReading { at: Nanos(at), cycles: cycles.map(Some), idle };
        // A second at 2 GHz of TSC: half of it busy, at 3 GHz.
        let before = reading(0, [0, 0, 0], None);
        let now = reading(1_000_000_000, [2_000_000_000, 1_500_000_000, 1_000_000_000], None);
        assert_eq!(now.gauges_since(before), [Some(0.5), Some(1500.0), Some(3000.0)]);
        // Without cycles: three quarters of the time were idle.
        let none = |at, idle| CpuReading { at: Nanos(at), cycles: [None; 3], idle: Some(idle) };
        assert_eq!(none(1000, 750).gauges_since(none(0, 0)), [Some(0.25), None, None]);
        // A CPU that came back counts from 0 again.
        assert_eq!(before.gauges_since(now), [None, None, None]);
    }
}
