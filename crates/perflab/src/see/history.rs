//! Metrics over the runs of the archive: `perflab history` and `guard`.

use std::collections::{BTreeSet, HashMap};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use perflab_analyze::{
    AnalysisOptions, FEWEST_HISTORY_RUNS, FailureRecords, GuardFailures, GuardReport, GuardRow,
    MethodDescription, MetricHistories, ToldStep, UnreadableRun, check_newest_run, judge_newest_failures,
    metric_histories,
};
use perflab_archive::{Archive, ArchiveEntry, RunDir, RunSummary};
use perflab_model::Ratio;
use perflab_model::named::Named;
use perflab_model::study::StoppingRule;
use perflab_model::{
    AcceptedStep, Nanos, RunRecord, RunStatus, SharedStr, join_continued_runs, suggest_name,
};
use perflab_present::ReportData;
use perflab_present::ci_tests::CiTests;
use perflab_present::comparison::OutputFormat;
use perflab_present::history::{
    guard_failures_text, guard_grid, history_chart, history_runs_grid, steps_grid,
};
use perflab_present::method_text::{ResultWithNotes, describe_method};
use perflab_present::report::{SECTIONS, render_report};
use perflab_present::tested_commit::TestedCommitLine;

use crate::app::{self, App, named_parser};
use crate::failure::{Exit, Failure, UsageError};
use crate::laboratory::noise::FACTOR as NOISE;
use crate::measure::bisection::commit_runs::LABEL as BISECTION;
use crate::output_path::OutputPath;
use crate::quantities::parse_margin;
use crate::see::ci_job::print_ci_tests;
use crate::see::confirmation::{CONFIRMATION, ConfirmedSides, confirm_alarms};
use crate::see::report;
use crate::see::why_test::SUSPECT_TEST;
use crate::selection;
use crate::verb::Verb;

/// Metrics over runs.
pub fn show_history(context: &App, args: &HistoryArgs) -> Result<Exit, Failure> {
    let (runs, found) = read_histories(context, &args.of)?;
    print_history(context, &found)?;
    if let Some(series) = found.series.first() {
        app::write_scene(context, args.output.as_ref(), || history_chart(&found, series))?;
    }
    write_history_report(context, &args.of, (&runs, &found), HistoryPage::default())?;
    Ok(Exit::Fine)
}

/// Runs of the archive, read as far as a history needs them, the oldest first.
pub struct HistoryRuns {
    pub records: Vec<RunRecord>,
    newest: RunDir,
    /// Of each id, as much as no other run of the archive begins with.
    shorts: HashMap<String, String>,
    /// A run that is newer than all of them and cannot be read: nobody knows what it is of.
    unreadable: Option<String>,
    /// Those that cannot be read.
    left_out: Vec<UnreadableRun>,
}

impl HistoryRuns {
    /// Their histories, in which runs have names that are theirs alone.
    fn histories(&self, options: &AnalysisOptions) -> Result<MetricHistories, Failure> {
        let mut found = metric_histories(&self.records, options)?;
        for run in &mut found.runs {
            if let Some(short) = self.shorts.get(&run.id) {
                run.short.clone_from(short);
            }
        }
        if !self.left_out.is_empty() {
            found.notes.push(MethodDescription::UnreadableRuns { runs: self.left_out.clone() });
        }
        Ok(found)
    }
}

/// The smallest relative change that matters to the guard, unless something else is asked for.
pub const GUARD_MARGIN: Ratio = Ratio(0.03);

/// Runs of each study that a history looks back on, unless all are asked for.
const LATEST_RUNS: usize = 500;

/// The runs that the arguments choose, the oldest first; what cannot be read is reported, not passed over. With `needs_newest`, the
/// newest must be readable: what is judged is not silently another one.
pub fn read_history_runs(
    context: &App,
    of: &HistorySelection,
    needs_newest: bool,
) -> Result<HistoryRuns, Failure> {
    let entries = context.archive()?.list_runs()?;
    choose_history_runs(context, of, needs_newest, entries)
}

