//! One verdict row as texts: medians, change, verdict mark, repetitions, flags.

use std::borrow::Cow;

use perflab_analyze::{
    ChangeScale, Comparison, FailureCount, IntervalMeaning, MetricChange, RepetitionLevel, RowFlag,
    SideSummary, SmallChange, TailCount, Verdict, VerdictBasis, VerdictRow,
};

use perflab_model::quantity::{
    UnitScale, decimals_for_width, format_percent_change, format_probability, format_quantity, format_signed,
};
use perflab_model::untrusted_text::{escape_controls_in_line, is_terminal_command};

use crate::method_text::percent_of_level;

/// The comparison with names that stay in their line: another tool's file may call a command anything. Hardly any needs it.
pub(crate) fn with_one_line_names(comparison: &Comparison) -> Cow<'_, Comparison> {
    let rows = comparison.rows.iter().flat_map(|row| [&row.subject, &row.candidate_name, &row.metric]);
    let runs = comparison.runs.iter().flat_map(|run| [&run.side, &run.study]);
    let sides = [&comparison.baseline].into_iter().chain(&comparison.candidates);
    if !sides.chain(rows).chain(runs).any(|name| name.contains(is_terminal_command)) {
        return Cow::Borrowed(comparison);
    }
    let mut plain = comparison.clone();
    let rows = plain.rows.iter_mut();
    let rows = rows.flat_map(|row| [&mut row.subject, &mut row.candidate_name, &mut row.metric]);
    let runs = plain.runs.iter_mut().flat_map(|run| [&mut run.side, &mut run.study]);
    let sides = [&mut plain.baseline].into_iter().chain(&mut plain.candidates);
    for name in sides.chain(rows).chain(runs) {
        *name = escape_controls_in_line(name).into_owned();
    }
    Cow::Owned(plain)
}

/// One row, as people read it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowText {
    pub(crate) metric: String,
    pub(crate) baseline: String,
    pub(crate) candidate: String,
    pub(crate) change: String,
    /// Symbol and word.
    pub(crate) verdict: String,
    /// How large a change may still be; else a dash.
    pub(crate) no_larger_than: String,
    /// What would decide an unclear row, with its comma; else empty.
    pub(crate) needed: String,
    pub(crate) q: String,
    pub(crate) repetitions: String,
    pub(crate) flags: String,
}

/// What stands where there is nothing.
pub(crate) const NOTHING: &str = "-";

impl RowText {
    pub(crate) fn from_row(row: &VerdictRow) -> Self {
        let unit = row_unit(row);
        let median = |side: &Option<SideSummary>| {
            side.as_ref().map_or(NOTHING.into(), |side| unit.format_number(side.median))
        };
        RowText {
            metric: match unit.name.is_empty() {
                true => metric_names(row),
                false => format!("{} [{}]", metric_names(row), unit.name),
            },
            baseline: median(&row.baseline),
            candidate: median(&row.candidate),
            change: row.change.map_or(NOTHING.into(), |change| {
                let paired = if row.flags.contains(&RowFlag::Paired) { " paired" } else { "" };
                row_change_text(change, &unit) + paired
            }),
            verdict: verdict_text(row),
            no_larger_than: no_larger_than_text(row).unwrap_or_else(|| NOTHING.into()),
            needed: row.needed.map_or(String::new(), |n| format!(", needs ~{}", round_repetitions(n))),
            q: row.deciding_q().map_or(NOTHING.into(), format_probability),
            repetitions: repetitions_text(row),
            flags: row.flags.iter().map(|flag| flag.letter()).collect(),
        }
    }
}

