//! `sched-features = "+NEXT_BUDDY -TTWU_QUEUE"`: switches of the scheduler in debugfs, one word each.
//!
//! The file reads as all words, `NO_` before those that are off, and takes one word a write.

use perflab_model::{PresetLevel, PresetNeeds, Refusal, ValueTolerance};
use perflab_observe::Root;

use crate::error::SettingError;
use crate::setting::SettingContent;
use crate::setting_file::{FileWrite, PresetFileState, describe_absence};

/// Where the words are.
pub(crate) const FILE: &str = "/sys/kernel/debug/sched/features";

/// The whole line that the file is to read as.
///
/// # Errors
/// The file is not there, or knows no such word.
pub(crate) fn plan_words(level: &PresetLevel, root: &Root) -> Result<Vec<FileWrite>, SettingError> {
    let path = root.path(FILE);
    if !path.exists() {
        return Err(SettingError::Refused(describe_missing_features(&level.name, &level.needs, root)));
    }
    let now = SettingContent::read(&path)?.value;
    let mut words: Vec<String> = now.split_whitespace().map(str::to_owned).collect();
    for change in level.level.split_whitespace() {
        let (name, is_on) = match (change.strip_prefix('+'), change.strip_prefix('-')) {
            (Some(name), _) => (name, true),
            (None, Some(name)) => (name, false),
            (None, None) => {
                let what = format!("{}: `{change}` is neither +NAME nor -NAME", level.name);
                let hint = "write `+NEXT_BUDDY` to switch it on, `-NEXT_BUDDY` to switch it off".into();
                return Err(SettingError::Refused(Refusal { what, hint }));
            }
        };
        let known = words.iter().position(|word| feature_name(word) == name);
        let Some(place) = known.and_then(|place| words.get_mut(place)) else {
            let names: Vec<&str> = words.iter().map(|word| feature_name(word)).collect();
            let what = format!("{}: this kernel's scheduler has no feature `{name}`", level.name);
            let hint = perflab_model::suggest_name(name, names.iter().copied());
            return Err(SettingError::Refused(Refusal { what, hint }));
        };
        *place = if is_on { name.to_owned() } else { format!("NO_{name}") };
    }
    Ok(vec![FileWrite { path, value: words.join(" "), tolerance: ValueTolerance::Exact }])
}

fn feature_name(word: &str) -> &str {
    word.strip_prefix("NO_").unwrap_or(word)
}

/// All words as they are.
pub(crate) fn read_state(
    name: &str,
    needs: &PresetNeeds,
    root: &Root,
) -> Result<Vec<PresetFileState>, Refusal> {
    let path = root.path(FILE);
    let value = SettingContent::read(&path).map_err(|_| describe_missing_features(name, needs, root))?.value;
    Ok(vec![PresetFileState { path, level: Some(value.clone()), value: Some(value), offered: Vec::new() }])
}

fn describe_missing_features(name: &str, needs: &PresetNeeds, root: &Root) -> Refusal {
    let file = perflab_model::PresetFile {
        paths: vec![FILE.into()],
        words: Default::default(),
        takes: None,
        range: None,
        offered_by: None,
        tolerance: ValueTolerance::Exact,
    };
    describe_absence(name, needs, &[file], root)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use perflab_model::{SettingMechanism, SettingPreset};

    use super::*;

    #[test]
    fn words_are_switched_in_their_places() {
        let home = tempfile::tempdir().unwrap();
        let root = Root(home.path().to_owned());
        let file = root.path(FILE);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "PLACE_LAG NO_NEXT_BUDDY TTWU_QUEUE\n").unwrap();
        let preset = SettingPreset { mechanism: Some(SettingMechanism::SchedulerFeatures), ..toml_preset() };
        let plan = |level: &str| {
            let level = PresetLevel::new("sched-features", &preset, level).unwrap();
            plan_words(&level, &root).map(|writes| writes[0].value.clone())
        };
        assert_eq!(plan("+NEXT_BUDDY -TTWU_QUEUE").unwrap(), "PLACE_LAG NEXT_BUDDY NO_TTWU_QUEUE");
        assert!(plan("NEXT_BUDDY").is_err() && plan("+NEXT_BUDY").is_err());
    }

    fn toml_preset() -> SettingPreset {
        perflab_model::study::TomlSource::new("x.toml", "title = \"t\"\n").parse().unwrap()
    }
}
