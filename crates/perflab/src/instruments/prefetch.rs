//! The verbs of `perflab prefetch` that read ahead: `learn`, `replay`, `relayout`, `daemon`.
//!
//! The kernel brings pages around each one that is touched, and no trace tells later which of them were needed.
//! Learning page by page makes it bring less, so fewer pages are remembered that were not needed.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use perflab_analyze::reads_by_file;
use perflab_model::Setting;
use perflab_model::io_trace::{FileClass, IoRecording, PAGE};
use perflab_model::{Bytes, Nanos};
use perflab_observe::io::{IoTraceScope, IoTracer, MountTable, resolve_files};
use perflab_observe::mounts;
use perflab_prefetch::daemon::{DaemonOptions, LearnThreshold, ProgramLists};
use perflab_prefetch::relayout::{
    FileSystemLayout, RelayoutOutcome, file_system_layouts, relayout_startup as exchange,
};
use perflab_prefetch::replay::{is_plan_resident, read_plan_files};
use perflab_prefetch::trace_builder::FilesInUse;
use perflab_prefetch::{
    CombinePolicy, ReadOrder, ReplayBudget, ReplayMode, ReplayPlan, ReplayResult, StartupTrace, TraceStore,
    combine_traces, refresh_extents, shares_files, trace_store,
};
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use perflab_settings::drop_caches;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::app::{App, named_parser};
use crate::failure::{Exit, Failure, FailureContext as _, UnexpectedError, UsageError, WorkStoppedError};
use crate::instruments::prefetch_store::{
    ForgetArgs, PrefetchShowArgs, PrefetchStatusArgs, SOCKET, nothing_remembered_error,
};
use crate::laboratory::temporary_settings::TemporarySettings;
use crate::measure::run;
use crate::signals::with_stop_signal;
use crate::verb::Verb;

/// Learn what a program reads at its start, and read it ahead
#[derive(Debug, Args)]
pub struct PrefetchArgs {
    /// Where traces are stored (default: $PERFLAB_PREFETCH, else /var/lib/perflab/prefetch for root, below $XDG_STATE_HOME for others)
    #[arg(long, global = true, value_name = "DIR")]
    pub store: Option<PathBuf>,
    #[command(subcommand)]
    pub verb: PrefetchVerb,
}

impl Verb for PrefetchArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        run_prefetch_verb(app, self)
    }
}

/// The verbs of reading ahead.
#[derive(Debug, Subcommand)]
pub enum PrefetchVerb {
    /// Run a program, and remember what it reads
    Learn(LearnArgs),
    /// Read ahead what a program will read, and run it
    Replay(ReplayArgs),
    /// Show what is remembered: all programs, or the files of one
    Show(PrefetchShowArgs),
    /// Move what a program reads together on the disk (ext4)
    Relayout(RelayoutArgs),
    /// Forget programs
    Forget(ForgetArgs),
    /// Learn and read ahead for every program automatically (needs root)
    Daemon(Box<DaemonArgs>),
    /// Show what the daemon does, and what each program gains
    Status(PrefetchStatusArgs),
}

/// `perflab prefetch learn`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab prefetch learn --cold -- python3 -c 'import json'
  perflab prefetch replay -- python3 -c 'import json'
  perflab prefetch learn --cold -- python3 report.py
  perflab prefetch learn --cold --name shell-report -- sh -c './fetch && ./report'

Two scripts of one interpreter are remembered as two: under the script's name, where it is the
first word behind the interpreter that is no option. What `-c` or `-m` names has no file: --name
tells such commands apart, here and for `replay`.

--fine pays where each byte costs: on slow flash, and on a disk that turns once `perflab prefetch
relayout` has brought together what is read.

