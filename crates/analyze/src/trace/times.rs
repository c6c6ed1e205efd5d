//! How long each operation took, and how long its neighbours usually take.

use perflab_model::trace::OperationColumns;
use serde::{Deserialize, Serialize};

/// Operations in a window of the local baseline.
const WINDOW: usize = 4096;

/// Which time counts; [`super::choose_clock`] says which one explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationClock {
    /// time on the CPU: what other processes took is in no operation
    #[default]
    OnCpu,
    /// time as the program's caller feels it
    Wall,
}

/// Times of the operations of one kind.
#[derive(Debug)]
pub(super) struct OperationTimes {
    /// rows of the trace that are looked at, in order
    pub(super) rows: Vec<u32>,
    /// nanoseconds; one for each of `rows`
    pub(super) time: Vec<i64>,
    /// median and median absolute deviation of each window of rows
    baseline: Vec<(i64, i64)>,
}

impl OperationTimes {
    /// Of one kind of operation; records with broken clocks are left out.
    pub(super) fn new(operations: &OperationColumns, kind: u8, clock: OperationClock) -> Self {
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

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Median and median absolute deviation around the operation at a place in `rows`.
    pub(super) fn usual_time(&self, at: usize) -> (i64, i64) {
        self.baseline.get(at / WINDOW).copied().unwrap_or((0, 0))
    }

    /// The place of a row of the trace; none where it is not looked at.
    pub(super) fn index_of_row(&self, row: u32) -> Option<usize> {
        // Nearly always every row is looked at.
        match self.rows.get(row as usize) {
            Some(same) if *same == row => Some(row as usize),
            _ => self.rows.binary_search(&row).ok(),
        }
    }

    /// What the operation took above what is usual around it.
    pub(super) fn excess_time(&self, at: usize) -> i64 {
        let time = self.time.get(at).copied().unwrap_or(0);
        (time - self.usual_time(at).0).max(0)
    }
}

fn median_and_mad(window: &[i64]) -> (i64, i64) {
    let mut times = window.to_vec();
    let middle = select_median(&mut times);
    times.iter_mut().for_each(|time| *time = (*time - middle).abs());
    (middle, self::select_median(&mut times))
}

/// The upper median; 0 of nothing. Reorders.
pub(super) fn select_median(times: &mut [i64]) -> i64 {
    let at = times.len() / 2;
    if times.is_empty() { 0 } else { *times.select_nth_unstable(at).1 }
}