fn choose_history_runs(
    context: &App,
    of: &HistorySelection,
    needs_newest: bool,
    entries: Vec<ArchiveEntry>,
) -> Result<HistoryRuns, Failure> {
    let archive = context.archive()?;
    let (mut chosen, mut unreadable) = (Vec::new(), None);
    let (mut studies, mut left_out) = (BTreeSet::new(), Vec::new());
    for entry in entries {
        if let (Ok(summary), Some(_)) = (&entry.summary, &of.study) {
            studies.extend(summary.study_names().map(str::to_owned));
        }
        match &entry.summary {
            Err(reason) => {
                context.note(format!("left out: run {}: {reason}", entry.short));
                left_out.push(UnreadableRun { run: entry.short.clone(), reason: reason.clone() });
                unreadable = Some(entry);
            }
            Ok(summary) if of.includes_run(summary) => chosen.push(entry),
            Ok(_) => {}
        }
    }
    let records = match of.last {
        Some(last) => read_latest_records(&archive, &chosen, (last, needs_newest), &mut left_out)?,
        None => {
            if !of.all {
                retain_latest_runs(context, &mut chosen);
            }
            read_latest_records(&archive, &chosen, (chosen.len(), needs_newest), &mut left_out)?
        }
    };
    let records = retain_contents_once(context, records);
    let newest = records.last().and_then(|newest| chosen.iter().find(|run| run.id == newest.manifest.id));
    let Some(newest) = newest else {
        let hint = match (&of.study, &of.label) {
            _ if !archive.exists() => archive.hint_without_runs().into(),
            (Some(study), _) if !studies.contains(study) => {
                suggest_name(study, studies.iter().map(String::as_str))
            }
            (_, Some(label)) => format!("no run has the label `{label}`"),
            _ => "see `perflab list`".into(),
        };
        if of.last == Some(0) {
            return Err(UsageError::new("the latest 0 runs are none", "ask for one or more").into());
        }
        return Err(UsageError::new("the archive has no such run", hint).into());
    };
    let shorts = chosen.iter().map(|run| (run.id.clone(), run.short.clone())).collect();
    let unreadable = unreadable.filter(|run| run.id > newest.id).map(|run| run.short);
    Ok(HistoryRuns { newest: archive.open_run(newest), records, shorts, unreadable, left_out })
}

/// Leaves one run of each content, the first: files that were imported twice were measured once.
fn retain_contents_once(context: &App, mut records: Vec<RunRecord>) -> Vec<RunRecord> {
    let mut first: HashMap<String, String> = HashMap::new();
    records.retain(|record| {
        let Some(content) = record.manifest.content_hash() else { return true };
        let id = &record.manifest.id;
        let counted = first.entry(content).or_insert_with(|| id.clone());
        if counted != id {
            context.note(format!("run {id} was made of the same files as run {counted}: they count once"));
        }
        counted == id
    });
    records
}

/// Leaves of each study its latest runs.
fn retain_latest_runs(context: &App, chosen: &mut Vec<ArchiveEntry>) {
    let all = chosen.len();
    let mut counts: HashMap<(SharedStr, SharedStr), usize> = HashMap::new();
    let mut is_late = |entry: &ArchiveEntry| {
        let study = entry.summary.as_ref().map(|run| (run.title.clone(), run.study_file.clone()));
        let count = counts.entry(study.unwrap_or_default()).or_default();
        *count += 1;
        *count <= LATEST_RUNS
    };
    let mut late: Vec<bool> = chosen.iter().rev().map(&mut is_late).collect();
    chosen.retain(|_| late.pop().unwrap_or_default());
    if chosen.len() < all {
        context.note(format!(
            "the latest {LATEST_RUNS} runs of each study ({} of {all}); --all looks at all",
            chosen.len()
        ));
    }
}

