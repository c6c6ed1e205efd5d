//! Owns the notebook's two timelines and that of one cache. It refuses to join ticks without rows.

use perflab_model::Nanos;
use serde::Serialize;

use super::super::error::SlabError;
use super::super::input::Input;
use super::super::ratio::Ratio;
use super::frame::Frame;
use super::reason::Reason;

/// Mean efficiencies at every tick.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotebookTimeline {
    /// One a tick with rows that the notebook keeps.
    pub points: Vec<TickPoint>,
    /// Why its lines are not ours.
    pub reasons: Vec<Reason>,
}

/// One tick.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TickPoint {
    /// CLOCK_MONOTONIC.
    pub at: Nanos,
    /// The notebook's "Average SLAB efficiency": mean of the printed %Ef; per cent.
    pub unweighted: f64,
    /// The notebook's "Weighted average": with Space in its kB as weights; per cent. Null where all weigh nothing.
    pub weighted: Option<f64>,
    /// Ours: sum objects*object_size / sum S over all rows of the tick; null where the page size is unknown.
    pub overall: Option<Ratio>,
}

/// %Ef of one cache.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotebookCache {
    /// Its name, as the tool printed it.
    pub name: String,
    /// One a row that the notebook keeps.
    pub points: Vec<CachePoint>,
    /// Why its line is not ours.
    pub reasons: Vec<Reason>,
}

/// One cache at one tick.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CachePoint {
    /// CLOCK_MONOTONIC.
    pub at: Nanos,
    /// As printed; per cent.
    pub percent_efficient: i64,
    /// Ours: objects*object_size / S; null where the page size is unknown.
    pub overall: Option<Ratio>,
}

/// Makes both timelines.
///
/// # Errors
/// No `slabinfo-tool` rows.
pub fn timeline(input: &Input) -> Result<NotebookTimeline, SlabError> {
    let frame = Frame::read(input)?;
    let mut sums = vec![Sums::default(); frame.ticks.len()];
    for row in frame.all() {
        if let Some(sums) = sums.get_mut(row.tick) {
            sums.add_exact(row.exact);
        }
    }
    for (row, kb) in frame.kept() {
        if let Some(sums) = sums.get_mut(row.tick) {
            sums.rows += 1;
            sums.percent += row.percent as f64;
            sums.weighted += row.percent as f64 * kb;
            sums.kb += kb;
        }
    }
    let kept = frame.ticks.iter().zip(&sums).filter(|(_, sums)| sums.rows > 0);
    let points = kept.map(|(at, sums)| sums.point(*at)).collect();
    let mut reasons = frame.reasons();
    reasons.push(Reason::CachesAlike);
    reasons.extend(frame.reasons_of_space());
    Ok(NotebookTimeline { points, reasons })
}

/// Makes the line of one cache (the notebook shows `dentry`).
///
/// # Errors
/// No `slabinfo-tool` rows, no cache of that name among them.
pub fn cache(input: &Input, name: &str) -> Result<NotebookCache, SlabError> {
    let frame = Frame::read(input)?;
    let number = frame.names.iter().position(|known| known == name).ok_or_else(|| {
        let names = frame.names.iter().map(String::as_str);
        let near = perflab_model::nearest::nearest(name, names).map(Into::into);
        SlabError::UnknownCache { name: name.into(), near: near.into_iter().collect() }
    })?;
    let point = |(row, _): (&super::frame::ToolRow, f64)| CachePoint {
        at: frame.ticks.get(row.tick).copied().unwrap_or_default(),
        percent_efficient: row.percent,
        overall: row.exact,
    };
    let points = frame.kept().filter(|(row, _)| row.name == number).map(point).collect();
    Ok(NotebookCache { name: name.into(), points, reasons: frame.reasons() })
}

/// Sums over the rows of one tick.
#[derive(Clone, Default)]
struct Sums {
    rows: usize,
    percent: f64,
    weighted: f64,
    kb: f64,
    used: u128,
    bytes: u128,
    unknown: usize,
}

impl Sums {
    fn add_exact(&mut self, exact: Option<Ratio>) {
        let Some(exact) = exact else {
            self.unknown += 1;
            return;
        };
        self.used = self.used.saturating_add(exact.part);
        self.bytes = self.bytes.saturating_add(exact.whole);
    }

    fn point(&self, at: Nanos) -> TickPoint {
        TickPoint {
            at,
            unweighted: self.percent / self.rows as f64,
            weighted: (self.kb > 0.0).then(|| self.weighted / self.kb),
            overall: (self.unknown == 0).then(|| Ratio::new(self.used, self.bytes)),
        }
    }
}
