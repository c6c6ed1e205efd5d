//! What is below a comparison: footnotes of the flags that occur, diagnostics folded by kind, each with what to do now,
//! and the method.

use std::collections::BTreeSet;

use crate::terminal_text::{bold_text, dim_text, wrap_text};

use indexmap::{IndexMap, IndexSet};
use perflab_analyze::{Comparison, ComparisonDiagnostic, RowFlag};

/// As many findings of one kind are spelt out; JSON has all.
const MOST_FINDINGS: usize = 3;

/// Letters and meanings of the flags that occur.
pub(crate) fn flag_footnotes(comparisons: &[Comparison]) -> Vec<(char, &'static str)> {
    let rows = comparisons.iter().flat_map(|comparison| &comparison.rows);
    let flags: BTreeSet<RowFlag> = rows.flat_map(|row| row.flags.iter().copied()).collect();
    flags.into_iter().map(|flag| (flag.letter(), flag.footnote())).collect()
}

/// Warnings of one kind.
pub(crate) struct DiagnosticGroup {
    pub(crate) headline: String,
    pub(crate) details: Vec<String>,
    pub(crate) advice: &'static str,
}

/// The warnings, folded by kind, in the order in which the kinds first occur. What several comparisons of the same
/// runs say is printed once.
pub(crate) fn group_diagnostics(comparisons: &[Comparison]) -> Vec<DiagnosticGroup> {
    let mut kinds: IndexMap<&str, IndexMap<String, &ComparisonDiagnostic>> = IndexMap::new();
    for warning in comparisons.iter().flat_map(|comparison| &comparison.warnings) {
        kinds.entry(warning.kind()).or_default().entry(warning.to_string()).or_insert(warning);
    }
    kinds.into_values().filter_map(|found| fold_warnings(&found.into_values().collect::<Vec<_>>())).collect()
}

fn fold_warnings(found: &[&ComparisonDiagnostic]) -> Option<DiagnosticGroup> {
    let first = found.first()?;
    let count = if found.len() > 1 { format!(" ({})", found.len()) } else { String::new() };
    let mut details: Vec<String> = found.iter().take(MOST_FINDINGS).map(|warning| warning.detail()).collect();
    if found.len() > MOST_FINDINGS {
        details.push(format!("and {} more", found.len() - MOST_FINDINGS));
    }
    Some(DiagnosticGroup {
        headline: format!("{}{count}", first.headline()),
        details,
        advice: first.advice(),
    })
}

/// Everything below the table, in lines no wider than `width`.
pub(crate) fn diagnostic_lines(comparisons: &[Comparison], width: usize, on: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let notes = flag_footnotes(comparisons);
    if !notes.is_empty() {
        lines.push(String::new());
        lines.extend(
            notes
                .iter()
                .flat_map(|(letter, text)| wrap_text(&format!("{letter}  {text}"), width, "  ", "     ")),
        );
    }
    for warning in group_diagnostics(comparisons) {
        lines.push(String::new());
        let headline = wrap_text(&format!("warning: {}", warning.headline), width, "", "  ");
        lines.extend(headline.iter().map(|line| bold_text(line, on)));
        lines.extend(warning.details.iter().flat_map(|detail| wrap_text(detail, width, "  ", "    ")));
        lines.extend(wrap_text(&format!("-> {}", warning.advice), width, "  ", "     "));
    }
    lines.push(String::new());
    let notes: IndexSet<&String> = comparisons.iter().flat_map(|comparison| &comparison.notes).collect();
    let notes = notes.into_iter().flat_map(|note| wrap_text(&format!("note: {note}"), width, "", "  "));
    lines.extend(notes.map(|line| dim_text(&line, on)));
    lines
}