/// The latest `count` runs that can be read, the oldest first; reports those that cannot, and adds them to `left_out`.
fn read_latest_records(
    archive: &Archive,
    chosen: &[ArchiveEntry],
    (count, needs_newest): (usize, bool),
    left_out: &mut Vec<UnreadableRun>,
) -> Result<Vec<RunRecord>, Failure> {
    let mut read: Vec<RunRecord> = Vec::new();
    let mut rest = chosen;
    while read.len() < count && !rest.is_empty() {
        let (before, part) = rest.split_at(rest.len().saturating_sub(count - read.len()));
        let is_newest = rest.len() == chosen.len();
        let mut records = Vec::with_capacity(part.len());
        for (at, (run, outcome)) in part.iter().zip(archive.read_condensed_records(part)).enumerate() {
            match outcome {
                Ok(record) => records.push(record),
                Err(error) if needs_newest && is_newest && at + 1 == part.len() => return Err(error.into()),
                Err(error) => {
                    let reason = Failure::from(error).to_string();
                    stderr_line!("warning: left out: {reason}");
                    left_out.push(UnreadableRun { run: run.short.clone(), reason });
                }
            }
        }
        records.append(&mut read);
        (read, rest) = (records, before);
    }
    selection::warn_of_parts(&read, |id| archive.run_path(id).is_dir());
    // The oldest may go on with one that was not asked for.
    Ok(join_continued_runs(read))
}

/// What to look at.
pub fn history_options(of: &HistorySelection) -> AnalysisOptions {
    AnalysisOptions {
        default_margin: of.margin.0,
        metrics: of.metric.clone(),
        workloads: of.workload.clone(),
        ..AnalysisOptions::default()
    }
}

/// A single series run by run, several by their steps.
fn print_history(context: &App, found: &MetricHistories) -> Result<(), Failure> {
    if context.format == OutputFormat::Json {
        return context.print_json(&ResultWithNotes::new(found, &found.notes));
    }
    match &found.series[..] {
        [one] => context.print_grid(&history_runs_grid(found, one))?,
        _ => {
            let steps = steps_grid(found);
            let count: usize = found.series.iter().map(|series| series.steps.len()).sum();
            context.note(format!(
                "{} series over {} runs: {count} steps",
                found.series.len(),
                found.runs.len()
            ));
            context.print_grid(&steps)?;
        }
    }
    // Those that cannot be read were named when they were met.
    let is_news = |note: &&MethodDescription| !matches!(note, MethodDescription::UnreadableRuns { .. });
    let notes = found.notes.iter().filter(is_news);
    notes.for_each(|note| context.note(format!("note: {}", describe_method(note))));
    Ok(())
}

/// What a page has besides the newest run and the history.
#[derive(Default)]
pub struct HistoryPage<'a> {
    /// What the guard says, with which it begins.
    pub guard: Option<&'a GuardReport>,
    /// The commits that were tested.
    pub tested_commits: Vec<TestedCommitLine>,
}

/// The page with the newest run, where one is requested.
pub fn write_history_report(
    context: &App,
    of: &HistorySelection,
    (runs, found): (&HistoryRuns, &MetricHistories),
    page: HistoryPage<'_>,
) -> Result<(), Failure> {
    let Some(path) = &of.report else { return Ok(()) };
    let HistoryPage { guard, tested_commits } = page;
    let data = ReportData { guard: guard.cloned(), tested_commits, ..history_data(runs, found)? };
    let page = render_report(&data, SECTIONS)?;
    path.write(page.as_bytes())?;
    context.note(format!("report: {path}"));
    Ok(())
}

fn history_data(runs: &HistoryRuns, found: &MetricHistories) -> Result<ReportData<'static>, Failure> {
    let data = report::report_data(std::slice::from_ref(&runs.newest), Vec::new())?;
    Ok(ReportData { title: "History".into(), history: Some(found.clone()), ..data })
}

