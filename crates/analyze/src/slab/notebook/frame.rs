//! Owns the rows of `slabinfo-tool` as the notebook holds them, and the exact bytes beside. It refuses to touch what was
//! printed.

use perflab_model::Nanos;
use perflab_model::series::Series;

use super::super::columns::{at, in_time, ints, texts};
use super::super::error::SlabError;
use super::super::input::Input;
use super::super::intern::Interner;
use super::super::ratio::Ratio;
use super::super::recording::{weights, with_rows};
use super::reason::Reason;

/// What the notebook leaves out.
const MOST_PERCENT: i64 = 100;

/// One row.
pub(super) struct ToolRow {
    pub(super) name: usize,
    pub(super) tick: usize,
    /// %Ef as printed.
    pub(super) percent: i64,
    /// Space in the notebook's kB; nothing for a unit at which it stops.
    pub(super) kb: Option<f64>,
    pub(super) is_mega: bool,
    /// objects * object_size and slab bytes; nothing where a count or the page size is missing.
    pub(super) exact: Option<Ratio>,
}

/// All rows.
pub(super) struct Frame {
    pub(super) names: Vec<String>,
    pub(super) ticks: Vec<Nanos>,
    pub(super) weights: Vec<u128>,
    rows: Vec<ToolRow>,
}

impl Frame {
    pub(super) fn read(input: &Input) -> Result<Self, SlabError> {
        let hint = "import a folder that holds what the kernel's slabinfo tool printed";
        let none = SlabError::NoRows { monitor: "slabinfo-tool", hint };
        let series = with_rows(input.tool).ok_or(none)?;
        let mut names = Interner::default();
        let (mut ticks, mut rows) = (Vec::new(), Vec::new());
        let name = texts(series, "cache");
        let read = reader(series, input.page_size().ok());
        for row in in_time(series) {
            let now = at(series, row);
            if ticks.last() != Some(&now) {
                ticks.push(now);
            }
            let Some(name) = name.text(row) else { continue };
            let number = names.number(name);
            rows.extend(read(row).map(|found| ToolRow { name: number, tick: ticks.len() - 1, ..found }));
        }
        Ok(Frame { weights: weights(&ticks), names: names.into_names(), ticks, rows })
    }

    /// Every row that says a percentage.
    pub(super) fn all(&self) -> &[ToolRow] {
        &self.rows
    }

    /// The rows that the notebook keeps.
    pub(super) fn kept(&self) -> impl Iterator<Item = (&ToolRow, f64)> {
        let kept = self.rows.iter().filter(|row| row.percent <= MOST_PERCENT);
        kept.filter_map(|row| Some((row, row.kb?)))
    }

    /// Why any mean over these rows is not ours.
    pub(super) fn reasons(&self) -> Vec<Reason> {
        let count = |wanted: &dyn Fn(&&ToolRow) -> bool| self.rows.iter().filter(wanted).count();
        let above = count(&|row| row.percent > MOST_PERCENT);
        let other = count(&|row| row.kb.is_none());
        let dropped = (above > 0).then_some(Reason::AboveHundredDropped { rows: above });
        let stopped = (other > 0).then_some(Reason::OtherUnits { rows: other });
        dropped.into_iter().chain(stopped).chain([Reason::FlooredPercentages]).collect()
    }

    /// Why a weight is not bytes.
    pub(super) fn reasons_of_space(&self) -> Vec<Reason> {
        let rows = self.kept().filter(|(row, _)| row.is_mega).count();
        let mega = (rows > 0).then_some(Reason::DecimalMegaTimes1024 { rows });
        [Reason::TruncatedSpace].into_iter().chain(mega).collect()
    }
}

fn reader<'a>(series: &'a Series, page_size: Option<u64>) -> impl Fn(usize) -> Option<ToolRow> + 'a {
    let (percent, space) = (ints(series, "efficiency_percent"), texts(series, "space"));
    let (objects, size) = (ints(series, "objects"), ints(series, "object_size"));
    let (slabs, cpu, order) = (ints(series, "slabs"), ints(series, "cpu"), ints(series, "order"));
    move |row| {
        let exact = || {
            let all = slabs.count(row)?.checked_add(cpu.count(row)?)?;
            let order = u32::try_from(order.count(row)?).ok().filter(|order| *order < 32)?;
            let bytes = page_size?.checked_mul(1 << order)?;
            let used = u128::from(objects.count(row)?) * u128::from(size.count(row)?);
            Some(Ratio::new(used, u128::from(all) * u128::from(bytes)))
        };
        let text = space.text(row).unwrap_or_default();
        Some(ToolRow {
            name: 0,
            tick: 0,
            percent: percent.signed(row)?,
            kb: kilobytes(text),
            is_mega: text.ends_with('M'),
            exact: exact(),
        })
    }
}

/// The notebook's `normalize_space`: all but the last letter as a number, times 1024 behind M.
fn kilobytes(text: &str) -> Option<f64> {
    let (number, scale) = match (text.strip_suffix('K'), text.strip_suffix('M')) {
        (Some(number), _) => (number, 1.0),
        (_, Some(number)) => (number, 1024.0),
        _ => return None,
    };
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && number.len() <= 15;
    number.parse::<f64>().ok().filter(|_| is_plain).map(|number| number * scale)
}
