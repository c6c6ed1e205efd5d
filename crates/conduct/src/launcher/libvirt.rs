//! An agent in a domain of libvirt.
//!
//! The domain is the user's: it is started if it does not run, reached by ssh as any machine is, and shut down
//! again if it was started here; its XML, as libvirt runs it, is kept with the run. libvirt is driven with its own
//! `virsh`: perflab may do what the user's virsh may.

use std::io;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use perflab_model::StopRequest;
use perflab_model::study::TargetSpec;
use perflab_settings::run_stoppable_command;

use crate::launcher::agent_handle::{AgentHandle, LaunchedAgent};
use crate::launcher::ssh::{SshDestination, launch_over_ssh};
use crate::run_context::LocalMachine;

/// From the start of a domain to a login: firmware, a boot loader, all services of a distribution.
const BOOT: Duration = Duration::from_secs(300);

/// From the wish that a domain shuts down to its end; then it is switched off.
const SHUTDOWN: Duration = Duration::from_secs(60);

const LOOK: Duration = Duration::from_millis(500);

/// A domain, and how virsh is called for it.
#[derive(Debug, Clone)]
struct LibvirtDomain {
    name: String,
    connect: Option<String>,
}

impl LibvirtDomain {
    /// Asks virsh; who wishes to `stop` does not wait for its answer.
    fn run_virsh(&self, verb: &[&str], stop: &StopRequest) -> io::Result<String> {
        let mut command = Command::new("virsh");
        if let Some(uri) = &self.connect {
            command.args(["--connect", uri]);
        }
        let (verb, options) = verb.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        command.arg(verb).args(options).args(["--domain", &self.name]);
        // What is read from its answers is not to be translated.
        let asked = command.env("LC_ALL", "C").stdin(Stdio::null());
        let output = run_stoppable_command(asked, stop).map_err(explain_missing_virsh)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let reason = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        Err(io::Error::other(format!("virsh {verb} of domain {}: {reason}", self.name)))
    }

    fn is_running(&self, stop: &StopRequest) -> io::Result<bool> {
        Ok(self.run_virsh(&["domstate"], stop)?.trim() == "running")
    }

    /// Asks it to shut down, and switches it off if it does not.
    fn shut_down(&self) -> io::Result<()> {
        // What was started is ended, whoever wishes to stop.
        let never = StopRequest::new();
        if !self.is_running(&never)? {
            return Ok(());
        }
        self.run_virsh(&["shutdown"], &never)?;
        let begun = Instant::now();
        while self.is_running(&never)? {
            if begun.elapsed() > SHUTDOWN {
                return self.run_virsh(&["destroy"], &never).map(drop);
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

fn explain_missing_virsh(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::other("virsh is not installed (Debian: apt-get install libvirt-clients)")
        }
        _ => error,
    }
}

/// A domain with an agent in it.
#[derive(Debug)]
struct LibvirtAgent {
    domain: LibvirtDomain,
    /// Whether it did not run before.
    ours: bool,
    xml: String,
    /// Its agent; none until there is one.
    agent: Option<Box<dyn AgentHandle>>,
    ended: bool,
}

impl AgentHandle for LibvirtAgent {
    fn end(&mut self) -> String {
        if std::mem::replace(&mut self.ended, true) {
            return String::new();
        }
        let mut printed = self.agent.take().map(|mut agent| agent.end()).unwrap_or_default();
        if self.ours
            && let Err(error) = self.domain.shut_down()
        {
            printed.push_str(&format!("\n{error}"));
        }
        format!("perflab: domain {} of libvirt\n{}\n{printed}", self.domain.name, self.xml)
    }
}

impl Drop for LibvirtAgent {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts the domain, if it does not run, and an agent in it.
pub(crate) fn launch_in_domain(
    name: &str,
    target: &TargetSpec,
    host: &LocalMachine,
    stop: &StopRequest,
) -> io::Result<LaunchedAgent> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let domain = LibvirtDomain { name: text(&target.domain), connect: target.connect.clone() };
    let ours = !domain.is_running(stop)?;
    if ours {
        // A start that is not waited for would go on, and the domain would never be ended.
        domain.run_virsh(&["start"], &StopRequest::new())?;
    }
    // From here on it ends with this value.
    let mut running = LibvirtAgent { domain, ours, xml: String::new(), agent: None, ended: false };
    running.xml = running.domain.run_virsh(&["dumpxml"], stop)?;
    let LaunchedAgent { connection: channel, handle: place } =
        launch_when_reachable(name, &SshDestination::of_target(target), host, stop)?;
    running.agent = Some(place);
    Ok(LaunchedAgent { connection: channel, handle: Box::new(running) })
}

/// Its sshd comes up late in a boot: it is tried until it answers.
fn launch_when_reachable(
    name: &str,
    destination: &SshDestination,
    host: &LocalMachine,
    stop: &StopRequest,
) -> io::Result<LaunchedAgent> {
    let begun = Instant::now();
    loop {
        match launch_over_ssh(name, destination, None, host, stop) {
            Ok(started) => return Ok(started),
            Err(error) if stop.is_requested() || begun.elapsed() > BOOT => return Err(error),
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}
