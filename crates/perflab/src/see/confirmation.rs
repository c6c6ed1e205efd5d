//! `perflab guard --confirm`: the second look. What alarms is measured once more, old and new interleaved, and what that says is
//! the word.

use std::collections::BTreeSet;

use perflab_analyze::{AnalysisOptions, ComparisonSide, GuardReport, GuardRow, compare_levels};
use perflab_archive::{Archive, RunDir};
use perflab_conduct::RunPermissions;
use perflab_model::study::{Factor, FactorKind, FactorLevel, SlotOrder, StoppingRule, TomlSource};
use perflab_model::{Facts, Manifest, RunStatus, Study, fact_table};

use crate::app::App;
use crate::failure::{Failure, UsageError};
use crate::measure::run::{self, RunArgs};

/// The factor whose levels are old and new, and the label of runs that confirm.
pub const CONFIRMATION: &str = "confirm";

/// How to switch between old and new.
#[derive(Debug)]
pub struct ConfirmedSides<'a> {
    /// Commands that switch to each, where they were given.
    pub commands: Option<[&'a str; 2]>,
    /// When enough has been measured.
    pub until: StoppingRule,
}

/// Measures what alarms once more, and puts what that says into the report.
pub fn confirm_alarms(
    context: &App,
    newest: &RunDir,
    judged: &mut GuardReport,
    (sides, options): (&ConfirmedSides<'_>, &AnalysisOptions),
) -> Result<(), Failure> {
    let archive = context.archive()?;
    let newest = newest.read_record()?.manifest;
    let factor = match sides.commands {
        Some(commands) => factor_of_commands(commands),
        None => factor_of_settings(&archive, judged)?,
    };
    let study = confirming_study(&newest, judged, factor, sides.until);
    let source = TomlSource::new(newest.study_file.as_str(), newest.study_text.clone());
    run::undo_leftovers(context);
    let args =
        RunArgs { label: Some(CONFIRMATION.into()), no_report: true, ..RunArgs::of_study(&source.file) };
    let (manifest, catalogue) = run::plan_manifest(context, &source, study, &args)?;
    context.note(format!("{} alarm: old and new are measured again, in turn", judged.alarms().len()));
    let (status, found) = run::execute_manifest(context, &manifest, catalogue, &RunPermissions::default())?;
    if !matches!(status, RunStatus::Finished | RunStatus::Failed) {
        let message = format!("the run that was to confirm was stopped: {}", found.short_id());
        return Err(UsageError::new(message, "`perflab guard --confirm` measures again").into());
    }
    let side = ComparisonSide { name: found.short_id().to_owned(), runs: vec![found.read_record()?] };
    let compared = compare_levels(&side, CONFIRMATION, options)?;
    judged.confirm(&manifest.id, &compared);
    Ok(())
}

/// The newest run's study, of what alarms, with old and new as the levels of one more factor.
fn confirming_study(newest: &Manifest, judged: &GuardReport, factor: Factor, until: StoppingRule) -> Study {
    let subjects: BTreeSet<&str> = judged.alarms().into_iter().map(|row| row.subject.as_str()).collect();
    let alarmed = newest.plan.cases.iter().filter(|case| subjects.contains(case.label().as_str()));
    let workloads: BTreeSet<&str> = alarmed.map(|case| case.workload.as_str()).collect();
    let mut study = newest.study.clone();
    study.workload.retain(|name, _| workloads.contains(name.as_str()));
    study.factor.retain(|_, factor| factor.workload.as_deref().is_none_or(|name| workloads.contains(name)));
    study.factor.insert(CONFIRMATION.into(), factor);
    study.run.until = Some(until);
    study.run.order = SlotOrder::Randomised;
    // What is random was drawn for another run.
    study.run.seed = None;
    (study.run.boots, study.run.layout, study.run.boot_each_case) = (1, 1, false);
    study
}

/// A factor of two commands; the machine is left with what is new, as it was found.
fn factor_of_commands([old, new]: [&str; 2]) -> Factor {
    let shell = |command: &str| ["sh", "-c", command].map(str::to_owned).to_vec();
    let level = |name: &str, apply: &str, undo: &str| FactorLevel {
        apply: shell(apply),
        undo: shell(undo),
        ..FactorLevel::from_scalar(name.into())
    };
    Factor {
        kind: FactorKind::Commands,
        key: None,
        workload: None,
        on: None,
        levels: vec![level("old", old, new), level("new", new, "true")].into(),
    }
}

/// The one setting that differs between the last good and the first bad run of what alarms.
fn factor_of_settings(archive: &Archive, judged: &GuardReport) -> Result<Factor, Failure> {
    let pair =
        |row: &&GuardRow| row.alarm.as_ref().map(|alarm| (alarm.last_good.clone(), alarm.first_bad.clone()));
    let pairs: BTreeSet<(String, String)> = judged.alarms().iter().filter_map(pair).collect();
    let mut settings: BTreeSet<[String; 3]> = BTreeSet::new();
    for (good, bad) in &pairs {
        let facts = |id: &str| -> Result<Facts, Failure> {
            Ok(crate::selection::select_run(archive, id)?.read_record()?.manifest.facts)
        };
        settings.extend(changed_settings(&facts(good)?, &facts(bad)?));
    }
    let listed = || settings.iter().map(|[key, old, new]| format!("{key}: {old} -> {new}"));
    let mut all = settings.iter();
    match (all.next(), all.next()) {
        (Some([key, old, new]), None) => {
            let level = |value: &str| FactorLevel::from_scalar(value.into());
            Ok(Factor {
                kind: FactorKind::Sysctl,
                key: Some(key.clone()),
                workload: None,
                on: None,
                levels: vec![level(old), level(new)].into(),
            })
        }
        (first, _) => {
            let message = match first {
                None => "no setting differs between the last good and the first bad run".to_owned(),
                Some(_) => format!("several settings differ: {}", listed().collect::<Vec<_>>().join("; ")),
            };
            let hint = "say how to switch: --old 'git checkout v1 && make' --new 'git checkout v2 && make'";
            Err(UsageError::new(message, hint).into())
        }
    }
}

/// Name, value before and value after of every tunable that changed.
fn changed_settings(before: &Facts, after: &Facts) -> Vec<[String; 3]> {
    let tunables = before.iter().filter(|(key, _)| fact_table::SYSCTL.matches(key));
    let changed = tunables.filter_map(|(key, fact)| {
        let (old, new) = (fact.value.to_string(), after.stored(key)?.value.to_string());
        let name = key.split_once('.')?.1.to_owned();
        (old != new).then_some([name, old, new])
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tunables_that_changed_are_named_as_sysctl_knows_them() {
        let facts = |swappiness: i64, huge: &str, release: &str| {
            let mut facts = Facts::default();
            facts.add(fact_table::SYSCTL.key("vm.swappiness"), swappiness, "a test");
            facts.add(fact_table::SYSCTL.key("vm.nr_hugepages"), huge, "a test");
            facts.add(fact_table::KERNEL_RELEASE, release, "a test");
            facts
        };
        let changed = changed_settings(&facts(60, "0", "6.1"), &facts(10, "0", "6.2"));
        assert_eq!(changed, [["vm.swappiness", "60", "10"].map(str::to_owned)]);
        assert!(changed_settings(&facts(60, "0", "6.1"), &facts(60, "0", "6.2")).is_empty());
    }

    #[test]
    fn old_is_put_back_by_what_is_new() {
        let factor = factor_of_commands(["install 1", "install 2"]);
        let words: Vec<[&str; 2]> = factor
            .levels
            .iter()
            .map(|level| [&level.apply, &level.undo].map(|argv| argv.last().map_or("", String::as_str)))
            .collect();
        assert_eq!(words, [["install 1", "install 2"], ["install 2", "true"]]);
    }
}
