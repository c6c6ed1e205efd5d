//! Owns the making of rows: one a case, metric and candidate, with numbers but without a verdict. It refuses to drop
//! anything: what one side lacks becomes a row that says so.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::thread;

use perflab_stats::{StatsError, median};

use crate::at_once;
use crate::blocks::Units;
use crate::comparison::{Row, Scale, Summary, Verdict};
use crate::estimate::estimate;
use crate::flag::Flag;
use crate::seen::{Cell, Index, MetricKey, Subject, Table};
use crate::warning::{Place, Warning};
use crate::{AnalyzeError, Options};

/// Fewest values a side that, being all equal on both, count as exact.
const FEWEST_EXACT: usize = 3;

/// A row on its way to a verdict.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) row: Row,
    /// As in [`Estimated`](crate::estimate::Estimated).
    pub(crate) sd: Option<f64>,
    /// The verdict is capped.
    pub(crate) one_boot: bool,
    /// Of some of several runs nobody knows whether they are of one boot.
    pub(crate) unknown_boot: bool,
    /// All values of both sides are one and the same number.
    pub(crate) constant: bool,
}

/// Where a row stands.
struct Spot<'a> {
    subject: usize,
    name: &'a str,
    what: &'a Subject,
    metric: &'a MetricKey,
    baseline: (&'a Table, Option<&'a Cell>),
    candidate: (&'a Table, Option<&'a Cell>),
}

/// All rows in order: by case; primary metrics first; by metric; by candidate. The warnings are those that only
/// the comparison of two cells can give.
pub(crate) fn drafts(
    index: &Index,
    baseline: &Table,
    candidates: &[Table],
    options: &Options,
) -> Result<Drafts, AnalyzeError> {
    let keys = row_keys(baseline, candidates);
    let of = |part: &[(usize, usize)]| -> Result<Drafts, AnalyzeError> {
        let mut found = Drafts::default();
        part.iter()
            .try_for_each(|key| of_metric(*key, (index, baseline, candidates), options, &mut found))?;
        Ok(found)
    };
    let mut all = Drafts::default();
    thread::scope(|scope| {
        let parts = keys.chunks(at_once::part(keys.len()));
        let parts: Vec<_> = parts.map(|part| scope.spawn(|| of(part))).collect();
        parts.into_iter().try_for_each(|part| {
            let (found, warnings) = part.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            all.0.extend(found);
            all.1.extend(warnings);
            Ok(())
        })
    })?;
    Ok(all)
}

/// Rows, and the warnings that belong to them.
type Drafts = (Vec<Draft>, Vec<Warning>);

/// The rows of one metric of a case.
fn of_metric(
    key: (usize, usize),
    (index, baseline, candidates): (&Index, &Table, &[Table]),
    options: &Options,
    (found, warnings): &mut Drafts,
) -> Result<(), AnalyzeError> {
    let (subject, number) = key;
    let (Some((name, what)), Some(metric)) =
        (index.subjects.get_index(subject), index.metrics.get_index(number))
    else {
        return Ok(());
    };
    for candidate in candidates {
        let baseline = (baseline, cell(baseline, key));
        let candidate = (candidate, cell(candidate, key));
        let spot = Spot { subject, name, what, metric, baseline, candidate };
        found.extend(spot.draft(index, options, warnings)?);
    }
    Ok(())
}

fn cell(table: &Table, key: (usize, usize)) -> Option<&Cell> {
    table.cells.get(&key).filter(|cell| cell.has_values())
}

/// Every case with the metrics that any side has of it, primary ones first.
fn row_keys(baseline: &Table, candidates: &[Table]) -> Vec<(usize, usize)> {
    let mut primary: HashMap<(usize, usize), bool> = HashMap::new();
    let cells = std::iter::once(baseline).chain(candidates).flat_map(|table| &table.cells);
    for (key, cell) in cells.filter(|(_, cell)| cell.has_values()) {
        *primary.entry(*key).or_default() |= cell.primary;
    }
    let mut keys: Vec<_> = primary.into_iter().collect();
    keys.sort_by_key(|((subject, metric), is_primary)| (*subject, !is_primary, *metric));
    keys.into_iter().map(|(key, _)| key).collect()
}

