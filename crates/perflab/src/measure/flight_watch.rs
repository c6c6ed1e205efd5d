//! `perflab watch --keep 60s --when CONDITION`: a flight recorder's options, the sources of its stream, and what it prints.

use std::ffi::OsString;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use clap::Args;
use perflab_analyze::trigger::{ConditionKind, TriggerCondition, TriggerWatch};
use perflab_conduct::{LocalMachine, conduct_run};
use perflab_model::study::CounterGroups;
use perflab_model::untrusted_text::escape_controls_in_line;
use perflab_model::{
    Bytes, Manifest, Nanos, Outcome, Refusal, RunEvent, RunEventKind, SeriesSchema, StopRequest, Trigger,
    TriggerFinding, TriggerRecord,
};
use perflab_observe::{KernelLog, KernelLogFollower, find_monitor, monotonic_now, open_monitor};
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use serde::Serialize;

use crate::app::App;
use crate::failure::{Exit, Failure, FailureContext as _, UnexpectedError, UsageError};
use crate::measure::command_study::{RecordedCommand, add_counters};
use crate::measure::flight_recorder::{FlightLimits, FlightRecord, FlightRecorder, FlightSummary};
use crate::measure::run;
use crate::signals::UserSignalListener;

/// Options of the flight recorder.
#[derive(Debug, Args)]
#[command(next_help_heading = "Flight recorder")]
pub struct FlightArgs {
    /// Hold so much in memory, and write it when --when happens: before that, nothing is written
    #[arg(long, value_name = "TIME", requires = "when", conflicts_with = "quiet_time")]
    pub keep: Option<Nanos>,
    /// What to wait for (repeatable; the first to happen counts): a column over or under a bound
    /// (`vmstat.pgscan_direct > 1000/s`, `meminfo.MemAvailable < 200MiB`, `diskstats[vda].read_ios > 500/s`),
    /// `kernel-log:KIND` as of run --fail-if, `kernel-log:any`, `kernel-log:/REGEX/`, `exit` or `exit:failed` of the
    /// command, `signal` (SIGUSR1)
    #[arg(long, value_name = "CONDITION", requires = "keep", allow_hyphen_values = true)]
    pub when: Vec<TriggerCondition>,
    /// How long to go on recording after it happened
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "keep")]
    pub after: Nanos,
    /// Record at most so many times; without a command, that is the end
    #[arg(long, value_name = "N", default_value = "20", requires = "keep",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub times: u32,
    /// The shortest time between two recordings; signals and the command's end do not wait for it
    #[arg(long, value_name = "TIME", default_value = "60s", requires = "keep")]
    pub pause: Nanos,
    /// Memory for what is held; where that is too little, less is held
    #[arg(long, value_name = "SIZE", default_value = "64MiB", requires = "keep")]
    pub memory: Bytes,
}

impl FlightArgs {
    /// Monitors that conditions need.
    pub fn needed_monitors(&self) -> Vec<&str> {
        let monitor = |condition: &'_ TriggerCondition| match &condition.kind {
            ConditionKind::Column(bound) => find_monitor(bound.monitor()).ok().map(|file| file.name),
            _ => None,
        };
        self.when.iter().filter_map(monitor).collect()
    }

    fn has(&self, is_wanted: impl Fn(&ConditionKind) -> bool) -> bool {
        self.when.iter().any(|condition| is_wanted(&condition.kind))
    }
}

/// What is watched while something is waited for.
pub struct WatchedSystem<'a> {
    /// the command; empty for the system as it is
    pub command: &'a [OsString],
    /// the time between readings
    pub every: Nanos,
    /// how long at most
    pub duration: Option<Nanos>,
    /// the label of each recording
    pub label: Option<&'a str>,
    /// the study's table of monitors
    pub tables: &'a str,
    /// what is counted besides
    pub counters: Option<&'a CounterGroups>,
}