/// The metric, and those that are the same number; what they share, a key or all but the key, is printed once.
fn metric_names(row: &VerdictRow) -> String {
    let all: Vec<&str> =
        std::iter::once(row.metric.as_str()).chain(row.twins.iter().map(String::as_str)).collect();
    let (names, keys): (Vec<&str>, Vec<&str>) =
        all.iter().map(|metric| metric.split_once(' ').unwrap_or((metric, ""))).unzip();
    if keys.iter().any(|key| key.is_empty()) {
        return all.join(" = ");
    }
    let (name, key) = (only_word(&names), only_word(&keys));
    match (name, key) {
        (_, Some(key)) => format!("{} {key}", names.join(" = ")),
        (Some(name), None) => format!("{name} {}", keys.join(" = ")),
        (None, None) => all.join(" = "),
    }
}

/// The word that all of them are.
fn only_word<'a>(words: &[&'a str]) -> Option<&'a str> {
    words.first().copied().filter(|first| words.iter().all(|word| word == first))
}

fn row_unit(row: &VerdictRow) -> UnitScale {
    let medians = row.baseline.iter().chain(&row.candidate).map(|side| side.median.abs());
    UnitScale::fitting(&row.unit.0, medians.fold(0.0, f64::max))
}

/// `+2.1 % [+1.5, +2.7]`, or in the unit of the metric; `+2.1 % (+1.5 to +2.7)` where it is the range between two single runs.
fn row_change_text(change: MetricChange, unit: &UnitScale) -> String {
    let (scale, suffix) = match change.scale {
        ChangeScale::Ratio => (100.0, " %".to_owned()),
        ChangeScale::Absolute if unit.name.is_empty() => (1.0 / unit.divisor, String::new()),
        ChangeScale::Absolute => (1.0 / unit.divisor, format!(" {}", unit.name)),
    };
    let half = change.interval.map_or(change.value.abs(), |interval| (interval.high - interval.low) / 2.0);
    let decimals = decimals_for_width(half * scale);
    let text = |value: f64| format_signed(value * scale, decimals);
    let interval = change.interval.map(|i| match change.covers {
        IntervalMeaning::Change => format!(" [{}, {}]", text(i.low), text(i.high)),
        IntervalMeaning::TheseRuns => format!(" ({} to {})", text(i.low), text(i.high)),
        IntervalMeaning::Unbounded => String::new(),
    });
    let unbounded = if change.covers == IntervalMeaning::Unbounded { UNBOUNDED } else { "" };
    format!("{}{suffix}{}{unbounded}", text(change.value), interval.unwrap_or_default())
}

/// In the place of a range that so few values do not bound.
pub(crate) const UNBOUNDED: &str = " (unbounded)";

/// A change with its interval: in per cent, or in the unit where it is absolute.
#[must_use]
pub fn format_change(change: MetricChange, unit: &str) -> String {
    let largest = change.interval.map_or(change.value.abs(), |i| i.low.abs().max(i.high.abs()));
    row_change_text(change, &UnitScale::fitting(unit, largest))
}

/// How large a change may still be, where none was found; in round brackets where it is the difference between two single runs.
pub(crate) fn no_larger_than_text(row: &VerdictRow) -> Option<String> {
    let found = ["better", "worse", "changed", "differs"].contains(&row.verdict_word());
    let size = row.no_larger_than.filter(|_| !found).map(format_size)?;
    let is_of_two_runs = row.change.is_some_and(|change| change.covers == IntervalMeaning::TheseRuns);
    Some(if is_of_two_runs { format!("({size})") } else { size })
}

/// `1.4 %`: a size without a sign.
pub(crate) fn format_size(size: f64) -> String {
    format_percent_change(size.abs()).trim_start_matches('+').to_owned()
}

/// Symbol and words.
fn verdict_text(row: &VerdictRow) -> String {
    format!("{} {}", verdict_symbol(row.verdict_word()), verdict_words(row))
}

/// The verdict's word, with what it stands on where that is not the middle of the values.
pub(crate) fn verdict_words(row: &VerdictRow) -> String {
    let word = row.verdict_word();
    if let Some(middle) = row.middle.filter(|_| row.withheld.is_none()) {
        let middle = if middle == Verdict::SameHere { Verdict::Same } else { middle };
        return format!("{} middle{}, {}", middle.word(), same_words(row), part_words(row));
    }
    if row.is_same_in_the_middle() && word == row.verdict.word() {
        return format!("{word}{}", same_words(row));
    }
    format!("{word}{}", failure_words(row.basis, row.verdict))
}

