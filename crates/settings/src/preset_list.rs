//! The presets there are: those of `settings/`, which ship, those that a study has itself, and files of the user's.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use perflab_model::study::{Study, TomlSource};
use perflab_model::{PresetName, Problems, Refusal, SettingPreset};

use crate::error::SettingError;

/// The files of `settings/`: file name and text, made by build.rs.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/settings.rs"));

/// Presets by name.
#[derive(Debug, Clone, Default)]
pub struct PresetList(BTreeMap<String, SettingPreset>);

impl PresetList {
    /// Those that ship. They are tested: one that could not be read would not be there.
    pub fn shipped() -> &'static PresetList {
        static SHIPPED: OnceLock<PresetList> = OnceLock::new();
        SHIPPED.get_or_init(|| {
            let read = |(file, text): &(&str, &str)| {
                let source = TomlSource::new(format!("settings/{file}"), *text);
                Some((file.strip_suffix(".toml")?.to_owned(), read_preset_text(&source).ok()?))
            };
            PresetList(EMBEDDED.iter().filter_map(read).collect())
        })
    }

    /// Those that ship, and those of a study, which take the place of one that ships under their name.
    pub fn of_study(study: &Study) -> PresetList {
        let mut all = PresetList::shipped().clone();
        all.0.extend(study.preset.iter().map(|(name, preset)| (name.clone(), preset.clone())));
        all
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SettingPreset)> {
        self.0.iter().map(|(name, preset)| (name.as_str(), preset))
    }

    /// The preset that a key names, with or without a part.
    ///
    /// # Errors
    /// There is none; the hint has the nearest name.
    pub fn get(&self, key: &str) -> Result<&SettingPreset, Refusal> {
        let name = PresetName::new(key).preset;
        self.0.get(name).ok_or_else(|| Refusal {
            what: format!("there is no preset `{name}`"),
            hint: perflab_model::suggest_name(name, self.0.keys().map(String::as_str)),
        })
    }

    /// Adds the preset in a file of the user's, under the file's name; gives that name.
    ///
    /// # Errors
    /// It cannot be read, or says what a preset cannot say.
    pub fn add_file(&mut self, path: &Path) -> Result<String, SettingError> {
        let text = std::fs::read_to_string(path).map_err(|source| SettingError::File {
            action: "read",
            path: path.into(),
            source,
        })?;
        let source = TomlSource::new(path.display().to_string(), text);
        let preset = read_preset_text(&source).map_err(SettingError::Preset)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        self.0.insert(name.clone(), preset);
        Ok(name)
    }
}

/// Reads one preset.
///
/// # Errors
/// What is wrong, and where.
pub fn read_preset_text(source: &TomlSource) -> Result<SettingPreset, Problems> {
    let preset: SettingPreset = source.parse_requiring(&["title"])?;
    let problems = preset.problems();
    if problems.is_empty() { Ok(preset) } else { Err(source.place_problems(problems)) }
}

#[cfg(test)]
mod tests {
    use perflab_model::PresetLevel;

    use super::*;

    #[test]
    fn every_preset_that_ships_reads_and_takes_its_quiet_level() {
        for (file, text) in EMBEDDED {
            let source = TomlSource::new(format!("settings/{file}"), *text);
            let preset = read_preset_text(&source).unwrap_or_else(|problems| panic!("{problems}"));
            let name = file.trim_end_matches(".toml");
            if let Some(quiet) = &preset.quiet {
                for level in quiet.or.iter().chain([&quiet.level]) {
                    PresetLevel::new(name, &preset, level).unwrap_or_else(|error| panic!("{file}: {error}"));
                }
            }
            let known = PresetList::shipped();
            preset.conflicts.iter().for_each(|other| assert!(known.get(other).is_ok(), "{file}: {other}"));
            assert!(!preset.tried.is_empty(), "{file} says where it was tried");
        }
        assert_eq!(PresetList::shipped().iter().count(), EMBEDDED.len());
    }

    #[test]
    fn a_slip_of_the_finger_has_a_hint() {
        let refused = PresetList::shipped().get("govenor:policy0").unwrap_err().to_string();
        insta::assert_snapshot!(refused, @"there is no preset `govenor`; did you mean `governor`?");
    }
}
