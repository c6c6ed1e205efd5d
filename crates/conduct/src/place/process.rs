//! An agent as a process of this host.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perflab_model::study::{ChannelUse, TargetUse};
use rustix::process::{Pid, Signal, kill_process};

use super::{Place, Started, Words};
use crate::machine::vsock::Vsock;
use crate::{Channel, Host};

/// How long an agent whose stream was closed may take to end its workload and undo its settings.
const GRACE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(5);

/// A child that speaks over its standard input and output.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    words: Words,
}

impl Process {
    /// `words` are those of the child.
    pub(super) fn new(child: Child, words: Words) -> Self {
        Process { child, words }
    }

    fn ended(&mut self, within: Duration) -> bool {
        let begun = Instant::now();
        while !matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
            if begun.elapsed() > within {
                return false;
            }
            std::thread::sleep(TICK);
        }
        true
    }
}

impl Place for Process {
    fn end(&mut self) -> String {
        // One that was stopped (SIGSTOP) could not see that its stream was closed.
        let pid = Pid::from_child(&self.child);
        if !self.ended(Duration::ZERO) {
            let _ = kill_process(pid, Signal::CONT);
        }
        if !self.ended(GRACE) {
            let _ = self.child.kill();
            self.ended(GRACE);
        }
        self.words.text()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts `perflab agent` in a process group of its own: a ^C at the terminal is perflab's to pass on.
pub(super) fn start(name: &str, target: &TargetUse, host: &Host) -> io::Result<Started> {
    match target.channel {
        Some(ChannelUse::Vsock) => calling(name, host),
        _ => paired(name, host),
    }
}

/// One that calls over vsock.
fn calling(name: &str, host: &Host) -> io::Result<Started> {
    let vsock = Vsock::open()?;
    let address = format!("vsock:{}:{}", vsock.cid, vsock.port);
    let mut command = Command::new(&host.perflab);
    command.args(["agent", "--connect", &address]).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).process_group(0).spawn()?;
    let words = Words::of(&mut child);
    let mut process = Process::new(child, words);
    match vsock.call(|| !process.ended(Duration::ZERO)) {
        Ok(stream) => Ok(Started { channel: Channel::both_ways(name, stream)?, place: Box::new(process) }),
        Err(error) => Err(io::Error::other(format!("{error}: {}", process.end().trim()))),
    }
}

/// One with an end of a socket pair as its standard input and output.
fn paired(name: &str, host: &Host) -> io::Result<Started> {
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = OwnedFd::from(theirs);
    let mut command = Command::new(&host.perflab);
    command.arg("agent").stdin(theirs.try_clone()?).stdout(theirs).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    // The command holds their end: as long as it lives, the stream would not end with the child.
    drop(command);
    let words = Words::of(&mut child);
    let channel = Channel::both_ways(name, ours)?;
    Ok(Started { channel, place: Box::new(Process::new(child, words)) })
}
