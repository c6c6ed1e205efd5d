//! How often something happens: Fisher's exact test of two sides, and what so many trials can miss.

use statrs::function::factorial::ln_binomial;

use crate::error::StatsError;

/// Probabilities this close to that of the observed table count as equal to it, as in R.
const ROUNDING: f64 = 1e-7;

/// How often something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventCount {
    /// How often it did.
    pub events: u64,
    /// How often it could have.
    pub trials: u64,
}

/// Result of Fisher's exact test of a candidate against a baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FisherTest {
    /// Two-sided p-value: the probability of all tables that are no likelier than the observed one.
    pub p: f64,
    /// Probability of at most as many events in the candidate.
    pub at_most: f64,
    /// Probability of at least as many events in the candidate.
    pub at_least: f64,
}

/// Fisher's exact test of whether events are as frequent on both sides, given how many there were in all. Source: Fisher,
/// Statistical Methods for Research Workers (1934), section 21.02; two-sided as R's `fisher.test`. Takes one step for each
/// number of events that is possible.
///
/// # Errors
/// More events than trials; a side without trials.
pub fn fisher_exact(baseline: EventCount, candidate: EventCount) -> Result<FisherTest, StatsError> {
    for side in [baseline, candidate] {
        if side.trials == 0 {
            return Err(StatsError::Empty);
        }
        if side.events > side.trials {
            let value = side.events as f64;
            return Err(StatsError::OutOfRange { name: "the number of events", value, range: "[0, trials]" });
        }
    }
    let all_events = baseline.events + candidate.events;
    let fewest = all_events.saturating_sub(baseline.trials);
    let most = all_events.min(candidate.trials);
    let ways = |events: u64| {
        ln_binomial(candidate.trials, events) + ln_binomial(baseline.trials, all_events - events)
    };
    let total = ln_binomial(baseline.trials + candidate.trials, all_events);
    let probability = |events: u64| (ways(events) - total).exp();
    let observed = probability(candidate.events);
    let (mut at_most, mut at_least, mut unlikelier) = (0.0, 0.0, 0.0);
    for events in fewest..=most {
        let probability = probability(events);
        at_most += if events <= candidate.events { probability } else { 0.0 };
        at_least += if events >= candidate.events { probability } else { 0.0 };
        unlikelier += if probability <= observed * (1.0 + ROUNDING) { probability } else { 0.0 };
    }
    Ok(FisherTest { p: unlikelier.min(1.0), at_most: at_most.min(1.0), at_least: at_least.min(1.0) })
}

/// The rarest share of trials of which at least one is among so many, with this confidence: 1 - (1 - confidence)^(1/n), about
/// 3/n at 95 % (the rule of three; Hanley and Lippman-Hand, JAMA 249, 1983).
#[must_use]
pub fn rarest_visible_share(trials: usize, confidence: f64) -> f64 {
    1.0 - (1.0 - confidence).powf(1.0 / trials.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_trials_show_is_three_in_their_number() {
        assert!((rarest_visible_share(30, 0.95) - 0.095).abs() < 5e-4);
        assert!((rarest_visible_share(300, 0.95) - 0.01).abs() < 1e-4);
    }

    fn test([baseline, candidate]: [(u64, u64); 2]) -> FisherTest {
        let count = |(events, trials)| EventCount { events, trials };
        fisher_exact(count(baseline), count(candidate)).unwrap()
    }

    /// R manual, `?fisher.test`: the tea-tasting lady, 3 of 4 and 1 of 4 guessed "milk": p (greater) = 0.2429; two-sided 0.4857.
    #[test]
    fn tea_tasting_of_fisher() {
        let found = test([(1, 4), (3, 4)]);
        assert!((found.at_least - 0.2429).abs() < 5e-5 && (found.p - 0.4857).abs() < 5e-5, "{found:?}");
    }

    /// R manual, `?fisher.test`: criminal convictions of like-sex twins (Fisher 1962): 2 of 17 dizygotic and 10 of 13
    /// monozygotic: p (less) = 0.0004652.
    #[test]
    fn convictions_of_twins() {
        let found = test([(10, 13), (2, 17)]);
        assert!((found.at_most - 0.000_465_2).abs() < 5e-8, "{found:?}");
        assert!((found.p - 0.000_536_7).abs() < 5e-7, "{found:?}");
    }

    #[test]
    fn exchanged_sides_exchange_the_tails_and_the_tails_overlap_in_what_was_observed() {
        for (a, b) in [((0, 30), (21, 30)), ((3, 7), (3, 7)), ((0, 5), (0, 9)), ((1000, 5000), (1100, 4900))]
        {
            let (one, other) = (test([a, b]), test([b, a]));
            assert!((one.p - other.p).abs() < 1e-9 && (one.at_least - other.at_most).abs() < 1e-9);
            assert!(one.at_least + one.at_most >= 1.0 && one.p <= 1.0);
        }
        assert!(test([(0, 30), (21, 30)]).p < 1e-8);
    }

    #[test]
    fn counts_that_cannot_be_are_refused() {
        let count = |events, trials| EventCount { events, trials };
        assert!(fisher_exact(count(0, 0), count(0, 1)).is_err());
        assert!(fisher_exact(count(2, 1), count(0, 1)).is_err());
    }
}
