//! `tso:eth0`, `gso`, `gro`, `lro`, `rx-checksum`, `tx-checksum` `= on | off`: what a network device does in place of the kernel.
//!
//! One switch may hold another: without sums that the device makes it cuts no packets. The kernel remembers what was wanted, and
//! does so when the first is back.

use std::path::PathBuf;

use perflab_model::{PresetLevel, PresetName, Refusal};
use perflab_observe::{NetworkOffload, Root};

use crate::error::SettingError;
use crate::queue_discipline::device_folder;
use crate::setting_file::{PresetFileState, expand_pattern};

fn refuse(what: String, hint: &str) -> SettingError {
    SettingError::Refused(Refusal { what, hint: hint.into() })
}

/// The switch that a preset is about.
///
/// # Errors
/// There is none of this name.
pub(crate) fn offload_of_preset(name: &str) -> Result<NetworkOffload, SettingError> {
    let preset = PresetName::new(name).preset;
    NetworkOffload::ALL.into_iter().find(|offload| offload.name() == preset).ok_or_else(|| {
        let known = NetworkOffload::ALL.map(NetworkOffload::name).join(", ");
        refuse(format!("{preset}: network devices have no such switch"), &format!("there are {known}"))
    })
}

fn parse_level(level: &PresetLevel) -> Result<bool, SettingError> {
    match level.level.as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(refuse(format!("{}: `{other}` is neither on nor off", level.name), "write on, or off")),
    }
}

/// Whether a level can be had here, as far as is known before: what a device cannot do it refuses only when it is asked.
///
/// # Errors
/// Why not.
pub(crate) fn check_offload(level: &PresetLevel, root: &Root) -> Result<(), SettingError> {
    let (offload, name) = (offload_of_preset(&level.name)?, &level.name);
    parse_level(level)?;
    if !root.is_host() {
        return Err(refuse(format!("{name}: only this machine's devices can be set"), "leave it out"));
    }
    let device = level.part.as_deref().unwrap_or_default();
    if !device_folder(device).exists() {
        return Err(refuse(format!("{name}: there is no such network device"), "name one of /sys/class/net"));
    }
    read_offload(offload, device)?;
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(refuse(format!("{name}: only root may change it"), "run as root, or leave it out"))
}

/// Whether a device does it.
pub(crate) fn read_offload(offload: NetworkOffload, device: &str) -> Result<bool, SettingError> {
    offload.read(device).map_err(|source| SettingError::File {
        action: "read the switches of",
        path: device_folder(device),
        source,
    })
}

/// Sets a switch, and reads it back.
///
/// # Errors
/// The device refuses, or does otherwise.
pub(crate) fn set_offload(offload: NetworkOffload, device: &str, is_on: bool) -> Result<(), SettingError> {
    let (path, asked) = (device_folder(device), format!("{} {}", offload.name(), word(is_on)));
    offload.set(device, is_on).map_err(|source| SettingError::ValueRefused {
        path: path.clone(),
        asked: asked.clone(),
        source,
    })?;
    if read_offload(offload, device)? == is_on {
        return Ok(());
    }
    Err(SettingError::ValueIgnored { path, asked, now: word(!is_on).into() })
}

/// As a level.
pub(crate) fn word(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// The level's switch, device and position.
pub(crate) fn plan_offload(level: &PresetLevel) -> Result<(NetworkOffload, String, bool), SettingError> {
    let device = level.part.clone().unwrap_or_default();
    Ok((offload_of_preset(&level.name)?, device, parse_level(level)?))
}

/// What a device does, or all of them.
pub(crate) fn read_state(name: &str, device: Option<&str>, root: &Root) -> Vec<PresetFileState> {
    let Some(offload) = offload_of_preset(name).ok().filter(|_| root.is_host()) else { return Vec::new() };
    let pattern = device_folder(device.unwrap_or("*")).display().to_string();
    let state = |path: PathBuf| {
        let is_on = offload.read(path.file_name()?.to_str()?).ok()?;
        let level = Some(word(is_on).to_owned());
        Some(PresetFileState { path, value: level.clone(), level, offered: Vec::new() })
    };
    expand_pattern(&root.0, &pattern).into_iter().filter_map(state).collect()
}
