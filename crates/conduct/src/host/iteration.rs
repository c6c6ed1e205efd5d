//! One iteration: a fresh scratch folder, the workload's process, its output made into samples.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::{Case, Nanos, Outcome, RunEventKind, Sample, Slot};
use perflab_workload::run::WatcherAbsence;
use perflab_workload::{ExecutionEnd, HostPaths, WorkloadDefinition, WorkloadExecution};

use perflab_observe::RealtimeGuard;

use super::station::SlotExecutor;
use super::{io, traces};
use crate::settings::remove_tree;
use crate::{ConductError, disk, emulated};

/// Runs one slot; its process is started when `begin` returns. `false` where it failed: recorded with its output, and the run goes on.
pub(super) fn run_iteration(
    station: &SlotExecutor<'_>,
    index: u32,
    slot: &Slot,
    case: &Case,
    begin: &dyn Fn() -> Option<RealtimeGuard>,
) -> Result<bool, ConductError> {
    let Some(definition) = station.host.catalogue.get(&case.uses) else { return Ok(false) };
    station.stream.send(RunEventKind::IterationBegan { slot: index })?;
    let begun = perflab_observe::monotonic_now();
    let (outcome, start, end) = match run_workload(station, (index, slot.warmup), case, definition, begin) {
        Ok((finished, absence)) => {
            send_output(station, index, &finished)?;
            traces::report_program_trace(station, index, slot, definition)?;
            let outcome = match absence {
                Some(reason) if is_end_uncertain(&finished) => Outcome::Failed { reason },
                absence => {
                    absence.into_iter().try_for_each(|reason| warn_of_absence(station, case, &reason))?;
                    determine_outcome(station, slot, case, definition, &finished)?
                }
            };
            (outcome, finished.start, finished.end)
        }
        Err(error) => (failed_outcome(&error), begun, perflab_observe::monotonic_now()),
    };
    let good = outcome == Outcome::Ok;
    station.stream.send(RunEventKind::IterationEnded { slot: index, outcome, start, end })?;
    Ok(good)
}

fn run_workload(
    station: &SlotExecutor<'_>,
    (index, warmup): (u32, bool),
    case: &Case,
    definition: &WorkloadDefinition,
    begin: &dyn Fn() -> Option<RealtimeGuard>,
) -> Result<(WorkloadExecution, Option<String>), ConductError> {
    let scratch = station.scratch.as_deref().map(|base| make_fresh_folder(base, index)).transpose()?;
    let kept = station.scratch.as_deref().map(make_kept_folder).transpose()?;
    let host = HostPaths { perflab: station.host.perflab.clone(), scratch: scratch.clone(), kept };
    let invocation = definition.build_invocation(&case.parameters, &station.scope, &host)?;
    let invocation = if station.host.runs_as_typed { invocation.as_typed() } else { invocation };
    let mut environment = vec![state_variable(station)];
    environment.extend(case.environment.iter().map(|(name, value)| (name.clone(), value.clone())));
    environment.extend(traces::trace_variable(station, index, definition)?);
    let limit = station.manifest.study.run.time_limit.0;
    let sampling = station.profiler.as_ref().map(|profiler| profiler.start(station.host)).transpose()?;
    let tracing = io::start_io_trace(station.manifest)?;
    let stop = station.stop.flag();
    let hurry = || end_disk_delays(station, case);
    let waited = perflab_observe::thread_wait_time();
    let finished =
        perflab_workload::execute_invocation_at(&invocation, &environment, limit, &stop, begin, hurry);
    let absence = finished.as_ref().ok().and_then(|finished| describe_absence(finished, waited));
    if let Some((profiler, recorder)) = station.profiler.as_ref().zip(sampling) {
        profiler.finish(recorder, index, &station.stream)?;
    }
    if let Some(tracer) = tracing {
        io::finish_io_trace(tracer, station, index, warmup)?;
    }
    if let Some(folder) = scratch {
        // What stays goes with the whole scratch directory at the end.
        let _ = remove_tree(&folder);
    }
    Ok((finished?, absence))
}

/// What happened while perflab itself did not run for more than a second; `waited` is what this thread had waited for a processor
/// before the execution.
fn describe_absence(finished: &WorkloadExecution, waited: Option<Nanos>) -> Option<String> {
    let WatcherAbsence { length, hid_the_end } = finished.absence?;
    let waited = perflab_observe::thread_wait_time().zip(waited).map(|(now, before)| now.since(before));
    let cause = perflab_observe::explain_absence(length, waited);
    let told = format!("{cause} for {length} meanwhile");
    Some(if hid_the_end { format!("{told}, so that how long it took is not known") } else { told })
}

