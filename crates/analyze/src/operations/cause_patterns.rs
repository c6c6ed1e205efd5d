//! What a cause's occurrences have in common: onset, modes of its time, period, and the cost of maintenance by what it
//! saved.
//!
//! The onset is the step in the cause's rate with the greatest likelihood ratio: occurrences as Bernoulli trials with
//! one rate before and another after (Page, Biometrika 1954; Hawkins, JASA 1977), tried at each occurrence, so that it
//! is exact to the operation; of several steps, the first. A state number explains it if it changed right before and
//! seldom does: the probability that one of its changes lies so near by chance is its rate of change times the
//! distance.

use perflab_model::operation::{OperationColumns, SparseColumn};
use serde::Serialize;

use crate::operations::causes::OperationCause;
use crate::operations::operation_times::OperationTimes;

/// Least log likelihood ratio: e^-20 is far below one in the number of operations of any trace.
const LEAST_EVIDENCE: f64 = 20.0;

/// Least growth of the rate that is called setting in.
const LEAST_GROWTH: f64 = 5.0;

/// Fewest occurrences.
const FEWEST_FOR_ONSET: usize = 10;

/// The chance above which a change of a number nearby is no explanation.
const LARGEST_CHANCE: f64 = 0.001;

/// Where a cause sets in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CauseOnset {
    /// the cause
    pub cause: String,
    /// the operation, counted from 0
    pub row: u32,
    /// occurrences per operation before
    pub rate_before: f64,
    /// occurrences per operation from there on, up to the next step if there is one
    pub rate_after: f64,
    /// numbers of the state there, as last reported
    pub state: Vec<(String, i64)>,
    /// what crossed which value there; the least chance first
    pub crossed: Option<StateCrossing>,
}

/// A number of the state that reached a value for the first time when the cause set in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateCrossing {
    /// the number
    pub number: String,
    /// the value before
    pub from: i64,
    /// the value reached
    pub to: i64,
    /// probability that a change of this number lies so near by chance
    pub chance: f64,
    /// fraction of the cause's occurrences from there on at which the number was beyond the value before
    pub holds: f64,
}

/// The onset of each cause that has one.
pub(crate) fn find_onsets(
    operations: &OperationColumns,
    times: &OperationTimes,
    causes: &[OperationCause],
) -> Vec<CauseOnset> {
    causes.iter().filter_map(|cause| find_onset(operations, times, cause)).collect()
}

fn find_onset(
    operations: &OperationColumns,
    times: &OperationTimes,
    cause: &OperationCause,
) -> Option<CauseOnset> {
    let places: Vec<u32> = cause.found.iter().map(|(at, _)| *at).collect();
    // The first of several steps is where it sets in: look again before the one that was found.
    let mut first = None;
    let mut end = times.len() as u32;
    while let Some(before) = first_rate_step(&places, end) {
        let at = places.get(before).copied()?;
        first = Some((before, at, end));
        end = at;
    }
    let (before, at, end) = first?;
    let row = times.rows.get(at as usize).copied()?;
    let since: Vec<u32> =
        places.get(before..)?.iter().filter_map(|at| times.rows.get(*at as usize).copied()).collect();
    let until = places.partition_point(|at| *at < end);
    Some(CauseOnset {
        cause: cause.name.clone(),
        row,
        rate_before: before as f64 / f64::from(at),
        rate_after: (until - before) as f64 / f64::from(end - at),
        state: crate::operations::outliers::state_at(operations, row),
        crossed: state_crossing(operations, row, &since),
    })
}