/// What a page of the history of these runs is made from.
pub fn read_history_data(context: &App, of: &HistorySelection) -> Result<ReportData<'static>, Failure> {
    let (runs, found) = read_histories(context, of)?;
    history_data(&runs, &found)
}

/// The runs that are chosen, and their histories.
///
/// # Errors
/// No such run; no value of what is chosen.
pub fn read_histories(
    context: &App,
    of: &HistorySelection,
) -> Result<(HistoryRuns, MetricHistories), Failure> {
    let runs = read_history_runs(context, of, false)?;
    let mut found = runs.histories(&history_options(of))?;
    found.begin_accepted_baselines(&context.archive()?.read_accepted_steps()?);
    Ok((runs, found))
}

/// The histories of a study of which these are the runs; none where none of them is part of a history.
///
/// # Errors
/// Runs without a value of what is chosen.
pub fn find_study_history(
    context: &App,
    of: &HistorySelection,
    runs: &[ArchiveEntry],
) -> Result<Option<MetricHistories>, Failure> {
    let is_part = |entry: &&ArchiveEntry| entry.summary.as_ref().is_ok_and(|run| of.includes_run(run));
    let entries: Vec<ArchiveEntry> = runs.iter().filter(is_part).cloned().collect();
    if entries.is_empty() {
        return Ok(None);
    }
    let runs = choose_history_runs(context, of, false, entries)?;
    let mut found = runs.histories(&history_options(of))?;
    found.begin_accepted_baselines(&context.archive()?.read_accepted_steps()?);
    Ok(Some(found))
}

/// What the newest run has of the only metric that is chosen, as `guard` judges it.
///
/// # Errors
/// No such run; several cases have the metric and none is named; the newest run has it not.
pub fn judge_newest_metric(
    context: &App,
    of: &HistorySelection,
    case: Option<&str>,
) -> Result<(MetricHistories, GuardRow), Failure> {
    let JudgedHistory { found, judged, .. } = judge_newest_run(context, of, &[])?;
    let is_asked = |row: &&GuardRow| case.is_none_or(|case| row.subject == case);
    let asked: Vec<&GuardRow> = judged.rows.iter().filter(is_asked).collect();
    match (asked.as_slice(), case) {
        ([row], _) => {
            let row = (*row).clone();
            Ok((found, row))
        }
        ([], Some(case)) => {
            let known = judged.rows.iter().map(|row| row.subject.as_str());
            let message = format!("the newest run has no case `{case}` with this metric");
            Err(UsageError::new(message, suggest_name(case, known)).into())
        }
        ([], None) => Err(UsageError::new(
            format!("run {} is the newest, and does not have this metric", judged.run),
            "`perflab guard` shows what was judged",
        )
        .into()),
        (several, _) => {
            let names: Vec<&str> = several.iter().map(|row| row.subject.as_str()).collect();
            let message = format!("{} cases have this metric", names.len());
            Err(UsageError::new(message, format!("choose one with `case`: {}", names.join(", "))).into())
        }
    }
}

/// The newest run held against those before it.
pub struct JudgedHistory {
    /// The runs.
    pub runs: HistoryRuns,
    /// Their histories.
    pub found: MetricHistories,
    /// What the newest one is, held against them.
    pub judged: GuardReport,
    options: AnalysisOptions,
}

impl JudgedHistory {
    fn read(context: &App, of: &HistorySelection, told: &[ToldStep]) -> Result<Self, Failure> {
        let runs = read_history_runs(context, of, true)?;
        let options = history_options(of);
        let mut found = runs.histories(&options)?;
        found.begin_accepted_baselines(&context.archive()?.read_accepted_steps()?);
        let judged = if told.is_empty() {
            check_newest_run(&found, &options)?
        } else {
            let mut reference = found.clone();
            reference.leave_out_told_steps(told, &options)?;
            check_newest_run(&reference, &options)?
        };
        Ok(JudgedHistory { runs, found, judged, options })
    }
}

