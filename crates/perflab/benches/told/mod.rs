//! A command run to its end, and what it took: for benches of the whole program.

#![allow(dead_code, reason = "not every bench asks for everything")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

/// What a command took.
pub struct CommandCost {
    /// By the clock.
    pub seconds: f64,
    /// Of all processors together, in the hundredths of a second that the kernel counts.
    pub processors: f64,
    /// The largest resident set that was seen, looked at every 2 ms.
    pub peak_mib: f64,
}

/// `perflab --archive ARCHIVE`
pub fn perflab_command(archive: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perflab"));
    command.arg("--archive").arg(archive);
    command
}

/// Runs it.
pub fn measure_command(command: &mut Command) -> anyhow::Result<CommandCost> {
    let output = tempfile::NamedTempFile::new()?;
    let (begin, before) = (Instant::now(), children_cpu_seconds()?);
    let started = command.stdout(output.reopen()?).stderr(Stdio::null()).spawn();
    let mut child = started.with_context(|| format!("cannot start {command:?}"))?;
    let mut peak_mib = 0.0_f64;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None => peak_mib = peak_mib.max(peak_memory(&child).unwrap_or(0.0)),
        }
        sleep(Duration::from_millis(2));
    };
    let seconds = begin.elapsed().as_secs_f64();
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(CommandCost { seconds, processors: children_cpu_seconds()? - before, peak_mib })
}

fn peak_memory(child: &Child) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? / 1024.0)
}

/// Seconds of processor time of all children that ended (fields 16 and 17 of `/proc/self/stat`).
pub fn children_cpu_seconds() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let ticks: Result<Vec<f64>, _> = fields.skip(13).take(2).map(str::parse).collect();
    Ok(ticks?.iter().sum::<f64>() / 100.0)
}

/// The middle one.
pub fn median_value(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
