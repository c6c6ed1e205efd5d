//! Other tools' files named where runs are, `perflab compare a.json b.json`: taken into an archive that lasts as long as the
//! command.

use std::path::Path;

use perflab_archive::Archive;
use perflab_import::{ImportOptions, list_importable};
use perflab_observe::own_directories;
use perflab_settings::TemporaryFolder;

use crate::app::App;
use crate::failure::{Failure, FailureContext as _, UsageError};
use crate::keep::imported_runs::{record_imports, warn_of_import};

/// Names of runs, where those that were files are the folders of runs made of them.
#[derive(Debug)]
pub struct NamedRuns {
    /// One for each name that was given.
    pub selectors: Vec<String>,
    /// Where the runs made of files lie, until this is dropped.
    _folder: Option<TemporaryFolder>,
}

impl NamedRuns {
    /// Reads those of the names that are files of other tools: whatever exists, and is neither a run's folder nor a file of
    /// perflab's own, and is no label or id in the archive.
    ///
    /// # Errors
    /// A file that no importer knows, or that holds several results.
    pub fn resolve(context: &App, names: &[String]) -> Result<Self, Failure> {
        let archive = context.archive()?;
        let is_file = |name: &String| is_foreign_file(Path::new(name)) && archive.find_runs(name).is_err();
        let files: Vec<bool> = names.iter().map(is_file).collect();
        if !files.contains(&true) {
            return Ok(NamedRuns { selectors: names.to_vec(), _folder: None });
        }
        let boot = perflab_observe::read_boot_id(&context.root);
        let folder = TemporaryFolder::create(&own_directories::state_directory(), &boot)
            .context("cannot make a folder for the runs that the files become")?;
        let temporary = Archive::open(folder.path())?;
        let selector = |(name, is_file): (&String, bool)| match is_file {
            true => import_file(context, &temporary, name),
            false => Ok(name.clone()),
        };
        let selectors = names.iter().zip(files).map(selector).collect::<Result<_, _>>()?;
        Ok(NamedRuns { selectors, _folder: Some(folder) })
    }
}

/// Whether there is something at the path that may be another tool's.
fn is_foreign_file(path: &Path) -> bool {
    path.exists() && !path.join("run.json").exists() && !perflab_archive::is_portable_run(path)
}

/// Makes a run of a file; gives its folder.
fn import_file(context: &App, archive: &Archive, name: &str) -> Result<String, Failure> {
    let path = Path::new(name);
    perflab_files::refuse_endless(path).map_err(|error| {
        UsageError::new(format!("{name}: {error}"), "write what it gives to a file, and compare that")
    })?;
    let results = list_importable(path)?;
    if results.len() > 1 {
        let message = format!("{name} holds {} results, and one is needed for a side", results.len());
        let hint = format!("`perflab import {name} --label NAME` makes them runs of one label");
        return Err(UsageError::new(message, hint).into());
    }
    // The same file twice is told by the comparison.
    let options = ImportOptions { label: Some(name.to_owned()), again: true, ..ImportOptions::default() };
    let imported = record_imports(context, archive, &results, &options).into_iter().next();
    let imported = imported.ok_or_else(|| {
        UsageError::new(format!("there is nothing in {name} to compare"), "see `perflab import --help`")
    })??;
    warn_of_import(&imported);
    Ok(imported.run.path().display().to_string())
}
