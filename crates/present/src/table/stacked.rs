//! Owns the layout of a comparison for narrow terminals: a few short lines a row. It refuses columns.

use perflab_analyze::{Comparison, Row};

use super::words::Words;
use super::{advice, colour};

/// The groups' lines, each row over three or four lines.
pub(super) fn lines(comparison: &Comparison, rows: &[&Row], width: usize, on: bool) -> Vec<String> {
    let many = comparison.candidates.len() > 1;
    let mut lines = Vec::new();
    let mut subject = "";
    for row in rows {
        if row.subject != subject {
            subject = &row.subject;
            lines.extend(advice::wrapped(subject, width, "", "  ").iter().map(|line| colour::bold(line, on)));
        }
        lines.extend(card(row, many, width, on));
    }
    lines
}

fn card(row: &Row, many: bool, width: usize, on: bool) -> Vec<String> {
    let words = Words::of(row);
    let side = if many { format!(" ({})", row.candidate_name) } else { String::new() };
    let mut lines = advice::wrapped(&format!("{}{side}", words.metric), width, "  ", "    ");
    lines.push(format!("    {}{}", colour::verdict(row, &words.verdict, on), words.needed));
    let medians = format!("{} -> {}", words.baseline, words.candidate);
    let rest = format!("q {}, n {}", words.q, words.repetitions);
    let flags = if words.flags.is_empty() { String::new() } else { format!(", flags {}", words.flags) };
    for text in [medians, words.change, format!("{rest}{flags}")] {
        lines.extend(advice::wrapped(&text, width, "    ", "      "));
    }
    lines
}
