//! The newest run against its history, and its alarms.
//!
//! An alarm is a step for the worse, beyond the margin, that a [`StepMonitor`] sees when it goes through the series run by
//! run: over the whole life of a series any false alarm has a chance of at most one minus the confidence, however often
//! anybody looks. Where the runs of a day share its luck, a day is one value. A single run is no step. One that falls out of the prediction interval of those before it (one family,
//! Benjamini and Hochberg's q) is *outside*, which is a reason to run it again and no alarm: on flat series that happens
//! once in forty runs. A history that is too short to know its own noise gives no answer, and says so.

use perflab_model::{Direction, Unit};
use perflab_stats::{
    StatsError, StepAlarm, StepMonitor, WatchedSeries, benjamini_hochberg, median, prediction_interval,
    prediction_p,
};
use serde::Serialize;

use crate::compare::change::{ChangeInterval, ChangeScale, IntervalMeaning, MetricChange};
use crate::compare::comparison::{Comparison, Verdict};
use crate::compare::failures::FailureCount;
use crate::compare::options::AnalysisOptions;
use crate::error::AnalyzeError;
use crate::guard_failures::GuardFailures;
use crate::history::{self, AcceptedBaseline, MetricHistories, MetricHistory};
use crate::method_description::MethodDescription;

/// Fewest runs before the newest one that make a history.
pub const FEWEST_HISTORY_RUNS: usize = 5;

/// A step alarms while no more runs than these have come since it was seen.
const RECENT_STEP_RUNS: usize = 10;

/// From so many runs in a row outside of their history on, somebody should look, whether or not there is evidence for an alarm.
const FEWEST_UNSETTLED_RUNS: usize = 5;

/// At most so many runs are looked back.
const LONGEST_BASELINE: usize = 500;

/// The newest run against its history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuardReport {
    /// The newest run.
    pub run: String,
    /// One row a series that the newest run has.
    pub rows: Vec<GuardRow>,
    /// Series that the run before had and the newest has not, as `case, metric`.
    pub lost: Vec<String>,
    /// Cases of which iterations failed in the newest run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<GuardFailures>,
    /// A run that is newer than the one that was judged, and cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newer_unreadable: Option<String>,
    /// How the numbers came about; who writes JSON adds them as sentences.
    #[serde(skip)]
    pub notes: Vec<MethodDescription>,
}

/// One series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuardRow {
    /// The case.
    pub subject: String,
    /// The metric.
    pub metric: String,
    /// Unit of its values.
    pub unit: Unit,
    /// Whether the metric decides or explains.
    pub primary: bool,
    /// The newest value.
    pub value: f64,
    /// Runs of the reference: those since the last step before the newest run.
    pub runs: usize,
    /// Where the newest value was expected, at the confidence asked for; absent where the reference is too short.
    pub expected: Option<ChangeInterval>,
    /// The interval of the newest value itself; absent where it has too few iterations.
    pub own: Option<ChangeInterval>,
    /// The level of the reference; absent where it is too short.
    pub level: Option<f64>,
    /// From the reference to the newest value.
    pub change: Option<MetricChange>,
    /// How surprising the newest value is.
    pub p: Option<f64>,
    /// The same, adjusted for all series.
    pub q: Option<f64>,
    /// Evidence of a step since the last one: beyond 1 / 0.05 it is one, with at most this chance of ever being wrong.
    pub e_value: Option<f64>,
    /// Whether the newest value falls out of its history, which alone is no alarm.
    pub outside: bool,
    /// Of the latest runs so many in a row, the newest among them, fall out of their history on one side; 0 where the newest does not.
    #[serde(skip_serializing_if = "is_zero")]
    pub outside_runs: usize,
    /// Iterations of the case that failed in the newest run, where some did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailureCount>,
    /// The baseline that somebody began, where one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<AcceptedBaseline>,
    /// What it means.
    pub verdict: Verdict,
    /// The step that alarms, if one does.
    pub alarm: Option<GuardStep>,
    /// The step for the better on which the verdict stands, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub improvement: Option<GuardStep>,
    /// A step for the worse that was seen too long ago to alarm, and that nobody accepted: the level since is that of the newest run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<GuardStep>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A step that was seen lately.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuardStep {
    /// The last run before it.
    pub last_good: String,
    /// The first run after it.
    pub first_bad: String,
    /// The run with which it was seen.
    pub seen: String,
    /// The level before it, since the step before that: the median.
    pub before: f64,
    /// The level since.
    pub after: f64,
    /// Runs that the level before it rests on.
    pub runs: usize,
    /// The evidence with which it was seen.
    pub e_value: f64,
    /// The size of the change, and its interval where it has one.
    pub change: MetricChange,
    /// What old and new said when they were measured once more, in turn; absent where nobody took that second look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<GuardConfirmation>,
}

