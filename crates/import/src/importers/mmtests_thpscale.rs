//! thpscale: how long faults of base and of huge pages took, how many got a huge page, and whether memory was local.
//!
//! `threads-N.log` has a line per fault: `fault THREAD base|huge MICROSECONDS TIME LOCAL`. Where no fault was huge, MMTests prints
//! a latency of 0; here there is none.

use perflab_formats::finite_number::require_finite_number;
use perflab_formats::reading_parser::{LineOutcome, TextLine};
use perflab_model::Direction;

use crate::error::ImportError;
use crate::importers::mmtests_log_reader::{BenchmarkLogReader, DeclaredMetric};
use crate::packed_folder::PackedFolder;

const KINDS: [&str; 2] = ["base", "huge"];

const LATENCIES: [DeclaredMetric; 2] =
    [("fault-base", "us", Direction::Lower), ("fault-huge", "us", Direction::Lower)];

const BOTH: DeclaredMetric = ("fault-both", "us", Direction::Lower);

const HUGE: DeclaredMetric = ("huge", "%", Direction::Higher);

const LOCAL: [DeclaredMetric; 2] =
    [("local-base", "%", Direction::Higher), ("local-huge", "%", Direction::Higher)];

const REMOTE: [DeclaredMetric; 2] =
    [("remote-base", "%", Direction::Lower), ("remote-huge", "%", Direction::Lower)];

/// The faults of one log; of each kind, base pages first.
#[derive(Debug, Default)]
struct ThpFaults {
    /// kind and latency, as they came
    latencies: Vec<(usize, f64)>,
    counts: [u32; 2],
    local: [u32; 2],
    remote: [u32; 2],
}

pub(crate) fn read_thpscale(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    for log in folder.numbered_logs("threads") {
        let Some(threads) = log.number_at(0).filter(|_| log.keys.len() == 1) else { continue };
        let mut faults = ThpFaults::default();
        let report = bench.read_lines(log.path, |_, line| faults.take_line(line))?;
        faults.add_samples(threads, bench);
        bench.keep_report(report);
    }
    Ok(())
}

impl ThpFaults {
    fn take_line(&mut self, line: TextLine<'_>) -> Option<LineOutcome> {
        let mut words = line.text.strip_prefix("fault ")?.split_ascii_whitespace();
        let (_, kind, latency) = (words.next(), words.next(), words.next());
        let kind = kind.and_then(|kind| KINDS.iter().position(|known| *known == kind));
        let (Some(kind), Some(latency), true) = (kind, latency, line.whole) else {
            return Some(LineOutcome::Unusable("it is not `fault THREAD base|huge MICROSECONDS …`".into()));
        };
        let latency = match require_finite_number(latency) {
            Ok(latency) => latency,
            Err(reason) => return Some(LineOutcome::Unusable(reason)),
        };
        self.latencies.push((kind, latency));
        self.counts[kind] += 1;
        // Old logs end with the time.
        match words.nth(1) {
            Some("1") => self.local[kind] += 1,
            Some("0") => self.remote[kind] += 1,
            _ => {}
        }
        Some(LineOutcome::Used)
    }

    fn add_samples(&self, threads: &str, bench: &mut BenchmarkLogReader<'_>) {
        let all: u32 = self.counts.iter().sum();
        if all == 0 {
            return;
        }
        let case = bench.case_at(&[("threads", threads)]);
        let execution = bench.next_execution(case);
        for (kind, latency) in &self.latencies {
            let own = bench.primary_metric(case, LATENCIES[*kind]);
            bench.add_sample(execution, own, *latency);
            let both = bench.secondary_metric(case, BOTH);
            bench.add_sample(execution, both, *latency);
        }
        let share = |count: u32, of: u32| f64::from(count) * 100.0 / f64::from(of);
        let huge = bench.primary_metric(case, HUGE);
        bench.add_sample(execution, huge, share(self.counts[1], all));
        for kind in 0..KINDS.len() {
            if self.local[kind] + self.remote[kind] == 0 {
                continue;
            }
            for (declared, count) in [(LOCAL[kind], self.local[kind]), (REMOTE[kind], self.remote[kind])] {
                let metric = bench.secondary_metric(case, declared);
                bench.add_sample(execution, metric, share(count, self.counts[kind]));
            }
        }
    }
}
