//! One iteration: a fresh scratch folder, the workload's process, its output made into samples.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::{Case, Nanos, Outcome, Sample, Slot, What};
use perflab_workload::run::Absence;
use perflab_workload::{Definition, Ending, Finished, HostPaths};

use perflab_observe::RealTime;

use super::station::Station;
use super::{io, traces};
use crate::settings::remove_all;
use crate::{ConductError, disk, emulated};

/// Runs one slot; its process is started when `begin` returns. `false` where it failed: recorded with its output, and the run goes on.
pub(super) fn run(
    station: &Station<'_>,
    index: u32,
    slot: &Slot,
    case: &Case,
    begin: &dyn Fn() -> Option<RealTime>,
) -> Result<bool, ConductError> {
    let Some(definition) = station.host.catalogue.get(&case.uses) else { return Ok(false) };
    station.stream.send(What::IterationBegan { slot: index })?;
    let begun = perflab_observe::monotonic_now();
    let (outcome, start, end) = match attempt(station, (index, slot.warmup), case, definition, begin) {
        Ok((finished, absence)) => {
            tell_output(station, index, &finished)?;
            traces::tell(station, index, slot, definition)?;
            let outcome = match absence {
                Some(reason) if hid_its_end(&finished) => Outcome::Failed { reason },
                absence => {
                    absence.into_iter().try_for_each(|reason| warn_of_absence(station, case, &reason))?;
                    judged(station, slot, case, definition, &finished)?
                }
            };
            (outcome, finished.start, finished.end)
        }
        Err(error) => (failed(&error), begun, perflab_observe::monotonic_now()),
    };
    let good = outcome == Outcome::Ok;
    station.stream.send(What::IterationEnded { slot: index, outcome, start, end })?;
    Ok(good)
}

fn attempt(
    station: &Station<'_>,
    (index, warmup): (u32, bool),
    case: &Case,
    definition: &Definition,
    begin: &dyn Fn() -> Option<RealTime>,
) -> Result<(Finished, Option<String>), ConductError> {
    let scratch = station.scratch.as_deref().map(|base| fresh_folder(base, index)).transpose()?;
    let kept = station.scratch.as_deref().map(kept_folder).transpose()?;
    let host = HostPaths { perflab: station.host.perflab.clone(), scratch: scratch.clone(), kept };
    let invocation = definition.invocation(&case.parameters, &station.scope, &host)?;
    let invocation = if station.host.runs_as_typed { invocation.as_typed() } else { invocation };
    let mut environment = vec![state(station)];
    environment.extend(case.environment.iter().map(|(name, value)| (name.clone(), value.clone())));
    environment.extend(traces::variable(station, index, definition)?);
    let limit = station.manifest.study.run.time_limit.0;
    let sampling = station.profiler.as_ref().map(|profiler| profiler.start(station.host)).transpose()?;
    let tracing = io::start(station.manifest)?;
    let stop = station.stop.flag();
    let hurry = || hurry(station, case);
    let waited = perflab_observe::own_thread_wait();
    let finished = perflab_workload::run_when(&invocation, &environment, limit, &stop, begin, hurry);
    let absence = finished.as_ref().ok().and_then(|finished| absence(finished, waited));
    if let Some((profiler, recorder)) = station.profiler.as_ref().zip(sampling) {
        profiler.finish(recorder, index, &station.stream)?;
    }
    if let Some(tracer) = tracing {
        io::finish(tracer, station, index, warmup)?;
    }
    if let Some(folder) = scratch {
        // What stays goes with the whole scratch directory at the end.
        let _ = remove_all(&folder);
    }
    Ok((finished?, absence))
}

/// What happened while perflab itself did not run for more than a second; `waited` is what this thread had waited for a processor
/// before the execution.
fn absence(finished: &Finished, waited: Option<Nanos>) -> Option<String> {
    let Absence { length, hid_the_end } = finished.absence?;
    let waited = perflab_observe::own_thread_wait().zip(waited).map(|(now, before)| now.since(before));
    let cause = perflab_observe::absence_cause(length, waited);
    let told = format!("{cause} for {length} meanwhile");
    Some(if hid_the_end { format!("{told}, so that how long it took is not known") } else { told })
}

