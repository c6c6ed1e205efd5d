//! What came of a row: times of both, in pairs, and their ratio with its interval.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use perflab_stats::{WalshAverages, median};

/// The commands' names in the samples.
const SIDES: [&str; 2] = ["perflab", "peer"];

/// A ratio perflab / peer with its 95 % interval, Hodges and Lehmann's of pairs: below 1, perflab takes less.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeerRatio {
    pub value: f64,
    pub interval: [f64; 2],
}

/// Seconds of both sides, pair by pair.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PeerTimes {
    pub perflab: Vec<f64>,
    pub peer: Vec<f64>,
}

/// Both kinds of time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PeerMeasurement {
    /// user and system time of the command and of all that it started
    pub processor: PeerTimes,
    pub clock: PeerTimes,
}

impl PeerMeasurement {
    /// Reads what `perflab export --to csv` prints of the run.
    pub fn parse(csv: &str) -> Result<Self> {
        let mut lines = csv.lines();
        let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let column = |name: &str| {
            head.iter().position(|cell| *cell == name).with_context(|| format!("no column {name}"))
        };
        let places = [column("factor.command")?, column("iteration")?, column("metric")?, column("value")?];
        let mut found: BTreeMap<(&str, u32, &str), f64> = BTreeMap::new();
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            let [side, iteration, metric, value] =
                places.map(|at| cells.get(at).copied().unwrap_or_default());
            let is_time = ["time", "user", "system"].contains(&metric);
            if let (Some(side), true) = (SIDES.iter().find(|name| **name == side), is_time) {
                let iteration = iteration.parse().with_context(|| format!("iteration `{iteration}`"))?;
                let value = value.parse().with_context(|| format!("{metric} `{value}`"))?;
                found.insert((side, iteration, metric), value);
            }
        }
        let mut times = PeerMeasurement::default();
        let iterations: Vec<u32> =
            found.keys().filter(|key| key.0 == "peer" && key.2 == "time").map(|key| key.1).collect();
        for iteration in iterations {
            let of = |side, metric| found.get(&(side, iteration, metric)).copied();
            let pair = |metric| Some([of("perflab", metric)?, of("peer", metric)?]);
            let (Some(clock), Some(user), Some(system)) = (pair("time"), pair("user"), pair("system")) else {
                continue;
            };
            times.clock.push(clock);
            times.processor.push([user[0] + system[0], user[1] + system[1]]);
        }
        Ok(times)
    }
}

impl PeerTimes {
    fn push(&mut self, [perflab, peer]: [f64; 2]) {
        self.perflab.push(perflab);
        self.peer.push(peer);
    }

    /// The ratio perflab / peer.
    pub fn ratio(&self) -> Result<PeerRatio> {
        let found = WalshAverages::relative(&self.peer, &self.perflab)?.estimate(0.95)?;
        let interval = found.interval.context("too few pairs for an interval")?;
        Ok(PeerRatio { value: found.value, interval: [interval.low, interval.high] })
    }

    /// `12.3 ms : 45.6 ms`, the medians of perflab and the peer.
    pub fn format_medians(&self) -> Result<String> {
        Ok(format!("{} : {}", format_seconds(median(&self.perflab)?), format_seconds(median(&self.peer)?)))
    }
}

impl PeerRatio {
    /// `0.432 [0.421, 0.440]`
    pub fn to_cell(self) -> String {
        let [low, high] = self.interval;
        format!("{} [{}, {}]", format_digits(self.value), format_digits(low), format_digits(high))
    }

    /// What `to_cell` wrote; none of a cell that is empty.
    pub fn parse_cell(cell: &str) -> Option<Self> {
        let (value, limits) = cell.trim().trim_matches('*').strip_suffix(']')?.split_once(" [")?;
        let (low, high) = limits.split_once(", ")?;
        Some(PeerRatio { value: value.parse().ok()?, interval: [low.parse().ok()?, high.parse().ok()?] })
    }

    /// Whether the peer takes less, by the whole interval.
    pub fn is_peer_ahead(self) -> bool {
        self.interval[0] > 1.0
    }
}

/// Three digits that count.
fn format_digits(value: f64) -> String {
    let decimals = (2.0 - value.abs().log10().floor()).clamp(0.0, 6.0);
    format!("{value:.0$}", if decimals.is_finite() { decimals as usize } else { 2 })
}

fn format_seconds(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{} ms", format_digits(1e3 * seconds))
    } else {
        format!("{} s", format_digits(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "run,label,factor.command,iteration,metric,value,unit";

    fn samples(pairs: u32) -> String {
        let mut text = HEAD.to_owned();
        for pair in 0..pairs {
            for (side, time) in [("peer", 0.2), ("perflab", 0.1)] {
                for (metric, share) in
                    [("time", 2.0), ("user", 0.75), ("system", 0.25), ("minor-faults", 9.0)]
                {
                    let value = time * share * (1.0 + 0.01 * f64::from(pair));
                    text += &format!("\n01,x,{side},{pair},{metric},{value},s");
                }
            }
        }
        text
    }

    #[test]
    fn both_times_are_read_pair_by_pair() {
        let found = PeerMeasurement::parse(&samples(10)).unwrap();
        assert_eq!((found.clock.perflab.len(), found.processor.peer.len()), (10, 10));
        assert!((found.processor.ratio().unwrap().value - 0.5).abs() < 1e-9);
        assert_eq!(found.clock.format_medians().unwrap(), "209 ms : 418 ms");
    }

    #[test]
    fn a_pair_that_lacks_a_side_or_a_time_is_left_out() {
        let text: String = samples(8)
            .lines()
            .filter(|line| !line.contains("perflab,3,time") && !line.contains("peer,5,user"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(PeerMeasurement::parse(&text).unwrap().clock.peer.len(), 6);
        assert!(PeerMeasurement::parse("run,label\n").is_err());
        assert!(PeerMeasurement::parse(&samples(3)).unwrap().clock.ratio().is_err());
    }

    #[test]
    fn a_ratio_is_read_from_its_cell() {
        for value in [0.004_32, 0.98, 12.3, 1234.0] {
            let ratio = PeerRatio { value, interval: [value, value] };
            assert_eq!(PeerRatio::parse_cell(&format!(" {} ", ratio.to_cell())), Some(ratio));
        }
        let ahead = PeerRatio { value: 1.2, interval: [1.1, 1.3] };
        assert_eq!(PeerRatio::parse_cell(&format!("**{}**", ahead.to_cell())), Some(ahead));
        assert!(ahead.is_peer_ahead());
        assert_eq!(PeerRatio::parse_cell("-"), None);
    }
}
