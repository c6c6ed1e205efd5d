//! Chosen statistics (`--stat`), gains with their geometric mean, effects of two factors.
//!
//! A sample without a statistic has an empty cell; rows that are not members of a mean, and pairs without a row, are
//! named.

use perflab_analyze::compare::recap::{RecapGain, RecapOmission, RecapOmissionReason};
use perflab_analyze::interaction::EffectRow;
use perflab_analyze::{
    Comparison, ComparisonRecap, FailureComparison, InteractionTable, IntervalMeaning, SampleStatistic,
    VerdictBasis, VerdictRow,
};
use perflab_model::quantity::{UnitScale, format_digits, format_probability};
use serde::Serialize;

use crate::comparison::row_text::{
    NOTHING, RowText, UNBOUNDED, change_title, failure_words, format_change, shorten_name, side_names,
};
use crate::grid::{Grid, GridCell, GridColumn, GridError, OutputFormat};
use crate::method_text::{ResultWithNotes, describe_method, percent_of_level};
use crate::terminal_text::wrap_text;

/// The comparison, two columns a statistic: baseline and candidate.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_statistics(
    comparison: &Comparison,
    chosen: &[SampleStatistic],
    format: OutputFormat,
    width: Option<usize>,
    colour: bool,
) -> Result<String, GridError> {
    let mut grid = Grid::new(statistic_columns(comparison, chosen));
    for row in &comparison.rows {
        grid.add_row(statistic_cells(row, chosen));
    }
    grid.render(format, width, colour)
}

fn statistic_columns(comparison: &Comparison, chosen: &[SampleStatistic]) -> Vec<GridColumn> {
    let mut columns: Vec<GridColumn> = ["case", "metric", "unit", "candidate"].map(GridColumn::left).into();
    let pairs = chosen.iter().flat_map(|statistic| {
        [shorten_name(&comparison.baseline, &side_names(comparison)), "candidate".into()]
            .map(|side| format!("{statistic} {side}"))
    });
    columns.extend(pairs.map(|title| GridColumn::right(&title)));
    columns.push(GridColumn::right(&change_title(comparison)));
    columns.push(GridColumn::left("verdict"));
    columns
}

fn statistic_cells(row: &VerdictRow, chosen: &[SampleStatistic]) -> Vec<GridCell> {
    let words = RowText::from_row(row);
    let samples = [&row.baseline, &row.candidate].map(|side| {
        let values = side.iter().flat_map(|summary| summary.values.iter()).map(|point| point.value);
        values.collect::<Vec<f64>>()
    });
    let found: Vec<[Option<f64>; 2]> = chosen
        .iter()
        .map(|statistic| [&samples[0], &samples[1]].map(|values| statistic.value(values, row.direction)))
        .collect();
    let with_unit = chosen.iter().zip(&found).filter(|(statistic, _)| statistic.has_unit());
    let largest =
        with_unit.flat_map(|(_, pair)| pair.iter().flatten()).fold(0.0_f64, |most, v| most.max(v.abs()));
    let unit = UnitScale::fitting(&row.unit.0, largest);
    let mut cells = vec![
        GridCell::from(row.subject.as_str()),
        GridCell::from(row.metric.as_str()),
        GridCell::with_text(unit.name.as_str(), row.unit.0.as_str()),
        GridCell::from(row.candidate_name.as_str()),
    ];
    for (statistic, pair) in chosen.iter().zip(found) {
        cells.extend(pair.map(|value| statistic_cell(value, *statistic, &unit)));
    }
    cells.push(GridCell::with_text(words.change, row.change.map(|change| change.value)));
    cells.push(GridCell::with_text(words.verdict, row.verdict_word()));
    cells
}

fn statistic_cell(value: Option<f64>, statistic: SampleStatistic, unit: &UnitScale) -> GridCell {
    let Some(value) = value else { return GridCell::missing() };
    let text = match statistic {
        SampleStatistic::Variation | SampleStatistic::HarmonicVariation => format!("{value:.2} %"),
        statistic if statistic.has_unit() => unit.format_number(value),
        _ => format_digits(value),
    };
    GridCell::with_text(text, value)
}

const TEXT_WIDTH: usize = 100;