/// Whether the times of an execution that ended by itself cannot be believed.
fn hid_its_end(finished: &Finished) -> bool {
    finished.failure().is_none() && finished.absence.is_some_and(|absence| absence.hid_the_end)
}

/// An iteration whose end was seen in time counts: only its monitors and its output were not looked at.
fn warn_of_absence(station: &Station<'_>, case: &Case, reason: &str) -> Result<(), ConductError> {
    station.stream.warn(
        format!("an iteration of {}: {reason}", case.label()),
        "its monitors have a gap, and what prints much was held up: leave it out where that matters",
    )
}

/// What is still to be written to an emulated disk holds up nobody who is to end.
fn hurry(station: &Station<'_>, case: &Case) {
    let is_emulated = disk::wanted(&station.manifest.study, case).is_some_and(|disk| disk.model.is_some());
    if let Some(scratch) = station.scratch.as_deref().filter(|_| is_emulated) {
        emulated::hurry(&emulated::switch_of(scratch));
    }
}

/// A perflab that the workload starts keeps its promises where they are found again, whatever its HOME and its folder are.
fn state(station: &Station<'_>) -> (String, String) {
    let place = &station.host.state;
    let place = std::path::absolute(place).unwrap_or_else(|_| place.clone());
    ("PERFLAB_STATE".into(), place.display().to_string())
}

fn fresh_folder(base: &Path, index: u32) -> Result<PathBuf, ConductError> {
    let path = base.join(format!("iteration-{index}"));
    fs::create_dir(&path).map_err(|source| ConductError::Scratch { path: path.clone(), source })?;
    Ok(path)
}

fn kept_folder(base: &Path) -> Result<PathBuf, ConductError> {
    let path = base.join("kept");
    fs::create_dir_all(&path).map_err(|source| ConductError::Scratch { path: path.clone(), source })?;
    Ok(path)
}

fn failed(error: &ConductError) -> Outcome {
    let cause = std::error::Error::source(error).map_or(String::new(), |cause| format!(": {cause}"));
    Outcome::Failed { reason: format!("{error}{cause}") }
}

fn tell_output(station: &Station<'_>, index: u32, finished: &Finished) -> Result<(), ConductError> {
    for (name, output) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
        if !output.is_empty() {
            station.stream.send(What::Output {
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
    station: &Station<'_>,
    slot: &Slot,
    case: &Case,
    definition: &Definition,
    finished: &Finished,
) -> Result<Outcome, ConductError> {
    if let Some(reason) = finished.failure() {
        return Ok(match finished.outcome {
            Ending::TimedOut => Outcome::TimedOut { limit: station.manifest.study.run.time_limit.0 },
            Ending::Interrupted => Outcome::Interrupted,
            Ending::Exit { .. } | Ending::Signal { .. } => Outcome::Failed { reason },
        });
    }
    let samples = match measured(case, slot, definition, finished, station) {
        Ok(samples) => samples,
        Err(error) => return Ok(Outcome::Failed { reason: error.to_string() }),
    };
    for sample in samples.into_iter().filter(|_| !slot.warmup) {
        station.stream.send(What::Sample(sample))?;
    }
    Ok(Outcome::Ok)
}

fn measured(
    case: &Case,
    slot: &Slot,
    definition: &Definition,
    finished: &Finished,
    station: &Station<'_>,
) -> Result<Vec<Sample>, perflab_workload::ParseError> {
    let values = definition.parse(&finished.stdout.text(), &finished.stderr.text(), finished.wall())?;
    let declared = station.manifest.plan.metrics.get(&case.uses);
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
        metric: measured.metric.name.into(),
        value: measured.value,
        unit: measured.metric.unit,
        direction: measured.metric.direction,
        start: finished.start,
        end: finished.end,
    };
    Ok(values.into_iter().map(sample).collect())
}
