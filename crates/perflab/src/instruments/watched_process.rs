//! A process that is watched: one that was named, or a command that is stopped before it becomes the program; and how
//! much slower watching makes it.
//!
//! The estimate is what the probes cost of the CPU time that the program took. Where that would exceed the bound, the
//! program is watched for a share of the time only.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use clap::Args;
use perflab_formats::kernel::process::ProcessStat;

use crate::failure::{Failure, FailureContext as _, UnexpectedError};
use crate::measure::command_words;
use crate::quantities::parse_slowdown;
use crate::selection::parse_label;
use perflab_model::quantity::format_quantity;
use perflab_model::{Nanos, Ratio};

/// What the probes may cost beyond the bound before they are taken off: so long each time is watched at least.
const LEAST: Duration = Duration::from_millis(100);

/// So many times a program's own share is the most that probes are taken to cost: beyond it the program's own share cannot
/// be distinguished from the error of the estimate, and nobody's probes are taken off for an error.
const MOST_TIMES: f64 = 50.0;

/// The least CPU time of the program from which an estimate is given.
const ENOUGH: Duration = Duration::from_millis(50);

/// What watching costs a program.
#[derive(Debug)]
pub struct WatchSlowdown {
    /// as a fraction of its own CPU time
    limit: f64,
    /// nanoseconds of probes, in all
    spent: f64,
    /// its CPU time when watching began, and as it was last seen, in nanoseconds
    cpu_at_begin: Option<u64>,
    cpu: u64,
    /// of the times when it was watched: nanoseconds of CPU and of probes
    watched_cpu: u64,
    watched_spent: f64,
    /// how long it was watched, and how long not
    watched_time: Duration,
    unwatched_time: Duration,
}

impl WatchSlowdown {
    /// With the bound of `--max-slowdown`.
    pub fn new(limit: Ratio) -> Self {
        Self {
            limit: limit.0,
            spent: 0.0,
            cpu_at_begin: None,
            cpu: 0,
            watched_cpu: 0,
            watched_spent: 0.0,
            watched_time: Duration::ZERO,
            unwatched_time: Duration::ZERO,
        }
    }

    /// A while is over, in which the probes cost so many nanoseconds; the program's CPU time is what it is now.
    pub fn add_interval(&mut self, cpu: Option<u64>, spent: f64, watched: bool, took: Duration) {
        self.spent += spent;
        let before = self.cpu;
        // One that ended has none any more: what was seen last stays.
        self.cpu = cpu.unwrap_or(self.cpu).max(self.cpu);
        let began = *self.cpu_at_begin.get_or_insert(self.cpu);
        if watched {
            self.watched_time += took;
            self.watched_spent += spent;
            self.watched_cpu += self.cpu.saturating_sub(before.max(began));
        } else {
            self.unwatched_time += took;
        }
    }

    /// Probes are being put on, or taken off, and are passed in the meantime though they record nothing: what that cost is what they
    /// cost of the program's time when it was last watched.
    pub fn add_probe_change(&mut self, cpu: Option<u64>, took: Duration) {
        let before = self.cpu;
        let cost = (self.watched_spent / self.watched_cpu.max(1) as f64).min(1.0);
        self.cpu = cpu.unwrap_or(self.cpu).max(self.cpu);
        self.spent += cost * (self.cpu - before) as f64;
        self.unwatched_time += took;
    }

    /// Nanoseconds of CPU that the program took, with all.
    fn total_cpu_nanos(&self) -> f64 {
        self.cpu.saturating_sub(self.cpu_at_begin.unwrap_or(self.cpu)) as f64
    }

    /// Nanoseconds of CPU that the program took for itself.
    fn own_cpu_nanos(&self) -> f64 {
        (self.total_cpu_nanos() - self.spent).max(0.0)
    }

