//! `perflab prefetch learn`

use std::process::{Child, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use perflab_conduct::settings::drop_caches;
use perflab_model::io::PAGE;
use perflab_model::{Bytes, Nanos};
use perflab_observe::io::{IoTracer, Whose, identify};
use perflab_prefetch::residency::Seen;
use perflab_prefetch::{Start, Store, store};
use perflab_present::table::Format;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::arguments::prefetch::Learn;
use crate::context::Context;
use crate::exit::Usage;
use crate::quantities;
use crate::signals::listening;
use crate::verbs::startup::never_cold;

/// How often a program without tracing is looked at.
const GLANCE: Duration = Duration::from_millis(5);

/// Runs a program, and remembers what it read.
pub fn learn(context: &Context, store: &Store, wanted: &Learn) -> anyhow::Result<ExitCode> {
    let limit = quantities::time("--for", &wanted.duration)?;
    let (word, _) =
        wanted.command.split_first().ok_or_else(|| Usage::new("no command", "name one behind --"))?;
    let program = store::program(word)?;
    let name = super::name(wanted.name.as_deref(), &wanted.command)?;
    let learning = |stop: &AtomicBool| {
        let _finely = wanted.fine.then(|| super::finely(context, &program)).transpose()?;
        learn_once(context, wanted, limit, stop)
    };
    let (learnt, _) = listening(learning)?;
    let (mut child, start) = learnt?;
    let status = child.wait()?;
    let exit = super::code(status);
    if !status.success() {
        context.say(format!("the program ended with {status}: its start is not remembered"));
        document(context, &json!({ "program": name, "exit": exit, "trace": null }))?;
        return Ok(exit.into());
    }
    let start = start?;
    let mut learnt = json!({
        "program": name,
        "exit": exit,
        "source": start.source,
        "files": start.files.len(),
        "data": start.pages() * PAGE,
        "metadata": start.metadata() * PAGE,
    });
    context.say(format!(
        "{}: {} of {} files and {} of metadata ({})",
        name.display(),
        Bytes(start.pages() * PAGE),
        start.files.len(),
        Bytes(start.metadata() * PAGE),
        match start.source {
            perflab_prefetch::Source::Traced => "traced",
            perflab_prefetch::Source::Residency =>
                "from what is in memory: pages that others brought count too",
        }
    ));
    let path = store.add(&name, start)?;
    context.say(format!("remembered in {}", path.display()));
    learnt["trace"] = json!(path);
    document(context, &learnt)?;
    Ok(exit.into())
}

/// Everybody else reads it on standard error.
fn document(context: &Context, value: &serde_json::Value) -> anyhow::Result<()> {
    if context.format == Format::Json { context.document(value) } else { Ok(()) }
}

/// A program, and what it read.
type Learnt = (Child, Result<Start, perflab_prefetch::PrefetchError>);

/// Starts a program; what it read in the first `limit` of it. A wish to stop is passed on to it.
fn learn_once(context: &Context, wanted: &Learn, limit: Nanos, stop: &AtomicBool) -> anyhow::Result<Learnt> {
    let tracer = IoTracer::start(Whose::Children);
    // Last of all: what is looked up between this and the start, the program does not read, and nobody learns.
    if wanted.cold {
        drop_caches(&context.root, 3)?;
    }
    let mut child = super::spawn(context, &wanted.command)?;
    let tracer = match tracer {
        Ok(tracer) => tracer,
        Err(error) => {
            context.say(format!("{error}"));
            let mut seen = Seen::default();
            watch(&mut child, limit, stop, |child| seen.look(child.id()))?;
            return Ok((child, seen.start()));
        }
    };
    watch(&mut child, limit, stop, |_| ())?;
    let mut recording = tracer.stop()?;
    identify(&mut recording);
    for missing in &recording.told.missing {
        context.say(format!("warning: this kernel lacks {missing}"));
    }
    if recording.told.lost > 0 {
        context.say(format!("warning: {} events were lost: the trace lacks pages", recording.told.lost));
    }
    if let Some(never_cold) = never_cold(&recording).filter(|_| wanted.cold) {
        context.say(format!("{never_cold}: who maps it meanwhile keeps it out of the trace"));
    }
    Ok((child, perflab_prefetch::learn(&recording)))
}

/// Waits for the end of a program, or of a time; calls `meanwhile` all the time.
fn watch(
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
        std::thread::sleep(GLANCE);
    }
    Ok(())
}
