//! One step of getting a kernel: a command run to its end, and what is told meanwhile.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::kernel::KernelError;

/// What somebody who waits for a kernel is told.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum KernelProgress<'a> {
    /// A command that is about to be run, or what else is being done.
    Step(&'a str),
    /// Another file was compiled.
    Compiled {
        /// how many so far
        done: u32,
        /// how many the last build of its kind took; none where there was none
        expected: Option<u32>,
        /// since the compiler was started
        elapsed: Duration,
    },
}

/// Who is told.
pub type KernelListener<'a> = dyn FnMut(KernelProgress<'_>) + 'a;

/// What is wrong when there is no room left.
pub(crate) const DISK_FULL: &str = "the disk is full: a kernel's sources take 1.5 GB and its build 0.3 to 2 GB; \
                                    $PERFLAB_CACHE may name another place";

impl KernelError {
    /// Whether another revision of the sources may well build: the machine has what a build needs.
    pub fn is_of_sources(&self) -> bool {
        match self {
            KernelError::Compile { .. }
            | KernelError::Patch { .. }
            | KernelError::NoSources { .. }
            | KernelError::LacksOptions { .. } => true,
            KernelError::Command { hint, .. } => *hint != Some(DISK_FULL),
            _ => false,
        }
    }
}

/// Runs one command in `folder` to its end; its standard output comes back.
pub(crate) fn run_step(
    folder: &Path,
    argv: &[&str],
    hint: Option<&'static str>,
    tell: &mut KernelListener<'_>,
) -> Result<String, KernelError> {
    tell(KernelProgress::Step(&argv.join(" ")));
    let mut command = Command::new(argv.first().copied().unwrap_or_default());
    command.args(argv.iter().skip(1)).current_dir(folder);
    run_command(command, hint)
}

/// Runs a command to its end, silently; its standard output comes back.
pub(crate) fn run_command(mut command: Command, hint: Option<&'static str>) -> Result<String, KernelError> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let failed = |reason: String, hint| KernelError::Command { command: line.clone(), reason, hint };
    command.stdin(Stdio::null()).env("LC_ALL", "C");
    let output = command.output().map_err(|error| failed(error.to_string(), hint))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let hint = if stderr.contains("No space left on device") { Some(DISK_FULL) } else { hint };
    let last: Vec<&str> = stderr.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    Err(failed(
        format!("{}: {}", output.status, last.into_iter().rev().collect::<Vec<_>>().join(" | ")),
        hint,
    ))
}
