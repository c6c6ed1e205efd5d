//! What the daemon knows of programs, kept from one daemon to the next.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::daemon::programs::{KnownPrograms, ProgramKey, ProgramRecord};
use crate::trace_store::TraceStore;

/// The file, in the folder of the traces.
const PROGRAMS_FILE_NAME: &str = "programs.json";

/// A program as one user starts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramStatus {
    /// which, and whose
    #[serde(flatten)]
    pub key: ProgramKey,
    /// what is known of it
    #[serde(flatten)]
    pub program: ProgramRecord,
}

/// What a daemon writes of programs, and reads when it begins.
#[derive(Debug, Deserialize)]
struct SavedPrograms {
    programs: Vec<ProgramStatus>,
}

/// The same of what is in memory.
#[derive(Debug, Serialize)]
struct ProgramsToSave<'a> {
    programs: Vec<ProgramToSave<'a>>,
}

#[derive(Debug, Serialize)]
struct ProgramToSave<'a> {
    #[serde(flatten)]
    key: &'a ProgramKey,
    #[serde(flatten)]
    program: &'a ProgramRecord,
}

pub(crate) fn format_saved_programs(programs: &KnownPrograms) -> serde_json::Result<Vec<u8>> {
    let programs = programs.all().iter().map(|(key, program)| ProgramToSave { key, program }).collect();
    serde_json::to_vec(&ProgramsToSave { programs })
}

/// What the last daemon knew of programs; nothing where it is damaged, because traces lie elsewhere and are found again. `say` hears
/// where it is of a daemon that did not distinguish users: then whose startups taught what is not known, and all begin anew.
pub fn read_programs_file(store: &TraceStore, say: &dyn Fn(&str)) -> Vec<ProgramStatus> {
    let path = store.folder().join(PROGRAMS_FILE_NAME);
    let Ok(text) = fs::read(&path) else { return Vec::new() };
    match serde_json::from_slice::<SavedPrograms>(&text) {
        Ok(saved) => saved.programs,
        Err(_) => {
            let of_nobody =
                serde_json::from_slice::<BTreeMap<PathBuf, ProgramRecord>>(&text).unwrap_or_default();
            if !of_nobody.is_empty() {
                say(&format!(
                    "{} does not say which user started its programs ({}): learning begins anew for each user",
                    path.display(),
                    of_nobody.len()
                ));
            }
            Vec::new()
        }
    }
}

/// Writes what [`format_saved_programs`] gave, whole or not at all.
pub(crate) fn write_programs_file(store: &TraceStore, text: &[u8]) -> io::Result<()> {
    store.create_folder().map_err(io::Error::other)?;
    let mut file = tempfile::NamedTempFile::new_in(store.folder())?;
    file.write_all(text)?;
    file.persist(store.folder().join(PROGRAMS_FILE_NAME)).map(drop).map_err(|error| error.error)
}
