//! How long each operation took and its neighbours usually take; quantiles with intervals.
//!
//! Intervals come from a block bootstrap: neighbouring operations are alike, so whole blocks of them are drawn. Times
//! are kept as counts in narrow bins, which makes a draw cheap, and intervals are a bin wider on each side.

use perflab_model::named::Named;
use perflab_model::operation::OperationColumns;
use serde::{Deserialize, Serialize};

/// Operations in a window of the local baseline.
const WINDOW: usize = 4096;

/// Which time counts; [`crate::operations::report::choose_clock`] says which one explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationClock {
    /// time on the CPU: what other processes took is in no operation
    #[default]
    OnCpu,
    /// time as the program's caller feels it
    Wall,
}

impl Named for OperationClock {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (OperationClock::OnCpu, "cpu", "time on the CPU"),
        (OperationClock::Wall, "wall", "time as the caller feels it, waiting and other processes included"),
    ];
}

/// Times of the operations of one kind.
#[derive(Debug)]
pub(crate) struct OperationTimes {
    /// rows of the trace that are looked at, in order
    pub(crate) rows: Vec<u32>,
    /// nanoseconds; one for each of `rows`
    pub(crate) time: Vec<i64>,
    /// median and median absolute deviation of each window of rows
    baseline: Vec<(i64, i64)>,
}

impl OperationTimes {
    /// Of one kind of operation; records with broken clocks are left out.
    pub(crate) fn new(operations: &OperationColumns, kind: u8, clock: OperationClock) -> Self {
        let mut time = operations.wall.clone();
        if clock == OperationClock::OnCpu {
            for (row, away) in operations.preempted.iter().chain(operations.waited.iter()) {
                if let Some(time) = time.get_mut(row as usize) {
                    *time = (*time - away).max(0);
                }
            }
        }
        for (row, flags) in operations.flags.iter() {
            if let Some(time) =
                time.get_mut(row as usize).filter(|_| flags & OperationColumns::BACKWARDS != 0)
            {
                *time = -1;
            }
        }
        let mut rows: Vec<u32> = (0..time.len() as u32).collect();
        let sound = |row: &u32| {
            let row = *row as usize;
            time.get(row).is_some_and(|time| *time >= 0) && operations.kind.get(row) == Some(&kind)
        };
        rows.retain(sound);
        let time: Vec<i64> = rows.iter().filter_map(|row| time.get(*row as usize).copied()).collect();
        let baseline = time.chunks(WINDOW).map(median_and_mad).collect();
        OperationTimes { rows, time, baseline }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Median and median absolute deviation around the operation at a place in `rows`.
    pub(crate) fn usual_time(&self, at: usize) -> (i64, i64) {
        self.baseline.get(at / WINDOW).copied().unwrap_or((0, 0))
    }

    /// The place of a row of the trace; none where it is not looked at.
    pub(crate) fn index_of_row(&self, row: u32) -> Option<usize> {
        // Nearly always every row is looked at.
        match self.rows.get(row as usize) {
            Some(same) if *same == row => Some(row as usize),
            _ => self.rows.binary_search(&row).ok(),
        }
    }

    /// What the operation took above what is usual around it.
    pub(crate) fn excess_time(&self, at: usize) -> i64 {
        let time = self.time.get(at).copied().unwrap_or(0);
        (time - self.usual_time(at).0).max(0)
    }
}

fn median_and_mad(window: &[i64]) -> (i64, i64) {
    let mut times = window.to_vec();
    let middle = select_median(&mut times);
    times.iter_mut().for_each(|time| *time = (*time - middle).abs());
    (middle, select_median(&mut times))
}

/// The upper median; 0 of nothing. Reorders.
pub(crate) fn select_median(times: &mut [i64]) -> i64 {
    let at = times.len() / 2;
    if times.is_empty() { 0 } else { *times.select_nth_unstable(at).1 }
}

/// The quantiles that are reported.
pub(crate) const SHARES: [f64; 4] = [0.5, 0.99, 0.999, 0.9999];

/// The values at those shares: the smallest time that at least the share of all do not exceed. Reorders.
pub(crate) fn time_quantiles(times: &mut [i64]) -> [i64; 4] {
    SHARES.map(|share| time_quantile(times, share))
}

pub(crate) fn time_quantile(times: &mut [i64], share: f64) -> i64 {
    let at = ((share * times.len() as f64).ceil() as usize).clamp(1, times.len().max(1)) - 1;
    if times.is_empty() { 0 } else { *times.select_nth_unstable(at).1 }
}

/// Operations of a block that is drawn as a whole.
const BLOCK: usize = 4096;

/// Draws.
const DRAWS: usize = 400;

/// Bins for each doubling of the time: one of them is 0.27 % wide.
const FINE: f64 = 256.0;

const BINS: usize = 256 * 48;

/// Counts of times, block by block.
pub(crate) struct BlockBootstrap {
    blocks: Vec<Vec<(u16, u32)>>,
    total: usize,
}

impl BlockBootstrap {
    pub(crate) fn new(times: &[i64]) -> Self {
        let count = |block: &[i64]| {
            let mut bins = std::collections::BTreeMap::new();
            block.iter().for_each(|time| *bins.entry(time_bin(*time)).or_insert(0) += 1);
            bins.into_iter().collect()
        };
        BlockBootstrap { blocks: times.chunks(BLOCK).map(count).collect(), total: times.len() }
    }

