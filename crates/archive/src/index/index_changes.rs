//! Changes of the index, written all or nothing.

use std::path::Path;
use std::time::Duration;

use super::index_file::{IndexError, IndexFile};
use super::index_lock::IndexLock;
use super::run_heads::{StoredHead, remove_heads, write_heads};
use super::run_records::{StoredRecord, remove_records, write_records};

/// What is to be written into the index.
#[derive(Default)]
pub(super) struct IndexChanges {
    pub(super) heads: Vec<StoredHead>,
    pub(super) records: Vec<StoredRecord>,
    /// Runs whose rows go.
    pub(super) gone: Vec<String>,
}

impl IndexChanges {
    /// Writes them, all or nothing.
    pub(super) fn write_into(&self, index: &mut IndexFile) -> Result<(), IndexError> {
        let transaction = index.connection.transaction()?;
        remove_heads(&transaction, &self.gone)?;
        remove_records(&transaction, &self.gone)?;
        write_heads(&transaction, &self.heads)?;
        write_records(&transaction, &self.records)?;
        Ok(transaction.commit()?)
    }
}

/// Writes changes into the index of `archive`.
pub(super) fn write_changes(
    archive: &Path,
    patience: Duration,
    changes: &IndexChanges,
) -> Result<(), IndexError> {
    let lock = IndexLock::acquire(archive, patience)?;
    let written =
        IndexFile::open_to_write(archive, &lock).and_then(|mut index| changes.write_into(&mut index));
    match written {
        Err(error) if error.is_cured_by_another_file() => {
            changes.write_into(&mut IndexFile::replace(archive, &lock)?)
        }
        written => written,
    }
}
