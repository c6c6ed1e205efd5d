//! A preset on this machine: what each of its files gets at a level, what it holds, and why it cannot be set.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::{PresetFile, PresetLevel, Refusal, SettingMechanism, SettingPreset, ValueTolerance};
use perflab_observe::Root;
use rustix::fs::{Access, access};

use crate::cpus_online;
use crate::error::SettingError;
use crate::group_limit;
use crate::interrupts;
use crate::offload_level;
use crate::queue_discipline;
use crate::scheduler_features;
use crate::setting::{SettingContent, has_write_bit, is_same_value};
use crate::setting_file::{FileWrite, PresetFileState, describe_absence, expand_pattern};
use crate::study_disk::{StudyDisk, disk_part};
use crate::swap_level;
use crate::wakeup_latency;

/// The machine that presets are set on.
#[derive(Debug, Clone, Copy)]
pub struct SettingSite<'a> {
    /// Root of /proc and /sys.
    pub root: &'a Root,
    /// The study's own disk, where it is there.
    pub disk: Option<&'a StudyDisk>,
}

/// What each file gets at a level.
///
/// # Errors
/// This machine does not have it, or does not offer the level.
pub(crate) fn plan_file_writes(
    level: &PresetLevel,
    site: SettingSite<'_>,
) -> Result<Vec<FileWrite>, SettingError> {
    match level.mechanism {
        Some(SettingMechanism::CpusOnline) => {
            return cpus_online::plan_cpus(&level.name, &level.level, site.root);
        }
        Some(SettingMechanism::SchedulerFeatures) => return scheduler_features::plan_words(level, site.root),
        Some(SettingMechanism::Interrupts) => {
            return interrupts::plan_interrupts(&level.name, &level.level, site.root);
        }
        Some(
            SettingMechanism::WakeupLatency
            | SettingMechanism::Swap
            | SettingMechanism::QueueDiscipline
            | SettingMechanism::Offload
            | SettingMechanism::ControlGroup,
        )
        | None => {}
    }
    for file in &level.files {
        let paths = find_paths(file, level.part.as_deref(), level.of_disk, site)?;
        let Some(value) = file.translate(&level.level).filter(|_| !paths.is_empty()) else { continue };
        for path in &paths {
            check_offer(&level.name, &level.level, file, path, &value)?;
        }
        let write = |path| FileWrite { path, value: value.clone(), tolerance: file.tolerance };
        return Ok(paths.into_iter().map(write).collect());
    }
    Err(SettingError::Refused(describe_absence(&level.name, &level.needs, &level.files, site.root)))
}

/// Does what a preset is that is nothing to undo: it writes to its files, and believes that the kernel did it.
///
/// # Errors
/// A file is not there, or refuses.
pub fn run_trigger(level: &PresetLevel, root: &Root) -> Result<(), SettingError> {
    let writes = plan_file_writes(level, SettingSite { root, disk: None })?;
    writes.into_iter().filter(|write| write.value != NOTHING).try_for_each(|write| {
        let refused = |source| SettingError::ValueRefused {
            path: write.path.clone(),
            asked: write.value.clone(),
            source,
        };
        fs::write(&write.path, &write.value).map_err(refused)
    })
}

/// What a trigger's preset writes at the level at which nothing is done.
const NOTHING: &str = "";

/// Why a level cannot be set here, without setting it; nothing where it can, as far as is known before.
pub fn find_preset_refusal(level: &PresetLevel, site: SettingSite<'_>) -> Option<Refusal> {
    let refused = |error: SettingError| match error {
        SettingError::Refused(refusal) => refusal,
        other => Refusal { what: perflab_model::describe_error_chain(&other), hint: String::new() },
    };
    if level.of_disk && site.disk.is_none() {
        return None; // it is there only while the study runs
    }
    let planned = match level.mechanism {
        Some(SettingMechanism::WakeupLatency) => {
            wakeup_latency::check_latency_level(&level.level, site.root).map(|()| Vec::new())
        }
        Some(SettingMechanism::Swap) => {
            swap_level::check_swap_level(&level.level, site.root).map(|()| Vec::new())
        }
        Some(SettingMechanism::QueueDiscipline) => {
            let device = level.part.as_deref().unwrap_or_default();
            queue_discipline::check_discipline(&level.name, device, &level.level, site.root)
                .map(|()| Vec::new())
        }
        Some(SettingMechanism::Offload) => {
            offload_level::check_offload(level, site.root).map(|()| Vec::new())
        }
        Some(SettingMechanism::ControlGroup) => {
            group_limit::check_limit(level, (site.root, site.disk)).map(|()| Vec::new())
        }
        _ => plan_file_writes(level, site),
    };
    match planned {
        Ok(writes) => {
            let mut refusals = writes.iter().map(|write| describe_obstacle(level, write));
            let is_some = writes.iter().any(|write| write.tolerance == ValueTolerance::Some);
            if is_some && refusals.clone().any(|refusal| refusal.is_none()) {
                return None;
            }
            refusals.find_map(|refusal| refusal)
        }
        Err(error) => Some(refused(error)),
    }
}

/// Why one file of a level cannot be written, or not be read back.
fn describe_obstacle(level: &PresetLevel, write: &FileWrite) -> Option<Refusal> {
    let unwritable = describe_unwritable(&level.name, &write.path);
    // What is only done holds nothing.
    let unreadable = || SettingContent::read(&write.path).err().filter(|_| !level.trigger);
    unwritable.or_else(|| {
        let what = format!("{}: {}", level.name, perflab_model::describe_error_chain(&unreadable()?));
        Some(Refusal { what, hint: "the kernel forbids it (lockdown?): leave it out".into() })
    })
}

