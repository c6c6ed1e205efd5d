//! `perflab trace attach`: the operations of a program that knows nothing of it, by uprobes on its functions and USDT
//! probes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use optrace::{EntryCounts, ProbeMark, ProbeTrace, StackPosition, StampCost, Vocabulary};
use perflab_archive::new_run_id;
use perflab_import::ImportError;
use perflab_import::{ImportOptions, ProbedRun, probed_program_source};
use perflab_model::Nanos;
use perflab_model::StopRequest;
use perflab_observe::probes::{
    ProbeCost, ProbeCostMeter, ProbeEvent, ProbeEventKind, ProbeRecorder, ProbeRecordingEnd, ProbedProgram,
};
use perflab_present::comparison::OutputFormat;
use serde_json::json;

use crate::app::App;
use crate::failure::{Exit, Failure, FailureContext as _, UsageError};
use crate::instruments::probed_binary::{ProbeSites, ProgramBinaries};
use crate::instruments::trace_summary::print_trace_summary;
use crate::instruments::watched_process::{AttachArgs, WatchSlowdown, WatchedProcess, find_command};
use crate::keep::imported_runs::record_source;
use crate::measure::run;
use perflab_model::quantity::{format_quantity, format_share};

/// How often what the kernel recorded is taken out of its buffers.
const ROUND: Duration = Duration::from_millis(20);

/// How often what an event costs is measured again.
const MEASURED_EVERY: Duration = Duration::from_secs(1);

/// Watches a program, keeps its operations as a run, and says what watching cost.
pub fn attach_to_program(context: &App, args: &AttachArgs) -> Result<Exit, Failure> {
    let program = ProbedProgram::read(&find_program_file(args)?)?;
    if args.list {
        return list_probe_points(context, &program);
    }
    if args.operation.is_empty() {
        let hint = "give at least one --operation [NAME=]BEGIN[,END]; --list names the functions and probes";
        return Err(UsageError::new("no operation is named", hint).into());
    }
    let places =
        ProbeSites::find(&mut ProgramBinaries::open(program, args.pid), &args.operation, &args.span)?;
    let limit = args.duration;
    let limit = limit.map(Duration::from);
    context.archive()?.ensure_writable()?;
    let slowdown = WatchSlowdown::new(args.max_slowdown);
    let mut meter = ProbeCostMeter::new(&context.root)?;
    let cost = meter.measure(ProbeCostMeter::FULL_ROUNDS);
    name_costs(&places, &cost).iter().for_each(|one| context.note(one));
    let stop = run::stop_on_interrupt()?;
    let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let began = Nanos(began);
    let boot = perflab_observe::read_boot_id(&context.root);
    let folder = perflab_settings::TemporaryFolder::create(
        &perflab_observe::own_directories::state_directory(),
        &boot,
    )
    .context("cannot make a folder for the trace")?;
    let path = folder.path().join("trace");
    let mut process = WatchedProcess::from_args(args)?;
    let watching = WatchSession::new(context, &path, &places, &mut process, (meter, cost), slowdown);
    let watched =
        watching.and_then(|watching| watching.watch(&stop, limit)).inspect_err(|_| process.kill())?;
    let ended = process.ended.clone().filter(|_| process.failed || args.pid.is_some());
    if let Some(ended) = &ended {
        context.note(format!("{} {ended} after {} of watching", process.name, Nanos::from(watched.duration)));
    }
    if watched.events == 0 {
        if process.failed {
            return Ok(Exit::WORKLOAD_FAILED);
        }
        return Err(no_event_error(&places).into());
    }
    let record = watched.watched_record(args, &places, process.name.clone(), (began, ended));
    let own = ImportOptions { label: args.label.clone(), id: new_run_id(), ..ImportOptions::default() };
    let mut source = probed_program_source(&path, &own, &record)?;
    let run = record_source(&context.archive()?, &mut source)?.recorder.finish()?;
    print_trace_summary(context, &run)?;
    watched.entries.iter().for_each(|(name, entries)| context.note(format!("{name}: {entries}")));
    watched.note_watch_cost(context);
    Ok(if process.failed { Exit::WORKLOAD_FAILED } else { Exit::Fine })
}

fn no_event_error(places: &ProbeSites) -> UsageError {
    let files: Vec<String> = places.files().iter().map(|path| path.display().to_string()).collect();
    let hint = "the program never reached a probe, or --program names a file that it does not run";
    UsageError::new(format!("no event came from {}", files.join(", ")), hint)
}

