//! hackbench, and perf's version of it: `hackbench-GROUPS` with every execution in it (current), or
//! `hackbench-GROUPS-ITERATION` with one (2020).

use perflab_model::Direction;

use super::bench::{BenchmarkLogReader, DeclaredMetric, outcome_of, parse_whole_number};
use super::folder::PackedFolder;
use crate::ArchiveError;

const TIME: DeclaredMetric = ("time", "s", Direction::Lower);

pub(super) fn read_hackbench(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ArchiveError> {
    for log in folder.numbered_logs("hackbench") {
        let Some(groups) = log.number_at(0) else { continue };
        let case = bench.case_at(&[("groups", groups)]);
        let time = bench.primary_metric(case, TIME);
        let mut begun = 0;
        let mut took = bench.read_lines(log.path, |bench, line| {
            begun += u64::from(line.text.starts_with("# Running") || line.text.starts_with("Running in"));
            // Hundreds of thousands of lines: those that hold no time are told by their first letter.
            let text = line.text.trim_ascii_start();
            let rest = text.strip_prefix("Total time:").or_else(|| text.strip_prefix("Time:"))?;
            let value = parse_whole_number(line, rest);
            Some(outcome_of(value, |value| {
                let execution = bench.next_execution(case);
                bench.add_sample(execution, time, value);
            }))
        })?;
        if begun > took.rows_read {
            took.add_note(format!("{} executions began in it and have no result", begun - took.rows_read));
        }
        bench.keep_report(took);
    }
    Ok(())
}
