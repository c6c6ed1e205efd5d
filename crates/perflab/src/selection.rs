//! From what the user calls runs to the sides of a comparison; with `--monitor NAME`, a monitor's series in the place
//! of a run's metrics.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use perflab_analyze::monitor_metric::{kernel_averages, monitor_readings, summarise_monitor};
use perflab_analyze::{
    AnalysisOptions, AnalyzeError, CaseCondition, Comparison, ComparisonSide, KernelLogPart,
    KernelLogsOfRuns, MethodDescription, VerdictRow, compare_kernel_logs, compare_kernel_logs_of_levels,
};
pub use perflab_archive::parse_label;
use perflab_archive::run_id::{is_run_id, shortest_prefixes};
use perflab_archive::run_selector::FoundRuns;
use perflab_archive::{Archive, ArchiveEntry, ArchiveError, RunDir, StoredOutput, TARGET_OUTPUT};
use perflab_model::{RunEventKind, RunRecord, RunStatus, fact_table, join_continued_runs, suggest_name};
use rayon::prelude::*;

use crate::failure::{Failure, UsageError};

/// The runs of the archive that are meant.
#[derive(Debug, Args)]
pub struct RunChoice {
    /// Only runs with this label
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,
    /// Only the latest N runs
    #[arg(long, value_name = "N")]
    pub last: Option<usize>,
}

/// The runs that were chosen.
pub struct ChosenRuns {
    /// the oldest first
    pub runs: Vec<ArchiveEntry>,
    /// what is wrong with the label, where no run has it
    pub unknown_label: Option<UsageError>,
}

impl RunChoice {
    /// The chosen runs of an archive.
    ///
    /// # Errors
    /// The archive's directory cannot be read.
    pub fn list_runs(&self, archive: &Archive) -> Result<ChosenRuns, ArchiveError> {
        let Some(label) = &self.label else {
            let runs = archive.list_latest_runs(self.last.unwrap_or(usize::MAX))?;
            return Ok(ChosenRuns { runs, unknown_label: None });
        };
        // Whoever wants the latest of a label looks at all.
        let mut runs = archive.list_runs()?;
        let label_of =
            |entry: &ArchiveEntry| entry.summary.as_ref().ok().and_then(|summary| summary.label.clone());
        let known: BTreeSet<String> = runs.iter().filter_map(label_of).collect();
        let unknown_label = (!known.contains(label)).then(|| {
            let hint = match known.is_empty() {
                true => "no run here has a label: `perflab label RUN NAME` gives it one".to_owned(),
                false => suggest_name(label, known.iter().map(String::as_str)),
            };
            UsageError::new(format!("no run has the label `{label}`"), hint)
        });
        runs.retain(|entry| label_of(entry).as_ref() == Some(label));
        runs.drain(..self.last.map_or(0, |last| runs.len().saturating_sub(last)));
        Ok(ChosenRuns { runs, unknown_label })
    }
}

/// The runs that were named; the latest, where none was.
pub fn named_runs_or_latest(named: &[String]) -> Vec<String> {
    if named.is_empty() { vec!["@latest".to_owned()] } else { named.to_vec() }
}

/// The runs behind one selector, as one side: a label that several runs share is their repetitions. A run that was gone on with is one
/// with what goes on with it.
pub fn select_side(archive: &Archive, selector: &str) -> Result<ComparisonSide, Failure> {
    Ok(join_side(read_side(archive, selector, RunDir::read_record)?))
}

/// Says of each run that goes on with one that is not here that it is a part of what was measured, and of two that go on with the
/// same one which of them counts. `is_here` tells of an id whether there is such a run.
pub fn warn_of_parts(runs: &[RunRecord], is_here: impl Fn(&str) -> bool) {
    for run in runs {
        if let Some(before) = run.manifest.continues.as_ref().filter(|before| !is_here(before)) {
            stderr_line!(
                "warning: run {} goes on with run {before}, which is not here: what that one measured is missing",
                run.manifest.id
            );
        }
    }
    let mut later: BTreeMap<&str, &str> = BTreeMap::new();
    for run in runs {
        let (id, before) = (run.manifest.id.as_str(), run.manifest.continues.as_deref());
        if let Some(before) = before
            && let Some(other) = later.insert(before, id)
        {
            stderr_line!(
                "warning: runs {other} and {id} both go on with run {before}: of what both measured, the later one counts"
            );
        }
    }
}