/// Why a file cannot be written, by its permissions.
fn describe_unwritable(name: &str, path: &Path) -> Option<Refusal> {
    let what = |reason: &str| format!("{name}: {} {reason}", path.display());
    if !has_write_bit(path) {
        let hint = "it cannot be set on this machine: leave it out".into();
        return Some(Refusal { what: what("is read-only"), hint });
    }
    let errno = access(path, Access::WRITE_OK).err()?;
    let hint = "run as root, or leave it out".into();
    Some(Refusal { what: what(&format!("cannot be written: {errno}")), hint })
}

/// What the files of a preset hold here: those of the first table that has some.
///
/// # Errors
/// This machine does not have it.
pub fn read_preset(
    name: &str,
    preset: &SettingPreset,
    part: Option<&str>,
    root: &Root,
) -> Result<Vec<PresetFileState>, Refusal> {
    let site = SettingSite { root, disk: None };
    match preset.mechanism {
        Some(SettingMechanism::CpusOnline) => {
            let state = cpus_online::read_count(root).map_err(|error| refusal_of(name, &error))?;
            return Ok(vec![state]);
        }
        Some(SettingMechanism::WakeupLatency) => {
            return wakeup_latency::read_state(root).map_err(|error| refusal_of(name, &error));
        }
        Some(SettingMechanism::Swap) => return Ok(swap_level::read_state(root)),
        Some(SettingMechanism::Interrupts) => return Ok(interrupts::read_state(root)),
        Some(SettingMechanism::QueueDiscipline) => return Ok(queue_discipline::read_state(part, root)),
        Some(SettingMechanism::Offload) => return Ok(offload_level::read_state(name, part, root)),
        Some(SettingMechanism::ControlGroup) => return group_limit::read_state(name, root),
        Some(SettingMechanism::SchedulerFeatures) => {
            return scheduler_features::read_state(name, &preset.needs, root);
        }
        None => {}
    }
    let mut found = Vec::new();
    for file in &preset.file {
        let paths = find_paths(file, part, false, site).unwrap_or_default();
        found.extend(paths.into_iter().map(|path| read_file_state(file, path)));
        // Alternatives of one thing; tables of several kinds of levels are all of it.
        if !found.is_empty() && preset.file.iter().all(|other| other.takes == file.takes) {
            break;
        }
    }
    if found.is_empty() {
        return Err(describe_absence(name, &preset.needs, &preset.file, root));
    }
    Ok(found)
}

fn refusal_of(name: &str, error: &SettingError) -> Refusal {
    Refusal { what: format!("{name}: {}", perflab_model::describe_error_chain(error)), hint: String::new() }
}

fn read_file_state(file: &PresetFile, path: PathBuf) -> PresetFileState {
    let content = SettingContent::read(&path).ok();
    let offered = match &file.offered_by {
        Some(name) => fs::read_to_string(path.with_file_name(name))
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        None => content.as_ref().map(|content| content.offered.clone()).unwrap_or_default(),
    };
    let value = content.map(|content| content.value);
    PresetFileState { level: value.as_deref().map(|value| level_of_value(file, value)), value, path, offered }
}

/// `1` and `Y` are one value to the kernel, and one level.
fn level_of_value(file: &PresetFile, value: &str) -> String {
    let same = file.words.iter().find(|(_, written)| is_same_value(written, value));
    same.map_or_else(|| file.level_of(value), |(word, _)| word.clone())
}

/// The paths of a table here, those of all patterns, in their order.
fn find_paths(
    file: &PresetFile,
    part: Option<&str>,
    of_disk: bool,
    site: SettingSite<'_>,
) -> Result<Vec<PathBuf>, SettingError> {
    let part = if of_disk { Some(disk_part(part, site.disk)?) } else { part.map(str::to_owned) };
    let mut found: Vec<PathBuf> = Vec::new();
    for pattern in &file.paths {
        if let Some(own) = own_read_ahead(pattern, of_disk, part.as_deref(), site.disk) {
            found.push(own);
            continue;
        }
        let pattern = pattern.replace("{part}", part.as_deref().unwrap_or("*"));
        for path in expand_pattern(&site.root.0, &pattern) {
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// A file system may read ahead by a file of its own (btrfs), and not by its disk's.
fn own_read_ahead(
    pattern: &str,
    of_disk: bool,
    part: Option<&str>,
    disk: Option<&StudyDisk>,
) -> Option<PathBuf> {
    let disk = disk.filter(|disk| of_disk && part == Some(disk.name.as_str()))?;
    disk.read_ahead.clone().filter(|_| pattern.ends_with("/read_ahead_kb"))
}

fn check_offer(
    name: &str,
    level: &str,
    file: &PresetFile,
    path: &Path,
    value: &str,
) -> Result<(), SettingError> {
    let state = read_file_state(file, path.to_owned());
    let known = state.offered.iter().any(|word| is_same_value(word, value));
    if state.offered.is_empty() || known || value.parse::<i64>().is_ok() {
        return Ok(());
    }
    let hint = match perflab_model::nearest_name(value, state.offered.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it offers {}", state.offered.join(", ")),
    };
    let what = format!("{name}: {} does not offer `{level}`", path.display());
    Err(SettingError::Refused(Refusal { what, hint }))
}
