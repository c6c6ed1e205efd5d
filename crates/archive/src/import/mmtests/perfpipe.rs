//! `perf bench sched pipe`: `benchlog-_-_-ITERATION` (current) or `pipe-ITERATION.log` (2020).

use perflab_model::Direction;

use super::bench::{BenchmarkLogReader, DeclaredMetric, outcome_of, parse_finite_number};
use super::folder::PackedFolder;
use crate::ArchiveError;

const OPERATION: DeclaredMetric = ("usecs-op", "us", Direction::Lower);

pub(super) fn read_perfpipe(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ArchiveError> {
    for log in folder.numbered_logs("benchlog").iter().chain(&folder.numbered_logs("pipe")) {
        let case = bench.case_at(&[]);
        let operation = bench.primary_metric(case, OPERATION);
        let took = bench.read_lines(log.path, |bench, line| {
            let value = line.text.trim_ascii().strip_suffix("usecs/op")?;
            Some(outcome_of(parse_finite_number(value.trim_ascii()), |value| {
                let execution = bench.next_execution(case);
                bench.add_sample(execution, operation, value);
            }))
        })?;
        bench.keep_report(took);
    }
    Ok(())
}
