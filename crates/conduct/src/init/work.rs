//! What the guest was booted for.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::line::Line;
use super::{Command, Control, InitError, Said, Told, Work, agent, ports, reap};
use crate::initramfs::HOME;

/// Where the shell is.
const CONSOLE: &str = "/dev/hvc0";

/// Does it, and tells how it ended.
pub(super) fn work(work: &Work, vsock: Option<u32>, line: &Line) -> Result<(), InitError> {
    let ended = match work {
        Work::Agent => serving(vsock, line)?,
        Work::Command(command) => piped(command, line)?,
        Work::Shell(command) => shell(command, line)?,
        Work::Shells(command) => loop {
            shell(command, line)?;
        },
    };
    line.say(&ended);
    Ok(())
}

fn itself() -> Process {
    let mut process = Process::new(Path::new(HOME).join("perflab"));
    login(&mut process);
    process
}

/// What a login gives; a kernel gives HOME=/ and TERM=linux.
fn login(process: &mut Process) {
    process.env("HOME", "/root").env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
}

fn started(process: &mut Process, what: &str) -> Result<Child, InitError> {
    process.spawn().map_err(InitError::refused("start", what))
}

/// perflab itself, taking orders.
fn serving(vsock: Option<u32>, line: &Line) -> Result<Said, InitError> {
    let mut agent = agent::command(vsock)?;
    login(&mut agent);
    let child = started(agent.stdin(Stdio::null()), "the agent")?;
    line.say(&Said::Ready);
    Ok(reap::until_gone(child.id()))
}

/// A shell on the virtual console, with it as its terminal.
fn shell(command: &Command, line: &Line) -> Result<Said, InitError> {
    ports::appears(Path::new(CONSOLE))?;
    let mut process = itself();
    surroundings(&mut process, command);
    let child = started(process.args(["terminal", CONSOLE]).args(&command.argv), "a shell")?;
    line.say(&Said::Ready);
    Ok(reap::until_gone(child.id()))
}

fn surroundings(process: &mut Process, command: &Command) {
    let there = command.directory.is_dir();
    process.current_dir(if there { &command.directory } else { Path::new("/") });
    process.env_clear().envs(command.environment.iter().map(|(name, value)| (name, value)));
}

/// A command whose standard streams are the host's.
fn piped(command: &Command, line: &Line) -> Result<Said, InitError> {
    let nothing = || InitError::refused("start", "nothing")(io::Error::from(io::ErrorKind::InvalidInput));
    let (program, arguments) = command.argv.split_first().ok_or_else(nothing)?;
    let mut process = Process::new(program);
    surroundings(&mut process, command);
    process.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    line.say(&Said::Ready);
    let mut child = process.spawn().map_err(|source| match is_hidden(program, &command.directory) {
        true if source.kind() == io::ErrorKind::NotFound => {
            InitError::Hidden { what: program.clone(), source }
        }
        _ => InitError::refused("start", program)(source),
    })?;
    if let (Some(input), Ok(ear)) = (child.stdin.take(), line.ear()) {
        // Not waited for: input may never end.
        thread::spawn(move || feed(ear, input));
    }
    let output = child.stdout.take().map(|from| copied(from, line.clone(), Said::Output));
    let errors = child.stderr.take().map(|from| copied(from, line.clone(), Said::Errors));
    let ended = reap::until_gone(child.id());
    last_words(&[output, errors]);
    Ok(ended)
}

/// Whether a program is named by a path in the host's /tmp, which no guest has.
fn is_hidden(program: &str, directory: &Path) -> bool {
    program.contains('/') && directory.join(program).starts_with("/tmp")
}

/// How long a command's background processes may go on printing after it has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Both pipes come to their end with the command, unless somebody in the background holds them.
fn last_words(copiers: &[Option<JoinHandle<()>>]) {
    let ended = Instant::now();
    while ended.elapsed() < LAST_WORDS && copiers.iter().flatten().any(|copier| !copier.is_finished()) {
        thread::sleep(Duration::from_millis(1));
    }
}

/// From a pipe to the host.
fn copied(mut from: impl Read + Send + 'static, line: Line, said: fn(Vec<u8>) -> Said) -> JoinHandle<()> {
    let mut buffer = vec![0; 16 << 10];
    thread::spawn(move || {
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            line.say(&said(buffer.get(..length).unwrap_or_default().to_vec()));
        }
    })
}

/// From the host to the command.
fn feed(mut ear: File, mut input: impl Write) {
    while let Ok(Some(Told::Input(bytes))) = Told::read(&mut ear) {
        if input.write_all(&bytes).is_err() {
            return;
        }
    }
}
