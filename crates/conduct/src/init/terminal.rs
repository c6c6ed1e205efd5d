//! A program with a terminal of its own, as a login has one.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{ioctl_tiocsctty, setsid};

/// Becomes `argv` in a new session whose terminal is `device`. Comes back only with the reason why it could not.
pub fn terminal(device: &Path, argv: &[OsString]) -> io::Error {
    match attached(device, argv) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    }
}

fn attached(device: &Path, argv: &[OsString]) -> io::Result<Command> {
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    setsid()?;
    let terminal = OpenOptions::new().read(true).write(true).open(device)?;
    ioctl_tiocsctty(&terminal)?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(terminal.try_clone()?).stdout(terminal.try_clone()?).stderr(terminal);
    Ok(command)
}
