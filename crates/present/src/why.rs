//! Why a row changed: in at most ten lines for a terminal, as a table, as JSON with its schema.

use perflab_analyze::why::{
    DoseWord, EXPLANATION_FORMAT, Explanation, FigureRow, IntervalValue, LeftOut, LogEvidence,
    RuledOutReason, SeriesFigures, Suspect, SuspectTest, SuspectTestWord, TestedLevel, TimePart, TimePlace,
    VariedSetting,
};
use perflab_analyze::{Comparison, FailureCount, KernelLogCount, VerdictRow};
use perflab_model::quantity::{
    UnitScale, format_count, format_percent_change, format_probability, format_quantity,
};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;

use crate::comparison::row_text::format_change;
use crate::grid::{Grid, GridCell, GridColumn};
use crate::sentence::count_text;
use crate::terminal_text::{bold_text, wrap_text};

/// So many suspects have lines of their own.
const MOST_SHOWN: usize = 3;

/// An answer has at most so many lines.
const MOST_LINES: usize = 10;

/// So many commands that would record more are shown.
const MOST_ADVICE: usize = 3;

/// So many facts are named.
const MOST_FACTS: usize = 2;

/// Letters at most of a value of a fact, and of a line that does not explain.
const LONGEST_VALUE: usize = 60;

/// Counts up to this have every digit.
const MOST_DIGITS: f64 = 1e9;

/// The JSON Schema of [`ExplanationDocument`].
#[must_use]
pub fn explanation_schema() -> serde_json::Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.into_root_schema_for::<ExplanationDocument<'_>>().to_value()
}

/// What `perflab why --format json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExplanationDocument<'a> {
    /// version of this shape
    format: u32,
    /// why the row that was chosen changed; null where nothing changed
    explanation: Option<&'a Explanation>,
    /// the rows that answer the question, each with its verdict
    rows: Vec<ExplainedRow<'a>>,
}

/// A row of the comparison.
#[derive(Debug, Serialize, JsonSchema)]
struct ExplainedRow<'a> {
    /// the case
    subject: &'a str,
    /// name of the candidate
    candidate: &'a str,
    /// the metric
    metric: &'a str,
    /// what `compare` says of it
    verdict: &'a str,
}

impl<'a> ExplanationDocument<'a> {
    /// The explanation with the rows of its comparison.
    #[must_use]
    pub fn new(explanation: Option<&'a Explanation>, comparison: &'a Comparison) -> Self {
        let row = |row: &'a VerdictRow| ExplainedRow {
            subject: &row.subject,
            candidate: &row.candidate_name,
            metric: &row.metric,
            verdict: row.verdict_word(),
        };
        let rows = comparison.deciding_rows().into_iter().map(row).collect();
        ExplanationDocument { format: EXPLANATION_FORMAT, explanation, rows }
    }
}

/// The answer for people: lines of at most `width` columns, ten of them, unless a single suspect takes more. Commands are broken so that
/// they can be pasted.
#[must_use]
pub fn explanation_text(found: &Explanation, width: Option<usize>, colour: bool) -> String {
    let mut room = AnswerRoom { suspects: MOST_SHOWN, advice: MOST_ADVICE, has_figures: true };
    let mut lines = answer_lines(found, room, width, colour);
    while lines.len() > MOST_LINES && room.narrow() {
        lines = answer_lines(found, room, width, colour);
    }
    lines.join("\n")
}

/// How much of an answer is shown.
#[derive(Debug, Clone, Copy)]
struct AnswerRoom {
    suspects: usize,
    advice: usize,
    has_figures: bool,
}

impl AnswerRoom {
    /// Shows less; `false` where there is no less.
    fn narrow(&mut self) -> bool {
        match *self {
            AnswerRoom { suspects: 2.., .. } => self.suspects -= 1,
            AnswerRoom { advice: 2.., .. } => self.advice -= 1,
            AnswerRoom { has_figures: true, .. } => self.has_figures = false,
            _ => return false,
        }
        true
    }
}

