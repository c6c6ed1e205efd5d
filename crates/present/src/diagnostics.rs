//! Diagnostics of a comparison in words: headline, detail and what to do now of each kind, the footnotes of flags, and
//! all of it folded by kind below a table.

use std::collections::BTreeSet;

use crate::method_text::describe_method;
use crate::terminal_text::{bold_text, dim_text, wrap_text};
use perflab_model::quantity::{format_digits, format_percent_change, format_share};

use indexmap::{IndexMap, IndexSet};
use perflab_analyze::compare::diagnostic::{DiagnosticLocation, NoiseCardDoubt};
use perflab_analyze::{Comparison, ComparisonDiagnostic, RepetitionLevel, RowFlag};

/// As many findings of one kind are spelt out; JSON has all.
const MOST_FINDINGS: usize = 3;

/// Letters and meanings of the flags that occur.
pub(crate) fn flag_footnotes(comparisons: &[Comparison]) -> Vec<(char, &'static str)> {
    let rows = comparisons.iter().flat_map(|comparison| &comparison.rows);
    let flags: BTreeSet<RowFlag> = rows.flat_map(|row| row.flags.iter().copied()).collect();
    flags.into_iter().map(|flag| (flag.letter(), flag_footnote(flag))).collect()
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
    let imported = !comparisons.is_empty() && comparisons.iter().all(are_runs_imported);
    let mut kinds: IndexMap<&str, IndexMap<String, &ComparisonDiagnostic>> = IndexMap::new();
    for warning in comparisons.iter().flat_map(|comparison| &comparison.warnings) {
        kinds.entry(warning.kind()).or_default().entry(diagnostic_message(warning)).or_insert(warning);
    }
    let fold = |found: IndexMap<String, &ComparisonDiagnostic>| {
        fold_warnings(&found.into_values().collect::<Vec<_>>(), imported)
    };
    kinds.into_values().filter_map(fold).collect()
}

/// Whether other tools measured all runs: then nobody can have perflab measure more of them.
pub(crate) fn are_runs_imported(comparison: &Comparison) -> bool {
    !comparison.runs.is_empty() && comparison.runs.iter().all(|run| run.imported)
}