/// How many occurrences lie before the greatest step up of the rate among the first `end` operations.
fn first_rate_step(places: &[u32], end: u32) -> Option<usize> {
    let inside = places.partition_point(|at| *at < end);
    let (n, k) = (f64::from(end), inside as f64);
    if inside < FEWEST_FOR_ONSET {
        return None;
    }
    let log = |count: f64, trials: f64| {
        let part = |count: f64| if count > 0.0 { count * (count / trials).ln() } else { 0.0 };
        part(count) + part(trials - count)
    };
    let whole = log(k, n);
    let evidence = |(before, at): (usize, &u32)| {
        let (k1, n1) = (before as f64, f64::from(*at));
        let gain = if n1 > 0.0 { log(k1, n1) + log(k - k1, n - n1) - whole } else { 0.0 };
        let growth = (k - k1) / (n - n1) / (k1 / n1.max(1.0)).max(f64::MIN_POSITIVE);
        (if growth >= LEAST_GROWTH { gain } else { 0.0 }, before)
    };
    let best = places.get(..inside)?.iter().enumerate().map(evidence).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= LEAST_EVIDENCE).then_some(best.1)
}

/// The number whose last change before the onset is the least likely to be there by chance.
fn state_crossing(operations: &OperationColumns, row: u32, occurrences: &[u32]) -> Option<StateCrossing> {
    let found = operations.numbers.iter().filter_map(|number| {
        let (from, to, changed) = last_change(&number.values, row)?;
        let changes = number.values.iter().take_while(|(at, _)| *at <= row).count();
        let rate = changes as f64 / f64::from(row.max(1));
        let chance = rate * f64::from(row - changed + 1);
        // A value that it had before was not crossed now.
        let new = number
            .values
            .iter()
            .take_while(|(other, _)| *other < changed)
            .all(|(_, value)| (value < to) == (from < to));
        let beyond = |row: &&u32| {
            number
                .values
                .last_at_or_before(**row)
                .is_some_and(|value| (value > from) == (to > from) && value != from)
        };
        let holds = occurrences.iter().filter(beyond).count() as f64 / occurrences.len().max(1) as f64;
        let crossing = StateCrossing { number: number.name.clone(), from, to, chance, holds };
        (new && chance <= LARGEST_CHANCE).then_some(crossing)
    });
    found.min_by(|a, b| a.chance.total_cmp(&b.chance))
}

/// The last change of a number at or before a row: from, to, and where.
fn last_change(values: &SparseColumn, row: u32) -> Option<(i64, i64, u32)> {
    let mut last = None;
    let mut previous: Option<i64> = None;
    for (at, value) in values.iter().take_while(|(at, _)| *at <= row) {
        if let Some(from) = previous.filter(|from| *from != value) {
            last = Some((from, value, at));
        }
        previous = Some(value);
    }
    last
}

/// Bins of the histogram of log time: eight for each doubling.
const BINS_PER_DOUBLING: f64 = 8.0;

/// Least share of the occurrences in a mode, and how deep the valley beside it must be against the lower peak.
const LEAST_SHARE: f64 = 0.001;

const DEEPEST_VALLEY_RATIO: f64 = 0.6;

/// Fewest occurrences that are looked at.
const FEWEST_FOR_MODES: usize = 30;

/// Least share of intervals that are the same for a period.
const LEAST_PERIOD_SHARE: f64 = 0.5;

/// One mode of a cause's time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CauseMode {
    /// the cause
    pub cause: String,
    /// occurrences
    pub count: usize,
    /// median nanoseconds
    pub time: i64,
    /// fraction of the cause's occurrences
    pub share: f64,
}

/// A cause that comes at regular intervals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CausePeriod {
    /// the cause; with the time from which on, where one of its modes is meant
    pub cause: String,
    /// nanoseconds from which on occurrences count
    pub longer_than: i64,
    /// every so-manieth
    pub every: u32,
    /// of what: `operation`, or another cause
    pub of: String,
    /// fraction of the intervals that are just that
    pub share: f64,
}

/// What maintenance costs for what it saves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MaintenanceCost {
    /// the span
    pub cause: String,
    /// the number that tells what was saved
    pub number: String,
    /// operations that saved, or tried to
    pub operations: usize,
    /// of those, operations that saved nothing
    pub in_vain: usize,
    /// saved in all
    pub saved: i64,
    /// nanoseconds in all
    pub time: i64,
}