/// The newest run against its history without the steps that were told, with how often its iterations failed.
///
/// # Errors
/// No such run; no value of what is chosen; runs that cannot be read.
pub fn judge_newest_run(
    context: &App,
    of: &HistorySelection,
    told: &[ToldStep],
) -> Result<JudgedHistory, Failure> {
    let mut history = JudgedHistory::read(context, of, told)?;
    let failures = newest_failures(context, &history.runs, &history.options)?;
    history.judged = history.judged.with_failures(failures);
    Ok(history)
}

/// The newest run against its history.
pub fn guard_newest_run(context: &App, args: &GuardArgs) -> Result<Exit, Failure> {
    let JudgedHistory { runs, mut found, mut judged, options } = JudgedHistory::read(context, &args.of, &[])?;
    let archive = context.archive()?;
    if let Some(note) = &args.accept {
        let accepted = accept_alarms(&found, &judged, note)?;
        archive.accept_steps(&accepted)?;
        found.begin_accepted_baselines(&accepted);
        judged = check_newest_run(&found, &options)?;
    }
    if args.confirm && !judged.alarms().is_empty() {
        confirm_alarms(context, &runs.newest, &mut judged, (&args.confirmation(), &options))?;
    }
    judged = judged.with_failures(newest_failures(context, &runs, &options)?);
    judged.newer_unreadable.clone_from(&runs.unreadable);
    if context.format == OutputFormat::Json {
        context.print_json(&ResultWithNotes::new(&judged, &judged.notes))?;
    } else if print_ci_tests(
        context,
        || CiTests::of_guard(&found, &judged),
        || Ok(guard_grid(&found, &judged).render(OutputFormat::Markdown, None, false)?),
    )? {
        // The notes are for people who read the table.
    } else {
        context.print_grid(&guard_grid(&found, &judged))?;
        judged.notes.iter().for_each(|note| context.note(format!("note: {}", describe_method(note))));
    }
    if !judged.lost.is_empty() {
        stderr_line!("warning: measured earlier, but not in the newest run: {}", judged.lost.join("; "));
    }
    let page = HistoryPage { guard: Some(&judged), ..HistoryPage::default() };
    write_history_report(context, &args.of, (&runs, &found), page)?;
    for found in &judged.failures {
        stderr_line!("perflab: {}: {}", found.subject, guard_failures_text(found));
    }
    let failing = judged.failing().len();
    let alarms = judged.alarms().len();
    if alarms > 0 && args.confirm {
        stderr_line!("perflab: {alarms} got worse, and are worse again, measured in turn with the old");
    } else if alarms > 0 {
        stderr_line!(
            "perflab: {alarms} got worse in run {}: measure it again, side by side with the last good one",
            judged.run
        );
    }
    let open = judged.open_alarms().len();
    if open > 0 {
        stderr_line!(
            "perflab: whether {open} got worse is not decided: measure on, with more blocks (--until)"
        );
    }
    let (outside, unsettled) = (judged.outside(), judged.unsettled(&found).len());
    let single = outside.iter().filter(|row| row.outside_runs <= 1).count();
    if single > 0 {
        stderr_line!(
            "perflab: {single} fell out of the history in run {}: one run is no step, run it again",
            judged.run
        );
    }
    if outside.len() > single {
        let accept = if unsettled > 0 { ", or `--accept NOTE`" } else { "" };
        stderr_line!(
            "perflab: {} fell out of the history several runs in a row: measure old and new side by side{accept}",
            outside.len() - single
        );
    }
    let standing = judged.standing().len();
    if standing > 0 {
        stderr_line!(
            "perflab: {standing} got worse earlier, and nobody has accepted it: `perflab guard --accept NOTE` begins a new baseline"
        );
    }
    if alarms + failing == 0 && judged.is_empty() && args.accept.is_none() {
        stderr_line!(
            "perflab: nothing was judged in run {}: {}",
            judged.run,
            unjudged_reason(&found, &judged, &args.of)
        );
    }
    if let Some(run) = &runs.unreadable {
        stderr_line!(
            "perflab: run {run} is newer, and cannot be read: `perflab rm {run}`, or take it from a copy"
        );
    }
    // For git a commit is good or bad; a run that fell out of its history is neither.
    let is_undecided =
        open + unsettled > 0 || !outside.is_empty() && args.caller.is_some() || runs.unreadable.is_some();
    Ok(match alarms + failing {
        0 if is_undecided => Exit::NothingJudged,
        0 if judged.is_empty() && args.accept.is_none() => Exit::NothingJudged,
        0 => Exit::Fine,
        _ => Exit::Regression,
    })
}

