//! How histories are shown: the table of steps, the runs of one series, the figure, the check of the newest run, the
//! section History.
//!
//! A series without steps is counted in the notes. The figure has a dot per run, not a time axis, where clustered runs
//! would hide one another. The report has the first dozen series with steps: a page is read by people.

use jiff::Timestamp;
use perflab_analyze::compare::comparison::ComparedRun;
use perflab_analyze::history::{AcceptedBaseline, HistoryChangePoint, MetricHistory};
use perflab_analyze::{
    ChangeScale, GuardFailures, GuardReport, GuardRow, MetricChange, MetricHistories, Verdict,
};

use crate::chart::axes::AxisBand;
use crate::chart::axis_unit::AxisUnit;
use crate::chart::dot_charts::{ChartDot, DotChart, LevelLine};
use crate::chart::scene::Scene;
use crate::grid::{Grid, GridCell, GridColumn};
use crate::method_text::describe_methods;
use crate::section::{ReportData, Section, SectionBlock, SectionError};
use crate::sentence::count_text;
use crate::tested_commit::tested_commits_grid;
use perflab_model::quantity::format_probability;
use perflab_model::remove_control_characters;

/// One line a step, the newest first.
#[must_use]
pub fn steps_grid(history: &MetricHistories) -> Grid {
    let left = ["case", "metric", "last good", "first bad", "verdict"].map(GridColumn::left);
    let right = ["change [95 % CI]", "q", "moved together"].map(GridColumn::right);
    let mut grid = Grid::new(left.into_iter().chain(right).chain([GridColumn::left("facts that differ")]));
    let mut steps: Vec<(&MetricHistory, &HistoryChangePoint)> = history
        .series
        .iter()
        .flat_map(|series| series.steps.iter().map(move |step| (series, step)))
        .collect();
    steps.sort_by(|a, b| b.1.first_bad.cmp(&a.1.first_bad));
    for (series, step) in steps {
        let run = |id: &str| {
            history.runs.iter().find(|run| run.id == id).map_or_else(|| id.to_owned(), history_run_name)
        };
        let between = if step.between.is_empty() {
            String::new()
        } else {
            format!(" ({} between)", step.between.len())
        };
        grid.add_row([
            GridCell::from(series.subject.as_str()),
            GridCell::from(series.metric.as_str()),
            GridCell::with_text(run(&step.last_good), step.last_good.as_str()),
            GridCell::with_text(run(&step.first_bad) + &between, step.first_bad.as_str()),
            GridCell::from(step_word(step)),
            GridCell::with_text(step_change_text(step.change, &series.unit.0), step.change.value),
            GridCell::with_text(format_probability(step.q), step.q),
            GridCell::from(step.together),
            GridCell::from(step_remarks(series, step)),
        ]);
    }
    grid
}

/// Whether it was accepted, and the facts that differ.
fn step_remarks(series: &MetricHistory, step: &HistoryChangePoint) -> String {
    let accepted = series.accepted_with(step).map(accepted_text);
    accepted.into_iter().chain(step.facts.iter().cloned()).collect::<Vec<_>>().join("; ")
}

fn accepted_text(baseline: &AcceptedBaseline) -> String {
    format!("accepted: {}", remove_control_characters(&baseline.note))
}

/// A step in a sentence: `✗ worse: latency of hackbench, +12 % [+10 %, +14 %]`.
#[must_use]
pub fn describe_step(series: &MetricHistory, step: &HistoryChangePoint) -> String {
    let change = step_change_text(step.change, &series.unit.0);
    format!("{}: {} of {}, {change}", step_word(step), series.metric, series.subject)
}

pub(crate) fn step_word(step: &HistoryChangePoint) -> &'static str {
    use perflab_analyze::Verdict::{Better, Differs, Same, SameHere, Unclear, Worse};
    match step.verdict {
        Better => "✓ better",
        Worse => "✗ worse",
        Same | SameHere => "= within the margin",
        Unclear | Differs => "≠ changed",
    }
}