/// Modes of every cause that has two or more.
pub(crate) fn find_modes(causes: &[OperationCause]) -> Vec<CauseMode> {
    // The time of a page fault is an estimate: as many modes as there are numbers of faults.
    causes
        .iter()
        .filter(|cause| !cause.kernel)
        .map(modes_of_cause)
        .filter(|modes| modes.len() > 1)
        .flatten()
        .collect()
}

fn modes_of_cause(cause: &OperationCause) -> Vec<CauseMode> {
    let mut times: Vec<i64> = cause.found.iter().map(|(_, time)| *time).filter(|time| *time > 0).collect();
    if times.len() < FEWEST_FOR_MODES {
        return Vec::new();
    }
    times.sort_unstable();
    let bin = |time: i64| ((time as f64).log2() * BINS_PER_DOUBLING) as usize;
    let mut bins = vec![0.0; bin(times.last().copied().unwrap_or(1)) + 2];
    for time in &times {
        if let Some(count) = bins.get_mut(bin(*time)) {
            *count += 1.0;
        }
    }
    let cuts: Vec<i64> = find_valleys(&smooth_bins(&bins), times.len() as f64 * LEAST_SHARE)
        .into_iter()
        .map(|at| ((at as f64 + 0.5) / BINS_PER_DOUBLING).exp2() as i64)
        .collect();
    let mut modes = Vec::new();
    let mut from = 0;
    for cut in cuts.into_iter().chain([i64::MAX]) {
        let to = times.partition_point(|time| *time < cut);
        let part = times.get(from..to).unwrap_or_default();
        if let Some(time) = part.get(part.len() / 2) {
            let share = part.len() as f64 / times.len() as f64;
            modes.push(CauseMode { cause: cause.name.clone(), count: part.len(), time: *time, share });
        }
        from = to;
    }
    modes
}

/// A running mean over five bins, twice.
fn smooth_bins(bins: &[f64]) -> Vec<f64> {
    let once = |bins: &[f64]| -> Vec<f64> {
        let mean = |at: usize| {
            let near = bins.get(at.saturating_sub(2)..(at + 3).min(bins.len())).unwrap_or_default();
            near.iter().sum::<f64>() / near.len().max(1) as f64
        };
        (0..bins.len()).map(mean).collect()
    };
    once(&once(bins))
}

/// Bins at which one mode ends and the next begins: the lowest place between two peaks, where it is low enough.
fn find_valleys(bins: &[f64], least: f64) -> Vec<usize> {
    let mut found = Vec::new();
    let (mut peak, mut low, mut low_at) = (0.0_f64, f64::INFINITY, 0);
    for (at, count) in bins.iter().copied().enumerate() {
        if count < low {
            (low, low_at) = (count, at);
        }
        let is_mode = peak * 5.0 >= least && count * 5.0 >= least;
        if is_mode && low < DEEPEST_VALLEY_RATIO * peak.min(count) {
            // Still rising: the peak behind the valley is not reached yet, but it is high enough.
            found.push(low_at);
            (peak, low, low_at) = (count, count, at);
        } else if count > peak {
            (peak, low, low_at) = (count, count, at);
        }
    }
    found
}

/// Periods of every cause, and of its slowest mode where it has several.
pub(crate) fn find_periods(
    times: &OperationTimes,
    causes: &[OperationCause],
    modes: &[CauseMode],
) -> Vec<CausePeriod> {
    let mut found = Vec::new();
    for cause in causes {
        let slowest = modes.iter().filter(|mode| mode.cause == cause.name).map(|mode| mode.time).max();
        let limits = [Some(0), slowest.map(|time| time / 2)];
        let periods =
            limits.into_iter().flatten().filter_map(|limit| find_period(times, causes, cause, limit));
        found.extend(periods.max_by(|a, b| a.share.total_cmp(&b.share)));
    }
    found
}