fn fold_warnings(found: &[&ComparisonDiagnostic], imported: bool) -> Option<DiagnosticGroup> {
    let first = found.first()?;
    let count = if found.len() > 1 { format!(" ({})", found.len()) } else { String::new() };
    let mut details: Vec<String> =
        found.iter().take(MOST_FINDINGS).map(|warning| diagnostic_detail(warning)).collect();
    if found.len() > MOST_FINDINGS {
        details.push(format!("and {} more", found.len() - MOST_FINDINGS));
    }
    Some(DiagnosticGroup {
        headline: format!("{}{count}", diagnostic_headline(first)),
        details,
        advice: diagnostic_advice(first, imported),
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
    let methods = comparisons.iter().flat_map(|comparison| &comparison.notes);
    let notes: IndexSet<String> = methods.map(describe_method).collect();
    let notes = notes.into_iter().flat_map(|note| wrap_text(&format!("note: {note}"), width, "", "  "));
    lines.extend(notes.map(|line| dim_text(&line, on)));
    lines
}

/// What to do about findings of this kind now; `imported` where other tools measured the runs.
pub(crate) fn diagnostic_advice(found: &ComparisonDiagnostic, imported: bool) -> &'static str {
    let of_imports = if imported { import_advice(found) } else { None };
    of_imports.unwrap_or(diagnostic_texts(found).1)
}

/// The same for runs that perflab did not measure, where it is another.
#[rustfmt::skip]
fn import_advice(found: &ComparisonDiagnostic) -> Option<&'static str> {
    Some(match found {
        ComparisonDiagnostic::FailedIterations { .. } => "see what the other tool said of them: values that remain may be a biased choice",
        ComparisonDiagnostic::NotNumbers { .. } => "look at the file: the other tool wrote them so",
        ComparisonDiagnostic::WarmUp { .. } => "leave them out with `--warmup auto`, or have the other tool warm up before it measures",
        ComparisonDiagnostic::OneSided { .. } => "import the missing side, or leave the case out with a filter",
        ComparisonDiagnostic::NoValues { .. } => "look at the file: the other tool gives no value of it",
        ComparisonDiagnostic::OneBoot { .. } => "import more runs a side, of several boots: the luck of one boot looks like a change",
        ComparisonDiagnostic::TooFew { level: RepetitionLevel::Machine, .. } => "import runs of both sides from three machines or more, or compare the runs of each machine",
        ComparisonDiagnostic::TooFew { level: RepetitionLevel::Boot, .. } => "import runs of more boots, 5 or more a side",
        ComparisonDiagnostic::TooFew { level: RepetitionLevel::Run, .. } => "import more runs, 4 or more a side, measured in turns",
        ComparisonDiagnostic::TooFew { .. } => "measure 10 times or more a side with the other tool, or import more runs",
        ComparisonDiagnostic::TooManyRows { .. } => "import more runs, or choose with --metric the rows that the question is about",
        ComparisonDiagnostic::NotInterleaved { .. } => "import more runs, two or more a side, measured in turns: drift of the machine looks like a change",
        ComparisonDiagnostic::SequentialOrder { .. } => "import more runs, or measure with perflab, which interleaves: drift looks like a change",
        ComparisonDiagnostic::Drift { .. } => "import more runs, measured in turns, after the machine has warmed up",
        ComparisonDiagnostic::Outliers { .. } => "they are kept; run the benchmark under perflab to see what the kernel did in those iterations",
        ComparisonDiagnostic::DifferentStudy { .. } => "import runs that the other tool made in one way",
        ComparisonDiagnostic::WithinNoise { .. } => "import more runs a side, measured in turns",
        _ => return None,
    })
}

/// The headline of all findings of this kind.
pub(crate) fn diagnostic_headline(found: &ComparisonDiagnostic) -> &'static str {
    diagnostic_texts(found).0
}

/// Headline and detail of one finding.
pub(crate) fn diagnostic_message(found: &ComparisonDiagnostic) -> String {
    format!("{}: {}", diagnostic_headline(found), diagnostic_detail(found))
}

/// One line a kind, with how often it was found: where a warning for every row would bury a table.
#[must_use]
pub fn diagnostic_summaries(comparison: &Comparison) -> Vec<String> {
    let imported = are_runs_imported(comparison);
    let mut kinds: IndexMap<&str, (&ComparisonDiagnostic, usize)> = IndexMap::new();
    for warning in &comparison.warnings {
        kinds.entry(warning.kind()).or_insert((warning, 0)).1 += 1;
    }
    let describe = |(warning, count): (&ComparisonDiagnostic, usize)| {
        let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
        format!("{}{times}; {}", diagnostic_headline(warning), diagnostic_advice(warning, imported))
    };
    kinds.into_values().map(describe).collect()
}

