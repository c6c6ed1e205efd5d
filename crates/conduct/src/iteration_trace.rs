//! What is recorded inside an iteration: call stacks, I/O, the program's own trace.
//!
//! Stacks are named and files looked up after the iteration: neither may be part of what is measured. Recordings
//! are files beside the stream of events, which they are too large for. A program's own trace lies outside the
//! scratch directory, which goes before a consumer has seen the event; the recorder takes the file away.

use std::cell::RefCell;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use perflab_model::io_trace::IO_TRACER;
use perflab_model::operation::OPERATION_TRACER;
use perflab_model::study::{ProfileScope, ProfileSpec, SamplingSide};
use perflab_model::{Manifest, Refusal, RunEventKind, Unit};
use perflab_observe::io::{IoTraceScope, IoTracer, resolve_files};
use perflab_observe::profiler::{ProfileError, SamplingScope, StackSampler};
use perflab_stacks::LiveProfile;

use crate::error::ConductError;
use crate::run_context::{EventSender, LocalMachine};

/// The sampler of a run: its names hold for all iterations.
pub(crate) struct IterationProfiler {
    rules: ProfileSpec,
    live: RefCell<LiveProfile>,
}

impl IterationProfiler {
    /// The sampler that a study asks for, if any.
    pub(crate) fn for_study(manifest: &Manifest) -> Result<Option<IterationProfiler>, ConductError> {
        let make = |rules: &ProfileSpec| {
            let live = LiveProfile::new(&rules.symbols).map_err(ProfileError::from)?;
            Ok(IterationProfiler { rules: rules.clone(), live: RefCell::new(live) })
        };
        let rules = manifest.study.profile.as_ref().filter(|rules| rules.from == SamplingSide::Inside);
        rules.map(make).transpose()
    }

    /// Begins to sample.
    pub(crate) fn start(&self, host: &LocalMachine) -> Result<StackSampler, ConductError> {
        Ok(StackSampler::start(
            &host.root,
            profile_scope(&self.rules),
            self.rules.sampling_frequency().into(),
        )?)
    }

    /// Ends sampling, names the stacks and sends them.
    pub(crate) fn finish(
        &self,
        recorder: StackSampler,
        slot: u32,
        stream: &EventSender,
    ) -> Result<(), ConductError> {
        let event = recorder.event();
        let (recording, cost) = recorder.stop()?;
        if recording.lost > 0 {
            let kept: usize = recording.buffers.iter().map(Vec::len).sum();
            let message = format!(
                "{} samples were lost at the end: memory was kept for {} MiB of them",
                recording.lost,
                kept >> 20
            );
            stream.send_warning(message, "sample less often, or for less time")?;
        }
        let (batch, mut about) = self.live.borrow_mut().convert(&recording, slot);
        about.event = event.name.into();
        about.unit = Unit::new(event.unit);
        about.hides = event.blind_spot();
        about.frequency = Some(self.rules.sampling_frequency().into());
        about.cost = cost;
        stream.send(RunEventKind::Stacks(Box::new(batch)))?;
        stream.send(RunEventKind::Profiled(Box::new(about)))
    }
}

fn profile_scope(rules: &ProfileSpec) -> SamplingScope {
    match (rules.pid, rules.scope) {
        (Some(pid), _) => SamplingScope::Process(pid),
        (None, ProfileScope::System) => SamplingScope::System,
        (None, ProfileScope::Workload) => SamplingScope::Children,
    }
}

/// What is needed of this kernel's symbols to sample it from outside, where the study wants that.
pub(crate) fn outside_symbols(manifest: &Manifest, host: &LocalMachine) -> Option<String> {
    let rules = manifest.study.profile.as_ref()?;
    let text = || std::fs::read_to_string(host.root.path("/proc/kallsyms")).unwrap_or_default();
    (rules.from == SamplingSide::Outside).then(|| perflab_stacks::select_kallsyms(&text()))
}

/// Why the profile that a study asks for cannot be taken.
pub(crate) fn check_profile(manifest: &Manifest, host: &LocalMachine) -> Option<Refusal> {
    let rules = manifest.study.profile.as_ref()?;
    if rules.from == SamplingSide::Outside {
        let error = perflab_observe::profiler::read_kernel_symbols(&host.root).err()?;
        return Some(Refusal { what: format!("[profile]: {error}"), hint: String::new() });
    }
    let checked = perflab_observe::profiler::check_stack_sampling(
        &host.root,
        profile_scope(rules),
        rules.sampling_frequency().into(),
    );
    checked.err().map(|error| Refusal { what: format!("[profile]: {error}"), hint: String::new() })
}

/// Begins to trace, where the study wants it. The calling thread must be the one that starts the workload.
pub(crate) fn start_io_trace(manifest: &Manifest) -> Result<Option<IoTracer>, ConductError> {
    let requested = manifest.study.io.as_ref().map(|rules| io_trace_scope(rules.scope));
    Ok(requested.map(IoTracer::start).transpose()?)
}

fn io_trace_scope(scope: ProfileScope) -> IoTraceScope {
    match scope {
        ProfileScope::System => IoTraceScope::All,
        ProfileScope::Workload => IoTraceScope::Children,
    }
}

/// Ends tracing, finds the files, and reports where the recording lies. That of a warm-up is dropped.
pub(crate) fn finish_io_trace(
    tracer: IoTracer,
    file: PathBuf,
    (index, warmup): (u32, bool),
    stream: &EventSender,
) -> Result<(), ConductError> {
    let mut recording = tracer.stop()?;
    if warmup {
        return Ok(());
    }
    resolve_files(&mut recording);
    for missing in &recording.summary.missing {
        stream.send_warning(format!("this kernel lacks {missing}"), "a newer kernel has the event")?;
    }
    if recording.summary.lost > 0 {
        let message = format!("{} events of I/O were lost", recording.summary.lost);
        stream.send_warning(message, "trace less at a time: a command instead of the whole system")?;
    }
    let failed = |source| ConductError::Scratch { path: file.clone(), source };
    let mut out = std::io::BufWriter::new(std::fs::File::create_new(&file).map_err(failed)?);
    serde_json::to_writer(&mut out, &recording).map_err(|error| failed(error.into()))?;
    out.flush().map_err(failed)?;
    stream.send(RunEventKind::Traced { slot: index, tracer: IO_TRACER.into(), file })
}

/// Why the I/O that a study asks for cannot be traced.
pub(crate) fn check_io_trace(manifest: &Manifest) -> Option<Refusal> {
    manifest.study.io.as_ref()?;
    let checked = perflab_observe::io::check_io_tracing();
    checked.err().map(|error| Refusal { what: format!("[io]: {error}"), hint: String::new() })
}

/// The variable that names the workload's trace file.
pub(crate) fn trace_variable(file: &Path) -> (String, String) {
    (perflab_workload::TRACE_VARIABLE.to_owned(), file.to_string_lossy().into_owned())
}

/// Reports that a trace was written, if one was. That of a warm-up is dropped.
pub(crate) fn report_program_trace(
    file: PathBuf,
    (index, warmup): (u32, bool),
    stream: &EventSender,
) -> Result<(), ConductError> {
    if !file.exists() {
        return Ok(());
    }
    if warmup {
        // One that stays costs room and nothing else.
        let _ = std::fs::remove_file(file);
        return Ok(());
    }
    stream.send(RunEventKind::Traced { slot: index, tracer: OPERATION_TRACER.into(), file })
}
