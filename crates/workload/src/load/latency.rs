//! Latencies of one task, and of many merged: a histogram (HdrHistogram, three significant digits, a nanosecond to an hour).

use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::json;

use crate::load::args::LoadError;

/// The longest that is told apart; what took longer counts as this.
const LONGEST: Duration = Duration::from_secs(3600);
const DIGITS: u8 = 3;
/// Bytes of a recorded value and its count, as [`LatencyHistogram::to_bytes`] writes them.
const PAIR: usize = 16;

/// Latencies by how often they occurred.
#[derive(Debug)]
pub(crate) struct LatencyHistogram(Histogram<u64>);

impl LatencyHistogram {
    pub(crate) fn new() -> Result<Self, LoadError> {
        let histogram = Histogram::new_with_bounds(1, LONGEST.as_nanos() as u64, DIGITS);
        let histogram = histogram.map_err(std::io::Error::other);
        histogram.map(LatencyHistogram).map_err(LoadError::system_error("make a histogram"))
    }

    #[inline]
    pub(crate) fn record(&mut self, latency: Duration) {
        self.record_nanos(latency.as_nanos() as u64, 1);
    }

    #[inline]
    fn record_nanos(&mut self, nanos: u64, count: u64) {
        self.0.saturating_record_n(nanos.max(1), count);
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// In nanoseconds, for who writes it down.
    pub(crate) fn inner(&self) -> &Histogram<u64> {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what another has recorded.
    pub(crate) fn merge(&mut self, other: &LatencyHistogram) {
        for step in other.0.iter_recorded() {
            self.record_nanos(step.value_iterated_to(), step.count_at_value());
        }
    }

    /// What was recorded, for another process: pairs of a value in nanoseconds and its count.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let pairs = self.0.iter_recorded().flat_map(|step| [step.value_iterated_to(), step.count_at_value()]);
        pairs.flat_map(u64::to_ne_bytes).collect()
    }

    /// Adds what [`LatencyHistogram::to_bytes`] wrote.
    pub(crate) fn merge_bytes(&mut self, bytes: &[u8]) {
        let (pairs, _) = bytes.as_chunks::<PAIR>();
        for pair in pairs {
            let (value, count) = pair.split_at(PAIR / 2);
            let number = |half: &[u8]| half.try_into().map(u64::from_ne_bytes).unwrap_or_default();
            self.record_nanos(number(value), number(count));
        }
    }

    /// Percentiles in microseconds; null where nothing was recorded.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        if self.is_empty() {
            return serde_json::Value::Null;
        }
        let at = |quantile: f64| self.0.value_at_quantile(quantile) as f64 / 1e3;
        json!({
            "count": self.0.len(),
            "p50_us": at(0.5),
            "p90_us": at(0.9),
            "p95_us": at(0.95),
            "p99_us": at(0.99),
            "p999_us": at(0.999),
            "max_us": self.0.max() as f64 / 1e3,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_all_that_were_merged() {
        let [mut one, mut other, mut all] = [(); 3].map(|()| LatencyHistogram::new().unwrap());
        assert!(all.to_json().is_null());
        for micros in 1..=1000_u64 {
            let part = if micros % 2 == 0 { &mut one } else { &mut other };
            part.record(Duration::from_micros(micros));
        }
        all.merge(&one);
        all.merge_bytes(&other.to_bytes());
        let json = all.to_json();
        assert_eq!(json["count"], 1000);
        for (key, expected) in [("p50_us", 500.0), ("p90_us", 900.0), ("p99_us", 990.0), ("max_us", 1000.0)] {
            let found = json[key].as_f64().unwrap();
            // Three digits are kept.
            assert!((found / expected - 1.0).abs() < 2e-3, "{key}: {found}");
        }
    }

    #[test]
    fn what_is_too_long_counts_as_the_longest() {
        let mut histogram = LatencyHistogram::new().unwrap();
        histogram.record(LONGEST * 2);
        histogram.record(Duration::ZERO);
        let longest = histogram.to_json()["max_us"].as_f64().unwrap();
        assert!((longest / LONGEST.as_secs_f64() / 1e6 - 1.0).abs() < 1e-2, "{longest}");
    }
}
