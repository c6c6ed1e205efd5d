//! One iteration: a fresh scratch folder, the workload's process, its output made into samples.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::{Case, Outcome, Sample, Slot, What};
use perflab_workload::{Definition, Ending, Finished, HostPaths};

use super::session::Session;
use crate::ConductError;

/// Runs one slot. `false` where it failed: recorded with its output, and the run goes on.
pub(super) fn run(session: &Session<'_>, index: u32, slot: &Slot, case: &Case) -> Result<bool, ConductError> {
    let Some(definition) = session.host.catalogue.get(&case.uses) else { return Ok(false) };
    session.stream.send(What::IterationBegan { slot: index })?;
    let begun = perflab_observe::monotonic_now();
    let (outcome, start, end) = match attempt(session, index, case, definition) {
        Ok(finished) => {
            tell_output(session, index, &finished)?;
            let outcome = judged(session, slot, case, definition, &finished)?;
            (outcome, finished.start, finished.end)
        }
        Err(error) => (failed(&error), begun, perflab_observe::monotonic_now()),
    };
    let good = outcome == Outcome::Ok;
    session.stream.send(What::IterationEnded { slot: index, outcome, start, end })?;
    Ok(good)
}

fn attempt(
    session: &Session<'_>,
    index: u32,
    case: &Case,
    definition: &Definition,
) -> Result<Finished, ConductError> {
    let scratch = session.scratch.as_deref().map(|base| fresh_folder(base, index)).transpose()?;
    let host = HostPaths { perflab: session.host.perflab.clone(), scratch: scratch.clone() };
    let invocation = definition.invocation(&case.parameters, &session.scope, &host)?;
    let environment: Vec<(String, String)> =
        case.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let limit = session.manifest.study.run.time_limit.0;
    let finished = perflab_workload::run(&invocation, &environment, limit, &session.stop.flag());
    if let Some(folder) = scratch {
        // What stays goes with the whole scratch directory at the end.
        let _ = fs::remove_dir_all(folder);
    }
    Ok(finished?)
}

fn fresh_folder(base: &Path, index: u32) -> Result<PathBuf, ConductError> {
    let path = base.join(format!("iteration-{index}"));
    fs::create_dir(&path).map_err(|source| ConductError::Scratch { path: path.clone(), source })?;
    Ok(path)
}

fn failed(error: &ConductError) -> Outcome {
    let cause = std::error::Error::source(error).map_or(String::new(), |cause| format!(": {cause}"));
    Outcome::Failed { reason: format!("{error}{cause}") }
}

fn tell_output(session: &Session<'_>, index: u32, finished: &Finished) -> Result<(), ConductError> {
    for (name, output) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
        if !output.is_empty() {
            session.stream.send(What::Output {
                slot: Some(index),
                name: name.into(),
                text: output.text(),
            })?;
        }
    }
    Ok(())
}

/// How the iteration went; a good one's samples are sent on the way, a warm-up's are not.
fn judged(
    session: &Session<'_>,
    slot: &Slot,
    case: &Case,
    definition: &Definition,
    finished: &Finished,
) -> Result<Outcome, ConductError> {
    if let Some(reason) = finished.failure() {
        return Ok(match finished.outcome {
            Ending::TimedOut => Outcome::TimedOut { limit: session.manifest.study.run.time_limit.0 },
            Ending::Interrupted => Outcome::Interrupted,
            Ending::Exit { .. } | Ending::Signal { .. } => Outcome::Failed { reason },
        });
    }
    let samples = match measured(case, slot, definition, finished, session) {
        Ok(samples) => samples,
        Err(error) => return Ok(Outcome::Failed { reason: error.to_string() }),
    };
    for sample in samples.into_iter().filter(|_| !slot.warmup) {
        session.stream.send(What::Sample(sample))?;
    }
    Ok(Outcome::Ok)
}

fn measured(
    case: &Case,
    slot: &Slot,
    definition: &Definition,
    finished: &Finished,
    session: &Session<'_>,
) -> Result<Vec<Sample>, perflab_workload::ParseError> {
    let values = definition.parse(&finished.stdout.text(), &finished.stderr.text(), finished.wall())?;
    let declared = session.manifest.plan.metrics.get(&case.uses);
    let primary = |name: &str| {
        declared
            .and_then(|all| all.iter().find(|metric| metric.name == name))
            .is_some_and(|metric| metric.primary)
    };
    let sample = |measured: perflab_workload::Measured| Sample {
        boot: 0,
        target: None,
        case: slot.case,
        iteration: slot.iteration,
        primary: primary(&measured.metric.name),
        metric: measured.metric.name,
        value: measured.value,
        unit: measured.metric.unit,
        direction: measured.metric.direction,
        start: finished.start,
        end: finished.end,
    };
    Ok(values.into_iter().map(sample).collect())
}
