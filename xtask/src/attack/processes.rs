//! Processes of an attack: started in a folder of its own, watched, killed, and looked for afterwards.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::attempts::AttackEnvironment;

/// After this, something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// perflab in the attack's folder, with state, archive and temporary files there.
pub fn perflab_command(ground: &AttackEnvironment, arguments: &[&str]) -> Command {
    let mut command = Command::new(&ground.perflab);
    command.args(arguments).current_dir(&ground.folder).stdin(Stdio::null());
    command.env("PERFLAB_STATE", ground.folder.join("state")).env("TMPDIR", perflab_temporary_folder(ground));
    command
}

/// Runs perflab to its end.
pub fn run_perflab(ground: &AttackEnvironment, arguments: &[&str]) -> Result<Output> {
    perflab_command(ground, arguments).output().context("cannot start perflab")
}

/// Where perflab's temporary files go.
pub fn perflab_temporary_folder(ground: &AttackEnvironment) -> PathBuf {
    let folder = ground.folder.join("temporary");
    // What cannot be made is reported by whoever writes there.
    let _ = fs::create_dir(&folder);
    folder
}

/// Names in the folder of temporary files, and half-made runs.
pub fn list_left_files(ground: &AttackEnvironment) -> Vec<String> {
    let names = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
    };
    let halves = names(ground.folder.join("perflab-archive/runs")).filter(|name| name.starts_with(".half-"));
    names(perflab_temporary_folder(ground)).chain(halves).collect()
}

/// Processes that live and were started in the attack's folder, by their environment or a word of their command line, after some
/// time to end.
pub fn find_survivors(ground: &AttackEnvironment, word: &str) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let found = list_living_processes(&ground.folder, word);
        if found.is_empty() || begun.elapsed() > Duration::from_secs(3) {
            return found;
        }
        sleep(Duration::from_millis(20));
    }
}

/// Kills what survived, so that the next attempt counts for itself.
pub fn kill_survivors(ground: &AttackEnvironment, word: &str) {
    for process in list_living_processes(&ground.folder, word) {
        let pid = process.split(' ').next().unwrap_or_default();
        let _ = Command::new("kill").args(["-9", pid]).stderr(Stdio::null()).status();
    }
}

fn list_living_processes(folder: &Path, word: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let mark = folder.display().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let described = |entry: fs::DirEntry| {
        let pid =
            entry.file_name().into_string().ok().filter(|pid| pid.parse::<u32>().is_ok() && *pid != own)?;
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        let is_ours = String::from_utf8_lossy(&read("environ")).contains(&mark)
            || (!word.is_empty() && line.contains(word) && !line.contains("attack"));
        // A zombie has neither.
        (is_ours && !line.is_empty()).then(|| format!("{pid} {}", line.trim()))
    };
    entries.filter_map(described).collect()
}

/// Sends a signal by its name (`INT`) to one process, or to its whole group.
pub fn send_signal(process: u32, name: &str, group: bool) -> Result<()> {
    let target = if group { format!("-{process}") } else { process.to_string() };
    let sent = Command::new("kill").args([&format!("-{name}"), "--", &target]).stderr(Stdio::null()).status();
    sent.map(drop).context("cannot run kill")
}

/// How a process ended, and how much memory it had at most, in bytes.
pub struct ProcessEnd {
    /// its exit code, or 128 and the signal; none where it hung and was killed
    pub code: Option<i32>,
    /// the peak of its resident set, as seen while it lived
    pub peak: u64,
}

/// Waits for a process; one that hangs is killed with its group.
pub fn wait_for_process(child: &mut Child) -> Result<ProcessEnd> {
    use std::os::unix::process::ExitStatusExt;
    let (begun, mut peak) = (Instant::now(), 0);
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0) * 1024);
        if let Some(status) = child.try_wait()? {
            let code = status.code().or(status.signal().map(|signal| 128 + signal));
            return Ok(ProcessEnd { code, peak });
        }
        if begun.elapsed() > PATIENCE {
            send_signal(child.id(), "KILL", true)?;
            child.kill()?;
            child.wait()?;
            return Ok(ProcessEnd { code: None, peak });
        }
        sleep(Duration::from_millis(10));
    }
}

/// A number below another, of the kernel's.
pub fn random_below(below: u64) -> Result<u64> {
    let mut bytes = [0; 8];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes) % below)
}
