//! A command as it was typed: its words, and how they stand in a study.

use std::ffi::{OsStr, OsString};

use crate::failure::UsageError;

/// The words of a command.
pub fn command_words(command: &[OsString]) -> Result<Vec<String>, UsageError> {
    command.iter().map(command_word).collect()
}

/// Whether there is such a program, before anything is done for it.
pub fn check_command_exists(command: &[String]) -> Result<(), perflab_prefetch::PrefetchError> {
    let program =
        command.first().map(|first| perflab_prefetch::trace_store::find_program_path(OsStr::new(first)));
    program.transpose().map(drop)
}

fn command_word(word: &OsString) -> Result<String, UsageError> {
    let text = word.to_str().filter(|text| !text.is_empty()).map(str::to_owned);
    text.ok_or_else(|| {
        let message = format!("the argument `{}` is empty or not UTF-8", word.display());
        UsageError::new(message, "put the command into a script, and record the script")
    })
}

/// A word that the catalogue's templates leave as it is.
pub fn escape_template(word: &str) -> String {
    if !word.contains(['{', '}']) {
        return word.to_owned();
    }
    let text = word.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n");
    format!("{{{{ '{text}' }}}}")
}

/// A TOML string: a JSON string is one.
pub fn quote_toml(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A command's text as a template: `{NAME}` of a parameter is one, and nothing else.
pub fn parameter_template(text: &str, parameters: &[&str]) -> String {
    let mut template = String::new();
    let mut rest = text;
    loop {
        let found = parameters.iter().filter_map(|name| Some((rest.find(&format!("{{{name}}}"))?, *name)));
        let Some((at, name)) = found.min() else { break };
        let (before, behind) = rest.split_at(at);
        template += &escape_template(before);
        template += &format!("{{{{ {name} }}}}");
        rest = behind.get(name.len() + 2..).unwrap_or_default();
    }
    template + &escape_template(rest)
}