    /// The quantiles of one draw of as many blocks as there are.
    fn draw_quantiles(&self, random: &mut u64) -> [f64; 4] {
        let mut counts = vec![0_u64; BINS];
        for _ in 0..self.blocks.len() {
            let at = random_below(random, self.blocks.len());
            for (bin, count) in self.blocks.get(at).into_iter().flatten() {
                if let Some(slot) = counts.get_mut(usize::from(*bin)) {
                    *slot += u64::from(*count);
                }
            }
        }
        let total: u64 = counts.iter().sum();
        SHARES.map(|share| {
            let requested = (share * total as f64).ceil().max(1.0) as u64;
            let mut sum = 0;
            let at = counts.iter().position(|count| {
                sum += count;
                sum >= requested
            });
            bin_time(at.unwrap_or(0))
        })
    }
}

fn time_bin(time: i64) -> u16 {
    ((time.max(1) as f64).log2() * FINE).round().clamp(0.0, (BINS - 1) as f64) as u16
}

fn bin_time(bin: usize) -> f64 {
    (bin as f64 / FINE).exp2()
}

/// splitmix64, and Lemire's multiplication for the range.
fn random_below(state: &mut u64, end: usize) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((u128::from(z ^ (z >> 31)) * end as u128) >> 64) as usize
}

/// The 95 % interval of the ratio after / before of each quantile; none where there are too few blocks (8) to draw.
pub(crate) fn quantile_ratio_intervals(
    before: &BlockBootstrap,
    after: &BlockBootstrap,
) -> Option<[(f64, f64); 4]> {
    if before.blocks.len() < 8 || after.blocks.len() < 8 || before.total == 0 || after.total == 0 {
        return None;
    }
    let mut random = 2012;
    let draws: Vec<[f64; 4]> = (0..DRAWS)
        .map(|_| {
            let (from, to) = (before.draw_quantiles(&mut random), after.draw_quantiles(&mut random));
            std::array::from_fn(|at| to.get(at).unwrap_or(&0.0) / from.get(at).unwrap_or(&1.0))
        })
        .collect();
    Some(std::array::from_fn(|at| {
        let mut ratios: Vec<f64> = draws.iter().filter_map(|draw| draw.get(at).copied()).collect();
        ratios.sort_by(f64::total_cmp);
        let of = |share: f64| ratios.get((share * (ratios.len() - 1) as f64).round() as usize).copied();
        let bin = (1.0 / FINE).exp2();
        (of(0.025).unwrap_or(f64::NAN) / bin, of(0.975).unwrap_or(f64::NAN) * bin)
    }))
}