As root every page is traced as it comes, with the file systems' own blocks. Without, what is in
memory of your own files afterwards is taken for what was read: pages that others brought count
too. The latest three starts are remembered; `replay --policy` says how they become one.")]
pub struct LearnArgs {
    /// Drop the page cache, dentries and inodes first (needs root): only what is read can be learnt
    #[arg(long)]
    pub cold: bool,
    /// Have the kernel read single pages of the program's disk in place of 128 KiB or more around each (needs root), so
    /// that only what is touched is remembered. This one start takes longer
    #[arg(long)]
    pub fine: bool,
    /// Trace the start for this long; the program runs on
    #[arg(long = "for", value_name = "TIME", default_value = "15s")]
    pub duration: Nanos,
    /// The name to remember it under (default: the script's if the program is an interpreter, else the program's)
    #[arg(long, value_name = "NAME")]
    pub name: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `perflab prefetch replay`
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// When files are read ahead
    #[arg(long, value_name = "MODE", value_parser = named_parser::<ReplayMode>(), default_value = "staged")]
    pub mode: ReplayMode,
    /// The order of reading (default: block with --mode sync, else need)
    #[arg(long, value_name = "ORDER", value_parser = named_parser::<ReadOrder>())]
    pub order: Option<ReadOrder>,
    /// How the remembered starts are combined
    #[arg(long, value_name = "POLICY", value_parser = named_parser::<CombinePolicy>(), default_value = "last")]
    pub policy: CombinePolicy,
    /// Read at most this much (default: half of the available memory)
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Bytes>,
    /// Read at most this much per second
    #[arg(long, value_name = "SIZE")]
    pub io: Option<Bytes>,
    /// Read ahead without starting the program
    #[arg(long)]
    pub no_start: bool,
    /// The name to remember it under (default: the script's if the program is an interpreter, else the program's)
    #[arg(long, value_name = "NAME")]
    pub name: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `perflab prefetch relayout`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab prefetch learn --cold --fine -- python3 -c 'import json'
  perflab prefetch relayout python3
  perflab prefetch relayout python3 --apply

For spinning disks: what a start reads is moved into free space in the order in which it is needed,
so that the heads pass over it in one sweep. Without --apply nothing is moved, and the output shows
the extents as they are. The bytes and times of files do not change: the file system exchanges
blocks, journaled, as for e4defrag (EXT4_IOC_MOVE_EXT); if it is interrupted, what was moved stays
moved. It works on ext4, for files that you may write, and skips running programs. Learn again
afterwards, since the blocks of the file system itself change. What is updated or installed later is
placed anywhere.")]
pub struct RelayoutArgs {
    /// The program
    pub program: OsString,
    /// How the remembered starts are combined
    #[arg(long, value_name = "POLICY", value_parser = named_parser::<CombinePolicy>(), default_value = "last")]
    pub policy: CombinePolicy,
    /// Only what lies on the file system of this mount point
    #[arg(long, value_name = "MOUNT")]
    pub on: Option<PathBuf>,
    /// Move it
    #[arg(long)]
    pub apply: bool,
}

/// Answer execs while the prefetch daemon does not (what it starts by itself)
#[derive(Debug, Args)]
pub struct PrefetchGuardArgs {
    /// The daemon's process
    pub daemon: u32,
}

impl Verb for PrefetchGuardArgs {
    fn run(&self, _app: &App) -> Result<Exit, Failure> {
        guard_execs(self)
    }
}

/// `perflab prefetch daemon`
#[derive(Debug, Args)]
#[command(after_long_help = "\
A program's first start is only watched: what it and its children waited for disks, where the
kernel accounts for that (sysctl kernel.task_delayacct=1), else what they read and how often they
faulted. Where that was worth it, the second start is traced; from the third on its trace is read
ahead while its exec waits, but never longer than --bound. Whatever goes wrong, the program is
started. `perflab prefetch status` says where each program stands, and why.

Examples:
  perflab prefetch daemon --on / --never /usr/bin/make
  perflab prefetch daemon --print-unit > /etc/systemd/system/perflab-prefetch.service
  perflab prefetch status

It needs CAP_SYS_ADMIN (to be asked before an exec, and to trace), CAP_DAC_READ_SEARCH (names of
what was traced), CAP_NET_ADMIN (what processes waited for), CAP_SETUID and CAP_SETGID (to open
files as who starts the program, and never one that they could not open). A list (--list) has a
line for each program or folder, `only PATH` or `never PATH`.")]
pub struct DaemonArgs {
    /// Watch the file system of this mount point (default: those of all disks; repeatable)
    #[arg(long, value_name = "MOUNT")]
    pub on: Vec<PathBuf>,
    /// Only this program, or those below this folder (repeatable)
    #[arg(long, value_name = "PATH")]
    pub only: Vec<PathBuf>,
    /// Never this program, or those below this folder (repeatable)
    #[arg(long, value_name = "PATH")]
    pub never: Vec<PathBuf>,
    /// A file with more of both, reread when it changes
    #[arg(long, value_name = "FILE")]
    pub list: Option<PathBuf>,
    /// A start that waits this long for disks is worth learning
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub worth_wait: Nanos,
    /// If the kernel does not account waiting: a start that reads this much
    #[arg(long, value_name = "SIZE", default_value = "4MiB")]
    pub worth_read: Bytes,
    /// Or a start with this many major page faults
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    pub worth_faults: u64,
    /// Watch or trace a start for this long
    #[arg(long = "for", value_name = "TIME", default_value = "15s")]
    pub duration: Nanos,
    /// An exec waits at most this long for tracing to begin, or for its files to be read ahead
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub bound: Nanos,
    /// A new program waits at most this long to be looked at
    #[arg(long, value_name = "TIME", default_value = "50ms")]
    pub decide: Nanos,
    /// When files are read ahead
    #[arg(long, value_name = "MODE", value_parser = named_parser::<ReplayMode>(), default_value = "staged")]
    pub mode: ReplayMode,
    /// The order of reading (default: block with --mode sync, else need)
    #[arg(long, value_name = "ORDER", value_parser = named_parser::<ReadOrder>())]
    pub order: Option<ReadOrder>,
    /// How the remembered starts are combined
    #[arg(long, value_name = "POLICY", value_parser = named_parser::<CombinePolicy>(), default_value = "union")]
    pub policy: CombinePolicy,
    /// Read at most this much for one start (default: half of the available memory)
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Bytes>,
    /// Read at most this much per second for one start
    #[arg(long, value_name = "SIZE")]
    pub io: Option<Bytes>,
    /// The socket of the daemon
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    pub socket: PathBuf,
    /// Print a systemd unit, and do nothing else
    #[arg(long)]
    pub print_unit: bool,
}

/// Carries out a verb. A program that was started gives the exit code.
pub fn run_prefetch_verb(context: &App, args: &PrefetchArgs) -> Result<Exit, Failure> {
    let store = TraceStore::locate(args.store.as_deref());
    match &args.verb {
        PrefetchVerb::Learn(args) => learn_program(context, &store, args),
        PrefetchVerb::Replay(args) => replay_program(context, &store, args),
        PrefetchVerb::Show(args) => crate::instruments::prefetch_store::show_traces(context, &store, args),
        PrefetchVerb::Relayout(args) => show_or_relayout(context, &store, args),
        PrefetchVerb::Forget(args) => {
            crate::instruments::prefetch_store::forget_programs(context, &store, args)
        }
        PrefetchVerb::Daemon(args) => run_prefetch_daemon(context, store, args),
        PrefetchVerb::Status(args) => {
            crate::instruments::prefetch_store::show_daemon_status(context, &store, args)
        }
    }
}

/// Under which name a command is remembered.
fn remembered_name(requested: Option<&Path>, command: &[OsString]) -> Result<PathBuf, Failure> {
    match requested {
        Some(name) if name.as_os_str().is_empty() => {
            Err(UsageError::new("--name: it is empty", "for example `--name report`").into())
        }
        Some(name) => Ok(name.into()),
        None => Ok(trace_store::trace_name(command)?),
    }
}

/// A verb that starts a program was given none.
pub(crate) fn no_command_error() -> UsageError {
    UsageError::new("no command", "name one behind --")
}

/// The exit code of a program that was started here, as a shell would give it.
fn shell_exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Starts a program. Where standard output is one JSON document, the program's goes to standard error.
fn spawn_program(context: &App, command: &[OsString]) -> Result<Child, Failure> {
    let (word, rest) = command.split_first().ok_or_else(no_command_error)?;
    let mut program = Command::new(word);
    program.args(rest);
    if context.format == OutputFormat::Json {
        program.stdout(std::io::stderr());
    }
    program.spawn().with_context(|| format!("cannot start {}", word.display()))
}

/// How often a program without tracing is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Runs a program, and remembers what it read.
pub fn learn_program(context: &App, store: &TraceStore, args: &LearnArgs) -> Result<Exit, Failure> {
    let limit = args.duration;
    let (word, _) = args.command.split_first().ok_or_else(no_command_error)?;
    let program = trace_store::find_program_path(word)?;
    let name = remembered_name(args.name.as_deref(), &args.command)?;
    let learning = |stop: &AtomicBool| {
        let _finely = args.fine.then(|| lower_read_ahead(context, &program)).transpose()?;
        learn_startup(context, args, limit, stop)
    };
    let (learnt, _) = with_stop_signal(learning)?;
    let (mut child, start) = learnt?;
    let status = child.wait()?;
    let exit = shell_exit_code(status);
    if !status.success() {
        context.note(format!("the program ended with {status}: its start is not remembered"));
        print_learn_json(context, &json!({ "program": name, "exit": exit, "trace": null }))?;
        return Ok(Exit::Program(exit));
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
                "from what is in memory, including pages that others read",
        }
    ));
    let path = store.add_startup(&name, start)?;
    context.note(format!("remembered in {}", path.display()));
    learnt["trace"] = json!(path);
    print_learn_json(context, &learnt)?;
    Ok(Exit::Program(exit))
}

