//! A program with a terminal of its own, as a login has one.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{ioctl_tiocsctty, setsid};

/// Becomes `argv` in a new session whose terminal is `device`. Comes back only with the reason why it could not.
pub fn exec_on_terminal(device: &Path, argv: &[OsString]) -> io::Error {
    match command_on_terminal(device, argv) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    }
}

fn command_on_terminal(device: &Path, argv: &[OsString]) -> io::Result<Command> {
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    setsid()?;
    let terminal = OpenOptions::new().read(true).write(true).open(device)?;
    ioctl_tiocsctty(&terminal)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(terminal.try_clone()?).stdout(terminal.try_clone()?).stderr(terminal);
    Ok(command)
}
