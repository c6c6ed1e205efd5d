//! Steps that somebody accepted: `accepted.json` of the archive.
//!
//! They are what people said, and cannot be computed again: they stand in a file of their own and not in the index,
//! which may be thrown away. The file is replaced as a whole, under the archive's lock: a writer that is killed leaves
//! the old one.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use perflab_files::read_finite_file;
use perflab_model::AcceptedStep;
use serde::{Deserialize, Serialize};

use crate::archive_dir::Archive;
use crate::error::ArchiveError;
use crate::fresh_file::check_folder_owners;
use crate::index::index_lock::IndexLock;
use crate::manifest::replace_file;
use crate::run_layout::RUNS;

/// The file, in the archive's directory.
const ACCEPTED: &str = "accepted.json";

/// Version of the file.
const FORMAT: u32 = 1;

/// The longest file that is read.
const LONGEST: u64 = 64 << 20;

/// How long another writer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Serialize, Deserialize)]
struct AcceptedSteps {
    format: u32,
    steps: Vec<AcceptedStep>,
}

impl Archive {
    /// The steps that were accepted, in the order in which that was done.
    ///
    /// # Errors
    /// The file cannot be read, is damaged or newer: histories without it would alarm again.
    pub fn read_accepted_steps(&self) -> Result<Vec<AcceptedStep>, ArchiveError> {
        read_steps(&self.path().join(ACCEPTED))
    }

    /// Accepts steps; one of the same series and run as an older one takes its place.
    ///
    /// # Errors
    /// Another process holds the archive's lock; the file cannot be read or written.
    pub fn accept_steps(&self, steps: &[AcceptedStep]) -> Result<(), ArchiveError> {
        let path = self.path().join(ACCEPTED);
        check_folder_owners(&self.path().join(RUNS), None)?;
        let _lock = IndexLock::acquire(self.path(), PATIENCE)
            .map_err(ArchiveError::io("take the lock to write", &path))?;
        let mut all = read_steps(&path)?;
        all.retain(|old| !steps.iter().any(|step| step.replaces(old)));
        all.extend_from_slice(steps);
        let text = serde_json::to_vec_pretty(&AcceptedSteps { format: FORMAT, steps: all })
            .map_err(ArchiveError::damaged(&path))?;
        replace_file(&path, |file| file.write_all(&text)).map_err(ArchiveError::io("write", &path))?;
        sync_folder(self.path()).map_err(ArchiveError::io("write", &path))
    }
}

/// What was renamed is there after a power cut, too.
fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

fn read_steps(path: &Path) -> Result<Vec<AcceptedStep>, ArchiveError> {
    let text = match read_finite_file(path, LONGEST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(ArchiveError::io("read", path))?,
    };
    let damaged = |reason: String| ArchiveError::Damaged { path: PathBuf::from(path), reason };
    let found: AcceptedSteps = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if found.format > FORMAT {
        let reason = format!("it has version {}, and this perflab reads {FORMAT}", found.format);
        return Err(damaged(reason));
    }
    Ok(found.steps)
}

#[cfg(test)]
mod tests {
    use perflab_model::{AcceptedStep, Nanos, Unit};

    use crate::archive_dir::Archive;
    use crate::error::ArchiveError;

    fn step(metric: &str, run: &str, note: &str) -> AcceptedStep {
        AcceptedStep {
            subject: "sweep".into(),
            metric: metric.into(),
            unit: Unit::new("s"),
            run: run.into(),
            began: Nanos(5),
            note: note.into(),
            accepted: Nanos(7),
        }
    }

    #[test]
    fn accepted_steps_are_kept_and_the_later_note_of_a_step_holds() {
        let home = tempfile::tempdir().unwrap();
        let archive = Archive::open(home.path()).unwrap();
        assert_eq!(archive.read_accepted_steps().unwrap(), []);
        archive.accept_steps(&[step("time", "01A", "a"), step("memory", "01A", "b")]).unwrap();
        archive.accept_steps(&[step("time", "01A", "c")]).unwrap();
        let notes: Vec<String> =
            archive.read_accepted_steps().unwrap().into_iter().map(|step| step.note).collect();
        assert_eq!(notes, ["b", "c"]);
    }

    /// What a killed writer leaves is a file that nobody reads and the next one replaces.
    #[test]
    fn a_half_written_file_is_nobodys_and_a_damaged_one_is_reported() {
        let home = tempfile::tempdir().unwrap();
        let archive = Archive::open(home.path()).unwrap();
        archive.accept_steps(&[step("time", "01A", "a")]).unwrap();
        std::fs::write(home.path().join("accepted.json.tmp"), "{\"format\": 1, \"st").unwrap();
        assert_eq!(archive.read_accepted_steps().unwrap().len(), 1);
        archive.accept_steps(&[step("time", "01B", "b")]).unwrap();
        assert_eq!(archive.read_accepted_steps().unwrap().len(), 2);
        for text in ["{", "{\"format\": 2, \"steps\": []}"] {
            std::fs::write(home.path().join("accepted.json"), text).unwrap();
            assert!(matches!(archive.read_accepted_steps(), Err(ArchiveError::Damaged { .. })));
            assert!(archive.accept_steps(&[]).is_err(), "what people said is not written over");
        }
    }
}