fn answer_lines(found: &Explanation, room: AnswerRoom, width: Option<usize>, colour: bool) -> Vec<String> {
    let mut lines = AnswerLines { width: width.unwrap_or(usize::MAX), lines: Vec::new() };
    lines.add_text("", &explanation_headline(found));
    lines.lines.iter_mut().for_each(|line| *line = bold_text(line, colour));
    for line in [place_line(found), failure_line(found)].into_iter().flatten() {
        lines.add_text("", &line);
    }
    found.varied.iter().for_each(|varied| lines.add_text("", &varied_sentence(varied, found)));
    let explaining = found.kernel_log.iter().filter(|line| line.explains);
    let of_log = explaining.map(|line| (log_sentence(line, found), None, &line.shown_by));
    let of_series = found
        .suspects
        .iter()
        .map(|suspect| (suspect_sentence(suspect, found), Some(&suspect.test), &suspect.shown_by));
    for (number, (sentence, test, figures)) in (1..).zip(of_log.chain(of_series).take(room.suspects)) {
        lines.add_text("", &format!("{number}. {sentence}"));
        // What was varied in turn is tested already.
        let test = test.filter(|_| found.varied.iter().all(|varied| !varied.in_blocks));
        test.into_iter().for_each(|test| lines.add_command("   Test: ", test));
        if room.has_figures {
            lines.add_command("   Figures: ", figures);
        }
    }
    found.tested.iter().for_each(|tested| lines.add_text("", &test_sentence(tested, found)));
    if !found.is_mostly_carried() {
        lines.add_text(
            "",
            &match (found.has_suspects(), found.change) {
                (true, _) => "None of these can carry half of it; what carries most of it is unknown".into(),
                (false, Some(_)) => nothing_found(found),
                (false, None) => "I do not know why: nothing in the kernel's log goes with it".into(),
            },
        );
        for advice in found.to_record.iter().take(room.advice) {
            lines.add_command(&format!("   Record {}: ", advice.about), &advice.command);
        }
    }
    let others = [outside_line(found), other_differences(found, room.suspects), left_out_line(found)];
    others.into_iter().flatten().for_each(|line| lines.add_text("", &line));
    lines.lines
}

/// Lines of a width.
struct AnswerLines {
    width: usize,
    lines: Vec<String>,
}

impl AnswerLines {
    fn add_text(&mut self, indent: &str, text: &str) {
        self.lines.extend(wrap_text(text, self.width, indent, "   "));
    }

    /// A command behind what it is for, broken as a shell joins it.
    fn add_command(&mut self, what: &str, command: &str) {
        let mut line = what.to_owned();
        let first = shell_words(command).first().map_or(0, |word| word.chars().count());
        if what.chars().count() + first + 2 > self.width {
            self.add_text("   ", what.trim());
            line = "     ".to_owned();
        }
        let mut is_fresh = true;
        for word in shell_words(command) {
            // Room for a blank, and for what breaks the line.
            if !is_fresh && line.chars().count() + word.chars().count() + 3 > self.width {
                self.lines.push(format!("{line} \\"));
                line = "     ".to_owned();
                is_fresh = true;
            }
            if !is_fresh {
                line.push(' ');
            }
            line.push_str(word);
            is_fresh = false;
        }
        self.lines.push(line);
    }
}

/// The words of a command as they are written, quotes and all.
fn shell_words(command: &str) -> Vec<&str> {
    let mut quote = None;
    let mut is_escaped = false;
    let at_blank = |letter: char| {
        match (quote, letter) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, ' ') => return true,
            _ => {}
        }
        false
    };
    command.split(at_blank).collect()
}