/// A second look at an alarm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuardConfirmation {
    /// The run in which old and new were interleaved.
    pub run: String,
    /// What it says, new against old: the alarm is confirmed where that is *worse*.
    pub verdict: Verdict,
    /// From old to new; absent where a side has no value.
    pub change: Option<MetricChange>,
    /// Iterations of the new side that gave a value.
    pub iterations: usize,
}

/// Judges the newest run of a history; the first one of all has rows without a verdict.
///
/// # Errors
/// No run at all; numbers that no statistic takes.
pub fn check_newest_run(
    history: &MetricHistories,
    options: &AnalysisOptions,
) -> Result<GuardReport, AnalyzeError> {
    let (newest, before) =
        history.runs.split_last().ok_or_else(|| AnalyzeError::NoRun { side: "history".into() })?;
    let last = before.len();
    let in_newest = |series: &&MetricHistory| series.points.last().is_some_and(|point| point.run == last);
    let mut rows = Vec::new();
    for series in history.series.iter().filter(in_newest) {
        rows.push(guard_row(series, history, options)?);
    }
    set_guard_verdicts(&mut rows, history, options);
    let is_there = |series: &MetricHistory| {
        rows.iter().any(|row| (&row.subject, &row.metric) == (&series.subject, &series.metric))
    };
    // What the run before measured and this one, of the same study, did not.
    let same_study = before.last().is_some_and(|run| run.study == newest.study);
    let had = |series: &&MetricHistory| {
        same_study && series.points.last().is_some_and(|point| point.run + 1 == last) && !is_there(series)
    };
    let lost =
        history.series.iter().filter(had).map(|series| format!("{}, {}", series.subject, series.metric));
    let lost: Vec<String> = lost.collect();
    let rule = MethodDescription::GuardRule { confidence: options.confidence, recent_runs: RECENT_STEP_RUNS };
    Ok(GuardReport {
        run: newest.id.clone(),
        rows,
        lost,
        failures: Vec::new(),
        newer_unreadable: None,
        notes: vec![rule],
    })
}

/// Everything but q and what follows from it.
fn guard_row(
    series: &MetricHistory,
    history: &MetricHistories,
    options: &AnalysisOptions,
) -> Result<GuardRow, AnalyzeError> {
    let values: Vec<f64> = series.points.iter().map(|point| point.value).collect();
    let error = |source| AnalyzeError::Statistic {
        subject: series.subject.clone(),
        metric: series.metric.clone(),
        source,
    };
    let (value, before) = values.split_last().map_or((0.0, &[][..]), |(value, before)| (*value, before));
    let accepted = series.baselines.last().map_or(0, |baseline| baseline.at);
    let baselines: Vec<usize> = series.baselines.iter().map(|baseline| baseline.at).collect();
    let monitor = StepMonitor::new(1.0 - options.confidence, LONGEST_BASELINE).map_err(error)?;
    let scaled = series.scaled_values();
    let watched = monitor.watch_in_groups(&scaled, &baselines, &series.days()).map_err(error)?;
    let steps = history::change_point_indexes(series, before.len()).map_err(error)?;
    let is_told = |at: usize| watched.alarms.iter().any(|alarm| at < alarm.step + history::SHORTEST_SEGMENT);
    let steps = EarlierStep::list(before, &steps, series.direction);
    let start =
        steps.iter().rfind(|step| step.is_level(is_told(step.at))).map_or(0, |step| step.at).max(accepted);
    // A step for the worse that nobody was told of ends what the newest run is held against.
    let untold =
        steps.iter().find(|step| step.at > start && step.is_worse && step.runs_since >= FEWEST_HISTORY_RUNS);
    let outside = count_outside_runs(scaled.get(start..before.len()).unwrap_or_default(), options);
    let end = untold.map_or(before.len(), |step| step.at).min(before.len() - outside.map_err(error)?);
    let outside_runs = before.len() - end + 1;
    let before = before.get(..end).unwrap_or_default();
    let reference = before.get(start..).unwrap_or_default();
    let mut row = GuardRow {
        subject: series.subject.clone(),
        metric: series.metric.clone(),
        unit: series.unit.clone(),
        primary: series.primary,
        value,
        runs: reference.len(),
        expected: None,
        own: series.points.last().and_then(|point| point.interval),
        level: None,
        change: None,
        p: None,
        q: None,
        e_value: None,
        outside: false,
        outside_runs,
        failed: None,
        baseline: series.baselines.last().cloned(),
        verdict: Verdict::Unclear,
        alarm: None,
        improvement: None,
        standing: None,
    };
    if reference.len() >= FEWEST_HISTORY_RUNS {
        let of_days = one_run_a_day(series, start..before.len());
        let reference = if of_days.len() >= FEWEST_HISTORY_RUNS { &of_days } else { reference };
        predict_newest(&mut row, reference, value, options).map_err(error)?;
    }
    judge_watched(&mut row, &watched, series, history, options).map_err(error)?;
    Ok(row)
}

