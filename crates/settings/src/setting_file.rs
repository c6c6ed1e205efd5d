//! Files that settings are written to: which a pattern means, what one is to hold, what it holds, and why there are none.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::{PresetFile, PresetName, PresetNeeds, Refusal, ValueTolerance};
use perflab_observe::{KernelConfig, Root};

/// A file, and what it is to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileWrite {
    pub path: PathBuf,
    pub value: String,
    pub tolerance: ValueTolerance,
}

/// What one file of a preset holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresetFileState {
    /// The file.
    pub path: PathBuf,
    /// What is in force, as the file says it; none where it cannot be read.
    pub value: Option<String>,
    /// The same as a level of the preset.
    pub level: Option<String>,
    /// The words that the kernel offers there.
    pub offered: Vec<String>,
}

/// The paths below `root` that a pattern means, by the numbers in their names.
pub(crate) fn expand_pattern(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        found = found.into_iter().flat_map(|folder| list_matches(&folder, part)).collect();
    }
    found.retain(|path| path.exists());
    found
}

fn list_matches(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    if !pattern.contains('*') {
        return vec![folder.join(pattern)];
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| matches_pattern(name, pattern))
        .collect();
    names.sort_by_key(|name| {
        (name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(), name.len(), name.clone())
    });
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// Whether `*` in the pattern can stand for what a name has there.
fn matches_pattern(name: &str, pattern: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(mut left) = name.strip_prefix(head) else { return false };
    if !rest.contains('*') {
        return left.ends_with(rest);
    }
    loop {
        if matches_pattern(left, rest) {
            return true;
        }
        let mut characters = left.chars();
        if characters.next().is_none() {
            return false;
        }
        left = characters.as_str();
    }
}

/// Why none of a preset's files is there.
pub(crate) fn describe_absence(
    name: &str,
    needs: &PresetNeeds,
    files: &[PresetFile],
    root: &Root,
) -> Refusal {
    let part = PresetName::new(name).part.unwrap_or("*");
    let looked = files.first().and_then(|file| file.paths.first()).map_or("", String::as_str);
    let looked = looked.replace("{part}", part);
    let what = match (&needs.option, &needs.hardware) {
        (Some(option), hardware) => match (KernelConfig::read(root), hardware) {
            (Some(config), _) if config.option(option) == "n" => {
                format!("this kernel is built without CONFIG_{option}")
            }
            (Some(_), Some(hardware)) => format!("this machine lacks {hardware}"),
            (Some(config), None) if config.option(option) == "m" => {
                format!("the module of CONFIG_{option} is not loaded")
            }
            (Some(_), None) => format!("{looked} is not there"),
            (None, Some(hardware)) => {
                format!("this machine lacks {hardware}, or its kernel CONFIG_{option}")
            }
            (None, None) => format!("this kernel seems to be built without CONFIG_{option}"),
        },
        (None, Some(hardware)) => format!("this machine lacks {hardware}"),
        (None, None) => format!("{looked} is not there"),
    };
    let is_debugfs = looked.starts_with("/sys/kernel/debug/");
    let is_mounted = !root.list("/sys/kernel/debug").is_empty();
    if is_debugfs && !is_mounted {
        return Refusal {
            what: format!("{name}: debugfs is not mounted"),
            hint: "mount -t debugfs debugfs /sys/kernel/debug".into(),
        };
    }
    Refusal { what: format!("{name}: {what}"), hint: "leave it out on this machine".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_every_path_that_it_can_mean_in_the_order_of_numbers() {
        let home = tempfile::tempdir().unwrap();
        for name in ["policy0", "policy2", "policy10", "other"] {
            let folder = home.path().join("sys/cpufreq").join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("scaling_governor"), "powersave\n").unwrap();
        }
        let found = expand_pattern(home.path(), "/sys/cpufreq/policy*/scaling_governor");
        let names: Vec<&str> = found.iter().filter_map(|path| path.parent()?.file_name()?.to_str()).collect();
        assert_eq!(names, ["policy0", "policy2", "policy10"]);
        assert!(expand_pattern(home.path(), "/sys/nothing*/x").is_empty());
        for (name, pattern, is_match) in [
            ("hugepages-2048kB", "hugepages-*kB", true),
            ("ab", "a*b*", true),
            ("ab", "b*", false),
            ("a", "a*a", false),
        ] {
            assert_eq!(matches_pattern(name, pattern), is_match, "{name} {pattern}");
        }
    }
}
