//! I/O traced while an iteration runs. Names of files are looked up when it is over: asking must not be part of what is
//! measured. The recording is a file beside the stream, which is too much for it.

use std::io::Write as _;

use perflab_model::study::ProfileScope;
use perflab_model::{Manifest, RunEventKind};
use perflab_observe::io::{IoTraceScope, IoTracer, resolve_files};

use super::station::SlotExecutor;
use crate::{ConductError, Refusal};

/// The name of the tracer, and of its table.
const TRACER: &str = "io";

/// Begins to trace, where the study wants it. The calling thread must be the one that starts the workload.
pub(super) fn start_io_trace(manifest: &Manifest) -> Result<Option<IoTracer>, ConductError> {
    let wanted = manifest.study.io.as_ref().map(|rules| io_trace_scope(rules.scope));
    Ok(wanted.map(IoTracer::start).transpose()?)
}

fn io_trace_scope(scope: ProfileScope) -> IoTraceScope {
    match scope {
        ProfileScope::System => IoTraceScope::All,
        ProfileScope::Workload => IoTraceScope::Children,
    }
}

/// Ends tracing, finds the files, and says where the recording lies. A warm-up's is nobody's.
pub(super) fn finish_io_trace(
    tracer: IoTracer,
    station: &SlotExecutor<'_>,
    index: u32,
    warmup: bool,
) -> Result<(), ConductError> {
    let mut recording = tracer.stop()?;
    if warmup {
        return Ok(());
    }
    resolve_files(&mut recording);
    for missing in &recording.told.missing {
        station
            .stream
            .send_warning(format!("this kernel lacks {missing}"), "a newer kernel has the event")?;
    }
    if recording.told.lost > 0 {
        let message = format!("{} events of I/O were lost", recording.told.lost);
        station
            .stream
            .send_warning(message, "trace less at a time: a command instead of the whole system")?;
    }
    let file = station.tracer_path(index, TRACER)?;
    let failed = |source| ConductError::Scratch { path: file.clone(), source };
    let mut out = std::io::BufWriter::new(std::fs::File::create_new(&file).map_err(failed)?);
    serde_json::to_writer(&mut out, &recording).map_err(|error| failed(error.into()))?;
    out.flush().map_err(failed)?;
    station.stream.send(RunEventKind::Traced { slot: index, tracer: TRACER.into(), file })
}

/// Why the I/O that a study asks for cannot be traced.
pub(super) fn check_io_trace(manifest: &Manifest) -> Option<Refusal> {
    manifest.study.io.as_ref()?;
    let checked = perflab_observe::io::check_io_tracing();
    checked.err().map(|error| Refusal { what: format!("[io]: {error}"), hint: String::new() })
}
