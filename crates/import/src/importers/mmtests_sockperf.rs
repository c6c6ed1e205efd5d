//! sockperf: what a stream reached, and how long each message took there and back.
//!
//! `PROTOCOL-SIZE-max-N.stdout` of a throughput test ends with its bandwidth. `PROTOCOL-SIZE-RATE-N.log` of other tests has a line
//! per message with the times at which it was sent and answered; as in sockperf's own summary, half of that is the latency.

use std::path::Path;

use perflab_formats::finite_number::require_finite_number;
use perflab_formats::reading_parser::TextLine;
use perflab_model::Direction;

use crate::error::ImportError;
use crate::importers::mmtests_log_reader::{BenchmarkLogReader, DeclaredMetric, number_after, outcome_of};
use crate::packed_folder::PackedFolder;

const BANDWIDTH: DeclaredMetric = ("tput", "Mbit/s", Direction::Higher);

const LATENCY: DeclaredMetric = ("rtt", "us", Direction::Lower);

/// The rate of a test that sends as fast as it can.
const UNLIMITED: &str = "max";

const MICROSECONDS: f64 = 1e6;

pub(crate) fn read_sockperf(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    for (name, path) in folder.iter() {
        let Some((stem, ending)) = name.rsplit_once('.') else { continue };
        let Some((size, rate)) = split_sockperf_name(stem) else { continue };
        match (ending, rate == UNLIMITED) {
            ("stdout", true) => read_bandwidth(path, (size, rate), bench)?,
            ("log", false) => read_message_times(path, (size, rate), bench)?,
            _ => {}
        }
    }
    Ok(())
}

/// `tcp-64-100-1`: size and rate.
fn split_sockperf_name(stem: &str) -> Option<(&str, &str)> {
    let mut keys = stem.rsplitn(4, '-');
    let (number, rate, size) = (keys.next()?, keys.next()?, keys.next()?);
    let is_whole = |key: &str| key.parse::<u32>().is_ok();
    (is_whole(number) && is_whole(size) && (rate == UNLIMITED || is_whole(rate)) && keys.next().is_some())
        .then_some((size, rate))
}

fn read_bandwidth(
    path: &Path,
    (size, rate): (&str, &str),
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    let report = bench.read_lines(path, |bench, line| {
        let value = line.text.contains("BandWidth is").then(|| number_after(line, " MBps ("))??;
        Some(outcome_of(value, |value| {
            let case = bench.case_at(&[("size", size), ("rate", rate)]);
            let execution = bench.next_execution(case);
            let metric = bench.primary_metric(case, BANDWIDTH);
            bench.add_sample(execution, metric, value);
        }))
    })?;
    bench.keep_report(report);
    Ok(())
}

fn read_message_times(
    path: &Path,
    (size, rate): (&str, &str),
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    let mut latencies = Vec::new();
    let report = bench.read_lines(path, |_, line| {
        let read = parse_message_times(line)?;
        Some(outcome_of(read, |latency| latencies.push(latency)))
    })?;
    if !latencies.is_empty() {
        let case = bench.case_at(&[("size", size), ("rate", rate)]);
        let execution = bench.next_execution(case);
        let metric = bench.primary_metric(case, LATENCY);
        latencies.into_iter().for_each(|latency| bench.add_sample(execution, metric, latency));
    }
    bench.keep_report(report);
    Ok(())
}

/// `12, 1700.000100, 1700.000180, 40.0`: packet, sent and answered in seconds; newer versions add the latency, rounded.
fn parse_message_times(line: TextLine<'_>) -> Option<Result<f64, String>> {
    let fields: Vec<&str> = line.text.split(',').map(str::trim).collect();
    let [packet, sent, answered, ..] = fields[..] else { return None };
    packet.parse::<u64>().ok()?;
    if !line.whole {
        return Some(Err(format!("the line is cut off, so that `{answered}` may lack digits")));
    }
    let latency = require_finite_number(sent)
        .and_then(|sent| Ok((require_finite_number(answered)? - sent) * MICROSECONDS / 2.0));
    Some(latency)
}
