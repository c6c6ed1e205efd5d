//! One measured startup: caches, what they still hold, what else is going on, reading ahead, the launch. The result is
//! one JSON document.
//!
//! What reads ahead is perflab in one of its prefetch modes, or another maker's program.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::{Args, ValueEnum};
use perflab_model::Setting;
use perflab_model::io_trace::{DeviceNumber, PAGE};
use perflab_model::{Bytes, Nanos};
use perflab_observe::io::{IoTraceScope, IoTracer, MountTable, resolve_files};
use perflab_prefetch::{
    CombinePolicy, ReplayBudget, ReplayMode, TraceStore, build_trace, combine_traces, trace_store,
};
use perflab_settings::drop_caches;
use perflab_startup::{
    CachedFiles, DiskTraffic, PackageRoot, ReadinessCondition, StartupCost, StartupError, StartupResult,
    disk_of_file, measure_startup,
};
use rustix::process::{Pid, Signal};
use serde_json::json;

use crate::app::App;
use crate::failure::{Exit, Failure, FailureContext as _, ProgramNeverStartedError, UsageError};
use crate::instruments::prefetch::{
    ReplayRules, ReplaySession, default_memory_budget, lower_read_ahead, never_cold_warning,
    no_command_error, prepare_replay, relayout_program,
};
use crate::instruments::prefetch_store::nothing_remembered_error;
use crate::laboratory::temporary_settings::TemporarySettings;
use crate::verb::Verb;

/// What is in memory at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CacheState {
    /// nothing
    #[value(name = "3")]
    All,
    /// names and inodes, no pages
    #[value(name = "1")]
    Pages,
    /// everything that its trace knows; where there is none, what the start before left
    Warm,
}

/// Prefetch modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PrefetchMode {
    /// nothing is read ahead
    None,
    /// everything before the program starts
    Sync,
    /// beside the program
    Async,
    /// metadata before it starts, the rest beside it
    Staged,
    /// what --reader says is run before it starts
    Reader,
}

/// Measure one start (what `perflab startup` calls)
#[derive(Debug, Args)]
pub struct StartOnceArgs {
    /// What is in memory at the start
    #[arg(long, value_enum)]
    pub caches: CacheState,
    /// How it is read ahead
    #[arg(long, value_enum)]
    pub prefetch: PrefetchMode,
    /// What reads ahead where that is `reader`
    #[arg(long, required_if_eq("prefetch", "reader"))]
    pub reader: Option<String>,
    /// When the program counts as started: see below
    #[arg(long)]
    pub ready_when: ReadinessCondition,
    /// How long it may take
    #[arg(long)]
    pub limit: Nanos,
    /// Where traces lie
    #[arg(long)]
    pub store: Option<PathBuf>,
    /// Trace it and remember what it read, unless that is known
    #[arg(long)]
    pub learn: bool,
    /// When it is learnt: finely, as `prefetch learn --fine` does
    #[arg(long, requires = "learn")]
    pub fine: bool,
    /// When it is learnt: bring together on the disk what it reads, and learn again
    #[arg(long, requires = "learn")]
    pub relayout: bool,
    /// Start it on this disk: in a root directory whose packages are copied there
    #[arg(long, value_name = "DIR", requires = "package")]
    pub inside: Option<PathBuf>,
    /// What is copied there: a package, with everything that it needs
    #[arg(long, value_delimiter = ',')]
    pub package: Vec<String>,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

impl Verb for StartOnceArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        measure_one_startup(app, self)
    }
}

/// How a mode reads ahead by itself; none where it does not.
pub fn own_replay_mode(choice: PrefetchMode) -> Option<ReplayMode> {
    match choice {
        PrefetchMode::None | PrefetchMode::Reader => None,
        PrefetchMode::Sync => Some(ReplayMode::Sync),
        PrefetchMode::Async => Some(ReplayMode::Async),
        PrefetchMode::Staged => Some(ReplayMode::Staged),
    }
}

