//! Owns the layout of a comparison with one line a row, grouped by case. It refuses to wrap: what does not fit is
//! stacked instead.

use perflab_analyze::{Comparison, Row};

use super::grid::{Cell, Column, Grid};
use super::words::{Words, change_title, short};
use super::{advice, colour};

/// How much a row tells; less where the terminal is narrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Detail {
    /// metric, medians, change, verdict, flags
    Short,
    /// also the repetitions, and how many would decide
    Repetitions,
    /// also q
    Full,
}

/// The groups' lines with as much detail as fits the terminal, if even the least does.
pub(super) fn lines(
    comparison: &Comparison,
    rows: &[&Row],
    width: Option<usize>,
    on: bool,
) -> Option<Vec<String>> {
    let details = [Detail::Full, Detail::Repetitions, Detail::Short];
    let mut layouts = details.into_iter().map(|detail| (detail, grid(comparison, rows, detail).lines(None)));
    let fits = |lines: &[String]| {
        lines.iter().all(|line| width.is_none_or(|width| line.chars().count() + 2 <= width))
    };
    let (detail, plain) = layouts.find(|(_, lines)| fits(lines))?;
    let mut lines = grouped(plain, rows, on);
    if let (true, Some(width)) = (detail != Detail::Full, width) {
        let left_out = if detail == Detail::Short { "q and repetitions are" } else { "q is" };
        let note = format!("{left_out} left out for want of width: widen the terminal, or use --format csv");
        lines.push(String::new());
        lines.extend(advice::wrapped(&note, width, "", "  ").iter().map(|line| colour::dim(line, on)));
    }
    Some(lines)
}

/// The titles, then each row under its case.
fn grouped(plain: Vec<String>, rows: &[&Row], on: bool) -> Vec<String> {
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
    }
    lines
}

/// The columns, as a grid that Markdown can use too.
pub(super) fn grid(comparison: &Comparison, rows: &[&Row], detail: Detail) -> Grid {
    let many = comparison.candidates.len() > 1;
    let mut grid = Grid::new(columns(comparison, many, detail));
    for row in rows {
        grid.add(cells(row, many, detail));
    }
    grid
}

fn columns(comparison: &Comparison, many: bool, detail: Detail) -> Vec<Column> {
    let candidate = comparison.candidates.first().filter(|_| !many);
    let candidate = candidate.map_or("median".into(), |name| short(name));
    let titles = [short(&comparison.baseline), candidate, change_title(comparison)];
    let mut columns = vec![Column::left("metric")];
    columns.extend(many.then(|| Column::left("candidate")));
    columns.extend(titles.iter().map(|title| Column::right(title)));
    columns.push(Column::left("verdict"));
    columns.extend((detail >= Detail::Full).then(|| Column::right("q")));
    columns.extend((detail >= Detail::Repetitions).then(|| Column::right("n×boots")));
    columns.push(Column::left("flags"));
    columns
}

fn cells(row: &Row, many: bool, detail: Detail) -> Vec<Cell> {
    let words = Words::of(row);
    let needed = if detail >= Detail::Repetitions { words.needed.as_str() } else { "" };
    let mut texts = vec![words.metric];
    texts.extend(many.then(|| short(&row.candidate_name)));
    texts.extend([words.baseline, words.candidate, words.change, format!("{}{needed}", words.verdict)]);
    texts.extend((detail >= Detail::Full).then_some(words.q));
    texts.extend((detail >= Detail::Repetitions).then_some(words.repetitions));
    texts.push(words.flags);
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
