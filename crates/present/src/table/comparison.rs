//! Owns a comparison in the four formats. It refuses to leave out a number: what the table folds, JSON and CSV hold.

use perflab_analyze::{Comparison, Row, Scale, Summary};

use super::format::{Format, TableError};
use super::words::{headline, tally};
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
pub fn render(
    comparison: &Comparison,
    format: Format,
    width: Option<usize>,
    colour: bool,
) -> Result<String, TableError> {
    match format {
        Format::Table => Ok(tables(std::slice::from_ref(comparison), width, colour)),
        Format::Json => Ok(serde_json::to_string_pretty(comparison)? + "\n"),
        Format::Csv => csv(std::slice::from_ref(comparison)),
        Format::Markdown => as_markdown(comparison),
    }
}

/// Several comparisons of the same runs (one a factor): their tables one below the other, then what is to be said of
/// them, once. In JSON a list.
///
/// # Errors
/// A number that JSON or CSV cannot hold.
pub fn render_all(
    comparisons: &[Comparison],
    format: Format,
    width: Option<usize>,
    colour: bool,
) -> Result<String, TableError> {
    match format {
        Format::Table => Ok(tables(comparisons, width, colour)),
        Format::Json => Ok(serde_json::to_string_pretty(comparisons)? + "\n"),
        Format::Csv => csv(comparisons),
        Format::Markdown => {
            comparisons.iter().map(|comparison| render(comparison, format, width, colour)).collect()
        }
    }
}