/// The suspects as a table, one a row.
#[must_use]
pub fn suspect_grid(found: &Explanation) -> Grid {
    let number = |title: &str| GridColumn::right(title);
    let mut grid = Grid::new([
        GridColumn::left("cause"),
        GridColumn::left("series"),
        number("before"),
        number("after"),
        number("t"),
        number("p"),
        GridColumn::left("dose"),
        number("carries"),
        number("carries low"),
        number("carries high"),
        number("at most"),
        number("remains"),
        number("remains low"),
        number("remains high"),
        GridColumn::left("test"),
        GridColumn::left("figures"),
    ]);
    let unit = found.unit.0.as_str();
    let seconds = |value: Option<f64>| -> GridCell {
        value.map_or_else(GridCell::missing, |value| GridCell::quantity(value, unit))
    };
    for suspect in &found.suspects {
        let account = suspect.account;
        let parts = |bounded: Option<IntervalValue>| {
            [bounded.map(|one| one.value), bounded.map(|one| one.low), bounded.map(|one| one.high)]
                .map(seconds)
        };
        let amount = |value: f64| GridCell::with_text(amount_text(value, suspect.unit.0.as_str()), value);
        let mut cells: Vec<GridCell> = vec![
            suspect.cause.as_str().into(),
            suspect.series.as_str().into(),
            amount(suspect.before),
            amount(suspect.after),
            GridCell::with_text(format!("{:.1}", suspect.difference.t), suspect.difference.t),
            GridCell::with_text(
                format_probability(suspect.difference.adjusted_p),
                suspect.difference.adjusted_p,
            ),
            dose_word(suspect.dose.word).into(),
        ];
        cells.extend(parts(account.carries));
        cells.push(seconds(account.at_most));
        cells.extend(parts(account.remains));
        cells.push(suspect.test.as_str().into());
        cells.push(suspect.shown_by.as_str().into());
        grid.add_row(cells);
    }
    grid
}

/// The figures of a series, unit by unit.
#[must_use]
pub fn series_grid(figures: &SeriesFigures) -> Grid {
    let sides = ["baseline", "candidate"];
    let titles = [
        sides.map(|side| format!("{} {side}", figures.metric)),
        sides.map(|side| format!("{} {side}", figures.series)),
    ];
    let mut grid = Grid::new(titles.concat().iter().map(|title| GridColumn::right(title)));
    let metric = |value: Option<f64>| {
        value.map_or_else(GridCell::missing, |value| GridCell::quantity(value, figures.unit.0.as_str()))
    };
    let series = |value: Option<f64>| {
        let cell =
            |value: f64| GridCell::with_text(amount_text(value, figures.series_unit.0.as_str()), value);
        value.map_or_else(GridCell::missing, cell)
    };
    for FigureRow { baseline, candidate, baseline_series, candidate_series } in &figures.rows {
        grid.add_row([
            metric(*baseline),
            metric(*candidate),
            series(*baseline_series),
            series(*candidate_series),
        ]);
    }
    grid
}

fn explanation_headline(found: &Explanation) -> String {
    let unit = found.unit.0.as_str();
    let sides = format!("{} {}, {} -> {}", found.subject, found.metric, found.baseline, found.candidate);
    let Some(change) = found.change else {
        return format!("{sides}: {}, by how often iterations fail", found.verdict);
    };
    let relative = match found.before.filter(|before| *before != 0.0) {
        Some(before) => {
            format!(" ({})", format_percent_change(change.value / before.abs()).replace('\u{a0}', " "))
        }
        None => String::new(),
    };
    let units = found.units;
    let compared = match (units.paired, units.baseline == units.candidate) {
        (true, _) => format!("{} pairs of {}", units.baseline, units.noun),
        (false, true) => format!("{} {} a side", units.baseline, units.noun),
        (false, false) => format!("{} and {} {}", units.baseline, units.candidate, units.noun),
    };
    let what = if found.by_work { " (time for as much work)" } else { "" };
    let luck = if units.these_two_only { "; what goes with it may be the luck of these two" } else { "" };
    let verdict = &found.verdict;
    format!("{sides}: {verdict}{what} {}{relative}, {compared}{luck}", bounded_text(change, unit))
}

/// In one line how often iterations failed on both sides, and how the first did.
fn failure_line(found: &Explanation) -> Option<String> {
    let failures = found.failures.as_ref()?;
    let count = |side: FailureCount| format!("{} of {}", side.failed, side.of);
    let counts = failures.counts;
    let reason = failures.candidate_reason.as_ref().or(failures.baseline_reason.as_ref());
    Some(format!(
        "Failed: {} iterations instead of {} (p {}){}",
        count(counts.candidate),
        count(counts.baseline),
        format_probability(counts.p),
        reason.map(|reason| format!(": {reason}")).unwrap_or_default()
    ))
}

