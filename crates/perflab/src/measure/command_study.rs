//! A study made for the occasion, with one workload such as a command, for every verb that records: an ordinary run all
//! the same.
//!
//! What such a study measures or records is the verb's.

use std::ffi::OsString;

use perflab_archive::RunDir;
use perflab_conduct::{LocalMachine, PlanChoices};
use perflab_model::study::{CounterGroups, CountersSpec, MonitorTiming, TomlSource};
use perflab_model::{Manifest, Nanos, RunStatus, Study};
use perflab_observe::own_directories;
use perflab_settings::TemporaryFolder;

use crate::app::App;
use crate::failure::{Exit, Failure, FailureContext as _};
use crate::measure::command_words::{check_command_exists, command_words, escape_template, quote_toml};
use crate::measure::run;

/// A command, or a range of time, that an instrument records.
pub struct RecordedCommand<'a> {
    /// the verb: `flame record`
    pub verb: &'a str,
    /// what the run is called: `Call stacks`
    pub title: &'a str,
    /// the command; empty for the system as it is
    pub command: &'a [OsString],
    /// the process that is watched in place of the system, where there is no command
    pub pid: Option<i32>,
    /// how long at most
    pub duration: Option<Nanos>,
    /// how long to watch the system at rest before and after
    pub quiet_time: Nanos,
    /// the run's label
    pub label: Option<&'a str>,
    /// tables of the study that say what is recorded
    pub tables: &'a str,
}

impl RecordedCommand<'_> {
    /// Records it; `change` completes the study with what its text cannot say.
    pub fn record(
        &self,
        context: &App,
        change: impl FnOnce(&mut Study),
    ) -> Result<(RunStatus, RunDir), Failure> {
        let written = self.written_study()?;
        if self.command.is_empty() && self.duration.is_none() {
            context.note("recording until ^C");
        }
        let (status, found) = written.execute(context, change)?;
        context.note(format!("run: {} in {}", found.short_id(), context.archive_path().display()));
        context.note(crate::see::show::overhead_line(&found.manifest()?));
        Ok((status, found))
    }

    /// The study and its workload.
    ///
    /// # Errors
    /// A command that cannot be started.
    pub fn written_study(&self) -> Result<CommandStudy<'_>, Failure> {
        Ok(CommandStudy {
            verb: self.verb,
            workload: "command",
            definition: workload_definition(self.command, self.duration)?,
            study: self.study_text(),
            seed: 0,
            label: self.label,
            as_typed: true,
        })
    }

    /// The study, as text: what a person could have written.
    fn study_text(&self) -> String {
        let limit = match self.duration {
            Some(time) if !self.command.is_empty() => time.to_study_text(),
            _ => "87600h".into(),
        };
        let quiet = if self.command.is_empty() { Nanos(0) } else { self.quiet_time };
        let quiet = quiet.to_study_text();
        let title = quote_toml(&format!("{}, {}", self.title, recording_subject(self.command, self.pid)));
        format!(
            "title = {title}\n\n[run]\niterations = 1\nwarmup = 0\norder = \"sequential\"\n\
             time-limit = \"{limit}\"\nquiet = \"{quiet}\"\n\n[workload.command]\n\n{}",
            self.tables
        )
    }

    /// Stopping a recording that waits for ^C, or for the end of its time, is how it ends, not a failure.
    pub fn exit_of(&self, context: &App, status: RunStatus, found: &RunDir) -> Exit {
        match status {
            RunStatus::Finished => Exit::Fine,
            RunStatus::Stopped if self.command.is_empty() => Exit::Fine,
            _ => {
                let look = format!("`perflab show {} --output 0` prints its output", found.short_id());
                context.note(format!("the command failed or was stopped; {look}"));
                Exit::WORKLOAD_FAILED
            }
        }
    }
}

