//! The answer in one sentence, with which the terminal and the page begin: what a table of verdicts amounts to.

use perflab_analyze::{Comparison, IntervalMeaning, VerdictBasis, VerdictRow};

use crate::comparison::row_text::{NOTHING, RowText, failures_text, part_text, tail_text};

/// As many changes are named in a sentence.
const MOST_NAMED: usize = 3;

/// One fragment of a sentence a comparison; where there are several, with the factor that each is about.
pub(crate) fn comparison_answers(comparisons: &[Comparison]) -> Vec<(Option<&str>, String)> {
    let several = comparisons.len() > 1;
    comparisons.iter().map(|one| (one.by.as_deref().filter(|_| several), comparison_answer(one))).collect()
}

/// The same as lines of a terminal: `pages: 2 of 2 better: …`
pub(crate) fn answer_lines(comparisons: &[Comparison]) -> Vec<String> {
    let answers = comparison_answers(comparisons).into_iter();
    answers
        .map(|(factor, text)| factor.map_or_else(|| text.clone(), |factor| format!("{factor}: {text}")))
        .collect()
}

fn comparison_answer(comparison: &Comparison) -> String {
    let rows = comparison.deciding_rows();
    let total = rows.len();
    if total == 0 {
        return "nothing to judge: no metric was measured on both sides".into();
    }
    let with_word = |word: &str| -> Vec<&VerdictRow> {
        rows.iter().copied().filter(|row| row.verdict_word() == word).collect()
    };
    let mut parts: Vec<String> = Vec::new();
    for word in ["worse", "better", "changed", "differs"] {
        let found = with_word(word);
        if !found.is_empty() {
            let of = if parts.is_empty() { format!(" of {total}") } else { String::new() };
            let word = match (word, found.len(), comparison.by.is_some()) {
                ("differs", 1, false) => "differs between these two runs",
                ("differs", _, false) => "differ between these two runs",
                ("differs", 1, true) => "differs, measured one after the other",
                ("differs", _, true) => "differ, measured one after the other",
                _ => word,
            };
            parts.push(format!("{}{of} {word}: {}", found.len(), name_changes(&found, comparison)));
        }
    }
    let is_changed = !parts.is_empty();
    let (same, unclear, same_here) = (with_word("same"), with_word("unclear"), with_word("same here"));
    if !is_changed && same.len() == total {
        let beyond = beyond_margin_text(&same);
        return format!("nothing changed{beyond}: {total} of {total} same{}", margin_text(&same));
    }
    if !is_changed && same_here.len() == total {
        return format!(
            "{} do not differ{}: {total} of {total} same here{}",
            if comparison.by.is_some() { "these levels" } else { "these two runs" },
            beyond_margin_text(&same_here),
            margin_text(&same_here)
        );
    }
    let others = [(&same, "same"), (&same_here, "same here"), (&unclear, "unclear")];
    let mut rest: Vec<String> = others
        .iter()
        .filter(|(found, _)| !found.is_empty())
        .map(|(found, word)| match *word {
            "same" | "same here" => format!("{} {word}{}", found.len(), margin_text(found)),
            _ => format!("{} unclear{}", found.len(), repetitions_hint(found)),
        })
        .collect();
    let missing = with_word("missing").len();
    rest.extend((missing > 0).then(|| format!("{missing} measured on one side only")));
    let withheld = with_word("withheld").len();
    rest.extend(
        (withheld > 0).then(|| format!("{withheld} without a verdict, as the sides did different things")),
    );
    if is_changed {
        parts.extend((!rest.is_empty()).then(|| rest.join(", ")));
        return parts.join("; ");
    }
    if let Some(undecided) = undecided_text(&unclear, comparison).filter(|_| unclear.len() == total) {
        return undecided;
    }
    // Failures too few to be a change are no quiet, either.
    let failed = rows.iter().find_map(|row| failures_text(row, comparison));
    let but = failed.map_or(String::new(), |failed| format!(", but {failed}"));
    // Without a value on a side, or a verdict, nobody has looked for a change.
    let was_judged =
        |row: &&VerdictRow| row.change.is_some() && !["withheld", "missing"].contains(&row.verdict_word());
    // What only so many rows together make uncertain was not looked for in vain. Two single runs are never certain.
    let seen_alone: Vec<&VerdictRow> = unclear
        .iter()
        .copied()
        .filter(|row| {
            row.change
                .is_some_and(|change| change.excludes_none() && change.covers == IntervalMeaning::Change)
        })
        .collect();
    let (found, alone) = match () {
        () if !seen_alone.is_empty() => {
            ("no change is certain", format!("; alone, {} would be", name_changes(&seen_alone, comparison)))
        }
        () if rows.iter().any(was_judged) => ("no change found", String::new()),
        () => ("nothing decided", String::new()),
    };
    match total {
        1 => format!("{found}{but}: {}", rest.join(", ").trim_start_matches("1 ")),
        _ => format!("{found} in {total} rows{but}: {}{alone}", rest.join(", ")),
    }
}

