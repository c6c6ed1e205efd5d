//! Owns the layout of a comparison with one line a row, grouped by case. It refuses to wrap: what does not fit is
//! stacked instead.

use perflab_analyze::{Comparison, Row};

use super::colour;
use super::grid::{Cell, Column, Grid};
use super::words::{Words, change_title, short};

/// The groups' lines, if none is wider than the terminal.
pub(super) fn lines(
    comparison: &Comparison,
    rows: &[&Row],
    width: Option<usize>,
    on: bool,
) -> Option<Vec<String>> {
    let grid = grid(comparison, rows);
    let plain = grid.lines(None);
    let widest = plain.iter().map(|line| line.chars().count()).max().unwrap_or(0) + 2;
    if width.is_some_and(|width| widest > width) {
        return None;
    }
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
    Some(lines)
}

/// The columns, as a grid that Markdown can use too.
pub(super) fn grid(comparison: &Comparison, rows: &[&Row]) -> Grid {
    let many = comparison.candidates.len() > 1;
    let candidate = comparison.candidates.first().filter(|_| !many);
    let candidate = candidate.map_or("median".into(), |name| short(name));
    let titles = [short(&comparison.baseline), candidate, change_title(comparison)];
    let numbers = titles.iter().map(|title| Column::right(title));
    let side = many.then(|| Column::left("candidate"));
    let rest = [Column::left("verdict"), Column::right("q"), Column::right("n×boots"), Column::left("flags")];
    let columns = std::iter::once(Column::left("metric")).chain(side).chain(numbers).chain(rest);
    let mut grid = Grid::new(columns);
    for row in rows {
        grid.add(cells(row, many));
    }
    grid
}

fn cells(row: &Row, many: bool) -> Vec<Cell> {
    let words = Words::of(row);
    let side = many.then(|| short(&row.candidate_name));
    let rest = [
        words.baseline,
        words.candidate,
        words.change,
        words.verdict,
        words.q,
        words.repetitions,
        words.flags,
    ];
    std::iter::once(words.metric).chain(side).chain(rest).map(Cell::from).collect()
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