/// ` (smaller than 3 %, but there; 90 % [-2.9, -0.4])`: what is to be added to "same" beside an interval that excludes "no change",
/// or leaves the margin, so that the interval which decides is shown.
fn same_words(row: &VerdictRow) -> String {
    let there = row.small_change.map(|small| {
        let there = match small {
            SmallChange::There => "but there",
            SmallChange::PerhapsThere => "perhaps there",
        };
        format!("smaller than {}, {there}", format_size(row.margin))
    });
    let parts: Vec<String> = there.into_iter().chain(narrow_text(row)).collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

/// `90 % [-2.9, -0.4]`: the interval by which a row is the same, at the level that it really has.
fn narrow_text(row: &VerdictRow) -> Option<String> {
    let (change, narrow) = (row.change?, row.interval_of_same()?);
    let unit = row_unit(row);
    let scale = match change.scale {
        ChangeScale::Ratio => 100.0,
        ChangeScale::Absolute => 1.0 / unit.divisor,
    };
    let decimals = decimals_for_width((narrow.high - narrow.low) / 2.0 * scale);
    let text = |value: f64| format_signed(value * scale, decimals);
    let (low, high) = (text(narrow.low), text(narrow.high));
    // 0.9 as a sum of shares is 0.8999999999999999.
    let level = (narrow.level * 100.0 + 1e-6).floor();
    Some(match change.covers {
        IntervalMeaning::Change => format!("{level} % [{low}, {high}]"),
        _ => format!("{level} % ({low} to {high})"),
    })
}

/// What failures have to do with a verdict; empty where nothing.
pub(crate) fn failure_words(basis: VerdictBasis, verdict: Verdict) -> &'static str {
    match (basis, verdict) {
        (VerdictBasis::Failures, Verdict::Worse) => " (fails more)",
        (VerdictBasis::Failures, _) => " (fails less)",
        (VerdictBasis::MissingValues, _) => " (failures)",
        _ => "",
    }
}

/// `worse tail`, `p99 unclear`: the part that keeps the verdict from being that of the middle.
fn part_words(row: &VerdictRow) -> String {
    let part = match row.basis {
        VerdictBasis::Tail => "tail",
        basis => basis.word(),
    };
    let is_good = match (row.basis, row.tail) {
        (VerdictBasis::Tail, Some(tail)) => Some(tail.candidate.share() < tail.baseline.share()),
        _ => row.is_good_change(),
    };
    let end = match is_good {
        Some(true) => "better",
        Some(false) => "worse",
        None => "changed",
    };
    match row.verdict {
        Verdict::Unclear if row.flags.contains(&RowFlag::Changed) => format!("{part} changed"),
        Verdict::Unclear if row.middle != Some(Verdict::Better) => format!("{part} unclear"),
        Verdict::Differs => format!("{end} {part} here"),
        _ => format!("{end} {part}"),
    }
}

/// `mean 9.97 s to 10.8 s, +8.1 % [+2.0, +14.4]`: the part on which a verdict stands; nothing where it is not one.
pub(crate) fn part_text(row: &VerdictRow) -> Option<String> {
    let part = row.deciding_part()?;
    let value = |value: f64| format_quantity(value, &row.unit.0);
    Some(format!(
        "{} {} to {}, {}",
        part.part.word(),
        value(part.baseline),
        value(part.candidate),
        row_change_text(part.change, &row_unit(row))
    ))
}

