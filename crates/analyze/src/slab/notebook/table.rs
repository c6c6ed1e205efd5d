//! Owns the notebook's table of the least efficient caches. It refuses its order among ties, which is not defined.

use serde::Serialize;

use super::super::error::SlabError;
use super::super::input::Input;
use super::super::ratio::Ratio;
use super::super::show::Order;
use super::super::usage::times;
use super::frame::Frame;
use super::reason::Reason;

/// The caches with the lowest mean %Ef.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotebookTable {
    /// Lowest %Ef first; ties by name.
    pub rows: Vec<TableRow>,
    /// Why its columns are not ours.
    pub reasons: Vec<Reason>,
}

impl NotebookTable {
    /// The first `top` rows in that order; the notebook's own order is that of [`Order::Unweighted`]. Rows of which the figure is
    /// not known come last.
    #[must_use]
    pub fn ordered(mut self, order: Order, top: usize) -> Self {
        let wasted = |row: &TableRow| {
            let efficiency = row.overall.and_then(Ratio::value)?;
            Some(row.slab_bytes? * (1.0 - efficiency))
        };
        let first = |row: &TableRow| match order {
            Order::Waste => wasted(row).map(|bytes| -bytes),
            Order::Efficiency => row.overall.and_then(Ratio::value),
            Order::Unweighted => Some(row.percent_efficient),
            Order::Bytes => row.slab_bytes.map(|bytes| -bytes),
            Order::Name => Some(0.0),
        };
        let key = |row: &TableRow| first(row).unwrap_or(f64::INFINITY);
        self.rows.sort_by(|a, b| key(a).total_cmp(&key(b)).then_with(|| a.name.cmp(&b.name)));
        self.rows.truncate(top);
        self
    }
}

/// One cache (or merged group, under the name of its directory).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableRow {
    /// As the tool printed it.
    pub name: String,
    /// The notebook's: mean of the printed %Ef over the ticks at which it was kept; per cent.
    pub percent_efficient: f64,
    /// The notebook's: mean of Space, in its kB.
    pub space_normalized_in_kb: f64,
    /// Rows in these means.
    pub rows: usize,
    /// Ours: sum objects*object_size*dt / sum S*dt over all its rows; null where the page size is unknown.
    pub overall: Option<Ratio>,
    /// Ours: S on average over the run's time, bytes; null where the page size is unknown.
    pub slab_bytes: Option<f64>,
}

/// Makes the table, with the `lowest` first rows of it (the notebook shows 30).
///
/// # Errors
/// No `slabinfo-tool` rows.
pub fn table(input: &Input, lowest: usize) -> Result<NotebookTable, SlabError> {
    let frame = Frame::read(input)?;
    let mut sums = vec![Sums::default(); frame.names.len()];
    for row in frame.all() {
        let weight = frame.weights.get(row.tick).copied().unwrap_or_default();
        if let Some(sums) = sums.get_mut(row.name) {
            sums.add_exact(row.exact, weight);
        }
    }
    for (row, kb) in frame.kept() {
        if let Some(sums) = sums.get_mut(row.name) {
            sums.rows += 1;
            sums.percent += row.percent as f64;
            sums.kb += kb;
        }
    }
    let time: u128 = frame.weights.iter().sum();
    let named = frame.names.iter().zip(&sums).filter(|(_, sums)| sums.rows > 0);
    let mut rows: Vec<TableRow> = named.map(|(name, sums)| sums.row(name, time)).collect();
    rows.sort_by(|a, b| {
        a.percent_efficient.total_cmp(&b.percent_efficient).then_with(|| a.name.cmp(&b.name))
    });
    let absent = sums.iter().filter(|sums| sums.all < frame.ticks.len()).count();
    let reasons = reasons(&frame, &rows, absent);
    rows.truncate(lowest);
    Ok(NotebookTable { rows, reasons })
}

fn reasons(frame: &Frame, rows: &[TableRow], absent: usize) -> Vec<Reason> {
    let merged = rows.iter().filter(|row| row.name.starts_with(':')).count();
    let mut reasons = frame.reasons();
    reasons.extend(frame.reasons_of_space());
    reasons.push(Reason::TicksAlike);
    reasons.extend((absent > 0).then_some(Reason::AbsentTicks { caches: absent }));
    reasons.extend((merged > 0).then_some(Reason::MergedNames { names: merged }));
    reasons.push(Reason::TiesUnordered);
    reasons
}

/// Sums over the rows of one name.
#[derive(Clone, Default)]
struct Sums {
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

impl Sums {
    fn add_exact(&mut self, exact: Option<Ratio>, weight: u128) {
        self.all += 1;
        let Some(exact) = exact else {
            self.unknown += 1;
            return;
        };
        self.used = self.used.saturating_add(times(exact.part, weight));
        self.bytes = self.bytes.saturating_add(times(exact.whole, weight));
    }

    fn row(&self, name: &str, time: u128) -> TableRow {
        let is_known = self.unknown == 0;
        TableRow {
            name: name.into(),
            percent_efficient: self.percent / self.rows as f64,
            space_normalized_in_kb: self.kb / self.rows as f64,
            rows: self.rows,
            overall: is_known.then(|| Ratio::new(self.used, self.bytes)),
            slab_bytes: is_known.then(|| self.bytes as f64 / time.max(1) as f64),
        }
    }
}
