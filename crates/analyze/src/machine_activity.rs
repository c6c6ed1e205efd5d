//! What a machine did while a command ran, from what its monitors recorded: CPU time by state, waiting, memory, disks,
//! network, each beside what it did at rest.

use perflab_model::series::Series;
use perflab_model::{EdgeReadings, Nanos, RunRecord, Unit};
use serde::Serialize;

use crate::keyed_rows::TimeSpan;
use crate::monitor_metric::{ColumnSummary, summarise_iteration, summarise_span};

/// One thing that a machine did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MachineActivity {
    /// `CPU: user`, `disk sda: written`
    pub what: String,
    /// The monitor and the column that say so: `stat.user`.
    pub source: String,
    /// The unit of both values; empty for a share.
    pub unit: Unit,
    /// Meanwhile: the mean of a gauge, the rate of a counter, a share from 0 to 1.
    pub during: f64,
    /// The same before and after, where the machine was watched at rest.
    pub at_rest: Option<f64>,
}

/// How a column becomes a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ActivityScale {
    /// as it was recorded
    Same,
    /// nanoseconds of CPU time a second, as a share of all CPUs
    OfCpus,
    /// nanoseconds a second, as a share of the time
    OfTime,
}

/// A column that is told.
struct ActivityRule {
    monitor: &'static str,
    column: &'static str,
    /// the row's key; of each row where it is empty, by the key's value
    key: &'static str,
    what: &'static str,
    scale: ActivityScale,
}

const fn rule(
    monitor: &'static str,
    column: &'static str,
    key: &'static str,
    what: &'static str,
    scale: ActivityScale,
) -> ActivityRule {
    ActivityRule { monitor, column, key, what, scale }
}

use ActivityScale::{OfCpus, OfTime, Same};

/// What is told, in its order.
const RULES: &[ActivityRule] = &[
    rule("stat", "user", "cpu=cpu", "CPU: user", OfCpus),
    rule("stat", "system", "cpu=cpu", "CPU: system", OfCpus),
    rule("stat", "irq", "cpu=cpu", "CPU: interrupts", OfCpus),
    rule("stat", "softirq", "cpu=cpu", "CPU: soft interrupts", OfCpus),
    rule("stat", "iowait", "cpu=cpu", "CPU: idle, waiting for I/O", OfCpus),
    rule("stat", "steal", "cpu=cpu", "CPU: steal time", OfCpus),
    rule("stat", "ctxt", "cpu=cpu", "context switches", Same),
    rule("stat", "intr", "cpu=cpu", "interrupts", Same),
    rule("stat", "processes", "cpu=cpu", "forks", Same),
    rule("stat", "procs_running", "cpu=cpu", "runnable tasks", Same),
    rule("stat", "procs_blocked", "cpu=cpu", "blocked tasks", Same),
    rule("pressure", "total_ns", "resource=cpu kind=some", "tasks waited for a CPU", OfTime),
    rule("pressure", "total_ns", "resource=memory kind=some", "tasks waited for memory", OfTime),
    rule("pressure", "total_ns", "resource=io kind=some", "tasks waited for I/O", OfTime),
    rule("vmstat", "pgfault", "", "page faults", Same),
    rule("vmstat", "pgmajfault", "", "major page faults", Same),
    rule("vmstat", "pswpin", "", "pages swapped in", Same),
    rule("vmstat", "pswpout", "", "pages swapped out", Same),
    rule("vmstat", "pgscan_kswapd", "", "pages scanned by kswapd", Same),
    rule("vmstat", "pgscan_direct", "", "pages scanned by direct reclaim", Same),
    rule("vmstat", "compact_stall", "", "stalls for compaction", Same),
    rule("meminfo", "MemAvailable", "", "memory available", Same),
    rule("meminfo", "AnonPages", "", "memory of processes", Same),
    rule("meminfo", "Cached", "", "page cache", Same),
    rule("meminfo", "Dirty", "", "dirty page cache", Same),
    rule("meminfo", "Slab", "", "slab", Same),
    rule("diskstats", "io_ns", "", "busy", OfTime),
    rule("diskstats", "read_bytes", "", "read", Same),
    rule("diskstats", "write_bytes", "", "written", Same),
    rule("net-dev", "rx_bytes", "", "received", Same),
    rule("net-dev", "tx_bytes", "", "sent", Same),
];

