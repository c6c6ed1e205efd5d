//! Comparisons in plain text: one line a row for a commit message, and several studies as the mail that a bot would send.
//!
//! No line is wrapped by a mailer where names are not longer than usual; nothing depends on colour or on a font.

use std::collections::HashSet;

use indexmap::IndexMap;
use perflab_analyze::{Comparison, VerdictRow};

use crate::comparison::answer::answer_lines;
use crate::comparison::row_text::{NOTHING, RowText, verdict_words, with_one_line_names};
use crate::diagnostics::group_diagnostics;
use crate::terminal_text::wrap_text;

/// Columns of a mail.
const WIDTH: usize = 72;

/// Most facts that are named.
const MOST_FACTS: usize = 5;

/// What both sides measured of one study.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyComparison {
    /// The study's title.
    pub study: String,
    /// Its rows, or why there are none.
    pub outcome: Result<Comparison, String>,
}

/// The comparisons of studies that two labels share, and what they do not share.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StudyComparisons {
    /// Name of the baseline.
    pub baseline: String,
    /// Name of the candidate.
    pub candidate: String,
    /// In the order of the baseline's runs.
    pub studies: Vec<StudyComparison>,
    /// Studies of one side only, with that side's name.
    pub one_sided: Vec<(String, String)>,
}

impl StudyComparisons {
    /// Those that could be compared.
    pub fn comparisons(&self) -> impl Iterator<Item = &Comparison> {
        self.studies.iter().filter_map(|study| study.outcome.as_ref().ok())
    }
}

/// One line for each row that decides (or of the metrics that were chosen): case, metric, medians, change, verdict.
#[must_use]
pub fn short_lines(comparison: &Comparison) -> String {
    short_rows(comparison).iter().map(|line| format!("{line}\n")).collect()
}

fn short_rows(comparison: &Comparison) -> Vec<String> {
    let comparison = with_one_line_names(comparison);
    let many = comparison.candidates.len() > 1;
    comparison.deciding_rows().into_iter().map(|row| short_row(row, many)).collect()
}

