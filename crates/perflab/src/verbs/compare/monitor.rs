//! `perflab compare --monitor NAME`: what a monitor recorded, in the place of a run's metrics.

use perflab_analyze::monitor_metric::{kernel_averages, monitor_readings, summarise_monitor};
use perflab_analyze::{Comparison, ComparisonSide};
use perflab_archive::{Archive, RunDir};

use crate::exit::UsageError;
use crate::sides;

/// One side, its runs holding one sample a column and iteration of the monitor.
pub fn monitor_side(archive: &Archive, name: &str, monitor: &str) -> anyhow::Result<ComparisonSide> {
    let mut side = sides::select_side(archive, name)?;
    let mut last = None;
    for (record, directory) in side.runs.iter_mut().zip(archive.find_runs(name)?) {
        let found = summarise_monitor(record, &directory.read_series(monitor)?);
        if found.left_out > 0 {
            let run = directory.short_id();
            stderr_line!(
                "warning: run {run}: {} iterations are left out: {monitor} was not read in them, or not for half of their time, or \
                 nobody knows when they were",
                found.left_out
            );
        }
        *record = found.record;
        last = Some(directory);
    }
    // A run among several may have nothing; a side may not.
    match last.filter(|_| side.runs.iter().all(|record| record.samples.is_empty())) {
        Some(run) => Err(monitor_missing_error(
            &run,
            monitor,
            "was not read in any iteration, or not for half of its time",
        )),
        None => Ok(side),
    }
}

/// Which of the kernel's own averages have no row, and why.
pub fn missing_averages_note(monitor: &str, comparison: &Comparison) -> Option<String> {
    let has_row =
        |column: &str| comparison.rows.iter().any(|row| row.metric.split(' ').next() == Some(column));
    let without: Vec<&str> =
        kernel_averages(monitor).map(|(column, _)| column).filter(|column| !has_row(column)).collect();
    (!without.is_empty()).then(|| {
        format!(
            "without {}: the kernel averages them over longer than an iteration lasts, so that iterations share their values",
            without.join(", ")
        )
    })
}

/// One side, its runs holding every reading of the monitor while a benchmark ran.
pub fn monitor_readings_side(archive: &Archive, name: &str, monitor: &str) -> anyhow::Result<ComparisonSide> {
    let mut side = sides::select_side(archive, name)?;
    for (record, directory) in side.runs.iter_mut().zip(archive.find_runs(name)?) {
        *record = monitor_readings(record, &directory.read_series(monitor)?);
        if record.samples.is_empty() {
            return Err(monitor_missing_error(
                &directory,
                monitor,
                "was not read while a benchmark ran, or nobody knows when it ran",
            ));
        }
    }
    Ok(side)
}

/// A run in which the monitor has nothing to compare, and what else the run has.
fn monitor_missing_error(directory: &RunDir, monitor: &str, why: &str) -> anyhow::Error {
    let hint = match directory.list_monitors() {
        Ok(known) => format!("read it more often in the study, or compare what it has: {}", known.join(", ")),
        Err(error) => return error.into(),
    };
    UsageError::new(format!("run {}: {monitor} {why}", directory.short_id()), hint).into()
}