/// `5 of 30 beyond 12.5 ms, 0 of 30 in old`: values far from the rest on the bad side; nothing where there are none.
pub(crate) fn tail_text(row: &VerdictRow, comparison: &Comparison) -> Option<String> {
    let tail = row.tail?;
    let count = |side: TailCount| format!("{} of {}", side.beyond, side.of);
    Some(format!(
        "{} beyond {}, {} in {}",
        count(tail.candidate),
        format_quantity(tail.fence, &row.unit.0),
        count(tail.baseline),
        comparison.baseline
    ))
}

/// `21 of 30 failed, 0 of 30 in old`: the candidate's failures beside the baseline's; nothing where nothing failed.
pub(crate) fn failures_text(row: &VerdictRow, comparison: &Comparison) -> Option<String> {
    let failures = row.failures?;
    let count = |side: FailureCount| format!("{} of {}", side.failed, side.of);
    Some(format!(
        "{} failed, {} in {}",
        count(failures.candidate),
        count(failures.baseline),
        comparison.baseline
    ))
}

/// `why: page faults, 80,887 instead of 887 an iteration, can carry at most 482 ms of 528 ms`: nothing where no suspect is known.
pub(crate) fn suspect_text(row: &VerdictRow) -> Option<String> {
    let suspect = row.suspect.as_ref()?;
    let amount = |value: f64| format_quantity(value, suspect.series_unit.0.as_str()).replace('\u{a0}', " ");
    let each = if suspect.series.is_some() { " an iteration" } else { "" };
    let (after, before) = (amount(suspect.after), amount(suspect.before));
    let size = |value: f64| format_quantity(value, suspect.unit.0.as_str()).replace('\u{a0}', " ");
    let whole = suspect.change.map(size).unwrap_or_default();
    let carried = match (suspect.carries, suspect.at_most) {
        (Some(carries), _) => format!(", can carry {} of {whole}", size(carries)),
        (None, Some(most)) => format!(", can carry at most {} of {whole}", size(most)),
        (None, None) => String::new(),
    };
    Some(format!("why: {}, {after} instead of {before}{each}{carried}", suspect.cause))
}

