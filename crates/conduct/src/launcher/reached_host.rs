//! A host of an inventory that was reached: what it is, perflab on it, and the hold on it.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use perflab_model::{Nanos, Refusal, StopRequest, remove_control_characters};
use perflab_settings::run_stoppable_command;
use serde::Serialize;

use crate::launcher::agent_bundle::copy_agent_bundle;
use crate::launcher::host_hold::{BEAT, HostAnswer, HostOrder, LONGEST_LINE};
use crate::launcher::host_lock::HostHolder;
use crate::launcher::process::{StderrTail, has_ended_within};
use crate::launcher::ssh::SshDestination;

/// How long perflab may take to start there, and to answer.
const ANSWER: Duration = Duration::from_secs(60);

const LOOK: Duration = Duration::from_millis(50);

/// How long it may take to end, its folder removed.
const GRACE: Duration = Duration::from_secs(10);

/// What is asked of a machine first, behind a line that a login hardly prints.
const PROBE: &str = "echo perflab-probe; uname -m; uname -r; id -u; id -un; command -v tar";

/// What ssh itself ends with where it comes to nothing.
const SSH_FAILED: i32 = 255;

/// What a host is, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostFacts {
    /// `x86_64`
    pub architecture: String,
    /// The release of its kernel.
    pub kernel: String,
    /// Who is logged in.
    pub user: String,
    /// Whether that is root.
    pub root: bool,
    /// How long it took to answer.
    pub answered_after: Nanos,
    #[serde(skip)]
    has_tar: bool,
}

impl HostFacts {
    /// Asks a host.
    ///
    /// # Errors
    /// It does not answer: which, after how long, and what ssh said.
    pub fn ask(name: &str, destination: &SshDestination, stop: &StopRequest) -> Result<Self, Refusal> {
        let begun = Instant::now();
        let mut command = destination.command(&["ServerAliveInterval=5", "ServerAliveCountMax=3"]);
        let output = run_stoppable_command(command.arg(PROBE).stdin(Stdio::null()), stop);
        let elapsed = begun.elapsed();
        let output = output.map_err(|error| refuse_host(name, destination, &error.to_string(), ""))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> = text.lines().skip_while(|line| *line != "perflab-probe").skip(1).collect();
        if let [architecture, kernel, number, user, rest @ ..] = lines.as_slice() {
            let clean = |text: &str| remove_control_characters(text.trim());
            return Ok(HostFacts {
                architecture: clean(architecture),
                kernel: clean(kernel),
                user: clean(user),
                root: *number == "0",
                answered_after: elapsed.into(),
                has_tar: !rest.is_empty(),
            });
        }
        Err(describe_silence(name, destination, &output, elapsed))
    }

    /// Why perflab cannot run there.
    fn obstacle(&self, name: &str, destination: &SshDestination) -> Option<Refusal> {
        let own = std::env::consts::ARCH;
        if self.architecture != own {
            let what = format!("is {}, and this perflab is for {own}", self.architecture);
            let hint = "name hosts of one architecture, and start a perflab of theirs";
            return Some(refuse_host(name, destination, &what, hint));
        }
        (!self.has_tar).then(|| refuse_host(name, destination, "has no tar", "install tar there"))
    }
}

/// What a host did, with where it is.
fn refuse_host(name: &str, destination: &SshDestination, what: &str, hint: &str) -> Refusal {
    let option = |keyword: &str| {
        let found = destination.options.iter().find_map(|option| option.strip_prefix(keyword));
        found.map(str::to_owned)
    };
    let user = option("User=").map(|user| format!("{user}@")).unwrap_or_default();
    let port = option("Port=").map(|port| format!(" port {port}")).unwrap_or_default();
    let address = &destination.address;
    let what = format!("host {name} ({user}{address}{port}) {what}");
    Refusal { what: remove_control_characters(&what), hint: hint.into() }
}