/// Whether the times of an execution that ended by itself cannot be believed.
fn is_end_uncertain(finished: &WorkloadExecution) -> bool {
    finished.failure().is_none() && finished.absence.is_some_and(|absence| absence.hid_the_end)
}

/// An iteration whose end was seen in time counts: only its monitors and its output were not looked at.
fn warn_of_absence(station: &SlotExecutor<'_>, case: &Case, reason: &str) -> Result<(), ConductError> {
    station.stream.send_warning(
        format!("an iteration of {}: {reason}", case.label()),
        "its monitors have a gap, and what prints much was held up: leave it out where that matters",
    )
}

/// What is still to be written to an emulated disk holds up nobody who is to end.
fn end_disk_delays(station: &SlotExecutor<'_>, case: &Case) {
    let is_emulated =
        disk::resolve_disk(&station.manifest.study, case).is_some_and(|disk| disk.model.is_some());
    if let Some(scratch) = station.scratch.as_deref().filter(|_| is_emulated) {
        emulated::end_delays(&emulated::delay_switch(scratch));
    }
}

/// A perflab that the workload starts keeps its promises where they are found again, whatever its HOME and its folder are.
fn state_variable(station: &SlotExecutor<'_>) -> (String, String) {
    let place = &station.host.state;
    let place = std::path::absolute(place).unwrap_or_else(|_| place.clone());
    ("PERFLAB_STATE".into(), place.display().to_string())
}

fn make_fresh_folder(base: &Path, index: u32) -> Result<PathBuf, ConductError> {
    let path = base.join(format!("iteration-{index}"));
    fs::create_dir(&path).map_err(|source| ConductError::Scratch { path: path.clone(), source })?;
    Ok(path)
}

fn make_kept_folder(base: &Path) -> Result<PathBuf, ConductError> {
    let path = base.join("kept");
    fs::create_dir_all(&path).map_err(|source| ConductError::Scratch { path: path.clone(), source })?;
    Ok(path)
}

fn failed_outcome(error: &ConductError) -> Outcome {
    let cause = std::error::Error::source(error).map_or(String::new(), |cause| format!(": {cause}"));
    Outcome::Failed { reason: format!("{error}{cause}") }
}

fn send_output(
    station: &SlotExecutor<'_>,
    index: u32,
    finished: &WorkloadExecution,
) -> Result<(), ConductError> {
    for (name, output) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
        if !output.is_empty() {
            station.stream.send(RunEventKind::Output {
                slot: Some(index),
                name: name.into(),
                text: output.text(),
            })?;
        }
    }
    Ok(())
}

/// How the iteration went; a good one's samples are sent on the way, a warm-up's are not.
fn determine_outcome(
    station: &SlotExecutor<'_>,
    slot: &Slot,
    case: &Case,
    definition: &WorkloadDefinition,
    finished: &WorkloadExecution,
) -> Result<Outcome, ConductError> {
    if let Some(reason) = finished.failure() {
        return Ok(match finished.outcome {
            ExecutionEnd::TimedOut => Outcome::TimedOut { limit: station.manifest.study.run.time_limit.0 },
            ExecutionEnd::Interrupted => Outcome::Interrupted,
            ExecutionEnd::Exit { .. } | ExecutionEnd::Signal { .. } => Outcome::Failed { reason },
        });
    }
    let samples = match parse_samples(case, slot, definition, finished, station) {
        Ok(samples) => samples,
        Err(error) => return Ok(Outcome::Failed { reason: error.to_string() }),
    };
    for sample in samples.into_iter().filter(|_| !slot.warmup) {
        station.stream.send(RunEventKind::Sample(sample))?;
    }
    Ok(Outcome::Ok)
}

fn parse_samples(
    case: &Case,
    slot: &Slot,
    definition: &WorkloadDefinition,
    finished: &WorkloadExecution,
    station: &SlotExecutor<'_>,
) -> Result<Vec<Sample>, perflab_workload::MetricParseError> {
    let values =
        definition.parse_metrics(&finished.stdout.text(), &finished.stderr.text(), finished.wall_time())?;
    let declared = station.manifest.plan.metrics.get(&case.uses);
    let primary = |name: &str| {
        declared
            .and_then(|all| all.iter().find(|metric| metric.name == name))
            .is_some_and(|metric| metric.primary)
    };
    let sample = |measured: perflab_workload::MetricValue| Sample {
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
