//! A knob: one setting at one level, worked out from the study before anything is changed.

use std::path::PathBuf;

use perflab_model::Case;
use perflab_model::expression::{ExpressionError, ExpressionScope};
use perflab_model::study::{Factor, FactorKind, FactorSide, Study};
use perflab_observe::Root;

/// One setting at the level that a case wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// A file of /proc or /sys and its wanted content.
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
}

impl Setting {
    /// What it is called in events and messages.
    pub fn name(&self) -> &str {
        match self {
            Setting::File { name, .. } => name,
            Setting::Commands { factor, .. } => factor,
            Setting::DropCaches(_) => "drop_caches",
        }
    }
}

/// A knob, and whose level it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactorSetting {
    /// The factor's name.
    pub factor: String,
    /// The level's name.
    pub level: String,
    /// What that means here.
    pub setting: Setting,
}

/// The knobs of one case, in the study's order of factors; with a `side`, only those that are turned there.
pub fn resolve_settings(
    study: &Study,
    case: &Case,
    scope: &ExpressionScope,
    root: &Root,
    side: Option<FactorSide>,
) -> Result<Vec<FactorSetting>, ExpressionError> {
    let mut wanted = Vec::new();
    for (name, level) in &case.levels {
        let factor = study.factor.get(name);
        let here = |factor: &&Factor| side.is_none_or(|side| factor.on.unwrap_or(FactorSide::Host) == side);
        if let Some(factor) = factor.filter(here) {
            let knob = resolve_setting(name, factor, level, scope, root)?;
            wanted.extend(knob.map(|knob| FactorSetting {
                factor: name.clone(),
                level: level.clone(),
                setting: knob,
            }));
        }
    }
    Ok(wanted)
}

fn resolve_setting(
    name: &str,
    factor: &Factor,
    level: &str,
    scope: &ExpressionScope,
    root: &Root,
) -> Result<Option<Setting>, ExpressionError> {
    let Some(level) = factor.levels.iter().find(|candidate| candidate.name == level) else { return Ok(None) };
    let key = factor.key.clone().unwrap_or_else(|| name.into());
    Ok(match factor.kind {
        FactorKind::Sysctl => Some(Setting::File {
            path: root.path(&sysctl_path(&key)),
            name: format!("sysctl {key}"),
            value: scope.render(&level.value.to_string())?,
        }),
        FactorKind::File => Some(Setting::File {
            path: root.path(&key),
            name: key,
            value: scope.render(&level.value.to_string())?,
        }),
        FactorKind::Commands => Some(Setting::Commands {
            factor: name.into(),
            level: level.name.clone(),
            apply: level.apply.clone(),
            undo: level.undo.clone(),
        }),
        FactorKind::DropCaches => {
            level.value.as_number().filter(|which| *which > 0.0).map(|which| Setting::DropCaches(which as u8))
        }
        // `disk::wanted` and the plan take care of these.
        FactorKind::Parameter
        | FactorKind::Environment
        | FactorKind::Disk
        | FactorKind::Label
        | FactorKind::Targets => None,
    })
}

/// `vm.swappiness` -> `/proc/sys/vm/swappiness`; a name that holds slashes already is taken as a path,
/// as sysctl(8) does for interface names with dots.
pub(super) fn sysctl_path(key: &str) -> String {
    if key.contains('/') {
        format!("/proc/sys/{key}")
    } else {
        format!("/proc/sys/{}", key.replace('.', "/"))
    }
}
