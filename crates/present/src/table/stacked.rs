//! Owns the layout of a comparison for narrow terminals: a few lines a row. It refuses columns.

use perflab_analyze::{Comparison, Row};

use super::words::Words;
use super::{advice, colour};

/// The groups' lines, each row over as few lines as its texts need.
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
    let medians = format!("{} -> {}", words.baseline, words.candidate);
    let flags = if words.flags.is_empty() { String::new() } else { format!(", flags {}", words.flags) };
    let rest = format!("q {}, n {}{flags}", words.q, words.repetitions);
    let verdict = format!("{}{}", words.verdict, words.needed);
    for line in packed(&[verdict, medians, words.change, rest], width) {
        // Only the first line has the verdict.
        let coloured =
            |text: &str| text.replacen(&words.verdict, &colour::verdict(row, &words.verdict, on), 1);
        lines.extend(advice::wrapped(&line, width, "    ", "      ").iter().map(|line| coloured(line)));
    }
    lines
}

/// The texts in order, as many in a line as fit.
pub(super) fn packed(texts: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for text in texts {
        let fits = |line: &&mut String| 4 + line.chars().count() + 3 + text.chars().count() <= width;
        match lines.last_mut().filter(fits) {
            Some(line) => *line += &format!("   {text}"),
            None => lines.push(text.clone()),
        }
    }
    lines
}
