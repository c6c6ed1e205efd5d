//! Areas that the kernel swaps to: which there are, whether memory has room for what is in them, and how they are turned on and off.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::{Bytes, Refusal};
use perflab_observe::Root;

use crate::child_command::run_command;
use crate::error::SettingError;

/// Where the kernel lists what it swaps to.
pub(crate) const FILE: &str = "/proc/swaps";

/// So much of memory stays free when pages come back from swap, at least: a hundredth part.
const SPARE: u64 = 100;

/// One line of /proc/swaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SwapArea {
    pub path: PathBuf,
    /// KiB in use.
    used: u64,
    pub priority: i32,
}

/// The areas in use, the first one first.
pub(crate) fn read_areas(root: &Root) -> Vec<SwapArea> {
    parse_areas(&root.read(FILE).unwrap_or_default())
}

fn parse_areas(text: &str) -> Vec<SwapArea> {
    let area = |line: &str| {
        // From the end: blanks in a path are written as \040, and a file that is gone has a word behind it.
        let mut words = line.split_whitespace().rev();
        let priority = words.next()?.parse().ok()?;
        let used = words.next()?.parse().ok()?;
        let path = line.split_whitespace().next()?;
        let path = perflab_observe::mounts::unescape_mount_path(path.as_bytes());
        Some(SwapArea { path, used, priority })
    };
    text.lines().skip(1).filter_map(area).collect()
}

/// Their names, for people and to be compared.
pub(crate) fn describe_areas(areas: &[SwapArea]) -> String {
    let names: Vec<String> = areas.iter().map(|area| area.path.display().to_string()).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// What is swapped out has to find room in memory when its area is turned off.
pub(crate) fn check_memory(areas: &[SwapArea], root: &Root) -> Result<(), SettingError> {
    let used: u64 = areas.iter().map(|area| area.used).sum();
    let text = root.read("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| -> Option<u64> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let (total, free) = (field("MemTotal:").unwrap_or(0), field("MemAvailable:").unwrap_or(0));
    if used == 0 || used + total / SPARE <= free {
        return Ok(());
    }
    let what = format!(
        "swap: {} are swapped out, and {} of memory are available",
        Bytes(used << 10),
        Bytes(free << 10)
    );
    let hint = "end what uses the memory, or leave swap as it is".into();
    Err(SettingError::Refused(Refusal { what, hint }))
}

/// Turns an area on again, if it is not.
pub(crate) fn restore_area(path: &Path, priority: i32) -> Result<(), SettingError> {
    if read_areas(&Root::host()).iter().any(|area| area.path == path) {
        return Ok(());
    }
    // A negative one is the kernel's own choice, which it makes again.
    let priority = (priority >= 0).then(|| format!("--priority={priority}"));
    let argv = ["swapon".to_owned()].into_iter().chain(priority).chain([path.display().to_string()]);
    run_command(&argv.collect::<Vec<_>>()).map(drop)
}

/// Turns an area off, if it is on.
pub(crate) fn end_area(path: &Path) -> Result<(), SettingError> {
    let (root, all) = (Root::host(), read_areas(&Root::host()));
    let own: Vec<SwapArea> = all.into_iter().filter(|area| area.path == path).collect();
    if own.is_empty() {
        return Ok(());
    }
    check_memory(&own, &root)?;
    run_command(&["swapoff".into(), path.display().to_string()]).map(drop)
}

/// Gives the memory of a zram device back, and removes it where it was added.
pub(crate) fn reset_zram(device: &str, added: bool) -> Result<(), SettingError> {
    let folder = Path::new("/sys/block").join(device);
    if !folder.exists() {
        return Ok(());
    }
    let write = |path: PathBuf, value: &str| {
        fs::write(&path, value).map_err(|source| SettingError::File { action: "write", path, source })
    };
    write(folder.join("reset"), "1")?;
    let number = device.trim_start_matches("zram");
    if added { write("/sys/class/zram-control/hot_remove".into(), number) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_read_with_their_priorities_and_checked_against_memory() {
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
                    /dev/dm-1                               partition\t8388604\t\t524288\t\t-2\n\
                    /swap\\040file                          file\t\t1048572\t\t0\t\t5\n";
        let areas = parse_areas(text);
        assert_eq!(areas[1].path, Path::new("/swap file"));
        assert_eq!((areas[0].used, areas[0].priority, areas[1].priority), (524_288, -2, 5));
        let home = tempfile::tempdir().unwrap();
        let root = Root(home.path().to_owned());
        fs::create_dir(home.path().join("proc")).unwrap();
        let check = |available: u64| {
            let text = format!("MemTotal: 1000000 kB\nMemAvailable: {available} kB\n");
            fs::write(home.path().join("proc/meminfo"), text).unwrap();
            check_memory(&areas, &root).is_ok()
        };
        assert!(check(600_000) && !check(500_000));
    }
}
