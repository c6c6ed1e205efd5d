//! `perf bench sched pipe`: `benchlog-_-_-ITERATION` (current) or `pipe-ITERATION.log` (2020).

use perflab_model::Direction;

use super::bench::{Bench, Declared, number, used};
use super::folder::Folder;
use crate::ArchiveError;

const OPERATION: Declared = ("usecs-op", "us", Direction::Lower);

pub(super) fn read(folder: &Folder, bench: &mut Bench<'_>) -> Result<(), ArchiveError> {
    for log in folder.logs("benchlog").iter().chain(&folder.logs("pipe")) {
        let case = bench.case(&[]);
        let operation = bench.metric(case, OPERATION);
        let took = bench.read(log.path, |bench, line| {
            let value = line.text.trim_ascii().strip_suffix("usecs/op")?;
            Some(used(number(value.trim_ascii()), |value| {
                let execution = bench.execution(case);
                bench.sample(execution, operation, value);
            }))
        })?;
        bench.keep(took);
    }
    Ok(())
}