/// A step that the runs before the newest one show.
struct EarlierStep {
    /// the first run after it
    at: usize,
    /// runs between the step before it and this one
    runs_before: usize,
    /// runs since it, whatever steps come later
    runs_since: usize,
    is_worse: bool,
}

impl EarlierStep {
    fn list(values: &[f64], steps: &[(usize, f64)], direction: Direction) -> Vec<Self> {
        let at = |number: usize| steps.get(number).map_or(values.len(), |(at, _)| *at);
        let level = |from, to| median(values.get(from..to).unwrap_or_default()).unwrap_or_default();
        let step = |number: usize| {
            let (from, here) = (number.checked_sub(1).map_or(0, at), at(number));
            let (before, after) = (level(from, here), level(here, at(number + 1)));
            let is_worse = match direction {
                Direction::Lower => after > before,
                Direction::Higher => after < before,
                Direction::Neither => false,
            };
            EarlierStep { at: here, runs_before: here - from, runs_since: values.len() - here, is_worse }
        };
        (0..steps.len()).map(step).collect()
    }

    /// Whether the newest run is held against the runs since: there are enough of them, or somebody was told; and where it is for the
    /// worse and nobody was, those before it are too few to be held against.
    fn is_level(&self, is_told: bool) -> bool {
        let has_level_before = self.is_worse && self.runs_before >= FEWEST_HISTORY_RUNS;
        is_told || self.runs_since >= FEWEST_HISTORY_RUNS && !has_level_before
    }
}

/// How many of the latest values lie outside of those before them, one after the other on one side: what may be a step that is not
/// seen yet is no part of what the newest value is held against, lest each bad run makes the next look usual.
fn count_outside_runs(values: &[f64], options: &AnalysisOptions) -> Result<usize, StatsError> {
    let most = RECENT_STEP_RUNS.min(values.len().saturating_sub(FEWEST_HISTORY_RUNS));
    for count in (1..=most).rev() {
        let (before, latest) = values.split_at(values.len() - count);
        let Some(interval) = prediction_interval(before, options.confidence)?.interval else { continue };
        if latest.iter().all(|value| *value > interval.high)
            || latest.iter().all(|value| *value < interval.low)
        {
            return Ok(count);
        }
    }
    Ok(0)
}

/// The last run of each day where a day is a level: these scatter as a run of another day does.
fn one_run_a_day(series: &MetricHistory, range: std::ops::Range<usize>) -> Vec<f64> {
    let points = series.points.get(range.clone()).filter(|_| series.by_day).unwrap_or_default();
    let days = series.days().part(range);
    days.ranges().filter_map(|day| Some(points.get(day)?.last()?.value)).collect()
}

