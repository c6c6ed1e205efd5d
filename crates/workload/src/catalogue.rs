//! All workloads by name: built in, and from folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use indexmap::IndexMap;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::study::Study;
use perflab_model::study::TomlSource;
use perflab_model::{Problem, Problems};

use crate::WorkloadDefinition;
use crate::inline_definition::{
    beside_definition_name, place_in_study, write_beside_definition, write_inline_definition,
};

/// The files of `workloads/`: file name and text, made by build.rs.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Workloads by name: the name of the file without `.toml`.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    entries: IndexMap<String, CatalogueEntry>,
}

/// A file and what it defines: those of the binary are read when they are asked for, as a run uses few of them.
#[derive(Debug, Clone)]
struct CatalogueEntry {
    source: TomlSource,
    definition: OnceLock<Option<WorkloadDefinition>>,
}

impl CatalogueEntry {
    fn definition(&self) -> Option<&WorkloadDefinition> {
        self.definition.get_or_init(|| WorkloadDefinition::read(&self.source).ok()).as_ref()
    }
}

/// Why definitions cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// What the file says is wrong; each problem has its position.
    #[error(transparent)]
    Problems(#[from] Problems),
    /// The folder or a file in it cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// the folder or the file
        path: PathBuf,
        /// the system's reason
        source: std::io::Error,
    },
    /// A folder without a definition is most likely a slip.
    #[error("{}: no definition in it; a definition is a file NAME.toml{}", path.display(), studies_note(studies))]
    NoDefinition {
        /// the folder
        path: PathBuf,
        /// the names of studies in it
        studies: Vec<String>,
    },
}

fn studies_note(studies: &[String]) -> String {
    match studies {
        [] => String::new(),
        [one] => format!(", and {one} is a study"),
        several => format!(", and {} are studies", several.join(", ")),
    }
}

impl Classify for CatalogueError {
    fn class(&self) -> ErrorClass {
        match self {
            CatalogueError::Problems(_)
            | CatalogueError::Read { .. }
            | CatalogueError::NoDefinition { .. } => ErrorClass::Usage,
        }
    }

    fn problems(&self) -> Option<&Problems> {
        match self {
            CatalogueError::Problems(problems) => Some(problems),
            CatalogueError::Read { .. } | CatalogueError::NoDefinition { .. } => None,
        }
    }
}

impl Catalogue {
    /// The definitions that are part of the binary, none of them read yet. A test reads all: each is right.
    pub fn embedded() -> Catalogue {
        let named =
            EMBEDDED.iter().filter_map(|(file, text)| Some((file.strip_suffix(".toml")?, file, text)));
        let entries = named.map(|(name, file, text)| {
            let source = TomlSource::new(format!("workloads/{file}"), *text);
            (name.to_owned(), CatalogueEntry { source, definition: OnceLock::new() })
        });
        let mut entries: IndexMap<String, CatalogueEntry> = entries.collect();
        entries.sort_unstable_keys();
        Catalogue { entries }
    }

    /// The names of those, sorted.
    pub fn embedded_names() -> impl Iterator<Item = &'static str> {
        EMBEDDED.iter().filter_map(|(file, _)| file.strip_suffix(".toml"))
    }

    /// Definitions from elsewhere, such as [`Catalogue::source`] of another catalogue.
    pub fn from_sources(sources: &[TomlSource]) -> Result<Catalogue, CatalogueError> {
        let mut catalogue = Catalogue::default();
        sources.iter().try_for_each(|source| catalogue.add(source))?;
        Ok(catalogue)
    }

    /// The file that defines the workload of that name.
    pub fn source(&self, name: &str) -> Option<&TomlSource> {
        self.entries.get(name).map(|entry| &entry.source)
    }

    /// Adds all `*.toml` of a folder; studies may lie beside them. A name that is known already is replaced: the user's file wins.
    pub fn extend_from_folder(&mut self, directory: &Path) -> Result<(), CatalogueError> {
        let refused = |source| CatalogueError::Read { path: directory.into(), source };
        let entries: Result<Vec<_>, _> = fs::read_dir(directory).map_err(refused)?.collect();
        let mut files: Vec<PathBuf> =
            entries.map_err(refused)?.into_iter().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        files.sort();
        let mut studies = Vec::new();
        let count = files.len();
        for path in files {
            let text = fs::read_to_string(&path)
                .map_err(|source| CatalogueError::Read { path: path.clone(), source })?;
            if is_study(&text) {
                studies.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
            } else {
                self.add(&TomlSource::new(path.display().to_string(), text))?;
            }
        }
        if studies.len() == count {
            return Err(CatalogueError::NoDefinition { path: directory.into(), studies });
        }
        Ok(())
    }

    /// The definition of that name.
    pub fn get(&self, name: &str) -> Option<&WorkloadDefinition> {
        self.entries.get(name)?.definition()
    }

    /// What to do about a name that is not here: the nearest one, or all, and where others come from.
    pub fn unknown_name_hint(&self, name: &str) -> String {
        let hint = perflab_model::suggest_name(name, self.names());
        match perflab_model::nearest_name(name, self.names()) {
            Some(_) => hint,
            None => format!("{hint}; `--workloads DIR` adds a folder of definitions"),
        }
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.entries.keys().map(String::as_str)
    }

    /// All definitions, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &WorkloadDefinition> {
        self.entries.values().filter_map(CatalogueEntry::definition)
    }

    /// The catalogue with the commands that a study has of its own, under the names of their tables.
    ///
    /// # Errors
    /// What is wrong with them, by keys of the study.
    pub fn with_commands_of(mut self, study: &Study) -> Result<Catalogue, Vec<Problem>> {
        let mut found = Vec::new();
        for name in study.workload.keys() {
            let Some(source) = write_inline_definition(name, study) else { continue };
            if let Err(problems) = self.add(&source) {
                found.extend(problems.list.into_iter().map(|problem| place_in_study(name, problem)));
            }
        }
        for (name, beside) in &study.beside {
            if let Err(problems) = self.add(&write_beside_definition(name, beside, study)) {
                let place = |problem: Problem| Problem {
                    key: format!("beside.{name}.command"),
                    span: None,
                    ..problem
                };
                found.extend(problems.list.into_iter().map(place));
            }
        }
        if found.is_empty() { Ok(self) } else { Err(found) }
    }

    /// The command of `[beside.NAME]` in the study that the catalogue was extended by.
    pub fn get_beside(&self, name: &str) -> Option<&WorkloadDefinition> {
        self.get(&beside_definition_name(name))
    }

    /// The file that [`Catalogue::get_beside`] was read from.
    pub fn beside_source(&self, name: &str) -> Option<&TomlSource> {
        self.source(&beside_definition_name(name))
    }

    fn add(&mut self, source: &TomlSource) -> Result<(), Problems> {
        let definition = WorkloadDefinition::read(source)?;
        let name = definition.name.clone();
        let entry = CatalogueEntry { source: source.clone(), definition: OnceLock::from(Some(definition)) };
        self.entries.insert_sorted(name, entry);
        Ok(())
    }
}

/// Whether a file is a study: it uses workloads, and says of none what to run.
fn is_study(text: &str) -> bool {
    let table = text.parse::<toml::Table>();
    table.is_ok_and(|table| table.contains_key("workload") && !table.contains_key("argv"))
}