/// Waits, and records what is waited for.
pub fn record_flights(
    context: &App,
    watched: &WatchedSystem<'_>,
    keep: Nanos,
    args: &FlightArgs,
) -> Result<Exit, Failure> {
    check_arguments(watched, keep, args)?;
    let schema_of = |name: &str| -> Result<SeriesSchema, Failure> {
        let monitor = open_monitor(find_monitor(name)?, &context.root, watched.every)?;
        Ok(monitor.schema().clone())
    };
    let watch = TriggerWatch::new(&args.when, schema_of)?;
    let kernel_log = open_kernel_log(context, args)?;
    let archive = context.archive()?;
    archive.ensure_writable()?;
    let recorded = RecordedCommand {
        verb: "watch",
        title: "Flight recording",
        command: watched.command,
        pid: None,
        duration: watched.duration,
        quiet_time: Nanos(0),
        label: watched.label,
        tables: watched.tables,
    };
    let limits = FlightLimits {
        keep,
        after: args.after,
        times: args.times,
        has_command: !watched.command.is_empty(),
        pause: args.pause,
        memory: args.memory,
    };
    // The log is followed all the while, not read when an iteration ends.
    recorded.written_study()?.prepare(
        context,
        |study| {
            study.kernel_log = false;
            let groups = watched.counters.into_iter();
            groups.for_each(|groups| add_counters(study, groups, watched.every, watched.command));
        },
        |machine, manifest| {
            let stop = run::stop_on_interrupt()?;
            // Without a command there is nothing whose end could be met late: `--duration` is the end.
            let after = if watched.command.is_empty() { Nanos(0) } else { args.after };
            let machine = LocalMachine { quiet_after: Some(after), ..machine };
            let recorder = FlightRecorder::new(archive, limits, watch, &stop, context.quiet);
            let (sink, events) = channel();
            let sources = start_sources(kernel_log, args, &sink)?;
            announce_flights(context, args, limits);
            let run = FlightRun { machine: &machine, manifest: &manifest, stop: &stop };
            let printer = FlightPrinter::new(context);
            let (recorder, mut printer) = run.feed((sink, events), sources, recorder, printer)?;
            let (last, summary) = recorder.finish();
            last.map_or(Ok(()), |record| printer.print(record))?;
            conclude_flights(context, watched, &manifest, printer, summary)
        },
    )
}

fn check_arguments(watched: &WatchedSystem<'_>, keep: Nanos, args: &FlightArgs) -> Result<(), UsageError> {
    if keep < watched.every {
        return Err(UsageError::new(
            format!("--keep {} is shorter than the time between readings, {}", keep, watched.every),
            "hold several readings, such as --keep 60s",
        ));
    }
    if watched.command.is_empty() && args.has(|kind| matches!(kind, ConditionKind::Exit(_))) {
        return Err(UsageError::new(
            "there is no command whose end could be waited for",
            "write it after --, or leave --when exit out",
        ));
    }
    Ok(())
}

/// The log, which is part of every recording where it can be read; a condition about it needs it.
fn open_kernel_log(context: &App, args: &FlightArgs) -> Result<Option<KernelLog>, Failure> {
    match KernelLog::open_at_end(&context.root) {
        Ok(log) => Ok(Some(log)),
        Err(error) if args.has(|kind| matches!(kind, ConditionKind::KernelLog(_))) => {
            let refusal = Refusal {
                what: format!("the kernel's log cannot be read: /dev/kmsg: {error}"),
                hint: "be root, or leave --when kernel-log out".into(),
            };
            Err(perflab_conduct::ConductError::Refused(vec![refusal]).into())
        }
        Err(_) => Ok(None),
    }
}

fn announce_flights(context: &App, args: &FlightArgs, limits: FlightLimits) {
    let conditions: Vec<String> = args.when.iter().map(ToString::to_string).collect();
    context.note_line(&format!("waiting for {}", conditions.join(" or ")));
    let FlightLimits { keep, after, times, has_command: _, pause, memory } = limits;
    let times = if times == 1 { "once".into() } else { format!("at most {times} times, {pause} apart") };
    context.note(format!("held: {keep} in at most {memory}; recorded: that and {after} more, {times}"));
    if args.has(|kind| matches!(kind, ConditionKind::Signal)) {
        let pid = std::process::id();
        context.note(format!("pid {pid}: `kill -USR1 {pid}` records"));
    }
}

