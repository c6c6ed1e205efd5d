//! `swap = none | file:SIZE | zram:SIZE:ALGORITHM | unchanged`: what the kernel swaps to while a level is in force.
//!
//! The machine's own areas are turned off before one of ours is made, and on again, with their priorities, when ours is gone. Nothing
//! is turned off whose pages would not find room in memory.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::{Bytes, Refusal};
use perflab_observe::Root;
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open};

use crate::child_command::run_command;
use crate::error::SettingError;
use crate::setting::SettingContent;
use crate::setting_file::{PresetFileState, expand_pattern};
use crate::swap_areas::{FILE, SwapArea, check_memory, describe_areas, read_areas};
use crate::undo_entry::UndoEntry;
use crate::undo_journal::UndoJournal;

/// The level at which the machine's own areas are left alone.
pub(crate) const UNCHANGED: &str = "unchanged";

#[derive(Debug, Clone, PartialEq, Eq)]
enum SwapLevel {
    Unchanged,
    None,
    File(Bytes),
    Zram { size: Bytes, algorithm: Option<String> },
}

impl SwapLevel {
    fn parse(level: &str) -> Result<Self, SettingError> {
        let mut parts = level.split(':');
        let size = |text: Option<&str>| Bytes::parse(text?).ok().filter(|size| size.0 >= 1 << 20);
        let found = match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(UNCHANGED), None, ..) => Some(SwapLevel::Unchanged),
            (Some("none"), None, ..) => Some(SwapLevel::None),
            (Some("file"), text, None, _) => size(text).map(SwapLevel::File),
            (Some("zram"), text, algorithm, None) => {
                size(text).map(|size| SwapLevel::Zram { size, algorithm: algorithm.map(str::to_owned) })
            }
            _ => None,
        };
        found.ok_or_else(|| {
            let hint = "write none, unchanged, file:1GiB, zram:1GiB or zram:1GiB:lz4; 1MiB is the least";
            refused_level(format!("swap: `{level}` is nothing to swap to"), hint)
        })
    }
}

fn refused_level(what: String, hint: &str) -> SettingError {
    SettingError::Refused(Refusal { what, hint: hint.into() })
}

pub(crate) fn read_state(root: &Root) -> Vec<PresetFileState> {
    let value = describe_areas(&read_areas(root));
    let path = root.path(FILE);
    vec![PresetFileState { path, level: Some(value.clone()), value: Some(value), offered: Vec::new() }]
}

/// Whether a level can be had here, as far as is known before.
pub(crate) fn check_swap_level(level: &str, root: &Root) -> Result<(), SettingError> {
    let level = SwapLevel::parse(level)?;
    if level != SwapLevel::Unchanged {
        if !rustix::process::geteuid().is_root() {
            return Err(refused_level(
                "swap: areas cannot be written: only root may".into(),
                "run as root, or leave it out",
            ));
        }
        check_memory(&read_areas(root), root)?;
    }
    if matches!(level, SwapLevel::Zram { .. }) && find_zram_folder(root).is_none() {
        let hint = "modprobe zram, or leave it out: it needs CONFIG_ZRAM";
        return Err(refused_level("swap: this kernel has no zram device".into(), hint));
    }
    Ok(())
}

/// What is in force of ours, and how it is undone.
#[derive(Debug, Default)]
pub(crate) struct SwapInForce {
    pub level: String,
    /// Undo entries of our own area, the first one first.
    own: Vec<u32>,
    /// Those of the machine's own areas.
    originals: Vec<u32>,
    /// What the kernel listed then.
    pub listed: String,
}

/// Brings swap to a level, from another of ours or from what the machine has.
pub(crate) fn apply_swap_level(
    level: &str,
    held: &mut SwapInForce,
    journal: &mut UndoJournal,
    root: &Root,
) -> Result<(), SettingError> {
    let wanted = SwapLevel::parse(level)?;
    for entry in std::mem::take(&mut held.own).into_iter().rev() {
        journal.undo(entry)?;
    }
    if wanted == SwapLevel::Unchanged {
        for entry in std::mem::take(&mut held.originals).into_iter().rev() {
            journal.undo(entry)?;
        }
    } else {
        let areas = read_areas(root);
        check_memory(&areas, root)?;
        // The one of the lowest priority first, so that they come back in the order in which they were.
        for SwapArea { path, priority, .. } in areas.iter().rev() {
            let undo = UndoEntry::SwapOn { path: path.clone(), priority: *priority };
            held.originals.push(journal.promise(undo)?);
            run_command(&["swapoff".into(), path.display().to_string()])?;
        }
    }
    match &wanted {
        SwapLevel::Unchanged | SwapLevel::None => {}
        SwapLevel::File(size) => add_file(*size, held, journal)?,
        SwapLevel::Zram { size, algorithm } => add_zram(*size, algorithm.as_deref(), held, journal, root)?,
    }
    let listed = read_areas(root);
    let is_right = match wanted {
        SwapLevel::Unchanged => true,
        SwapLevel::None => listed.is_empty(),
        SwapLevel::File(_) | SwapLevel::Zram { .. } => listed.len() == 1,
    };
    held.level = level.into();
    held.listed = describe_areas(&listed);
    if is_right {
        return Ok(());
    }
    Err(SettingError::ValueAltered { path: root.path(FILE), asked: level.into(), now: held.listed.clone() })
}

