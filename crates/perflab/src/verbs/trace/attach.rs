//! `perflab trace attach`: the operations of a program that knows nothing of it, by uprobes.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use optrace::{Entries, Mark, Spot, StampCost, Stamps, Words};
use perflab_archive::import::{Watched, import_watched};
use perflab_conduct::Stop;
use perflab_model::Nanos;
use perflab_observe::probes::{Attached, AttachedEnd, Cost, CostMeter, Program, Seen, What};
use perflab_present::table::Format;
use serde_json::json;

use super::binaries::Binaries;
use super::places::Places;
use super::record::say_told;
use super::slowdown::Slowdown;
use super::watched_process::WatchedProcess;
use crate::arguments::trace::Attach;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::quantities;
use crate::verbs::run;

/// How often what the kernel told is taken out of its buffers.
const ROUND: Duration = Duration::from_millis(20);
/// How often what an event costs is measured again.
const MEASURED_EVERY: Duration = Duration::from_secs(1);

/// Watches a program, keeps its operations as a run, and says what watching cost.
pub fn attach(context: &Context, wanted: &Attach) -> anyhow::Result<Exit> {
    let program = Program::read(&file(wanted)?)?;
    if wanted.list {
        return list(context, &program);
    }
    if wanted.operation.is_empty() {
        let hint = "give at least one --operation [NAME=]BEGIN[,END]; --list prints what there is";
        return Err(Usage::new("nothing says what an operation is", hint).into());
    }
    let places = Places::find(&mut Binaries::of(program, wanted.pid), &wanted.operation, &wanted.span)?;
    let limit = wanted.duration.as_deref().map(|text| quantities::time("--for", text)).transpose()?;
    let limit = limit.map(Duration::from);
    context.archive()?.make_writable()?;
    let slowdown = Slowdown::new(&wanted.max_slowdown)?;
    let mut meter = CostMeter::new(&context.root)?;
    let cost = meter.measure(CostMeter::SURE);
    costs(&places, &cost).iter().for_each(|one| context.say(one));
    let stop = run::stop_on_interrupt()?;
    let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let began = Nanos(began);
    let boot = perflab_observe::boot_id(&context.root);
    let folder =
        perflab_conduct::leftovers::TemporaryFolder::make(&perflab_observe::own_directories::state(), &boot)
            .context("cannot make a folder for the trace")?;
    let path = folder.path().join("trace");
    let mut process = WatchedProcess::of(wanted)?;
    let watching = Watching::new(context, &path, &places, &mut process, (meter, cost), slowdown);
    let watched =
        watching.and_then(|watching| watching.watch(&stop, limit)).inspect_err(|_| process.kill())?;
    let ended = process.ended.clone().filter(|_| process.failed || wanted.pid.is_some());
    if let Some(ended) = &ended {
        context.say(format!(
            "{} {ended} after {:.3} s of watching",
            process.name,
            watched.took.as_secs_f64()
        ));
    }
    if watched.events == 0 {
        if process.failed {
            return Ok(Exit::WorkloadFailed);
        }
        return Err(no_event(&places).into());
    }
    let record = watched.record(wanted, &places, process.name.clone(), (began, ended));
    let run = import_watched(&context.archive()?, &path, wanted.label.clone(), &record)?;
    say_told(context, &run)?;
    watched.entries.iter().for_each(|(name, entries)| context.say(format!("{name}: {entries}")));
    watched.say_cost(context);
    Ok(if process.failed { Exit::WorkloadFailed } else { Exit::Fine })
}

fn no_event(places: &Places) -> Usage {
    let files: Vec<String> = places.files().iter().map(|path| path.display().to_string()).collect();
    let hint = "the program never came there, or --program names a file that it does not run";
    Usage::new(format!("no event came from {}", files.join(", ")), hint)
}

