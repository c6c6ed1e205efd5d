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

/// All of them, by name; `build.rs` makes the table of the folder.
pub const STUDIES: &[ShippedStudy] = include!(concat!(env!("OUT_DIR"), "/studies.rs"));

/// What `perflab study new` writes.
pub const STARTER: &str = include_str!("../studies/starter.toml");

/// More studies that extend one another are a circle.
const MOST_EXTENDED: usize = 8;

/// The study that the user named: a file, else a shipped one; on top of those that it extends.
pub fn find_study(name: &str) -> Result<TomlSource, Failure> {
    let mut sources = vec![read_study(name)?];
    while let Some(last) = sources.last()
        && let Some(base) = last.extended_name()
    {
        if sources.len() == MOST_EXTENDED {
            let message = format!("`{}` extends `{base}`, and there are {MOST_EXTENDED} by now", last.file);
            return Err(UsageError::new(
                message,
                "studies must not extend one another in a circle, nor in a longer line",
            )
            .into());
        }
        let path = Path::new(&last.file).with_file_name(&base);
        let found = if path.is_file() { read_study(&path.to_string_lossy()) } else { read_study(&base) };
        sources.push(found.map_err(|error| error.context(format!("`extends` in {}", last.file)))?);
    }
    let base = sources.pop().unwrap_or_else(|| TomlSource::new(name, ""));
    Ok(sources.into_iter().rev().try_fold(base, |base, own| own.extend(&base))?)
}

/// One study as it is written.
fn read_study(name: &str) -> Result<TomlSource, Failure> {
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
    use super::*;

    #[test]
    fn every_shipped_study_and_the_starter_read() {
        assert!(STUDIES.iter().any(|study| study.name == "quickstart"));
        for (name, text) in STUDIES.iter().map(|study| (study.name, study.text)).chain([("starter", STARTER)])
        {
            if let Err(problems) = TomlSource::new(name, text).parse_study() {
                panic!("{problems}");
            }
        }
    }
}