    /// Whether it is to be watched now: not while it is slower than it may be.
    pub fn allows_watching(&self, watched: bool) -> bool {
        let room = if watched { LEAST.as_nanos() as f64 } else { 0.0 };
        let own = self.own_cpu_nanos().max(self.total_cpu_nanos() / (1.0 + MOST_TIMES));
        self.spent.min(MOST_TIMES * own) <= self.limit * own + room
    }

    /// Whether there was enough to tell how much slower it becomes.
    pub fn is_known(&self) -> bool {
        self.watched_cpu as f64 >= ENOUGH.as_nanos() as f64
    }

    /// How much slower the program is while it is watched, in words: `12 %`.
    pub fn text_while_watched(&self) -> String {
        slowdown_text(self.watched_spent, self.watched_cpu as f64 - self.watched_spent)
    }

    /// The same of all the time; none where that was too short to tell.
    pub fn overall_text(&self) -> Option<String> {
        self.is_known().then(|| slowdown_text(self.spent, self.own_cpu_nanos()))
    }

    /// The share of the time that it was watched; none where that was all of it.
    pub fn watched_share(&self) -> Option<f64> {
        let all = self.watched_time + self.unwatched_time;
        (self.unwatched_time > Duration::ZERO)
            .then(|| self.watched_time.as_secs_f64() / all.as_secs_f64().max(f64::EPSILON))
    }
}

/// Nanoseconds of probes against those of the program itself.
fn slowdown_text(spent: f64, own: f64) -> String {
    let ratio = spent / own.max(1.0);
    if ratio > MOST_TIMES {
        format!("more than {MOST_TIMES} times")
    } else {
        format_quantity(ratio * 100.0, "%")
    }
}