/// The same with each part of a run that was gone on with by itself, in the order of [`find_runs_with_parts`].
pub fn select_side_of_parts(archive: &Archive, selector: &str) -> Result<ComparisonSide, Failure> {
    read_side(archive, selector, RunDir::read_record)
}

/// A run and all that it goes on with, the oldest first, as far as the archive has them.
pub fn find_parts(archive: &Archive, run: &RunDir) -> Vec<RunDir> {
    let before = |run: &RunDir| run.manifest().ok().and_then(|manifest| manifest.continues);
    let mut parts = vec![run.clone()];
    let mut next = before(run);
    // What is no id may mean something else.
    while let Some(id) = next.take().filter(|id| is_run_id(id)) {
        let Some(run) = archive.find_runs(&id).ok().and_then(|mut runs| runs.pop()) else { break };
        if parts.iter().any(|part| part.id() == run.id()) {
            break;
        }
        next = before(&run);
        parts.insert(0, run);
    }
    parts
}

/// The runs that go on with this one, the oldest first: one, but for runs that two archives went on with each.
pub fn find_continuations(archive: &Archive, id: &str) -> Result<Vec<RunDir>, ArchiveError> {
    let mut all = archive.list_runs()?;
    all.retain(|entry| {
        entry.id.as_str() > id
            && entry.summary.as_ref().is_ok_and(|summary| summary.continues.as_deref() == Some(id))
    });
    Ok(all.iter().map(|entry| archive.open_run(entry)).collect())
}

/// A run, all that it goes on with, and all that goes on with it, the oldest first, as far as the archive has them.
pub fn find_all_parts(archive: &Archive, run: &RunDir) -> Vec<RunDir> {
    let Ok(manifest) = run.manifest() else { return vec![run.clone()] };
    if manifest.continues.is_none() && !manifest.status.is_cut() {
        return vec![run.clone()];
    }
    let mut all = archive.list_runs().unwrap_or_default();
    all.retain(|entry| entry.id != manifest.id && entry.first_part_id() == manifest.first_part_id());
    let mut parts: Vec<RunDir> = all.iter().map(|entry| archive.open_run(entry)).collect();
    parts.push(run.clone());
    // Ids are in the order of time.
    parts.sort_by(|one, other| one.id().cmp(other.id()));
    parts
}

/// All runs behind these selectors, each with all of its parts.
pub fn find_named_runs(archive: &Archive, selectors: &[String]) -> Result<Vec<RunDir>, ArchiveError> {
    let mut runs = Vec::new();
    for selector in selectors {
        runs.extend(find_runs_with_parts(archive, selector)?.runs);
    }
    Ok(runs)
}

/// The runs behind a selector, each with all of its parts: one stands for the whole.
fn find_runs_with_parts(archive: &Archive, selector: &str) -> Result<FoundRuns, ArchiveError> {
    let found = archive.find_runs_and_damaged(selector)?;
    let mut seen = BTreeSet::new();
    let mut runs: Vec<RunDir> = found.runs.iter().flat_map(|run| find_all_parts(archive, run)).collect();
    runs.retain(|run| seen.insert(run.id().to_owned()));
    Ok(FoundRuns { runs, ..found })
}

fn join_side(side: ComparisonSide) -> ComparisonSide {
    warn_of_parts(&side.runs, |id| side.runs.iter().any(|run| run.manifest.id == id));
    ComparisonSide { runs: join_continued_runs(side.runs), ..side }
}

/// The same with those iterations only that did not end well.
pub fn select_side_of_failures(archive: &Archive, selector: &str) -> Result<ComparisonSide, Failure> {
    Ok(join_side(read_side(archive, selector, RunDir::read_failed_record)?))
}

