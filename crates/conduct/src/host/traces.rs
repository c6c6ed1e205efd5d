//! Traces that workloads write of themselves: where they may, and what becomes of them. The file lies outside the
//! scratch directory, which goes before a consumer has seen the event; whoever records takes it away.

use std::path::PathBuf;

use perflab_model::{RunEventKind, Slot};
use perflab_workload::WorkloadDefinition;

use super::station::SlotExecutor;
use crate::ConductError;

/// The variable that tells the workload where to write, for one that does.
pub(super) fn trace_variable(
    station: &SlotExecutor<'_>,
    index: u32,
    definition: &WorkloadDefinition,
) -> Result<Option<(String, String)>, ConductError> {
    if !definition.traced {
        return Ok(None);
    }
    let file = program_trace_path(station, index)?.to_string_lossy().into_owned();
    Ok(Some((perflab_workload::TRACE_VARIABLE.to_owned(), file)))
}

fn program_trace_path(station: &SlotExecutor<'_>, index: u32) -> Result<PathBuf, ConductError> {
    station.tracer_path(index, "optrace")
}

/// Says that a trace was written. A warm-up's is nobody's.
pub(super) fn report_program_trace(
    station: &SlotExecutor<'_>,
    index: u32,
    slot: &Slot,
    definition: &WorkloadDefinition,
) -> Result<(), ConductError> {
    if !definition.traced {
        return Ok(());
    }
    let file = program_trace_path(station, index)?;
    if !file.exists() {
        return Ok(());
    }
    if slot.warmup {
        // One that stays costs room and nothing else.
        let _ = std::fs::remove_file(file);
        return Ok(());
    }
    station.stream.send(RunEventKind::Traced { slot: index, tracer: "optrace".into(), file })
}