fn predict_newest(
    row: &mut GuardRow,
    reference: &[f64],
    value: f64,
    options: &AnalysisOptions,
) -> Result<(), perflab_stats::StatsError> {
    let positive = value > 0.0 && reference.iter().all(|value| *value > 0.0);
    let scaled = |value: f64| if positive { value.ln() } else { value };
    let past: Vec<f64> = reference.iter().map(|value| scaled(*value)).collect();
    let on = |shift: f64| if positive { shift.exp_m1() } else { shift };
    let back = |value: f64| if positive { value.exp() } else { value };
    let found = prediction_interval(&past, options.confidence)?;
    let shift = scaled(value) - found.value;
    row.level = Some(back(found.value));
    row.expected =
        found.interval.map(|i| ChangeInterval { low: back(i.low), high: back(i.high), level: i.level });
    let interval = found.interval.map(|i| {
        let (low, high) = (scaled(value) - i.high, scaled(value) - i.low);
        ChangeInterval { low: on(low), high: on(high), level: i.level }
    });
    let scale = if positive { ChangeScale::Ratio } else { ChangeScale::Absolute };
    row.change = Some(MetricChange {
        scale,
        value: on(shift),
        interval,
        narrow: None,
        covers: IntervalMeaning::Change,
    });
    row.p = Some(prediction_p(&past, scaled(value))?);
    Ok(())
}

/// The evidence of a step, and the latest step beyond the margin: an alarm or *better* where it was seen lately, else standing where
/// it is for the worse.
fn judge_watched(
    row: &mut GuardRow,
    watched: &WatchedSeries,
    series: &MetricHistory,
    history: &MetricHistories,
    options: &AnalysisOptions,
) -> Result<(), StatsError> {
    let baseline = series.baselines.last().map_or(0, |baseline| baseline.at);
    // What lies before an accepted step was looked at with it.
    let alarms: Vec<StepAlarm> =
        watched.alarms.iter().copied().filter(|alarm| alarm.step > baseline).collect();
    row.e_value = (row.runs >= FEWEST_HISTORY_RUNS).then_some(watched.evidence.e_value);
    let id = |point: usize| {
        let run = series.points.get(point).and_then(|point| history.runs.get(point.run));
        run.map_or_else(String::new, |run| run.id.clone())
    };
    for (number, alarm) in alarms.iter().enumerate().rev() {
        let start = number.checked_sub(1).and_then(|before| alarms.get(before)).map_or(baseline, |a| a.step);
        let end = alarms.get(number + 1).map_or(series.points.len(), |next| next.step);
        let last = alarm.step.checked_sub(1).filter(|last| *last >= start);
        let Some(last) = last.and_then(|last| series.points.get(last)) else { continue };
        let (before, after) = (series.units_of(start..alarm.step)?, series.units_of(alarm.step..end)?);
        if after.is_empty() {
            continue;
        }
        let change = history::estimate_step_change(&before, &after, options)?;
        let verdict = history::step_verdict(change, last.value, series);
        if !matches!(verdict, Verdict::Better | Verdict::Worse) {
            continue;
        }
        let step = GuardStep {
            last_good: id(alarm.step - 1),
            first_bad: id(alarm.step),
            seen: id(alarm.seen),
            before: median(&before)?,
            after: median(&after)?,
            runs: alarm.step - start,
            e_value: alarm.e_value,
            change,
            confirmation: None,
        };
        let is_recent = series.points.len() - alarm.seen <= RECENT_STEP_RUNS;
        match (verdict, is_recent) {
            (Verdict::Worse, true) => row.alarm = Some(step),
            (Verdict::Worse, false) => row.standing = Some(step),
            (_, true) => row.improvement = Some(step),
            (_, false) => {}
        }
        if is_recent {
            row.verdict = verdict;
        }
        break;
    }
    Ok(())
}

/// q, and the verdicts of rows without a step.
fn set_guard_verdicts(rows: &mut [GuardRow], history: &MetricHistories, options: &AnalysisOptions) {
    for primary in [true, false] {
        let mut family: Vec<&mut GuardRow> =
            rows.iter_mut().filter(|row| row.primary == primary && row.p.is_some()).collect();
        let p_values: Vec<f64> = family.iter().filter_map(|row| row.p).collect();
        let q_values = benjamini_hochberg(&p_values).unwrap_or_default();
        for (row, q) in family.iter_mut().zip(q_values) {
            row.q = Some(q);
            set_guard_verdict(row, history, options);
        }
    }
}

