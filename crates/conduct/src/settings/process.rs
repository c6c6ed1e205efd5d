//! Commands that perflab runs for itself: a level's apply, mkfs, mount.

use std::process::{Command, Stdio};

use crate::ConductError;

/// Runs argv to its end. Standard output comes back; a failure carries the last line of stderr.
pub(crate) fn command(argv: &[String]) -> Result<String, ConductError> {
    let failed = |reason: String| ConductError::Command { command: argv.join(" "), reason };
    let (program, arguments) = argv.split_first().ok_or_else(|| failed("there is no command".into()))?;
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    Err(failed(format!("{}: {last}", output.status)))
}