fn read_side(
    archive: &Archive,
    selector: &str,
    record: fn(&RunDir) -> Result<RunRecord, ArchiveError>,
) -> Result<ComparisonSide, Failure> {
    let read =
        |run: &RunDir| Ok::<_, ArchiveError>(RunRecord { documents: run.read_documents()?, ..record(run)? });
    let found = find_runs_with_parts(archive, selector)?;
    let runs = found.runs.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    for (run, reason) in found.damaged {
        stderr_line!("warning: left out of `{selector}`: run {}: {reason}", run.short_id());
    }
    for (run, reason) in found.unreadable {
        let run = run.short_id();
        stderr_line!(
            "warning: run {run} cannot be read, and is left out of `{selector}` if it has that label: {reason}"
        );
    }
    Ok(ComparisonSide { name: side_name(selector, &runs), runs })
}

/// Several sides, read by as many threads as there are processors; the first error where there is any.
pub fn select_sides(
    selectors: &[String],
    side: impl Fn(&str) -> Result<ComparisonSide, Failure> + Sync,
) -> Result<Vec<ComparisonSide>, Failure> {
    let read: Vec<_> = selectors.par_iter().map(|selector| side(selector)).collect();
    read.into_iter().collect::<Result<Vec<_>, Failure>>().map(disambiguate_names)
}

/// Runs that share a label are sides of one name: their ids, as short as they can be, tell them apart.
fn disambiguate_names(mut sides: Vec<ComparisonSide>) -> Vec<ComparisonSide> {
    let id = |side: &ComparisonSide| side.runs.first().map(|run| run.manifest.id.clone()).unwrap_or_default();
    let ids: Vec<String> = sides.iter().map(id).collect::<BTreeSet<_>>().into_iter().collect();
    let short: BTreeMap<String, String> = ids.iter().cloned().zip(shortest_prefixes(&ids)).collect();
    let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
    for side in &mut sides {
        let (id, several) = (id(side), names.iter().filter(|name| **name == side.name).count() > 1);
        if let Some(short) = short.get(&id).filter(|_| several && side.name != id) {
            side.name = format!("{} ({short})", side.name);
        }
    }
    sides
}

/// So many runs of a side hardly know their own spread.
const FEW_RUNS: usize = 3;

/// From so many runs of a study its noise from run to run is known well enough.
const MOST_EARLIER_RUNS: usize = 12;

/// The newest other runs of the first side's study: what they say of run-to-run noise is needed where two sides have few runs
/// each and were not measured together. None where it is not.
pub fn earlier_runs(archive: &Archive, sides: &[ComparisonSide]) -> Vec<RunRecord> {
    let compared: BTreeSet<&str> =
        sides.iter().flat_map(|side| &side.runs).map(|run| run.manifest.id.as_str()).collect();
    let has_few = |side: &ComparisonSide| side.runs.len() <= FEW_RUNS;
    if compared.len() < 2 || sides.iter().filter(|side| has_few(side)).count() < 2 {
        return Vec::new();
    }
    other_runs_of_study(archive, sides)
}

/// A comparison of these sides. Where all that keeps a row from being the same is a few far iterations, other runs of the study
/// are read, which may show that so many are usual.
pub fn compare_with_history(
    archive: &Archive,
    sides: &[ComparisonSide],
    options: &AnalysisOptions,
    compare: impl Fn(&AnalysisOptions) -> Result<Comparison, AnalyzeError>,
) -> Result<Comparison, Failure> {
    let found = compare(options)?;
    let is_between_runs = found.rows.iter().any(|row| row.between_runs.is_some());
    let has_open_tail = found.deciding_rows().into_iter().any(VerdictRow::has_open_tail);
    if !options.earlier.is_empty() || is_between_runs || !has_open_tail {
        return Ok(found);
    }
    let earlier = other_runs_of_study(archive, sides);
    if earlier.is_empty() {
        return Ok(found);
    }
    Ok(compare(&AnalysisOptions { earlier, ..options.clone() })?)
}

