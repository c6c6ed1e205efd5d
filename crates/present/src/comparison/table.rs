//! The comparison in a terminal, as CSV and as Markdown, with its diagnostics.
//!
//! On a wide terminal one line per row, grouped by case and never wrapped; on a narrow one a few lines per row. What
//! the table folds, JSON and CSV hold. Whatever has a colour has a symbol and a word too.

use std::collections::BTreeSet;

use perflab_analyze::{ChangeScale, Comparison, FailureCount, SideSummary, Verdict, VerdictRow};

use crate::ci_tests::CiTests;
use crate::comparison::answer::answer_lines;
use crate::comparison::document::ComparisonDocument;
use crate::comparison::interval_axis::{ChangeSpan, IntervalAxis};
use crate::comparison::kernel_log_table::KernelLogTable;
use crate::comparison::mail::{StudyComparison, StudyComparisons, comparison_mail, short_lines};
use crate::comparison::row_text::{
    NOTHING, RowText, change_title, comparison_headline, count_verdicts, layout_text, shorten_name,
    side_names, suspect_text, with_one_line_names,
};
use crate::diagnostics;
use crate::grid::{self, Grid, GridCell, GridColumn, GridError, OutputFormat};
use crate::method_text::describe_methods;
use crate::terminal_text::{DIM, bold_text, dim_text, pack_texts, style_text, wrap_text};

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
        OutputFormat::Json => Ok(serde_json::to_string_pretty(&ComparisonDocument::new(comparison))? + "\n"),
        OutputFormat::Csv => comparison_csv(std::slice::from_ref(comparison)),
        OutputFormat::Markdown => comparison_markdown(comparison),
        OutputFormat::Short => Ok(short_lines(comparison)),
        OutputFormat::Mail => Ok(comparison_mail(comparison)),
        OutputFormat::Github | OutputFormat::Junit | OutputFormat::Ktap => {
            Ok(CiTests::of_comparison(comparison, None).render(format).unwrap_or_default())
        }
    }
}

/// Several comparisons of the same runs (one a factor): their tables one below the other, then the remarks on
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
        OutputFormat::Json => {
            let documents: Vec<_> = comparisons.iter().map(ComparisonDocument::new).collect();
            Ok(serde_json::to_string_pretty(&documents)? + "\n")
        }
        OutputFormat::Csv => comparison_csv(comparisons),
        OutputFormat::Short => Ok(comparisons.iter().map(short_lines).collect()),
        OutputFormat::Markdown
        | OutputFormat::Mail
        | OutputFormat::Github
        | OutputFormat::Junit
        | OutputFormat::Ktap => comparisons
            .iter()
            .map(|comparison| render_comparison(comparison, format, width, colour))
            .collect(),
    }
}

