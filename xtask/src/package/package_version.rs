//! What a package is called and when it was made: the version of the workspace, the time of the commit.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Seconds since 1970: `SOURCE_DATE_EPOCH` where that is set, else the time of the commit, so that who builds it again later gets the
/// same bytes (<https://reproducible-builds.org/specs/source-date-epoch/>).
pub fn read_source_date() -> Result<u64> {
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        return text.parse().with_context(|| format!("SOURCE_DATE_EPOCH={text} is no number of seconds"));
    }
    let output =
        Command::new("git").args(["log", "-1", "--format=%ct"]).output().context("cannot run git")?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    text.parse().with_context(|| "git tells no time of a commit: set SOURCE_DATE_EPOCH")
}

/// That time as RFC 3339 has it.
pub fn format_source_date(seconds: u64) -> Result<String> {
    let output = Command::new("date")
        .args(["--utc", "--date", &format!("@{seconds}"), "+%Y-%m-%dT%H:%M:%SZ"])
        .output()?;
    if !output.status.success() {
        bail!("date: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
