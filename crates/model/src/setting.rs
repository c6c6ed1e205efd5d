//! What a level of a factor, or a line of `[settings]`, sets on a machine: worked out once, when a study is planned.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::setting_preset::PresetLevel;
use crate::study::factor_side::FactorSide;

/// One setting at the level that a case wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// A file of /proc or /sys and its requested content. What it held is read before, and written back.
    File {
        /// `sysctl vm.swappiness`, or the path
        name: String,
        /// the file
        path: PathBuf,
        /// what to write
        value: String,
    },
    /// Commands of the user's, by factor.
    Commands {
        /// the factor's name
        factor: String,
        /// the level's name
        level: String,
        /// argv, empty for a level that changes nothing
        apply: Vec<String>,
        /// argv, empty likewise
        undo: Vec<String>,
    },
    /// Caches to drop before each iteration: 1, 2 or 3. Nothing to undo.
    DropCaches(u8),
    /// A preset at one level: the files of all CPUs, of the study's own disk, or what has a mechanism of its own.
    Preset(Box<PresetLevel>),
}

impl Setting {
    /// What it is called in events and messages.
    pub fn name(&self) -> &str {
        match self {
            Setting::File { name, .. } => name,
            Setting::Commands { factor, .. } => factor,
            Setting::DropCaches(_) => "drop_caches",
            Setting::Preset(preset) => &preset.name,
        }
    }

    /// The file that has to be there and writable, and what it is called in messages.
    pub fn needed_file(&self) -> Option<(&str, &Path)> {
        match self {
            Setting::File { name, path, .. } => Some((name, path)),
            Setting::DropCaches(_) => Some(("dropping caches", Path::new("/proc/sys/vm/drop_caches"))),
            Setting::Commands { .. } | Setting::Preset(_) => None,
        }
    }

    /// What it does, and by what it is undone where that is not the value before; nothing where it changes nothing.
    pub fn describe(&self) -> Option<String> {
        match self {
            Setting::File { name, value, .. } => Some(format!("{name}={value}")),
            Setting::Commands { apply, undo, .. } if apply.is_empty() && undo.is_empty() => None,
            Setting::Commands { apply, undo, .. } => {
                Some(format!("{} (undo: {})", apply.join(" "), undo.join(" ")))
            }
            Setting::DropCaches(which) => Some(format!("drop caches {which}")),
            Setting::Preset(preset) => Some(format!("{}={}", preset.name, preset.level)),
        }
    }
}

/// A setting, and whose level it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedSetting {
    /// The factor's name; of a setting that all cases have, its name.
    pub factor: String,
    /// The level's name.
    pub level: String,
    /// Whether all cases have it: it stands under `[settings]`, not in a factor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fixed: bool,
    /// The side that it is set on; absent in a study without targets. The value of a target's setting is the study's
    /// expression: each target works it out by its own facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<FactorSide>,
    /// What is set.
    pub setting: Setting,
}

impl PlannedSetting {
    /// Whose setting it is, for people.
    pub fn describe_owner(&self) -> String {
        let PlannedSetting { factor, level, .. } = self;
        if self.fixed {
            format!("settings.{factor} = {level}")
        } else {
            format!("factor `{factor}`, level `{level}`")
        }
    }

    /// Whether it is set on this side; everything is where there are no sides.
    pub fn is_set_on(&self, side: Option<FactorSide>) -> bool {
        side.is_none_or(|side| self.on.unwrap_or(FactorSide::Host) == side)
    }
}

/// The path with `.` and `..` taken as they are written.
#[must_use]
pub fn normalize_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
