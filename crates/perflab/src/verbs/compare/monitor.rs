//! `perflab compare --monitor NAME`: what a monitor recorded, in the place of a run's metrics.

use perflab_analyze::Side;
use perflab_analyze::monitor::summarise;
use perflab_archive::Archive;

use crate::sides;

/// One side, its runs holding one sample a column and iteration of the monitor.
pub fn side(archive: &Archive, name: &str, monitor: &str) -> anyhow::Result<Side> {
    let mut side = sides::side(archive, name)?;
    for (record, directory) in side.runs.iter_mut().zip(archive.find(name)?) {
        let found = summarise(record, &directory.series(monitor)?);
        if found.left_out > 0 {
            let run = directory.short();
            eprintln!(
                "warning: run {run}: {} iterations were too short for {monitor} to be read in them, and are left out",
                found.left_out
            );
        }
        *record = found.record;
    }
    Ok(side)
}
