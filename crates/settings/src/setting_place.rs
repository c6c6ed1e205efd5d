//! Where a setting stands in a study, and the files that it writes.

use std::path::PathBuf;

use perflab_model::study::{Factor, Study};
use perflab_model::{PlannedSetting, Setting};
use perflab_observe::Root;

use crate::preset_files::{SettingSite, plan_file_writes};

/// Where a setting stands in the study: all of its levels.
pub(crate) fn setting_key(study: &Study, planned: &PlannedSetting) -> String {
    match study.factor.get(&planned.factor).filter(|_| !planned.fixed) {
        Some(factor) => factor_key(&planned.factor, factor),
        None => format!("settings.{}", planned.factor),
    }
}

/// The files that a setting writes to, as far as they are known before it is made.
pub(crate) fn written_paths(setting: &Setting, root: &Root) -> Vec<PathBuf> {
    match setting {
        Setting::File { path, .. } => vec![root.path(&path.to_string_lossy())],
        Setting::Preset(level) => {
            let writes = plan_file_writes(level, SettingSite { root, disk: None }).unwrap_or_default();
            writes.into_iter().map(|write| write.path).collect()
        }
        Setting::Commands { .. } | Setting::DropCaches(_) => Vec::new(),
    }
}

pub(crate) fn factor_key(name: &str, factor: &Factor) -> String {
    if factor.key.is_some() { format!("factor.{name}.key") } else { format!("factor.{name}") }
}
