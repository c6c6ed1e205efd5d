//! From what a person types to runs: prefix, `@latest`, label, path, in this order of understanding.
//!
//! Where several runs fit a prefix, none is guessed.

use std::path::{Path, PathBuf};

use perflab_model::untrusted_text::is_terminal_command;

use crate::archive_dir::{Archive, ArchiveEntry};
use crate::checksums::open_verified;
use crate::error::ArchiveError;
use crate::journal::JournalReader;
use crate::portable;
use crate::run_dir::RunDir;
use crate::run_layout::{JOURNAL, SAMPLES};
use crate::run_summary::summarise_run;

/// Shorter beginnings of an id are not understood as one.
pub const SHORTEST_PREFIX: usize = 4;

/// What a selector means.
#[derive(Debug, Default)]
pub struct FoundRuns {
    /// The runs, the oldest first.
    pub runs: Vec<RunDir>,
    /// Runs of the label that are damaged, each with what is wrong.
    pub damaged: Vec<(RunDir, String)>,
    /// Runs whose label cannot be read, each with the reason: they may have this one.
    pub unreadable: Vec<(RunDir, String)>,
}

impl Archive {
    /// The runs that `selector` means, the oldest first, at least one.
    ///
    /// In this order: `@latest` and `@latest~N` (the N-th before it); a path that is there, which has a `/` or ends in
    /// `.perflab`, to a run's directory or a portable file; the beginning of an id, four characters at
    /// least; a label, which may mean several runs: repetitions of one another.
    ///
    /// # Errors
    /// [`ArchiveError::NotFound`] with a hint, [`ArchiveError::Ambiguous`], or a path that cannot be read.
    pub fn find_runs(&self, selector: &str) -> Result<Vec<RunDir>, ArchiveError> {
        Ok(self.find_runs_and_damaged(selector)?.runs)
    }

    /// The same for whoever asks from elsewhere: a path means nothing, and a run that holds a link, which may lead out of the
    /// archive, is refused.
    ///
    /// # Errors
    /// As [`Archive::find_runs`]; [`ArchiveError::Linked`].
    pub fn find_contained_runs(&self, selector: &str) -> Result<Vec<RunDir>, ArchiveError> {
        if is_path(selector) {
            let hint = "give an id's first four characters or more, a label or @latest".into();
            let archive = self.path().into();
            return Err(ArchiveError::NotFound { selector: selector.into(), archive, hint });
        }
        let runs = self.find_runs(selector)?;
        for run in &runs {
            if let Some(path) = find_link(run.path()) {
                return Err(ArchiveError::Linked { id: run.id().to_owned(), path });
            }
        }
        Ok(runs)
    }

    /// A run of a list; one that holds a link, which may lead out of the archive, is refused.
    ///
    /// # Errors
    /// [`ArchiveError::Linked`].
    pub fn open_contained_run(&self, entry: &ArchiveEntry) -> Result<RunDir, ArchiveError> {
        let run = self.open_run(entry);
        match find_link(run.path()) {
            Some(path) => Err(ArchiveError::Linked { id: run.id().to_owned(), path }),
            None => Ok(run),
        }
    }

    /// The same as [`Archive::find_runs`], with the runs of a label that are damaged.
    ///
    /// # Errors
    /// As [`Archive::find_runs`].
    pub fn find_runs_and_damaged(&self, selector: &str) -> Result<FoundRuns, ArchiveError> {
        let only = |run| FoundRuns { runs: vec![run], ..FoundRuns::default() };
        if let Some(back) = selector.strip_prefix('@') {
            return self.nth_latest(back).map(only);
        }
        let path = Path::new(selector);
        if is_path(selector) && path.exists() {
            return self.open_run_path(path).map(only);
        }
        if is_path(selector) {
            // A label may look like a path, as the names of branches do.
            let labelled = self.find_labelled_runs(selector);
            return labelled.or_else(|_| self.open_run_path(path).map(only));
        }
        if let Some(run) = self.find_by_prefix(selector)? {
            return Ok(only(run));
        }
        self.find_labelled_runs(selector)
    }

    fn find_labelled_runs(&self, selector: &str) -> Result<FoundRuns, ArchiveError> {
        let mut found = FoundRuns::default();
        let mut labels = Vec::new();
        for entry in self.list_runs()? {
            let run = self.run_named(entry.id, entry.short);
            // Of one whose tables are damaged the manifest may say the label.
            let (label, damage) = match entry.summary {
                // What a list knows of a run is what it was when perflab wrote it: those that are wanted are looked at.
                Ok(summary) if summary.label.as_deref() == Some(selector) => {
                    (summary.label, find_damage(run.path()).map(|error| error.to_string()))
                }
                Ok(summary) => (summary.label, None),
                Err(reason) => match run.manifest() {
                    Ok(manifest) => (manifest.label, Some(reason)),
                    Err(_) => {
                        found.unreadable.push((run, reason));
                        continue;
                    }
                },
            };
            match damage {
                _ if label.as_deref() != Some(selector) => labels.push(label),
                None => found.runs.push(run),
                Some(reason) => found.damaged.push((run, reason)),
            }
        }
        if found.runs.is_empty() { Err(self.not_found_error(selector, &labels, &found)) } else { Ok(found) }
    }

    fn open_run_path(&self, path: &Path) -> Result<RunDir, ArchiveError> {
        if path.is_dir() {
            RunDir::open(path)
        } else {
            portable::open_portable_run(path, self.make_unpack_folder)
        }
    }