/// Everybody else reads it on standard error.
fn print_learn_json(context: &App, value: &serde_json::Value) -> Result<(), Failure> {
    if context.format == OutputFormat::Json { context.print_json(value) } else { Ok(()) }
}

/// A program, and what it read.
type LearntStartup = (Child, Result<StartupTrace, perflab_prefetch::PrefetchError>);

/// Starts a program; what it read in the first `limit` of it. A wish to stop is passed on to it.
fn learn_startup(
    context: &App,
    args: &LearnArgs,
    limit: Nanos,
    stop: &AtomicBool,
) -> Result<LearntStartup, Failure> {
    let tracer = IoTracer::start(IoTraceScope::Children);
    // Last of all: what is looked up between this and the start, the program does not read, and nobody learns.
    if args.cold {
        drop_caches(&context.root, 3)?;
    }
    let mut child = spawn_program(context, &args.command)?;
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
    for missing in &recording.summary.missing {
        context.note(format!("warning: this kernel lacks {missing}"));
    }
    if recording.summary.lost > 0 {
        context.note(format!("warning: {} events were lost: the trace lacks pages", recording.summary.lost));
    }
    if let Some(never_cold) = never_cold_warning(&recording).filter(|_| args.cold) {
        context.note(format!("{never_cold}: who maps it meanwhile keeps it out of the trace"));
    }
    Ok((child, perflab_prefetch::build_trace(&recording)))
}

