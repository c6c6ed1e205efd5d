//! `perflab prefetch replay`

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::Context as _;
use perflab_model::io_trace::PAGE;
use perflab_model::{Bytes, Nanos};
use perflab_prefetch::replay::{is_plan_resident, read_plan_files};
use perflab_prefetch::{
    ReadOrder, ReplayBudget, ReplayMode, ReplayPlan, ReplayResult, StartupTrace, TraceStore, combine_traces,
};
use perflab_present::comparison::OutputFormat;
use serde_json::json;

use crate::arguments::prefetch::{ReadOrderName, ReplayArgs, ReplayModeName};
use crate::context::App;
use crate::exit::UsageError;

/// Reads ahead and runs the program. Whatever is wrong with a trace, the program is run: reading ahead is a help, and no
/// condition.
pub fn replay_program(context: &App, store: &TraceStore, wanted: &ReplayArgs) -> anyhow::Result<ExitCode> {
    if wanted.command.is_empty() {
        return Err(UsageError::new("no command", "name one behind --").into());
    }
    let name = super::remembered_name(wanted.name.as_deref(), &wanted.command)?;
    let memory = parse_size_option("--memory", wanted.memory.as_deref())?
        .map_or_else(|| default_memory_budget(context), Ok)?;
    let rate = parse_size_option("--io", wanted.io.as_deref())?;
    let rules = ReplayRules {
        mode: replay_mode(wanted.mode),
        order: wanted.order.map(read_order),
        memory,
        budget: ReplayBudget { rate },
    };
    let start = match store.read_trace(&name) {
        Ok(known) => combine_traces(&known, super::trace_policy(wanted.policy)),
        Err(error) if wanted.no_start => return Err(error.into()),
        Err(error) => {
            stderr_line!("warning: nothing is read ahead: {error}");
            None
        }
    };
    let reading = start.map(|start| prepare_replay(start, rules));
    let reading = reading.map(ReplaySession::read_before_start);
    if wanted.no_start {
        print_replay_result(context, &name, reading.map(ReplaySession::finish).as_ref(), None)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut child = super::spawn_program(context, &wanted.command)?;
    let reading = reading.map(ReplaySession::read_beside);
    let exit = super::shell_exit_code(child.wait()?);
    // What was not read by then is not needed.
    print_replay_result(context, &name, reading.map(ReplaySession::stop).as_ref(), Some(exit))?;
    Ok(exit.into())
}

/// How it is read ahead.
#[derive(Debug, Clone, Copy)]
pub struct ReplayRules {
    /// when
    pub mode: ReplayMode,
    /// in which order
    pub order: Option<ReadOrder>,
    /// bytes at most
    pub memory: u64,
    /// and how fast
    pub budget: ReplayBudget,
}

/// Reading ahead, before and beside a program.
pub struct ReplaySession {
    start: Arc<StartupTrace>,
    rules: ReplayRules,
    stop: Arc<AtomicBool>,
    outcome: ReplayResult,
    reader_thread: Option<JoinHandle<ReplayResult>>,
}

/// Nothing is read yet.
pub fn prepare_replay(start: StartupTrace, rules: ReplayRules) -> ReplaySession {
    let stop = Arc::new(AtomicBool::new(false));
    ReplaySession {
        start: Arc::new(start),
        rules,
        stop,
        outcome: ReplayResult::default(),
        reader_thread: None,
    }
}

impl ReplaySession {
    /// Reads what is to be there before the program starts, and waits for it; nothing where all of it is in memory.
    pub fn read_before_start(mut self) -> Self {
        let plan = self.rules.mode.plan_replay(&self.start, self.rules.order, self.rules.memory);
        self.outcome = match is_plan_resident(&plan) {
            true => ReplayResult { was_there: true, ..ReplayResult::default() },
            false => replay_plan_part(&plan, self.rules, 0, &self.stop),
        };
        self
    }

    /// Reads all of it before the program starts, to the last page: where a few pages have left memory, a look at some tells of none.
    pub fn read_all_before_start(mut self) -> Self {
        let plan = self.rules.mode.plan_replay(&self.start, self.rules.order, self.rules.memory);
        self.outcome = replay_plan_part(&plan, self.rules, 0, &self.stop);
        read_plan_files(&plan);
        self
    }

    /// Begins to read the rest, and does not wait.
    pub fn read_beside(mut self) -> Self {
        if self.outcome.was_there {
            return self;
        }
        let (start, stop) = (Arc::clone(&self.start), Arc::clone(&self.stop));
        let rules = self.rules;
        self.reader_thread = Some(std::thread::spawn(move || {
            replay_plan_part(&rules.mode.plan_replay(&start, rules.order, rules.memory), rules, 1, &stop)
        }));
        self
    }

    /// Reads to the end.
    pub fn finish(mut self) -> ReplayResult {
        if self.reader_thread.is_none() {
            self = self.read_beside();
        }
        self.join_reader()
    }

    /// Stops reading.
    pub fn stop(self) -> ReplayResult {
        self.stop.store(true, Ordering::Relaxed);
        self.join_reader()
    }

    fn join_reader(mut self) -> ReplayResult {
        let rest = self.reader_thread.take().and_then(|beside| beside.join().ok()).unwrap_or_default();
        let mut done = self.outcome;
        done.add(rest);
        done
    }
}

fn replay_plan_part(
    plan: &ReplayPlan<'_>,
    rules: ReplayRules,
    which: usize,
    stop: &AtomicBool,
) -> ReplayResult {
    let part = rules.mode.split_plan(plan).into_iter().nth(which);
    match part.filter(|part| part.metadata || !part.steps.is_empty()) {
        Some(part) => perflab_prefetch::replay_part(plan, part, rules.budget, stop),
        None => ReplayResult::default(),
    }
}

pub(super) fn replay_mode(name: ReplayModeName) -> ReplayMode {
    match name {
        ReplayModeName::Sync => ReplayMode::Sync,
        ReplayModeName::Async => ReplayMode::Async,
        ReplayModeName::Staged => ReplayMode::Staged,
    }
}

pub(super) fn read_order(name: ReadOrderName) -> ReadOrder {
    match name {
        ReadOrderName::Need => ReadOrder::Need,
        ReadOrderName::Block => ReadOrder::Block,
        ReadOrderName::Inode => ReadOrder::Inode,
        ReadOrderName::Access => ReadOrder::Access,
    }
}

pub(super) fn parse_size_option(option: &str, text: Option<&str>) -> Result<Option<u64>, UsageError> {
    let parse = |text| Bytes::parse(text).map(|bytes| bytes.0);
    text.map(parse)
        .transpose()
        .map_err(|error| UsageError::new(format!("{option}: {error}"), "for example 512MiB"))
}

/// Reading ahead must not push out what others need.
pub fn default_memory_budget(context: &App) -> anyhow::Result<u64> {
    perflab_prefetch::replay_memory_limit(&context.root).context("/proc/meminfo has no MemAvailable")
}

/// What came of reading ahead, where something is known of the program, and of the program, where it was started.
fn print_replay_result(
    context: &App,
    name: &Path,
    done: Option<&ReplayResult>,
    exit: Option<u8>,
) -> anyhow::Result<()> {
    done.into_iter().for_each(|done| note_replay(context, done));
    if context.format != OutputFormat::Json {
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
    context.print_json(&json!({ "program": name, "exit": exit, "read": read }))
}

fn note_replay(context: &App, done: &ReplayResult) {
    if done.was_there {
        return context.note("everything is in memory already: nothing was read ahead");
    }
    context.note(format!(
        "read ahead: {} of {} files, {} of metadata; {} before the start",
        Bytes(done.pages * PAGE),
        done.files.len(),
        Bytes(done.metadata * PAGE),
        Nanos(done.nanos),
    ));
    if !done.skipped.is_empty() {
        let skipped = done.skipped.len();
        context.note(format!("{skipped} files have changed, are gone, or may not be opened"));
    }
    if done.by_name > 0 {
        context.note("a disk cannot be opened: its file system's own blocks come when names are looked up");
    }
    for place in &done.foreign {
        context.note(format!("{place} is another file system now, or not mounted: nothing of it was read"));
    }
}