/// How often iterations failed in the newest run, beside those before it. Only runs that say so of themselves have such.
fn newest_failures(
    context: &App,
    runs: &HistoryRuns,
    options: &AnalysisOptions,
) -> Result<Vec<GuardFailures>, Failure> {
    // What failed before a run was gone on with stands in its first parts.
    let has_failed =
        |record: &&RunRecord| record.manifest.status != RunStatus::Finished || !record.parts.is_empty();
    if runs.records.last().as_ref().is_none_or(|newest| !has_failed(newest)) {
        return Ok(Vec::new());
    }
    let archive = context.archive()?;
    let study = runs.records.last().map(|newest| newest.manifest.study.title.as_str());
    let is_own = |record: &&RunRecord| Some(record.manifest.study.title.as_str()) == study;
    let looks = runs.records.iter().filter(is_own).count();
    let latest = runs.records.iter().rev().filter(is_own).take(MOST_FAILURE_RUNS);
    let mut records: Vec<RunRecord> = latest.cloned().collect();
    records.reverse();
    let mut failed = Vec::new();
    for record in records.iter().filter(has_failed) {
        let mut parts = Vec::new();
        for id in record.recorded_ids() {
            parts.push(selection::select_run(&archive, id)?.read_failed_record()?);
        }
        failed.extend(join_continued_runs(parts));
    }
    Ok(judge_newest_failures(FailureRecords { runs: &records, failed: &failed, looks }, options)?)
}

/// On so many runs the share of iterations that fail rests at most.
const MOST_FAILURE_RUNS: usize = 200;

