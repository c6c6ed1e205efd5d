//! `perflab trace attach`: the operations of a program that knows nothing of it, by uprobes.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use optrace::{Entries, Mark, Spot, StampCost, Stamps, Words};
use perflab_archive::import::{Watched, import_watched};
use perflab_conduct::Stop;
use perflab_model::Nanos;
use perflab_observe::probes::{Attached, Cost, Program, Seen, Site, What, cost};

use super::places::Places;
use super::record::say_told;
use crate::arguments::trace::Attach;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::quantities;
use crate::verbs::{recording, run};

/// How often what the kernel told is taken out of its buffers.
const ROUND: Duration = Duration::from_millis(20);

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
    let places = Places::find(&program, &wanted.operation, &wanted.span)?;
    let limit = wanted.duration.as_deref().map(|text| quantities::time("--for", text)).transpose()?;
    let limit = limit.map(Duration::from);
    context.archive()?.make_writable()?;
    let cost = cost(&context.root)?;
    let stop = run::stop_on_interrupt()?;
    let began = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let began = Nanos(began);
    let mut subject = Subject::of(wanted)?;
    let attached = Attached::to(&context.root, subject.pid, program.path(), &places.sites);
    let attached = attached.inspect_err(|_| subject.kill())?;
    let boot = perflab_observe::boot_id(&context.root);
    let folder =
        perflab_conduct::leftovers::TemporaryFolder::make(&perflab_observe::own_directories::state(), &boot)
            .context("cannot make a folder for the trace")?;
    let path = folder.path().join("trace");
    let mut pen = Pen::new(&path, &places, program.is_go(), subject.pid, &cost)?;
    let took = subject.watch(attached, &mut pen, &stop, limit)?;
    let (events, threads) = (pen.events, pen.threads.len());
    let (operations, spans) = pen.stamps.entries();
    let lost = pen.stamps.finish()?.events_lost;
    let ended = subject.ended.clone().filter(|_| subject.failed || wanted.pid.is_some());
    let asked: Vec<&str> = wanted.operation.iter().chain(&wanted.span).map(String::as_str).collect();
    let names = places.operations.iter().chain(&places.spans);
    let none = vec![Entries::default(); places.operations.len().saturating_sub(operations.len())];
    let told: Vec<(String, String)> =
        names.cloned().zip(operations.iter().chain(&none).chain(&spans).map(in_words)).collect();
    let watched = Watched {
        command: subject.name.clone(),
        places: asked.join(" "),
        event_cost: cost.emulated,
        costs: costs(&places, &cost),
        entries: told.clone(),
        began,
        ended: ended.clone(),
    };
    if let Some(ended) = &ended {
        context.say(format!("{} {ended} after {:.3} s of watching", subject.name, took.as_secs_f64()));
    }
    if events == 0 {
        if subject.failed {
            return Ok(Exit::WorkloadFailed);
        }
        let hint = "the program never came there, or --program names a file that it does not run";
        return Err(Usage::new(format!("no event came from {}", program.path().display()), hint).into());
    }
    let run = import_watched(&context.archive()?, &path, wanted.label.clone(), &watched)?;
    say_told(context, &run)?;
    told.iter().for_each(|(name, entries)| context.say(format!("{name}: {entries}")));
    say_cost(context, &cost, events, lost, threads, took);
    Ok(if subject.failed { Exit::WorkloadFailed } else { Exit::Fine })
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
    format!("{} entries = {} ended{}", entries.entered, entries.ended, rest.collect::<String>())
}

/// Of each name: what an entry and an exit cost, in nanoseconds; of several places the dearest.
fn costs(places: &Places, cost: &Cost) -> Vec<(String, f64, f64)> {
    let dearest = |sites: &[Site]| {
        if sites.iter().any(|site| site.stepped) { cost.stepped.max(cost.emulated) } else { cost.emulated }
    };
    let pairs = places.sites.as_chunks::<2>().0;
    let names = places.operations.iter().chain(&places.spans);
    names.zip(pairs).map(|(name, [begin, end])| (name.clone(), dearest(begin), dearest(end))).collect()
}

/// The file with the places.
fn file(wanted: &Attach) -> anyhow::Result<PathBuf> {
    match (&wanted.program, wanted.pid, wanted.command.first()) {
        (Some(path), _, _) => {
            std::fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))
        }
        (None, Some(pid), _) => std::fs::read_link(format!("/proc/{pid}/exe"))
            .map_err(|_| Usage::new(format!("there is no process {pid}"), "or it is not yours").into()),
        (None, None, Some(command)) => found(command),
        (None, None, None) => Err(Usage::new(
            "nothing to watch",
            "give a command behind `--`, or --pid, or --list with --program",
        )
        .into()),
    }
}

/// As a shell finds a command.
fn found(command: &OsStr) -> anyhow::Result<PathBuf> {
    if command == "perflab" {
        return std::env::current_exe().context("cannot find perflab's own binary");
    }
    Ok(perflab_prefetch::store::program(command)?)
}

fn list(context: &Context, program: &Program) -> anyhow::Result<Exit> {
    let functions = program.functions().map(|name| format!("function  {name}"));
    let lines: Vec<String> =
        program.probes().map(|name| format!("USDT      {name}")).chain(functions).collect();
    context.write(&lines.join("\n"))?;
    Ok(Exit::Fine)
}

/// What is watched.
struct Subject {
    name: String,
    pid: i32,
    child: Option<Child>,
    failed: bool,
    /// how it ended
    ended: Option<String>,
}