/// One line a run of a series, the oldest first, with its steps.
#[must_use]
pub fn history_runs_grid(history: &MetricHistories, series: &MetricHistory) -> Grid {
    let title = if series.unit.0 == "1" {
        series.metric.clone()
    } else {
        format!("{} [{}]", series.metric, series.unit)
    };
    let columns = [
        GridColumn::left("run"),
        GridColumn::left("start"),
        GridColumn::right(&title),
        GridColumn::right("interval"),
    ];
    let columns = columns.into_iter().chain([GridColumn::right("n×boots"), GridColumn::left("step")]);
    let mut grid = Grid::new(columns);
    for (at, point) in series.points.iter().enumerate() {
        let run = history.runs.get(point.run);
        let step = series.steps.iter().find(|step| step.at == at);
        let text = |value: f64| GridCell::quantity(value, "").text().to_owned();
        let interval = point.interval.map(|i| format!("[{}, {}]", text(i.low), text(i.high)));
        let step =
            step.map(|step| format!("{} {}", step_word(step), step_change_text(step.change, &series.unit.0)));
        let accepted = series.baselines.iter().find(|baseline| baseline.at == at).map(accepted_text);
        let remarks: Vec<String> = step.into_iter().chain(accepted).collect();
        grid.add_row([
            GridCell::with_text(
                run.map(history_run_name).unwrap_or_default(),
                run.map_or("", |run| run.id.as_str()),
            ),
            GridCell::from(run.map(run_date_text).unwrap_or_default()),
            GridCell::with_text(text(point.value), point.value),
            GridCell::from(interval),
            GridCell::from(format!("{}×{}", point.n / point.boots.max(1), point.boots)),
            GridCell::from((!remarks.is_empty()).then(|| remarks.join("; "))),
        ]);
    }
    grid
}

/// Label and the beginning of the id that tells it from others.
fn history_run_name(run: &ComparedRun) -> String {
    let short = &run.short;
    run.label.as_ref().map_or_else(|| short.clone(), |label| format!("{label} ({short})"))
}

/// What a dot of the figure is called: a run, with the commit that it measured where that is known.
fn run_dot_name(run: &ComparedRun) -> String {
    let commit = run.commit.as_ref().map(|commit| format!(", commit {}", commit.get(..12).unwrap_or(commit)));
    format!("{}{}", history_run_name(run), commit.unwrap_or_default())
}

fn run_date_text(run: &ComparedRun) -> String {
    let nanos = i128::from(run.began.0);
    Timestamp::from_nanosecond(nanos)
        .map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
}

/// `+2.1 % [+1.5, +2.7]`, or in the unit of the metric.
#[must_use]
pub fn step_change_text(change: MetricChange, unit: &str) -> String {
    crate::comparison::row_text::format_change(
        change,
        if change.scale == ChangeScale::Ratio { "" } else { unit },
    )
}

/// The figure.
#[must_use]
pub fn history_chart(history: &MetricHistories, series: &MetricHistory) -> Scene {
    let ends = || series.steps.iter().map(|step| step.at).chain([series.points.len()]);
    let starts = || std::iter::once(0).chain(series.steps.iter().map(|step| step.at));
    let extents: Vec<(usize, usize)> = starts().zip(ends()).collect();
    let good = if series.direction == perflab_model::Direction::Neither {
        "neither way is better".to_owned()
    } else {
        format!("{} is better", series.direction)
    };
    DotChart {
        title: format!("{}, {}", series.subject, series.metric),
        note: format!(
            "square: a run, rule: its interval, line: the median between steps; after a step another colour; {good}"
        ),
        unit: AxisUnit::Plain(series.unit.to_string()),
        x_title: "runs, the oldest first, by the date of their start (UTC)".into(),
        x_labels: run_labels(history, series),
        dots: value_dots(history, series),
        levels: extents.iter().map(|(from, to)| level_line(series, *from, *to)).collect(),
        ranges: Vec::new(),
        bands: step_bands(series, &extents),
        groups: Vec::new(),
    }
    .render()
}

/// The date of each run; the time too, where all are of few days.
fn run_labels(history: &MetricHistories, series: &MetricHistory) -> Vec<String> {
    let began = || series.points.iter().map(|point| history.runs.get(point.run).map_or(0, |run| run.began.0));
    let (first, last) = (began().min().unwrap_or(0), began().max().unwrap_or(0));
    const DAY: u64 = 86_400_000_000_000;
    let format = if last - first < 3 * DAY { "%m-%d %H:%M" } else { "%Y-%m-%d" };
    let label = |at: u64| {
        Timestamp::from_nanosecond(i128::from(at))
            .map_or_else(|_| String::new(), |at| at.strftime(format).to_string())
    };
    began().map(label).collect()
}

fn value_dots(history: &MetricHistories, series: &MetricHistory) -> Vec<ChartDot> {
    let group = |at: usize| series.steps.iter().filter(|step| step.at <= at).count();
    let dot = |(at, point): (usize, &perflab_analyze::history::HistoryPoint)| ChartDot {
        x: at as f64,
        y: point.value,
        interval: point.interval.map(|i| (i.low, i.high)),
        group: group(at) % crate::chart::palette::PALETTE.len(),
        name: history.runs.get(point.run).map(run_dot_name).unwrap_or_default(),
    };
    series.points.iter().enumerate().map(dot).collect()
}

