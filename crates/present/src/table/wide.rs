//! Owns the layout of a comparison with one line a row, grouped by case. It refuses to wrap: what does not fit is
//! stacked instead.

use perflab_analyze::{Comparison, Row};

use super::colour;
use super::grid::{Cell, Column, Grid};
use super::words::{Words, change_title, short, sides};

/// Where an unclear row says how many repetitions would decide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// beside the verdict
    Beside,
    /// in a line of its own, where the terminal is narrow
    Below,
}

/// The groups' lines, if they fit the terminal.
pub(super) fn lines(
    comparison: &Comparison,
    rows: &[&Row],
    width: Option<usize>,
    on: bool,
) -> Option<Vec<String>> {
    let mut layouts = [Needs::Beside, Needs::Below]
        .into_iter()
        .map(|needs| (needs, grid(comparison, rows, needs).lines(None)));
    let fits = |lines: &[String]| {
        lines.iter().all(|line| width.is_none_or(|width| line.chars().count() + 2 <= width))
    };
    let (needs, plain) = layouts.find(|(_, lines)| fits(lines))?;
    Some(grouped(plain, rows, needs, on))
}

/// The titles, then each row under its case.
fn grouped(plain: Vec<String>, rows: &[&Row], needs: Needs, on: bool) -> Vec<String> {
    let mut plain = plain.into_iter();
    let header = plain.next().map(|line| colour::dim(&format!("  {line}"), on));
    let mut lines: Vec<String> = header.into_iter().collect();
    let mut subject = "";
    for (line, row) in plain.zip(rows) {
        if row.subject != subject {
            subject = &row.subject;
            lines.push(colour::bold(subject, on));
        }
        lines.push(format!("  {}", coloured(&line, row, on)));
        let words = Words::of(row);
        if needs == Needs::Below && !words.needed.is_empty() {
            lines.push(colour::dim(&format!("    {}", words.needed.trim_start_matches(", ")), on));
        }
    }
    lines
}

/// The columns, as a grid that Markdown can use too.
pub(super) fn grid(comparison: &Comparison, rows: &[&Row], needs: Needs) -> Grid {
    let many = comparison.candidates.len() > 1;
    let mut grid = Grid::new(columns(comparison, many));
    let beside = sides(comparison);
    for row in rows {
        grid.add(cells(row, many.then_some(&beside), needs));
    }
    grid
}

fn columns(comparison: &Comparison, many: bool) -> Vec<Column> {
    let beside = sides(comparison);
    let candidate = comparison.candidates.first().filter(|_| !many);
    let candidate = candidate.map_or("median".into(), |name| short(name, &beside));
    let titles = [short(&comparison.baseline, &beside), candidate, change_title(comparison)];
    let mut columns = vec![Column::left("metric")];
    columns.extend(many.then(|| Column::left("candidate")));
    columns.extend(titles.iter().map(|title| Column::right(title)));
    columns.push(Column::left("verdict"));
    columns.extend(["q", "n×boots"].map(Column::right));
    columns.push(Column::left("flags"));
    columns
}

fn cells(row: &Row, beside: Option<&Vec<String>>, needs: Needs) -> Vec<Cell> {
    let words = Words::of(row);
    let needed = if needs == Needs::Beside { words.needed.as_str() } else { "" };
    let mut texts = vec![words.metric];
    texts.extend(beside.map(|beside| short(&row.candidate_name, beside)));
    texts.extend([words.baseline, words.candidate, words.change, format!("{}{needed}", words.verdict)]);
    texts.extend([words.q, words.repetitions, words.flags]);
    texts.into_iter().map(Cell::from).collect()
}

/// The line with its verdict in colour; rows that only explain stand back.
fn coloured(line: &str, row: &Row, on: bool) -> String {
    if !on {
        return line.into();
    }
    let verdict = Words::of(row).verdict;
    match line.rsplit_once(&verdict) {
        Some((before, after)) => {
            let text = |part: &str| if row.primary { part.to_owned() } else { colour::dim(part, on) };
            format!("{}{}{}", text(before), colour::verdict(row, &verdict, on), text(after))
        }
        None => line.into(),
    }
}