/// A host that was not reached, or has no shell that answers.
fn describe_silence(name: &str, destination: &SshDestination, output: &Output, elapsed: Duration) -> Refusal {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = said.last().map_or("nothing", |line| line.strip_prefix("ssh: ").unwrap_or(line));
    let elapsed = Nanos::from(elapsed);
    if output.status.code() != Some(SSH_FAILED) {
        let what = format!("has no shell that answers: {}; {last}", output.status);
        return refuse_host(name, destination, &what, "perflab needs a login with a POSIX shell there");
    }
    let has_said = |text: &str| said.iter().any(|line| line.contains(text));
    let (what, hint) = if has_said("HOST IDENTIFICATION HAS CHANGED") {
        let what = format!("was refused after {elapsed}: its host key is not the one that is known");
        let hint = "find out why: the machine was installed anew, or it is another one; then replace the known key \
                    (`ssh-keygen -R`), or say in `ssh-options` of hosts.toml which one it is (`UserKnownHostsFile`)";
        (what, hint)
    } else if has_said("Host key verification failed") {
        let what = format!("was refused after {elapsed}: its host key is not known");
        let hint = "log in once by hand and look at the key, or say in `ssh-options` of hosts.toml which one it is \
                    (`UserKnownHostsFile`)";
        (what, hint)
    } else if has_said("Permission denied") {
        let what = format!("lets nobody in, after {elapsed}: {last}");
        (what, "perflab asks for no password: give `user` and `identity` in hosts.toml, or run an ssh agent")
    } else {
        let what = format!("does not answer: after {elapsed}, ssh said: {last}");
        (what, "look at its `address`, `port` and `jump` in hosts.toml, or leave it out")
    };
    refuse_host(name, destination, &what, hint)
}

/// The standard input of perflab there; none once it is to end.
type HoldInput = Arc<Mutex<Option<ChildStdin>>>;

/// A host on which perflab waits for orders. Dropped, it ends there and its folder is removed.
#[derive(Debug)]
pub struct ReachedHost {
    name: String,
    destination: SshDestination,
    /// What it is.
    pub facts: HostFacts,
    /// Whether somebody held it when it was reached,
    pub is_held: bool,
    /// and who, if that one said so.
    pub holder: Option<HostHolder>,
    /// Where perflab lies there.
    folder: String,
    child: Child,
    stdin: HoldInput,
    answers: Receiver<HostAnswer>,
    stderr: StderrTail,
}

impl ReachedHost {
    /// Reaches a host, looks at it, copies perflab there and starts it.
    ///
    /// # Errors
    /// It does not answer, is of another architecture, has no room.
    pub fn reach(
        name: &str,
        destination: &SshDestination,
        perflab: &Path,
        stop: &StopRequest,
    ) -> Result<Self, Refusal> {
        let facts = HostFacts::ask(name, destination, stop)?;
        if let Some(obstacle) = facts.obstacle(name, destination) {
            return Err(obstacle);
        }
        let refuse =
            |error: io::Error| refuse_host(name, destination, &format!("cannot run perflab: {error}"), "");
        let folder = copy_agent_bundle(perflab, |script, bundle| {
            run_stoppable_command(destination.command(&[]).arg(script).stdin(bundle), stop)
        });
        let mut reached =
            ReachedHost::start(name, destination, facts, folder.map_err(refuse)?).map_err(refuse)?;
        match reached.await_answer(stop) {
            Ok(HostAnswer::Ready { is_held, holder }) => {
                (reached.is_held, reached.holder) = (is_held, holder);
                Ok(reached)
            }
            Ok(_) => Err(refuse_host(name, destination, "answers otherwise than perflab", "")),
            Err(reason) => Err(refuse_host(name, destination, &format!("cannot run perflab: {reason}"), "")),
        }
    }

