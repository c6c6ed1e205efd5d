//! STREAM: `benchlog-THREADS-_-ITERATION` (current) or `stream-ITERATION.log` (2020); the four best rates of each.

use perflab_model::Direction;

use super::bench::{BenchmarkLogReader, outcome_of, parse_whole_number};
use super::folder::{NumberedLog, PackedFolder};
use crate::ArchiveError;

const KERNELS: [&str; 4] = ["Copy", "Scale", "Add", "Triad"];

pub(super) fn read_stream(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ArchiveError> {
    for log in folder.numbered_logs("benchlog") {
        if let Some(threads) = log.number_at(0) {
            read_stream_log(&log, Some(threads), bench)?;
        }
    }
    for log in folder.numbered_logs("stream").iter().filter(|log| log.number_at(0).is_some()) {
        read_stream_log(log, None, bench)?;
    }
    Ok(())
}

fn read_stream_log(
    log: &NumberedLog<'_>,
    threads: Option<&str>,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ArchiveError> {
    let mut found: Vec<(&'static str, f64)> = Vec::new();
    let mut counted = None;
    let mut unit = "MB/s";
    let took = bench.read_lines(log.path, |_, line| {
        if let Some((_, count)) = line.text.split_once("Number of Threads counted =") {
            counted = count.trim().parse::<u32>().ok();
        }
        unit = if line.text.contains("Rate") && line.text.contains("GB/s") { "GB/s" } else { unit };
        let (name, rest) = line.text.split_once(':')?;
        let kernel = KERNELS.into_iter().find(|kernel| *kernel == name)?;
        Some(outcome_of(parse_whole_number(line, rest), |value| found.push((kernel, value))))
    })?;
    let counted = counted.map(|count| count.to_string());
    let threads = threads.or(counted.as_deref());
    let case = bench.case_at(&threads.map(|threads| ("threads", threads)).into_iter().collect::<Vec<_>>());
    if !found.is_empty() {
        let execution = bench.next_execution(case);
        for (kernel, value) in found {
            let metric = bench.metric_named(case, kernel, unit, Direction::Higher, true);
            bench.add_sample(execution, metric, value);
        }
    }
    bench.keep_report(took);
    Ok(())
}