fn comparison_lines(comparisons: &[Comparison], width: Option<usize>, on: bool) -> String {
    let text_width = width.unwrap_or(TEXT_WIDTH);
    let mut lines: Vec<String> = answer_lines(comparisons)
        .iter()
        .flat_map(|answer| wrap_text(answer, text_width, "", "  "))
        .map(|line| bold_text(&line, on))
        .collect();
    for comparison in comparisons {
        lines.push(String::new());
        lines.extend(comparison_table(&with_one_line_names(comparison), width, on));
    }
    lines.extend(diagnostics::diagnostic_lines(comparisons, text_width, on));
    lines.into_iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn comparison_table(comparison: &Comparison, width: Option<usize>, on: bool) -> Vec<String> {
    let (rows, left_out) = rows_worth_showing(comparison);
    let text_width = width.unwrap_or(TEXT_WIDTH);
    let mut lines: Vec<String> = wrap_text(&comparison_headline(comparison), text_width, "", "  ");
    lines.push(String::new());
    let layout = one_line_rows(comparison, &rows, width, on);
    lines.extend(layout.unwrap_or_else(|| card_rows(comparison, &rows, text_width, on)));
    lines.push(String::new());
    if left_out > 0 {
        let text = format!(
            "{left_out} explanatory rows with less to say are left out: --metric explanatory shows all"
        );
        lines.extend(wrap_text(&text, text_width, "", "  ").iter().map(|line| dim_text(line, on)));
    }
    lines.extend(wrap_text(&count_verdicts(comparison), text_width, "", "  "));
    lines.extend(layout_lines(comparison).iter().flat_map(|line| wrap_text(line, text_width, "", "  ")));
    lines.extend(kernel_log_lines(comparison, text_width, on));
    lines
}

/// What kernels printed on one side only.
fn kernel_log_lines(comparison: &Comparison, text_width: usize, on: bool) -> Vec<String> {
    let Some(table) = KernelLogTable::new(comparison) else { return Vec::new() };
    let mut lines = vec![String::new()];
    lines.extend(wrap_text(&table.heading, text_width, "", "  "));
    lines.push(String::new());
    // A table for people has no number that cannot be written.
    let grid = table.grid.render(OutputFormat::Table, None, on).unwrap_or_default();
    lines.extend(grid.lines().map(|line| format!("  {line}")));
    lines.push(String::new());
    let notes = table.notes.iter().flat_map(|note| wrap_text(note, text_width, "", "  "));
    lines.extend(notes.map(|line| dim_text(&line, on)));
    lines
}

/// How much of each change that decides is where code and stack lie.
fn layout_lines(comparison: &Comparison) -> Vec<String> {
    let line = |row: &&VerdictRow| Some(format!("{}, {}: {}", row.subject, row.metric, layout_text(row)?));
    comparison.deciding_rows().iter().filter_map(line).collect()
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
    let comparison = &*with_one_line_names(comparison);
    let answers = answer_lines(std::slice::from_ref(comparison));
    let mut text = format!(
        "**{}**\n\n{}\n\n",
        grid::escape_markdown(&answers.join(" ")),
        grid::escape_markdown(&comparison_headline(comparison))
    );
    for group in comparison.rows.chunk_by(|a, b| a.subject == b.subject) {
        let rows: Vec<&VerdictRow> = group.iter().collect();
        let subject = group.first().map_or(String::new(), |row| grid::escape_markdown(&row.subject));
        let table = comparison_grid(comparison, &rows, SampleSizePlacement::Beside, None).render(
            OutputFormat::Markdown,
            None,
            false,
        )?;
        text += &format!("### {subject}\n\n{table}\n");
    }
    text += &format!("{}\n", count_verdicts(comparison));
    if let Some(table) = KernelLogTable::new(comparison) {
        let rows = table.grid.render(OutputFormat::Markdown, None, false)?;
        text += &format!("\n### {}\n\n{rows}\n", grid::escape_markdown(&table.heading));
        text.extend(table.notes.iter().map(|note| format!("_{}_\n\n", grid::escape_markdown(note))));
    }
    let notes = diagnostics::flag_footnotes(std::slice::from_ref(comparison));
    let notes: Vec<String> = notes.iter().map(|(letter, meaning)| format!("{letter}: {meaning}")).collect();
    if !notes.is_empty() {
        text += &format!("\nFlags: {}.\n", notes.join("; "));
    }
    for warning in diagnostics::group_diagnostics(std::slice::from_ref(comparison)) {
        text += &format!("\n**Warning: {}.** {}.\n\n", warning.headline, warning.advice);
        let details = warning.details.iter().map(|detail| format!("- {}\n", grid::escape_markdown(detail)));
        text.extend(details);
    }
    let notes = describe_methods(&comparison.notes);
    text.extend(notes.iter().map(|note| format!("\n_{}_\n", grid::escape_markdown(note))));
    Ok(text)
}

/// A section a study: its table, or why there is none.
///
/// # Errors
/// A number that the table cannot hold.
pub fn studies_markdown(found: &StudyComparisons) -> Result<String, GridError> {
    let section = |study: &StudyComparison| {
        let text = match &study.outcome {
            Ok(comparison) => render_comparison(comparison, OutputFormat::Markdown, None, false)?,
            Err(reason) => grid::escape_markdown(reason),
        };
        Ok(format!("## {}\n\n{text}\n", grid::escape_markdown(&study.study)))
    };
    let sections = found.studies.iter().map(section).collect::<Result<String, GridError>>()?;
    let one_sided =
        found.one_sided.iter().map(|(study, side)| grid::escape_markdown(&format!("{study} (only {side})")));
    let one_sided: Vec<String> = one_sided.collect();
    Ok(match one_sided.is_empty() {
        true => sections,
        false => format!("{sections}\nNot on both sides: {}\n", one_sided.join(", ")),
    })
}

/// One line of titles, then the rows of all comparisons: each says what is compared with what.
fn comparison_csv(comparisons: &[Comparison]) -> Result<String, GridError> {
    let titles = FIELDS.iter().map(|(title, _)| (*title).to_owned()).collect();
    let rows = |of: &'_ Comparison| of.rows.iter().map(|row| csv_row_texts(of, row)).collect::<Vec<_>>();
    grid::write_csv(titles, comparisons.iter().flat_map(rows))
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
    ("covers", |_, row| optional_text(row.change.map(|change| change.covers.word()))),
    ("verdict", |_, row| row.verdict_word().into()),
    ("p", |_, row| optional_text(row.p)),
    ("q", |_, row| optional_text(row.q)),
    ("margin", |_, row| row.margin.to_string()),
    ("no_larger_than", |_, row| optional_text(row.no_larger_than)),
    ("detectable", |_, row| optional_text(row.detectable)),
    ("baseline_n", |_, row| side_field_text(&row.baseline, |side| side.n)),
    ("baseline_boots", |_, row| side_field_text(&row.baseline, |side| side.boots)),
    ("baseline_failed", |_, row| optional_text(failed_iterations(&row.baseline, row.failures.map(|both| both.baseline)))),
    ("candidate_n", |_, row| side_field_text(&row.candidate, |side| side.n)),
    ("candidate_boots", |_, row| side_field_text(&row.candidate, |side| side.boots)),
    ("candidate_failed", |_, row| optional_text(failed_iterations(&row.candidate, row.failures.map(|both| both.candidate)))),
    ("paired", |_, row| optional_text(row.method.map(|method| method.paired))),
    ("needed", |_, row| optional_text(row.needed)),
    ("basis", |_, row| row.basis.word().into()),
    ("flags", |_, row| row.flags.iter().map(|flag| flag.letter()).collect()),
    ("deciding_q", |_, row| optional_text(row.deciding_q())),
    ("small_change", |_, row| optional_text(row.small_change.map(|small| small.word()))),
    ("study", |of, _| study_titles(of)),
    ("same_low", |_, row| optional_text(row.change.and_then(|change| change.narrow).map(|interval| interval.low))),
    ("same_high", |_, row| optional_text(row.change.and_then(|change| change.narrow).map(|interval| interval.high))),
];

/// The studies of the runs, each once.
fn study_titles(of: &Comparison) -> String {
    let titles: BTreeSet<&str> = of.runs.iter().map(|run| run.study.as_str()).collect();
    titles.into_iter().collect::<Vec<_>>().join("; ")
}

fn csv_row_texts(of: &Comparison, row: &VerdictRow) -> Vec<String> {
    FIELDS.iter().map(|(_, field)| field(of, row)).collect()
}

fn optional_text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Iterations of a side that failed, also where none gave a value.
fn failed_iterations(side: &Option<SideSummary>, failures: Option<FailureCount>) -> Option<usize> {
    failures.map(|count| count.failed).or(side.as_ref().map(|side| side.failed))
}

fn side_field_text<T: ToString>(side: &Option<SideSummary>, field: fn(&SideSummary) -> T) -> String {
    optional_text(side.as_ref().map(field))
}

/// Where an unclear row says how many repetitions would decide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SampleSizePlacement {
    /// beside the verdict
    Beside,
    /// in a line of its own, where the terminal is narrow
    Below,
}