    fn nth_latest(&self, back: &str) -> Result<RunDir, ArchiveError> {
        let missing = |hint: &str| ArchiveError::NotFound {
            selector: format!("@{back}"),
            archive: self.path().into(),
            hint: hint.into(),
        };
        let steps = match back.strip_prefix("latest").map(|rest| (rest, rest.strip_prefix('~'))) {
            Some(("", _)) => Some(0),
            Some((_, Some(steps))) => steps.parse().ok(),
            _ => None,
        };
        let steps: usize = steps.ok_or_else(|| missing("write @latest, @latest~1, @latest~2 ..."))?;
        let mut names = self.list_run_names()?;
        let hint = match names.len() {
            0 => self.hint_without_runs().to_owned(),
            1 => "it holds one run".to_owned(),
            all => format!("it holds {all} runs"),
        };
        let at = names.len().checked_sub(steps + 1).ok_or_else(|| missing(&hint))?;
        let (id, short) = names.swap_remove(at);
        Ok(self.run_named(id, short))
    }

    fn find_by_prefix(&self, prefix: &str) -> Result<Option<RunDir>, ArchiveError> {
        let prefix = prefix.to_ascii_uppercase();
        if prefix.len() < SHORTEST_PREFIX {
            return Ok(None);
        }
        let mut found: Vec<_> =
            self.list_run_names()?.into_iter().filter(|(id, _)| id.starts_with(&prefix)).collect();
        if found.len() > 1 {
            let candidates = found.into_iter().map(|(_, short)| short).collect();
            return Err(ArchiveError::Ambiguous { selector: prefix, candidates });
        }
        Ok(found.pop().map(|(id, short)| self.run_named(id, short)))
    }

    fn run_named(&self, id: String, short: String) -> RunDir {
        RunDir::from_archive(self.runs_directory().join(&id), id, short)
    }

    /// What to do about an archive that has no run: a mistyped path looks like one.
    pub fn hint_without_runs(&self) -> &'static str {
        if self.exists() {
            "it is empty; `perflab run quickstart` records a first run"
        } else {
            "it is not there; `perflab run quickstart` creates it, --archive DIR names another"
        }
    }

    fn not_found_error(&self, selector: &str, labels: &[Option<String>], found: &FoundRuns) -> ArchiveError {
        let known = labels.iter().filter_map(Option::as_deref);
        let unreadable = found.unreadable.first();
        let hint = match (found.damaged.first(), perflab_model::problem::nearest_name(selector, known)) {
            (Some((run, reason)), _) => {
                format!(
                    "run {} has this label and is damaged: {reason}; `perflab rm` removes it",
                    run.short_id()
                )
            }
            _ if unreadable.is_some() && labels.is_empty() => describe_unreadable(unreadable),
            _ if labels.is_empty() => self.hint_without_runs().into(),
            _ if Path::new(selector).is_file() => {
                "it is a file and no run: `perflab compare` reads those of other tools, and `perflab import` makes runs of them".into()
            }
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) if unreadable.is_some() => describe_unreadable(unreadable),
            (None, None) => "give an id's first four characters or more, a label, @latest or a path; \
                             `perflab list` shows what is there"
                .into(),
        };
        ArchiveError::NotFound { selector: selector.into(), archive: self.path().into(), hint }
    }
}

/// Letters of a label at most: a line of a list holds it.
const LONGEST_LABEL: usize = 200;

/// A label that selects the runs that have it: `@latest` is another run.
///
/// # Errors
/// An empty one, one that begins with `@`, is longer than 200 letters, or holds what a terminal would obey.
pub fn parse_label(text: &str) -> Result<String, String> {
    match text {
        "" => Err("a label has a letter at least".into()),
        reserved if reserved.starts_with('@') => {
            Err("`@` begins names that perflab gives, such as @latest; begin with another letter".into())
        }
        label if label.chars().count() > LONGEST_LABEL || label.contains(is_terminal_command) => {
            Err(format!("a label has {LONGEST_LABEL} letters at most, and no control characters"))
        }
        label => Ok(label.to_owned()),
    }
}

/// Whether a selector is the path of a run, not its name.
fn is_path(selector: &str) -> bool {
    selector.contains('/') || selector == "." || selector.ends_with(".perflab")
}

/// The first link in a run's directory, or the directory itself where it is one. What is not there is told by whoever reads it.
fn find_link(path: &Path) -> Option<PathBuf> {
    let about = path.symlink_metadata().ok()?;
    if about.is_symlink() {
        return Some(path.into());
    }
    if !about.is_dir() {
        return None;
    }
    std::fs::read_dir(path).ok()?.flatten().find_map(|entry| find_link(&entry.path()))
}

/// What is wrong with a run's tables of iterations and samples, and its journal, which a comparison reads: each table is hashed once,
/// here or there.
fn find_damage(run: &Path) -> Option<ArchiveError> {
    match summarise_run(run) {
        Ok(read) if read.is_closed => {
            let unreadable = || JournalReader::open(&run.join(JOURNAL)).err();
            open_verified(run, Path::new(SAMPLES)).err().or_else(unreadable)
        }
        read => read.err(),
    }
}

/// Why a run may be missing: it has a label that nobody can read.
fn describe_unreadable(run: Option<&(RunDir, String)>) -> String {
    run.map_or_else(String::new, |(run, reason)| {
        format!("run {} cannot be read, and may have this label: {reason}", run.short_id())
    })
}