fn find_period(
    times: &OperationTimes,
    causes: &[OperationCause],
    cause: &OperationCause,
    longer_than: i64,
) -> Option<CausePeriod> {
    let places: Vec<u32> =
        cause.found.iter().filter(|(_, time)| *time >= longer_than).map(|(at, _)| *at).collect();
    if places.len() < FEWEST_FOR_MODES || places.len() * 3 > times.len() * 2 {
        return None;
    }
    let of = |name: &str, intervals: Vec<u32>| {
        let (every, share) = commonest_interval(intervals)?;
        let (cause, of) = (cause.name.clone(), name.to_owned());
        (share >= LEAST_PERIOD_SHARE && every > 1).then_some(CausePeriod {
            cause,
            longer_than,
            every,
            of,
            share,
        })
    };
    let apart = places.windows(2).filter_map(|two| Some(two.get(1)? - two.first()?)).collect();
    let among = |other: &OperationCause| -> Vec<u32> {
        let rank = |at: &u32| other.found.partition_point(|(place, _)| place <= at) as u32;
        let ranks: Vec<u32> = places.iter().map(rank).collect();
        ranks.windows(2).filter_map(|two| Some(two.get(1)? - two.first()?)).collect()
    };
    let others = causes.iter().filter(|other| other.name != cause.name || longer_than > 0);
    let all =
        std::iter::once(of("operation", apart)).chain(others.map(|other| of(&other.name, among(other))));
    all.flatten().max_by(|a, b| a.share.total_cmp(&b.share))
}

/// The commonest interval, give or take one, and its share.
fn commonest_interval(intervals: Vec<u32>) -> Option<(u32, f64)> {
    let mut counts = std::collections::BTreeMap::new();
    intervals.iter().for_each(|interval| *counts.entry(*interval).or_insert(0_usize) += 1);
    let near = |interval: u32| -> usize {
        counts.range(interval.saturating_sub(1)..=interval + 1).map(|(_, n)| n).sum()
    };
    let every = counts.iter().max_by_key(|(_, count)| **count).map(|(interval, _)| *interval)?;
    // An interval of one or two is near to everything that is often.
    let same = if every > 10 { near(every) } else { counts.get(&every).copied().unwrap_or(0) };
    Some((every, same as f64 / intervals.len() as f64))
}

/// The price of what was saved: every number whose name ends in `saved`, with the span that occurs with it most.
pub(crate) fn maintenance_costs(
    operations: &OperationColumns,
    times: &OperationTimes,
    causes: &[OperationCause],
) -> Vec<MaintenanceCost> {
    let numbers = operations.numbers.iter().filter(|number| number.name.ends_with("saved"));
    let efficiency = |number: &perflab_model::operation::NumberColumn| {
        let reported: Vec<(u32, i64)> = number
            .values
            .iter()
            .filter_map(|(row, saved)| Some((times.index_of_row(row)? as u32, saved)))
            .collect();
        let together = |cause: &&OperationCause| {
            reported.iter().filter(|(at, _)| cause.time_at(*at as usize).is_some()).count()
        };
        // Of spans that occur with it equally often, the one that occurs least without it.
        let cause = causes
            .iter()
            .filter(|cause| !cause.kernel)
            .max_by_key(|cause| (together(cause), std::cmp::Reverse(cause.found.len())))
            .filter(|cause| together(cause) > 0)?;
        Some(MaintenanceCost {
            cause: cause.name.clone(),
            number: number.name.clone(),
            operations: reported.len(),
            in_vain: reported.iter().filter(|(_, saved)| *saved == 0).count(),
            saved: reported.iter().map(|(_, saved)| saved).sum(),
            time: reported.iter().filter_map(|(at, _)| cause.time_at(*at as usize)).sum(),
        })
    };
    numbers.filter_map(efficiency).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_even_stays_as_it_is_when_smoothed() {
        assert_eq!(smooth_bins(&[3.0; 9]), [3.0; 9]);
        // Five bins around the middle, then five around each of these; at the ends there are fewer.
        let mut bins = [0.0; 11];
        bins[5] = 25.0;
        assert_eq!(smooth_bins(&bins), [0.0, 1.25, 2.0, 3.0, 4.0, 5.0, 4.0, 3.0, 2.0, 1.25, 0.0]);
    }
}
