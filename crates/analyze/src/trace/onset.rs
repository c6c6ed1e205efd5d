//! Where a cause sets in, and which number of the program's state crossed what there.
//!
//! The onset is the step in the cause's rate with the greatest likelihood ratio: occurrences as Bernoulli trials with
//! one rate before and another after (Page, Biometrika 1954; Hawkins, JASA 1977), looked for at each occurrence, so
//! that it is exact to the operation; of several steps, the first. A state number explains it if it changed right before and seldom does: the
//! probability that one of its changes lies so near by chance is its rate of change times the distance.

use perflab_model::trace::{OperationColumns, SparseColumn};
use serde::Serialize;

use super::causes::OperationCause;
use super::times::OperationTimes;

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
    /// numbers of the state there, as last told
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
pub(super) fn find_onsets(
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
        state: super::outliers::state_at(operations, row),
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
