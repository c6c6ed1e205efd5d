//! The process that is watched: one that was named, or a command that is started for it and stopped before it becomes the
//! program.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::attach::find_command;
use crate::arguments::trace::AttachArgs;
use crate::verbs::recording;

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
    pub fn from_args(wanted: &AttachArgs) -> anyhow::Result<Self> {
        if let Some(pid) = wanted.pid {
            return Ok(Self { name: format!("process {pid}"), pid, child: None, failed: false, ended: None });
        }
        let mut words = recording::command_words(&wanted.command)?;
        let name = words.join(" ");
        if let Some(first) = words.first_mut() {
            *first = find_command(OsStr::new(first.as_str()))?.display().to_string();
        }
        let waits = "kill -STOP $$; exec \"$@\"";
        let child = Command::new("/bin/sh").args(["-c", waits, "sh"]).args(&words).spawn();
        let child = child.context("cannot start a shell")?;
        let pid = i32::try_from(child.id()).context("the child has a strange number")?;
        let since = Instant::now();
        while process_state(pid) != Some('T') && since.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Self { name, pid, child: Some(child), failed: false, ended: None })
    }

    /// Whether it was started here, and is a shell until its first exec.
    pub fn is_started_here(&self) -> bool {
        self.child.is_some()
    }

    /// Lets a command that was started here go on.
    pub fn resume(&self) -> anyhow::Result<()> {
        if self.child.is_some() {
            let pid = rustix::process::Pid::from_raw(self.pid).context("the child has a strange number")?;
            rustix::process::kill_process(pid, rustix::process::Signal::CONT)?;
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
    pub fn is_alive(&mut self) -> anyhow::Result<bool> {
        match &mut self.child {
            Some(child) => {
                let ended = child.try_wait().context("cannot wait for the program")?;
                self.failed = ended.is_some_and(|status| !status.success());
                self.ended = ended.map(|status| format!("ended with {status}"));
                Ok(ended.is_none())
            }
            None => {
                let lives = !matches!(process_state(self.pid), None | Some('Z' | 'X'));
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
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        let ticks = ticks()? + ticks()?;
        Some(ticks * 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1))
    }

    /// What the program calls itself now.
    pub fn program_name(&self) -> String {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        let path = std::fs::read_link(format!("/proc/{}/exe", self.pid))
            .unwrap_or_else(|_| PathBuf::from(name.trim()));
        path.display().to_string()
    }
}

/// How a process ended that is not our child: while nobody waited for it, /proc has its status as the last number.
/// Whether it failed; that it is gone, where nothing says how, is told as well.
fn foreign_process_end(pid: i32) -> (bool, String) {
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
fn process_state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}