/// What the study set, as the cause that it is where levels took turns.
fn varied_sentence(varied: &VariedSetting, found: &Explanation) -> String {
    let kind = varied.kind.to_string();
    let key = if varied.key == kind { String::new() } else { format!(" {}", varied.key) };
    let by_design = match (varied.in_blocks, found.has_suspects()) {
        (true, true) => ", in turn: it is the cause; what it acts through:",
        (true, false) => ", in turn: it is the cause",
        (false, _) => "",
    };
    format!("Varied: {kind}{key}, {} -> {}{by_design}", varied.baseline, varied.candidate)
}

/// Trouble that kernels printed, where it explains.
fn log_sentence(line: &LogEvidence, found: &Explanation) -> String {
    let count = |side: KernelLogCount| format!("{} of {}", side.iterations, side.of);
    let with = line.baseline.failed_with + line.candidate.failed_with;
    let failed = match with {
        0 => String::new(),
        with => {
            let all = line.baseline.iterations + line.candidate.iterations;
            format!(", {with} of {all} with it failed")
        }
    };
    let p = if found.change.is_none() { line.failure_p.unwrap_or(line.adjusted_p) } else { line.adjusted_p };
    format!(
        "{} (the kernel's log): in {} iterations instead of {} (p {}){failed}; {}",
        line.cause,
        count(line.candidate),
        count(line.baseline),
        format_probability(p),
        line.line
    )
}

/// What the test of a suspect has shown.
fn test_sentence(tested: &SuspectTest, found: &Explanation) -> String {
    let level = |one: &TestedLevel| {
        let change =
            one.change.map_or_else(|| "no value".into(), |change| format_change(change, &found.unit.0));
        format!("{change} with {}={}", tested.factor, one.level)
    };
    let levels: Vec<String> = tested.levels.iter().map(level).collect();
    let percent = |share: f64| format!("{:.0}", 100.0 * share);
    let share = tested.share.map(|share| {
        let [value, low, high] = [share.value, share.low, share.high].map(percent);
        format!("{value} % [{low}, {high}] of the change is gone")
    });
    let word = match tested.word {
        SuspectTestWord::Cause => "it is the cause of most of it",
        SuspectTestWord::NoCause => "most of it has another cause",
        SuspectTestWord::Undecided => "which does not decide: more iterations would",
    };
    let shown: Vec<String> = [levels.join(", ")].into_iter().chain(share).collect();
    format!("Tested, {} (run {}): {}; {word}", tested.cause, tested.run, shown.join("; "))
}

/// Facts that differ, the likeliest causes, in one line.
fn outside_line(found: &Explanation) -> Option<String> {
    let none = || "none".to_owned();
    let shown: Vec<String> = found
        .facts
        .iter()
        .take(MOST_FACTS)
        .map(|fact| {
            let value = |value: &Option<String>| shorten_value(&value.clone().unwrap_or_else(none));
            format!("{} {} -> {}", fact.key, value(&fact.baseline), value(&fact.candidate))
        })
        .collect();
    let more = match found.facts.len().saturating_sub(MOST_FACTS) {
        0 => String::new(),
        count => format!("; {count} more in perflab diff {} {}", found.baseline, found.candidate),
    };
    (!shown.is_empty()).then(|| format!("Changed outside: {}{more}", shown.join("; ")))
}

/// The beginning of a value that is a long text.
fn shorten_value(value: &str) -> String {
    match value.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", value.get(..end).unwrap_or_default()),
        None => value.to_owned(),
    }
}