/// Waits for the end of a program, or of a time; calls `meanwhile` again and again.
fn wait_for_program(
    child: &mut Child,
    limit: Nanos,
    stop: &AtomicBool,
    mut meanwhile: impl FnMut(&Child),
) -> Result<(), Failure> {
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

/// Reads ahead and runs the program. Whatever is wrong with a trace, the program is run: reading ahead is a help, and no
/// condition.
pub fn replay_program(context: &App, store: &TraceStore, args: &ReplayArgs) -> Result<Exit, Failure> {
    if args.command.is_empty() {
        return Err(UsageError::new("no command", "name one behind --").into());
    }
    let name = remembered_name(args.name.as_deref(), &args.command)?;
    let memory = args.memory.map_or_else(|| default_memory_budget(context), |memory| Ok(memory.0))?;
    let rate = args.io.map(|rate| rate.0);
    let rules = ReplayRules { mode: args.mode, order: args.order, memory, budget: ReplayBudget { rate } };
    let start = match store.read_trace(&name) {
        Ok(known) => combine_traces(&known, args.policy),
        Err(error) if args.no_start => return Err(error.into()),
        Err(error) => {
            stderr_line!("warning: nothing is read ahead: {error}");
            None
        }
    };
    let reading = start.map(|start| prepare_replay(start, rules));
    let reading = reading.map(ReplaySession::read_before_start);
    if args.no_start {
        print_replay_result(context, &name, reading.map(ReplaySession::finish).as_ref(), None)?;
        return Ok(Exit::Fine);
    }
    let mut child = spawn_program(context, &args.command)?;
    let reading = reading.map(ReplaySession::read_beside);
    let exit = shell_exit_code(child.wait()?);
    // What was not read by then is not needed.
    print_replay_result(context, &name, reading.map(ReplaySession::stop).as_ref(), Some(exit))?;
    Ok(Exit::Program(exit))
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
    /// Reads what must be there before the program starts, and waits for it; nothing where all of it is in memory.
    pub fn read_before_start(mut self) -> Self {
        let plan = self.rules.mode.plan_replay(&self.start, self.rules.order, self.rules.memory);
        self.outcome = match is_plan_resident(&plan) {
            true => ReplayResult { was_there: true, ..ReplayResult::default() },
            false => replay_plan_part(&plan, self.rules, 0, &self.stop),
        };
        self
    }

    /// Reads all of it before the program starts, to the last page: where a few pages have left memory, sampling some shows none.
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

/// Reading ahead must not push out what others need.
pub fn default_memory_budget(context: &App) -> Result<u64, Failure> {
    perflab_prefetch::replay_memory_limit(&context.root)
        .ok_or_else(|| UnexpectedError("/proc/meminfo has no MemAvailable".into()).into())
}

/// What came of reading ahead, where something is known of the program, and of the program, where it was started.
fn print_replay_result(
    context: &App,
    name: &Path,
    done: Option<&ReplayResult>,
    exit: Option<u8>,
) -> Result<(), Failure> {
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
        context.note(format!("{skipped} files have changed, are gone, or cannot be opened"));
    }
    if done.by_name > 0 {
        context.note("a disk cannot be opened: its metadata is read when names are looked up");
    }
    for place in &done.foreign {
        context.note(format!("{place} is now another file system or not mounted: nothing of it was read"));
    }
}

const STYLE: &str = "{bar:32.cyan/dim} {percent} %  {eta}";

/// Shows how what a program reads lies, or brings it together and shows how it lies then.
pub fn show_or_relayout(context: &App, store: &TraceStore, args: &RelayoutArgs) -> Result<Exit, Failure> {
    let program = store.resolve_name(&args.program);
    let policy = args.policy;
    let before = file_system_layouts(&read_combined_trace(store, &program, policy)?);
    let elsewhere = |on: &&PathBuf| before.iter().all(|part| Path::new(&part.place) != on.as_path());
    if let Some(on) = args.on.as_ref().filter(elsewhere) {
        let places: Vec<&str> = before.iter().map(|part| part.place.as_str()).collect();
        let message = format!("nothing that it reads lies on the file system of {}", on.display());
        return Err(UsageError::new(message, format!("it reads from {}", places.join(", "))).into());
    }
    if args.apply {
        relayout_program(context, store, &program, policy, args.on.as_deref())?;
    }
    let now = if args.apply {
        file_system_layouts(&read_combined_trace(store, &program, policy)?)
    } else {
        before.clone()
    };
    context.print_grid(&layout_grid(&before, &now))?;
    if !args.apply && before.iter().any(|part| part.left_alone.is_none()) {
        context.note("nothing was moved; --apply moves it");
    }
    Ok(Exit::Fine)
}

/// Moves what a program reads into one place, and notes where it lies.
pub fn relayout_program(
    context: &App,
    store: &TraceStore,
    program: &Path,
    policy: CombinePolicy,
    on: Option<&Path>,
) -> Result<(), Failure> {
    let start = read_combined_trace(store, program, policy)?;
    let bar = relayout_progress_bar(context, start.page_count());
    let others = store.other_programs(program);
    let (done, stopped) =
        with_stop_signal(|stop| exchange(&start, &others, on, stop, &|pages| bar.inc(pages)))?;
    bar.finish_and_clear();
    let mut own = store.read_trace(program)?;
    own.relaid |= done.as_ref().is_ok_and(|done| done.bytes > 0);
    let sharing = others.into_iter().filter(|other| shares_files(other, &start));
    for mut known in sharing.chain([own]) {
        refresh_extents(&mut known);
        store.replace(Path::new(&known.program), &known)?;
    }
    note_moved_extents(context, &done?);
    if stopped {
        return Err(WorkStoppedError.into());
    }
    Ok(())
}

fn read_combined_trace(
    store: &TraceStore,
    program: &Path,
    policy: CombinePolicy,
) -> Result<StartupTrace, Failure> {
    combine_traces(&store.read_trace(program)?, policy).ok_or_else(|| nothing_remembered_error().into())
}

fn relayout_progress_bar(context: &App, pages: u64) -> ProgressBar {
    let bar = if context.quiet { ProgressBar::hidden() } else { ProgressBar::new(pages) };
    if let Ok(style) = ProgressStyle::with_template(STYLE) {
        bar.set_style(style.progress_chars("━━─"));
    }
    bar
}

fn note_moved_extents(context: &App, done: &RelayoutOutcome) {
    for (why, files) in &done.left {
        stderr_line!("parts of files not moved: {files} ({why})");
    }
    context.note(format!(
        "{} moved; run `perflab prefetch learn` again, since the metadata of the file system has changed",
        Bytes(done.bytes)
    ));
}

fn layout_grid(before: &[FileSystemLayout], now: &[FileSystemLayout]) -> Grid {
    let numbers = ["data", "files", "extents before", "extents"].map(GridColumn::right);
    let titles = [GridColumn::left("on"), GridColumn::left("kind")].into_iter().chain(numbers);
    let mut grid = Grid::new(titles.chain([GridColumn::left("left alone")]));
    for (before, now) in before.iter().zip(now) {
        grid.add_row([
            now.place.as_str().into(),
            now.kind.as_str().into(),
            GridCell::with_text(Bytes(now.layout.bytes).to_string(), now.layout.bytes),
            now.layout.files.into(),
            before.layout.extents.into(),
            now.layout.extents.into(),
            now.left_alone.as_deref().unwrap_or_default().into(),
        ]);
    }
    grid
}

/// The unit that is shipped.
const UNIT: &str = include_str!("../../contrib/perflab-prefetch.service");

/// Reads ahead for every program until a stop request.
pub fn run_prefetch_daemon(context: &App, store: TraceStore, args: &DaemonArgs) -> Result<Exit, Failure> {
    if args.print_unit {
        context.print_value("unit", UNIT)?;
        return Ok(Exit::Fine);
    }
    let settings = daemon_settings(store, args)?;
    let stop = run::stop_on_interrupt()?;
    let quiet = context.quiet;
    // Whoever reads this may be gone, or full: no program waits for that, and the daemon does not end.
    let say = move |text: &str| {
        if !quiet {
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    };
    perflab_prefetch::daemon::run_daemon(settings, &stop.flag(), Box::new(say))?;
    Ok(Exit::Fine)
}

/// Guards execs from a daemon, until that one is gone.
pub fn guard_execs(args: &PrefetchGuardArgs) -> Result<Exit, Failure> {
    perflab_prefetch::daemon::run_guard(args.daemon)?;
    Ok(Exit::Fine)
}

fn daemon_settings(store: TraceStore, args: &DaemonArgs) -> Result<DaemonOptions, UsageError> {
    Ok(DaemonOptions {
        // The very file, also after an update has replaced it.
        perflab: "/proc/self/exe".into(),
        store,
        socket: args.socket.clone(),
        on: args.on.iter().map(|place| place.canonicalize().unwrap_or_else(|_| place.clone())).collect(),
        lists: ProgramLists {
            only: resolve_programs("--only", &args.only)?,
            never: resolve_programs("--never", &args.never)?,
        },
        list: args.list.clone(),
        worth: LearnThreshold { wait: args.worth_wait, read: args.worth_read.0, faults: args.worth_faults },
        window: args.duration.into(),
        decide: args.decide.into(),
        bound: args.bound.into(),
        mode: args.mode,
        order: args.order,
        policy: args.policy,
        memory: args.memory.map(|memory| memory.0),
        rate: args.io.map(|rate| rate.0),
    })
}

/// Programs as the kernel will name them: found as the shell finds them, without links; folders too. What is not there yet
/// must be named in full.
fn resolve_programs(option: &str, all: &[PathBuf]) -> Result<Vec<PathBuf>, UsageError> {
    let one = |path: &PathBuf| {
        let found =
            trace_store::find_program_path(path.as_os_str()).ok().or_else(|| path.canonicalize().ok());
        let whole = || Path::new(path).is_absolute().then(|| path.clone());
        let wrong =
            || UsageError::new(format!("{option}: there is no {}", path.display()), "give its full path");
        found.or_else(whole).ok_or_else(wrong)
    };
    all.iter().map(one).collect()
}

/// KiB that come with a page that is touched: that page alone. With 16 a start learns a third more, and faster by little: most
/// pages lie a little ahead of one that was just read, where the arm is anyway.
const SMALL_READ_AHEAD: u64 = 4;

/// Has the kernel read less around what is touched on a program's disk, until what is returned is dropped.
pub fn lower_read_ahead(context: &App, program: &Path) -> Result<TemporarySettings, Failure> {
    let mounts = MountTable::read();
    let path = mounts.find_by_path(program).and_then(mounts::read_ahead_file).ok_or_else(|| {
        let message = format!("--fine: {} lies on no disk whose read-ahead can be set", program.display());
        UsageError::new(message, "learn without --fine")
    })?;
    let now: Option<u64> = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
    // Where it is as low already, too: who holds a setting keeps it, though another who set it ends before.
    let value = now.map_or(SMALL_READ_AHEAD, |now| now.min(SMALL_READ_AHEAD)).to_string();
    let setting = Setting::File { name: path.display().to_string(), path, value };
    TemporarySettings::apply(context, &[setting]).context("--fine turns read-ahead down, which needs root")
}

/// What a cold start needed and did not read: others keep it in memory, mapped, and no dropping of caches changes that.
pub fn never_cold_warning(recording: &IoRecording) -> Option<String> {
    let files = reads_by_file(recording).into_iter().filter(|file| file.class == FileClass::File);
    let warm = files.map(|file| {
        let (used, read) = (file.used.page_count(), file.used.intersection(&file.added).page_count());
        ((used - read) * PAGE, file.name)
    });
    let warm: Vec<(u64, String)> = warm.filter(|(bytes, _)| *bytes > 0).collect();
    let sum = warm.iter().map(|(bytes, _)| bytes).sum();
    let (most, name) = warm.iter().max()?;
    Some(format!(
        "{} more that it needed cannot be made cold, most of it ({}) of {name}",
        Bytes(sum),
        Bytes(*most)
    ))
}