/// The alarms of the newest run, to be accepted with a note.
fn accept_alarms(
    found: &MetricHistories,
    judged: &GuardReport,
    note: &str,
) -> Result<Vec<AcceptedStep>, UsageError> {
    if note.trim().is_empty() {
        return Err(UsageError::new(
            "the note is empty",
            "say why the change is accepted: --accept 'new allocator'",
        ));
    }
    let mut alarms = [judged.alarms(), judged.standing()].concat();
    let is_stepped = |row: &&GuardRow| row.find_standing_step(found).is_some();
    let further: Vec<&GuardRow> = judged.deciding_rows().filter(is_stepped).collect();
    alarms.extend(further.into_iter().filter(|row| row.alarm.is_none() && row.standing.is_none()));
    if alarms.is_empty() {
        let message = format!("nothing alarms in run {}, so there is nothing to accept", judged.run);
        return Err(UsageError::new(message, "run `perflab guard` without --accept to see what was judged"));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Nanos(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
    let accept = |row: &GuardRow| {
        let told = row.alarm.as_ref().or(row.standing.as_ref()).map(|step| step.first_bad.clone());
        let run = told.or_else(|| Some(row.find_standing_step(found)?.first_bad))?;
        let began = Nanos(found.runs.iter().find(|one| one.id == run)?.began.0);
        Some(AcceptedStep {
            subject: row.subject.clone(),
            metric: row.metric.clone(),
            unit: row.unit.clone(),
            run,
            began,
            note: note.trim().to_owned(),
            accepted: now,
        })
    };
    Ok(alarms.into_iter().filter_map(accept).collect())
}

/// Why a history has nothing to hold the newest run against, and what to do.
fn unjudged_reason(found: &MetricHistories, judged: &GuardReport, of: &HistorySelection) -> String {
    if let Some(runs) = judged.runs_since_step(found) {
        return format!(
            "its level began {runs} runs before it, with a step (`perflab history` shows it): {FEWEST_HISTORY_RUNS} are needed to judge by"
        );
    }
    let studies: Vec<&str> = found.runs.iter().map(|run| run.study.as_str()).collect();
    let (newest, before) = studies.split_last().map_or(("", &[][..]), |(newest, before)| (*newest, before));
    if before.is_empty() {
        return format!(
            "it is the first of its history, and {FEWEST_HISTORY_RUNS} earlier runs are needed to judge by"
        );
    }
    let same = before.iter().filter(|study| **study == newest).count();
    // Imports have the names of their files for studies.
    let known = judged.rows.iter().map(|row| row.runs).max().unwrap_or_default();
    let others = if known > 0 {
        format!(": {known} so far")
    } else if same < before.len() && of.study.is_none() {
        format!("; {same} of the {} runs before it are of its study", before.len())
    } else {
        String::new()
    };
    format!("no metric that decides has {FEWEST_HISTORY_RUNS} earlier runs of the same case{others}")
}

/// Which runs and metrics a history is made of.
#[derive(Debug, Args)]
pub struct HistorySelection {
    /// Only these metrics
    #[arg(value_name = "METRIC")]
    pub metric: Vec<String>,
    /// Only this workload (repeatable)
    #[arg(long, value_name = "NAME")]
    pub workload: Vec<String>,
    /// Only runs with this label
    #[arg(long)]
    pub label: Option<String>,
    /// Only runs of this study: its title or file name, as `perflab list` shows it
    #[arg(long, value_name = "STUDY")]
    pub study: Option<String>,
    /// Only the latest N runs
    #[arg(long, value_name = "N")]
    pub last: Option<usize>,
    /// All runs, not only the latest 500 of each study
    #[arg(long, conflicts_with = "last")]
    pub all: bool,
    /// The smallest relative change that matters, unless the study gives one for the metric
    #[arg(long, default_value_t = GUARD_MARGIN, value_name = "PERCENT", value_parser = parse_margin)]
    pub margin: Ratio,
    /// Write one HTML file with the newest run and the history
    #[arg(long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub report: Option<OutputPath>,
}

impl HistorySelection {
    /// Whether a run takes part: one that is still recorded does not. A study is named by its title, its file, or that without
    /// folder and ending. Runs that measure old and new, one thing twice, a suspect, or commits that are bisected, are no part of a series unless their label is asked for.
    fn includes_run(&self, run: &RunSummary) -> bool {
        run.status != RunStatus::Running
            && match (&self.label, run.label.as_deref()) {
                (None, own) => own.is_none_or(|own| {
                    ![CONFIRMATION, NOISE, SUSPECT_TEST].contains(&own) && !own.starts_with(BISECTION)
                }),
                (Some(label), own) => own == Some(label.as_str()),
            }
            && self.study.as_deref().is_none_or(|study| run.study_names().any(|name| name == study))
    }
}

/// Show metrics over the runs of the archive, and their steps
#[derive(Debug, Args)]
#[command(after_long_help = HISTORY)]
pub struct HistoryArgs {
    #[command(flatten)]
    pub of: HistorySelection,
    /// Draw the first series into FILE.svg or FILE.png, or as SVG on standard output (-)
    #[arg(short, long, alias = "plot", value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
}

impl Verb for HistoryArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        show_history(app, self)
    }
}

const HISTORY: &str = "\
Each run is one value: the median of its boots' medians. Steps are found by E-divisive (energy
distance with permutations, 5 % false alarms per series), with at least three runs on either side.
Each step has its size with an interval, the last good and the first bad run, and the facts that
differ. A case whose command, parameters or definition were edited starts a new series. Looked at
are the latest 500 runs of each study; --all looks at all, and takes longer.