fn level_line(series: &MetricHistory, from: usize, to: usize) -> LevelLine {
    let mut values: Vec<f64> =
        series.points.get(from..to).unwrap_or_default().iter().map(|point| point.value).collect();
    values.sort_unstable_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or_default();
    let value = at(values.len().saturating_sub(1) / 2).midpoint(at(values.len() / 2));
    LevelLine { from: from as f64 - 0.5, to: to as f64 - 0.5, value }
}

/// Ranges after a step, named by its size. The last one goes on.
fn step_bands(series: &MetricHistory, ranges: &[(usize, usize)]) -> Vec<AxisBand> {
    let after = ranges.iter().skip(1).zip(&series.steps);
    let span =
        |((from, to), step): (&(usize, usize), &perflab_analyze::history::HistoryChangePoint)| AxisBand {
            from: *from as f64 - 0.5,
            to: if *to == series.points.len() { f64::INFINITY } else { *to as f64 - 0.5 },
            name: step_change_text(step.change, &series.unit.0),
        };
    after.map(span).collect()
}

/// One line a series; alarms first. A series with a step has its figures: the level since, the one before, the change from one to the
/// other, the evidence with which it was seen and the runs before it. Others have those of the newest run.
#[must_use]
pub fn guard_grid(history: &MetricHistories, guard: &GuardReport) -> Grid {
    let left = ["case", "metric", "verdict"].map(GridColumn::left);
    let right = ["value", "expected", "change [95 % CI]", "q", "evidence", "runs"].map(GridColumn::right);
    let mut grid = Grid::new(left.into_iter().chain(right).chain([GridColumn::left("because")]));
    let mut rows: Vec<&GuardRow> = guard.rows.iter().collect();
    rows.sort_by_key(|row| (row.alarm.is_none(), !row.primary));
    for row in rows {
        let unit = row.unit.0.as_str();
        let text = |value: f64| GridCell::quantity(value, unit).text().to_owned();
        let expected = match row.step() {
            Some(step) => Some(text(step.before)),
            None => row.expected.map(|i| format!("{} … {}", text(i.low), text(i.high))),
        };
        let change = row.step().map(|step| step.change).or(row.change);
        let q = row.q.filter(|_| row.step().is_none());
        let evidence = row.step().map(|step| step.e_value).or(row.e_value);
        grid.add_row([
            GridCell::from(row.subject.as_str()),
            GridCell::from(row.metric.as_str()),
            GridCell::from(alarm_word(row)),
            GridCell::quantity(row.step().map_or(row.value, |step| step.after), unit),
            GridCell::from(expected),
            change.map_or_else(GridCell::missing, |change| {
                GridCell::with_text(step_change_text(change, unit), change.value)
            }),
            q.map_or_else(GridCell::missing, |q| GridCell::with_text(format_probability(q), q)),
            evidence.map_or_else(GridCell::missing, |e| GridCell::with_text(evidence_text(e), e)),
            GridCell::from(row.step().map_or(row.runs, |step| step.runs)),
            GridCell::from(alarm_reason(history, row)),
        ]);
    }
    grid
}

/// `5 of 10 iterations failed, 0 of 200 in 20 runs before: more than chance explains`
#[must_use]
pub fn guard_failures_text(found: &GuardFailures) -> String {
    let GuardFailures { newest, recent, recent_runs, earlier, runs, .. } = found;
    let meaning = match found.verdict {
        Verdict::Worse => "more than chance explains",
        _ => "what is judged are the others",
    };
    let together = match recent_runs {
        1 => String::new(),
        _ => format!(", {} of {} in the newest {recent_runs} runs", recent.failed, recent.of),
    };
    format!(
        "{} of {} iterations failed{together}, {} of {} in {runs} runs before: {meaning}",
        newest.failed, newest.of, earlier.failed, earlier.of
    )
}

/// What a series came to, in words, and its values: of a step before and after it, else where the newest was expected.
pub(crate) fn guard_row_text(history: &MetricHistories, row: &GuardRow) -> (String, String) {
    let unit = row.unit.0.as_str();
    let text = |value: f64| GridCell::quantity(value, unit).text().to_owned();
    let word = alarm_word(row).split_once(' ').map_or("", |(_, word)| word);
    let verdict = match alarm_reason(history, row) {
        Some(reason) => format!("{word}: {reason}"),
        None => word.to_owned(),
    };
    let change = row.step().map(|step| step.change).or(row.change);
    let change = change.map_or(String::new(), |change| format!(", {}", step_change_text(change, unit)));
    let values = match (row.step(), row.expected) {
        (Some(step), _) => format!("{} -> {}", text(step.before), text(step.after)),
        (None, Some(expected)) => {
            format!("{}, expected {} to {}", text(row.value), text(expected.low), text(expected.high))
        }
        (None, None) => text(row.value),
    };
    (verdict, format!("{values}{change}").replace('\u{a0}', " "))
}

