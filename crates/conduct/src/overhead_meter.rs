//! What perflab itself costs while a run goes on, and the monitors of its study.

use std::sync::mpsc::Sender;
use std::time::Duration;

use perflab_model::quantity::format_share;
use perflab_model::study::MonitorBudget;
use perflab_model::{Manifest, Nanos, Overhead, RunEvent, RunEventKind};
use perflab_observe::monitor_budget::{BudgetedMonitor, SlowedMonitor, fit_budget, monitor_share};
use perflab_observe::monitor_cost::{ReadingCost, measure_reading_costs};
use perflab_observe::{Root, Sampler, SamplerOverhead, monotonic_now, process_usage};

use crate::run_context::LocalMachine;

/// Counts what this process uses from when it was started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OverheadMeter {
    started: Nanos,
    cpu_before: Nanos,
}

impl OverheadMeter {
    /// Starts to count.
    pub(crate) fn start() -> Self {
        OverheadMeter { started: monotonic_now(), cpu_before: process_usage().cpu }
    }

    /// When it was started.
    pub(crate) fn started(&self) -> Nanos {
        self.started
    }

    /// What was used until now, the monitors' part of it known. Bytes are the recorder's to count.
    pub(crate) fn overhead(&self, monitors: &SamplerOverhead) -> Overhead {
        let usage = process_usage();
        Overhead {
            cpu: usage.cpu.since(self.cpu_before),
            monitors_cpu: monitors.cpu,
            wall: monotonic_now().since(self.started),
            peak_rss: usage.peak_rss,
            bytes_written: 0,
            ticks: monitors.ticks,
            late_ticks: monitors.late,
            lost_ticks: monitors.lost,
            guest_stops: None,
        }
    }
}

/// Starts the monitors of the run's study, as often as its budget allows; what has to give way is a warning.
pub(crate) fn start_monitors(manifest: &Manifest, machine: &LocalMachine, sink: Sender<RunEvent>) -> Sampler {
    let root = &machine.root;
    let monitors = &manifest.study.monitors;
    let timed = machine
        .watched_monitors(manifest)
        .filter_map(|(name, timing)| Some((name.clone(), timing.interval()?)));
    let mut intervals: Vec<(String, Nanos)> = timed.collect();
    if let Some(MonitorBudget(budget)) = monitors.budget {
        fit_intervals(&mut intervals, budget.0, root, &sink);
    }
    Sampler::start_switched(intervals, machine.monitored(), sink, machine.monitors.clone())
}

/// Readings of which the cost of a monitor is the median, and the time before each: as cold as a run's.
const COST_READINGS: (usize, Duration) = (5, Duration::from_millis(20));

/// Measures what the monitors cost here, and slows those that are least wanted where that is more than the budget.
fn fit_intervals(intervals: &mut Vec<(String, Nanos)>, budget: f64, root: &Root, sink: &Sender<RunEvent>) {
    let names: Vec<&str> = intervals.iter().map(|(name, _)| name.as_str()).collect();
    let costs = measure_reading_costs(&names, root, COST_READINGS, |_| 0);
    let budgeted = |((name, interval), cost): (&(String, Nanos), Result<ReadingCost, _>)| {
        // One that cannot be read costs nothing, and its gap says why.
        let cpu = cost.map_or(Nanos(0), |cost| cost.cpu);
        BudgetedMonitor { name: name.clone(), interval: *interval, cpu }
    };
    let budgeted: Vec<BudgetedMonitor> = intervals.iter().zip(costs).map(budgeted).collect();
    let slowed = fit_budget(&budgeted, budget);
    if slowed.is_empty() {
        return;
    }
    let told: Vec<String> = slowed.iter().map(describe_slowed).collect();
    let message = format!(
        "the monitors would take {} of a CPU here, more than their budget of {}: {}",
        format_share(monitor_share(&budgeted)),
        format_share(budget),
        told.join("; ")
    );
    let advice =
        "`perflab monitor cost` says what each costs; those that stand first in [monitors] are slowed last";
    let warning = RunEventKind::Warning { message, advice: advice.into() };
    // Whoever conducts notices by itself that the event consumer is gone.
    let _ = sink.send(RunEvent::new(monotonic_now(), warning));
    intervals.retain_mut(|(name, interval)| {
        let Some(one) = slowed.iter().find(|one| one.name == *name) else { return true };
        *interval = one.interval.unwrap_or(*interval);
        one.interval.is_some()
    });
}

fn describe_slowed(one: &SlowedMonitor) -> String {
    match one.interval {
        Some(interval) => format!("{} is read each {interval}, not each {}", one.name, one.wanted),
        None => format!("{} has no clock any more", one.name),
    }
}

/// Adds what another perflab of the run used; how long the run lasted, and how guests were stopped, is this one's to say.
pub(crate) fn add_overhead(sum: &mut Overhead, other: &Overhead) {
    sum.cpu.0 = sum.cpu.0.saturating_add(other.cpu.0);
    sum.monitors_cpu.0 = sum.monitors_cpu.0.saturating_add(other.monitors_cpu.0);
    sum.peak_rss = sum.peak_rss.max(other.peak_rss);
    sum.ticks = sum.ticks.saturating_add(other.ticks);
    sum.late_ticks = sum.late_ticks.saturating_add(other.late_ticks);
    sum.lost_ticks = sum.lost_ticks.saturating_add(other.lost_ticks);
}