/// What became of the entries of a name; without what there was none of.
fn entries_text(entries: &EntryCounts) -> String {
    let kinds = [
        (entries.abandoned, "abandoned"),
        (entries.nested, "nested"),
        (entries.outside, "outside of operations"),
        (entries.lost, "lost"),
        (entries.open, "still open"),
    ];
    let rest = kinds.iter().filter(|(count, _)| *count > 0).map(|(count, kind)| format!(" + {count} {kind}"));
    let unbegun = match entries.unbegun {
        0 => String::new(),
        ends => format!("; {ends} ends without a begin, which not all calls pass"),
    };
    format!("{} entries = {} ended{}{unbegun}", entries.entered, entries.ended, rest.collect::<String>())
}

/// What the events of a name cost.
struct NameCost {
    name: String,
    /// the file in which it is
    path: PathBuf,
    /// nanoseconds where it begins, of several places at the dearest
    entry: f64,
    /// where it ends
    exit: f64,
    /// what is taken off
    taken_off: StampCost,
}

impl std::fmt::Display for NameCost {
    /// Told before watching begins.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let both = self.entry + self.exit;
        write!(
            f,
            "`{}` in {}: {} where it begins and {} where it ends, measured here; 1,000 of them in a second of the program's CPU \
             time make it {} slower",
            self.name,
            self.path.display(),
            format_quantity(self.entry, "ns"),
            format_quantity(self.exit, "ns"),
            format_share(both / 1e6)
        )
    }
}

/// Of each name, operations first.
fn name_costs(places: &ProbeSites, cost: &ProbeCost) -> Vec<NameCost> {
    let of = |(name, begin, end): (&String, &perflab_observe::probes::ProbePoint, _)| {
        let end: &perflab_observe::probes::ProbePoint = end;
        let (entry, exit) = (cost.begin_cost(&begin.sites), cost.end_cost(&end.sites));
        // The end's time is taken before its instruction is stepped over, the begin's as well: only its own step lies between.
        let between = cost.between.min(cost.emulated + exit) + (entry - cost.emulated).max(0.0);
        let taken_off = StampCost { between, pair: entry + exit };
        NameCost { name: name.clone(), path: begin.path.clone(), entry, exit, taken_off }
    };
    places.begin_end_pairs().map(of).collect()
}

/// What is taken off of each name, operations first.
fn taken_off_costs(places: &ProbeSites, cost: &ProbeCost) -> Vec<StampCost> {
    name_costs(places, cost).into_iter().map(|cost| cost.taken_off).collect()
}

/// The file with the program.
fn find_program_file(args: &AttachArgs) -> Result<PathBuf, Failure> {
    match (&args.program, args.pid, args.command.first()) {
        (Some(path), _, _) => {
            std::fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))
        }
        (None, Some(pid), _) => {
            let link = PathBuf::from(format!("/proc/{pid}/exe"));
            let path = std::fs::read_link(&link).map_err(|_| {
                UsageError::new(format!("there is no process {pid}, or it is not yours"), "see `ps -e`")
            })?;
            // One that was deleted, or lies in a container, is still behind the link.
            Ok(if path.exists() { path } else { link })
        }
        (None, None, Some(command)) => find_command(command),
        (None, None, None) => Err(UsageError::new(
            "nothing to watch",
            "give a command behind `--`, or --pid, or --list with --program",
        )
        .into()),
    }
}

fn list_probe_points(context: &App, program: &ProbedProgram) -> Result<Exit, Failure> {
    let mut functions: Vec<String> = program.function_names().map(ToString::to_string).collect();
    if functions.is_empty() {
        functions.extend(program.function_addresses().map(|address| format!("{address:#x}")));
    }
    let probes: Vec<String> = program.probe_names().map(ToString::to_string).collect();
    if context.format == OutputFormat::Json {
        context.print_json(&json!({ "probes": probes, "functions": functions }))?;
        return Ok(Exit::Fine);
    }
    let functions = functions.iter().map(|name| format!("function  {name}"));
    let lines: Vec<String> = probes.iter().map(|name| format!("USDT      {name}")).chain(functions).collect();
    context.print_text(&lines.join("\n"))?;
    Ok(Exit::Fine)
}

/// A process being watched.
struct WatchSession<'a> {
    context: &'a App,
    sites: &'a ProbeSites,
    process: &'a mut WatchedProcess,
    writer: ProbeTraceWriter<'a>,
    /// none while the program is left alone
    attached: Option<ProbeRecorder>,
    slowdown: WatchSlowdown,
    meter: ProbeCostMeter,
    costs: MeasuredEventCosts,
    last_measured: Instant,
    /// how often threads came by places with a condition, and what the kernel had no room for
    condition_hits: u64,
    lost: u64,
    others: u64,
    /// the probes could not be put back
    given_up: bool,
}

