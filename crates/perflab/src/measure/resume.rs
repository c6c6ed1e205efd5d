//! `perflab resume RUN`: what a run that was interrupted has not measured, measured in a run of its own.
//!
//! Both have one label, and count as one run wherever runs are compared ([`perflab_model::join_continued_runs`]).

use std::collections::BTreeSet;

use clap::Args;
use perflab_analyze::price::is_price_run;
use perflab_archive::{Archive, ArchiveError, HeldRun, RESUMED_LABEL, RunDir};
use perflab_conduct::{RunPermissions, find_remaining_slots};
use perflab_model::fact_table;
use perflab_model::facts::FactChange;
use perflab_model::study::TomlSource;
use perflab_model::{
    MEASUREMENT_FACTS, Manifest, Nanos, RunPlan, RunStatus, Scalar, Slot, named_variable_changes,
};

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::measure::repeatable_run::check_study_resumable;
use crate::measure::run::{self, RunArgs};
use crate::see::price;
use crate::selection;
use crate::verb::Verb;

/// Go on with a run that was interrupted: measure what it lacks
///
/// Complete blocks stay, and are not run again; warm-ups are, and so are the set-up of workloads and the hooks of the study. The rest
/// becomes a run of its own with the same label, and both count as one run wherever they are compared. A run without a label gets one.
/// Each part of a run, and the label of all, stands for the whole.
#[derive(Debug, Args)]
#[command(after_long_help = RESUME)]
pub struct ResumeArgs {
    /// The run (default: @latest)
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Go on though the machine, its kernel, a workload or a variable that a command names has changed
    #[arg(long)]
    pub changed: bool,
    /// Allow what destroys data: formatting the study's partition
    #[arg(long)]
    pub apply: bool,
    /// Wait for hosts that another study has, at most so long (`--wait=2h`; default: a day)
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "24h")]
    pub wait: Option<Nanos>,
    /// Write no report
    #[arg(long)]
    pub no_report: bool,
    /// The id of the new run, where its caller gives it one.
    #[arg(skip)]
    pub run_id: Option<String>,
}

const RESUME: &str = "\
Examples:
  perflab resume                  what the latest run lacks
  perflab resume 01M8 --changed   under another kernel than it began with

Nothing is done for a run that is whole: exit code 0, or 4 where iterations failed, which are not
run again. A study that ends when something is known (`until`) cannot be resumed:
`perflab reproduce RUN --again` does it once more.";

/// Changed facts that are told; `perflab diff` has all of them.
const MOST_CHANGES: usize = 4;

impl Verb for ResumeArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        resume_run(app, self)
    }
}

/// Carries out what a run lacks, and says what came out.
pub fn resume_run(context: &App, args: &ResumeArgs) -> Result<Exit, Failure> {
    let (status, parts) = match measure_rest(context, args)? {
        RestOfRun::Nothing(exit) => return Ok(exit),
        RestOfRun::Measured { status, parts } => (status, parts),
    };
    let ended = parts.last().map_or(Exit::Fine, |again| run::exit_of_run(context, status, again));
    let is_priced =
        parts.last().and_then(|last| last.manifest().ok()).is_some_and(|last| is_price_run(&last));
    let concluded = match is_priced {
        true => price::conclude_price_run(context, &parts),
        false => crate::see::report::conclude_runs(context, &parts, args.no_report),
    };
    // A run that was stopped may lack a side.
    if status != RunStatus::Stopped {
        concluded?;
    }
    Ok(ended)
}

/// What became of the rest of a run.
#[derive(Debug)]
pub enum RestOfRun {
    /// Nothing was left to measure.
    Nothing(Exit),
    /// It was measured.
    Measured {
        /// How that ended.
        status: RunStatus,
        /// All parts of the run, the new one last.
        parts: Vec<RunDir>,
    },
}

