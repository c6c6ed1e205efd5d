//! `perflab compare --monitor NAME`: what a monitor recorded, in the place of a run's metrics.

use perflab_analyze::Side;
use perflab_analyze::monitor::{readings, summarise};
use perflab_archive::Archive;

use crate::exit::Usage;
use crate::sides;

/// One side, its runs holding one sample a column and iteration of the monitor.
pub fn side(archive: &Archive, name: &str, monitor: &str) -> anyhow::Result<Side> {
    let mut side = sides::side(archive, name)?;
    for (record, directory) in side.runs.iter_mut().zip(archive.find(name)?) {
        let found = summarise(record, &directory.series(monitor)?);
        if found.left_out > 0 {
            let run = directory.short();
            eprintln!(
                "warning: run {run}: {} iterations are left out: {monitor} was not read in them, or not for half of their time, or \
                 nobody knows when they were",
                found.left_out
            );
        }
        *record = found.record;
    }
    Ok(side)
}

/// One side, its runs holding every reading of the monitor while a benchmark ran.
pub fn readings_of(archive: &Archive, name: &str, monitor: &str) -> anyhow::Result<Side> {
    let mut side = sides::side(archive, name)?;
    for (record, directory) in side.runs.iter_mut().zip(archive.find(name)?) {
        *record = readings(record, &directory.series(monitor)?);
        if record.samples.is_empty() {
            let message = format!("run {}: {monitor} was not read while a benchmark ran", directory.short());
            return Err(Usage::new(
                message,
                "or nobody knows when they ran: see the warnings of `perflab show`",
            )
            .into());
        }
    }
    Ok(side)
}