fn place_line(found: &Explanation) -> Option<String> {
    if found.places.is_empty() {
        return None;
    }
    let place = |one: &TimePlace| format!("{} {}", one.part.phrase(), bounded_text(one.change, "s"));
    let find = |part: TimePart| found.places.iter().find(|one| one.part == part);
    // What is left of the time off the CPUs stands in its place, where it is known what the rest was.
    let whole = find(TimePart::OffCpu).filter(|_| find(TimePart::Blocked).is_none());
    let is_wait = |one: &&TimePlace| !one.part.is_on_cpu() && one.part != TimePart::OffCpu;
    let waits: Vec<String> = found.places.iter().filter(is_wait).map(place).collect();
    let on_cpu = found.places.iter().filter(|one| one.part.is_on_cpu()).map(place);
    let off_cpu = match whole {
        None => waits,
        Some(whole) if waits.is_empty() => vec![place(whole)],
        // Threads that wait at once wait for longer than the iteration lasts.
        Some(whole) => {
            vec![format!("{} (of which, summed over its threads: {})", place(whole), waits.join(", "))]
        }
    };
    Some(format!("Where: {}", on_cpu.chain(off_cpu).collect::<Vec<_>>().join(", ")))
}

fn suspect_sentence(suspect: &Suspect, found: &Explanation) -> String {
    let unit = suspect.unit.0.as_str();
    let of = if suspect.known && suspect.series != suspect.cause {
        format!(" ({})", suspect.series)
    } else {
        String::new()
    };
    let noun = found.units.noun.trim_end_matches('s');
    let amounts = if found.by_work {
        "for as much work".to_owned()
    } else if found.units.noun == "iterations" {
        format!("an {noun}")
    } else {
        format!("an iteration of a {noun}")
    };
    let more = match suspect.twins.len() {
        0 => String::new(),
        1 => "; 1 more series goes with it".to_owned(),
        count => format!("; {count} more series go with it"),
    };
    format!(
        "{}{of}: {} instead of {} {amounts} (p {}); {}{more}",
        suspect.cause,
        amount_text(suspect.after, unit),
        amount_text(suspect.before, unit),
        format_probability(suspect.difference.adjusted_p),
        account_text(suspect, found),
    )
}

/// How much it can carry, and what remains without it: never more than the evidence says.
fn account_text(suspect: &Suspect, found: &Explanation) -> String {
    let unit = found.unit.0.as_str();
    let Some(change) = found.change else { return String::new() };
    let whole = part_text(change.value, found);
    let account = suspect.account;
    let sign = change.value.signum();
    let part = |part: f64| part_text(part * sign, found);
    let most = account.at_most.map(|most| {
        let room = account.waiting.map(|waiting| {
            format!(" ({} on the CPU, {} waiting for one)", part(most - waiting), part(waiting))
        });
        format!("can carry at most {} of the {whole}{}", part(most), room.unwrap_or_default())
    });
    let carried = account.carries.map_or(0.0, |carries| carries.value.abs());
    let is_capped = account.at_most.is_some_and(|most| most < carried.min(change.value.abs()));
    let mut parts = Vec::new();
    match (account.carries, most) {
        (Some(_), Some(most)) if is_capped => parts.push(format!("{most}; its slope alone suggests more")),
        (Some(carries), _) => {
            let beyond = if carried > change.value.abs() { ", more than all" } else { "" };
            parts.push(format!("can carry {} of the {whole}{beyond}", bounded_text(carries, unit)));
        }
        (None, Some(most)) => parts.push(most),
        (None, None) => parts.push("how much of it that can carry is not known".into()),
    }
    match (suspect.dose.word, account.remains) {
        (DoseWord::Agrees, Some(_)) if is_capped => {}
        (DoseWord::Agrees, Some(remains)) => {
            parts.push(format!("held constant, {} remain", bounded_text(remains, unit)));
        }
        (DoseWord::Undecided, _) => parts.push("within the sides, more of it shows no clear effect".into()),
        _ => parts.push("it hardly varies within the sides, so what each costs is unknown".into()),
    }
    parts.join("; ")
}