/// Measures what a run lacks.
///
/// # Errors
/// It cannot be gone on with, here or at all.
pub fn measure_rest(context: &App, args: &ResumeArgs) -> Result<RestOfRun, Failure> {
    let archive = context.archive()?;
    run::undo_leftovers(context);
    let found = find_last_part(&archive, args.run.as_deref().unwrap_or("@latest"))?;
    check_study_resumable(&found, &found.manifest()?)?;
    let held = hold_run(&archive, &found)?;
    let record = found.read_record()?;
    let manifest = &record.manifest;
    // Somebody may have been faster.
    if let Some(next) = selection::find_continuations(&archive, &manifest.id)?.pop() {
        let message = format!("run {} goes on with run {} already", next.short_id(), found.short_id());
        return Err(UsageError::new(message, "wait for its end, or stop it with ^C").into());
    }
    let parts = selection::find_parts(&archive, &found);
    if let Some(missing) = parts.first().and_then(|first| first.manifest().ok()?.continues) {
        let message = format!(
            "run {} goes on with run {missing}, which is not here: what is left cannot be told",
            found.short_id()
        );
        return Err(UsageError::new(message, "import it, or run the study anew").into());
    }
    check_no_part_is_apart(&archive, &found, manifest)?;
    let slots = find_remaining_slots(&manifest.plan, &record.iterations);
    let count = |slots: &[Slot]| slots.iter().filter(|slot| !slot.warmup).count();
    if slots.is_empty() {
        return Ok(RestOfRun::Nothing(conclude_whole_run(context, &parts)));
    }
    context.note(format!(
        "run {} lacks {} of {} iterations",
        found.short_id(),
        count(&slots),
        count(&manifest.plan.slots)
    ));
    let source = TomlSource::new(manifest.study_file.clone(), manifest.study_text.clone());
    let run_args =
        RunArgs { seed: Some(manifest.plan.seed), run_id: args.run_id.clone(), ..RunArgs::default() };
    let (mut planned, catalogue) = run::plan_manifest(context, &source, manifest.study.clone(), &run_args)?;
    check_unchanged(manifest, &planned, args.changed)?;
    planned.label = Some(share_label(context, &archive, &parts, (&held, manifest))?);
    // Nobody but whoever began it knows what commit was built.
    if let Some(commit) = manifest.facts.stored(fact_table::TREE_COMMIT.as_str()) {
        planned.facts.add(fact_table::TREE_COMMIT, commit.value.clone(), &commit.source);
    }
    planned.brief = manifest.brief;
    planned.first_part = Some(manifest.first_part_id().to_owned());
    planned.continues = Some(manifest.id.clone());
    let definitions = std::mem::take(&mut planned.plan.definitions);
    let definition_parts = std::mem::take(&mut planned.plan.definition_parts);
    planned.plan = RunPlan { slots, definitions, definition_parts, ..manifest.plan.clone() };
    let permissions = RunPermissions { apply: args.apply, wait: args.wait, ..RunPermissions::default() };
    let (status, again) = run::execute_manifest(context, &planned, catalogue, &permissions)?;
    Ok(RestOfRun::Measured { status, parts: parts.into_iter().chain([again]).collect() })
}

/// Refuses to measure again what a part of the run has that goes on with one that is not here.
fn check_no_part_is_apart(archive: &Archive, found: &RunDir, manifest: &Manifest) -> Result<(), Failure> {
    let all = archive.list_runs()?;
    let is_here = |id: &str| all.iter().any(|entry| entry.id == id);
    let mut parts = all.iter().filter(|entry| entry.first_part_id() == manifest.first_part_id());
    let apart = parts.find_map(|entry| {
        let summary = entry.summary.as_ref().ok()?;
        let missing = summary.continues.as_deref().filter(|before| !is_here(before))?;
        Some((&entry.short, missing))
    });
    let Some((part, missing)) = apart else { return Ok(()) };
    let message = format!(
        "run {part} is a part of the same measurement as run {}, and goes on with run {missing}, which is not here: what is left \
         cannot be told",
        found.short_id()
    );
    Err(UsageError::new(message, "import that run, or run the study anew").into())
}

