//! schbench: percentiles of wake-up latency, request latency and request rate, printed for each interval.
//!
//! `schbench-THREADS.log`. An interval is a value of each percentile once its end, `current rps`, was printed: what follows the
//! last one sums up a shorter interval, and MMTests leaves it out too. Logs of 2020 have no intervals and end with what counts.

use perflab_formats::reading_parser::{LineOutcome, TextLine};
use perflab_model::Direction;

use crate::error::ImportError;
use crate::importers::mmtests_log_reader::{BenchmarkLogReader, number_after, outcome_of};
use crate::packed_folder::PackedFolder;

/// The percentiles that MMTests' ratios are over, by section.
const DECIDING: [&str; 4] = ["Wakeup-99.0th", "Request-99.0th", "Latency-99.0th", "RPS-50.0th"];

/// What a log says, interval by interval.
#[derive(Debug, Default)]
struct SchbenchIntervals {
    /// The first word above the percentiles: Wakeup, Request, RPS; Latency in 2020.
    section: Option<String>,
    unfinished: Vec<(String, f64)>,
    finished: Vec<(String, f64)>,
    has_intervals: bool,
}

pub(crate) fn read_schbench(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    for log in folder.numbered_logs("schbench") {
        let Some(threads) = log.number_at(0).filter(|_| log.keys.len() == 1) else { continue };
        let mut intervals = SchbenchIntervals::default();
        let mut report = bench.read_lines(log.path, |_, line| intervals.take_line(line))?;
        let left_out = intervals.unfinished.len();
        if intervals.has_intervals && left_out > 0 {
            report.add_note(format!(
                "{left_out} values of the last, shorter interval are left out, as in MMTests"
            ));
        }
        intervals.add_samples(threads, bench);
        bench.keep_report(report);
    }
    Ok(())
}

impl SchbenchIntervals {
    fn take_line(&mut self, line: TextLine<'_>) -> Option<LineOutcome> {
        if line.text.contains(" percentiles (") {
            self.section = line.text.split_ascii_whitespace().next().map(str::to_owned);
            return None;
        }
        if line.text.starts_with("current rps") {
            self.has_intervals = true;
            self.finished.append(&mut self.unfinished);
            return None;
        }
        let (percent, _) = line.text.split_once("th:")?;
        let percent: f64 = percent.trim_start_matches(['\t', ' ', '*']).parse().ok()?;
        let section = self.section.as_ref()?;
        let value = number_after(line, "th:")?;
        let name = format!("{section}-{percent:.1}th");
        Some(outcome_of(value, |value| self.unfinished.push((name, value))))
    }

    fn add_samples(self, threads: &str, bench: &mut BenchmarkLogReader<'_>) {
        let values = if self.has_intervals { self.finished } else { self.unfinished };
        if values.is_empty() {
            return;
        }
        let case = bench.case_at(&[("threads", threads)]);
        let execution = bench.next_execution(case);
        for (name, value) in values {
            let (unit, direction) = match name.starts_with("RPS-") {
                true => ("requests/s", Direction::Higher),
                false => ("us", Direction::Lower),
            };
            let primary = DECIDING.contains(&name.as_str());
            let metric = bench.metric_named(case, &name, unit, direction, primary);
            bench.add_sample(execution, metric, value);
        }
    }
}