impl Subject {
    /// The process that was named, or the command: started, and stopped before it becomes the program.
    fn of(wanted: &Attach) -> anyhow::Result<Subject> {
        if let Some(pid) = wanted.pid {
            return Ok(Subject {
                name: format!("process {pid}"),
                pid,
                child: None,
                failed: false,
                ended: None,
            });
        }
        let mut words = recording::words(&wanted.command)?;
        let name = words.join(" ");
        if let Some(first) = words.first_mut() {
            *first = found(OsStr::new(first.as_str()))?.display().to_string();
        }
        let waits = "kill -STOP $$; exec \"$@\"";
        let child = Command::new("/bin/sh").args(["-c", waits, "sh"]).args(&words).spawn();
        let child = child.context("cannot start a shell")?;
        let pid = i32::try_from(child.id()).context("the child has a strange number")?;
        let since = Instant::now();
        while state(pid) != Some('T') && since.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Subject { name, pid, child: Some(child), failed: false, ended: None })
    }

    fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Until it ends, somebody stops it, or the time is over. How long that was.
    fn watch(
        &mut self,
        mut attached: Attached,
        pen: &mut Pen<'_>,
        stop: &Stop,
        limit: Option<Duration>,
    ) -> anyhow::Result<Duration> {
        attached.start();
        let since = Instant::now();
        if self.child.is_some() {
            let pid = rustix::process::Pid::from_raw(self.pid).context("the child has a strange number")?;
            rustix::process::kill_process(pid, rustix::process::Signal::CONT)?;
        }
        while self.lives()? && !stop.asked() && limit.is_none_or(|limit| since.elapsed() < limit) {
            std::thread::sleep(ROUND);
            attached.take(|seen| pen.write(seen));
        }
        let took = since.elapsed();
        let lost = attached.stop(|seen| pen.write(seen));
        pen.stamps.lost(lost);
        self.kill();
        Ok(took)
    }

    fn lives(&mut self) -> anyhow::Result<bool> {
        match &mut self.child {
            Some(child) => {
                let ended = child.try_wait().context("cannot wait for the program")?;
                self.failed = ended.is_some_and(|status| !status.success());
                self.ended = ended.map(|status| format!("ended with {status}"));
                Ok(ended.is_none())
            }
            None => {
                let lives = !matches!(state(self.pid), None | Some('Z' | 'X'));
                if !lives && self.ended.is_none() {
                    let (failed, ended) = of_another(self.pid);
                    (self.failed, self.ended) = (failed, Some(ended));
                }
                Ok(lives)
            }
        }
    }
}

/// How a process ended that is not our child: while nobody waited for it, /proc has its status as the last number.
/// Whether it failed; that it is gone, where nothing says how, is told as well.
fn of_another(pid: i32) -> (bool, String) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    let status = stat.as_deref().and_then(|text| text.split_whitespace().next_back()?.parse::<i32>().ok());
    match status {
        Some(status) if status & 0x7f != 0 => (true, format!("was killed by signal {}", status & 0x7f)),
        Some(status) if status != 0 => (true, format!("ended with exit code {}", status >> 8 & 0xff)),
        Some(_) => (false, "ended".into()),
        None => (false, "ended, with a status that only its parent was told,".into()),
    }
}

/// A process's state, as /proc has it behind the name in brackets.
fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Writes what was seen into a trace.
struct Pen<'a> {
    stamps: Stamps,
    places: &'a Places,
    go: bool,
    events: u64,
    threads: HashSet<i32>,
}

impl<'a> Pen<'a> {
    fn new(path: &Path, places: &'a Places, go: bool, pid: i32, cost: &Cost) -> anyhow::Result<Pen<'a>> {
        let texts = |names: &'a [String]| names.iter().map(String::as_str).collect::<Vec<_>>();
        let words = Words::new(&texts(&places.operations), &texts(&places.spans), &[])
            .map_err(|error| Usage::new(error.to_string(), "give names of their own: NAME=BEGIN,END"))?;
        let [mut entry, mut exit] = [0.0, 0.0];
        for (_, begin, end) in costs(places, cost) {
            entry = f64::max(entry, begin);
            exit = f64::max(exit, end);
        }
        let between = cost.between.min(cost.emulated + exit) + (entry - cost.emulated).max(0.0);
        let stamps =
            Stamps::create(path, &words, pid.unsigned_abs(), StampCost { between, pair: entry + exit })?;
        Ok(Pen { stamps, places, go, events: 0, threads: HashSet::new() })
    }

    /// Threads that never came by a place are no part of the trace.
    fn write(&mut self, seen: Seen) {
        let thread = seen.thread;
        let mut spot = Spot::default();
        let mark = match seen.what {
            What::Place(number) => {
                self.events += 1;
                self.threads.insert(thread);
                let framed = self.places.framed.get(number).is_some_and(|framed| *framed);
                spot.stack = Some(seen.stack).filter(|stack| framed && *stack != 0);
                spot.routine = Some(seen.routine).filter(|_| self.go);
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

fn say_cost(context: &Context, cost: &Cost, events: u64, lost: u64, threads: usize, took: Duration) {
    let micros = |ns: f64| format!("{:.2} us", ns / 1e3);
    context.say(format!(
        "an event costs {} here (at an instruction that must be stepped over {}, at a return {}); measured just now",
        micros(cost.emulated),
        micros(cost.stepped),
        micros(cost.returned)
    ));
    let spent = cost.emulated * events as f64 / 1e9;
    context.say(format!(
        "{events} events of {threads} threads: at least {spent:.2} s in {:.2} s; {lost} events were lost",
        took.as_secs_f64()
    ));
}
