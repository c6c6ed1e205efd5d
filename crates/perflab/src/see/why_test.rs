//! `perflab why --test`: the experiment that decides whether a suspect is the cause. Both sides are measured once more, in turn,
//! under each level of a setting that the suspect acts through.

use perflab_analyze::why::{Explanation, Suspect, SuspectTest};
use perflab_analyze::{AnalysisOptions, Comparison, ComparisonSide, VerdictRow, compare_levels};
use perflab_conduct::RunPermissions;
use perflab_model::study::{Factor, FactorLevel, SlotOrder, TomlSource};
use perflab_model::{Manifest, Nanos, RunStatus, Study};

use crate::app::App;
use crate::failure::{Failure, UsageError};
use crate::measure::run::{self, RunArgs};
use crate::measure::varied_factor::VariedFactor;

/// The label of runs that test a suspect: they are no part of a history.
pub const SUSPECT_TEST: &str = "suspect-test";

/// Tests the first suspect that a setting switches, within a time.
///
/// # Errors
/// None can be switched, the sides are no levels of one study, or the test takes longer than `limit`.
pub fn test_suspect(
    context: &App,
    (found, row): (&Explanation, &VerdictRow),
    (comparison, sides): (&Comparison, &[ComparisonSide]),
    options: &AnalysisOptions,
    limit: Nanos,
) -> Result<SuspectTest, Failure> {
    let (suspect, varied) = find_switched_suspect(found)?;
    let by = comparison.by.as_deref().ok_or_else(|| {
        let message = "`--test` measures both sides again, and these are runs of their own";
        UsageError::new(message, format!("type the test of the suspect: {}", suspect.test))
    })?;
    let newest = sides.iter().flat_map(|side| &side.runs).next_back();
    let newest = newest
        .map(|run| &run.manifest)
        .ok_or_else(|| UsageError::new("no run of the sides can be read", "see `perflab list`"))?;
    let mut study = tested_study(newest, row, (by, &comparison.baseline));
    varied.add_to(&mut study)?;
    let source = TomlSource::new(newest.study_file.as_str(), newest.study_text.clone());
    let args =
        RunArgs { label: Some(SUSPECT_TEST.into()), no_report: true, ..RunArgs::of_study(&source.file) };
    let (manifest, catalogue) = run::plan_manifest(context, &source, study, &args)?;
    let expected = expected_time(newest, &manifest);
    if expected > limit {
        let message = format!("the test of {} takes about {expected}, longer than {limit}", suspect.cause);
        return Err(UsageError::new(
            message,
            format!("give it as much: --test {}s", expected.0.div_ceil(1_000_000_000)),
        )
        .into());
    }
    run::undo_leftovers(context);
    context.note(format!(
        "{} is tested by --vary {}, which takes about {expected}",
        suspect.cause,
        varied.name()
    ));
    let (status, tested) = run::execute_manifest(context, &manifest, catalogue, &RunPermissions::default())?;
    if !matches!(status, RunStatus::Finished | RunStatus::Failed) {
        let message = format!("the run that was to test was stopped: {}", tested.short_id());
        return Err(UsageError::new(message, "`perflab why --test` measures again").into());
    }
    let side = ComparisonSide { name: tested.short_id().to_owned(), runs: vec![tested.read_record()?] };
    let compared = compare_levels(&side, by, options)?;
    Ok(SuspectTest::new(suspect, row, (varied.name(), tested.short_id()), &compared))
}

/// The first suspect whose test varies something, and what.
fn find_switched_suspect(found: &Explanation) -> Result<(&Suspect, VariedFactor), UsageError> {
    let switched = |suspect: &Suspect| -> Option<VariedFactor> {
        let words = shlex::split(&suspect.test)?;
        let varied = words.iter().skip_while(|word| *word != "--vary").nth(1)?;
        varied.parse().ok()
    };
    let first = found.suspects.iter().find_map(|suspect| Some((suspect, switched(suspect)?)));
    first.ok_or_else(|| {
        let message = match found.suspects.first() {
            None => "there is no suspect to test".to_owned(),
            Some(first) => {
                format!("no suspect is switched by a setting; {} is tested otherwise", first.cause)
            }
        };
        let hint = found.suspects.first().map_or_else(
            || "see what `perflab why` advises to record".to_owned(),
            |first| format!("type {}", first.test),
        );
        UsageError::new(message, hint)
    })
}

/// The study of a run, of the row's case and its two sides alone, taken in turns.
fn tested_study(newest: &Manifest, row: &VerdictRow, (by, baseline): (&str, &str)) -> Study {
    let mut study = newest.study.clone();
    study.workload.retain(|name, _| *name == row.workload);
    study.factor.retain(|_, factor| factor.workload.as_deref().is_none_or(|name| name == row.workload));
    for (name, factor) in &mut study.factor {
        let is_wanted = |level: &FactorLevel| match name == by {
            true => level.name == baseline || level.name == row.candidate_name,
            false => row.point.get(name).is_none_or(|wanted| *wanted == level.name),
        };
        retain_levels(factor, is_wanted);
    }
    study.run.order = SlotOrder::Randomised;
    // What is random was drawn for another run.
    study.run.seed = None;
    (study.run.boots, study.run.layout, study.run.boot_each_case) = (1, 1, false);
    study
}

fn retain_levels(factor: &mut Factor, is_wanted: impl Fn(&FactorLevel) -> bool) {
    let kept: Vec<FactorLevel> = factor.levels.iter().filter(|level| is_wanted(level)).cloned().collect();
    if !kept.is_empty() {
        factor.levels = kept.into();
    }
}

/// How long a plan takes, by how long an earlier one took.
fn expected_time(earlier: &Manifest, planned: &Manifest) -> Nanos {
    let slots = |manifest: &Manifest| manifest.plan.slots.len().max(1) as f64;
    Nanos((earlier.overhead.wall.0 as f64 / slots(earlier) * slots(planned)) as u64)
}