/// The newest other runs of the first side's study.
fn other_runs_of_study(archive: &Archive, sides: &[ComparisonSide]) -> Vec<RunRecord> {
    let compared: BTreeSet<&str> =
        sides.iter().flat_map(|side| &side.runs).flat_map(RunRecord::recorded_ids).collect();
    let Some(first) = sides.first().and_then(|side| side.runs.first()) else { return Vec::new() };
    // A run that cannot be read says nothing; `list` names it.
    let mut chosen = archive.list_runs().unwrap_or_default();
    chosen.retain(|run| {
        let is_of_study =
            run.summary.as_ref().is_ok_and(|summary| summary.title == first.manifest.study.title);
        is_of_study && !compared.contains(run.id.as_str())
    });
    let newest = chosen.split_off(chosen.len().saturating_sub(MOST_EARLIER_RUNS));
    join_continued_runs(archive.read_condensed_records(&newest).into_iter().filter_map(Result::ok).collect())
}

/// One run by its label, several by what names them.
fn side_name(selector: &str, runs: &[RunRecord]) -> String {
    let label = runs.first().filter(|_| runs.len() == 1).and_then(|run| run.manifest.label.clone());
    label.unwrap_or_else(|| selector.to_owned())
}

/// What kernels printed during runs, where that was kept; consoles where an iteration failed, which may be of a kernel's end.
pub fn read_kernel_logs(runs: &[RunDir]) -> Result<KernelLogsOfRuns, Failure> {
    let mut logs = KernelLogsOfRuns::new();
    for run in runs {
        let manifest = run.manifest()?;
        if !manifest.study.kernel_log || manifest.facts.value(&fact_table::IMPORT_KIND).is_some() {
            continue;
        }
        let part = |is_console: bool| {
            move |output: StoredOutput| KernelLogPart {
                slot: output.slot,
                target: output.target,
                text: output.text,
                is_console,
            }
        };
        let mut parts: Vec<KernelLogPart> =
            run.list_outputs(RunEventKind::KERNEL_LOG)?.into_iter().map(part(false)).collect();
        if manifest.status != RunStatus::Finished {
            parts.extend(run.list_outputs(TARGET_OUTPUT)?.into_iter().map(part(true)));
        }
        logs.insert(manifest.id, parts);
    }
    Ok(logs)
}

/// Adds what kernels printed to a comparison of sides, or of levels within one.
pub fn add_kernel_log(comparison: &mut Comparison, sides: &[ComparisonSide], logs: &KernelLogsOfRuns) {
    comparison.kernel_log = match (&comparison.by, sides) {
        (Some(factor), [side]) => {
            let levels: Vec<String> =
                std::iter::once(&comparison.baseline).chain(&comparison.candidates).cloned().collect();
            compare_kernel_logs_of_levels(side, factor, &levels, logs)
        }
        (Some(_), _) => None,
        (None, sides) => compare_kernel_logs(sides, logs),
    };
}