/// The groups' lines, if they fit the terminal.
fn one_line_rows(
    comparison: &Comparison,
    rows: &[&VerdictRow],
    width: Option<usize>,
    on: bool,
) -> Option<Vec<String>> {
    let drawing = width.and_then(|_| IntervalDrawing::of_rows(rows));
    let mut layouts = [
        (SampleSizePlacement::Beside, drawing.as_ref()),
        (SampleSizePlacement::Beside, None),
        (SampleSizePlacement::Below, None),
    ]
    .into_iter()
    .map(|(needs, drawing)| (needs, comparison_grid(comparison, rows, needs, drawing).lines(None)));
    let fits = |lines: &[String]| {
        lines.iter().all(|line| width.is_none_or(|width| line.chars().count() + 2 <= width))
    };
    let (needs, plain) = layouts.find(|(_, lines)| fits(lines))?;
    Some(group_rows(plain, rows, needs, on))
}

/// The titles, then each row under its case.
fn group_rows(plain: Vec<String>, rows: &[&VerdictRow], needs: SampleSizePlacement, on: bool) -> Vec<String> {
    let mut plain = plain.into_iter();
    let header = plain.next().map(|line| dim_text(&format!("  {line}"), on));
    let mut lines: Vec<String> = header.into_iter().collect();
    let mut subject = "";
    for (line, row) in plain.zip(rows) {
        if row.subject != subject {
            subject = &row.subject;
            lines.push(bold_text(subject, on));
        }
        lines.push(format!("  {}", colour_row_line(&line, row, on)));
        let words = RowText::from_row(row);
        if needs == SampleSizePlacement::Below && !words.needed.is_empty() {
            lines.push(dim_text(&format!("    {}", words.needed.trim_start_matches(", ")), on));
        }
        lines.extend(suspect_lines(row, TEXT_WIDTH, on));
    }
    lines
}