/// The rows that are not the same, below their cases: verdict, metric, medians, change, in columns.
fn changed_rows(comparison: &Comparison) -> Vec<String> {
    let rows = comparison.deciding_rows();
    let is_listed = |row: &&&VerdictRow| !row.verdict_word().starts_with("same");
    let listed: Vec<&&VerdictRow> = rows.iter().filter(is_listed).collect();
    let cells: Vec<[String; 4]> = listed.iter().map(|row| mail_cells(row)).collect();
    let width = |at: usize| cells.iter().map(|cells| cells[at].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let indent = 4 + widths[0] + 2 + widths[1] + 2;
    // Where one change has no room behind its medians, all stand below them.
    let is_broken = indent + widths[2] + 2 + width(3) > WIDTH;
    let mut lines = Vec::new();
    let mut subject = "";
    for (row, [verdict, metric, medians, change]) in listed.into_iter().zip(&cells) {
        if row.subject != subject {
            subject = &row.subject;
            lines.push(format!("  {subject}"));
        }
        let [first, second, third] = widths;
        let head = format!("    {verdict:first$}  {metric:second$}  {medians:third$}");
        if is_broken {
            lines.push(head);
            lines.extend((!change.is_empty()).then(|| format!("{:indent$}{change}", "")));
        } else {
            lines.push(format!("{head}  {change}"));
        }
    }
    lines
}

fn mail_cells(row: &VerdictRow) -> [String; 4] {
    let words = RowText::from_row(row);
    let unit = words.metric.rsplit_once(" [").map(|(_, unit)| format!(" {}", unit.trim_end_matches(']')));
    let medians = format!("{} -> {}{}", words.baseline, words.candidate, unit.unwrap_or_default());
    let change = if words.change == NOTHING { String::new() } else { words.change };
    [verdict_words(row), row.metric.clone(), medians, change].map(|text| text.replace('\u{a0}', " "))
}

/// `sweep threads=2 time: 12.1 -> 13.4 ms, +10.2 % [+8.1, +12.0], worse`
fn short_row(row: &VerdictRow, many: bool) -> String {
    let candidate = if many { format!(" ({})", row.candidate_name) } else { String::new() };
    format!("{} {}{candidate}: {}, {}", row.subject, row.metric, row_result(row), verdict_words(row))
}

/// `12.1 -> 13.4 ms, +10.2 % [+8.1, +12.0]`
pub(crate) fn row_result(row: &VerdictRow) -> String {
    let words = RowText::from_row(row);
    let unit = words.metric.rsplit_once(" [").map(|(_, unit)| format!(" {}", unit.trim_end_matches(']')));
    let change = if words.change == NOTHING { String::new() } else { format!(", {}", words.change) };
    let text = format!("{} -> {}{}{change}", words.baseline, words.candidate, unit.unwrap_or_default());
    text.replace('\u{a0}', " ")
}

/// The mail: the answer, a section a study, what the sides do not share, what differs between their machines.
#[must_use]
pub fn studies_mail(found: &StudyComparisons) -> String {
    let rows = || found.comparisons().flat_map(Comparison::deciding_rows);
    let count = |word: &str| rows().filter(|row| row.verdict_word() == word).count();
    let words =
        ["worse", "better", "changed", "differs", "unclear", "same", "same here", "missing", "withheld"];
    let counts: Vec<String> = words
        .into_iter()
        .filter(|word| count(word) > 0)
        .map(|word| format!("{} {word}", count(word)))
        .collect();
    let studies = found.comparisons().count();
    let head = format!(
        "{} against {}: {} in {studies} {}",
        found.candidate,
        found.baseline,
        if counts.is_empty() { "nothing to judge".into() } else { counts.join(", ") },
        if studies == 1 { "study" } else { "studies" }
    );
    let mut lines: Vec<String> = wrap_text(&head, WIDTH, "", "  ");
    for study in &found.studies {
        lines.push(String::new());
        lines.extend(wrap_text(&format!("{}:", study.study), WIDTH, "", "  "));
        match &study.outcome {
            Ok(comparison) => lines.extend(section_lines(&with_one_line_names(comparison))),
            Err(reason) => lines.extend(wrap_text(&format!("not compared: {reason}"), WIDTH, "  ", "    ")),
        }
    }
    if !found.one_sided.is_empty() {
        let texts: Vec<String> =
            found.one_sided.iter().map(|(study, side)| format!("{study} (only {side})")).collect();
        lines.push(String::new());
        lines.extend(wrap_text(&format!("Not on both sides: {}", texts.join(", ")), WIDTH, "", "  "));
    }
    lines.extend(fact_lines(found));
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// The mail about one comparison: as [`studies_mail`] of its study, and the runs with the commands that do them again.
#[must_use]
pub(crate) fn comparison_mail(comparison: &Comparison) -> String {
    let mut titles: Vec<&str> = comparison.runs.iter().map(|run| run.study.as_str()).collect();
    titles.dedup();
    let study = StudyComparison { study: titles.join(", "), outcome: Ok(comparison.clone()) };
    let found = StudyComparisons {
        baseline: comparison.baseline.clone(),
        candidate: comparison.candidates.join(", "),
        studies: vec![study],
        one_sided: Vec::new(),
    };
    studies_mail(&found) + &recipe_text(std::iter::once(comparison))
}

/// Runs of a side that are named.
const MOST_RUNS: usize = 4;

/// The runs that were compared, side by side, and the command that prints how each side was measured.
#[must_use]
pub fn recipe_text<'a>(comparisons: impl Iterator<Item = &'a Comparison>) -> String {
    let mut sides: IndexMap<&str, Vec<&str>> = IndexMap::new();
    let (mut writer, mut imported) = ("", HashSet::new());
    for comparison in comparisons {
        writer = &comparison.writer;
        for run in &comparison.runs {
            if run.imported {
                imported.insert(run.id.as_str());
            }
            let side = sides.entry(run.side.as_str()).or_default();
            if !side.contains(&run.id.as_str()) {
                side.push(&run.id);
            }
        }
    }
    let mut lines = vec![String::new(), format!("Compared by {writer}. The runs:")];
    for (side, runs) in &sides {
        let named = runs.iter().take(MOST_RUNS).copied().collect::<Vec<_>>().join(" ");
        let more = runs.len().saturating_sub(MOST_RUNS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let side = if side.is_empty() { String::new() } else { format!("{side}: ") };
        lines.extend(wrap_text(&format!("{side}{named}{more}"), WIDTH, "  ", "    "));
    }
    let firsts = sides.values().filter_map(|runs| runs.first().filter(|run| !imported.contains(*run)));
    let commands: Vec<String> = firsts.map(|run| format!("  perflab reproduce {run}")).collect();
    if !commands.is_empty() {
        lines.push("To measure again:".into());
        lines.extend(commands);
    }
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn section_lines(comparison: &Comparison) -> Vec<String> {
    let mut lines: Vec<String> = answer_lines(std::slice::from_ref(comparison))
        .iter()
        .flat_map(|answer| wrap_text(answer, WIDTH, "  ", "  "))
        .collect();
    lines.extend(changed_rows(comparison));
    let warnings = group_diagnostics(std::slice::from_ref(comparison)).into_iter();
    let warnings = warnings.map(|warning| format!("warning: {}", warning.headline));
    lines.extend(warnings.flat_map(|warning| wrap_text(&warning, WIDTH, "  ", "    ")));
    lines
}

/// The facts that differ, the likely causes first, each once.
fn fact_lines(found: &StudyComparisons) -> Vec<String> {
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
    let mut texts: Vec<String> = Vec::new();
    let facts = || found.comparisons().flat_map(|comparison| &comparison.facts);
    for fact in facts().filter(|fact| fact.important).chain(facts().filter(|fact| !fact.important)) {
        let text = format!("{} {} -> {}", fact.key, known(&fact.baseline), known(&fact.candidate));
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    if texts.is_empty() {
        return Vec::new();
    }
    let more = texts.len().saturating_sub(MOST_FACTS);
    texts.truncate(MOST_FACTS);
    texts.extend((more > 0).then(|| format!("and {more} more")));
    let head = [String::new(), "What differs between the machines:".to_owned()];
    head.into_iter().chain(texts.iter().flat_map(|text| wrap_text(text, WIDTH, "  ", "    "))).collect()
}