/// The recap. `width` breaks the notes of a table; the table itself is as wide as it must be.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_gains(
    recap: &ComparisonRecap,
    format: OutputFormat,
    width: Option<usize>,
) -> Result<String, GridError> {
    if format == OutputFormat::Json {
        return Ok(serde_json::to_string_pretty(&RecapDocument::new(recap))? + "\n");
    }
    let people = format == OutputFormat::Table || format == OutputFormat::Markdown;
    let table = if people { gain_grid(recap) } else { gain_record_grid(recap) };
    let mut text = table.render(format, None, false)?;
    if people {
        text.push('\n');
        for note in gain_notes(recap) {
            let lines = wrap_text(&format!("note: {note}"), width.unwrap_or(TEXT_WIDTH), "", "  ");
            text.extend(lines.into_iter().map(|line| line + "\n"));
        }
    }
    Ok(text)
}

fn gain_grid(recap: &ComparisonRecap) -> Grid {
    let columns = [GridColumn::left("gain (above 1 is better)"), GridColumn::left("metric")];
    let sides = recap.candidates.iter().map(|name| GridColumn::right(&shorten_name(name, &recap.candidates)));
    let mut grid = Grid::new(columns.into_iter().chain(sides));
    for member in &recap.members {
        let names = [GridCell::from(member.subject.as_str()), GridCell::from(member.metric.as_str())];
        grid.add_row(
            names.into_iter().chain(member.gains.iter().map(|gain| GridCell::from(gain_text(gain)))),
        );
    }
    if !recap.overall.is_empty() {
        let members = format!("of {}", recap.members.len());
        let names = [GridCell::from("geometric mean"), GridCell::from(members)];
        grid.add_row(
            names.into_iter().chain(recap.overall.iter().map(|gain| GridCell::from(gain_text(gain)))),
        );
    }
    grid
}

/// `1.250 [1.241, 1.259]`; `1.250 (1.241 to 1.259)` where it is the range between two single runs.
fn gain_text(gain: &RecapGain) -> String {
    let interval = gain.interval.map(|i| match gain.covers {
        IntervalMeaning::Change => format!(" [{:.3}, {:.3}]", i.low, i.high),
        IntervalMeaning::TheseRuns => format!(" ({:.3} to {:.3})", i.low, i.high),
        IntervalMeaning::Unbounded => UNBOUNDED.into(),
    });
    let unbounded = if gain.covers == IntervalMeaning::Unbounded { UNBOUNDED } else { "" };
    format!("{:.3}{}", gain.ratio, interval.unwrap_or_else(|| unbounded.into()))
}

fn gain_record_grid(recap: &ComparisonRecap) -> Grid {
    let titles = ["subject", "metric", "candidate", "gain", "low", "high", "covers"];
    let mut grid = Grid::new(titles.map(GridColumn::left));
    let mut add = |subject: &str, metric: &str, gains: &[RecapGain]| {
        for (candidate, gain) in recap.candidates.iter().zip(gains) {
            let numbers = [Some(gain.ratio), gain.interval.map(|i| i.low), gain.interval.map(|i| i.high)];
            let names = [subject, metric, candidate].map(GridCell::from);
            let covers = GridCell::from(gain.covers.word());
            grid.add_row(names.into_iter().chain(numbers.map(GridCell::from)).chain([covers]));
        }
    };
    for member in &recap.members {
        add(&member.subject, &member.metric, &member.gains);
    }
    add("geometric mean", "", &recap.overall);
    grid
}

fn gain_notes(recap: &ComparisonRecap) -> Vec<String> {
    let whose = if recap.primary_only { "primary metrics" } else { "metrics" };
    let mut notes = vec![format!(
        "gain: candidate / baseline where more is better, baseline / candidate where less is; {whose} only; its interval is \
         that of the change"
    )];
    if recap.members.is_empty() {
        notes.push("no geometric mean: no metric has a gain on every side".into());
    }
    let left_out = |one: &RecapOmission| {
        format!("left out: {}, {} {}", one.subject, one.metric, describe_omission_reason(&one.reason))
    };
    notes.extend(recap.left_out.iter().map(left_out));
    notes
}

fn describe_omission_reason(reason: &RecapOmissionReason) -> String {
    match reason {
        RecapOmissionReason::NoDirection => "has no better or worse".into(),
        RecapOmissionReason::NoValue { candidate } => {
            format!("has no value on {}", candidate.as_deref().unwrap_or("the baseline"))
        }
        RecapOmissionReason::NotEverywhere => "was not measured on every side".into(),
        RecapOmissionReason::NotAboveZero => "has values that are not above zero, so no ratio".into(),
    }
}