/// The headline of all findings of this kind, and what to do about them now: one line a kind.
#[rustfmt::skip]
fn diagnostic_texts(found: &ComparisonDiagnostic) -> (&'static str, &'static str) {
    match found {
        ComparisonDiagnostic::NotFinished { .. } => ("runs that did not reach their end", "compare it for a first impression only; `perflab show RUN` says how the rest can be measured"),
        ComparisonDiagnostic::CountedOnce { .. } => ("runs made of the very same files or values count once", "import each measurement once; the others can be removed with `perflab rm`"),
        ComparisonDiagnostic::SameContent { .. } => ("both sides have runs made of the very same files or values", "compare different measurements: a file held against itself is always the same"),
        ComparisonDiagnostic::FailedIterations { .. } => ("iterations failed", "read their output with `perflab show RUN`: values that remain may be a biased choice"),
        ComparisonDiagnostic::UnusableRows { .. } => ("not every row of the files could be used", "import them to see which lines, and why: `perflab import FILE`"),
        ComparisonDiagnostic::NotNumbers { .. } => ("values that are not numbers were left out", "check how the workload's output becomes metrics (`perflab workload try`)"),
        ComparisonDiagnostic::WarmUp { .. } => ("the first iterations are warm-up", "leave them out with `--warmup auto`, or give the study as many warm-up iterations"),
        ComparisonDiagnostic::NotExact { .. } => ("values that were assumed exact differ, so that statistics compare them", "take `assume=exact` off the unit, or find out why it varies"),
        ComparisonDiagnostic::OneSided { .. } => ("measured on one side only, so not compared", "run the missing side, or leave the case out with a filter"),
        ComparisonDiagnostic::NoValues { .. } => ("planned, but without a single value", "look at the failing iterations with `perflab show RUN`"),
        ComparisonDiagnostic::OneBoot { .. } => ("one boot a side, and not the same", "repeat both sides over several boots (two already say something, 5 or more decide): the luck of one boot looks like a change"),
        ComparisonDiagnostic::UnknownBoot { .. } => ("runs are compared: whether these imports are of one boot is not known", "if each run is of a boot of its own, say so with --boots-differ; else the luck of a boot may look like a change"),
        ComparisonDiagnostic::TooFew { level: RepetitionLevel::Machine, .. } => ("too few machines for an interval", "measure both sides on three machines or more, or compare the runs of each machine"),
        ComparisonDiagnostic::TooFew { level: RepetitionLevel::Boot, .. } => ("too few boots for an interval", "repeat over more boots, 5 or more a side: iterations within a boot do not replace them"),
        ComparisonDiagnostic::TooFew { level: RepetitionLevel::Run, .. } => ("too few runs for an interval", "repeat each side, 4 runs or more, in turns"),
        ComparisonDiagnostic::TooFew { level: RepetitionLevel::Layout, .. } => ("too few layouts for an interval", "raise `layout` in the study to 10 or more: iterations of one layout do not replace others"),
        ComparisonDiagnostic::TooManyRows { .. } => ("too few repetitions for so many rows", "repeat it so often, or choose with --metric the rows that the question is about"),
        ComparisonDiagnostic::NotComputed { .. } => ("changes that could not be computed", "look at the values in `--format json`: they are too large or too many for the statistic"),
        ComparisonDiagnostic::NotJudged { .. } => ("runs contradict each other in what a metric is, so that it gets no verdict", "measure both sides by one definition of the workload, or compare runs of before and of after its change apart"),
        ComparisonDiagnostic::TooFew { .. } => ("too few values for an interval", "take 10 or more: `iterations` of a study, `--runs` of bench"),
        ComparisonDiagnostic::NotInterleaved { .. } => ("one side was measured after the other", "make the difference a factor of one study, so that perflab interleaves its levels, or repeat both sides in turns: drift of the machine looks like a change"),
        ComparisonDiagnostic::SequentialOrder { .. } => ("iterations were not in random order", "remove `order = \"sequential\"` from the study, unless the order is what you study: drift looks like a change"),
        ComparisonDiagnostic::Drift { .. } => ("values drift", "add warm-up iterations, let the machine cool, or look for something that fills up; the report shows every iteration in time order"),
        ComparisonDiagnostic::Modes { .. } => ("values fall into two groups", "look at the dots in the report: one middle does not describe two groups; find what decides between them (placement, frequency, a background task)"),
        ComparisonDiagnostic::Outliers { .. } => ("some values lie far from the rest", "they are kept; where monitors ran, the report shows what they saw in those iterations"),
        ComparisonDiagnostic::DifferentEnvironment { .. } => ("the environment differs", "make sure that what differs is what you mean to compare"),
        ComparisonDiagnostic::DifferentCase { withheld: true, .. } => ("another benchmark under the same name: no verdict", "compare runs of the same case; --across judges them although they differ, for whoever changed just that"),
        ComparisonDiagnostic::DifferentCase { withheld: false, .. } => ("another benchmark under the same name, judged because of --across", "make sure that what differs is what you mean to compare"),
        ComparisonDiagnostic::DifferentStudy { .. } => ("the sides were run in different ways", "run both sides with the same study, or make the difference a factor"),
        ComparisonDiagnostic::WithinNoise { .. } => ("changes no larger than what this machine shows where nothing changed", "repeat it in a study that interleaves both sides, or over more boots"),
        ComparisonDiagnostic::OldNoiseCard { .. } => ("the noise card may not hold", "measure the machine's noise again: `perflab noise`"),
        ComparisonDiagnostic::OverwrittenSettings { .. } => ("somebody else changed settings during a run", "find who does it (a daemon such as tuned, another run), keep it away and repeat the run: some iterations ran under another setting than their case says"),
        ComparisonDiagnostic::MonitorGaps { .. } => ("monitors have gaps", "the comparison stands; the timelines of these monitors have holes"),
    }
}