/// Has a study count, and the counts read as often as all else: of the command, or where there is none on the CPUs.
pub fn add_counters(study: &mut Study, groups: &CounterGroups, every: Nanos, command: &[OsString]) {
    let spec = match command.is_empty() {
        true => CountersSpec { cpus: groups.clone(), ..CountersSpec::default() },
        false => CountersSpec { events: groups.clone(), ..CountersSpec::default() },
    };
    for monitor in spec.monitors() {
        study.monitors.insert(monitor.into(), MonitorTiming::Every(every));
    }
    study.counters = Some(spec);
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

/// The command as a workload; waiting, where there is none.
fn workload_definition(command: &[OsString], duration: Option<Nanos>) -> Result<String, Failure> {
    let words = match (command, duration) {
        ([], Some(duration)) => {
            vec!["sleep".to_owned(), duration.seconds().to_string()]
        }
        ([], None) => vec!["sleep".to_owned(), "infinity".to_owned()],
        (command, _) => {
            let words = command_words(command)?;
            check_command_exists(&words)?;
            words
        }
    };
    Ok(command_definition(&words, ""))
}

/// A study and its workload, as text: what a person could have written.
pub struct CommandStudy<'a> {
    /// the verb, which errors in the study name: `flame record`
    pub verb: &'a str,
    /// the workload's name in the study
    pub workload: &'a str,
    /// its definition
    pub definition: String,
    /// the study
    pub study: String,
    /// orders the cases
    pub seed: u64,
    /// the run's label
    pub label: Option<&'a str>,
    /// whether the workload is a command as it was typed, with perflab's own standard input and language
    pub as_typed: bool,
}

impl CommandStudy<'_> {
    /// Runs it; `change` completes the study with what its text cannot say.
    pub fn execute(
        &self,
        context: &App,
        change: impl FnOnce(&mut Study),
    ) -> Result<(RunStatus, RunDir), Failure> {
        self.prepare(context, change, |machine, manifest| {
            let stop = run::stop_on_interrupt()?;
            run::execute_study(context, &machine, &manifest, &Default::default(), &stop)
        })
    }

    /// Prepares it, and lets `carry_out` run what was prepared; `change` completes the study with what its text cannot say.
    ///
    /// # Errors
    /// A study that cannot be planned here, and those of `carry_out`.
    pub fn prepare<T>(
        &self,
        context: &App,
        change: impl FnOnce(&mut Study),
        carry_out: impl FnOnce(LocalMachine, Manifest) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        run::undo_leftovers(context);
        let boot = perflab_observe::read_boot_id(&context.root);
        let folder = TemporaryFolder::create(&own_directories::state_directory(), &boot)
            .context("cannot make a folder for the workload's definition")?;
        let path = folder.path().join(format!("{}.toml", self.workload));
        std::fs::write(&path, &self.definition)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let mut catalogue = context.catalogue()?;
        catalogue.extend_from_folder(folder.path())?;
        let source = TomlSource::new(self.verb, self.study.clone());
        let mut study = source.parse_study()?;
        change(&mut study);
        let facts = perflab_observe::collect_facts(&context.root, None)?;
        let choices = PlanChoices { seed: self.seed, ..PlanChoices::default() };
        let plan = perflab_conduct::plan_study(&study, &catalogue, &facts, &choices)
            .map_err(|found| source.place_problems(found))?;
        let label = self.label.map(String::from);
        let manifest = crate::measure::run::build_manifest(&source, study, plan, facts, label, &context.root);
        let machine =
            LocalMachine { runs_as_typed: self.as_typed, ..run::local_machine(context, catalogue)? };
        carry_out(machine, manifest)
    }
}

/// The words of a command as a workload whose time is measured, with further keys of a definition.
pub fn command_definition(words: &[String], keys: &str) -> String {
    let argv: Vec<String> = words.iter().map(|word| quote_toml(&escape_template(word))).collect();
    format!(
        "title = \"the recorded command\"\nmeasures = \"how long it took\"\n\
         homepage = \"https://localhost\"\nlicence = \"NOASSERTION\"\nargv = [{}]\n{keys}\n\
         [[metric]]\nname = \"time\"\nunit = \"s\"\ndirection = \"lower\"\nprimary = true\ntime = \"wall\"\n",
        argv.join(", ")
    )
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