/// What became of the entries of a name; without what there was none of.
fn in_words(entries: &Entries) -> String {
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
        ends => format!("; {ends} ends without a begin, which not all calls come by"),
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
            "`{}` in {}: {:.2} us where it begins and {:.2} us where it ends, measured here; 1,000 of them in a second of the \
             program's CPU time make it {:.1} % slower",
            self.name,
            self.path.display(),
            self.entry / 1e3,
            self.exit / 1e3,
            both / 1e4
        )
    }
}

/// Of each name, operations first.
fn costs(places: &Places, cost: &Cost) -> Vec<NameCost> {
    let of = |(name, begin, end): (&String, &perflab_observe::probes::ProbedPlace, _)| {
        let end: &perflab_observe::probes::ProbedPlace = end;
        let (entry, exit) = (cost.begin(&begin.sites), cost.end(&end.sites));
        // The end's time is taken before its instruction is stepped over, the begin's as well: only its own step lies between.
        let between = cost.between.min(cost.emulated + exit) + (entry - cost.emulated).max(0.0);
        let taken_off = StampCost { between, pair: entry + exit };
        NameCost { name: name.clone(), path: begin.path.clone(), entry, exit, taken_off }
    };
    places.pairs().map(of).collect()
}

/// What is taken off of each name, operations first.
fn taken_off(places: &Places, cost: &Cost) -> Vec<StampCost> {
    costs(places, cost).into_iter().map(|cost| cost.taken_off).collect()
}

/// The file with the program.
fn file(wanted: &Attach) -> anyhow::Result<PathBuf> {
    match (&wanted.program, wanted.pid, wanted.command.first()) {
        (Some(path), _, _) => {
            std::fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))
        }
        (None, Some(pid), _) => {
            let link = PathBuf::from(format!("/proc/{pid}/exe"));
            let path = std::fs::read_link(&link)
                .map_err(|_| Usage::new(format!("there is no process {pid}"), "or it is not yours"))?;
            // One that was deleted, or lies in a container, is still behind the link.
            Ok(if path.exists() { path } else { link })
        }
        (None, None, Some(command)) => found(command),
        (None, None, None) => Err(Usage::new(
            "nothing to watch",
            "give a command behind `--`, or --pid, or --list with --program",
        )
        .into()),
    }
}

/// As a shell finds a command.
pub(super) fn found(command: &OsStr) -> anyhow::Result<PathBuf> {
    if command == "perflab" {
        return std::env::current_exe().context("cannot find perflab's own binary");
    }
    Ok(perflab_prefetch::store::program(command)?)
}

fn list(context: &Context, program: &Program) -> anyhow::Result<Exit> {
    let mut functions: Vec<String> = program.functions().map(ToString::to_string).collect();
    if functions.is_empty() {
        functions.extend(program.addresses().map(|address| format!("{address:#x}")));
    }
    let probes: Vec<String> = program.probes().map(ToString::to_string).collect();
    if context.format == Format::Json {
        context.document(&json!({ "probes": probes, "functions": functions }))?;
        return Ok(Exit::Fine);
    }
    let functions = functions.iter().map(|name| format!("function  {name}"));
    let lines: Vec<String> = probes.iter().map(|name| format!("USDT      {name}")).chain(functions).collect();
    context.write(&lines.join("\n"))?;
    Ok(Exit::Fine)
}

/// A process being watched.
struct Watching<'a> {
    context: &'a Context,
    places: &'a Places,
    process: &'a mut WatchedProcess,
    pen: Pen<'a>,
    /// none while the program is left alone
    attached: Option<Attached>,
    slowdown: Slowdown,
    meter: CostMeter,
    costs: CostsMeasured,
    measured: Instant,
    /// how often threads came by places with a condition, and what the kernel had no room for
    condition_hits: u64,
    lost: u64,
    others: u64,
    /// the probes could not be put back
    given_up: bool,
}

/// What events cost while a program was watched. It is not the same at all times.
#[derive(Debug, Clone, Copy)]
struct CostsMeasured {
    /// before it began, the last time meanwhile, and when it ended
    first: Cost,
    now: Cost,
    last: Cost,
}

