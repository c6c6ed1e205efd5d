//! `perflab prefetch learn`

use std::process::{Child, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use perflab_conduct::drop_caches;
use perflab_model::io_trace::PAGE;
use perflab_model::{Bytes, Nanos};
use perflab_observe::io::{IoTraceScope, IoTracer, resolve_files};
use perflab_prefetch::trace_builder::FilesInUse;
use perflab_prefetch::{StartupTrace, TraceStore, trace_store};
use perflab_present::comparison::OutputFormat;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::arguments::prefetch::LearnArgs;
use crate::context::App;
use crate::exit::UsageError;
use crate::quantities;
use crate::signals::with_stop_signal;
use crate::verbs::startup::never_cold_warning;

/// How often a program without tracing is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Runs a program, and remembers what it read.
pub fn learn_program(context: &App, store: &TraceStore, wanted: &LearnArgs) -> anyhow::Result<ExitCode> {
    let limit = quantities::parse_time_option("--for", &wanted.duration)?;
    let (word, _) =
        wanted.command.split_first().ok_or_else(|| UsageError::new("no command", "name one behind --"))?;
    let program = trace_store::find_program_path(word)?;
    let name = super::remembered_name(wanted.name.as_deref(), &wanted.command)?;
    let learning = |stop: &AtomicBool| {
        let _finely = wanted.fine.then(|| super::lower_read_ahead(context, &program)).transpose()?;
        learn_startup(context, wanted, limit, stop)
    };
    let (learnt, _) = with_stop_signal(learning)?;
    let (mut child, start) = learnt?;
    let status = child.wait()?;
    let exit = super::shell_exit_code(status);
    if !status.success() {
        context.note(format!("the program ended with {status}: its start is not remembered"));
        print_learn_json(context, &json!({ "program": name, "exit": exit, "trace": null }))?;
        return Ok(exit.into());
    }
    let start = start?;
    let mut learnt = json!({
        "program": name,
        "exit": exit,
        "source": start.source,
        "files": start.files.len(),
        "data": start.page_count() * PAGE,
        "metadata": start.metadata_page_count() * PAGE,
    });
    context.note(format!(
        "{}: {} of {} files and {} of metadata ({})",
        name.display(),
        Bytes(start.page_count() * PAGE),
        start.files.len(),
        Bytes(start.metadata_page_count() * PAGE),
        match start.source {
            perflab_prefetch::TraceSource::Traced => "traced",
            perflab_prefetch::TraceSource::Residency =>
                "from what is in memory: pages that others brought count too",
        }
    ));
    let path = store.add_startup(&name, start)?;
    context.note(format!("remembered in {}", path.display()));
    learnt["trace"] = json!(path);
    print_learn_json(context, &learnt)?;
    Ok(exit.into())
}

/// Everybody else reads it on standard error.
fn print_learn_json(context: &App, value: &serde_json::Value) -> anyhow::Result<()> {
    if context.format == OutputFormat::Json { context.print_json(value) } else { Ok(()) }
}

/// A program, and what it read.
type LearntStartup = (Child, Result<StartupTrace, perflab_prefetch::PrefetchError>);

/// Starts a program; what it read in the first `limit` of it. A wish to stop is passed on to it.
fn learn_startup(
    context: &App,
    wanted: &LearnArgs,
    limit: Nanos,
    stop: &AtomicBool,
) -> anyhow::Result<LearntStartup> {
    let tracer = IoTracer::start(IoTraceScope::Children);
    // Last of all: what is looked up between this and the start, the program does not read, and nobody learns.
    if wanted.cold {
        drop_caches(&context.root, 3)?;
    }
    let mut child = super::spawn_program(context, &wanted.command)?;
    let tracer = match tracer {
        Ok(tracer) => tracer,
        Err(error) => {
            context.note(format!("{error}"));
            let mut seen = FilesInUse::default();
            wait_for_program(&mut child, limit, stop, |child| seen.add_process_tree(child.id()))?;
            return Ok((child, seen.build_trace()));
        }
    };
    wait_for_program(&mut child, limit, stop, |_| ())?;
    let mut recording = tracer.stop()?;
    resolve_files(&mut recording);
    for missing in &recording.told.missing {
        context.note(format!("warning: this kernel lacks {missing}"));
    }
    if recording.told.lost > 0 {
        context.note(format!("warning: {} events were lost: the trace lacks pages", recording.told.lost));
    }
    if let Some(never_cold) = never_cold_warning(&recording).filter(|_| wanted.cold) {
        context.note(format!("{never_cold}: who maps it meanwhile keeps it out of the trace"));
    }
    Ok((child, perflab_prefetch::build_trace(&recording)))
}

/// Waits for the end of a program, or of a time; calls `meanwhile` all the time.
fn wait_for_program(
    child: &mut Child,
    limit: Nanos,
    stop: &AtomicBool,
    mut meanwhile: impl FnMut(&Child),
) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from(limit);
    while child.try_wait()?.is_none() && Instant::now() < end {
        if stop.load(Ordering::Relaxed) {
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
            return Ok(());
        }
        meanwhile(child);
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}