fn nothing_found(found: &Explanation) -> String {
    let counts = found.looked_at;
    let few = found.left_out.iter().any(|one| matches!(one, LeftOut::TooFewUnits { .. }));
    if few {
        return format!(
            "I do not know: {} {} a side are too few to tell any cause from chance",
            found.units.baseline.min(found.units.candidate),
            found.units.noun
        );
    }
    let differing = match counts.differing {
        0 => "none differs between the sides beyond chance".into(),
        1 => "one differs beyond chance, and cannot carry the change".into(),
        count => format!("{count} differ beyond chance, and cannot carry the change"),
    };
    format!(
        "I do not know: of {} recorded quantities ({} families), {differing}",
        counts.quantities, counts.families
    )
}

/// In one line what else differs: further suspects, lines of the kernel's log, and the first that was ruled out.
fn other_differences(found: &Explanation, shown: usize) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    let of_log = found.kernel_log.iter().filter(|line| line.explains).map(|line| line.cause.as_str());
    let suspects = of_log.chain(found.suspects.iter().map(|suspect| suspect.cause.as_str()));
    let further: Vec<&str> = suspects.skip(shown).collect();
    let (named, rest) = further.split_at(further.len().min(MOST_SHOWN));
    parts.extend((!named.is_empty()).then(|| {
        let rest = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        format!("suspect, too: {}{rest} (--format csv)", named.join(", "))
    }));
    let line = found.kernel_log.iter().find(|line| !line.explains);
    parts.extend(line.map(|line| format!("the kernel's log: {}", shorten_value(&line.line))));
    parts.extend(found.ruled_out.first().map(|one| {
        let why = match one.reason {
            RuledOutReason::TooSmall { at_most } => {
                format!("can carry {} at most", format_quantity(at_most, found.unit.0.as_str()))
            }
            RuledOutReason::OtherWay => "goes the other way".into(),
        };
        format!(
            "ruled out: {} ({why}){}",
            one.cause,
            match found.ruled_out.len() - 1 {
                0 => String::new(),
                count => format!(" and {count} more"),
            }
        )
    }));
    (!parts.is_empty()).then(|| format!("Also: {}", parts.join("; ")))
}

/// In one line what was not looked at.
fn left_out_line(found: &Explanation) -> Option<String> {
    let texts: Vec<String> = found.left_out.iter().filter_map(left_out_text).collect();
    let beyond = found.looked_at.beyond;
    let texts =
        texts.into_iter().chain((beyond > 0).then(|| format!("{beyond} families beyond the first 200")));
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| format!("Left out: {}", texts.join("; ")))
}

fn left_out_text(one: &LeftOut) -> Option<String> {
    Some(match one {
        LeftOut::OneSided { names } => format!("on one side only: {}", names.join(", ")),
        LeftOut::Incomplete { names } => format!("missing in many iterations: {}", names.join(", ")),
        LeftOut::Unreadable { run, monitor, reason } => {
            format!("{monitor} of run {}: {reason}", short_run_id(run))
        }
        LeftOut::Gap { run, monitor, iterations, went_back } => {
            let mut parts = Vec::new();
            parts.extend((*iterations > 0).then(|| format!("not read in {iterations} iterations")));
            parts.extend(
                (*went_back > 0).then(|| format!("{} went backwards", count_text(*went_back, "counter"))),
            );
            format!("{monitor} of run {}: {}", short_run_id(run), parts.join(", "))
        }
        LeftOut::TooFewUnits { needed } => format!("causes, which need {needed} a side"),
    })
}

fn short_run_id(run: &str) -> &str {
    run.get(..10).unwrap_or(run)
}

fn dose_word(word: DoseWord) -> &'static str {
    match word {
        DoseWord::Agrees => "agrees",
        DoseWord::Undecided => "undecided",
        DoseWord::Unvarying => "unvarying",
        DoseWord::Contradicts => "contradicts",
    }
}

/// `12,004`, `1.5 MiB`, `3.2 ms`
fn amount_text(value: f64, unit: &str) -> String {
    let is_count = perflab_model::quantity::is_count_unit(unit);
    if is_count && value.abs() < MOST_DIGITS && value.abs() >= 10.0 {
        let word = if unit == "1" { String::new() } else { format!(" {unit}") };
        return format!("{}{word}", format_count(value.round() as i64));
    }
    format_quantity(value, unit).replace('\u{a0}', " ")
}

