//! What a unit of each dose costs: as a table with its sentences, as a section of the report, as rows for programs, as JSON with its schema.

use perflab_analyze::price::{
    PRICE_FORMAT, PriceEstimate, PriceList, PriceRow, PriceVerdict, fewest_blocks, is_price_run, list_prices,
};
use perflab_analyze::{AnalysisOptions, ComparisonSide};
use perflab_model::quantity::{UnitScale, format_digits, format_quantity, format_signed};
use perflab_model::study::FactorKind;
use perflab_model::{RunRecord, join_continued_runs};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;

use crate::grid::{Grid, GridCell, GridColumn};
use crate::section::{ReportData, Section, SectionBlock, SectionError};

/// The JSON Schema of [`PriceDocument`].
#[must_use]
pub fn price_schema() -> serde_json::Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.into_root_schema_for::<PriceDocument<'_>>().to_value()
}

/// What `perflab price --format json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PriceDocument<'a> {
    /// version of this shape
    format: u32,
    /// the prices
    #[serde(flatten)]
    list: &'a PriceList,
}

impl<'a> PriceDocument<'a> {
    /// The list as a document.
    #[must_use]
    pub fn new(list: &'a PriceList) -> Self {
        PriceDocument { format: PRICE_FORMAT, list }
    }
}

/// What the doses of runs that `perflab price` made cost.
pub(crate) const SECTION: Section =
    Section { id: "prices", title: "Prices", conclusions: price_conclusions, blocks: price_blocks };

/// The list of runs that are all of `perflab price`; none of others.
fn report_prices(data: &ReportData) -> Result<Option<PriceList>, SectionError> {
    if data.runs.is_empty() || !data.records().all(|record| is_price_run(&record.manifest)) {
        return Ok(None);
    }
    let records: Vec<RunRecord> = data.records().cloned().collect();
    let names: Vec<&str> = data.records().map(|record| record.manifest.id.as_str()).collect();
    let side = ComparisonSide { name: names.join(", "), runs: join_continued_runs(records) };
    Ok(Some(list_prices(&side, &[], &AnalysisOptions::default())?))
}

/// The dearest first, as in the list.
fn price_conclusions(data: &ReportData) -> Result<Vec<String>, SectionError> {
    let Some(list) = report_prices(data)? else { return Ok(Vec::new()) };
    let sentence = |row: &PriceRow| {
        let (unit, place) = dose_words(row);
        format!("`{}`, `{}`: {unit} more {place}: {}.", row.subject, row.metric, cost_text(row))
    };
    Ok(list.rows.iter().map(sentence).collect())
}

fn price_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    let Some(list) = report_prices(data)? else { return Ok(Vec::new()) };
    let (before, after) = price_sentences(&list);
    let caption =
        "What one more of each dose costs, as the slope over doses within blocks that hold each once.";
    let table = SectionBlock::Grid { caption: caption.into(), grid: price_grid(&list) };
    let sentences = before.lines().map(str::to_owned).map(SectionBlock::Text);
    Ok(sentences.chain([table]).chain(after.into_iter().map(SectionBlock::Text)).collect())
}

/// The table for people.
#[must_use]
pub fn price_grid(list: &PriceList) -> Grid {
    let differ = |field: fn(&PriceRow) -> &str| {
        list.rows.first().is_some_and(|first| list.rows.iter().any(|row| field(row) != field(first)))
    };
    let (cases, metrics) = (differ(|row| &row.subject), differ(|row| &row.metric));
    let has_calls = list.rows.iter().any(|row| row.calls.is_some());
    let mut columns = vec![GridColumn::left("one more")];
    columns.extend(cases.then(|| GridColumn::left("case")));
    columns.extend(metrics.then(|| GridColumn::left("metric")));
    columns.extend([GridColumn::left("costs"), GridColumn::right("which is")]);
    if has_calls {
        columns.extend([GridColumn::right("calls"), GridColumn::left("waited for")]);
    }
    let mut grid = Grid::new(columns);
    for row in &list.rows {
        let mut cells: Vec<GridCell> = vec![unit_of_dose(row).into()];
        cells.extend(cases.then(|| row.subject.as_str().into()));
        cells.extend(metrics.then(|| row.metric.as_str().into()));
        cells.push(cost_text(row).into());
        let amount = is_told(row).then(|| amount_text(row.slope.value, &row.unit));
        cells.push(amount.unwrap_or_default().into());
        if has_calls {
            cells.push(row.calls.map(format_digits).unwrap_or_default().into());
            let waited = row.waited.filter(|_| is_told(row)).map(|waited| percent_text(waited, false));
            cells.push(waited.unwrap_or_default().into());
        }
        grid.add_row(cells);
    }
    grid
}