fn add_file(size: Bytes, held: &mut SwapInForce, journal: &mut UndoJournal) -> Result<(), SettingError> {
    let path = journal.own_file_path("swap");
    held.own.push(journal.promise(UndoEntry::Remove { path: path.clone() })?);
    let failed = |action| {
        let path = path.clone();
        move |errno: rustix::io::Errno| SettingError::File { action, path, source: errno.into() }
    };
    // Not one that somebody has put there: its content would be swapped over.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(failed("create"))?;
    fallocate(&file, FallocateFlags::empty(), 0, size.0).map_err(failed("fill"))?;
    drop(file);
    turn_on(&path, held, journal)
}

fn turn_on(path: &Path, held: &mut SwapInForce, journal: &mut UndoJournal) -> Result<(), SettingError> {
    run_command(&["mkswap".into(), path.display().to_string()])?;
    held.own.push(journal.promise(UndoEntry::SwapOff { path: path.into() })?);
    run_command(&["swapon".into(), path.display().to_string()]).map(drop)
}

/// The folder of a zram device that nobody uses; none where there is none and none can be added.
fn find_zram_folder(root: &Root) -> Option<PathBuf> {
    let is_free =
        |folder: &PathBuf| fs::read_to_string(folder.join("disksize")).is_ok_and(|size| size.trim() == "0");
    let free = expand_pattern(&root.0, "/sys/block/zram*").into_iter().find(is_free);
    free.or_else(|| Some(root.path("/sys/class/zram-control")).filter(|control| control.exists()))
}

fn add_zram(
    size: Bytes,
    algorithm: Option<&str>,
    held: &mut SwapInForce,
    journal: &mut UndoJournal,
    root: &Root,
) -> Result<(), SettingError> {
    let folder = find_zram_folder(root)
        .ok_or_else(|| refused_level("swap: there is no zram device".into(), "modprobe zram"))?;
    let is_control = folder.ends_with("zram-control");
    let folder = if is_control {
        // Reading adds a device, whose number it gives.
        let number = SettingContent::read(&folder.join("hot_add"))?.value;
        root.path(&format!("/sys/block/zram{number}"))
    } else {
        folder
    };
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    held.own.push(journal.promise(UndoEntry::ResetZram { device: name.clone(), added: is_control })?);
    let write = |file: &str, value: &str| {
        let path = folder.join(file);
        fs::write(&path, value).map_err(|source| SettingError::ValueRefused {
            path,
            asked: value.into(),
            source,
        })
    };
    if let Some(algorithm) = algorithm {
        write("comp_algorithm", algorithm)?;
        let now = SettingContent::read(&folder.join("comp_algorithm"))?.value;
        if now != algorithm {
            let path = folder.join("comp_algorithm");
            return Err(SettingError::ValueAltered { path, asked: algorithm.into(), now });
        }
    }
    write("disksize", &size.0.to_string())?;
    turn_on(&Path::new("/dev").join(name), held, journal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_kinds_of_areas_with_their_sizes() {
        let parse = |level: &str| SwapLevel::parse(level).ok();
        assert_eq!(parse("none"), Some(SwapLevel::None));
        assert_eq!(parse("file:64MiB"), Some(SwapLevel::File(Bytes(64 << 20))));
        let zram = SwapLevel::Zram { size: Bytes(1 << 30), algorithm: Some("lz4".into()) };
        assert_eq!(parse("zram:1GiB:lz4"), Some(zram));
        for level in ["", "file", "file:12", "file:4KiB", "zram:1GiB:lz4:x", "none:1GiB", "partition"] {
            assert_eq!(parse(level), None, "{level}");
        }
    }
}
