//! `perflab prefetch learn`

use std::ffi::OsString;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use perflab_conduct::settings::drop_caches;
use perflab_model::io::PAGE;
use perflab_model::{Bytes, Nanos};
use perflab_observe::io::{IoTracer, Whose, identify};
use perflab_prefetch::residency::Seen;
use perflab_prefetch::{Start, Store, store};

use crate::arguments::prefetch::Learn;
use crate::context::Context;
use crate::exit::Usage;
use crate::quantities;

/// How often a program without tracing is looked at.
const GLANCE: Duration = Duration::from_millis(5);

/// Runs a program, and remembers what it read.
pub fn learn(context: &Context, store: &Store, wanted: &Learn) -> anyhow::Result<ExitCode> {
    let limit = quantities::time("--for", &wanted.duration)?;
    let (word, _) =
        wanted.command.split_first().ok_or_else(|| Usage::new("no command", "name one behind --"))?;
    let program = store::program(word)?;
    if wanted.cold {
        drop_caches(&context.root, 3)?;
    }
    let (status, start) = learn_once(context, &wanted.command, limit)?;
    if !status.success() {
        context.say(format!("the program ended with {status}: its start is not remembered"));
        return Ok(super::code(status));
    }
    let start = start?;
    context.say(format!(
        "{}: {} of {} files and {} of metadata ({})",
        program.display(),
        Bytes(start.pages() * PAGE),
        start.files.len(),
        Bytes(start.metadata() * PAGE),
        match start.source {
            perflab_prefetch::Source::Traced => "traced",
            perflab_prefetch::Source::Residency =>
                "from what is in memory: pages that others brought count too",
        }
    ));
    let path = store.add(&program, start)?;
    context.say(format!("remembered in {}", path.display()));
    Ok(super::code(status))
}

/// Runs a command to its end; what it read in the first `limit` of it.
pub fn learn_once(
    context: &Context,
    command: &[OsString],
    limit: Nanos,
) -> anyhow::Result<(ExitStatus, Result<Start, perflab_prefetch::PrefetchError>)> {
    let tracer = IoTracer::start(Whose::Children);
    let mut child = spawn(command)?;
    let tracer = match tracer {
        Ok(tracer) => tracer,
        Err(error) => {
            context.say(format!("{error}"));
            let seen = glance(&mut child, limit)?;
            return Ok((child.wait()?, seen.start()));
        }
    };
    watch(&mut child, limit, || ())?;
    let mut recording = tracer.stop()?;
    identify(&mut recording);
    for missing in &recording.told.missing {
        context.say(format!("warning: this kernel lacks {missing}"));
    }
    if recording.told.lost > 0 {
        context.say(format!("warning: {} events were lost: the trace lacks pages", recording.told.lost));
    }
    Ok((child.wait()?, perflab_prefetch::learn(&recording)))
}

fn spawn(command: &[OsString]) -> anyhow::Result<Child> {
    let (word, rest) = command.split_first().context("no command")?;
    Command::new(word).args(rest).spawn().with_context(|| format!("cannot start {}", word.display()))
}

fn glance(child: &mut Child, limit: Nanos) -> anyhow::Result<Seen> {
    let (mut seen, pid) = (Seen::default(), child.id());
    watch(child, limit, || seen.look(pid))?;
    Ok(seen)
}

/// Waits for the end of a program, or of a time; calls `meanwhile` all the time.
fn watch(child: &mut Child, limit: Nanos, mut meanwhile: impl FnMut()) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from(limit);
    while child.try_wait()?.is_none() && Instant::now() < end {
        meanwhile();
        std::thread::sleep(GLANCE);
    }
    Ok(())
}