/// What events cost while a program was watched. It is not the same at all times.
#[derive(Debug, Clone, Copy)]
struct MeasuredEventCosts {
    /// before it began, the last time meanwhile, and when it ended
    first: ProbeCost,
    current: ProbeCost,
    last: ProbeCost,
}

impl MeasuredEventCosts {
    /// The larger of what was measured before and at the end: what is taken off, and judged by.
    fn dearest(&self) -> ProbeCost {
        self.first.larger_of_each(self.last)
    }

    /// The dearest, the first and the last.
    fn all_costs(&self) -> [ProbeCost; 3] {
        [self.dearest(), self.first, self.last]
    }
}

/// What came of watching.
struct WatchResult {
    duration: Duration,
    events: u64,
    threads: usize,
    lost: u64,
    others: u64,
    /// of each name, what became of its entries
    entries: Vec<(String, String)>,
    slowdown: WatchSlowdown,
    costs: MeasuredEventCosts,
}

impl<'a> WatchSession<'a> {
    fn new(
        context: &'a App,
        path: &Path,
        places: &'a ProbeSites,
        process: &'a mut WatchedProcess,
        (meter, cost): (ProbeCostMeter, ProbeCost),
        slowdown: WatchSlowdown,
    ) -> Result<Self, Failure> {
        let attached = Some(ProbeRecorder::attach(&context.root, process.pid, &places.places)?);
        let pen = ProbeTraceWriter::new(path, places, process, &cost)?;
        Ok(Self {
            context,
            sites: places,
            process,
            writer: pen,
            attached,
            slowdown,
            meter,
            costs: MeasuredEventCosts { first: cost, current: cost, last: cost },
            last_measured: Instant::now(),
            condition_hits: 0,
            lost: 0,
            others: 0,
            given_up: false,
        })
    }

    /// Until it ends, somebody stops it, or the time is over.
    fn watch(mut self, stop: &StopRequest, limit: Option<Duration>) -> Result<WatchResult, Failure> {
        self.slowdown.add_interval(self.process.cpu_time(), 0.0, true, Duration::ZERO);
        if let Some(attached) = &self.attached {
            attached.start();
        }
        let since = Instant::now();
        self.process.resume()?;
        let (mut round, mut is_reported) = (Instant::now(), false);
        while self.process.is_alive()?
            && !stop.is_requested()
            && limit.is_none_or(|limit| since.elapsed() < limit)
        {
            std::thread::sleep(ROUND);
            if let Some(attached) = &mut self.attached {
                attached.drain_events(|seen| self.writer.write_event(seen));
            }
            self.note_execs();
            if self.last_measured.elapsed() > MEASURED_EVERY {
                self.measure_event_cost(ProbeCostMeter::QUICK_ROUNDS);
            }
            self.account_probe_cost(&mut round);
            if !is_reported && self.slowdown.is_known() {
                is_reported = true;
                self.context.note(format!(
                    "while watched, the program is {} slower",
                    self.slowdown.text_while_watched()
                ));
            }
            self.keep_within_limit(&mut round)?;
        }
        let took = since.elapsed();
        self.account_probe_cost(&mut round);
        // While it still is as it was.
        self.measure_event_cost(ProbeCostMeter::FULL_ROUNDS);
        self.costs.last = self.costs.current;
        self.detach();
        self.process.kill();
        self.writer.set_removed_costs(&self.costs.dearest());
        let (operations, spans) = self.writer.stamps.entry_counts();
        let none = vec![EntryCounts::default(); self.sites.operations.len().saturating_sub(operations.len())];
        let all = operations.iter().chain(&none).chain(&spans).map(entries_text);
        let names = self.sites.operations.iter().chain(&self.sites.spans);
        let entries = names.cloned().zip(all).collect();
        let (events, threads) = (self.writer.events, self.writer.threads.len());
        let lost = self.writer.stamps.finish().map_err(ImportError::Trace)?.events_lost;
        Ok(WatchResult {
            duration: took,
            events,
            threads,
            lost,
            others: self.others,
            entries,
            slowdown: self.slowdown,
            costs: self.costs,
        })
    }

    /// What an event costs from now on.
    fn measure_event_cost(&mut self, rounds: usize) {
        self.costs.current = self.meter.measure(rounds);
        self.writer.set_event_cost(&self.costs.current);
        self.last_measured = Instant::now();
    }

