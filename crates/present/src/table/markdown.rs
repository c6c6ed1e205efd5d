//! Owns Markdown tables. It refuses raw text: what would break a table is escaped.

use super::grid::{ColumnAlign, GridColumn};

/// The rows as a table of GitHub's Markdown.
pub(super) fn write_markdown(columns: &[GridColumn], rows: impl Iterator<Item = Vec<String>>) -> String {
    let titles: Vec<String> = columns.iter().map(|column| column.title.clone()).collect();
    let rules: Vec<String> = columns.iter().map(|column| align_rule(column.align).to_owned()).collect();
    let rule = format!("|{}|\n", rules.join("|"));
    let rows: String = rows.map(|row| markdown_line(&row)).collect();
    markdown_line(&titles) + &rule + &rows
}

fn align_rule(align: ColumnAlign) -> &'static str {
    match align {
        ColumnAlign::Left => ":--",
        ColumnAlign::Right => "--:",
    }
}

fn markdown_line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escape_markdown(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Text that stands for itself in a cell.
pub(super) fn escape_markdown(text: &str) -> String {
    let special = |c| matches!(c, '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '~' | '\\');
    text.chars().fold(String::new(), |mut done, c| {
        if special(c) {
            done.push('\\');
        }
        done.push(if c == '\n' { ' ' } else { c });
        done
    })
}