/// Has nobody else go on with the run meanwhile, or remove it; one that was killed is closed.
fn hold_run(archive: &Archive, found: &RunDir) -> Result<HeldRun, Failure> {
    let short = found.short_id();
    if !archive.run_path(found.id()).is_dir() {
        let hint = "import it, or name its archive with --archive";
        return Err(UsageError::new(format!("run {short} is not in this archive"), hint).into());
    }
    archive.hold_run(found.id()).map_err(|error| match error {
        ArchiveError::Live { .. } => {
            let message = format!("run {short} is being recorded, or somebody goes on with it already");
            UsageError::new(
                message,
                "wait for the end of that, or stop it with ^C; `perflab list` shows what becomes of it",
            )
            .into()
        }
        other => other.into(),
    })
}

/// Nothing is left to measure; what failed has a result, and is not measured again.
fn conclude_whole_run(context: &App, parts: &[RunDir]) -> Exit {
    let short = parts.last().map_or("", RunDir::short_id);
    let has_failed = |run: &RunDir| run.manifest().is_ok_and(|manifest| manifest.status == RunStatus::Failed);
    match parts.iter().find(|run| has_failed(run)) {
        None => {
            context.note(format!("nothing is left to measure of run {short}"));
            Exit::Fine
        }
        Some(failed) => {
            let failed = failed.short_id();
            context.note(format!(
                "nothing is left to measure of run {short}, but iterations of run {failed} failed, and are not run again: \
                 `perflab show {failed} --iterations` lists them"
            ));
            Exit::WORKLOAD_FAILED
        }
    }
}

/// The run that is meant: the last part of a run that was gone on with, whichever part is named, or the label of all.
fn find_last_part(archive: &Archive, selector: &str) -> Result<RunDir, Failure> {
    let found = archive.find_runs(selector)?;
    let newest = found.last().cloned();
    let mut last = newest
        .ok_or_else(|| UsageError::new(format!("there is no run `{selector}`"), "see `perflab list`"))?;
    if found.len() > 1 {
        let parts = selection::find_all_parts(archive, &last);
        if let Some(other) = found.iter().find(|run| parts.iter().all(|part| part.id() != run.id())) {
            let message = format!(
                "`{selector}` names several runs, {} and {} among them",
                other.short_id(),
                last.short_id()
            );
            return Err(UsageError::new(message, "name the run by its id: see `perflab list`").into());
        }
    }
    let mut seen = BTreeSet::from([last.id().to_owned()]);
    while let Some(next) = selection::find_continuations(archive, last.id())?.pop() {
        if !seen.insert(next.id().to_owned()) {
            break;
        }
        last = next;
    }
    Ok(last)
}

/// Refuses to go on on another machine, with another kernel, or with workloads that are defined otherwise; says what else has changed.
fn check_unchanged(then: &Manifest, now: &Manifest, is_allowed: bool) -> Result<(), Failure> {
    let is_variable = |key: &str| fact_table::ENVIRONMENT.matches(key);
    let named = named_variable_changes(then, now);
    let is_decisive = |change: &FactChange<'_>| {
        MEASUREMENT_FACTS.iter().any(|key| key == change.key)
            || fact_table::ROOT_PACKAGES.matches(change.key)
            || named.iter().any(|one| one.key == change.key)
    };
    let describe = |change: &FactChange<'_>| {
        let missing = if is_variable(change.key) { "not set" } else { "unknown" };
        let text = |value: Option<&Scalar>| value.map_or(missing.to_owned(), ToString::to_string);
        format!("{} was {} and is {}", change.key, text(change.ours), text(change.theirs))
    };
    let knows_variables = then.facts.iter().any(|(key, _)| is_variable(key));
    let mut changes = then.facts.changes_to(&now.facts);
    // What is set now and was not, or the other way round, changes what a program does; a run of before variables were kept tells nothing.
    changes.retain(|change| match is_variable(change.key) {
        true => knows_variables,
        false => now.facts.stored(change.key).is_some(),
    });
    changes.sort_by_key(|change| !is_variable(change.key));
    let (decisive, others): (Vec<&FactChange<'_>>, Vec<_>) =
        changes.iter().partition(|change| is_decisive(change));
    let mut refused: Vec<String> = decisive.into_iter().map(describe).collect();
    if then.plan.cases != now.plan.cases {
        refused.push("the study comes to other cases".to_owned());
    }
    let redefined =
        then.plan.definitions.iter().filter(|(name, digest)| now.plan.definitions.get(*name) != Some(digest));
    refused.extend(redefined.map(|(name, _)| format!("the workload `{name}` is defined otherwise")));
    if !refused.is_empty() && !is_allowed {
        let hint = "the rest would be no part of that measurement: `perflab reproduce RUN --again` does all of it once more, and \
                    --changed measures the rest all the same, as a run by itself";
        let message = format!("not as it was when the run began: {}", refused.join("; "));
        return Err(UsageError::new(message, hint).into());
    }
    refused.extend(others.into_iter().map(describe));
    let rest = refused.split_off(refused.len().min(MOST_CHANGES));
    if !refused.is_empty() {
        let more = if rest.is_empty() { String::new() } else { format!("; and {} more", rest.len()) };
        stderr_line!("warning: not as it was when the run began: {}{more}", refused.join("; "));
    }
    Ok(())
}