/// The files with their counts; a file that is compared without an import gives its name to the side.
fn describe_unusable_rows(side: &str, files: &[String]) -> String {
    let named = |file: &String| match file.split_once(": ") {
        Some((name, counts)) if side.ends_with(name) => format!("{side}: {counts}"),
        _ => format!("{side}: {file}"),
    };
    files.iter().map(named).collect::<Vec<_>>().join("; ")
}

/// What was found, in one line without the headline.
pub(crate) fn diagnostic_detail(found: &ComparisonDiagnostic) -> String {
    match found {
        ComparisonDiagnostic::NotFinished { side, run, status } => {
            format!("{side}: run {run} is {status}")
        }
        ComparisonDiagnostic::CountedOnce { side, run, left_out } => {
            format!("{side}: run {run} for {}", left_out.join(", "))
        }
        ComparisonDiagnostic::SameContent { baseline, candidate, runs } => {
            format!("{baseline} and {candidate}: {}", runs.join(", "))
        }
        ComparisonDiagnostic::FailedIterations { side, subject, failed, reason } => {
            format!("{subject} ({side}): {failed}, the first: {reason}")
        }
        ComparisonDiagnostic::UnusableRows { side, files, .. } => describe_unusable_rows(side, files),
        ComparisonDiagnostic::NotNumbers { place, values } => {
            format!("{}: {values}", describe_location(place))
        }
        ComparisonDiagnostic::WarmUp { place, run, values, of, before, steady } => {
            format!(
                "{}: the first {values} of {of} in run {run}, {} against {}",
                describe_location(place),
                format_digits(*before),
                format_digits(*steady)
            )
        }
        ComparisonDiagnostic::NotExact { place, least, most } => {
            format!(
                "{}: from {} to {}",
                describe_location(place),
                format_digits(*least),
                format_digits(*most)
            )
        }
        ComparisonDiagnostic::OneSided { present, absent, subject, metrics } => {
            format!("{subject}: {} in {present}, not in {absent}", metrics.join(", "))
        }
        ComparisonDiagnostic::NoValues { subject } => subject.clone(),
        ComparisonDiagnostic::OneBoot { baseline, candidate }
        | ComparisonDiagnostic::UnknownBoot { baseline, candidate }
        | ComparisonDiagnostic::NotInterleaved { baseline, candidate } => {
            format!("{baseline} and {candidate}")
        }
        ComparisonDiagnostic::TooFew { place, baseline, candidate, level } => {
            let noun = level.noun();
            format!("{}: {baseline} against {candidate} {noun}", describe_location(place))
        }
        ComparisonDiagnostic::TooManyRows { rows, repetitions, needed, noun } => {
            format!(
                "one row that changes alone among {rows} cannot be decided with {repetitions} {noun}: with {needed} it can"
            )
        }
        ComparisonDiagnostic::NotComputed { place, reason }
        | ComparisonDiagnostic::NotJudged { place, reason } => {
            format!("{}: {reason}", describe_location(place))
        }
        ComparisonDiagnostic::SequentialOrder { run } => format!("run {run}"),
        ComparisonDiagnostic::Drift { place, rho, p } => {
            format!("{}: correlation with time {rho:.2}, p = {p:.1e}", describe_location(place))
        }
        ComparisonDiagnostic::Modes { place, low, high, high_share } => {
            format!(
                "{}: around {} and {}, {} in the upper",
                describe_location(place),
                format_digits(*low),
                format_digits(*high),
                format_share(*high_share)
            )
        }
        ComparisonDiagnostic::Outliers { place, iterations } => {
            let which: Vec<String> = iterations.iter().map(ToString::to_string).collect();
            let noun = if which.len() == 1 { "iteration" } else { "iterations" };
            format!("{}: {noun} {}", describe_location(place), which.join(", "))
        }
        ComparisonDiagnostic::DifferentEnvironment { candidate, first, .. } => list_items(candidate, first),
        ComparisonDiagnostic::DifferentCase { candidate, subject, differences, .. } => {
            list_items(&format!("{subject} ({candidate})"), differences)
        }
        ComparisonDiagnostic::DifferentStudy { candidate, differences, .. } => {
            list_items(candidate, differences)
        }
        ComparisonDiagnostic::WithinNoise { place, change, reach } => {
            format!(
                "{}: {}, of ± {}",
                describe_location(place),
                format_percent_change(*change),
                format_share(*reach)
            )
        }
        ComparisonDiagnostic::OldNoiseCard { doubts } => noise_card_doubts(doubts).join("; "),
        ComparisonDiagnostic::OverwrittenSettings { side, run, settings } => {
            list_items(&format!("{side}, run {run}"), settings)
        }
        ComparisonDiagnostic::MonitorGaps { side, run, monitors } => {
            list_items(&format!("{side}, run {run}"), monitors)
        }
    }
}