    /// What the probes cost since the last time.
    fn account_probe_cost(&mut self, round: &mut Instant) {
        let hits = self.attached.as_ref().map_or(self.condition_hits, ProbeRecorder::condition_hits);
        let looked_at = hits.saturating_sub(self.condition_hits) as f64;
        self.condition_hits = hits;
        let lost = self.attached.as_ref().map_or(self.lost, ProbeRecorder::reported_lost_events);
        let untold = lost.saturating_sub(self.lost) as f64;
        self.lost = lost;
        let spent =
            std::mem::take(&mut self.writer.spent) + (looked_at + untold) * self.costs.current.emulated;
        self.slowdown.add_interval(self.process.cpu_time(), spent, self.attached.is_some(), round.elapsed());
        *round = Instant::now();
    }

    /// Takes the probes off a program that is slower than it may be, and puts them back.
    fn keep_within_limit(&mut self, round: &mut Instant) -> Result<(), Failure> {
        let watched = self.attached.is_some();
        match (watched, self.slowdown.allows_watching(watched)) {
            (true, false) => {
                if self.slowdown.watched_share().is_none() {
                    self.context.note(format!(
                        "that is {} slower, more than --max-slowdown: from now on it is watched for part of the time; then \
                         every operation is recorded",
                        self.slowdown.text_while_watched()
                    ));
                }
                self.account_probe_cost(round);
                self.detach();
                self.writer.stamps.pause();
                self.slowdown.add_probe_change(self.process.cpu_time(), round.elapsed());
                *round = Instant::now();
            }
            (false, true) if !self.given_up && self.process.is_alive()? => {
                let attached =
                    ProbeRecorder::attach(&self.context.root, self.process.pid, &self.sites.places);
                match attached {
                    Ok(attached) => {
                        attached.start();
                        self.attached = Some(attached);
                        (self.condition_hits, self.lost) = (0, 0);
                        self.slowdown.add_probe_change(self.process.cpu_time(), round.elapsed());
                    }
                    // It ended while it was looked at, or the kernel has no room: it goes on without us.
                    Err(error) => {
                        self.given_up = true;
                        self.context.note(format!("it is no longer watched: {error}"));
                    }
                }
                *round = Instant::now();
            }
            _ => {}
        }
        Ok(())
    }

    fn detach(&mut self) {
        let Some(attached) = self.attached.take() else { return };
        let ProbeRecordingEnd { lost, others } = attached.stop(|seen| self.writer.write_event(seen));
        self.writer.stamps.add_lost(lost);
        self.others += others;
    }

    /// That it became another program is reported once for each time.
    fn note_execs(&mut self) {
        for _ in 0..std::mem::take(&mut self.writer.execs) {
            let name = self.process.program_name();
            let files: Vec<String> =
                self.sites.files().iter().map(|path| path.display().to_string()).collect();
            self.context.note(format!(
                "{} became another program, {name}: open operations are abandoned; it is watched where it runs {}",
                self.process.name,
                files.join(", ")
            ));
        }
    }
}

impl WatchResult {
    /// What the run keeps besides the trace.
    fn watched_record(
        &self,
        args: &AttachArgs,
        places: &ProbeSites,
        command: String,
        (began, ended): (Nanos, Option<String>),
    ) -> ProbedRun {
        let asked: Vec<&str> = args.operation.iter().chain(&args.span).map(String::as_str).collect();
        let costs = name_costs(places, &self.costs.dearest());
        ProbedRun {
            command,
            places: asked.join(" "),
            event_costs: self.costs.all_costs().map(|cost| cost.emulated),
            costs: costs.into_iter().map(|one| (one.name, one.entry, one.exit)).collect(),
            entries: self.entries.clone(),
            began,
            ended,
            slowdown: self.slowdown.overall_text().unwrap_or_else(|| "too short to tell".into()),
            share: self.slowdown.watched_share(),
        }
    }