fn set_guard_verdict(row: &mut GuardRow, history: &MetricHistories, options: &AnalysisOptions) {
    let (Some(series), Some(change)) = (row.find_series(history), row.change) else { return };
    let reference = series.points.iter().rev().nth(1);
    let Some(reference) = reference else { return };
    // A run that cannot tell its own value from the old level is no news, however quiet its history is.
    let holds_old_level =
        row.own.zip(row.level).is_some_and(|(own, level)| own.low <= level && level <= own.high);
    row.outside = row.q.is_some_and(|q| options.is_significant(q))
        && !holds_old_level
        && history::step_verdict(change, reference.value, series) != Verdict::Same;
    if !row.outside {
        row.outside_runs = 0;
    }
    let margin = if change.scale == ChangeScale::Ratio {
        series.margin
    } else {
        series.margin * reference.value.abs()
    };
    let inside = change.interval.is_some_and(|i| -margin < i.low && i.high < margin);
    // A step decides what the newest run is, whatever the runs since say of it.
    if row.verdict == Verdict::Unclear && inside && !row.outside {
        row.verdict = Verdict::Same;
    }
}

impl GuardRow {
    /// The step on which the verdict stands, if it does.
    #[must_use]
    pub fn step(&self) -> Option<&GuardStep> {
        self.alarm.as_ref().or(self.improvement.as_ref())
    }

    /// The series that it is of: of those of its case and metric, the one that the newest run belongs to.
    pub(crate) fn find_series<'a>(&self, history: &'a MetricHistories) -> Option<&'a MetricHistory> {
        let last = history.runs.len().checked_sub(1)?;
        let is_own = |series: &&MetricHistory| {
            series.points.last().is_some_and(|point| point.run == last)
                && (&series.subject, &series.metric, &series.unit)
                    == (&self.subject, &self.metric, &self.unit)
        };
        history.series.iter().find(is_own)
    }
}

