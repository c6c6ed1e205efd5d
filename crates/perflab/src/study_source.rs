//! Where a study's text comes from: a file, or one that ships inside the binary, from the folder `studies/`.

use std::path::Path;

use perflab_model::study::TomlSource;

use crate::failure::{Failure, UsageError};

/// One shipped study.
#[derive(Debug)]
pub struct ShippedStudy {
    /// What it is called on the command line.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// All of them; a test holds this table against the folder.
pub const STUDIES: &[ShippedStudy] = &[
    ShippedStudy { name: "quickstart", text: include_str!("../studies/quickstart.toml") },
    ShippedStudy { name: "memory", text: include_str!("../studies/memory.toml") },
    ShippedStudy { name: "scheduler", text: include_str!("../studies/scheduler.toml") },
    ShippedStudy { name: "slab-filesystems", text: include_str!("../studies/slab-filesystems.toml") },
    ShippedStudy { name: "slab-efficiency", text: include_str!("../studies/slab-efficiency.toml") },
    ShippedStudy { name: "hackbench-profile", text: include_str!("../studies/hackbench-profile.toml") },
    ShippedStudy { name: "slablist-insertion", text: include_str!("../studies/slablist-insertion.toml") },
    ShippedStudy { name: "application-startup", text: include_str!("../studies/application-startup.toml") },
    ShippedStudy { name: "vm-fairness", text: include_str!("../studies/vm-fairness.toml") },
    ShippedStudy { name: "stream-4vms", text: include_str!("../studies/stream-4vms.toml") },
    ShippedStudy { name: "patch-matrix", text: include_str!("../studies/patch-matrix.toml") },
];

/// What `perflab study new` writes.
pub const STARTER: &str = include_str!("../studies/starter.toml");

/// The study that the user named: a file, else a shipped one.
pub fn find_study(name: &str) -> Result<TomlSource, Failure> {
    if Path::new(name).is_file() {
        let text = std::fs::read_to_string(name);
        let text = text.map_err(|error| {
            UsageError::new(format!("cannot read the study {name}: {error}"), "it must be a text in UTF-8")
        })?;
        return Ok(TomlSource::new(name, text));
    }
    match STUDIES.iter().find(|study| study.name == name) {
        Some(study) => Ok(TomlSource::new(study.name, study.text)),
        None => {
            let message = format!("there is neither a study file nor a shipped study `{name}`");
            let hint = match name.ends_with(".toml") || name.contains('/') {
                true => format!(
                    "`perflab study new {name}` writes one to start from, `perflab study list` names the shipped ones"
                ),
                false => perflab_model::problem::suggest_name(name, STUDIES.iter().map(|study| study.name)),
            };
            Err(UsageError::new(message, hint).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_holds_the_whole_folder() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/studies")).unwrap();
        let files: BTreeSet<String> = folder
            .filter_map(|entry| {
                entry.unwrap().file_name().to_str().unwrap().strip_suffix(".toml").map(str::to_owned)
            })
            .filter(|name| name != "starter")
            .collect();
        let table: BTreeSet<String> = STUDIES.iter().map(|study| study.name.to_owned()).collect();
        assert_eq!(files, table);
    }

    #[test]
    fn every_shipped_study_and_the_starter_read() {
        for (name, text) in STUDIES.iter().map(|study| (study.name, study.text)).chain([("starter", STARTER)])
        {
            if let Err(problems) = TomlSource::new(name, text).parse_study() {
                panic!("{problems}");
            }
        }
    }
}