Examples:
  perflab history                        the steps of every metric in the archive
  perflab history time -o time.svg       one metric, run by run, and a picture
  perflab history --label nightly --last 100 --report history.html";

/// Judge the newest run by its history: exit code 5 where it is worse
#[derive(Debug, Args)]
#[command(after_long_help = GUARD)]
pub struct GuardArgs {
    #[command(flatten)]
    pub of: HistorySelection,
    /// Accept what alarms, with a note: a new baseline begins at the step
    #[arg(long, value_name = "NOTE")]
    pub accept: Option<String>,
    /// Before an alarm counts, measure old and new once more, in turn: it takes what they say
    #[arg(long, conflicts_with = "accept")]
    pub confirm: bool,
    /// Shell command that switches to what was before (default: the one setting that differs)
    #[arg(long, value_name = "CMD", requires_all = ["confirm", "new"])]
    pub old: Option<String>,
    /// Shell command that switches to what is new, and puts the machine back
    #[arg(long, value_name = "CMD", requires_all = ["confirm", "old"])]
    pub new: Option<String>,
    /// When enough has been measured for that
    #[arg(long, value_name = "RULE", default_value = "decided", requires = "confirm")]
    pub until: StoppingRule,
    /// Exit codes as this caller reads them
    #[arg(long = "for", value_name = "CALLER", value_parser = named_parser::<GuardCaller>())]
    pub caller: Option<GuardCaller>,
}

/// Who reads exit codes otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardCaller {
    /// `git bisect run`
    GitBisect,
}

impl Named for GuardCaller {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[(
        GuardCaller::GitBisect,
        "git-bisect",
        "0 good, 1 bad, 125 not decided or failed, 128 stop: the next commit would fail in the same way",
    )];
}

impl GuardArgs {
    fn confirmation(&self) -> ConfirmedSides<'_> {
        let commands = self.old.as_deref().zip(self.new.as_deref()).map(<[&str; 2]>::from);
        ConfirmedSides { commands, until: self.until }
    }
}

impl Verb for GuardArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        guard_newest_run(app, self)
    }
}

const GUARD: &str = "\
Goes through the history run by run and exits with 5 if a metric got worse: a step for the worse,
beyond the margin, was seen with one of the last ten runs; or if more iterations of a case fail in
the newest run than chance explains after those before it. A series without a step alarms in its
whole life with a chance of at most 5 %, however often you ask, so a small step takes some runs: one
of two standard deviations about ten after twenty runs of history. A single run outside the
prediction interval is shown as `outside` and is no alarm: run it again. Five or more in a row, with
too few before them for an alarm yet, exit with 7: measure old and new side by side, or accept the
step. Metrics that only explain
(no `primary` in the study) have their words, and no say in the exit code. If no metric that decides
could be judged (too short a history, an edited study, a run of another study), it exits with 7.

A step that you want to keep is accepted with a note, which `history` shows, too. The archive keeps
it, and the series is judged by the runs from the step on.

With --confirm an alarm is withheld until old and new have been measured once more, interleaved in
one run (label `confirm`) that ends once it is decided. --old and --new say how to switch between
them; without them, the one tunable (sysctl) that differs between the last good and the first bad
run is varied. It exits with 5 where new is worse again, with 0 where it is not, and with 7 where
that is not decided.

Examples:
  perflab guard
  perflab guard --study nightly.toml
  perflab guard time --label nightly --margin 2% --report guard.html
  perflab guard --confirm --old './install.sh v1' --new './install.sh v2'
  perflab guard time --accept 'the new allocator is slower and safer'
  git bisect run sh -c 'make || exit 125; perflab run s.toml; perflab guard --for git-bisect'

With --for git-bisect only an alarm is code 1, and only a run that was judged without one code 0.
`perflab bisect` needs fewer runs, and bounds the error of the whole walk.";