pub(crate) fn alarm_word(row: &GuardRow) -> &'static str {
    match row.verdict {
        Verdict::Better => "✓ better",
        Verdict::Worse => "✗ worse",
        Verdict::Same | Verdict::SameHere => "= same",
        Verdict::Unclear if row.expected.is_none() => "? too few runs",
        Verdict::Unclear if row.outside => "? outside",
        Verdict::Unclear | Verdict::Differs => "? unclear",
    }
}

/// Evidence of a step: below 1 it speaks against one.
fn evidence_text(e_value: f64) -> String {
    if e_value < 0.1 {
        "<0.1".into()
    } else if e_value < 1000.0 {
        format!("{e_value:.1}")
    } else {
        ">1000".into()
    }
}

fn alarm_reason(history: &MetricHistories, row: &GuardRow) -> Option<String> {
    let run = |id: &str| {
        history.runs.iter().find(|run| run.id == id).map_or_else(|| id.to_owned(), history_run_name)
    };
    if let Some((alarm, look)) =
        row.alarm.as_ref().and_then(|alarm| Some((alarm, alarm.confirmation.as_ref()?)))
    {
        let again = look.change.map(|change| step_change_text(change, &row.unit.0));
        return Some(format!(
            "a step after {}; measured again in turn: {}{}",
            run(&alarm.last_good),
            look.verdict.word(),
            again.map_or_else(String::new, |change| format!(", {change}")),
        ));
    }
    if let Some(step) = row.step() {
        let newest = GridCell::quantity(row.value, &row.unit.0).text().to_owned();
        return Some(format!(
            "a step after {}, first in {}, seen with {}; the newest run has {newest}",
            run(&step.last_good),
            run(&step.first_bad),
            run(&step.seen)
        ));
    }
    let failed = row.failed.map(|count| format!("{} of {} iterations failed", count.failed, count.of));
    let is_open = row.outside && row.verdict != Verdict::Worse;
    let outside = is_open.then(|| outside_text(row));
    let baseline = row.baseline.as_ref();
    let baseline =
        baseline.map(|baseline| format!("since {}, {}", run(&baseline.run), accepted_text(baseline)));
    let standing = row.standing.as_ref().map(|step| {
        let change = step_change_text(step.change, &row.unit.0);
        format!("worse since {} ({change}), which nobody has accepted", run(&step.first_bad))
    });
    let parts: Vec<String> = failed.into_iter().chain(outside).chain(standing).chain(baseline).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What is said of a newest run that falls out of its history, without an alarm.
fn outside_text(row: &GuardRow) -> String {
    match row.outside_runs {
        0 | 1 => "out of its history; one run is no step: run it again".to_owned(),
        runs => format!(
            "out of its history, {runs} runs in a row: the {} before them are too few for an alarm yet",
            count_text(row.runs, "run")
        ),
    }
}

/// As many figures stand on a page.
const MOST: usize = 12;

/// How metrics moved over the runs of the archive.
pub(crate) const SECTION: Section =
    Section { id: "history", title: "History", conclusions: history_conclusions, blocks: history_blocks };

fn history_conclusions(data: &ReportData) -> Result<Vec<String>, SectionError> {
    let Some(history) = &data.history else { return Ok(Vec::new()) };
    let newest = data.guard.as_ref().and_then(|guard| newest_run_sentence(history, guard));
    Ok(newest.into_iter().chain([steps_sentence(history)]).collect())
}

/// As many metrics are named in a sentence.
const NAMED: usize = 3;

/// What the guard says of the newest run; none where all is as before.
fn newest_run_sentence(history: &MetricHistories, guard: &GuardReport) -> Option<String> {
    let is_news = |row: &&GuardRow| row.alarm.is_some() || row.outside || row.verdict == Verdict::Worse;
    let rows: Vec<&GuardRow> = guard.rows.iter().filter(is_news).collect();
    let mut named: Vec<String> = Vec::new();
    for row in rows.iter().take(NAMED) {
        let word = alarm_word(row).split_once(' ').map_or("", |(_, word)| word);
        let (_, values) = guard_row_text(history, row);
        named.push(format!("{} of {} is {word} ({values})", row.metric, row.subject));
    }
    let more = rows.len().saturating_sub(NAMED);
    named.extend((more > 0).then(|| format!("{more} more")));
    (!named.is_empty()).then(|| format!("The newest run: {}.", named.join("; ")))
}

fn steps_sentence(history: &MetricHistories) -> String {
    let runs = count_text(history.runs.len(), "run");
    let metrics = count_text(history.series.len(), "metric");
    let stepped: Vec<&MetricHistory> = history.series.iter().filter(|one| !one.steps.is_empty()).collect();
    let last = stepped.iter().flat_map(|one| one.steps.iter().map(move |step| (one, step)));
    let Some((series, step)) = last.max_by(|a, b| a.1.first_bad.cmp(&b.1.first_bad)) else {
        return format!("No step in {metrics} over {runs}.");
    };
    let change = step_change_text(step.change, &series.unit.0);
    format!(
        "{} of {metrics} stepped over {runs}; the last step: {} of {} {change} {}.",
        stepped.len(),
        series.metric,
        series.subject,
        step_word(step)
    )
}

/// Figures of the series that have steps, or of the first ones; the table of all steps.
fn history_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    let Some(history) = &data.history else { return Ok(Vec::new()) };
    let stepped: Vec<&MetricHistory> = history.series.iter().filter(|one| !one.steps.is_empty()).collect();
    let all: Vec<&MetricHistory> = history.series.iter().collect();
    let requested = if stepped.is_empty() { all } else { stepped };
    let left_out = requested.len().saturating_sub(MOST);
    let commits = (!data.tested_commits.is_empty()).then(|| SectionBlock::Grid {
        caption: "Commits that were tested, the newest first".into(),
        grid: tested_commits_grid(&data.tested_commits),
    });
    let figures = requested.into_iter().take(MOST);
    let figures = figures.map(|series| SectionBlock::Figure(history_chart(history, series)));
    let mut blocks: Vec<SectionBlock> = commits.into_iter().chain(figures).collect();
    let grid = steps_grid(history);
    if !grid.is_empty() {
        blocks.push(SectionBlock::Grid { caption: "Steps, the newest first".into(), grid });
    }
    let more = (left_out > 0).then(|| format!("{left_out} further series have no figure here"));
    blocks.extend(describe_methods(&history.notes).into_iter().chain(more).map(SectionBlock::Hint));
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use perflab_analyze::{ChangeInterval, IntervalMeaning};
    use perflab_model::Unit;

    use super::*;

    fn judged_row(subject: &str, outside: bool) -> GuardRow {
        let expected = ChangeInterval { low: 0.99, high: 1.02, level: 0.95 };
        let change = MetricChange {
            scale: ChangeScale::Ratio,
            value: 0.2,
            interval: None,
            narrow: None,
            covers: IntervalMeaning::default(),
        };
        GuardRow {
            subject: subject.into(),
            metric: "time".into(),
            unit: Unit("s".into()),
            primary: true,
            value: 1.2,
            runs: 5,
            expected: Some(expected),
            own: None,
            level: Some(1.0),
            change: outside.then_some(change),
            p: None,
            q: None,
            e_value: None,
            outside,
            outside_runs: usize::from(outside),
            failed: None,
            baseline: None,
            verdict: Verdict::Unclear,
            alarm: None,
            improvement: None,
            standing: None,
        }
    }

    fn sentence_of(rows: Vec<GuardRow>) -> Option<String> {
        let history = MetricHistories {
            format: 1,
            writer: String::new(),
            runs: Vec::new(),
            series: Vec::new(),
            notes: Vec::new(),
        };
        let guard = GuardReport {
            run: "run".into(),
            rows,
            lost: Vec::new(),
            failures: Vec::new(),
            newer_unreadable: None,
            notes: Vec::new(),
        };
        newest_run_sentence(&history, &guard)
    }

    #[test]
    fn a_page_begins_with_what_the_guard_says_of_the_newest_run() {
        let sentence = sentence_of(vec![judged_row("spin", true), judged_row("sort", false)]).unwrap();
        insta::assert_snapshot!(sentence, @"The newest run: time of spin is outside (1.2 s, expected 990 ms to 1.02 s, +20 %).");
        let many = ["a", "b", "c", "d", "e"].map(|subject| judged_row(subject, true));
        let sentence = sentence_of(many.into()).unwrap();
        assert!(sentence.contains("of c") && !sentence.contains("of d") && sentence.contains("2 more"));
        assert_eq!(sentence_of(vec![judged_row("spin", false)]), None);
    }
}
