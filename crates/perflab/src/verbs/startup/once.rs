//! One start: caches, what they still hold, what else is going on, reading ahead, the start itself. What it measured is one
//! JSON document.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use perflab_conduct::settings::drop_caches;
use perflab_conduct::startup::{DiskReads, Inside, Started, Until, disk_of, resident, start};
use perflab_model::{Bytes, Nanos};
use perflab_observe::io::{IoTracer, Whose, identify};
use perflab_prefetch::{Budget, Order, Policy, Store, combine, learn, store};
use serde_json::json;

use crate::arguments::prefetch::Mode;
use crate::arguments::startup::{Ahead, Caches, StartOnce};
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::verbs::prefetch::{Reading, Rules, half_of_free, prepare};

/// The system's own I/O after dropping caches is over by then, mostly; what goes on is measured here.
const SETTLE: Duration = Duration::from_millis(300);

/// Measures one start.
pub fn once(context: &Context, wanted: &StartOnce) -> anyhow::Result<Exit> {
    let subject = Subject::of(wanted)?;
    let store = Store::locate(wanted.store.as_deref());
    let mode = mode(wanted.prefetch);
    if mode.is_some() && wanted.learn && store.get(&subject.program).is_err() {
        subject.teach(context, &store)?;
    }
    let reading = mode.map(|mode| reading(context, &store, &subject.program, mode)).transpose()?;
    let path = subject.program.clone();
    heat(context, wanted.caches)?;
    let held = resident(&path);
    let background = background(&path);
    let begun = perflab_observe::monotonic_now();
    let reading = reading.map(Reading::before);
    let ahead = perflab_observe::monotonic_now().since(begun);
    let before = if reading.is_some() { ahead } else { Nanos(0) };
    let mut beside = None;
    let started = subject.start(|| beside = reading.map(Reading::beside))?;
    if let Some(beside) = beside {
        beside.stop();
    }
    let Some(wall) = started.wall else { return Ok(failed(&started)) };
    let reads = started.cost.reads;
    let document = json!({
        "wall": before.seconds() + wall.seconds(),
        "prefetch": before.seconds(),
        "major-faults": started.cost.major_faults,
        "delay": started.cost.delay_ticks.map(|ticks| ticks as f64 / 100.0),
        "requests": reads.map(|reads| reads.requests),
        "read": reads.map(|reads| reads.bytes),
        "background": background,
        "resident-before": held,
    });
    context.write(&without_null(document).to_string())?;
    Ok(Exit::Fine)
}

/// What is not known is not there: a metric that is null would be no number.
fn without_null(mut document: serde_json::Value) -> serde_json::Value {
    if let Some(all) = document.as_object_mut() {
        all.retain(|_, value| !value.is_null());
    }
    document
}

fn failed(started: &Started) -> Exit {
    eprint!("{}", started.output);
    eprintln!("error: {}", started.failure.as_deref().unwrap_or("it never started"));
    Exit::WorkloadFailed
}

fn mode(way: Ahead) -> Option<Mode> {
    match way {
        Ahead::None => None,
        Ahead::Sync => Some(Mode::Sync),
        Ahead::Async => Some(Mode::Async),
        Ahead::Staged => Some(Mode::Staged),
    }
}

fn reading(context: &Context, store: &Store, program: &Path, mode: Mode) -> anyhow::Result<Reading> {
    let known = store.get(program)?;
    let start = combine(&known, Policy::Last).context("no start is remembered")?;
    let rules =
        Rules { mode, order: Order::Block, memory: half_of_free(context)?, budget: Budget { rate: None } };
    Ok(prepare(start, rules))
}

fn heat(context: &Context, caches: Caches) -> anyhow::Result<()> {
    match caches {
        Caches::All => Ok(drop_caches(&context.root, 3)?),
        Caches::Pages => Ok(drop_caches(&context.root, 1)?),
        Caches::Warm => Ok(()),
    }
}

/// Bytes that the program's disk reads and writes while nothing is started: somebody else's.
fn background(path: &Path) -> Option<u64> {
    let disk = disk_of(path);
    let before = disk.and_then(DiskReads::of);
    std::thread::sleep(SETTLE);
    let since = disk.and_then(DiskReads::of)?.since(before?);
    Some(since.bytes + since.written)
}

/// What is started, and how it is seen to have.
pub struct Subject {
    command: Vec<OsString>,
    /// its file, where it really lies
    program: PathBuf,
    until: Until,
    limit: Nanos,
}

impl Subject {
    /// A command that is started as it is.
    pub fn new(command: &[OsString], until: &str, limit: &str) -> anyhow::Result<Self> {
        let until: Until = until.parse().map_err(|error| super::usage(&error))?;
        let limit = Nanos::parse(limit)
            .map_err(|error| Usage::new(format!("--limit: {error}"), "for example 120s"))?;
        let program = store::program(command.first().context("no command")?)?;
        Ok(Subject { command: command.into(), program, until, limit })
    }

    /// The same, on another disk where that is wanted.
    fn of(wanted: &StartOnce) -> anyhow::Result<Self> {
        let subject = Subject::new(&wanted.command, &wanted.until, &wanted.limit)?;
        let Some(disk) = &wanted.inside else { return Ok(subject) };
        let inside = Inside::prepare(disk, &wanted.package)?;
        let program = inside.copy_of(&subject.program);
        if !program.is_file() {
            let message =
                format!("{} belongs to none of {}", subject.program.display(), wanted.package.join(", "));
            return Err(Usage::new(message, "`dpkg -S FILE` says whose it is").into());
        }
        Ok(Subject { command: inside.command(&subject.command), program, ..subject })
    }

    fn start(&self, beside: impl FnOnce()) -> std::io::Result<Started> {
        start(&self.command, &self.until, self.limit, disk_of(&self.program), beside)
    }

    /// The start that learns: cold, traced, remembered.
    pub fn teach(&self, context: &Context, store: &Store) -> anyhow::Result<()> {
        heat(context, Caches::All)?;
        let tracer = IoTracer::start(Whose::Children)?;
        let started = self.start(|| ())?;
        let mut recording = tracer.stop()?;
        if let Some(failure) = started.failure {
            eprint!("{}", started.output);
            bail!(Usage::new(
                format!("the program never started: {failure}"),
                "nothing was learnt, nothing measured"
            ));
        }
        identify(&mut recording);
        let learnt = learn(&recording)?;
        let page = perflab_model::io::PAGE;
        context.say(format!(
            "learnt: {} of {} files, {} of metadata",
            Bytes(learnt.pages() * page),
            learnt.files.len(),
            Bytes(learnt.metadata() * page)
        ));
        store.add(&self.program, learnt)?;
        Ok(())
    }
}