impl CostsMeasured {
    /// The larger of what was measured before and at the end: what is taken off, and judged by.
    fn dearest(&self) -> Cost {
        self.first.or_dearer(self.last)
    }

    /// The dearest, the first and the last.
    fn each(&self) -> [Cost; 3] {
        [self.dearest(), self.first, self.last]
    }
}

/// What came of watching.
struct WatchedTime {
    took: Duration,
    events: u64,
    threads: usize,
    lost: u64,
    others: u64,
    /// of each name, what became of its entries
    entries: Vec<(String, String)>,
    slowdown: Slowdown,
    costs: CostsMeasured,
}

impl<'a> Watching<'a> {
    fn new(
        context: &'a Context,
        path: &Path,
        places: &'a Places,
        process: &'a mut WatchedProcess,
        (meter, cost): (CostMeter, Cost),
        slowdown: Slowdown,
    ) -> anyhow::Result<Self> {
        let attached = Some(Attached::to(&context.root, process.pid, &places.places)?);
        let pen = Pen::new(path, places, process, &cost)?;
        Ok(Self {
            context,
            places,
            process,
            pen,
            attached,
            slowdown,
            meter,
            costs: CostsMeasured { first: cost, now: cost, last: cost },
            measured: Instant::now(),
            condition_hits: 0,
            lost: 0,
            others: 0,
            given_up: false,
        })
    }

