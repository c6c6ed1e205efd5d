//! An agent over ssh: its bundle is copied there, run over ssh's standard input and output, and removed. The user's own
//! ssh is used, with its configuration, keys and known hosts; it never asks anything.

use std::io;
use std::process::{Command, Stdio};

use perflab_model::StopRequest;
use perflab_model::study::TargetSpec;
use perflab_settings::run_stoppable_command;
use perflab_workload::argv_element::quote_word;

use crate::connection::Connection;
use crate::launcher::agent_bundle::copy_agent_bundle;
use crate::launcher::agent_handle::LaunchedAgent;
use crate::launcher::process::{AgentProcess, StderrTail};
use crate::run_context::LocalMachine;

/// A machine as ssh reaches it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SshDestination {
    /// `user@host`, or a name of ssh's own configuration.
    pub address: String,
    /// Options of ssh's configuration, `KEYWORD=VALUE`.
    pub options: Vec<String>,
}

impl SshDestination {
    /// Where a target is.
    pub(crate) fn of_target(spec: &TargetSpec) -> Self {
        SshDestination {
            address: spec.address.clone().unwrap_or_default(),
            options: spec.ssh_options.clone(),
        }
    }

    /// The user's ssh to it, with further options, which come first.
    pub(crate) fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new("ssh");
        // What it would ask could not be seen, let alone answered.
        command.args(["-o", "BatchMode=yes"]);
        for option in options.iter().copied().chain(self.options.iter().map(String::as_str)) {
            command.args(["-o", option]);
        }
        command.args(["-T", "--", &self.address]);
        command
    }
}

/// What leads ssh through other machines, each an address with its options, the nearest to the destination first; nothing where there
/// are none. It is ssh's own `ProxyJump`, but that no machine on the way asks anything, and that each has options of its own.
pub(crate) fn proxy_command(way: &[(&str, Vec<String>)]) -> Option<String> {
    let ((address, options), rest) = way.split_first()?;
    let further = proxy_command(rest).map(|command| format!("ProxyCommand={command}"));
    let mut words = vec!["ssh".to_owned(), "-o".to_owned(), "BatchMode=yes".to_owned()];
    for option in options.iter().chain(&further) {
        // ssh replaces %h in the whole command, of which this is the next one's.
        words.extend(["-o".to_owned(), quote_word(&option.replace('%', "%%"))]);
    }
    words.extend(["-W".to_owned(), "'[%h]:%p'".to_owned(), "--".to_owned()]);
    words.push(quote_word(&address.replace('%', "%%")));
    Some(words.join(" "))
}

/// Copies perflab to a machine and starts its agent there; `folder` is where it lies there already.
pub(crate) fn launch_over_ssh(
    name: &str,
    destination: &SshDestination,
    folder: Option<&str>,
    host: &LocalMachine,
    stop: &StopRequest,
) -> io::Result<LaunchedAgent> {
    let script = match folder {
        Some(folder) => format!("exec {folder}/perflab agent"),
        None => {
            let folder = copy_agent_bundle(&host.perflab, |script, bundle| {
                run_stoppable_command(destination.command(&[]).arg(script).stdin(bundle), stop)
            })?;
            format!("{folder}/perflab agent; rm -rf {folder}")
        }
    };
    let mut command = destination.command(&[]);
    command.arg(script);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stderr = StderrTail::of_child(&mut child);
    let lost = || io::Error::other("a requested pipe is missing");
    let (stdout, stdin) = (child.stdout.take().ok_or_else(lost)?, child.stdin.take().ok_or_else(lost)?);
    Ok(LaunchedAgent {
        connection: Connection::new(name, stdout, stdin),
        handle: Box::new(AgentProcess::new(child, stderr)),
    })
}
