//! Perflab on a host of an inventory for as long as a run lasts: it holds the machine, and keeps perflab there for the agents of the run.
//!
//! It takes orders as lines of JSON over its standard input and answers over its standard output. It ends with its input, and where
//! nothing comes for a while: a machine whose conductor lost its power is free again after a minute.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use crate::launcher::host_lock::{HostHolder, HostLock, LockAttempt};

/// How long nothing may come.
const SILENCE: Duration = Duration::from_secs(60);

/// How often something is sent that there is nothing to say.
pub(crate) const BEAT: Duration = Duration::from_secs(10);

/// How each answer begins: a login may print other lines.
const MARK: &str = "perflab-host: ";

/// Bytes of an order, and of what a login prints.
pub(crate) const LONGEST_LINE: usize = 64 << 10;

/// What is ordered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HostOrder {
    /// Take the machine for this run.
    Take(HostHolder),
    /// Leave it to others.
    Release,
    /// Nothing: the conductor lives.
    Live,
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HostAnswer {
    /// The first: perflab runs.
    Ready {
        /// whether somebody holds the machine,
        is_held: bool,
        /// and who, if that one says so
        holder: Option<HostHolder>,
    },
    /// The machine is ours.
    Taken,
    /// It is another's.
    Held(Option<HostHolder>),
    /// It cannot be held.
    Failed(String),
}

impl HostAnswer {
    /// The answer that a line is.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line.trim_end().strip_prefix(MARK)?).ok()
    }
}

/// Serves one conductor until its stream ends, or nothing comes for a minute.
///
/// # Errors
/// The standard streams are broken.
pub fn serve_host_hold() -> io::Result<()> {
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut answer = |answer: &HostAnswer| -> io::Result<()> {
        let text = serde_json::to_string(answer).map_err(io::Error::other)?;
        stdout.write_all(format!("\n{MARK}{text}\n").as_bytes())
    };
    let found = HostLock::find_holder();
    answer(&HostAnswer::Ready { is_held: found.is_some(), holder: found.flatten() })?;
    let mut lock: Option<HostLock> = None;
    let mut pending = Vec::new();
    let mut buffer = [0; 4096];
    let silence = Timespec { tv_sec: SILENCE.as_secs() as _, tv_nsec: 0 };
    loop {
        let count = match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&silence)) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
            Ok(0) => return Ok(()),
            Ok(_) => stdin.read(&mut buffer)?,
        };
        if count == 0 || pending.len() > LONGEST_LINE {
            return Ok(());
        }
        pending.extend(buffer.get(..count).unwrap_or_default());
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(HostOrder::Live) => {}
                Ok(HostOrder::Release) => lock = None,
                Ok(HostOrder::Take(_)) if lock.is_some() => answer(&HostAnswer::Taken)?,
                Ok(HostOrder::Take(holder)) => {
                    let since = jiff::Timestamp::now().as_second();
                    match HostLock::take(&HostHolder { since, ..holder }) {
                        Ok(LockAttempt::Taken(taken)) => {
                            lock = Some(taken);
                            answer(&HostAnswer::Taken)?;
                        }
                        Ok(LockAttempt::Held(holder)) => answer(&HostAnswer::Held(holder))?,
                        Err(error) => answer(&HostAnswer::Failed(error.to_string()))?,
                    }
                }
                Err(error) => answer(&HostAnswer::Failed(format!("it is no order: {error}")))?,
            }
        }
    }
}
