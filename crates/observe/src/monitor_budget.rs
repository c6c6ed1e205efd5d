//! How often monitors are read so that all of them together stay within a share of one CPU.
//!
//! The last of them is the least wanted: from there on each is slowed, by ten at most, until all fit. If that is not enough, their
//! clocks are stopped in the same order; what counts is still read when iterations begin and end.

use perflab_model::Nanos;

/// A monitor, how often it is to be read, and what a reading costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetedMonitor {
    /// Its name.
    pub name: String,
    /// The time between readings.
    pub interval: Nanos,
    /// CPU time of a reading.
    pub cpu: Nanos,
}

impl BudgetedMonitor {
    /// The share of one CPU that it takes.
    fn share(&self) -> f64 {
        self.cpu.0 as f64 / self.interval.0.max(1) as f64
    }
}

/// What became of a monitor that had to give way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowedMonitor {
    /// Its name.
    pub name: String,
    /// The time between readings that was asked for.
    pub wanted: Nanos,
    /// The time between readings; none where it has no clock any more.
    pub interval: Option<Nanos>,
}

/// The share of one CPU that monitors take.
pub fn monitor_share(monitors: &[BudgetedMonitor]) -> f64 {
    monitors.iter().map(BudgetedMonitor::share).sum()
}

/// Slowed by more than this, a monitor is worth little.
const SLOWEST: u64 = 10;

/// Which monitors have to give way so that all take at most `budget` of one CPU, those that are most wanted first.
pub fn fit_budget(monitors: &[BudgetedMonitor], budget: f64) -> Vec<SlowedMonitor> {
    let mut fitted: Vec<(BudgetedMonitor, bool)> = monitors.iter().map(|one| (one.clone(), true)).collect();
    let total = |fitted: &[(BudgetedMonitor, bool)]| -> f64 {
        fitted.iter().filter(|(_, is_read)| *is_read).map(|(one, _)| one.share()).sum()
    };
    for index in (0..fitted.len()).rev() {
        let excess = total(&fitted) - budget;
        let Some((one, _)) = fitted.get_mut(index).filter(|_| excess > 0.0) else { break };
        let left = (one.share() - excess).max(0.0);
        let factor = if left > 0.0 { (one.share() / left).ceil() } else { SLOWEST as f64 };
        one.interval = Nanos(one.interval.0.saturating_mul((factor as u64).clamp(1, SLOWEST)));
    }
    for index in (0..fitted.len()).rev() {
        if total(&fitted) <= budget {
            break;
        }
        fitted.iter_mut().skip(index).take(1).for_each(|(_, is_read)| *is_read = false);
    }
    let slowed = |(wanted, (got, is_read)): (&BudgetedMonitor, (BudgetedMonitor, bool))| {
        let is_as_wanted = is_read && got.interval == wanted.interval;
        let interval = is_read.then_some(got.interval);
        (!is_as_wanted).then_some(SlowedMonitor { name: got.name, wanted: wanted.interval, interval })
    };
    monitors.iter().zip(fitted).filter_map(slowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Monitors that are read each 100 ms, with the CPU time of a reading in microseconds: 100 us are 0.1 % of a CPU.
    fn monitors(costs: &[(&str, u64)]) -> Vec<BudgetedMonitor> {
        let one = |(name, cost): &(&str, u64)| BudgetedMonitor {
            name: (*name).into(),
            interval: Nanos(100 * MS),
            cpu: Nanos(cost * 1000),
        };
        costs.iter().map(one).collect()
    }

    fn fitted(costs: &[(&str, u64)], budget: f64) -> Vec<(String, Option<u64>)> {
        let slowed = fit_budget(&monitors(costs), budget);
        slowed.into_iter().map(|one| (one.name, one.interval.map(|interval| interval.0 / MS))).collect()
    }

    #[test]
    fn what_fits_stays_as_it_was_asked_for() {
        assert_eq!(fitted(&[("a", 500), ("b", 500)], 0.0101), []);
        assert!((monitor_share(&monitors(&[("a", 500), ("b", 500)])) - 0.01).abs() < 1e-12);
    }

    #[test]
    fn the_last_is_slowed_first_and_only_as_far_as_needed() {
        // 0.5 % and 1 %: the last may take 0.5 %, so that it is read half as often.
        assert_eq!(fitted(&[("a", 500), ("b", 1000)], 0.0101), [("b".into(), Some(200))]);
        // 1 % and 0.2 %, of which 0.5 % fit: the last goes to a tenth, and the first to where it fits.
        assert_eq!(
            fitted(&[("a", 1000), ("b", 200)], 0.005),
            [("a".into(), Some(300)), ("b".into(), Some(1000))]
        );
    }

    #[test]
    fn clocks_stop_where_slowing_is_not_enough() {
        assert_eq!(
            fitted(&[("a", 100), ("b", 50_000)], 0.002),
            [("a".into(), Some(1000)), ("b".into(), None)]
        );
        assert_eq!(fitted(&[("a", 90_000)], 0.001), [("a".into(), None)]);
    }
}