/// What sends events beside the run; dropped with it.
type OtherSources = (Option<KernelLogFollower>, Option<UserSignalListener>);

fn start_sources(
    kernel_log: Option<KernelLog>,
    args: &FlightArgs,
    sink: &Sender<RunEvent>,
) -> Result<OtherSources, Failure> {
    let follow = |log| KernelLogFollower::start(log, sink.clone());
    let follower = kernel_log.map(follow).transpose().context("cannot follow the kernel's log")?;
    if follower.is_none() {
        let (name, text) =
            (RunEventKind::KERNEL_LOG.into(), format!("{}]\n", RunEventKind::KERNEL_LOG_UNREAD));
        // Whoever compares must know that what is missing may have been printed.
        let _ = sink.send(RunEvent::new(monotonic_now(), RunEventKind::Output { slot: None, name, text }));
    }
    let is_asked = args.has(|kind| matches!(kind, ConditionKind::Signal));
    let signals = is_asked.then(|| hear_signals(sink.clone())).transpose().context("cannot hear SIGUSR1")?;
    Ok((follower, signals))
}

/// The run whose stream is recorded.
struct FlightRun<'a> {
    machine: &'a LocalMachine,
    manifest: &'a Manifest,
    stop: &'a StopRequest,
}

/// How often time is looked at where nothing comes.
const LOOK: Duration = Duration::from_millis(200);

impl FlightRun<'_> {
    /// Feeds the recorder until the run has ended, and prints each recording.
    fn feed<'b>(
        &self,
        (sink, events): (Sender<RunEvent>, Receiver<RunEvent>),
        sources: OtherSources,
        mut recorder: FlightRecorder<'b>,
        mut printer: FlightPrinter<'b>,
    ) -> Result<(FlightRecorder<'b>, FlightPrinter<'b>), Failure> {
        let FlightRun { machine, manifest, stop } = *self;
        let guard = run::start_execution_guard();
        let (ended, printed) = std::thread::scope(|scope| {
            let source = scope.spawn(move || {
                let ended = conduct_run(machine, manifest, &Default::default(), &sink, stop);
                // The stream ends with the run.
                drop((sources, sink));
                ended
            });
            let printed = feed_events(&events, &mut recorder, &mut printer, stop);
            (source.join(), printed)
        });
        drop(guard);
        ended.map_err(|_| UnexpectedError("the measuring thread panicked: please report this".into()))??;
        printed?;
        Ok((recorder, printer))
    }
}

fn hear_signals(sink: Sender<RunEvent>) -> std::io::Result<UserSignalListener> {
    UserSignalListener::start(move || {
        let asked = Trigger { condition: "signal".into(), found: TriggerFinding::Signal };
        // The stream is over.
        let _ = sink.send(RunEvent::new(monotonic_now(), RunEventKind::Triggered(asked)));
    })
}

/// Feeds the recorder until the stream ends; a result that cannot be printed stops the run, cleanly.
fn feed_events(
    events: &Receiver<RunEvent>,
    recorder: &mut FlightRecorder<'_>,
    printer: &mut FlightPrinter<'_>,
    stop: &StopRequest,
) -> Result<(), Failure> {
    let mut printed = Ok(());
    let mut print = |record: Option<FlightRecord>, recorder: &FlightRecorder<'_>| {
        let Some(record) = record.filter(|_| printed.is_ok()) else { return };
        printed = recorder.suspend_line(|| printer.print(record));
        if printed.is_err() {
            stop.request_stop();
        }
    };
    loop {
        match events.recv_timeout(LOOK) {
            Ok(event) => {
                for event in [event].into_iter().chain(events.try_iter()) {
                    let done = recorder.consume(event);
                    print(done, recorder);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let done = recorder.pass_time();
        print(done, recorder);
    }
    printed
}

/// The document of `--format json`, one a recording.
#[derive(Serialize)]
struct FlightDocument<'a> {
    version: u32,
    run: &'a str,
    path: String,
    began: String,
    before_s: f64,
    after_s: f64,
    /// what was to be held before, where memory allowed less
    #[serde(skip_serializing_if = "Option::is_none")]
    wanted_before_s: Option<f64>,
    triggers: Vec<TriggerDocument<'a>>,
}

#[derive(Serialize)]
struct TriggerDocument<'a> {
    after_s: f64,
    #[serde(flatten)]
    trigger: &'a Trigger,
}