/// `perflab trace attach`
#[derive(Debug, Args)]
#[command(after_long_help = "\
BEGIN and END are places: a FUNCTION (as in the symbol table, as in the source, or its last name if
only one has it), an address 0x1234 as linked, or a USDT probe PROVIDER:PROBE, of the program or of
a library that it links or has mapped; FILE:PLACE names the file (a path, or libc.so.6). A function
ends where it returns unless an end is given; a USDT probe `x_begin` (`x_entry`, `x_start`) ends at
`x_end` (`x_return`, `x_done`) or at `x`, and may be filtered: PROVIDER:PROBE[arg2==\"f\" && arg3>5].
Spans nest: a span inside an operation is a cause, its time its own, without spans inside it.
Operations do not nest: give the inner one as a span.
Examples:
  perflab trace attach --list --program ./server
  perflab trace attach --operation insert --span malloc --span reap=reap_begin,reap_end -- ./tree
  perflab trace attach --operation slablist:add_begin --span slablist:reap_begin --pid 1234

Each event costs some microseconds, which is measured here and printed before: a program that can be
changed is better linked with optrace (`perflab trace run`), at some tens of nanoseconds. Every
process that runs the file pays meanwhile; only the one that was asked for is recorded. It needs
root or CAP_PERFMON.")]
pub struct AttachArgs {
    /// An operation: where it begins and where it ends (repeatable)
    #[arg(long, value_name = "[NAME=]BEGIN[,END]")]
    pub operation: Vec<String>,
    /// What happens inside an operation, and may be a cause: where it begins and ends (repeatable)
    #[arg(long, value_name = "[NAME=]BEGIN[,END]")]
    pub span: Vec<String>,
    /// The file to probe if it is not the program itself: one of its libraries
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// List the functions and USDT probes, and do nothing else
    #[arg(long)]
    pub list: bool,
    /// Watch this process until it ends, until ^C, or for the time given by --for
    #[arg(short = 'p', long, value_name = "PID", conflicts_with = "command")]
    pub pid: Option<i32>,
    /// How much slower the program may become; beyond that, it is watched for part of the time
    #[arg(long, value_name = "PERCENT", default_value = "50%", value_parser = parse_slowdown)]
    pub max_slowdown: Ratio,
    /// Watch for this long
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// A name for the run; runs that share a label are repetitions of one another
    #[arg(long, value_parser = parse_label)]
    pub label: Option<String>,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What is watched.
pub struct WatchedProcess {
    /// As a person calls it.
    pub name: String,
    /// Its number.
    pub pid: i32,
    child: Option<Child>,
    /// Whether it ended with an error.
    pub failed: bool,
    /// How it ended, if it did.
    pub ended: Option<String>,
}

impl WatchedProcess {
    /// The process that was named, or the command: started, and stopped before it becomes the program.
    pub fn from_args(arguments: &AttachArgs) -> Result<Self, Failure> {
        if let Some(pid) = arguments.pid {
            return Ok(Self { name: format!("process {pid}"), pid, child: None, failed: false, ended: None });
        }
        let mut words = command_words::command_words(&arguments.command)?;
        let name = words.join(" ");
        if let Some(first) = words.first_mut() {
            *first = find_command(OsStr::new(first.as_str()))?.display().to_string();
        }
        let waits = "kill -STOP $$; exec \"$@\"";
        let child = Command::new("/bin/sh").args(["-c", waits, "sh"]).args(&words).spawn();
        let child = child.context("cannot start a shell")?;
        let pid = i32::try_from(child.id())
            .map_err(|_| UnexpectedError(format!("the child has a strange number, {}", child.id())))?;
        let since = Instant::now();
        while read_process_stat(pid).map(|stat| stat.state) != Some('T')
            && since.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Self { name, pid, child: Some(child), failed: false, ended: None })
    }

    /// Whether it was started here, and is a shell until its first exec.
    pub fn is_started_here(&self) -> bool {
        self.child.is_some()
    }

    /// Lets a command that was started here go on.
    pub fn resume(&self) -> Result<(), Failure> {
        if self.child.is_some() {
            let pid = rustix::process::Pid::from_raw(self.pid)
                .ok_or_else(|| UnexpectedError(format!("the child has a strange number, {}", self.pid)))?;
            rustix::process::kill_process(pid, rustix::process::Signal::CONT)
                .map_err(std::io::Error::from)?;
        }
        Ok(())
    }

    /// Ends a command that was started here; others are left alone.
    pub fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Whether it lives; how it ended, if not, is known then.
    pub fn is_alive(&mut self) -> Result<bool, Failure> {
        match &mut self.child {
            Some(child) => {
                let ended = child.try_wait().context("cannot wait for the program")?;
                self.failed = ended.is_some_and(|status| !status.success());
                self.ended = ended.map(|status| format!("ended with {status}"));
                Ok(ended.is_none())
            }
            None => {
                let lives = read_process_stat(self.pid).is_some_and(|stat| stat.is_alive());
                if !lives && self.ended.is_none() {
                    let (failed, ended) = foreign_process_end(self.pid);
                    (self.failed, self.ended) = (failed, Some(ended));
                }
                Ok(lives)
            }
        }
    }

    /// Nanoseconds of CPU that it took so far, all threads together and those that ended too; to a tick of the kernel's.
    pub fn cpu_time(&self) -> Option<u64> {
        let (user, system) = read_process_stat(self.pid)?.cpu_ticks;
        Some((user + system) * 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1))
    }

    /// What the program calls itself now.
    pub fn program_name(&self) -> String {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        let path = std::fs::read_link(format!("/proc/{}/exe", self.pid))
            .unwrap_or_else(|_| PathBuf::from(name.trim()));
        path.display().to_string()
    }
}

/// How a process ended that is not our child: while nobody waited for it, /proc has its status.
/// Whether it failed; that it is gone, where nothing says how, is reported as well.
fn foreign_process_end(pid: i32) -> (bool, String) {
    match read_process_stat(pid).and_then(|stat| stat.exit_status) {
        Some(status) if status & 0x7f != 0 => (true, format!("was killed by signal {}", status & 0x7f)),
        Some(status) if status != 0 => (true, format!("ended with exit code {}", status >> 8 & 0xff)),
        Some(_) => (false, "ended".into()),
        None => (false, "ended, with a status that only its parent knows,".into()),
    }
}

