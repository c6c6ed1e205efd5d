//! A study that a verb writes for the occasion, with the one workload it runs: an ordinary run all the same. The one place for
//! it: what such a study measures or records is the verb's.

use anyhow::Context as _;
use perflab_archive::RunDir;
use perflab_conduct::leftovers::TemporaryFolder;
use perflab_conduct::{Choices, Host};
use perflab_model::study::Source;
use perflab_model::{Status, Study};
use perflab_observe::own_directories;

use super::recording::{literal, quoted};
use crate::context::Context;
use crate::verbs::run;

/// A study and its workload, as text: what a person could have written.
pub struct Written<'a> {
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

impl Written<'_> {
    /// Runs it; `change` completes the study with what its text cannot say.
    pub fn carry_out(
        &self,
        context: &Context,
        change: impl FnOnce(&mut Study),
    ) -> anyhow::Result<(Status, RunDir)> {
        run::undo_leftovers(context);
        let boot = perflab_observe::boot_id(&context.root);
        let folder = TemporaryFolder::make(&own_directories::state(), &boot)
            .context("cannot make a folder for the workload's definition")?;
        let path = folder.path().join(format!("{}.toml", self.workload));
        std::fs::write(&path, &self.definition)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let mut catalogue = context.catalogue()?;
        catalogue.extend(folder.path())?;
        let source = Source::new(self.verb, self.study.clone());
        let mut study = source.read()?;
        change(&mut study);
        let facts = perflab_observe::facts(&context.root, None)?;
        let choices = Choices { set: Vec::new(), only: None, seed: self.seed };
        let plan = perflab_conduct::plan(&study, &catalogue, &facts, &choices)
            .map_err(|found| source.problems(found))?;
        let label = self.label.map(String::from);
        let manifest = crate::manifest::manifest(&source, study, plan, facts, label, &context.root);
        let stop = run::stop_on_interrupt()?;
        let host = Host { runs_as_typed: self.as_typed, ..run::host(context, catalogue)? };
        run::carry_out(context, &host, &manifest, &Default::default(), &stop)
    }
}

/// The words of a command as a workload whose time is measured, with further keys of a definition.
pub fn command(words: &[String], keys: &str) -> String {
    let argv: Vec<String> = words.iter().map(|word| quoted(&literal(word))).collect();
    format!(
        "title = \"the recorded command\"\nmeasures = \"how long it took\"\n\
         homepage = \"https://localhost\"\nlicence = \"NOASSERTION\"\nargv = [{}]\n{keys}\n\
         [[metric]]\nname = \"time\"\nunit = \"s\"\ndirection = \"lower\"\nprimary = true\ntime = \"wall\"\n",
        argv.join(", ")
    )
}
