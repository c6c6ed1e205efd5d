//! Owns the layout of a comparison for narrow terminals: a few lines a row. It refuses columns.

use perflab_analyze::{Comparison, VerdictRow};

use super::words::RowText;
use super::{advice, colour};

/// The groups' lines, each row over as few lines as its texts need.
pub(super) fn card_rows(
    comparison: &Comparison,
    rows: &[&VerdictRow],
    width: usize,
    on: bool,
) -> Vec<String> {
    let many = comparison.candidates.len() > 1;
    let mut lines = Vec::new();
    let mut subject = "";
    for row in rows {
        if row.subject != subject {
            subject = &row.subject;
            lines.extend(
                advice::wrap_text(subject, width, "", "  ").iter().map(|line| colour::bold_text(line, on)),
            );
        }
        lines.extend(row_card(row, many, width, on));
    }
    lines
}

fn row_card(row: &VerdictRow, many: bool, width: usize, on: bool) -> Vec<String> {
    let words = RowText::from_row(row);
    let side = if many { format!(" ({})", row.candidate_name) } else { String::new() };
    let mut lines = advice::wrap_text(&format!("{}{side}", words.metric), width, "  ", "    ");
    let medians = format!("{} -> {}", words.baseline, words.candidate);
    let flags = if words.flags.is_empty() { String::new() } else { format!(", flags {}", words.flags) };
    let rest = format!("q {}, n {}{flags}", words.q, words.repetitions);
    let verdict = format!("{}{}", words.verdict, words.needed);
    for line in pack_texts(&[verdict, medians, words.change, rest], width) {
        // Only the first line has the verdict.
        let coloured =
            |text: &str| text.replacen(&words.verdict, &colour::colour_verdict(row, &words.verdict, on), 1);
        lines.extend(advice::wrap_text(&line, width, "    ", "      ").iter().map(|line| coloured(line)));
    }
    lines
}

/// The texts in order, as many in a line as fit.
pub(super) fn pack_texts(texts: &[String], width: usize) -> Vec<String> {
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