/// The factors of which the runs of a side have several levels, sorted.
pub fn varied_factors(side: &ComparisonSide) -> Vec<String> {
    let plans = side.runs.iter().map(|run| &run.manifest.plan);
    let factors = plans.flat_map(|plan| &plan.factors).filter(|(_, levels)| levels.len() > 1);
    factors.map(|(name, _)| name.clone()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The factor of which a side that stands alone has several levels, if it is the only one.
///
/// # Errors
/// It has none, or several.
pub fn only_varied_factor(side: &ComparisonSide) -> Result<String, UsageError> {
    let factors = varied_factors(side);
    match &factors[..] {
        [] => Err(alone_error("name a second run, or a factor with --by")),
        [factor] => Ok(factor.clone()),
        several => Err(alone_error(&format!(
            "name a second run, or one of its factors with --by: {}",
            several.join(", ")
        ))),
    }
}

/// One side, where there have to be two.
pub fn alone_error(hint: &str) -> UsageError {
    UsageError::new("one run alone cannot be compared", hint)
}

/// Leaves of each side the runs whose facts meet the conditions that are about facts; gives those that are about cases. A key that a
/// case has as a factor or parameter is about cases.
///
/// # Errors
/// A fact that no run of a side has so, naming what its runs have.
pub fn keep_runs_with_facts(
    sides: &mut [ComparisonSide],
    conditions: &[CaseCondition],
) -> Result<Vec<CaseCondition>, UsageError> {
    let is_of_facts = |key: &str, sides: &[ComparisonSide]| {
        let runs = || sides.iter().flat_map(|side| &side.runs);
        let mut cases = runs().flat_map(|run| &run.manifest.plan.cases);
        runs().any(|run| run.manifest.facts.stored(key).is_some()) && !cases.any(|case| case.has_key(key))
    };
    let mut of_cases = Vec::new();
    for condition in conditions {
        if !is_of_facts(&condition.key, sides) {
            of_cases.push(condition.clone());
            continue;
        }
        for side in sides.iter_mut() {
            let value = |run: &RunRecord| {
                run.manifest.facts.stored(&condition.key).map(|fact| fact.value.to_string())
            };
            let known: BTreeSet<String> = side.runs.iter().filter_map(value).collect();
            side.runs.retain(|run| value(run).is_some_and(|value| condition.allows(&value)));
            if side.runs.is_empty() {
                let known: Vec<String> = known.into_iter().collect();
                return Err(UsageError::new(
                    format!("no run of `{}` has {}={}", side.name, condition.key, condition.values.join(",")),
                    format!("its runs have {}", known.join(", ")),
                ));
            }
        }
    }
    Ok(of_cases)
}

/// So many runs are named where one of them is meant.
const MOST_NAMED: usize = 4;

/// The one run behind a selector, where a verb can only take one.
pub fn select_run(archive: &Archive, selector: &str) -> Result<RunDir, Failure> {
    let mut runs = archive.find_runs(selector)?;
    if let [_, .., newest] = &runs[..] {
        return Err(several_runs_error(selector, &runs, &find_all_parts(archive, newest)).into());
    }
    runs.pop().ok_or_else(|| no_run_error(selector).into())
}

/// The one run behind a selector with all its other parts, the oldest first.
pub fn select_parts(archive: &Archive, selector: &str) -> Result<Vec<RunDir>, Failure> {
    let runs = archive.find_runs(selector)?;
    let newest = runs.last().ok_or_else(|| no_run_error(selector))?;
    let parts = find_all_parts(archive, newest);
    if !are_among(&runs, &parts) {
        return Err(several_runs_error(selector, &runs, &parts).into());
    }
    Ok(parts)
}

/// The one run behind a selector, whole, with the last of its parts.
pub fn select_whole_run(archive: &Archive, selector: &str) -> Result<(RunDir, RunRecord), Failure> {
    let parts = select_parts(archive, selector)?;
    let read = |run: &RunDir| {
        Ok::<_, ArchiveError>(RunRecord { documents: run.read_documents()?, ..run.read_record()? })
    };
    let records = parts.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    warn_of_parts(&records, |id| parts.iter().any(|part| part.id() == id));
    let whole = join_continued_runs(records).pop();
    parts.last().cloned().zip(whole).ok_or_else(|| no_run_error(selector).into())
}

fn are_among(runs: &[RunDir], parts: &[RunDir]) -> bool {
    runs.iter().all(|run| parts.iter().any(|part| part.id() == run.id()))
}

fn no_run_error(selector: &str) -> UsageError {
    UsageError::new(format!("there is no run `{selector}`"), "see `perflab list`")
}

/// `parts` are those of the newest of them.
fn several_runs_error(selector: &str, runs: &[RunDir], parts: &[RunDir]) -> UsageError {
    let what = if are_among(runs, parts) { ", the parts of one that was gone on with," } else { "," };
    let message = format!("`{selector}` names {} runs{what} but one is needed", runs.len());
    let short: Vec<&str> = runs.iter().map(RunDir::short_id).collect();
    let hint = match short.len() <= MOST_NAMED {
        true => format!("name one by its id: {}", short.join(", ")),
        false => "name the run by its id: see `perflab list`".to_owned(),
    };
    UsageError::new(message, hint)
}

/// One side, its runs holding one sample a column and iteration of the monitor.
pub fn monitor_side(archive: &Archive, name: &str, monitor: &str) -> Result<ComparisonSide, Failure> {
    let mut side = select_side_of_parts(archive, name)?;
    let mut last = None;
    for (record, directory) in side.runs.iter_mut().zip(find_runs_with_parts(archive, name)?.runs) {
        let (series, edges) = (directory.read_series(monitor)?, directory.read_edges(monitor)?);
        let found = summarise_monitor(record, &series, edges.as_ref());
        if found.left_out > 0 {
            let run = directory.short_id();
            stderr_line!(
                "warning: run {run}: {} iterations are left out: {monitor} was read for less than half of their time, or it is unknown \
                 when they ran",
                found.left_out
            );
        }
        for (column, often) in &found.went_back {
            let run = directory.short_id();
            stderr_line!(
                "warning: run {run}: {monitor}: {column} went backwards in {often} iterations, which have no rate of it"
            );
        }
        *record = found.record;
        last = Some(directory);
    }
    // A run among several may have nothing; a side must not.
    match last.filter(|_| side.runs.iter().all(|record| record.samples.is_empty())) {
        Some(run) => {
            Err(monitor_missing_error(&run, monitor, "was not read for half of the time of any iteration"))
        }
        None => Ok(join_side(side)),
    }
}

/// Which of the kernel's own averages have no row, and why.
pub fn missing_averages_note(monitor: &str, comparison: &Comparison) -> Option<MethodDescription> {
    let has_row =
        |column: &str| comparison.rows.iter().any(|row| row.metric.split(' ').next() == Some(column));
    let without: Vec<&str> =
        kernel_averages(monitor).map(|(column, _)| column).filter(|column| !has_row(column)).collect();
    let columns: Vec<String> = without.iter().map(|&column| column.to_owned()).collect();
    (!columns.is_empty()).then_some(MethodDescription::KernelAverages { columns })
}

/// One side, its runs holding every reading of the monitor while a benchmark ran.
pub fn monitor_readings_side(
    archive: &Archive,
    name: &str,
    monitor: &str,
) -> Result<ComparisonSide, Failure> {
    let mut side = select_side_of_parts(archive, name)?;
    for (record, directory) in side.runs.iter_mut().zip(find_runs_with_parts(archive, name)?.runs) {
        *record = monitor_readings(record, &directory.read_series(monitor)?);
        if record.samples.is_empty() {
            return Err(monitor_missing_error(
                &directory,
                monitor,
                "was not read while a benchmark ran, or it is unknown when it ran",
            ));
        }
    }
    Ok(side)
}

/// A run in which the monitor has nothing to compare, and what else the run has.
fn monitor_missing_error(directory: &RunDir, monitor: &str, why: &str) -> Failure {
    let hint = match directory.list_monitors() {
        Ok(known) => format!("read it more often in the study, or compare what it has: {}", known.join(", ")),
        Err(error) => return error.into(),
    };
    UsageError::new(format!("run {}: {monitor} {why}", directory.short_id()), hint).into()
}

/// The index of a run's target of this name.
pub fn target_index(run: &RunDir, name: &str) -> Result<u32, Failure> {
    let targets = run.manifest()?.targets;
    let known = || targets.iter().map(|target| target.name.as_str());
    let unknown = || match targets.is_empty() {
        true => UsageError::new(
            format!("the run has no target `{name}`"),
            "it ran on one machine: leave --target out",
        ),
        false => {
            let hint = perflab_model::problem::suggest_name(name, known());
            UsageError::new(format!("the run has no target `{name}`"), hint)
        }
    };
    let index = known().position(|known| known == name).ok_or_else(unknown)?;
    Ok(u32::try_from(index).unwrap_or(u32::MAX))
}