/// Whether a row has a price to be told.
fn is_told(row: &PriceRow) -> bool {
    !matches!(row.verdict, PriceVerdict::None | PriceVerdict::NeverCalled)
}

/// What stands around the table: what was measured, then what a line cannot say.
#[must_use]
pub fn price_sentences(list: &PriceList) -> (String, Vec<String>) {
    let mut bases: Vec<String> = Vec::new();
    for row in &list.rows {
        let base = format_quantity(row.base, &row.unit);
        let dose = match row.base_dose == 0.0 {
            true => "without".to_owned(),
            false => {
                let amount = format!("{} {}", format_digits(row.base_dose), row.dose_unit);
                format!("at {} of {}", amount.trim_end(), name_of_dose(row))
            }
        };
        let text = format!("{} {}: {base} {dose}, {} blocks", row.subject, row.metric, row.blocks);
        if !bases.contains(&text) {
            bases.push(text);
        }
    }
    let mut after: Vec<String> = list.rows.iter().filter_map(shape_text).collect();
    after.extend(list.left_out.iter().map(|reason| format!("no price: {reason}")));
    let judged = |row: &&PriceRow| !matches!(row.verdict, PriceVerdict::NeverCalled | PriceVerdict::TooFew);
    let prices = list.rows.iter().filter(judged).count();
    let fewest = fewest_blocks(prices, list.confidence);
    let unclear = list.rows.iter().filter(|row| row.verdict == PriceVerdict::Unclear);
    if let Some(blocks) = unclear.map(|row| row.blocks).max().filter(|blocks| *blocks < fewest) {
        after.push(format!(
            "With {blocks} blocks, no price of {prices} can be told from chance: it takes {fewest} blocks."
        ));
    }
    if list.rows.iter().any(|row| row.verdict == PriceVerdict::Priced) {
        after.push(
            "What is added tells what less would be worth as long as the line goes on below what is there: not \
             where threads queue behind one another or a cache is kept warm meanwhile."
                .into(),
        );
    }
    (bases.join("\n"), after)
}

/// A dose and its doses that lie on no line, with what each step costs.
fn shape_text(row: &PriceRow) -> Option<String> {
    let shape =
        row.shape.as_ref().filter(|shape| shape.is_bent && row.verdict != PriceVerdict::NeverCalled)?;
    let number = |dose: &f64| format_digits((*dose * 10.0).round() / 10.0);
    let steps = row.asked.windows(2).zip(&shape.steps).map(|(ends, step)| {
        let ends: Vec<String> = ends.iter().map(number).collect();
        format!("from {} {} {}", ends.join(" to "), row.dose_unit, percent_text(*step, true))
    });
    let steps: Vec<String> = steps.collect();
    Some(format!("{} is no line: one more costs {}", name_of_dose(row), steps.join(", ")))
}

/// `1 µs in fsync`, `1 % of cpu-max`
fn unit_of_dose(row: &PriceRow) -> String {
    let (unit, place) = dose_words(row);
    format!("{unit} {place}")
}

/// `1 µs` and `in fsync`
fn dose_words(row: &PriceRow) -> (String, String) {
    let unit = if row.dose_unit.is_empty() { "1".to_owned() } else { format!("1 {}", row.dose_unit) };
    let word = if row.kind == FactorKind::Syscall { "in" } else { "of" };
    (unit, format!("{word} {}", name_of_dose(row)))
}