/// Prints recordings as they end: a line for people, a line of JSON, or a table once all are made.
struct FlightPrinter<'a> {
    context: &'a App,
    grid: Grid,
}

impl<'a> FlightPrinter<'a> {
    fn new(context: &'a App) -> Self {
        let columns = ["run", "began", "condition", "found"].map(GridColumn::left);
        let grid = Grid::new(columns.into_iter().chain(["before", "after"].map(GridColumn::right)));
        FlightPrinter { context, grid }
    }

    fn print(&mut self, record: FlightRecord) -> Result<(), Failure> {
        let FlightRecord { run, triggers, begin, end, began, wanted } = record;
        let Some(TriggerRecord { at, trigger }) = triggers.first() else { return Ok(()) };
        let (before, after) = (at.since(begin), end.since(*at));
        let time = jiff::Timestamp::from_nanosecond(i128::from(began.0)).unwrap_or_default();
        match self.context.format {
            OutputFormat::Json => {
                let documents = triggers.iter().map(|one| TriggerDocument {
                    after_s: one.at.since(begin).seconds(),
                    trigger: &one.trigger,
                });
                let document = FlightDocument {
                    version: 1,
                    run: run.id(),
                    path: run.path().display().to_string(),
                    began: time.to_string(),
                    before_s: before.seconds(),
                    after_s: after.seconds(),
                    wanted_before_s: wanted.map(Nanos::seconds),
                    triggers: documents.collect(),
                };
                self.context.print_text(&serde_json::to_string(&document)?)
            }
            OutputFormat::Table => {
                let others = triggers.len() - 1;
                let others = if others == 0 { String::new() } else { format!(" and {others} more") };
                let short = wanted.map(|wanted| format!(" of {wanted}")).unwrap_or_default();
                let time = time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S");
                let text = escape_controls_in_line(&trigger.describe()).into_owned();
                let (run, path) = (run.short_id(), run.path().display());
                self.context.print_text(&format!(
                    "{run}  from {time}: {text}{others}; {before}{short} before, {after} after; {path}"
                ))
            }
            _ => {
                let found = escape_controls_in_line(&trigger.found.describe()).into_owned();
                self.grid.add_row([
                    run.short_id().into(),
                    time.to_string().into(),
                    trigger.condition.as_str().into(),
                    found.into(),
                    GridCell::quantity(before.seconds(), "s"),
                    GridCell::quantity(after.seconds(), "s"),
                ]);
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<(), Failure> {
        match self.context.format {
            OutputFormat::Table | OutputFormat::Json => Ok(()),
            _ => self.context.print_grid(&self.grid),
        }
    }
}

/// How many there are, what waiting cost, and how the command ended.
fn conclude_flights(
    context: &App,
    watched: &WatchedSystem<'_>,
    manifest: &Manifest,
    printer: FlightPrinter<'_>,
    summary: FlightSummary,
) -> Result<Exit, Failure> {
    printer.finish()?;
    let made = match summary.made {
        0 => "no recording was made".into(),
        1 => "1 recording was made".into(),
        many => format!("{many} recordings were made"),
    };
    context.note(format!("{made}; at most {} were held in memory", summary.most_bytes));
    if let Some(overhead) = summary.overhead {
        context.note(crate::see::show::overhead_line(&Manifest { overhead, ..manifest.clone() }));
    }
    if let Some(failure) = summary.failure {
        return Err(failure);
    }
    let is_good = match summary.outcome {
        None | Some(Outcome::Ok) => true,
        Some(_) => false,
    };
    if watched.command.is_empty() || is_good {
        return Ok(Exit::Fine);
    }
    context.note("the command failed or was stopped");
    Ok(Exit::WORKLOAD_FAILED)
}