/// What is known of a program, ready to be read ahead.
///
/// # Errors
/// Nothing is known, or cannot be read.
pub fn prepare_known_replay(
    context: &App,
    store: &TraceStore,
    program: &Path,
    mode: ReplayMode,
) -> Result<ReplaySession, Failure> {
    let known = store.read_trace(program)?;
    let start = combine_traces(&known, CombinePolicy::Last).ok_or_else(nothing_remembered_error)?;
    let rules = ReplayRules {
        mode,
        order: None,
        memory: default_memory_budget(context)?,
        budget: ReplayBudget { rate: None },
    };
    Ok(prepare_replay(start, rules))
}

/// Another maker's reading ahead, until it has ended; what it leaves running is not waited for. What it prints is no part of
/// our document.
///
/// # Errors
/// It fails, or takes longer than `limit`.
pub fn run_external_reader(reader: &str, limit: Nanos) -> Result<(), Failure> {
    let mut shell = Command::new("sh");
    shell.args(["-c", reader]).stdin(Stdio::null()).stdout(std::io::stderr()).process_group(0);
    let mut child = shell.spawn().context("cannot start sh")?;
    let begun = perflab_observe::monotonic_now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if perflab_observe::monotonic_now().since(begun) > limit => {
                rustix::process::kill_process_group(Pid::from_child(&child), Signal::KILL)
                    .map_err(std::io::Error::from)?;
                child.wait()?;
                return Err(ProgramNeverStartedError(format!(
                    "`{reader}`, which reads ahead, has not ended within {limit}"
                ))
                .into());
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    if !status.success() {
        let failed = format!("`{reader}`, which reads ahead, failed: {status}");
        return Err(ProgramNeverStartedError(failed).into());
    }
    Ok(())
}

/// The system's own I/O after dropping caches is over by then, mostly; what goes on is measured here.
const SETTLE: Duration = Duration::from_millis(300);

/// Measures one startup, while the kernel counts waiting for disks, where it can be made to.
pub fn measure_one_startup(context: &App, args: &StartOnceArgs) -> Result<Exit, Failure> {
    let _counting = enable_delay_accounting(context);
    measure_and_print_startup(context, args)
}

/// Lets the kernel count how long threads wait for disks, which it does not by itself since 5.14.
fn enable_delay_accounting(context: &App) -> Option<TemporarySettings> {
    let setting = Setting::File {
        name: "sysctl kernel.task_delayacct".into(),
        path: context.root.path("/proc/sys/kernel/task_delayacct"),
        value: "1".into(),
    };
    // Without the right, waiting is missing and everything else is there.
    rustix::process::geteuid().is_root().then(|| TemporarySettings::apply(context, &[setting]).ok())?
}

fn measure_and_print_startup(context: &App, args: &StartOnceArgs) -> Result<Exit, Failure> {
    let subject = StartupCommand::from_args(args)?;
    subject.make_first_start()?;
    let store = TraceStore::locate(args.store.as_deref());
    let mode = own_replay_mode(args.prefetch);
    let of_use = mode.is_some() || args.caches == CacheState::Warm;
    if of_use && args.learn && store.read_trace(&subject.trace).is_err() {
        subject.learn_trace(context, &store, args.fine)?;
        if args.relayout {
            let mounts = MountTable::read();
            let disk = mounts.find_by_path(&subject.program).map(|mount| mount.mount_point.as_path());
            relayout_program(context, &store, &subject.trace, CombinePolicy::Last, disk)?;
            subject.learn_trace(context, &store, args.fine)?;
        }
    }
    let known = |mode| prepare_known_replay(context, &store, &subject.trace, mode);
    let reading = mode.map(known).transpose()?;
    let warm = || drop(known(ReplayMode::Sync).map(ReplaySession::read_all_before_start));
    let held = set_cache_state(context, args.caches, warm, || resident_startup_pages(&store, &subject))?;
    note_resident_pages(&held, args.caches);
    let background = background_disk_bytes(subject.disk);
    let begun = perflab_observe::monotonic_now();
    let reading = reading.map(ReplaySession::read_before_start);
    if let Some(reader) = args.reader.as_ref().filter(|_| args.prefetch == PrefetchMode::Reader) {
        run_external_reader(reader, subject.limit)?;
    }
    let ahead = perflab_observe::monotonic_now().since(begun);
    let before = if args.prefetch == PrefetchMode::None { Nanos(0) } else { ahead };
    let mut beside = None;
    let started = subject.start(|| beside = reading.map(ReplaySession::read_beside))?;
    if let Some(beside) = beside {
        beside.stop();
    }
    let Some(wall) = started.wall else { return Ok(fail_startup(&started)) };
    let document = startup_metrics(before, wall, &started.cost, background, &held);
    context.print_text(&without_null_values(document).to_string())?;
    Ok(Exit::Fine)
}

/// What a start took and cost, by the names of metrics.
fn startup_metrics(
    before: Nanos,
    wall: Nanos,
    cost: &StartupCost,
    background: Option<u64>,
    held: &CachedFiles,
) -> serde_json::Value {
    json!({
        "wall": before.seconds() + wall.seconds(),
        "prefetch": before.seconds(),
        "major-faults": cost.major_faults,
        "cpu": cost.cpu.map(Nanos::seconds),
        "delay": cost.delay_ticks.map(|ticks| ticks as f64 / 100.0),
        "requests": cost.reads.map(|reads| reads.requests),
        "read": cost.reads.map(|reads| reads.bytes),
        "background": background,
        "resident-before": held.resident,
    })
}

/// What is in memory of the files that the program's trace knows; of its own file, where there is no trace.
fn resident_startup_pages(store: &TraceStore, subject: &StartupCommand) -> CachedFiles {
    match store.read_trace(&subject.trace).ok().and_then(|known| combine_traces(&known, CombinePolicy::Last))
    {
        Some(start) => {
            CachedFiles::of_files(start.files.iter().map(|file| (Path::new(&file.path), Some(&file.pages))))
        }
        None => CachedFiles::of_files([(subject.program.as_path(), None)]),
    }
}

fn note_resident_pages(held: &CachedFiles, caches: CacheState) {
    let (known, resident) = (Bytes(held.known), Bytes(held.resident));
    match &held.worst {
        Some((worst, most)) if caches != CacheState::Warm => stderr_line!(
            "not all was cold: {resident} of the {known} that it reads were in memory, most of it ({}) from {}",
            Bytes(*most),
            worst.display()
        ),
        _ => stderr_line!("in memory before: {resident} of the {known} that it reads ({} files)", held.files),
    }
}

/// What is not known is not there: a metric that is null would be no number.
fn without_null_values(mut document: serde_json::Value) -> serde_json::Value {
    if let Some(all) = document.as_object_mut() {
        all.retain(|_, value| !value.is_null());
    }
    document
}

fn fail_startup(started: &StartupResult) -> Exit {
    stderr_text!("{}", started.output);
    stderr_line!("error: {}", started.failure.as_deref().unwrap_or("it never started"));
    Exit::WORKLOAD_FAILED
}

/// Brings caches to the requested state, and checks. Another program may have dropped them, or pushed out what lay there, since the
/// start before: what a trace knows is made warm again. Looking brings inodes into memory, and pages that survive being dropped once
/// survive it twice: so pages go first, then it is looked, then everything goes.
fn set_cache_state(
    context: &App,
    caches: CacheState,
    warm: impl FnOnce(),
    look: impl FnOnce() -> CachedFiles,
) -> Result<CachedFiles, Failure> {
    if caches == CacheState::Warm {
        warm();
        return Ok(look());
    }
    drop_caches(&context.root, 1)?;
    let held = look();
    if caches == CacheState::All {
        drop_caches(&context.root, 3)?;
    }
    Ok(held)
}

/// Bytes that the program's disk reads and writes while nothing is started: somebody else's.
fn background_disk_bytes(disk: Option<DeviceNumber>) -> Option<u64> {
    let before = disk.and_then(DiskTraffic::of_disk);
    std::thread::sleep(SETTLE);
    let since = disk.and_then(DiskTraffic::of_disk)?.since(before?);
    Some(since.bytes + since.written)
}

/// What is started, and how it is seen to have.
pub struct StartupCommand {
    command: Vec<OsString>,
    /// its file, where it really lies
    pub program: PathBuf,
    /// under which name it is remembered: its script's where it is an interpreter that is given one
    pub trace: PathBuf,
    /// where its file lies; looked up before caches are dropped, for who looks it up afterwards brings its folders into memory
    pub disk: Option<DeviceNumber>,
    /// on which disk, where that is another than the machine's
    inside: Option<PackageRoot>,
    ready_when: ReadinessCondition,
    /// how long it may take
    pub limit: Nanos,
}

impl StartupCommand {
    /// A command that is started as it is.
    pub fn new(command: &[OsString], ready_when: &ReadinessCondition, limit: Nanos) -> Result<Self, Failure> {
        let program = trace_store::find_program_path(command.first().ok_or_else(no_command_error)?)?;
        let trace = trace_store::trace_name(command)?;
        ready_when.check()?;
        let disk = disk_of_file(&program);
        let ready_when = ready_when.clone();
        Ok(StartupCommand { command: command.into(), disk, program, trace, inside: None, ready_when, limit })
    }

    /// The same, on another disk where that is requested.
    pub fn from_args(args: &StartOnceArgs) -> Result<Self, Failure> {
        let subject = StartupCommand::new(&args.command, &args.ready_when, args.limit)?;
        let Some(disk) = &args.inside else { return Ok(subject) };
        let inside = PackageRoot::prepare(disk, &args.package)?;
        let program = inside.copy_path(&subject.program);
        if !program.is_file() {
            let message =
                format!("{} belongs to none of {}", subject.program.display(), args.package.join(", "));
            return Err(UsageError::new(message, "`dpkg -S FILE` names its package").into());
        }
        let (command, disk) = (inside.command_in_root(&subject.command), disk_of_file(&program));
        let trace = inside.copy_path(&subject.trace);
        Ok(StartupCommand { command, program, trace, disk, inside: Some(inside), ..subject })
    }

    /// The first start of an application on a disk is no measured one, however it ends.
    pub fn make_first_start(&self) -> Result<(), Failure> {
        let Some(inside) = &self.inside else { return Ok(()) };
        inside.run_first_startup(&self.program, || self.start(|| ()).map(drop).map_err(Failure::from))
    }

    /// Starts it; `beside` is called once it runs.
    pub fn start(&self, beside: impl FnOnce()) -> Result<StartupResult, StartupError> {
        measure_startup(&self.command, &self.ready_when, self.limit, self.disk, beside)
    }

    /// The start that learns: cold, traced, remembered; `fine` where little is to come with what is touched.
    pub fn learn_trace(&self, context: &App, store: &TraceStore, fine: bool) -> Result<(), Failure> {
        let finely = fine.then(|| lower_read_ahead(context, &self.program)).transpose()?;
        let tracer = IoTracer::start(IoTraceScope::Children)?;
        drop_caches(&context.root, 3)?;
        let started = self.start(|| ())?;
        drop(finely);
        let mut recording = tracer.stop()?;
        if let Some(failure) = started.failure {
            stderr_text!("{}", started.output);
            return Err(ProgramNeverStartedError(failure).into());
        }
        resolve_files(&mut recording);
        let learnt = build_trace(&recording)?;
        context.note(format!(
            "learnt: {} of {} files, {} of metadata; {}",
            Bytes(learnt.page_count() * PAGE),
            learnt.files.len(),
            Bytes(learnt.metadata_page_count() * PAGE),
            never_cold_warning(&recording)
                .unwrap_or_else(|| "nothing that it needed had stayed in memory".into()),
        ));
        store.add_startup(&self.trace, learnt)?;
        Ok(())
    }
}
