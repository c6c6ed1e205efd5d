//! What the guest was booted for.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::line::ControlPort;
use super::{
    ControlFrame, GuestCommand, GuestMessage, GuestWork, HostMessage, InitError, agent, ports, reap,
};
use crate::initramfs::GUEST_HOME;

/// Where the shell is.
const CONSOLE: &str = "/dev/hvc0";

/// Does it, and tells how it ended.
pub(super) fn do_work(work: &GuestWork, vsock: Option<u32>, line: &ControlPort) -> Result<(), InitError> {
    let ended = match work {
        GuestWork::Agent => run_agent(vsock, line)?,
        GuestWork::Command(command) => run_piped_command(command, line)?,
        GuestWork::Shell(command) => run_shell(command, line)?,
        GuestWork::Shells(command) => loop {
            run_shell(command, line)?;
        },
    };
    line.send(&ended);
    Ok(())
}

fn perflab_command() -> Process {
    let mut process = Process::new(Path::new(GUEST_HOME).join("perflab"));
    set_login_environment(&mut process);
    process
}

/// What a login gives; a kernel gives HOME=/ and TERM=linux.
fn set_login_environment(process: &mut Process) {
    process.env("HOME", "/root").env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
}

fn start_process(process: &mut Process, what: &str) -> Result<Child, InitError> {
    process.spawn().map_err(InitError::system_error("start", what))
}

/// perflab itself, taking orders.
fn run_agent(vsock: Option<u32>, line: &ControlPort) -> Result<GuestMessage, InitError> {
    let mut agent = agent::agent_command(vsock)?;
    set_login_environment(&mut agent);
    let child = start_process(agent.stdin(Stdio::null()), "the agent")?;
    line.send(&GuestMessage::Ready);
    Ok(reap::reap_until_exit(child.id()))
}

/// A shell on the virtual console, with it as its terminal.
fn run_shell(command: &GuestCommand, line: &ControlPort) -> Result<GuestMessage, InitError> {
    ports::wait_for_device(Path::new(CONSOLE))?;
    let mut process = perflab_command();
    set_surroundings(&mut process, command);
    let child = start_process(process.args(["terminal", CONSOLE]).args(&command.argv), "a shell")?;
    line.send(&GuestMessage::Ready);
    Ok(reap::reap_until_exit(child.id()))
}

fn set_surroundings(process: &mut Process, command: &GuestCommand) {
    let there = command.directory.is_dir();
    process.current_dir(if there { &command.directory } else { Path::new("/") });
    process.env_clear().envs(command.environment.iter().map(|(name, value)| (name, value)));
}

/// A command whose standard streams are the host's.
fn run_piped_command(command: &GuestCommand, line: &ControlPort) -> Result<GuestMessage, InitError> {
    let nothing =
        || InitError::system_error("start", "nothing")(io::Error::from(io::ErrorKind::InvalidInput));
    let (program, arguments) = command.argv.split_first().ok_or_else(nothing)?;
    let mut process = Process::new(program);
    set_surroundings(&mut process, command);
    process.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    line.send(&GuestMessage::Ready);
    let mut child =
        process.spawn().map_err(|source| match is_hidden_by_tmp(program, &command.directory) {
            true if source.kind() == io::ErrorKind::NotFound => {
                InitError::Hidden { what: program.clone(), source }
            }
            _ => InitError::system_error("start", program)(source),
        })?;
    if let (Some(input), Ok(ear)) = (child.stdin.take(), line.reader()) {
        // Not waited for: input may never end.
        thread::spawn(move || feed_command(ear, input));
    }
    let output = child.stdout.take().map(|from| copy_to_host(from, line.clone(), GuestMessage::Output));
    let errors = child.stderr.take().map(|from| copy_to_host(from, line.clone(), GuestMessage::Errors));
    let ended = reap::reap_until_exit(child.id());
    wait_for_pipes(&[output, errors]);
    Ok(ended)
}

/// Whether a program is named by a path in the host's /tmp, which no guest has.
fn is_hidden_by_tmp(program: &str, directory: &Path) -> bool {
    program.contains('/') && directory.join(program).starts_with("/tmp")
}

/// How long a command's background processes may go on printing after it has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Both pipes come to their end with the command, unless somebody in the background holds them.
fn wait_for_pipes(copiers: &[Option<JoinHandle<()>>]) {
    let ended = Instant::now();
    while ended.elapsed() < LAST_WORDS && copiers.iter().flatten().any(|copier| !copier.is_finished()) {
        thread::sleep(Duration::from_millis(1));
    }
}

/// From a pipe to the host.
fn copy_to_host(
    mut from: impl Read + Send + 'static,
    line: ControlPort,
    said: fn(Vec<u8>) -> GuestMessage,
) -> JoinHandle<()> {
    let mut buffer = vec![0; 16 << 10];
    thread::spawn(move || {
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            line.send(&said(buffer.get(..length).unwrap_or_default().to_vec()));
        }
    })
}

/// From the host to the command.
fn feed_command(mut ear: File, mut input: impl Write) {
    while let Ok(Some(HostMessage::Input(bytes))) = HostMessage::read(&mut ear) {
        if input.write_all(&bytes).is_err() {
            return;
        }
    }
}