/// A recap as JSON, with the reasons of omissions in words.
#[derive(Serialize)]
struct RecapDocument<'a> {
    #[serde(flatten)]
    recap: &'a ComparisonRecap,
    left_out: Vec<RecapOmissionDocument<'a>>,
}

#[derive(Serialize)]
struct RecapOmissionDocument<'a> {
    subject: &'a str,
    metric: &'a str,
    reason: String,
}

impl<'a> RecapDocument<'a> {
    fn new(recap: &'a ComparisonRecap) -> Self {
        let document = |one: &'a RecapOmission| RecapOmissionDocument {
            subject: &one.subject,
            metric: &one.metric,
            reason: describe_omission_reason(&one.reason),
        };
        RecapDocument { recap, left_out: recap.left_out.iter().map(document).collect() }
    }
}

/// Effects and interactions.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_interactions(
    found: &InteractionTable,
    format: OutputFormat,
    width: Option<usize>,
    colour: bool,
) -> Result<String, GridError> {
    if format == OutputFormat::Json {
        return Ok(serde_json::to_string_pretty(&ResultWithNotes::new(found, &found.notes))? + "\n");
    }
    let mut text = effect_grid(found).render(format, width, colour)?;
    if matches!(format, OutputFormat::Table | OutputFormat::Markdown) {
        text.push('\n');
        let left_out = found.left_out.iter().map(|one| format!("left out: {one}"));
        let notes = found.notes.iter().map(|note| format!("note: {}", describe_method(note)));
        for line in
            left_out.chain(notes).flat_map(|note| wrap_text(&note, width.unwrap_or(TEXT_WIDTH), "", "  "))
        {
            text += &(line + "\n");
        }
    }
    Ok(text)
}

fn effect_grid(found: &InteractionTable) -> Grid {
    let change = format!("change [{} % CI]", percent_of_level(found.confidence));
    let has_failures = found.rows.iter().any(|row| row.failures.is_some());
    let left = ["case", "metric", "effect"].map(GridColumn::left);
    let rest = [
        GridColumn::right(&change),
        GridColumn::left("verdict"),
        GridColumn::right("q"),
        GridColumn::right("blocks"),
    ];
    let failed = has_failures.then(|| GridColumn::right("failed"));
    let mut grid = Grid::new(left.into_iter().chain(rest).chain(failed));
    for row in &found.rows {
        let cells = [
            GridCell::from(row.subject.as_str()),
            GridCell::from(row.metric.as_str()),
            GridCell::from(row.effect.as_str()),
            row.change.map_or_else(
                || GridCell::with_text(NOTHING, serde_json::Value::Null),
                |change| GridCell::with_text(format_change(change, &row.unit.0), change.value),
            ),
            GridCell::with_text(effect_verdict_text(row), row.verdict_word()),
            deciding_q(row).map_or_else(
                || GridCell::with_text(NOTHING, serde_json::Value::Null),
                |q| GridCell::with_text(format_probability(q), q),
            ),
            match (row.blocks, row.change) {
                (Some(blocks), _) => GridCell::from(blocks),
                (None, Some(_)) => GridCell::with_text("means", serde_json::Value::Null),
                (None, None) => GridCell::with_text(NOTHING, serde_json::Value::Null),
            },
        ];
        let failed = has_failures.then(|| match row.failures {
            Some(FailureComparison { baseline, candidate, .. }) => GridCell::with_text(
                format!("{}/{} against {}/{}", candidate.failed, candidate.of, baseline.failed, baseline.of),
                candidate.failed,
            ),
            None => GridCell::with_text(NOTHING, serde_json::Value::Null),
        });
        grid.add_row(cells.into_iter().chain(failed));
    }
    grid
}

/// The q of what the verdict stands on.
fn deciding_q(row: &EffectRow) -> Option<f64> {
    match row.basis {
        VerdictBasis::Failures => row.failures.map(|failures| failures.q),
        _ => row.q,
    }
}

fn effect_verdict_text(row: &EffectRow) -> String {
    let symbol = match row.verdict_word() {
        "better" => '✓',
        "worse" => '✗',
        "same" | "none" => '=',
        "interacts" => '×',
        "changed" => '≠',
        _ => '?',
    };
    format!("{symbol} {}{}", row.verdict_word(), failure_words(row.basis, row.verdict))
}