/// The kernel counts CPU time of a machine in ticks of 1 to 10 ms: of less than this, they are no share.
pub const FEWEST_TICKS: Nanos = Nanos(100_000_000);

/// What the machine did during the first iteration of a run, by what its monitors read at the edges of it and in between. `cpus` is
/// how many CPUs it has online.
///
/// What was 0 both meanwhile and at rest is left out, and so are shares of CPU time of less than [`FEWEST_TICKS`].
pub fn machine_activity(
    record: &RunRecord,
    monitors: &[(Series, Option<EdgeReadings>)],
    cpus: f64,
) -> Vec<MachineActivity> {
    let Some(iteration) = record.iterations.first() else { return Vec::new() };
    let during = (iteration.start, iteration.end);
    let has_ticks = iteration.end.since(iteration.start) >= FEWEST_TICKS;
    let mut all = Vec::new();
    for (series, edges) in monitors {
        let meanwhile = summarise_iteration(series, edges.as_ref(), iteration);
        let rest = summarise_rest(series, during);
        let rules = RULES
            .iter()
            .enumerate()
            .filter(|(_, rule)| rule.monitor == series.schema.monitor && (has_ticks || rule.scale != OfCpus));
        let first = rules.clone().next().map_or(0, |(place, _)| place);
        // Devices stand together: what is told of each in one place.
        let rules = rules.map(|(place, rule)| (if rule.has_device() { first } else { place }, rule));
        for (place, rule) in rules {
            for one in meanwhile.iter().filter(|one| rule.is_about(one)) {
                let at_rest = rest.iter().find(|rest| (&rest.column, &rest.key) == (&one.column, &one.key));
                all.push((place, rule.activity(one, at_rest, cpus)));
            }
        }
    }
    all.retain(|(_, one)| one.during != 0.0 || one.at_rest.is_some_and(|rest| rest != 0.0));
    all.sort_by(|(a, first), (b, second)| (a, &first.what).cmp(&(b, &second.what)));
    all.into_iter().map(|(_, one)| one).collect()
}

/// The machine before the command and after it, where it was watched for long enough: the longer of the two.
fn summarise_rest(series: &Series, (start, end): TimeSpan) -> Vec<ColumnSummary> {
    let ends = series.at.first().copied().zip(series.at.last().copied());
    let Some((first, last)) = ends else { return Vec::new() };
    let (before, after) = (start.since(first), last.since(end));
    // The tick of the moment at which the command ended is its own.
    let span = if before >= after { (first, start) } else { (Nanos(end.0 + 1), Nanos(last.0 + 1)) };
    summarise_span(series, span)
}

impl ActivityRule {
    fn has_device(&self) -> bool {
        matches!(self.monitor, "diskstats" | "net-dev")
    }

    fn is_about(&self, summary: &ColumnSummary) -> bool {
        summary.column == self.column && (self.key.is_empty() || summary.key == self.key)
    }

    fn activity(
        &self,
        summary: &ColumnSummary,
        at_rest: Option<&ColumnSummary>,
        cpus: f64,
    ) -> MachineActivity {
        let scale = match self.scale {
            Same => 1.0,
            OfCpus => 1e-9 / cpus.max(1.0),
            OfTime => 1e-9,
        };
        let device = summary.key.split_once('=').map(|(_, device)| device);
        let what = match (self.monitor, device) {
            ("diskstats", Some(device)) => format!("disk {device}: {}", self.what),
            ("net-dev", Some(device)) => format!("network {device}: {}", self.what),
            _ => self.what.to_owned(),
        };
        MachineActivity {
            what,
            source: format!("{}.{}", self.monitor, self.column),
            unit: if self.scale == Same { summary.unit.clone() } else { Unit::default() },
            during: summary.value * scale,
            at_rest: at_rest.map(|rest| rest.value * scale),
        }
    }
}
