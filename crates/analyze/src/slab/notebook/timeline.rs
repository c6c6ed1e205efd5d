//! Owns the notebook's two timelines and that of one cache. It refuses to join ticks without rows.

use perflab_model::Nanos;
use serde::Serialize;

use super::super::error::SlabError;
use super::super::input::SlabInput;
use super::super::ratio::ExactRatio;
use super::frame::NotebookFrame;
use super::reason::NotebookDifference;

/// Mean efficiencies at every tick.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotebookTimeline {
    /// One a tick with rows that the notebook keeps.
    pub points: Vec<NotebookTickPoint>,
    /// Why its lines are not ours.
    pub reasons: Vec<NotebookDifference>,
}

/// One tick.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NotebookTickPoint {
    /// CLOCK_MONOTONIC.
    pub at: Nanos,
    /// The notebook's "Average SLAB efficiency": mean of the printed %Ef; per cent.
    pub unweighted: f64,
    /// The notebook's "Weighted average": with Space in its kB as weights; per cent. Null where all weigh nothing.
    pub weighted: Option<f64>,
    /// Ours: sum objects*object_size / sum S over all rows of the tick; null where the page size is unknown.
    pub overall: Option<ExactRatio>,
}

/// %Ef of one cache.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotebookCacheTimeline {
    /// Its name, as the tool printed it.
    pub name: String,
    /// One a row that the notebook keeps.
    pub points: Vec<NotebookCachePoint>,
    /// Why its line is not ours.
    pub reasons: Vec<NotebookDifference>,
}

/// One cache at one tick.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NotebookCachePoint {
    /// CLOCK_MONOTONIC.
    pub at: Nanos,
    /// As printed; per cent.
    pub percent_efficient: i64,
    /// Ours: objects*object_size / S; null where the page size is unknown.
    pub overall: Option<ExactRatio>,
}

/// Makes both timelines.
///
/// # Errors
/// No `slabinfo-tool` rows.
pub fn notebook_timeline(input: &SlabInput) -> Result<NotebookTimeline, SlabError> {
    let frame = NotebookFrame::read(input)?;
    let mut sums = vec![NotebookTickSums::default(); frame.ticks.len()];
    for row in frame.all_rows() {
        if let Some(sums) = sums.get_mut(row.tick) {
            sums.add_exact(row.exact);
        }
    }
    for (row, kb) in frame.kept_rows() {
        if let Some(sums) = sums.get_mut(row.tick) {
            sums.rows += 1;
            sums.percent += row.percent as f64;
            sums.weighted += row.percent as f64 * kb;
            sums.kb += kb;
        }
    }
    let kept = frame.ticks.iter().zip(&sums).filter(|(_, sums)| sums.rows > 0);
    let points = kept.map(|(at, sums)| sums.to_point(*at)).collect();
    let mut reasons = frame.mean_differences();
    reasons.push(NotebookDifference::CachesAlike);
    reasons.extend(frame.space_differences());
    Ok(NotebookTimeline { points, reasons })
}

/// Makes the line of one cache (the notebook shows `dentry`).
///
/// # Errors
/// No `slabinfo-tool` rows, no cache of that name among them.
pub fn notebook_cache(input: &SlabInput, name: &str) -> Result<NotebookCacheTimeline, SlabError> {
    let frame = NotebookFrame::read(input)?;
    let number = frame.names.iter().position(|known| known == name).ok_or_else(|| {
        let names = frame.names.iter().map(String::as_str);
        let near = perflab_model::nearest::nearest_name(name, names).map(Into::into);
        SlabError::UnknownCache { name: name.into(), near: near.into_iter().collect() }
    })?;
    let point = |(row, _): (&super::frame::NotebookToolRow, f64)| NotebookCachePoint {
        at: frame.ticks.get(row.tick).copied().unwrap_or_default(),
        percent_efficient: row.percent,
        overall: row.exact,
    };
    let points = frame.kept_rows().filter(|(row, _)| row.name == number).map(point).collect();
    Ok(NotebookCacheTimeline { name: name.into(), points, reasons: frame.mean_differences() })
}

/// Sums over the rows of one tick.
#[derive(Clone, Default)]
struct NotebookTickSums {
    rows: usize,
    percent: f64,
    weighted: f64,
    kb: f64,
    used: u128,
    bytes: u128,
    unknown: usize,
}

impl NotebookTickSums {
    fn add_exact(&mut self, exact: Option<ExactRatio>) {
        let Some(exact) = exact else {
            self.unknown += 1;
            return;
        };
        self.used = self.used.saturating_add(exact.part);
        self.bytes = self.bytes.saturating_add(exact.whole);
    }

    fn to_point(&self, at: Nanos) -> NotebookTickPoint {
        NotebookTickPoint {
            at,
            unweighted: self.percent / self.rows as f64,
            weighted: (self.kb > 0.0).then(|| self.weighted / self.kb),
            overall: (self.unknown == 0).then(|| ExactRatio::new(self.used, self.bytes)),
        }
    }
}
