//! STREAM: `benchlog-THREADS-_-ITERATION` (current) or `stream-ITERATION.log` (2020); the four best rates of each.

use perflab_model::Direction;

use super::bench::{Bench, used, whole_number};
use super::folder::{Folder, Log};
use crate::ArchiveError;

const KERNELS: [&str; 4] = ["Copy", "Scale", "Add", "Triad"];

pub(super) fn read(folder: &Folder, bench: &mut Bench<'_>) -> Result<(), ArchiveError> {
    for log in folder.logs("benchlog") {
        if let Some(threads) = log.number(0) {
            one(&log, Some(threads), bench)?;
        }
    }
    for log in folder.logs("stream").iter().filter(|log| log.number(0).is_some()) {
        one(log, None, bench)?;
    }
    Ok(())
}

fn one(log: &Log<'_>, threads: Option<&str>, bench: &mut Bench<'_>) -> Result<(), ArchiveError> {
    let mut found: Vec<(&'static str, f64)> = Vec::new();
    let mut counted = None;
    let mut unit = "MB/s";
    let took = bench.read(log.path, |_, line| {
        if let Some((_, count)) = line.text.split_once("Number of Threads counted =") {
            counted = count.trim().parse::<u32>().ok();
        }
        unit = if line.text.contains("Rate") && line.text.contains("GB/s") { "GB/s" } else { unit };
        let (name, rest) = line.text.split_once(':')?;
        let kernel = KERNELS.into_iter().find(|kernel| *kernel == name)?;
        Some(used(whole_number(line, rest), |value| found.push((kernel, value))))
    })?;
    let counted = counted.map(|count| count.to_string());
    let threads = threads.or(counted.as_deref());
    let case = bench.case(&threads.map(|threads| ("threads", threads)).into_iter().collect::<Vec<_>>());
    if !found.is_empty() {
        let execution = bench.execution(case);
        for (kernel, value) in found {
            let metric = bench.named(case, kernel, unit, Direction::Higher, true);
            bench.sample(execution, metric, value);
        }
    }
    bench.keep(took);
    Ok(())
}
