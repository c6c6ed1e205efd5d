//! A command that is recorded: as a study's only workload, defined for the occasion.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Context as _;
use perflab_model::Nanos;

use crate::exit::Usage;

/// What is recorded, for titles.
pub fn subject(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    if words.is_empty() { "the system as it is".into() } else { format!("during `{}`", words.join(" ")) }
}

/// A time with its unit, as a study wants it.
pub fn time(option: &str, text: &str) -> Result<String, Usage> {
    match Nanos::parse(text) {
        Ok(_) => Ok(text.trim().to_owned()),
        Err(error) => Err(Usage::new(format!("{option}: {error}"), "for example 100ms or 60s")),
    }
}

/// The command as a workload; waiting, where there is none.
pub fn write_definition(path: &Path, command: &[OsString], duration: Option<&str>) -> anyhow::Result<()> {
    let words = match (command, duration) {
        ([], Some(duration)) => {
            time("--for", duration)?;
            let seconds = Nanos::parse(duration).map(Nanos::seconds).unwrap_or_default();
            vec!["sleep".to_owned(), seconds.to_string()]
        }
        ([], None) => vec!["sleep".to_owned(), "infinity".to_owned()],
        (command, _) => words(command)?,
    };
    define(path, &words, "")
}

/// The words of a command as a workload, with further keys of a definition.
pub fn define(path: &Path, words: &[String], keys: &str) -> anyhow::Result<()> {
    let argv: Vec<String> = words.iter().map(|word| quoted(&literal(word))).collect();
    let text = format!(
        "title = \"the recorded command\"\nmeasures = \"how long it took\"\n\
         homepage = \"https://localhost\"\nlicence = \"NOASSERTION\"\nargv = [{}]\n{keys}\n\
         [[metric]]\nname = \"time\"\nunit = \"s\"\ndirection = \"lower\"\nprimary = true\ntime = \"wall\"\n",
        argv.join(", ")
    );
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The words of a command.
pub fn words(command: &[OsString]) -> Result<Vec<String>, Usage> {
    command.iter().map(word).collect()
}

fn word(word: &OsString) -> Result<String, Usage> {
    let text = word.to_str().filter(|text| !text.is_empty()).map(str::to_owned);
    text.ok_or_else(|| {
        let message = format!("the argument `{}` is empty or not UTF-8", word.display());
        Usage::new(message, "put the command into a script, and record that")
    })
}

/// A word that the catalogue's templates leave as it is.
fn literal(word: &str) -> String {
    if !word.contains(['{', '}']) {
        return word.to_owned();
    }
    let text = word.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n");
    format!("{{{{ '{text}' }}}}")
}

/// A TOML string: a JSON string is one.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