    fn note_watch_cost(&self, context: &App) {
        let both = |of: fn(&ProbeCost) -> f64| {
            let [_, first, last] = self.costs.all_costs().map(|cost| format_quantity(of(&cost), "ns"));
            format!("{first} before and {last} at the end")
        };
        context.note(format!(
            "an event cost {} (at an instruction that must be stepped over {}, at a return {}); the larger is taken off",
            both(|cost| cost.emulated),
            both(|cost| cost.stepped),
            both(|cost| cost.returned)
        ));
        let slower = self
            .slowdown
            .overall_text()
            .map_or(String::new(), |all| format!(": the program was {all} slower"));
        let share = self.slowdown.watched_share().map_or(String::new(), |share| {
            format!("; it was watched for {} of the time, limited by --max-slowdown", format_share(share))
        });
        context.note(format!(
            "{} events of {} threads in {}{slower}{share}; {} events were lost",
            self.events,
            self.threads,
            Nanos::from(self.duration),
            self.lost
        ));
        if self.others > 0 {
            context.note(format!(
                "{} events more came from other processes that run the same file, and were not kept: they paid for them, too",
                self.others
            ));
        }
    }
}

/// Writes what was seen into a trace.
struct ProbeTraceWriter<'a> {
    stamps: ProbeTrace,
    sites: &'a ProbeSites,
    events: u64,
    threads: HashSet<i32>,
    /// nanoseconds of an event at each place
    costs: Vec<f64>,
    /// nanoseconds of all since it was last asked
    spent: f64,
    /// whether it is the program that was asked for: a command is a shell until its first exec
    has_begun: bool,
    /// how often it became another program since it was last asked
    execs: u32,
}

impl<'a> ProbeTraceWriter<'a> {
    fn new(
        path: &Path,
        places: &'a ProbeSites,
        process: &WatchedProcess,
        cost: &ProbeCost,
    ) -> Result<ProbeTraceWriter<'a>, Failure> {
        let texts = |names: &'a [String]| names.iter().map(String::as_str).collect::<Vec<_>>();
        let words = Vocabulary::new(&texts(&places.operations), &texts(&places.spans), &[])
            .map_err(|error| UsageError::new(error.to_string(), "give names of their own: NAME=BEGIN,END"))?;
        let taken_off = taken_off_costs(places, cost);
        let both = taken_off.split_at(places.operations.len().min(taken_off.len()));
        let stamps =
            ProbeTrace::create(path, &words, process.pid.unsigned_abs(), both).map_err(ImportError::Trace)?;
        let mut pen = ProbeTraceWriter {
            stamps,
            sites: places,
            events: 0,
            threads: HashSet::new(),
            costs: Vec::new(),
            spent: 0.0,
            has_begun: !process.is_started_here(),
            execs: 0,
        };
        pen.set_event_cost(cost);
        Ok(pen)
    }

    /// What events cost from now on.
    fn set_event_cost(&mut self, cost: &ProbeCost) {
        // Those of places with a condition are counted by the kernel, with those that did not meet it.
        let shares = self.sites.places.iter().map(|place| if place.condition.is_none() { 1.0 } else { 0.0 });
        let costs = name_costs(self.sites, cost).into_iter().flat_map(|cost| [cost.entry, cost.exit]);
        self.costs = costs.zip(shares).map(|(cost, share)| cost * share).collect();
    }

    /// What is taken off all that was written.
    fn set_removed_costs(&mut self, cost: &ProbeCost) {
        let taken_off = taken_off_costs(self.sites, cost);
        self.stamps.set_costs(taken_off.split_at(self.sites.operations.len().min(taken_off.len())));
    }

    /// Threads that never came by a place are no part of the trace.
    fn write_event(&mut self, seen: ProbeEvent) {
        let thread = seen.thread;
        let mut spot = StackPosition::default();
        let mark = match seen.kind {
            ProbeEventKind::Exec => {
                self.execs += u32::from(self.has_begun);
                self.has_begun = true;
                self.stamps.record_exec();
                None
            }
            // What the shell does that becomes the program is not the program's.
            _ if !self.has_begun => None,
            ProbeEventKind::Place(number) => {
                self.events += 1;
                self.threads.insert(thread);
                self.spent += self.costs.get(number).copied().unwrap_or(0.0);
                let is = |of: &[bool]| of.get(number).is_some_and(|is| *is);
                spot.stack = Some(seen.stack).filter(|stack| is(&self.sites.framed) && *stack != 0);
                spot.routine = Some(seen.routine).filter(|_| is(&self.sites.go));
                self.sites.marks.get(number).copied()
            }
            ProbeEventKind::Preempted => Some(ProbeMark::Preempted),
            ProbeEventKind::Waited => Some(ProbeMark::Waited),
            ProbeEventKind::Resumed => Some(ProbeMark::Resumed),
            ProbeEventKind::Fault => Some(ProbeMark::Fault),
        };
        if let Some(mark) = mark.filter(|_| self.threads.contains(&thread)) {
            self.stamps.record_mark_at(thread, seen.time, mark, spot);
        }
    }
}