/// The intervals of a table drawn in characters, on one axis.
pub(crate) struct IntervalDrawing {
    axis: IntervalAxis,
}

impl IntervalDrawing {
    /// Characters of the axis.
    const WIDTH: usize = 25;

    fn of_rows(rows: &[&VerdictRow]) -> Option<Self> {
        let spans: Vec<ChangeSpan> = rows.iter().filter_map(|row| ChangeSpan::from_row(row)).collect();
        (!spans.is_empty()).then(|| IntervalDrawing { axis: IntervalAxis::spanning(&spans) })
    }

    fn place(&self, change: f64) -> usize {
        (self.axis.share(change) * (Self::WIDTH - 1) as f64).round() as usize
    }

    /// The title: zero, and as many ticks as have room.
    fn scale_text(&self) -> String {
        let mut line = vec![' '; Self::WIDTH];
        let ticks = self.axis.ticks();
        let (zero, others): (Vec<_>, Vec<_>) = ticks.into_iter().partition(|tick| tick.text == "0");
        for tick in zero.into_iter().chain(others) {
            let text: Vec<char> = tick.text.replace('\u{a0}', "").chars().collect();
            let middle = (tick.share * (Self::WIDTH - 1) as f64).round() as usize;
            let from = middle.saturating_sub(text.len() / 2).min(Self::WIDTH - text.len());
            let room = from.saturating_sub(1)..(from + text.len() + 1).min(Self::WIDTH);
            if line.get(room).is_some_and(|room| room.iter().all(|letter| *letter == ' ')) {
                line.splice(from..from + text.len(), text);
            }
        }
        line.into_iter().collect()
    }

    /// `│  ├─●─┤`: zero, the interval, the estimate.
    fn draw_row(&self, row: &VerdictRow) -> String {
        let Some(span) = ChangeSpan::from_row(row) else { return String::new() };
        let mut line = vec![' '; Self::WIDTH];
        let mut set = |at: usize, letter: char| {
            if let Some(one) = line.get_mut(at) {
                *one = letter;
            }
        };
        set(self.place(0.0), '│');
        if let Some((low, high)) = span.limits {
            let (low, high) = (self.place(low), self.place(high));
            (low..=high).for_each(|at| set(at, '─'));
            set(low, '├');
            set(high, '┤');
        }
        set(self.place(span.point), '●');
        line.into_iter().collect()
    }
}

/// The columns, as a grid that Markdown can use too.
pub(crate) fn comparison_grid(
    comparison: &Comparison,
    rows: &[&VerdictRow],
    needs: SampleSizePlacement,
    drawing: Option<&IntervalDrawing>,
) -> Grid {
    let many = comparison.candidates.len() > 1;
    let mut grid = Grid::new(comparison_columns(comparison, many, drawing));
    let beside = side_names(comparison);
    for row in rows {
        grid.add_row(comparison_cells(row, many.then_some(&beside), needs, drawing));
    }
    grid
}

fn comparison_columns(
    comparison: &Comparison,
    many: bool,
    drawing: Option<&IntervalDrawing>,
) -> Vec<GridColumn> {
    let beside = side_names(comparison);
    let candidate = comparison.candidates.first().filter(|_| !many);
    let candidate = candidate.map_or("median".into(), |name| shorten_name(name, &beside));
    let titles = [shorten_name(&comparison.baseline, &beside), candidate, change_title(comparison)];
    let mut columns = vec![GridColumn::left("metric")];
    columns.extend(many.then(|| GridColumn::left("candidate")));
    columns.extend(titles.iter().map(|title| GridColumn::right(title)));
    columns.extend(drawing.map(|drawing| GridColumn::left(&drawing.scale_text())));
    columns.push(GridColumn::right("at most"));
    columns.push(GridColumn::left("verdict"));
    columns.extend(["q", "n"].map(GridColumn::right));
    columns.push(GridColumn::left("flags"));
    columns
}