/// `+3.0 % as built, of which layout explains +2.8 %; …`: how much of a change is where code and stack lie; nothing where layouts
/// were not varied.
pub(crate) fn layout_text(row: &VerdictRow) -> Option<String> {
    let (layout, change) = (row.layout?, row.change?);
    let unit = row_unit(row);
    let own = |value: f64| match change.scale {
        ChangeScale::Ratio => format_percent_change(value),
        ChangeScale::Absolute => format!("{} {}", format_signed(value / unit.divisor, 3), unit.name),
    };
    let built = layout.as_built.zip(layout.explained).map(|(built, explained)| {
        format!("{} as built, of which layout explains {}", own(built), own(explained))
    });
    let varies = layout.sd.map(|sd| {
        let size = own(sd);
        let (size, layouts) = (size.trim_start_matches('+'), layout.layouts);
        format!("the change varies by {size} (standard deviation) from one of {layouts} layouts to the next")
    });
    let parts: Vec<String> = built.into_iter().chain(varies).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What stands beside a verdict's word, in a terminal and on a page.
pub(crate) fn verdict_symbol(word: &str) -> char {
    match word {
        "better" => '✓',
        "worse" => '✗',
        "same" => '=',
        "changed" | "differs" => '≠',
        "same here" => '≈',
        "missing" => '∅',
        "withheld" => '×',
        _ => '?',
    }
}

/// Two digits that count: the number is an estimate.
pub(crate) fn round_repetitions(n: usize) -> String {
    let step = 10_usize.pow(n.max(1).ilog10().saturating_sub(1));
    let up = n.div_ceil(step) * step;
    if up >= 10_000 { "10000+".into() } else { up.to_string() }
}

/// What was compared, which decides: `30` iterations, `30 pairs` of them, `4 runs × 8` values of each; both sides where they differ.
/// `2 boots × 10 + 7 earlier` where pairs of earlier runs help to know the spread.
pub(crate) fn repetitions_text(row: &VerdictRow) -> String {
    let values = [&row.baseline, &row.candidate].map(|side| side.as_ref().map_or(0, |side| side.n));
    let both = |[ours, theirs]: [String; 2]| if ours == theirs { ours } else { format!("{ours}|{theirs}") };
    let Some(method) = row.method else { return both(values.map(|n| n.to_string())) };
    let compared = [method.baseline, method.candidate];
    let each = [0, 1].map(|side| values[side] / compared[side].max(1));
    let is_about = |side: usize| !values[side].is_multiple_of(compared[side].max(1));
    let each_text =
        both([0, 1].map(|side| format!("{}{}", if is_about(side) { "~" } else { "" }, each[side])));
    let units = both(compared.map(|n| n.to_string()));
    let noun = match (method.level, method.paired) {
        (RepetitionLevel::Iteration, true) => " pairs".to_owned(),
        (RepetitionLevel::Iteration, false) => String::new(),
        (level, true) => format!(" pairs of {}", level.noun()),
        (level, false) => format!(" {}", level.noun()),
    };
    if method.left_out > 0 {
        return format!("{units}{noun}, {} left out", method.left_out);
    }
    // Values that belong to no pair are no second one of it.
    let text =
        if each == [1, 1] { format!("{units}{noun}") } else { format!("{units}{noun} × {each_text}") };
    row.pooled_noise.map_or(text.clone(), |noise| format!("{text} + {} earlier", noise.pairs))
}

/// What is compared with what, in one line.
pub(crate) fn comparison_headline(comparison: &Comparison) -> String {
    let candidates = comparison.candidates.join(", ");
    let by = comparison.by.as_ref().map_or(String::new(), |factor| format!("{factor}: "));
    format!("{by}{candidates} against {}", comparison.baseline)
}

/// How many rows had which verdict.
pub(crate) fn count_verdicts(comparison: &Comparison) -> String {
    let words =
        ["better", "worse", "same", "unclear", "changed", "differs", "same here", "missing", "withheld"];
    let count = |word: &&str| comparison.rows.iter().filter(|row| row.verdict_word() == *word).count();
    let parts: Vec<String> =
        words.iter().filter(|word| count(word) > 0).map(|word| format!("{} {word}", count(word))).collect();
    let rows = comparison.rows.len();
    format!("{rows} {}: {}", if rows == 1 { "row" } else { "rows" }, parts.join(", "))
}

/// `change [95 % CI]`
pub(crate) fn change_title(comparison: &Comparison) -> String {
    format!("change [{} % CI]", percent_of_level(comparison.confidence))
}

/// A name that leaves room for the numbers, and keeps what tells it from the others that stand beside it.
pub(crate) fn shorten_name(name: &str, beside: &[String]) -> String {
    const MOST: usize = 20;
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= MOST {
        return name.into();
    }
    let shared = |other: &String| {
        letters.iter().zip(other.chars()).take_while(|(ours, theirs)| **ours == *theirs).count()
    };
    let same = beside.iter().filter(|other| *other != name).map(shared).max().unwrap_or_default();
    // Where names part, from the beginning of that word.
    let word = letters
        .get(..same)
        .and_then(|head| head.iter().rposition(|letter| *letter == ' '))
        .map_or(0, |at| at + 1);
    let parts = if same - word < MOST / 2 { word } else { same };
    if parts + 2 < MOST / 2 {
        return letters.iter().take(MOST - 1).copied().chain(['…']).collect();
    }
    let begin = parts.min(letters.len() - (MOST - 1));
    let (rest, is_all) = (letters.iter().skip(begin), letters.len() - begin < MOST);
    let room = if is_all { MOST - 1 } else { MOST - 2 };
    std::iter::once('…').chain(rest.take(room).copied()).chain((!is_all).then_some('…')).collect()
}

/// All names that stand beside one another in a comparison.
pub(crate) fn side_names(comparison: &Comparison) -> Vec<String> {
    std::iter::once(&comparison.baseline).chain(&comparison.candidates).cloned().collect()
}