    /// Until it ends, somebody stops it, or the time is over.
    fn watch(mut self, stop: &Stop, limit: Option<Duration>) -> anyhow::Result<WatchedTime> {
        self.slowdown.add(self.process.cpu_time(), 0.0, true, Duration::ZERO);
        if let Some(attached) = &self.attached {
            attached.start();
        }
        let since = Instant::now();
        self.process.begin()?;
        let (mut round, mut said) = (Instant::now(), false);
        while self.process.lives()? && !stop.asked() && limit.is_none_or(|limit| since.elapsed() < limit) {
            std::thread::sleep(ROUND);
            if let Some(attached) = &mut self.attached {
                attached.take(|seen| self.pen.write(seen));
            }
            self.say_execs();
            if self.measured.elapsed() > MEASURED_EVERY {
                self.measure(CostMeter::GLANCE);
            }
            self.account(&mut round);
            if !said && self.slowdown.is_known() {
                said = true;
                self.context.say(format!(
                    "while it is watched the program is {} slower",
                    self.slowdown.while_watched()
                ));
            }
            self.keep_within_limit(&mut round)?;
        }
        let took = since.elapsed();
        self.account(&mut round);
        // While it still is as it was.
        self.measure(CostMeter::SURE);
        self.costs.last = self.costs.now;
        self.detach();
        self.process.kill();
        self.pen.set_costs(&self.costs.dearest());
        let (operations, spans) = self.pen.stamps.entries();
        let none = vec![Entries::default(); self.places.operations.len().saturating_sub(operations.len())];
        let all = operations.iter().chain(&none).chain(&spans).map(in_words);
        let names = self.places.operations.iter().chain(&self.places.spans);
        let entries = names.cloned().zip(all).collect();
        let (events, threads) = (self.pen.events, self.pen.threads.len());
        let lost = self.pen.stamps.finish()?.events_lost;
        Ok(WatchedTime {
            took,
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
    fn measure(&mut self, rounds: usize) {
        self.costs.now = self.meter.measure(rounds);
        self.pen.price(&self.costs.now);
        self.measured = Instant::now();
    }

    /// What the probes cost since the last time.
    fn account(&mut self, round: &mut Instant) {
        let hits = self.attached.as_ref().map_or(self.condition_hits, Attached::condition_hits);
        let looked_at = hits.saturating_sub(self.condition_hits) as f64;
        self.condition_hits = hits;
        let lost = self.attached.as_ref().map_or(self.lost, Attached::lost_so_far);
        let untold = lost.saturating_sub(self.lost) as f64;
        self.lost = lost;
        let spent = std::mem::take(&mut self.pen.spent) + (looked_at + untold) * self.costs.now.emulated;
        self.slowdown.add(self.process.cpu_time(), spent, self.attached.is_some(), round.elapsed());
        *round = Instant::now();
    }

    /// Takes the probes off a program that is slower than it may be, and puts them back.
    fn keep_within_limit(&mut self, round: &mut Instant) -> anyhow::Result<()> {
        let watched = self.attached.is_some();
        match (watched, self.slowdown.allows(watched)) {
            (true, false) => {
                if self.slowdown.share().is_none() {
                    self.context.say(format!(
                        "that is {} slower, more than --max-slowdown: it is watched for shares of the time from now on; in these \
                         every operation is told",
                        self.slowdown.while_watched()
                    ));
                }
                self.account(round);
                self.detach();
                self.pen.stamps.pause();
                self.slowdown.add_change(self.process.cpu_time(), round.elapsed());
                *round = Instant::now();
            }
            (false, true) if !self.given_up && self.process.lives()? => {
                let attached = Attached::to(&self.context.root, self.process.pid, &self.places.places);
                match attached {
                    Ok(attached) => {
                        attached.start();
                        self.attached = Some(attached);
                        (self.condition_hits, self.lost) = (0, 0);
                        self.slowdown.add_change(self.process.cpu_time(), round.elapsed());
                    }
                    // It ended while it was looked at, or the kernel has no room: it goes on without us.
                    Err(error) => {
                        self.given_up = true;
                        self.context.say(format!("it is not watched any more: {error}"));
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
        let AttachedEnd { lost, others } = attached.stop(|seen| self.pen.write(seen));
        self.pen.stamps.lost(lost);
        self.others += others;
    }

    /// That it became another program is told once for each time.
    fn say_execs(&mut self) {
        for _ in 0..std::mem::take(&mut self.pen.execs) {
            let name = self.process.program_name();
            let files: Vec<String> =
                self.places.files().iter().map(|path| path.display().to_string()).collect();
            self.context.say(format!(
                "{} became another program, {name}: operations that were open are abandoned; it is watched where it runs {}",
                self.process.name,
                files.join(", ")
            ));
        }
    }
}

impl WatchedTime {
    /// What the run keeps besides the trace.
    fn record(
        &self,
        wanted: &Attach,
        places: &Places,
        command: String,
        (began, ended): (Nanos, Option<String>),
    ) -> Watched {
        let asked: Vec<&str> = wanted.operation.iter().chain(&wanted.span).map(String::as_str).collect();
        let costs = costs(places, &self.costs.dearest());
        Watched {
            command,
            places: asked.join(" "),
            event_costs: self.costs.each().map(|cost| cost.emulated),
            costs: costs.into_iter().map(|one| (one.name, one.entry, one.exit)).collect(),
            entries: self.entries.clone(),
            began,
            ended,
            slowdown: self.slowdown.in_all().unwrap_or_else(|| "too short to tell".into()),
            share: self.slowdown.share(),
        }
    }

    fn say_cost(&self, context: &Context) {
        let both = |of: fn(&Cost) -> f64| {
            let [_, first, last] = self.costs.each().map(|cost| of(&cost) / 1e3);
            format!("{first:.2} us before and {last:.2} us at the end")
        };
        context.say(format!(
            "an event cost {} (at an instruction that must be stepped over {}, at a return {}); the larger is taken off",
            both(|cost| cost.emulated),
            both(|cost| cost.stepped),
            both(|cost| cost.returned)
        ));
        let slower =
            self.slowdown.in_all().map_or(String::new(), |all| format!(": the program was {all} slower"));
        let share = self.slowdown.share().map_or(String::new(), |share| {
            format!("; it was watched for {:.0} % of the time, as --max-slowdown wants", share * 100.0)
        });
        context.say(format!(
            "{} events of {} threads in {:.2} s{slower}{share}; {} events were lost",
            self.events,
            self.threads,
            self.took.as_secs_f64(),
            self.lost
        ));
        if self.others > 0 {
            context.say(format!(
                "{} events more came from other processes that run the same file, and were not kept: they paid for them, too",
                self.others
            ));
        }
    }
}

/// Writes what was seen into a trace.
struct Pen<'a> {
    stamps: Stamps,
    places: &'a Places,
    events: u64,
    threads: HashSet<i32>,
    /// nanoseconds of an event at each place
    costs: Vec<f64>,
    /// nanoseconds of all since it was last asked
    spent: f64,
    /// whether it is the program that was asked for: a command is a shell until its first exec
    begun: bool,
    /// how often it became another program since it was last asked
    execs: u32,
}

impl<'a> Pen<'a> {
    fn new(
        path: &Path,
        places: &'a Places,
        process: &WatchedProcess,
        cost: &Cost,
    ) -> anyhow::Result<Pen<'a>> {
        let texts = |names: &'a [String]| names.iter().map(String::as_str).collect::<Vec<_>>();
        let words = Words::new(&texts(&places.operations), &texts(&places.spans), &[])
            .map_err(|error| Usage::new(error.to_string(), "give names of their own: NAME=BEGIN,END"))?;
        let taken_off = taken_off(places, cost);
        let both = taken_off.split_at(places.operations.len().min(taken_off.len()));
        let stamps = Stamps::create(path, &words, process.pid.unsigned_abs(), both)?;
        let mut pen = Pen {
            stamps,
            places,
            events: 0,
            threads: HashSet::new(),
            costs: Vec::new(),
            spent: 0.0,
            begun: !process.is_started_here(),
            execs: 0,
        };
        pen.price(cost);
        Ok(pen)
    }

    /// What events cost from now on.
    fn price(&mut self, cost: &Cost) {
        // Those of places with a condition are counted by the kernel, with those that did not meet it.
        let told = self.places.places.iter().map(|place| if place.condition.is_none() { 1.0 } else { 0.0 });
        let costs = costs(self.places, cost).into_iter().flat_map(|cost| [cost.entry, cost.exit]);
        self.costs = costs.zip(told).map(|(cost, told)| cost * told).collect();
    }

    /// What is taken off all that was written.
    fn set_costs(&mut self, cost: &Cost) {
        let taken_off = taken_off(self.places, cost);
        self.stamps.set_costs(taken_off.split_at(self.places.operations.len().min(taken_off.len())));
    }

    /// Threads that never came by a place are no part of the trace.
    fn write(&mut self, seen: Seen) {
        let thread = seen.thread;
        let mut spot = Spot::default();
        let mark = match seen.what {
            What::Exec => {
                self.execs += u32::from(self.begun);
                self.begun = true;
                self.stamps.replaced();
                None
            }
            // What the shell does that becomes the program is not the program's.
            _ if !self.begun => None,
            What::Place(number) => {
                self.events += 1;
                self.threads.insert(thread);
                self.spent += self.costs.get(number).copied().unwrap_or(0.0);
                let is = |of: &[bool]| of.get(number).is_some_and(|is| *is);
                spot.stack = Some(seen.stack).filter(|stack| is(&self.places.framed) && *stack != 0);
                spot.routine = Some(seen.routine).filter(|_| is(&self.places.go));
                self.places.marks.get(number).copied()
            }
            What::Preempted => Some(Mark::Preempted),
            What::Waited => Some(Mark::Waited),
            What::Resumed => Some(Mark::Resumed),
            What::Fault => Some(Mark::Fault),
        };
        if let Some(mark) = mark.filter(|_| self.threads.contains(&thread)) {
            self.stamps.mark_at(thread, seen.time, mark, spot);
        }
    }
}
