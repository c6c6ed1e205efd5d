//! hackbench, and perf's version of it: `hackbench-GROUPS` with every execution in it (current), or
//! `hackbench-GROUPS-ITERATION` with one (2020).

use perflab_model::Direction;

use super::bench::{Bench, Declared, used, whole_number};
use super::folder::Folder;
use crate::ArchiveError;

const TIME: Declared = ("time", "s", Direction::Lower);

pub(super) fn read(folder: &Folder, bench: &mut Bench<'_>) -> Result<(), ArchiveError> {
    for log in folder.logs("hackbench") {
        let Some(groups) = log.number(0) else { continue };
        let case = bench.case(&[("groups", groups)]);
        let time = bench.metric(case, TIME);
        let mut begun = 0;
        let mut took = bench.read(log.path, |bench, line| {
            begun += u64::from(line.text.starts_with("# Running") || line.text.starts_with("Running in"));
            // Hundreds of thousands of lines: those that hold no time are told by their first letter.
            let text = line.text.trim_ascii_start();
            let rest = text.strip_prefix("Total time:").or_else(|| text.strip_prefix("Time:"))?;
            let value = whole_number(line, rest);
            Some(used(value, |value| {
                let execution = bench.execution(case);
                bench.sample(execution, time, value);
            }))
        })?;
        if begun > took.rows_read {
            took.note(format!("{} executions began in it and have no result", begun - took.rows_read));
        }
        bench.keep(took);
    }
    Ok(())
}
