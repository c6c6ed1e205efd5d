//! Results of analyses, read from the index and kept in it.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use super::index_changes::{IndexChanges, write_changes};
use super::index_file::{IndexError, IndexFile};
use super::kept_results::{KeptResult, ResultChanges, read_kept_results};

/// How long it waits to write; whoever asks again computes again.
const PATIENCE: Duration = Duration::from_millis(500);

/// The results of a kind, by what each is a result of; none where there is no index.
pub(crate) fn read_results(archive: &Path, kind: &str) -> HashMap<String, KeptResult> {
    let read = || -> Result<HashMap<String, KeptResult>, IndexError> {
        let index = IndexFile::open_to_read(archive)?;
        Ok(read_kept_results(&index.connection, kind)?)
    };
    read().unwrap_or_default()
}

/// Keeps results in the place of older ones of the same subjects; without a right to write the index, nothing.
pub(crate) fn keep_results(archive: &Path, kind: &'static str, results: Vec<(String, KeptResult)>) {
    if !results.is_empty() {
        let results = ResultChanges { kind, results };
        let _ = write_changes(archive, PATIENCE, &IndexChanges { results, ..IndexChanges::default() });
    }
}
