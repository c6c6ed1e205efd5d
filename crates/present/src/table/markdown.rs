//! Owns Markdown tables. It refuses raw text: what would break a table is escaped.

use super::grid::{Align, Column};

/// The rows as a table of GitHub's Markdown.
pub(super) fn table(columns: &[Column], rows: impl Iterator<Item = Vec<String>>) -> String {
    let titles: Vec<String> = columns.iter().map(|column| column.title.clone()).collect();
    let rules: Vec<String> = columns.iter().map(|column| rule(column.align).to_owned()).collect();
    let rule = format!("|{}|\n", rules.join("|"));
    let rows: String = rows.map(|row| line(&row)).collect();
    line(&titles) + &rule + &rows
}

fn rule(align: Align) -> &'static str {
    match align {
        Align::Left => ":--",
        Align::Right => "--:",
    }
}

fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Text that stands for itself in a cell.
pub(super) fn escaped(text: &str) -> String {
    let special = |c| matches!(c, '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '~' | '\\');
    text.chars().fold(String::new(), |mut done, c| {
        if special(c) {
            done.push('\\');
        }
        done.push(if c == '\n' { ' ' } else { c });
        done
    })
}