/// `+52 ms [47, 57]`
fn bounded_text(bounded: IntervalValue, unit: &str) -> String {
    let Some(shown) = ShownChange::fitting(bounded, unit) else { return "0".into() };
    let estimate = shown.estimate(bounded.value);
    if bounded.low.is_finite() && bounded.high.is_finite() {
        format!("{estimate} [{}, {}]", shown.number(bounded.low), shown.number(bounded.high))
    } else {
        estimate
    }
}

/// A change in a unit that suits it, with as many decimals as its interval is worth.
struct ShownChange {
    scale: UnitScale,
    decimals: usize,
}

/// A change in seconds that is smaller is what rounding leaves.
const LEAST_SECONDS: f64 = 1e-9;

impl ShownChange {
    /// Nothing of a change that is none.
    fn fitting(bounded: IntervalValue, unit: &str) -> Option<Self> {
        let finite = [bounded.value, bounded.low, bounded.high].into_iter().filter(|value| value.is_finite());
        let largest = finite.fold(0.0_f64, |most, value| most.max(value.abs()));
        if largest == 0.0 || unit == "s" && largest < LEAST_SECONDS {
            return None;
        }
        let scale = UnitScale::fitting(unit, bounded.value.abs().max(largest / 10.0));
        let width = (bounded.high - bounded.low) / scale.divisor;
        Some(ShownChange { decimals: perflab_model::quantity::decimals_for_width(width), scale })
    }

    fn number(&self, value: f64) -> String {
        format!("{:.*}", self.decimals, value / self.scale.divisor)
    }

    fn estimate(&self, value: f64) -> String {
        let number = perflab_model::quantity::format_signed(value / self.scale.divisor, self.decimals);
        format!("{number} {}", self.scale.name.replace('\u{a0}', " ")).trim_end().to_owned()
    }
}