fn name_of_dose(row: &PriceRow) -> &str {
    if row.kind == FactorKind::Syscall { &row.key } else { &row.factor }
}

fn cost_text(row: &PriceRow) -> String {
    match row.verdict {
        PriceVerdict::Priced => percent_text(row.share, true),
        PriceVerdict::Unclear => format!("{}, may be chance", percent_text(row.share, true)),
        PriceVerdict::TooFew => {
            format!("{}, too few blocks for an interval", percent_text(row.share, true))
        }
        PriceVerdict::NeverCalled => "nothing: it is never called".into(),
        PriceVerdict::None => match row.share.largest() {
            Some(most) => format!("none found: at most {}\u{a0}%", format_digits(two_digits(most * 100.0))),
            None => "none found".into(),
        },
    }
}

fn two_digits(value: f64) -> f64 {
    let size = 10_f64.powf(value.abs().max(1e-12).log10().floor() - 1.0);
    (value / size).ceil() * size
}

/// `+0.81 % [0.62, 1.02]`
fn percent_text(estimate: PriceEstimate, signed: bool) -> String {
    let percent = |value: f64| value * 100.0;
    let width = estimate.low.zip(estimate.high).map_or(estimate.value.abs(), |(low, high)| high - low);
    let decimals = decimals_of(percent(width));
    let value = match signed {
        true => format_signed(percent(estimate.value), decimals),
        false => format!("{:.decimals$}", percent(estimate.value)),
    };
    let limits = estimate.low.zip(estimate.high);
    let limits = limits
        .map(|(low, high)| format!("\u{a0}[{:.decimals$},\u{a0}{:.decimals$}]", percent(low), percent(high)));
    format!("{value}\u{a0}%{}", limits.unwrap_or_default())
}

/// As many decimals as show two digits of a width; a unit of a dose may be small.
fn decimals_of(width: f64) -> usize {
    if width <= 0.0 || !width.is_finite() {
        return 2;
    }
    usize::try_from(1 - width.log10().floor() as i32).unwrap_or(0).min(9)
}

fn amount_text(value: f64, unit: &str) -> String {
    let scale = UnitScale::fitting(unit, value);
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}\u{a0}{}", scale.format_number(value), scale.name).trim_end().to_owned()
}

/// The rows for programs that read tables.
#[must_use]
pub fn price_rows_grid(list: &PriceList) -> Grid {
    let names = [
        "factor",
        "kind",
        "key",
        "case",
        "metric",
        "unit",
        "dose_unit",
        "base",
        "slope",
        "slope_low",
        "slope_high",
        "share",
        "share_low",
        "share_high",
        "p",
        "q",
        "verdict",
        "blocks",
        "calls",
        "waited",
        "waited_low",
        "waited_high",
        "curvature_p",
    ];
    let mut grid = Grid::new(names.map(GridColumn::left));
    for row in &list.rows {
        let verdict = serde_json::to_value(row.verdict).ok();
        let verdict = verdict.as_ref().and_then(|word| word.as_str()).unwrap_or_default().to_owned();
        let estimate = |one: PriceEstimate| [GridCell::from(one.value), one.low.into(), one.high.into()];
        let mut cells: Vec<GridCell> = vec![
            row.factor.as_str().into(),
            row.kind.to_string().into(),
            row.key.as_str().into(),
            row.subject.as_str().into(),
            row.metric.as_str().into(),
            row.unit.as_str().into(),
            row.dose_unit.as_str().into(),
            row.base.into(),
        ];
        cells.extend(estimate(row.slope));
        cells.extend(estimate(row.share));
        cells.extend([row.p.into(), row.q.into(), verdict.into(), row.blocks.into(), row.calls.into()]);
        let missing = [GridCell::missing(), GridCell::missing(), GridCell::missing()];
        cells.extend(row.waited.map_or(missing, estimate));
        cells.push(row.shape.as_ref().map(|shape| shape.p).into());
        grid.add_row(cells);
    }
    grid
}