/// Why a noise card may not hold, one text each.
pub(crate) fn noise_card_doubts(doubts: &[NoiseCardDoubt]) -> Vec<String> {
    let describe = |doubt: &NoiseCardDoubt| match doubt {
        NoiseCardDoubt::Age { days } => format!("it is {days} days old"),
        NoiseCardDoubt::Kernel { card, run } => format!("the kernel was {card}, now {run}"),
        NoiseCardDoubt::Processor { card, run } => format!("the processor was {card}, now {run}"),
    };
    doubts.iter().map(describe).collect()
}

fn describe_location(place: &DiagnosticLocation) -> String {
    format!("{}, {} ({})", place.subject, place.metric, place.side)
}

fn list_items(head: &str, items: &[String]) -> String {
    format!("{head}: {}", items.join("; "))
}

/// The footnote of a flag.
pub(crate) fn flag_footnote(flag: RowFlag) -> &'static str {
    match flag {
        RowFlag::Changed => "differs clearly, but the metric has no better or worse",
        RowFlag::OneSided => "measured on one side only",
        RowFlag::OtherCase => {
            "command, parameters or definition differ: another benchmark under the same name"
        }
        RowFlag::OneBoot => "one boot a side, and not the same: a change and the luck of a boot look alike",
        RowFlag::UnknownBoot => "nobody knows whether these imports are of one boot (--boots-differ says no)",
        RowFlag::Few => "too few values for an interval",
        RowFlag::Drift => "the values drift",
        RowFlag::Modes => "the values fall into two groups",
        RowFlag::Outliers => "some values lie far from the rest (they are kept)",
        RowFlag::Failed => "some iterations failed",
        RowFlag::Sequential => "one side was measured after the other",
        RowFlag::Environment => "the environment differs",
        RowFlag::Gaps => "a monitor has gaps",
        RowFlag::Paired => {
            "the change is that of pairs (iterations of one block, or boots), not of the two medians, which scatter more"
        }
        RowFlag::Noise => "no larger than what this machine shows where nothing changed (`perflab noise`)",
    }
}
