//! A study that a verb writes for the occasion, with the one workload it runs: an ordinary run all the same. The one place for
//! it: what such a study measures or records is the verb's.

use anyhow::Context as _;
use perflab_archive::RunDir;
use perflab_conduct::leftovers::TemporaryFolder;
use perflab_conduct::{LocalMachine, PlanChoices};
use perflab_model::study::TomlSource;
use perflab_model::{RunStatus, Study};
use perflab_observe::own_directories;

use super::recording::{escape_template, quote_toml};
use crate::context::App;
use crate::verbs::run;

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
    ) -> anyhow::Result<(RunStatus, RunDir)> {
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
        let choices = PlanChoices { set: Vec::new(), only: None, seed: self.seed };
        let plan = perflab_conduct::plan_study(&study, &catalogue, &facts, &choices)
            .map_err(|found| source.place_problems(found))?;
        let label = self.label.map(String::from);
        let manifest = crate::manifest::build_manifest(&source, study, plan, facts, label, &context.root);
        let stop = run::stop_on_interrupt()?;
        let host = LocalMachine { runs_as_typed: self.as_typed, ..run::host_target(context, catalogue)? };
        run::execute_study(context, &host, &manifest, &Default::default(), &stop)
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