/// A part of the change as it is written in the headline.
fn part_text(part: f64, found: &Explanation) -> String {
    let unit = found.unit.0.as_str();
    let shown = found.change.and_then(|change| ShownChange::fitting(change, unit));
    shown.map_or_else(|| "0".into(), |shown| shown.estimate(part))
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::{RunBuilder, SplitMixNoise, explanatory_metric, primary_metric};
    use perflab_analyze::why::{add_durations, explain_row};
    use perflab_analyze::{AnalysisOptions, ComparisonSide, compare_levels};
    use perflab_model::Direction;

    use super::*;

    /// Twelve pairs: `b` has 5,000 page faults of 10 us more, or 100 ms of user time that nothing goes with.
    fn explain(has_faults: bool) -> Explanation {
        let metric = |name, unit| explanatory_metric(name, unit, Direction::Lower);
        let builder = RunBuilder::new("01A").with(|run| {
            run.factors = vec![("how", vec!["a", "b"])];
            run.iterations = 12;
            run.metrics = vec![
                primary_metric("time", "s", Direction::Lower),
                metric("user", "s"),
                metric("system", "s"),
                metric("minor-faults", "1"),
                metric("vmstat pgmigrate_success", "pages"),
            ];
        });
        let mut noise = SplitMixNoise(1);
        let (mut user, mut faults) = (0.0, 0.0);
        let mut record = builder.build_run(|point| {
            let is_b = point.level("how") == "b";
            Some(match point.metric {
                "time" => {
                    let more = if is_b { 5000.0 } else { 0.0 };
                    faults = (100.0 + if has_faults { more } else { 0.0 }) * (1.0 + 0.2 * noise.normal());
                    user = 0.4 + 0.002 * noise.normal() + if is_b && !has_faults { 0.1 } else { 0.0 };
                    user + 1e-5 * faults
                }
                "user" => user,
                "system" => 1e-5 * faults,
                "minor-faults" => faults,
                _ => 1e3 * noise.uniform(),
            })
        });
        add_durations(&mut record);
        let side = [ComparisonSide { name: "01A".into(), runs: vec![record] }];
        let options = AnalysisOptions::default();
        let comparison = compare_levels(&side[0], "how", &options).unwrap();
        explain_row(&comparison, comparison.deciding_rows()[0], &side, &options, &[]).unwrap()
    }

    #[test]
    fn an_answer_has_at_most_ten_lines() {
        let texts = [true, false].map(|has_faults| explanation_text(&explain(has_faults), None, false));
        assert!(texts.iter().all(|text| text.lines().count() <= 10));
        insta::assert_snapshot!(texts.join("\n\n"));
    }

    /// What waits stands within the time off the CPUs, and what is waited for within what a suspect can carry.
    #[test]
    fn a_part_of_the_time_stands_within_the_whole() {
        let mut found = explain(true);
        let off = found.places.iter_mut().find(|place| place.part == TimePart::OffCpu).unwrap();
        off.change = IntervalValue { value: 0.0588, low: 0.0382, high: 0.0794 };
        let waits = TimePlace { part: TimePart::CpuWait, ..*off };
        found.places.insert(2, waits);
        let account = &mut found.suspects[0].account;
        (account.carries, account.waiting) = (None, Some(0.01));
        let shown = |found: &Explanation| {
            let text = explanation_text(found, None, false);
            text.lines().skip(1).take(2).map(str::to_owned).collect::<Vec<_>>().join("\n")
        };
        let of_threads = shown(&found);
        // Where what is left is known, the parts stand for the whole.
        found.places.push(TimePlace { part: TimePart::Blocked, ..waits });
        insta::assert_snapshot!([of_threads, shown(&found)].join("\n"));
    }

    /// What a suspect's slope says beyond what there is room for is not said to remain.
    #[test]
    fn a_dose_does_not_contradict_the_account() {
        let mut found = explain(true);
        let suspect = &mut found.suspects[0];
        suspect.account.at_most = Some(0.02);
        let capped = account_text(&found.suspects[0].clone(), &found);
        found.suspects[0].dose.word = DoseWord::Undecided;
        found.suspects[0].account.carries = None;
        let undecided = account_text(&found.suspects[0].clone(), &found);
        found.suspects[0].dose.word = DoseWord::Unvarying;
        let unvarying = account_text(&found.suspects[0].clone(), &found);
        insta::assert_snapshot!([capped, undecided, unvarying].join("\n"));
    }

    #[test]
    fn lines_are_no_wider_than_asked_for_and_commands_are_broken_as_shells_join_them() {
        for has_faults in [true, false] {
            let text = explanation_text(&explain(has_faults), Some(72), false);
            assert!(text.lines().all(|line| line.chars().count() <= 72), "{text}");
            assert!(text.lines().count() <= 10, "{text}");
        }
        let mut lines = AnswerLines { width: 30, lines: Vec::new() };
        let command = "perflab run --event x -- sh -c 'a b  c' \"d 'e' f\" g\\ h";
        lines.add_command("   Test: ", command);
        assert!(lines.lines.len() > 2 && lines.lines.iter().all(|line| line.chars().count() <= 30));
        let joined = lines.lines.join("\n").replace("\\\n", "");
        let words = |text: &str| {
            shell_words(text)
                .into_iter()
                .map(str::to_owned)
                .filter(|word| !word.is_empty())
                .collect::<Vec<_>>()
        };
        assert_eq!(words(joined.trim_start().strip_prefix("Test: ").unwrap()), words(command));
    }

    #[test]
    fn suspects_are_rows() {
        let grid = suspect_grid(&explain(true));
        insta::assert_snapshot!(grid.render(crate::grid::OutputFormat::Csv, None, false).unwrap());
    }

    #[test]
    fn amounts_are_as_people_write_them() {
        assert_eq!(amount_text(12_004.0, "1"), "12,004");
        assert_eq!(amount_text(3.25, "1"), "3.25");
        let bounded = IntervalValue { value: 0.0523, low: 0.0471, high: 0.0569 };
        assert_eq!(bounded_text(bounded, "s"), "+52.3 ms [47.1, 56.9]");
        let unbounded = IntervalValue { value: -0.5, low: f64::NEG_INFINITY, high: f64::INFINITY };
        assert_eq!(bounded_text(unbounded, "s"), "-500.0 ms");
    }
}
