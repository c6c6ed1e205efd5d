//! netperf: `PROTOCOL-SIZE.N`, one execution each; its unit is the one that its own head names.

use std::path::Path;

use perflab_model::Direction;

use super::super::lines::LogLine;
use super::super::took::LineOutcome;
use super::bench::{BenchmarkLogReader, parse_finite_number};
use super::folder::PackedFolder;
use crate::ArchiveError;

/// What the head calls a unit, and what perflab does.
const UNITS: &[(&str, &str)] = &[
    ("10^6bits/s", "Mbit/s"),
    ("10^3bits/s", "kbit/s"),
    ("10^9bits/s", "Gbit/s"),
    ("10^0bits/s", "bit/s"),
    ("KBytes/s", "KiB/s"),
    ("MBytes/s", "MiB/s"),
    ("GBytes/s", "GiB/s"),
    ("Trans/s", "trans/s"),
    ("per sec", "trans/s"),
];
/// Fields of a line of results at least.
const FIELDS: usize = 5;
const SENT: usize = 6;
const RECEIVED: usize = 4;
/// Beyond this share of what was sent, loss is a result of its own.
const LOSS: f64 = 0.1;

/// What one execution says.
#[derive(Debug, Default)]
struct NetperfOutput {
    unit: Option<&'static str>,
    sent: Option<f64>,
    received: Option<f64>,
}

pub(super) fn read_netperf(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ArchiveError> {
    let mut units: Vec<&str> = Vec::new();
    for (protocol, size, path) in folder.iter().filter_map(|(name, path)| split_netperf_name(name, path)) {
        let said = read_netperf_file(protocol, size, path, bench)?;
        units.extend(said);
        units.dedup();
    }
    if let (Some(took), 2..) = (bench.took.last_mut(), units.len()) {
        took.add_note(format!("units differ between the logs of this benchmark: {}", units.join(", ")));
    }
    Ok(())
}

/// `TCP_STREAM-64.1`
fn split_netperf_name<'a>(name: &'a str, path: &'a Path) -> Option<(&'a str, &'a str, &'a Path)> {
    let (rest, sample) = name.rsplit_once('.')?;
    let (protocol, size) = rest.rsplit_once('-')?;
    let upper = !protocol.is_empty() && protocol.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let numbers = sample.parse::<u32>().is_ok() && size.parse::<u64>().is_ok();
    (upper && numbers).then_some((protocol, size, path))
}

fn read_netperf_file(
    protocol: &str,
    size: &str,
    path: &Path,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<Option<&'static str>, ArchiveError> {
    let udp = protocol == "UDP_STREAM";
    let mut said = NetperfOutput::default();
    let mut took = bench.read_lines(path, |_, line| said.take_line(line, udp))?;
    let usual = if protocol.ends_with("_RR") { "trans/s" } else { "Mbit/s" };
    if said.unit.is_none() && said.sent.is_some() {
        took.add_note(format!("no head names a unit: taken as {usual}"));
    }
    said.add_samples(&protocol.to_lowercase().replace('_', ""), size, said.unit.unwrap_or(usual), bench);
    bench.keep_report(took);
    Ok(said.sent.and(said.unit))
}

impl NetperfOutput {
    fn take_line(&mut self, line: LogLine<'_>, udp: bool) -> Option<LineOutcome> {
        let unit = UNITS.iter().find(|(theirs, _)| line.text.contains(theirs));
        self.unit = self.unit.or(unit.map(|(_, ours)| *ours));
        let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
        if words.is_empty() || line.text.contains(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let place = match (udp, words.len()) {
            (false, FIELDS..) | (true, SENT) => &mut self.sent,
            (true, RECEIVED) => &mut self.received,
            // The second line of a request/response test repeats the sizes of the other side.
            _ => return None,
        };
        if !line.whole {
            return Some(LineOutcome::Unusable(
                "the line is cut off, so that its last number may lack digits".into(),
            ));
        }
        match parse_finite_number(words.last().unwrap_or(&"")) {
            Ok(value) => {
                *place = Some(value);
                Some(LineOutcome::Used)
            }
            Err(reason) => Some(LineOutcome::Unusable(reason)),
        }
    }

    fn add_samples(&self, protocol: &str, size: &str, unit: &str, bench: &mut BenchmarkLogReader<'_>) {
        let Some(sent) = self.sent else { return };
        let case = bench.case_at(&[("size", size)]);
        let execution = bench.next_execution(case);
        let loss = self.received.map(|received| sent - received).filter(|loss| *loss > sent * LOSS);
        let told = [
            ("send", Some(sent), Direction::Higher),
            ("recv", self.received, Direction::Higher),
            ("loss", loss, Direction::Lower),
        ];
        for (which, value, direction) in told {
            let Some(value) = value else { continue };
            let metric = bench.metric_named(case, &format!("{protocol}-{which}"), unit, direction, true);
            bench.add_sample(execution, metric, value);
        }
    }
}
