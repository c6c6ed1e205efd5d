//! A record of each perflab that carries out executions, beside the undo journals, so that what a killed one leaves
//! running is found and ended.
//!
//! Ended is only what carries the mark of a perflab that a record names, and that is gone. A mark alone proves
//! nothing: environments are inherited, copied and invented.

use std::ffi::OsStr;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use perflab_observe::own_directories::{self, OwnFileAccess};
use perflab_workload::{ExecutionOwner, find_unknown_executions};
use rustix::fs::{AtFlags, unlinkat};

const NAME: &str = "executions-";

/// Says where the next perflab looks that this one carries out executions; goes when it is dropped.
#[derive(Debug)]
pub struct ExecutionRecord {
    state: PathBuf,
    name: String,
}

impl ExecutionRecord {
    /// Writes it. `state` is where journals lie.
    ///
    /// # Errors
    /// It cannot be written, or somebody else may write there.
    pub fn write(state: &Path, boot_id: &str) -> io::Result<Self> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let name = format!("{NAME}{}-{}", ExecutionOwner::current(), SERIAL.fetch_add(1, Ordering::Relaxed));
        let folder = own_directories::create_own_directory(state)?;
        own_directories::open_own_file(&folder, OsStr::new(&name), OwnFileAccess::New)?
            .write_all(boot_id.as_bytes())?;
        Ok(ExecutionRecord { state: state.into(), name })
    }
}

impl Drop for ExecutionRecord {
    fn drop(&mut self) {
        remove_execution_record(&self.state, &self.name);
    }
}

/// What became of executions of perflabs that are gone.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EndedExecutions {
    /// How many processes were ended.
    pub ended: usize,
    /// Processes with the mark of a perflab that is gone, which no record names: left alone.
    pub left_alone: Vec<i32>,
}

/// Ends what executions of perflabs that were killed have left behind, as far as records in the folders `states` tell of them; with
/// `predecessor` also those of this very process, before it became another program by exec. Perflabs that live, or may live in
/// another PID namespace, are left alone.
pub fn end_abandoned_executions(states: &[PathBuf], boot_id: &str, predecessor: bool) -> EndedExecutions {
    let mut found = EndedExecutions::default();
    let mut known = vec![ExecutionOwner::current().clone()];
    let records = states
        .iter()
        .flat_map(|state| read_execution_records(state).into_iter().map(move |record| (state, record)));
    for (state, (name, executor)) in records {
        if read_record_boot_id(state, &name).is_ok_and(|boot| boot != boot_id) {
            remove_execution_record(state, &name);
        } else if executor.is_gone() || (predecessor && executor.is_predecessor()) {
            found.ended += executor.end_executions();
            remove_execution_record(state, &name);
            known.push(executor);
        }
    }
    found.left_alone = find_unknown_executions(&known);
    found
}

/// The records in a folder of this user's own.
fn read_execution_records(state: &Path) -> Vec<(String, ExecutionOwner)> {
    if !matches!(own_directories::open_own_directory(state), Ok(Some(_))) {
        return Vec::new();
    }
    let entries = std::fs::read_dir(state).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let record = |name: String| {
        let executor = name.strip_prefix(NAME)?.rsplit_once('-')?.0;
        let executor = ExecutionOwner::parse(executor)?;
        Some((name, executor))
    };
    names.filter_map(record).collect()
}

/// Of which boot a record is; only of one that nobody else could have written.
fn read_record_boot_id(state: &Path, name: &str) -> io::Result<String> {
    let folder = own_directories::open_own_directory(state)?.ok_or(io::ErrorKind::NotFound)?;
    let mut text = String::new();
    own_directories::open_own_file(&folder, OsStr::new(name), OwnFileAccess::Read)?
        .read_to_string(&mut text)?;
    Ok(text)
}

fn remove_execution_record(state: &Path, name: &str) {
    // What stays is found again, and has no owner then.
    if let Ok(Some(folder)) = own_directories::open_own_directory(state) {
        let _ = unlinkat(&folder, name, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_goes_with_its_run_and_one_of_another_boot_with_the_next_start() {
        let state = tempfile::tempdir().unwrap();
        let record = ExecutionRecord::write(state.path(), "boot").unwrap();
        assert_eq!(read_execution_records(state.path()).len(), 1);
        end_abandoned_executions(&[state.path().into()], "boot", false);
        assert_eq!(
            read_execution_records(state.path()),
            [(record.name.clone(), ExecutionOwner::current().clone())],
            "it lives"
        );
        drop(record);
        assert!(read_execution_records(state.path()).is_empty());
        std::mem::forget(ExecutionRecord::write(state.path(), "boot").unwrap());
        end_abandoned_executions(&[state.path().into()], "next", false);
        assert!(read_execution_records(state.path()).is_empty());
    }
}
