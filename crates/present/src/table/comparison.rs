//! Owns a comparison in the four formats. It refuses to leave out a number: what the table folds, JSON and CSV hold.

use perflab_analyze::{ChangeScale, Comparison, SideSummary, VerdictRow};

use super::format::{GridError, OutputFormat};
use super::words::{comparison_headline, count_verdicts};
use super::{advice, colour, csv_rows, markdown, stacked, wide};

/// As many explanatory rows of one case stand in a table; CSV, JSON and Markdown have all.
const MOST_EXPLANATORY: usize = 10;
/// Where the width is not known, text below the table is broken here.
const TEXT_WIDTH: usize = 100;

/// The comparison in a format. `width` is the terminal's, in columns (`None` where nothing limits it): a table that
/// does not fit is stacked, not wrapped. `colour` adds colours, beside the symbols.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_comparison(
    comparison: &Comparison,
    format: OutputFormat,
    width: Option<usize>,
    colour: bool,
) -> Result<String, GridError> {
    match format {
        OutputFormat::Table => Ok(comparison_lines(std::slice::from_ref(comparison), width, colour)),
        OutputFormat::Json => Ok(serde_json::to_string_pretty(comparison)? + "\n"),
        OutputFormat::Csv => comparison_csv(std::slice::from_ref(comparison)),
        OutputFormat::Markdown => comparison_markdown(comparison),
    }
}

/// Several comparisons of the same runs (one a factor): their tables one below the other, then what is to be said of
/// them, once. In JSON a list.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_comparisons(
    comparisons: &[Comparison],
    format: OutputFormat,
    width: Option<usize>,
    colour: bool,
) -> Result<String, GridError> {
    match format {
        OutputFormat::Table => Ok(comparison_lines(comparisons, width, colour)),
        OutputFormat::Json => Ok(serde_json::to_string_pretty(comparisons)? + "\n"),
        OutputFormat::Csv => comparison_csv(comparisons),
        OutputFormat::Markdown => comparisons
            .iter()
            .map(|comparison| render_comparison(comparison, format, width, colour))
            .collect(),
    }
}