/// The label of a run and of all that it goes on with; they get one where they have none.
fn share_label(
    context: &App,
    archive: &Archive,
    parts: &[RunDir],
    (held, manifest): (&HeldRun, &Manifest),
) -> Result<String, Failure> {
    if let Some(label) = &manifest.label {
        return Ok(label.clone());
    }
    let first = parts.first().map_or(manifest.id.as_str(), RunDir::short_id);
    let label = format!("{RESUMED_LABEL}{}", first.to_ascii_lowercase());
    held.set_label(Some(&label))?;
    for part in parts.iter().filter(|part| part.id() != manifest.id) {
        archive.set_label(part.id(), Some(&label))?;
    }
    context.note(format!("it and what follows are labelled {label}: `perflab label` gives them another"));
    Ok(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_kernel_or_another_workload_is_refused_unless_it_is_meant_and_other_facts_are_not() {
        let mut then = fixtures::run_events::make_manifest(2, 2);
        then.facts.add(fact_table::KERNEL_RELEASE, "6.1.0", "uname");
        then.facts.add(fact_table::CPU_ONLINE, 4_i64, "sysfs");
        let now = then.clone();
        assert!(check_unchanged(&then, &now, false).is_ok());
        let mut fewer = now.clone();
        fewer.facts.add(fact_table::CPU_ONLINE, 2_i64, "sysfs");
        assert!(check_unchanged(&then, &fewer, false).is_ok());
        let mut newer = now.clone();
        newer.facts.add(fact_table::KERNEL_RELEASE, "6.2.0", "uname");
        let mut redefined = now.clone();
        redefined.plan.definitions.insert("page-faults".into(), "f00d".into());
        then.plan.definitions.insert("page-faults".into(), "beef".into());
        then.study = toml::from_str("title = \"t\"\n[workload.w]\ncommand = \"sleep $TIME\"\n").unwrap();
        then.facts.add(fact_table::ENVIRONMENT.key("PATH"), "/bin", "env");
        then.facts.add(fact_table::ENVIRONMENT.key("TIME"), "1", "env");
        let mut unset = then.clone();
        unset.facts = now.facts.clone();
        unset.facts.add(fact_table::ENVIRONMENT.key("PATH"), "/sbin", "env");
        for manifest in [&mut newer, &mut redefined] {
            manifest.facts.extend(
                then.facts
                    .iter()
                    .filter(|(key, _)| key.starts_with("environment."))
                    .map(|(key, fact)| (key.to_owned(), fact.clone())),
            );
        }
        let mut elsewhere = then.clone();
        elsewhere.facts.add(fact_table::ENVIRONMENT.key("PATH"), "/sbin", "env");
        assert!(check_unchanged(&then, &elsewhere, false).is_ok(), "it is told");
        for changed in [newer, redefined, unset] {
            assert!(check_unchanged(&then, &changed, false).is_err());
            assert!(check_unchanged(&then, &changed, true).is_ok());
        }
    }
}
