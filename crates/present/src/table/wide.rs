//! Owns the layout of a comparison with one line a row, grouped by case. It refuses to wrap: what does not fit is
//! stacked instead.

use perflab_analyze::{Comparison, VerdictRow};

use super::colour;
use super::grid::{Grid, GridCell, GridColumn};
use super::words::{RowText, change_title, shorten_name, side_names};

/// Where an unclear row says how many repetitions would decide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SampleSizePlacement {
    /// beside the verdict
    Beside,
    /// in a line of its own, where the terminal is narrow
    Below,
}

/// The groups' lines, if they fit the terminal.
pub(super) fn one_line_rows(
    comparison: &Comparison,
    rows: &[&VerdictRow],
    width: Option<usize>,
    on: bool,
) -> Option<Vec<String>> {
    let mut layouts = [SampleSizePlacement::Beside, SampleSizePlacement::Below]
        .into_iter()
        .map(|needs| (needs, comparison_grid(comparison, rows, needs).lines(None)));
    let fits = |lines: &[String]| {
        lines.iter().all(|line| width.is_none_or(|width| line.chars().count() + 2 <= width))
    };
    let (needs, plain) = layouts.find(|(_, lines)| fits(lines))?;
    Some(group_rows(plain, rows, needs, on))
}

/// The titles, then each row under its case.
fn group_rows(plain: Vec<String>, rows: &[&VerdictRow], needs: SampleSizePlacement, on: bool) -> Vec<String> {
    let mut plain = plain.into_iter();
    let header = plain.next().map(|line| colour::dim_text(&format!("  {line}"), on));
    let mut lines: Vec<String> = header.into_iter().collect();
    let mut subject = "";
    for (line, row) in plain.zip(rows) {
        if row.subject != subject {
            subject = &row.subject;
            lines.push(colour::bold_text(subject, on));
        }
        lines.push(format!("  {}", colour_row_line(&line, row, on)));
        let words = RowText::from_row(row);
        if needs == SampleSizePlacement::Below && !words.needed.is_empty() {
            lines.push(colour::dim_text(&format!("    {}", words.needed.trim_start_matches(", ")), on));
        }
    }
    lines
}

/// The columns, as a grid that Markdown can use too.
pub(super) fn comparison_grid(
    comparison: &Comparison,
    rows: &[&VerdictRow],
    needs: SampleSizePlacement,
) -> Grid {
    let many = comparison.candidates.len() > 1;
    let mut grid = Grid::new(comparison_columns(comparison, many));
    let beside = side_names(comparison);
    for row in rows {
        grid.add_row(comparison_cells(row, many.then_some(&beside), needs));
    }
    grid
}

fn comparison_columns(comparison: &Comparison, many: bool) -> Vec<GridColumn> {
    let beside = side_names(comparison);
    let candidate = comparison.candidates.first().filter(|_| !many);
    let candidate = candidate.map_or("median".into(), |name| shorten_name(name, &beside));
    let titles = [shorten_name(&comparison.baseline, &beside), candidate, change_title(comparison)];
    let mut columns = vec![GridColumn::left("metric")];
    columns.extend(many.then(|| GridColumn::left("candidate")));
    columns.extend(titles.iter().map(|title| GridColumn::right(title)));
    columns.push(GridColumn::left("verdict"));
    columns.extend(["q", "n×boots"].map(GridColumn::right));
    columns.push(GridColumn::left("flags"));
    columns
}

fn comparison_cells(
    row: &VerdictRow,
    beside: Option<&Vec<String>>,
    needs: SampleSizePlacement,
) -> Vec<GridCell> {
    let words = RowText::from_row(row);
    let needed = if needs == SampleSizePlacement::Beside { words.needed.as_str() } else { "" };
    let mut texts = vec![words.metric];
    texts.extend(beside.map(|beside| shorten_name(&row.candidate_name, beside)));
    texts.extend([words.baseline, words.candidate, words.change, format!("{}{needed}", words.verdict)]);
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
            let text = |part: &str| if row.primary { part.to_owned() } else { colour::dim_text(part, on) };
            format!("{}{}{}", text(before), colour::colour_verdict(row, &verdict, on), text(after))
        }
        None => line.into(),
    }
}