    /// Starts perflab there, whose folder is removed when it has ended.
    fn start(name: &str, destination: &SshDestination, facts: HostFacts, folder: String) -> io::Result<Self> {
        let mut command = destination.command(&["ServerAliveInterval=15", "ServerAliveCountMax=3"]);
        command.arg(format!("{folder}/perflab hold-host; rm -rf {folder}"));
        // A ^C at the terminal is not for this ssh: what was changed there is put back first.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        let stderr = StderrTail::of_child(&mut child);
        let stdin: HoldInput = Arc::new(Mutex::new(child.stdin.take()));
        let (sender, answers) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::Builder::new().name("host-answers".into()).spawn(move || {
                let mut reader = BufReader::new(stdout);
                let mut line = Vec::new();
                while matches!(
                    io::Read::take(&mut reader, LONGEST_LINE as u64).read_until(b'\n', &mut line),
                    Ok(1..)
                ) {
                    let answer = HostAnswer::parse(&String::from_utf8_lossy(&line));
                    line.clear();
                    if answer.is_some_and(|answer| sender.send(answer).is_err()) {
                        return;
                    }
                }
            })?;
        }
        let beating = Arc::clone(&stdin);
        std::thread::Builder::new().name("host-beat".into()).spawn(move || {
            while write_order(&beating, &HostOrder::Live).is_ok() {
                std::thread::sleep(BEAT);
            }
        })?;
        Ok(ReachedHost {
            name: name.to_owned(),
            destination: destination.clone(),
            facts,
            is_held: false,
            holder: None,
            folder,
            child,
            stdin,
            answers,
            stderr,
        })
    }

    /// Where perflab lies there.
    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }

    /// Whether perflab still runs there.
    pub(crate) fn is_alive(&mut self) -> bool {
        !has_ended_within(&mut self.child, Duration::ZERO)
    }

    /// Takes the machine for a run; who has it, where somebody has.
    ///
    /// # Errors
    /// It is not reached any more.
    pub(crate) fn take(
        &mut self,
        holder: &HostHolder,
        stop: &StopRequest,
    ) -> Result<Option<HeldBy>, Refusal> {
        let sent =
            write_order(&self.stdin, &HostOrder::Take(holder.clone())).map_err(|error| error.to_string());
        match sent.and_then(|()| self.await_answer(stop)) {
            Ok(HostAnswer::Taken) => Ok(None),
            Ok(HostAnswer::Held(holder)) => Ok(Some(HeldBy(holder))),
            Ok(HostAnswer::Failed(reason)) => Err(self.refuse(&format!("cannot be held: {reason}"))),
            Ok(HostAnswer::Ready { .. }) => Err(self.refuse("answers otherwise than perflab")),
            Err(reason) => Err(self.refuse(&format!("was lost: {reason}"))),
        }
    }

    /// Leaves the machine to others. Who is not reached has left it.
    pub(crate) fn release(&self) {
        let _ = write_order(&self.stdin, &HostOrder::Release);
    }

    /// Says what the host did.
    pub(crate) fn refuse(&self, what: &str) -> Refusal {
        refuse_host(&self.name, &self.destination, what, "")
    }

    /// Lets perflab there end, without waiting until it has.
    pub(crate) fn begin_end(&self) {
        self.stdin.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Gives it up: there is nothing there any more that could end.
    pub(crate) fn abandon(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The next answer.
    fn await_answer(&mut self, stop: &StopRequest) -> Result<HostAnswer, String> {
        let begun = Instant::now();
        loop {
            match self.answers.recv_timeout(LOOK) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => {
                    let ended = has_ended_within(&mut self.child, GRACE);
                    let text = if ended { self.stderr.text() } else { String::new() };
                    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
                    return Err(last.map_or_else(|| "it ended without a word".into(), str::to_owned));
                }
                Err(RecvTimeoutError::Timeout) if stop.is_requested() => {
                    return Err("stopped before it had answered".into());
                }
                Err(RecvTimeoutError::Timeout) if begun.elapsed() > ANSWER => {
                    return Err(format!("no answer within {}", Nanos::from(ANSWER)));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Who has a machine; not known where that one does not say so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldBy(pub(crate) Option<HostHolder>);

impl Drop for ReachedHost {
    fn drop(&mut self) {
        self.begin_end();
        if !has_ended_within(&mut self.child, GRACE) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn write_order(stdin: &HoldInput, order: &HostOrder) -> io::Result<()> {
    let mut text = serde_json::to_vec(order).map_err(io::Error::other)?;
    text.push(b'\n');
    let mut stdin = stdin.lock().unwrap_or_else(PoisonError::into_inner);
    let stdin = stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    stdin.write_all(&text)
}