fn read_process_stat(pid: i32) -> Option<ProcessStat> {
    ProcessStat::parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// As a shell finds a command.
pub(crate) fn find_command(command: &OsStr) -> Result<PathBuf, Failure> {
    if command == "perflab" {
        return std::env::current_exe().context("cannot find perflab's own binary");
    }
    Ok(perflab_prefetch::trace_store::find_program_path(command)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Probes at everything that a program does: it is watched for a while, then left alone until the bound holds again.
    #[test]
    fn a_program_that_becomes_too_slow_is_watched_for_shares_of_the_time() {
        let mut slowdown = WatchSlowdown::new(Ratio(0.5));
        let (mut cpu, mut watched, mut changes) = (0, true, 0);
        slowdown.add_interval(Some(cpu), 0.0, true, Duration::ZERO);
        for _ in 0..500 {
            cpu += 20 * MS;
            // Nineteen of twenty milliseconds are the probes'.
            let spent = if watched { 19.0 * MS as f64 } else { 0.0 };
            slowdown.add_interval(Some(cpu), spent, watched, Duration::from_millis(20));
            let now = slowdown.allows_watching(watched);
            changes += u32::from(now != watched);
            watched = now;
        }
        let share = slowdown.watched_share().unwrap();
        assert!(changes > 10 && (0.2..0.5).contains(&share), "{changes} {share}");
        let bound =
            slowdown.limit * slowdown.own_cpu_nanos() + (LEAST + Duration::from_millis(20)).as_nanos() as f64;
        assert!(slowdown.spent <= bound, "{slowdown:?}");
        // While probes are taken off, all of its time is theirs.
        let spent = slowdown.spent;
        slowdown.add_probe_change(Some(cpu + 100 * MS), Duration::from_millis(100));
        assert!((slowdown.spent - spent - 95.0 * MS as f64).abs() < 1.0, "{slowdown:?}");
        assert_eq!((slowdown.is_known(), slowdown.text_while_watched().as_str()), (true, "1900\u{a0}%"));
    }

    /// On a busy machine probes were taken to cost more than all of the program's time, and were taken off whatever was asked:
    /// of 10,000 calls 357 were recorded, none as lost.
    #[test]
    fn an_estimate_above_what_can_be_told_takes_no_probes_off() {
        let mut slowdown = WatchSlowdown::new(Ratio(50.0));
        slowdown.add_interval(Some(0), 0.0, true, Duration::ZERO);
        for round in 1..=100 {
            // Five times what the program took with all.
            slowdown.add_interval(Some(round * 20 * MS), 100.0 * MS as f64, true, Duration::from_millis(20));
            assert!(slowdown.allows_watching(true), "{slowdown:?}");
        }
        assert_eq!(
            (slowdown.watched_share(), slowdown.overall_text().as_deref()),
            (None, Some("more than 50 times"))
        );
        let mut bounded = WatchSlowdown { limit: 40.0, ..slowdown };
        assert!(!bounded.allows_watching(true));
        bounded.spent = 0.0;
        assert!(bounded.allows_watching(true));
    }

    #[test]
    fn a_program_that_stays_fast_is_watched_all_the_time_and_one_that_ended_keeps_its_time() {
        let mut slowdown = WatchSlowdown::new(Ratio(0.5));
        for round in 1..=100 {
            slowdown.add_interval(Some(round * 20 * MS), MS as f64, true, Duration::from_millis(20));
            assert!(slowdown.allows_watching(true), "{slowdown:?}");
        }
        slowdown.add_interval(None, 0.0, true, Duration::from_millis(20));
        assert_eq!(
            (slowdown.watched_share(), slowdown.overall_text().as_deref()),
            (None, Some("5.319\u{a0}%"))
        );
        let short = WatchSlowdown::new(Ratio(0.5));
        assert_eq!((short.watched_share(), short.overall_text()), (None, None));
    }
}