fn comparison_cells(
    row: &VerdictRow,
    beside: Option<&Vec<String>>,
    needs: SampleSizePlacement,
    drawing: Option<&IntervalDrawing>,
) -> Vec<GridCell> {
    let words = RowText::from_row(row);
    let needed = if needs == SampleSizePlacement::Beside { words.needed.as_str() } else { "" };
    let mut texts = vec![words.metric];
    texts.extend(beside.map(|beside| shorten_name(&row.candidate_name, beside)));
    texts.extend([words.baseline, words.candidate, words.change]);
    texts.extend(drawing.map(|drawing| drawing.draw_row(row)));
    texts.push(words.no_larger_than);
    texts.push(format!("{}{needed}", words.verdict));
    texts.extend([words.q, words.repetitions, words.flags]);
    texts.into_iter().map(GridCell::from).collect()
}

/// The line with its verdict in colour; rows that only explain stand back.
fn colour_row_line(line: &str, row: &VerdictRow, on: bool) -> String {
    if !on {
        return line.into();
    }
    let verdict = RowText::from_row(row).verdict;
    match line.rsplit_once(&verdict) {
        Some((before, after)) => {
            let text = |part: &str| if row.primary { part.to_owned() } else { dim_text(part, on) };
            format!("{}{}{}", text(before), colour_verdict(row, &verdict, on), text(after))
        }
        None => line.into(),
    }
}

/// The groups' lines, each row over as few lines as its texts need.
fn card_rows(comparison: &Comparison, rows: &[&VerdictRow], width: usize, on: bool) -> Vec<String> {
    let many = comparison.candidates.len() > 1;
    let mut lines = Vec::new();
    let mut subject = "";
    for row in rows {
        if row.subject != subject {
            subject = &row.subject;
            lines.extend(wrap_text(subject, width, "", "  ").iter().map(|line| bold_text(line, on)));
        }
        lines.extend(row_card(row, many, width, on));
        lines.extend(suspect_lines(row, width, on));
    }
    lines
}

/// The line beneath a row that says what goes with its change.
fn suspect_lines(row: &VerdictRow, width: usize, on: bool) -> Vec<String> {
    let text = suspect_text(row).into_iter();
    text.flat_map(|text| wrap_text(&text, width, "    ", "      ")).map(|line| dim_text(&line, on)).collect()
}

fn row_card(row: &VerdictRow, many: bool, width: usize, on: bool) -> Vec<String> {
    let words = RowText::from_row(row);
    let side = if many { format!(" ({})", row.candidate_name) } else { String::new() };
    let mut lines = wrap_text(&format!("{}{side}", words.metric), width, "  ", "    ");
    let medians = format!("{} -> {}", words.baseline, words.candidate);
    let flags = if words.flags.is_empty() { String::new() } else { format!(", flags {}", words.flags) };
    let at_most = match words.no_larger_than.as_str() {
        NOTHING => String::new(),
        size => format!("at most {size}, "),
    };
    let rest = format!("{at_most}q {}, n {}{flags}", words.q, words.repetitions);
    let verdict = format!("{}{}", words.verdict, words.needed);
    for line in pack_texts(&[verdict, medians, words.change, rest], width) {
        // Only the first line has the verdict.
        let coloured =
            |text: &str| text.replacen(&words.verdict, &colour_verdict(row, &words.verdict, on), 1);
        lines.extend(wrap_text(&line, width, "    ", "      ").iter().map(|line| coloured(line)));
    }
    lines
}

/// The verdict in its colour: green, red, grey, yellow; bold where the change is beyond the margin.
fn colour_verdict(row: &VerdictRow, text: &str, colour: bool) -> String {
    let beyond = row.relative_change().is_some_and(|change| change.abs() > row.margin);
    let code = match (row.verdict, beyond) {
        (Verdict::Better, true) => "1;32",
        (Verdict::Better, false) => "32",
        (Verdict::Worse, true) => "1;31",
        (Verdict::Worse, false) => "31",
        (Verdict::Same | Verdict::SameHere, _) => DIM,
        (Verdict::Differs, _) => "35",
        (Verdict::Unclear, _) => "33",
    };
    style_text(text, code, colour)
}