impl GuardReport {
    /// Whether nothing that decides could be held against a history.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let has_primary = self.rows.iter().any(|row| row.primary);
        let mut deciding = self.rows.iter().filter(|row| row.primary || !has_primary);
        !deciding.any(|row| row.expected.is_some() || row.alarm.is_some())
    }

    /// The rows whose newest value falls out of its history without a step yet. Where there are primary metrics, only they
    /// count.
    #[must_use]
    pub fn outside(&self) -> Vec<&GuardRow> {
        let has_primary = self.rows.iter().any(|row| row.primary);
        let outside = |row: &&GuardRow| row.outside && row.alarm.is_none() && (row.primary || !has_primary);
        self.rows.iter().filter(outside).collect()
    }

    /// The rows that decide and are worse in so many runs in a row that somebody should look, without evidence for an alarm yet.
    #[must_use]
    pub fn unsettled(&self, history: &MetricHistories) -> Vec<&GuardRow> {
        let is_unsettled = |row: &&GuardRow| row.alarm.is_none() && row.outside_runs >= FEWEST_UNSETTLED_RUNS;
        self.suspects(history).into_iter().filter(is_unsettled).collect()
    }

    /// The rows that decide and are worth a second look: those that alarm, and those whose newest value falls out of its history for the
    /// worse, which alone is no alarm.
    #[must_use]
    pub fn suspects(&self, history: &MetricHistories) -> Vec<&GuardRow> {
        let is_worse = |row: &&GuardRow| {
            let found = row.find_series(history).zip(row.change.zip(row.level));
            row.outside
                && found.is_some_and(|(series, (change, level))| {
                    history::step_verdict(change, level, series) == Verdict::Worse
                })
        };
        self.deciding_rows().filter(|row| row.alarm.is_some() || is_worse(row)).collect()
    }

    /// The rows that alarm, but for those that a second look did not confirm. Where there are primary metrics, only they decide.
    #[must_use]
    pub fn alarms(&self) -> Vec<&GuardRow> {
        let is_confirmed = |row: &&GuardRow| {
            let looked = row.alarm.as_ref().map(|alarm| alarm.confirmation.as_ref());
            looked.is_some_and(|look| look.is_none_or(|look| look.verdict == Verdict::Worse))
        };
        self.deciding_rows().filter(is_confirmed).collect()
    }

    /// The rows of whose alarm a second look could not tell whether it holds.
    #[must_use]
    pub fn open_alarms(&self) -> Vec<&GuardRow> {
        let is_open = |row: &&GuardRow| {
            let look = row.alarm.as_ref().and_then(|alarm| alarm.confirmation.as_ref());
            look.is_some_and(|look| !matches!(look.verdict, Verdict::Worse | Verdict::Better | Verdict::Same))
        };
        self.deciding_rows().filter(is_open).collect()
    }

    /// The rows whose level has been worse for longer than an alarm lasts, which nobody accepted.
    #[must_use]
    pub fn standing(&self) -> Vec<&GuardRow> {
        self.deciding_rows().filter(|row| row.standing.is_some()).collect()
    }

    /// Runs since the step, or the accepted baseline, that left the rows that decide with too few to judge by; none where it was no step
    /// that did.
    #[must_use]
    pub fn runs_since_step(&self, history: &MetricHistories) -> Option<usize> {
        let is_long = |row: &&GuardRow| {
            let series = row.find_series(history).filter(|_| row.expected.is_none());
            series.is_some_and(|series| series.points.len() > FEWEST_HISTORY_RUNS)
        };
        self.deciding_rows().filter(is_long).map(|row| row.runs).max()
    }

    /// The rows of primary metrics; all, where none is.
    pub fn deciding_rows(&self) -> impl Iterator<Item = &GuardRow> {
        let has_primary = self.rows.iter().any(|row| row.primary);
        self.rows.iter().filter(move |row| row.primary || !has_primary)
    }

    /// Puts in how often iterations failed: what only those say that ended well is then left open.
    #[must_use]
    pub fn with_failures(mut self, failures: Vec<GuardFailures>) -> Self {
        for row in &mut self.rows {
            let own = failures.iter().find(|found| found.subject == row.subject);
            row.failed = own.map(|found| found.newest);
            if row.failed.is_some() && matches!(row.verdict, Verdict::Same | Verdict::Better) {
                row.verdict = Verdict::Unclear;
            }
        }
        self.failures = failures;
        self
    }

    /// The cases that fail more than chance explains.
    #[must_use]
    pub fn failing(&self) -> Vec<&GuardFailures> {
        self.failures.iter().filter(|found| found.verdict == Verdict::Worse).collect()
    }

    /// Puts in what old and new said when they were measured once more, in turn, in this run. It is the word on each row that
    /// alarms; one that was not measured again is unclear.
    pub fn confirm(&mut self, run: &str, compared: &Comparison) {
        for row in &mut self.rows {
            let Some(alarm) = &mut row.alarm else { continue };
            let found = compared.rows.iter().find(|found| {
                (&found.subject, &found.metric, &found.unit) == (&row.subject, &row.metric, &row.unit)
            });
            row.verdict = found.map_or(Verdict::Unclear, |found| found.verdict);
            alarm.confirmation = Some(GuardConfirmation {
                run: run.to_owned(),
                verdict: row.verdict,
                change: found.and_then(|found| found.change),
                iterations: found.and_then(|found| Some(found.candidate.as_ref()?.n)).unwrap_or_default(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::metric_histories;
    use fixtures::run_builder::{SplitMixNoise, build_daily_runs};

    fn judge_last(values: &[f64]) -> (GuardRow, usize) {
        let runs = build_daily_runs(values, 0.01, SplitMixNoise(7));
        let options = AnalysisOptions::default();
        let found = metric_histories(&runs, &options).unwrap();
        let mut judged = check_newest_run(&found, &options).unwrap();
        let unsettled = judged.unsettled(&found).len();
        (judged.rows.remove(0), unsettled)
    }

    /// A short history tells a step late. Until then the runs since are no level that makes the next one usual.
    #[test]
    fn a_step_after_few_runs_stays_outside_until_it_alarms() {
        let good = [10.0, 10.1, 9.9, 10.2, 9.8, 10.05];
        let mut alarmed = None;
        for bad in 1..=40 {
            let values = [&good[..], &vec![20.0; bad]].concat();
            let (row, unsettled) = judge_last(&values);
            if row.alarm.is_some() {
                alarmed = Some(bad);
                break;
            }
            assert!(row.outside && row.runs == good.len(), "{bad}: {row:?}");
            assert_eq!((row.outside_runs, unsettled), (bad, usize::from(bad >= 5)), "{row:?}");
        }
        assert!(alarmed.is_some_and(|bad| bad > 1), "{alarmed:?}");
    }

    #[test]
    fn a_level_that_is_better_or_before_which_there_is_none_is_what_counts() {
        let better = [&[20.0; 6][..], &[10.0; 7]].concat();
        let (row, unsettled) = judge_last(&better);
        assert!(!row.outside && unsettled == 0, "{row:?}");
        let cold = [&[10.0; 3][..], &[20.0; 9]].concat();
        let (row, unsettled) = judge_last(&cold);
        assert!(!row.outside && row.runs >= FEWEST_HISTORY_RUNS && unsettled == 0, "{row:?}");
    }
}