fn tables(comparisons: &[Comparison], width: Option<usize>, on: bool) -> String {
    let mut lines: Vec<String> = Vec::new();
    for comparison in comparisons {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(table(comparison, width, on));
    }
    lines.extend(advice::lines(comparisons, width.unwrap_or(TEXT_WIDTH), on));
    lines.into_iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn table(comparison: &Comparison, width: Option<usize>, on: bool) -> Vec<String> {
    let (rows, left_out) = shown(comparison);
    let text_width = width.unwrap_or(TEXT_WIDTH);
    let mut lines: Vec<String> = advice::wrapped(&headline(comparison), text_width, "", "  ");
    lines.push(String::new());
    let layout = wide::lines(comparison, &rows, width, on);
    lines.extend(layout.unwrap_or_else(|| stacked::lines(comparison, &rows, text_width, on)));
    lines.push(String::new());
    if left_out > 0 {
        let text = format!(
            "{left_out} explanatory rows with less to say are left out: --metric explanatory shows all"
        );
        lines.extend(advice::wrapped(&text, text_width, "", "  ").iter().map(|line| colour::dim(line, on)));
    }
    lines.extend(advice::wrapped(&tally(comparison), text_width, "", "  "));
    lines
}

/// The rows of a table and how many it leaves out: all where metrics were chosen, else primary rows all, then the
/// explanatory rows of each case with the largest change against the width of its interval.
fn shown(comparison: &Comparison) -> (Vec<&Row>, usize) {
    let groups = comparison.rows.chunk_by(|a, b| a.subject == b.subject);
    let rows: Vec<&Row> = match comparison.chosen {
        true => comparison.rows.iter().collect(),
        false => groups.flat_map(most_telling).collect(),
    };
    let left_out = comparison.rows.len() - rows.len();
    (rows, left_out)
}

fn most_telling(group: &[Row]) -> Vec<&Row> {
    let (mut rows, mut rest): (Vec<&Row>, Vec<&Row>) = group.iter().partition(|row| row.primary);
    if rest.len() > MOST_EXPLANATORY {
        rest.sort_by(|a, b| evidence(b).total_cmp(&evidence(a)));
        rest.truncate(MOST_EXPLANATORY);
    }
    rows.append(&mut rest);
    rows
}

/// |change| against the width of its interval; nothing without an interval.
fn evidence(row: &Row) -> f64 {
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

fn as_markdown(comparison: &Comparison) -> Result<String, TableError> {
    let mut text = format!("**{}**\n\n", markdown::escaped(&headline(comparison)));
    for group in comparison.rows.chunk_by(|a, b| a.subject == b.subject) {
        let rows: Vec<&Row> = group.iter().collect();
        let subject = group.first().map_or(String::new(), |row| markdown::escaped(&row.subject));
        let table =
            wide::grid(comparison, &rows, wide::Needs::Beside).render(Format::Markdown, None, false)?;
        text += &format!("### {subject}\n\n{table}\n");
    }
    text += &format!("{}\n", tally(comparison));
    let notes = advice::footnotes(std::slice::from_ref(comparison));
    let notes: Vec<String> = notes.iter().map(|(letter, meaning)| format!("{letter}: {meaning}")).collect();
    if !notes.is_empty() {
        text += &format!("\nFlags: {}.\n", notes.join("; "));
    }
    for warning in advice::folded(std::slice::from_ref(comparison)) {
        text += &format!("\n**Warning: {}.** {}.\n\n", warning.headline, warning.advice);
        let details = warning.details.iter().map(|detail| format!("- {}\n", markdown::escaped(detail)));
        text.extend(details);
    }
    text.extend(comparison.notes.iter().map(|note| format!("\n_{}_\n", markdown::escaped(note))));
    Ok(text)
}

/// One line of titles, then the rows of all comparisons: each says what is compared with what.
fn csv(comparisons: &[Comparison]) -> Result<String, TableError> {
    let titles = FIELDS.iter().map(|(title, _)| (*title).to_owned()).collect();
    let rows = |of: &'_ Comparison| of.rows.iter().map(|row| csv_row(of, row)).collect::<Vec<_>>();
    csv_rows::text(titles, comparisons.iter().flat_map(rows))
}

type Field = (&'static str, fn(&Comparison, &Row) -> String);

/// The columns of CSV: one line declares one.
#[rustfmt::skip]
const FIELDS: &[Field] = &[
    ("subject", |_, row| row.subject.clone()),
    ("workload", |_, row| row.workload.clone()),
    ("factor", |of, _| text(of.by.as_ref())),
    ("baseline_name", |of, _| of.baseline.clone()),
    ("candidate_name", |_, row| row.candidate_name.clone()),
    ("metric", |_, row| row.metric.clone()),
    ("twins", |_, row| row.twins.join(" ")),
    ("unit", |_, row| row.unit.to_string()),
    ("direction", |_, row| row.direction.to_string()),
    ("primary", |_, row| row.primary.to_string()),
    ("baseline", |_, row| of_side(&row.baseline, |side| side.median)),
    ("candidate", |_, row| of_side(&row.candidate, |side| side.median)),
    ("scale", |_, row| text(row.change.map(|change| if change.scale == Scale::Ratio { "ratio" } else { "absolute" }))),
    ("change", |_, row| text(row.change.map(|change| change.value))),
    ("low", |_, row| text(row.change.and_then(|change| change.interval).map(|interval| interval.low))),
    ("high", |_, row| text(row.change.and_then(|change| change.interval).map(|interval| interval.high))),
    ("level", |of, row| text(row.change.and_then(|change| change.interval).map(|_| of.confidence))),
    ("coverage", |_, row| text(row.change.and_then(|change| change.interval).map(|interval| interval.level))),
    ("verdict", |_, row| row.verdict.word().into()),
    ("p", |_, row| text(row.p)),
    ("q", |_, row| text(row.q)),
    ("margin", |_, row| row.margin.to_string()),
    ("baseline_n", |_, row| of_side(&row.baseline, |side| side.n)),
    ("baseline_boots", |_, row| of_side(&row.baseline, |side| side.boots)),
    ("baseline_failed", |_, row| of_side(&row.baseline, |side| side.failed)),
    ("candidate_n", |_, row| of_side(&row.candidate, |side| side.n)),
    ("candidate_boots", |_, row| of_side(&row.candidate, |side| side.boots)),
    ("candidate_failed", |_, row| of_side(&row.candidate, |side| side.failed)),
    ("paired", |_, row| text(row.method.map(|method| method.paired))),
    ("needed", |_, row| text(row.needed)),
    ("flags", |_, row| row.flags.iter().map(|flag| flag.letter()).collect()),
];

fn csv_row(of: &Comparison, row: &Row) -> Vec<String> {
    FIELDS.iter().map(|(_, field)| field(of, row)).collect()
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn of_side<T: ToString>(side: &Option<Summary>, field: fn(&Summary) -> T) -> String {
    text(side.as_ref().map(field))
}
