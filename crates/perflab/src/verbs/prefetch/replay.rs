//! `perflab prefetch replay`

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::Context as _;
use perflab_model::io::PAGE;
use perflab_model::{Bytes, Nanos};
use perflab_prefetch::warm::{is_warm, read_whole};
use perflab_prefetch::{Budget, Mode, Order, Plan, Replayed, Start, Store, combine};
use perflab_present::table::Format;
use serde_json::json;

use crate::arguments::prefetch::{ModeName, OrderName, Replay};
use crate::context::Context;
use crate::exit::Usage;

/// Reads ahead and runs the program. Whatever is wrong with a trace, the program is run: reading ahead is a help, and no
/// condition.
pub fn replay(context: &Context, store: &Store, wanted: &Replay) -> anyhow::Result<ExitCode> {
    if wanted.command.is_empty() {
        return Err(Usage::new("no command", "name one behind --").into());
    }
    let name = super::name(wanted.name.as_deref(), &wanted.command)?;
    let memory = size("--memory", wanted.memory.as_deref())?.map_or_else(|| half_of_free(context), Ok)?;
    let rate = size("--io", wanted.io.as_deref())?;
    let rules =
        Rules { mode: mode(wanted.mode), order: wanted.order.map(order), memory, budget: Budget { rate } };
    let start = match store.get(&name) {
        Ok(known) => combine(&known, super::policy(wanted.policy)),
        Err(error) if wanted.no_start => return Err(error.into()),
        Err(error) => {
            stderr_line!("warning: nothing is read ahead: {error}");
            None
        }
    };
    let reading = start.map(|start| prepare(start, rules));
    let reading = reading.map(Reading::before);
    if wanted.no_start {
        tell(context, &name, reading.map(Reading::finish).as_ref(), None)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut child = super::spawn(context, &wanted.command)?;
    let reading = reading.map(Reading::beside);
    let exit = super::code(child.wait()?);
    // What was not read by then is not needed.
    tell(context, &name, reading.map(Reading::stop).as_ref(), Some(exit))?;
    Ok(exit.into())
}

/// How it is read ahead.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// when
    pub mode: Mode,
    /// in which order
    pub order: Option<Order>,
    /// bytes at most
    pub memory: u64,
    /// and how fast
    pub budget: Budget,
}

/// Reading ahead, before and beside a program.
pub struct Reading {
    start: Arc<Start>,
    rules: Rules,
    stop: Arc<AtomicBool>,
    done: Replayed,
    beside: Option<JoinHandle<Replayed>>,
}

/// Nothing is read yet.
pub fn prepare(start: Start, rules: Rules) -> Reading {
    let stop = Arc::new(AtomicBool::new(false));
    Reading { start: Arc::new(start), rules, stop, done: Replayed::default(), beside: None }
}

impl Reading {
    /// Reads what is to be there before the program starts, and waits for it; nothing where all of it is in memory.
    pub fn before(mut self) -> Self {
        let plan = self.rules.mode.plan(&self.start, self.rules.order, self.rules.memory);
        self.done = match is_warm(&plan) {
            true => Replayed { was_there: true, ..Replayed::default() },
            false => read(&plan, self.rules, 0, &self.stop),
        };
        self
    }

    /// Reads all of it before the program starts, to the last page: where a few pages have left memory, a look at some tells of none.
    pub fn heat(mut self) -> Self {
        let plan = self.rules.mode.plan(&self.start, self.rules.order, self.rules.memory);
        self.done = read(&plan, self.rules, 0, &self.stop);
        read_whole(&plan);
        self
    }

    /// Begins to read the rest, and does not wait.
    pub fn beside(mut self) -> Self {
        if self.done.was_there {
            return self;
        }
        let (start, stop) = (Arc::clone(&self.start), Arc::clone(&self.stop));
        let rules = self.rules;
        self.beside = Some(std::thread::spawn(move || {
            read(&rules.mode.plan(&start, rules.order, rules.memory), rules, 1, &stop)
        }));
        self
    }

    /// Reads to the end.
    pub fn finish(mut self) -> Replayed {
        if self.beside.is_none() {
            self = self.beside();
        }
        self.joined()
    }

    /// Stops reading.
    pub fn stop(self) -> Replayed {
        self.stop.store(true, Ordering::Relaxed);
        self.joined()
    }

    fn joined(mut self) -> Replayed {
        let rest = self.beside.take().and_then(|beside| beside.join().ok()).unwrap_or_default();
        let mut done = self.done;
        done.add(rest);
        done
    }
}

fn read(plan: &Plan<'_>, rules: Rules, which: usize, stop: &AtomicBool) -> Replayed {
    let part = rules.mode.parts(plan).into_iter().nth(which);
    match part.filter(|part| part.metadata || !part.steps.is_empty()) {
        Some(part) => perflab_prefetch::replay(plan, part, rules.budget, stop),
        None => Replayed::default(),
    }
}

pub(super) fn mode(name: ModeName) -> Mode {
    match name {
        ModeName::Sync => Mode::Sync,
        ModeName::Async => Mode::Async,
        ModeName::Staged => Mode::Staged,
    }
}

pub(super) fn order(name: OrderName) -> Order {
    match name {
        OrderName::Need => Order::Need,
        OrderName::Block => Order::Block,
        OrderName::Inode => Order::Inode,
        OrderName::Access => Order::Access,
    }
}

pub(super) fn size(option: &str, text: Option<&str>) -> Result<Option<u64>, Usage> {
    let parse = |text| Bytes::parse(text).map(|bytes| bytes.0);
    text.map(parse)
        .transpose()
        .map_err(|error| Usage::new(format!("{option}: {error}"), "for example 512MiB"))
}

/// Reading ahead must not push out what others need.
pub fn half_of_free(context: &Context) -> anyhow::Result<u64> {
    perflab_prefetch::half_of_free(&context.root).context("/proc/meminfo has no MemAvailable")
}

/// What came of reading ahead, where something is known of the program, and of the program, where it was started.
fn tell(context: &Context, name: &Path, done: Option<&Replayed>, exit: Option<u8>) -> anyhow::Result<()> {
    done.into_iter().for_each(|done| say(context, done));
    if context.format != Format::Json {
        return Ok(());
    }
    let read = done.map(|done| {
        json!({
            "was_there": done.was_there,
            "data": done.pages * PAGE,
            "metadata": done.metadata * PAGE,
            "files": done.files.len(),
            "skipped": done.skipped.len(),
            "before": done.nanos,
            "by_name": done.by_name,
            "foreign": done.foreign,
        })
    });
    context.document(&json!({ "program": name, "exit": exit, "read": read }))
}

fn say(context: &Context, done: &Replayed) {
    if done.was_there {
        return context.say("everything is in memory already: nothing was read ahead");
    }
    context.say(format!(
        "read ahead: {} of {} files, {} of metadata; {} before the start",
        Bytes(done.pages * PAGE),
        done.files.len(),
        Bytes(done.metadata * PAGE),
        Nanos(done.nanos),
    ));
    if !done.skipped.is_empty() {
        let skipped = done.skipped.len();
        context.say(format!("{skipped} files have changed, are gone, or may not be opened"));
    }
    if done.by_name > 0 {
        context.say("a disk cannot be opened: its file system's own blocks come when names are looked up");
    }
    for place in &done.foreign {
        context.say(format!("{place} is another file system now, or not mounted: nothing of it was read"));
    }
}