impl Spot<'_> {
    /// The row, unless neither of the two sides has a value.
    fn draft(
        &self,
        index: &Index,
        options: &Options,
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<Draft>, AnalyzeError> {
        let Some(any) = self.baseline.1.or(self.candidate.1) else { return Ok(None) };
        let mut draft = Draft {
            row: self.row(any, options)?,
            sd: None,
            one_boot: false,
            unknown_boot: false,
            constant: false,
        };
        match (self.baseline.1, self.candidate.1) {
            (Some(baseline), Some(candidate)) => {
                let found = self.estimate(&mut draft, baseline, candidate, index, options);
                warnings.extend(found.unwrap_or_else(|error| {
                    draft.row.flags.push(Flag::Few);
                    Some(Warning::NotComputed { place: self.place(), reason: error.to_string() })
                }));
            }
            _ => draft.row.flags.push(Flag::OneSided),
        }
        Ok(Some(draft))
    }

    fn row(&self, any: &Cell, options: &Options) -> Result<Row, AnalyzeError> {
        let margin = [self.baseline.1, self.candidate.1].into_iter().flatten().find_map(|cell| cell.margin);
        Ok(Row {
            subject: self.name.into(),
            workload: self.what.workload.clone(),
            point: self.what.point.clone(),
            candidate_name: self.candidate.0.name.clone(),
            metric: String::from(&self.metric.name),
            twins: Vec::new(),
            unit: self.metric.unit.clone(),
            direction: any.direction,
            primary: any.primary,
            baseline: self.summary(self.baseline)?,
            candidate: self.summary(self.candidate)?,
            change: None,
            verdict: Verdict::Unclear,
            p: None,
            q: None,
            margin: margin.unwrap_or(options.default_margin),
            flags: self.flags(),
            method: None,
            withheld: None,
            needed: None,
        })
    }

    fn summary(&self, side: (&Table, Option<&Cell>)) -> Result<Option<Summary>, AnalyzeError> {
        let Some(cell) = side.1 else { return Ok(None) };
        Ok(Some(Summary {
            median: median(&cell.values()).map_err(|source| self.error(source))?,
            n: cell.points.len(),
            boots: cell.boots(),
            failed: side.0.failures.get(&self.subject).map_or(0, |failures| failures.count),
            values: cell.points.clone(),
        }))
    }

    /// What each side says about itself.
    fn flags(&self) -> Vec<Flag> {
        let sides = [self.baseline, self.candidate];
        let failed = sides.iter().any(|(table, _)| table.failures.contains_key(&self.subject));
        let cells = sides.into_iter().filter_map(|(_, cell)| cell);
        let found = cells.flat_map(|cell| cell.warnings.iter().filter_map(Warning::flag));
        found.chain(failed.then_some(Flag::Failed)).collect()
    }

    /// Fills in what the data say; a warning where they say little.
    fn estimate(
        &self,
        draft: &mut Draft,
        baseline: &Cell,
        candidate: &Cell,
        index: &Index,
        options: &Options,
    ) -> Result<Option<Warning>, StatsError> {
        let units = Units::of(baseline, candidate, index)?;
        let found = estimate(&units, options)?;
        draft.row.method = Some(units.method());
        draft.row.change = Some(found.change);
        draft.row.p = Some(found.p);
        draft.sd = found.sd;
        (draft.one_boot, draft.unknown_boot) = (units.one_boot, units.unknown_boot);
        draft.constant = constant(baseline, candidate);
        draft.row.flags.extend(units.one_boot.then_some(Flag::OneBoot));
        draft.row.flags.extend(units.unknown_boot.then_some(Flag::UnknownBoot));
        draft.row.flags.extend((units.paired && medians_disagree(&draft.row)).then_some(Flag::Paired));
        let is_enough = found.change.interval.is_some() || draft.constant;
        draft.row.flags.extend((!is_enough).then_some(Flag::Few));
        Ok((!is_enough).then(|| self.too_few(&units)))
    }

    fn too_few(&self, units: &Units) -> Warning {
        let (baseline, candidate) = (units.baseline.len(), units.candidate.len());
        Warning::TooFew { place: self.place(), baseline, candidate, level: units.level }
    }

    fn place(&self) -> Place {
        let side = self.candidate.0.name.clone();
        Place { side, subject: self.name.into(), metric: String::from(&self.metric.name) }
    }

    fn error(&self, source: StatsError) -> AnalyzeError {
        AnalyzeError::Statistic { subject: self.name.into(), metric: String::from(&self.metric.name), source }
    }
}

/// Whether who divides the medians gets a change that differs from the row's by more than matters.
fn medians_disagree(row: &Row) -> bool {
    let (Some(change), Some(ours), Some(theirs)) = (row.change, &row.baseline, &row.candidate) else {
        return false;
    };
    let is_ratio = change.scale == Scale::Ratio && ours.median > 0.0;
    is_ratio && (theirs.median / ours.median - 1.0 - change.value).abs() > row.margin
}

/// Whether both sides are one and the same number throughout, often enough to be no accident.
fn constant(baseline: &Cell, candidate: &Cell) -> bool {
    let enough = baseline.points.len().min(candidate.points.len()) >= FEWEST_EXACT;
    let values = || baseline.points.iter().chain(candidate.points.iter()).map(|point| point.value);
    enough && values().zip(values().skip(1)).all(|(one, next)| one == next)
}
