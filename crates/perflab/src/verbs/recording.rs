//! A command that is recorded: as a study's only workload, defined for the occasion, in an ordinary run. The one place for
//! it: what is recorded meanwhile is the instrument's.

use std::ffi::{OsStr, OsString};

use perflab_archive::RunDir;
use perflab_model::{Status, Study};

use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::quantities;
use crate::verbs::written::{self, Written};

/// A command, or a stretch of time, that an instrument records.
pub struct Recorded<'a> {
    /// the verb: `flame record`
    pub verb: &'a str,
    /// what the run is called: `Call stacks`
    pub title: &'a str,
    /// the command; empty for the system as it is
    pub command: &'a [OsString],
    /// the process that is watched in place of the system, where there is no command
    pub process: Option<i32>,
    /// how long at most
    pub duration: Option<&'a str>,
    /// how long to watch the system at rest before and after
    pub quiet: &'a str,
    /// the run's label
    pub label: Option<&'a str>,
    /// tables of the study that say what is recorded
    pub tables: &'a str,
}

impl Recorded<'_> {
    /// Records it; `change` completes the study with what its text cannot say.
    pub fn carry_out(
        &self,
        context: &Context,
        change: impl FnOnce(&mut Study),
    ) -> anyhow::Result<(Status, RunDir)> {
        let written = Written {
            verb: self.verb,
            workload: "command",
            definition: definition(self.command, self.duration)?,
            study: self.study()?,
            seed: 0,
            label: self.label,
            as_typed: true,
        };
        if self.command.is_empty() && self.duration.is_none() {
            context.say("recording until ^C");
        }
        let (status, found) = written.carry_out(context, change)?;
        context.say(format!("run: {} in {}", found.short(), context.archive_path().display()));
        context.say(crate::verbs::show::own_cost(&found.manifest()?));
        Ok((status, found))
    }

    /// The study, as text: what a person could have written.
    fn study(&self) -> Result<String, Usage> {
        let limit = match self.duration {
            Some(text) if !self.command.is_empty() => time("--for", text)?,
            _ => "87600h".into(),
        };
        let quiet = if self.command.is_empty() { "0s".into() } else { time("--quiet-time", self.quiet)? };
        let title = quoted(&format!("{}, {}", self.title, recording_subject(self.command, self.process)));
        Ok(format!(
            "title = {title}\n\n[run]\niterations = 1\nwarmup = 0\norder = \"sequential\"\n\
             time-limit = \"{limit}\"\nquiet = \"{quiet}\"\n\n[workload.command]\n\n{}",
            self.tables
        ))
    }

    /// Stopping a recording that waits for ^C, or for the end of its time, is how it ends, not a failure.
    pub fn exit(&self, context: &Context, status: Status, found: &RunDir) -> Exit {
        match status {
            Status::Finished => Exit::Fine,
            Status::Stopped if self.command.is_empty() => Exit::Fine,
            _ => {
                let look = format!("`perflab show {} --output 0` prints what it said", found.short());
                context.say(format!("the command failed or was stopped; {look}"));
                Exit::WorkloadFailed
            }
        }
    }
}

/// What is recorded, for titles.
fn recording_subject(command: &[OsString], process: Option<i32>) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    match process {
        Some(pid) if words.is_empty() => format!("process {pid}"),
        None if words.is_empty() => "the system as it is".into(),
        _ => format!("during `{}`", words.join(" ")),
    }
}

/// A time with its unit, as a study wants it.
pub fn time(option: &str, text: &str) -> Result<String, Usage> {
    quantities::time(option, text)?;
    Ok(text.trim().to_owned())
}

/// The command as a workload; waiting, where there is none.
fn definition(command: &[OsString], duration: Option<&str>) -> anyhow::Result<String> {
    let words = match (command, duration) {
        ([], Some(duration)) => {
            vec!["sleep".to_owned(), quantities::time("--for", duration)?.seconds().to_string()]
        }
        ([], None) => vec!["sleep".to_owned(), "infinity".to_owned()],
        (command, _) => {
            let words = words(command)?;
            is_there(&words)?;
            words
        }
    };
    Ok(written::command(&words, ""))
}

/// The words of a command.
pub fn words(command: &[OsString]) -> Result<Vec<String>, Usage> {
    command.iter().map(word).collect()
}

/// Whether there is such a program, before anything is done for it.
pub fn is_there(command: &[String]) -> Result<(), perflab_prefetch::PrefetchError> {
    let program = command.first().map(|first| perflab_prefetch::store::program(OsStr::new(first)));
    program.transpose().map(drop)
}

fn word(word: &OsString) -> Result<String, Usage> {
    let text = word.to_str().filter(|text| !text.is_empty()).map(str::to_owned);
    text.ok_or_else(|| {
        let message = format!("the argument `{}` is empty or not UTF-8", word.display());
        Usage::new(message, "put the command into a script, and record that")
    })
}

/// A word that the catalogue's templates leave as it is.
pub fn literal(word: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_titled_by_what_it_watches() {
        assert_eq!(recording_subject(&[], Some(7)), "process 7");
        assert_eq!(recording_subject(&[], None), "the system as it is");
        assert_eq!(recording_subject(&["ls".into(), "-l".into()], Some(7)), "during `ls -l`");
    }
}
