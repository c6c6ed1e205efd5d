//! Owns the rows of `slabinfo-tool` as the notebook holds them, and the exact bytes beside. It refuses to touch what was
//! printed.

use perflab_model::Nanos;
use perflab_model::series::Series;

use super::super::columns::{int_column, row_time, rows_in_time_order, text_column};
use super::super::error::SlabError;
use super::super::input::SlabInput;
use super::super::intern::NameInterner;
use super::super::ratio::ExactRatio;
use super::super::recording::{non_empty, tick_weights};
use super::reason::NotebookDifference;

/// What the notebook leaves out.
const MOST_PERCENT: i64 = 100;

/// One row.
pub(super) struct NotebookToolRow {
    pub(super) name: usize,
    pub(super) tick: usize,
    /// %Ef as printed.
    pub(super) percent: i64,
    /// Space in the notebook's kB; nothing for a unit at which it stops.
    pub(super) kb: Option<f64>,
    pub(super) is_mega: bool,
    /// objects * object_size and slab bytes; nothing where a count or the page size is missing.
    pub(super) exact: Option<ExactRatio>,
}

/// All rows.
pub(super) struct NotebookFrame {
    pub(super) names: Vec<String>,
    pub(super) ticks: Vec<Nanos>,
    pub(super) weights: Vec<u128>,
    rows: Vec<NotebookToolRow>,
}

impl NotebookFrame {
    pub(super) fn read(input: &SlabInput) -> Result<Self, SlabError> {
        let hint = "import a folder that holds what the kernel's slabinfo tool printed";
        let none = SlabError::NoRows { monitor: "slabinfo-tool", hint };
        let series = non_empty(input.tool).ok_or(none)?;
        let mut names = NameInterner::default();
        let (mut ticks, mut rows) = (Vec::new(), Vec::new());
        let name = text_column(series, "cache");
        let read = tool_row_reader(series, input.page_size().ok());
        for row in rows_in_time_order(series) {
            let now = row_time(series, row);
            if ticks.last() != Some(&now) {
                ticks.push(now);
            }
            let Some(name) = name.text(row) else { continue };
            let number = names.intern(name);
            rows.extend(read(row).map(|found| NotebookToolRow {
                name: number,
                tick: ticks.len() - 1,
                ..found
            }));
        }
        Ok(NotebookFrame { weights: tick_weights(&ticks), names: names.into_names(), ticks, rows })
    }

    /// Every row that says a percentage.
    pub(super) fn all_rows(&self) -> &[NotebookToolRow] {
        &self.rows
    }

    /// The rows that the notebook keeps.
    pub(super) fn kept_rows(&self) -> impl Iterator<Item = (&NotebookToolRow, f64)> {
        let kept = self.rows.iter().filter(|row| row.percent <= MOST_PERCENT);
        kept.filter_map(|row| Some((row, row.kb?)))
    }

    /// Why any mean over these rows is not ours.
    pub(super) fn mean_differences(&self) -> Vec<NotebookDifference> {
        let count = |wanted: &dyn Fn(&&NotebookToolRow) -> bool| self.rows.iter().filter(wanted).count();
        let above = count(&|row| row.percent > MOST_PERCENT);
        let other = count(&|row| row.kb.is_none());
        let dropped = (above > 0).then_some(NotebookDifference::AboveHundredDropped { rows: above });
        let stopped = (other > 0).then_some(NotebookDifference::OtherUnits { rows: other });
        dropped.into_iter().chain(stopped).chain([NotebookDifference::FlooredPercentages]).collect()
    }

    /// Why a weight is not bytes.
    pub(super) fn space_differences(&self) -> Vec<NotebookDifference> {
        let rows = self.kept_rows().filter(|(row, _)| row.is_mega).count();
        let mega = (rows > 0).then_some(NotebookDifference::DecimalMegaTimes1024 { rows });
        [NotebookDifference::TruncatedSpace].into_iter().chain(mega).collect()
    }
}

fn tool_row_reader<'a>(
    series: &'a Series,
    page_size: Option<u64>,
) -> impl Fn(usize) -> Option<NotebookToolRow> + 'a {
    let (percent, space) = (int_column(series, "efficiency_percent"), text_column(series, "space"));
    let (objects, size) = (int_column(series, "objects"), int_column(series, "object_size"));
    let (slabs, cpu, order) =
        (int_column(series, "slabs"), int_column(series, "cpu"), int_column(series, "order"));
    move |row| {
        let exact = || {
            let all = slabs.count(row)?.checked_add(cpu.count(row)?)?;
            let order = u32::try_from(order.count(row)?).ok().filter(|order| *order < 32)?;
            let bytes = page_size?.checked_mul(1 << order)?;
            let used = u128::from(objects.count(row)?) * u128::from(size.count(row)?);
            Some(ExactRatio::new(used, u128::from(all) * u128::from(bytes)))
        };
        let text = space.text(row).unwrap_or_default();
        Some(NotebookToolRow {
            name: 0,
            tick: 0,
            percent: percent.integer(row)?,
            kb: parse_kilobytes(text),
            is_mega: text.ends_with('M'),
            exact: exact(),
        })
    }
}

/// The notebook's `normalize_space`: all but the last letter as a number, times 1024 behind M.
fn parse_kilobytes(text: &str) -> Option<f64> {
    let (number, scale) = match (text.strip_suffix('K'), text.strip_suffix('M')) {
        (Some(number), _) => (number, 1.0),
        (_, Some(number)) => (number, 1024.0),
        _ => return None,
    };
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && number.len() <= 15;
    number.parse::<f64>().ok().filter(|_| is_plain).map(|number| number * scale)
}