fn comparison_lines(comparisons: &[Comparison], width: Option<usize>, on: bool) -> String {
    let mut lines: Vec<String> = Vec::new();
    for comparison in comparisons {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(comparison_table(comparison, width, on));
    }
    lines.extend(advice::diagnostic_lines(comparisons, width.unwrap_or(TEXT_WIDTH), on));
    lines.into_iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn comparison_table(comparison: &Comparison, width: Option<usize>, on: bool) -> Vec<String> {
    let (rows, left_out) = rows_worth_showing(comparison);
    let text_width = width.unwrap_or(TEXT_WIDTH);
    let mut lines: Vec<String> = advice::wrap_text(&comparison_headline(comparison), text_width, "", "  ");
    lines.push(String::new());
    let layout = wide::one_line_rows(comparison, &rows, width, on);
    lines.extend(layout.unwrap_or_else(|| stacked::card_rows(comparison, &rows, text_width, on)));
    lines.push(String::new());
    if left_out > 0 {
        let text = format!(
            "{left_out} explanatory rows with less to say are left out: --metric explanatory shows all"
        );
        lines.extend(
            advice::wrap_text(&text, text_width, "", "  ").iter().map(|line| colour::dim_text(line, on)),
        );
    }
    lines.extend(advice::wrap_text(&count_verdicts(comparison), text_width, "", "  "));
    lines
}

/// The rows of a table and how many it leaves out: all where metrics were chosen, else primary rows all, then the
/// explanatory rows of each case with the largest change against the width of its interval.
fn rows_worth_showing(comparison: &Comparison) -> (Vec<&VerdictRow>, usize) {
    let groups = comparison.rows.chunk_by(|a, b| a.subject == b.subject);
    let rows: Vec<&VerdictRow> = match comparison.chosen {
        true => comparison.rows.iter().collect(),
        false => groups.flat_map(strongest_rows).collect(),
    };
    let left_out = comparison.rows.len() - rows.len();
    (rows, left_out)
}

fn strongest_rows(group: &[VerdictRow]) -> Vec<&VerdictRow> {
    let (mut rows, mut rest): (Vec<&VerdictRow>, Vec<&VerdictRow>) =
        group.iter().partition(|row| row.primary);
    if rest.len() > MOST_EXPLANATORY {
        rest.sort_by(|a, b| evidence_strength(b).total_cmp(&evidence_strength(a)));
        rest.truncate(MOST_EXPLANATORY);
    }
    rows.append(&mut rest);
    rows
}

/// |change| against the width of its interval; nothing without an interval.
fn evidence_strength(row: &VerdictRow) -> f64 {
    let Some(change) = row.change else { return 0.0 };
    let width = change.interval.map_or(f64::INFINITY, |interval| interval.high - interval.low);
    if width > 0.0 {
        change.value.abs() / width
    } else if change.value == 0.0 {
        0.0
    } else {
        f64::MAX
    }
}

fn comparison_markdown(comparison: &Comparison) -> Result<String, GridError> {
    let mut text = format!("**{}**\n\n", markdown::escape_markdown(&comparison_headline(comparison)));
    for group in comparison.rows.chunk_by(|a, b| a.subject == b.subject) {
        let rows: Vec<&VerdictRow> = group.iter().collect();
        let subject = group.first().map_or(String::new(), |row| markdown::escape_markdown(&row.subject));
        let table = wide::comparison_grid(comparison, &rows, wide::SampleSizePlacement::Beside).render(
            OutputFormat::Markdown,
            None,
            false,
        )?;
        text += &format!("### {subject}\n\n{table}\n");
    }
    text += &format!("{}\n", count_verdicts(comparison));
    let notes = advice::flag_footnotes(std::slice::from_ref(comparison));
    let notes: Vec<String> = notes.iter().map(|(letter, meaning)| format!("{letter}: {meaning}")).collect();
    if !notes.is_empty() {
        text += &format!("\nFlags: {}.\n", notes.join("; "));
    }
    for warning in advice::group_diagnostics(std::slice::from_ref(comparison)) {
        text += &format!("\n**Warning: {}.** {}.\n\n", warning.headline, warning.advice);
        let details =
            warning.details.iter().map(|detail| format!("- {}\n", markdown::escape_markdown(detail)));
        text.extend(details);
    }
    text.extend(comparison.notes.iter().map(|note| format!("\n_{}_\n", markdown::escape_markdown(note))));
    Ok(text)
}

/// One line of titles, then the rows of all comparisons: each says what is compared with what.
fn comparison_csv(comparisons: &[Comparison]) -> Result<String, GridError> {
    let titles = FIELDS.iter().map(|(title, _)| (*title).to_owned()).collect();
    let rows = |of: &'_ Comparison| of.rows.iter().map(|row| csv_row_texts(of, row)).collect::<Vec<_>>();
    csv_rows::write_csv(titles, comparisons.iter().flat_map(rows))
}

type CsvField = (&'static str, fn(&Comparison, &VerdictRow) -> String);

/// The columns of CSV: one line declares one.
#[rustfmt::skip]
const FIELDS: &[CsvField] = &[
    ("subject", |_, row| row.subject.clone()),
    ("workload", |_, row| row.workload.clone()),
    ("factor", |of, _| optional_text(of.by.as_ref())),
    ("baseline_name", |of, _| of.baseline.clone()),
    ("candidate_name", |_, row| row.candidate_name.clone()),
    ("metric", |_, row| row.metric.clone()),
    ("twins", |_, row| row.twins.join(" ")),
    ("unit", |_, row| row.unit.to_string()),
    ("direction", |_, row| row.direction.to_string()),
    ("primary", |_, row| row.primary.to_string()),
    ("baseline", |_, row| side_field_text(&row.baseline, |side| side.median)),
    ("candidate", |_, row| side_field_text(&row.candidate, |side| side.median)),
    ("scale", |_, row| optional_text(row.change.map(|change| if change.scale == ChangeScale::Ratio { "ratio" } else { "absolute" }))),
    ("change", |_, row| optional_text(row.change.map(|change| change.value))),
    ("low", |_, row| optional_text(row.change.and_then(|change| change.interval).map(|interval| interval.low))),
    ("high", |_, row| optional_text(row.change.and_then(|change| change.interval).map(|interval| interval.high))),
    ("level", |of, row| optional_text(row.change.and_then(|change| change.interval).map(|_| of.confidence))),
    ("coverage", |_, row| optional_text(row.change.and_then(|change| change.interval).map(|interval| interval.level))),
    ("verdict", |_, row| row.verdict.word().into()),
    ("p", |_, row| optional_text(row.p)),
    ("q", |_, row| optional_text(row.q)),
    ("margin", |_, row| row.margin.to_string()),
    ("baseline_n", |_, row| side_field_text(&row.baseline, |side| side.n)),
    ("baseline_boots", |_, row| side_field_text(&row.baseline, |side| side.boots)),
    ("baseline_failed", |_, row| side_field_text(&row.baseline, |side| side.failed)),
    ("candidate_n", |_, row| side_field_text(&row.candidate, |side| side.n)),
    ("candidate_boots", |_, row| side_field_text(&row.candidate, |side| side.boots)),
    ("candidate_failed", |_, row| side_field_text(&row.candidate, |side| side.failed)),
    ("paired", |_, row| optional_text(row.method.map(|method| method.paired))),
    ("needed", |_, row| optional_text(row.needed)),
    ("flags", |_, row| row.flags.iter().map(|flag| flag.letter()).collect()),
];

fn csv_row_texts(of: &Comparison, row: &VerdictRow) -> Vec<String> {
    FIELDS.iter().map(|(_, field)| field(of, row)).collect()
}

fn optional_text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn side_field_text<T: ToString>(side: &Option<SideSummary>, field: fn(&SideSummary) -> T) -> String {
    optional_text(side.as_ref().map(field))
}
