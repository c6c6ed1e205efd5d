//! `cpus-online = N`: the first N CPUs stay, the others are taken offline.

use perflab_model::{Refusal, ValueTolerance};
use perflab_observe::Root;

use crate::error::SettingError;
use crate::setting::SettingContent;
use crate::setting_file::{FileWrite, PresetFileState, expand_pattern};

/// The files of the CPUs that can be taken offline; the first one of most machines has none.
const FILES: &str = "/sys/devices/system/cpu/cpu*/online";

/// What is written for N CPUs.
///
/// # Errors
/// There are not so many, or none can be taken offline.
pub(crate) fn plan_cpus(name: &str, level: &str, root: &Root) -> Result<Vec<FileWrite>, SettingError> {
    let refuse = |what: String, hint: &str| {
        Err(SettingError::Refused(Refusal { what: format!("{name}: {what}"), hint: hint.into() }))
    };
    let present = count_cpus(root, "present");
    let Some(wanted) = level.parse::<u32>().ok().filter(|count| *count >= 1) else {
        return refuse(format!("`{level}` is no number of CPUs"), "give 1 or more");
    };
    if wanted > present {
        return refuse(format!("{wanted} CPUs are asked for, and there are {present}"), "give fewer");
    }
    let files = expand_pattern(&root.0, FILES);
    if files.is_empty() && wanted < present {
        let hint = "it needs CONFIG_HOTPLUG_CPU and a machine that allows it: leave it out";
        return refuse("no CPU can be taken offline here".into(), hint);
    }
    let write = |path: std::path::PathBuf| {
        let folder = path.parent()?.file_name()?.to_str()?;
        let number: u32 = folder.strip_prefix("cpu")?.parse().ok()?;
        let value = if number < wanted { "1" } else { "0" };
        Some(FileWrite { path, value: value.into(), tolerance: ValueTolerance::Exact })
    };
    Ok(files.into_iter().filter_map(write).collect())
}

/// How many CPUs are online.
pub(crate) fn read_count(root: &Root) -> Result<PresetFileState, SettingError> {
    let path = root.path("/sys/devices/system/cpu/online");
    let value = SettingContent::read(&path)?.value;
    let count = count_cpus(root, "online").to_string();
    Ok(PresetFileState { path, value: Some(value), level: Some(count), offered: Vec::new() })
}

fn count_cpus(root: &Root, which: &str) -> u32 {
    let text = root.read(&format!("/sys/devices/system/cpu/{which}")).unwrap_or_default();
    let numbers = perflab_model::placement::parse_number_list(&text).unwrap_or_default();
    u32::try_from(numbers.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_first_cpus_stay_and_the_first_of_all_has_no_file() {
        let home = tempfile::tempdir().unwrap();
        let root = Root(home.path().to_owned());
        let cpus = home.path().join("sys/devices/system/cpu");
        for number in 1..4 {
            fs::create_dir_all(cpus.join(format!("cpu{number}"))).unwrap();
            fs::write(cpus.join(format!("cpu{number}/online")), "1\n").unwrap();
        }
        fs::write(cpus.join("present"), "0-3\n").unwrap();
        let values = |level: &str| -> Vec<String> {
            plan_cpus("cpus-online", level, &root).unwrap().into_iter().map(|write| write.value).collect()
        };
        assert_eq!(
            (values("2"), values("1"), values("4")),
            (vec!["1".to_owned(), "0".into(), "0".into()], vec!["0".into(); 3], vec!["1".into(); 3])
        );
        for level in ["0", "5", "all"] {
            assert!(
                matches!(plan_cpus("cpus-online", level, &root), Err(SettingError::Refused(_))),
                "{level}"
            );
        }
    }
}
