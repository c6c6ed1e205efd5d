//! Owns the notebook's table of the least efficient caches. It refuses its order among ties, which is not defined.

use serde::Serialize;

use super::super::error::SlabError;
use super::super::input::SlabInput;
use super::super::ratio::ExactRatio;
use super::super::show::CacheOrder;
use super::super::usage::saturating_product;
use super::frame::NotebookFrame;
use super::reason::NotebookDifference;

/// The caches with the lowest mean %Ef.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotebookTable {
    /// Lowest %Ef first; ties by name.
    pub rows: Vec<NotebookRow>,
    /// Why its columns are not ours.
    pub reasons: Vec<NotebookDifference>,
}

impl NotebookTable {
    /// The first `top` rows in that order; the notebook's own order is that of [`CacheOrder::UnweightedMean`]. Rows of which the figure is
    /// not known come last.
    #[must_use]
    pub fn sort_and_truncate(mut self, order: CacheOrder, top: usize) -> Self {
        let wasted = |row: &NotebookRow| {
            let efficiency = row.overall.and_then(ExactRatio::value)?;
            Some(row.slab_bytes? * (1.0 - efficiency))
        };
        let first = |row: &NotebookRow| match order {
            CacheOrder::Waste => wasted(row).map(|bytes| -bytes),
            CacheOrder::Efficiency => row.overall.and_then(ExactRatio::value),
            CacheOrder::Unweighted => Some(row.percent_efficient),
            CacheOrder::Bytes => row.slab_bytes.map(|bytes| -bytes),
            CacheOrder::Name => Some(0.0),
        };
        let key = |row: &NotebookRow| first(row).unwrap_or(f64::INFINITY);
        self.rows.sort_by(|a, b| key(a).total_cmp(&key(b)).then_with(|| a.name.cmp(&b.name)));
        self.rows.truncate(top);
        self
    }
}

/// One cache (or merged group, under the name of its directory).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotebookRow {
    /// As the tool printed it.
    pub name: String,
    /// The notebook's: mean of the printed %Ef over the ticks at which it was kept; per cent.
    pub percent_efficient: f64,
    /// The notebook's: mean of Space, in its kB.
    pub space_normalized_in_kb: f64,
    /// Rows in these means.
    pub rows: usize,
    /// Ours: sum objects*object_size*dt / sum S*dt over all its rows; null where the page size is unknown.
    pub overall: Option<ExactRatio>,
    /// Ours: S on average over the run's time, bytes; null where the page size is unknown.
    pub slab_bytes: Option<f64>,
}

/// Makes the table, with the `lowest` first rows of it (the notebook shows 30).
///
/// # Errors
/// No `slabinfo-tool` rows.
pub fn notebook_table(input: &SlabInput, lowest: usize) -> Result<NotebookTable, SlabError> {
    let frame = NotebookFrame::read(input)?;
    let mut sums = vec![NotebookRowSums::default(); frame.names.len()];
    for row in frame.all_rows() {
        let weight = frame.weights.get(row.tick).copied().unwrap_or_default();
        if let Some(sums) = sums.get_mut(row.name) {
            sums.add_exact(row.exact, weight);
        }
    }
    for (row, kb) in frame.kept_rows() {
        if let Some(sums) = sums.get_mut(row.name) {
            sums.rows += 1;
            sums.percent += row.percent as f64;
            sums.kb += kb;
        }
    }
    let time: u128 = frame.weights.iter().sum();
    let named = frame.names.iter().zip(&sums).filter(|(_, sums)| sums.rows > 0);
    let mut rows: Vec<NotebookRow> = named.map(|(name, sums)| sums.to_row(name, time)).collect();
    rows.sort_by(|a, b| {
        a.percent_efficient.total_cmp(&b.percent_efficient).then_with(|| a.name.cmp(&b.name))
    });
    let absent = sums.iter().filter(|sums| sums.all < frame.ticks.len()).count();
    let reasons = notebook_table_differences(&frame, &rows, absent);
    rows.truncate(lowest);
    Ok(NotebookTable { rows, reasons })
}

fn notebook_table_differences(
    frame: &NotebookFrame,
    rows: &[NotebookRow],
    absent: usize,
) -> Vec<NotebookDifference> {
    let merged = rows.iter().filter(|row| row.name.starts_with(':')).count();
    let mut reasons = frame.mean_differences();
    reasons.extend(frame.space_differences());
    reasons.push(NotebookDifference::TicksAlike);
    reasons.extend((absent > 0).then_some(NotebookDifference::AbsentTicks { caches: absent }));
    reasons.extend((merged > 0).then_some(NotebookDifference::MergedNames { names: merged }));
    reasons.push(NotebookDifference::TiesUnordered);
    reasons
}

/// Sums over the rows of one name.
#[derive(Clone, Default)]
struct NotebookRowSums {
    /// Rows, and those of them that the notebook keeps.
    all: usize,
    rows: usize,
    percent: f64,
    kb: f64,
    used: u128,
    bytes: u128,
    /// Rows without exact bytes.
    unknown: usize,
}

impl NotebookRowSums {
    fn add_exact(&mut self, exact: Option<ExactRatio>, weight: u128) {
        self.all += 1;
        let Some(exact) = exact else {
            self.unknown += 1;
            return;
        };
        self.used = self.used.saturating_add(saturating_product(exact.part, weight));
        self.bytes = self.bytes.saturating_add(saturating_product(exact.whole, weight));
    }

    fn to_row(&self, name: &str, time: u128) -> NotebookRow {
        let is_known = self.unknown == 0;
        NotebookRow {
            name: name.into(),
            percent_efficient: self.percent / self.rows as f64,
            space_normalized_in_kb: self.kb / self.rows as f64,
            rows: self.rows,
            overall: is_known.then(|| ExactRatio::new(self.used, self.bytes)),
            slab_bytes: is_known.then(|| self.bytes as f64 / time.max(1) as f64),
        }
    }
}