/// Of rows that have too few values for an interval: what changed, and that this decides nothing. None where one has enough.
fn undecided_text(rows: &[&VerdictRow], comparison: &Comparison) -> Option<String> {
    let is_bare = |row: &VerdictRow| row.change.is_some_and(|change| change.interval.is_none());
    // What was compared, not what it is made of: two runs of six values are two.
    let fewest = |row: &VerdictRow| row.method.map(|method| method.baseline.min(method.candidate));
    let n = rows.iter().filter_map(|row| fewest(row)).min()?;
    let noun = rows.first()?.method?.level.noun();
    let noun = if n == 1 { noun.trim_end_matches('s') } else { noun };
    rows.iter().all(|row| is_bare(row)).then(|| {
        let hint = repetitions_hint(rows);
        let verb = if n == 1 { "is" } else { "are" };
        format!("nothing decided: {n} {noun} a side {verb} too few{hint}; {}", name_changes(rows, comparison))
    })
}

/// Said where a row changed by less than matters.
fn beyond_margin_text(found: &[&VerdictRow]) -> &'static str {
    if found.iter().any(|row| row.is_small_change()) { " by more than the margin" } else { "" }
}

/// The largest changes first: `time +137 % [+120, +151]`, with the case where there are several.
fn name_changes(found: &[&VerdictRow], comparison: &Comparison) -> String {
    let mut rows = found.to_vec();
    rows.sort_by(|a, b| change_size(b).total_cmp(&change_size(a)));
    let all = comparison.deciding_rows();
    let has_cases = all.first().is_some_and(|first| all.iter().any(|row| row.subject != first.subject));
    let name = |row: &&VerdictRow| {
        let text = RowText::from_row(row);
        let mut where_it_is: Vec<&str> = Vec::new();
        where_it_is.extend(has_cases.then_some(row.subject.as_str()));
        where_it_is.extend((comparison.candidates.len() > 1).then_some(row.candidate_name.as_str()));
        let place =
            if where_it_is.is_empty() { String::new() } else { format!(" ({})", where_it_is.join(", ")) };
        let counted = match row.basis {
            VerdictBasis::Failures => failures_text(row, comparison),
            VerdictBasis::Tail => tail_text(row, comparison),
            VerdictBasis::Values | VerdictBasis::MissingValues => None,
            _ => part_text(row),
        };
        let change = match counted {
            Some(counted) => format!(": {counted}"),
            None if text.change == NOTHING => String::new(),
            None => format!(" {}", text.change),
        };
        format!("{}{change}{place}", row.metric)
    };
    let mut named: Vec<String> = rows.iter().take(MOST_NAMED).map(name).collect();
    if rows.len() > MOST_NAMED {
        named.push(format!("and {} more", rows.len() - MOST_NAMED));
    }
    named.join(", ")
}

fn change_size(row: &VerdictRow) -> f64 {
    row.deciding_relative_change().map_or(0.0, f64::abs)
}

/// ` within 3 %`, where the margin is one.
fn margin_text(rows: &[&VerdictRow]) -> String {
    match rows {
        [first, rest @ ..] if rest.iter().all(|row| row.margin == first.margin) => {
            format!(" within {} %", (first.margin * 1e4).round() / 1e2)
        }
        _ => " within their margins".into(),
    }
}

/// How many repetitions would decide all of them.
fn repetitions_hint(rows: &[&VerdictRow]) -> String {
    let most = rows.iter().filter_map(|row| Some((row.needed?, row.method?.level))).max_by_key(|(n, _)| *n);
    most.map_or_else(String::new, |(n, level)| {
        let about = crate::comparison::row_text::round_repetitions(n);
        format!(" (about {about} {} a side would decide)", level.noun())
    })
}
