//! The list of runs of an archive in object storage, as a table in Parquet.
//!
//! Such a table is written once and never changed. An archive has several, and what they say of a run is merged: the row of the
//! highest revision holds, whoever wrote it and in whatever order, so that two writers never lose a run and need no clock in
//! common (`docs/decisions/remote-archive.md`).

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use perflab_model::column::ColumnType::{Boolean, Int, Text};
use perflab_model::column::{ColumnKind, stored_columns};
use perflab_model::{ColumnRef, DeclaredColumn, RowSchema, TypedTable};

use crate::error::ArchiveError;
use crate::parquet::{ParquetReader, ParquetWriter};
use crate::run_dir::RunDir;
use crate::run_id::is_run_id;
use crate::run_summary::summarise_run;

/// What a list says of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunListEntry {
    /// The run's id.
    pub id: String,
    /// Counts up with each change of what is said of the run; of several rows the highest holds.
    pub revision: i64,
    /// Whether it is there; `false` says that it was removed.
    pub is_present: bool,
    /// The name that the user gave it.
    pub label: Option<String>,
    /// The study's title.
    pub title: String,
    /// How it ended.
    pub status: String,
    /// When it began, in nanoseconds since 1970.
    pub begun_ns: i64,
    /// Iterations that ended, warm-ups included.
    pub iterations: i64,
    /// What its files take together, in bytes.
    pub bytes: i64,
    /// How many files it has.
    pub files: i64,
    /// SHA-256 of its `run.json` followed by its notes, in hex: what may change after its end.
    pub head_hash: String,
}

impl RunListEntry {
    /// What a list says of a run as it is on this disk.
    ///
    /// # Errors
    /// A run that is damaged or being recorded; files that cannot be read.
    pub fn of_run(run: &RunDir) -> Result<Self, ArchiveError> {
        let summary = summarise_run(run.path())?.summary;
        let files = run.list_files()?;
        let mut bytes = 0;
        for name in &files {
            let path = run.path().join(name);
            bytes += path.metadata().map_err(ArchiveError::io("read", &path))?.len();
        }
        Ok(RunListEntry {
            id: run.id().to_owned(),
            revision: 1,
            is_present: true,
            label: summary.label,
            title: summary.title.to_string(),
            status: summary.status.as_str().to_owned(),
            begun_ns: i64::try_from(summary.begun.as_nanosecond()).unwrap_or(i64::MAX),
            iterations: to_stored(summary.iterations),
            bytes: to_stored(bytes),
            files: to_stored(files.len() as u64),
            head_hash: run.hash_head()?,
        })
    }
}

impl RunListEntry {
    /// The same of a run of which only some files are here: how many there are, and what they take together.
    #[must_use]
    pub fn with_size(self, files: usize, bytes: u64) -> Self {
        RunListEntry { files: to_stored(files as u64), bytes: to_stored(bytes), ..self }
    }

    /// Whether a perflab may have written it: an id that is one, counts that are none below zero, and a revision that others can follow.
    fn is_possible(&self) -> bool {
        let counts = [self.iterations, self.bytes, self.files];
        is_run_id(&self.id)
            && (1..MOST_REVISIONS).contains(&self.revision)
            && counts.iter().all(|count| *count >= 0)
            && self.label.as_ref().is_none_or(|label| label.len() <= LONGEST_NAME)
            && self.title.len() <= LONGEST_NAME
    }
}

/// What a run is changed less often than in its life.
const MOST_REVISIONS: i64 = 1 << 40;

/// Bytes of a label or a title in a list.
const LONGEST_NAME: usize = 64 << 10;

fn to_stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A row of the list.
#[derive(Debug, Clone, Copy)]
pub struct RunListRow;

impl RowSchema for RunListRow {
    const NAME: &'static str = "runs";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::required("run", Text, "1", ColumnKind::Key, "the run's id"),
        DeclaredColumn::required(
            "revision",
            Int,
            "1",
            ColumnKind::Key,
            "counts up with each change of what is said of the run: of several rows the highest holds",
        ),
        DeclaredColumn::required(
            "present",
            Boolean,
            "1",
            ColumnKind::Value,
            "whether the run is there; false says that it was removed",
        ),
        DeclaredColumn::optional("label", Text, "1", ColumnKind::Value, "the name that the user gave it"),
        DeclaredColumn::required("study", Text, "1", ColumnKind::Value, "the study's title"),
        DeclaredColumn::required(
            "status",
            Text,
            "1",
            ColumnKind::Value,
            "finished, failed, stopped or interrupted",
        ),
        DeclaredColumn::required("begun_ns", Int, "ns", ColumnKind::Value, "when it began, since 1970"),
        DeclaredColumn::required(
            "iterations",
            Int,
            "1",
            ColumnKind::Value,
            "iterations that ended, warm-ups included",
        ),
        DeclaredColumn::required("bytes", Int, "bytes", ColumnKind::Value, "what its files take together"),
        DeclaredColumn::required("files", Int, "1", ColumnKind::Value, "how many files it has"),
        DeclaredColumn::required(
            "head_sha256",
            Text,
            "1",
            ColumnKind::Value,
            "SHA-256 of its run.json followed by its notes.jsonl, which may change after its end",
        ),
    ];
}

impl RunListRow {
    const RUN: ColumnRef<Self, str> = ColumnRef::named("run");
    const REVISION: ColumnRef<Self, i64> = ColumnRef::named("revision");
    const PRESENT: ColumnRef<Self, bool> = ColumnRef::named("present");
    const LABEL: ColumnRef<Self, str> = ColumnRef::named("label");
    const STUDY: ColumnRef<Self, str> = ColumnRef::named("study");
    const STATUS: ColumnRef<Self, str> = ColumnRef::named("status");
    const BEGUN: ColumnRef<Self, i64> = ColumnRef::named("begun_ns");
    const ITERATIONS: ColumnRef<Self, i64> = ColumnRef::named("iterations");
    const BYTES: ColumnRef<Self, i64> = ColumnRef::named("bytes");
    const FILES: ColumnRef<Self, i64> = ColumnRef::named("files");
    const HEAD: ColumnRef<Self, str> = ColumnRef::named("head_sha256");

    const READ: [&str; 11] = [
        Self::RUN.name(),
        Self::REVISION.name(),
        Self::PRESENT.name(),
        Self::LABEL.name(),
        Self::STUDY.name(),
        Self::STATUS.name(),
        Self::BEGUN.name(),
        Self::ITERATIONS.name(),
        Self::BYTES.name(),
        Self::FILES.name(),
        Self::HEAD.name(),
    ];
}

/// Writes a list to a file that is new.
///
/// # Errors
/// What the disk refuses.
pub fn write_run_list<'a>(
    path: &Path,
    entries: impl IntoIterator<Item = &'a RunListEntry>,
) -> Result<(), ArchiveError> {
    let mut writer = ParquetWriter::<RunListRow>::create(path, stored_columns(RunListRow::COLUMNS), &[])?;
    for entry in entries {
        let row = writer.row();
        row.set(RunListRow::RUN, entry.id.as_str());
        row.set(RunListRow::REVISION, entry.revision);
        row.set(RunListRow::PRESENT, entry.is_present);
        row.set(RunListRow::LABEL, entry.label.as_deref());
        row.set(RunListRow::STUDY, entry.title.as_str());
        row.set(RunListRow::STATUS, entry.status.as_str());
        row.set(RunListRow::BEGUN, entry.begun_ns);
        row.set(RunListRow::ITERATIONS, entry.iterations);
        row.set(RunListRow::BYTES, entry.bytes);
        row.set(RunListRow::FILES, entry.files);
        row.set(RunListRow::HEAD, entry.head_hash.as_str());
        writer.end_row()?;
    }
    writer.close()
}

/// Reads a list.
///
/// # Errors
/// A file that cannot be read, or is no such list.
pub fn read_run_list(path: &Path) -> Result<Vec<RunListEntry>, ArchiveError> {
    let file = File::open(path).map_err(ArchiveError::io("read", path))?;
    let table = ParquetReader::from_file(file, path.into())?;
    let mut entries = Vec::with_capacity(table.row_count().min(1 << 20));
    for rows in table.read_rows(table.row_groups(), &RunListRow::READ)? {
        let rows: TypedTable<RunListRow> = rows?;
        let text = |column, row| rows.column(column).get(row).map(str::to_owned);
        let number = |column, row| rows.column(column).get(row);
        let entry = |row: usize| {
            Some(RunListEntry {
                id: text(RunListRow::RUN, row)?,
                revision: number(RunListRow::REVISION, row)?,
                is_present: rows.column(RunListRow::PRESENT).get(row)?,
                label: text(RunListRow::LABEL, row),
                title: text(RunListRow::STUDY, row)?,
                status: text(RunListRow::STATUS, row)?,
                begun_ns: number(RunListRow::BEGUN, row)?,
                iterations: number(RunListRow::ITERATIONS, row)?,
                bytes: number(RunListRow::BYTES, row)?,
                files: number(RunListRow::FILES, row)?,
                head_hash: text(RunListRow::HEAD, row)?,
            })
        };
        let read: Option<Vec<RunListEntry>> = (0..rows.row_count()).map(entry).collect();
        let read = read.ok_or_else(|| ArchiveError::damaged(path)("a row lacks a value"))?;
        if let Some(entry) = read.iter().find(|entry| !entry.is_possible()) {
            let reason = format!("its row of run `{}` says what no perflab writes", entry.id.escape_debug());
            return Err(ArchiveError::damaged(path)(reason));
        }
        entries.extend(read);
    }
    Ok(entries)
}

/// What several lists say together, by the run's id: of each run the row of the highest revision, and of those with equal revisions
/// the greatest by its contents, so that everybody who merges the same lists gets the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergedRunList {
    entries: BTreeMap<String, RunListEntry>,
}

impl MergedRunList {
    /// Takes what a list says.
    pub fn add(&mut self, entries: impl IntoIterator<Item = RunListEntry>) {
        let rank = |entry: &RunListEntry| {
            // A run that is there wins over one that is not: nothing is lost by two who disagree.
            (entry.revision, entry.is_present, entry.label.clone(), entry.head_hash.clone())
        };
        for entry in entries {
            match self.entries.get_mut(&entry.id) {
                Some(held) if rank(held) >= rank(&entry) => {}
                Some(held) => *held = entry,
                None => {
                    self.entries.insert(entry.id.clone(), entry);
                }
            }
        }
    }

    /// The runs that are there, the oldest first.
    pub fn present(&self) -> impl DoubleEndedIterator<Item = &RunListEntry> {
        self.entries.values().filter(|entry| entry.is_present)
    }

    /// All rows, of runs that were removed, too.
    pub fn rows(&self) -> impl Iterator<Item = &RunListEntry> {
        self.entries.values()
    }

    /// What is said of a run, be it there or removed.
    pub fn get(&self, id: &str) -> Option<&RunListEntry> {
        self.entries.get(id)
    }

    /// The revision that the next row of a run has.
    pub fn next_revision(&self, id: &str) -> i64 {
        self.get(id).map_or(1, |entry| entry.revision.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, revision: i64, label: Option<&str>) -> RunListEntry {
        RunListEntry {
            id: id.into(),
            revision,
            is_present: true,
            label: label.map(String::from),
            title: "a study".into(),
            status: "finished".into(),
            begun_ns: 1_790_000_000_000_000_000,
            iterations: 12,
            bytes: 4096,
            files: 9,
            head_hash: "ab".repeat(32),
        }
    }

    const A: &str = "01M86D3BNFDJPTHCANQJZN3H5A";
    const B: &str = "01M86D3BNFDJPTHCANQJZN3H5B";

    #[test]
    fn a_row_that_no_perflab_writes_is_damage() {
        let home = tempfile::tempdir().unwrap();
        let good = entry(A, 1, None);
        let wrong = [
            RunListEntry { id: "../../evil".into(), ..good.clone() },
            RunListEntry { revision: i64::MAX, ..good.clone() },
            RunListEntry { bytes: -1, ..good },
        ];
        for (number, row) in wrong.iter().enumerate() {
            let path = home.path().join(number.to_string());
            write_run_list(&path, [row]).unwrap();
            assert!(matches!(read_run_list(&path), Err(ArchiveError::Damaged { .. })), "{row:?}");
        }
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("list.parquet");
        let removed = RunListEntry { is_present: false, ..entry(B, 3, None) };
        let written = [entry(A, 1, Some("before")), removed];
        write_run_list(&path, &written).unwrap();
        assert_eq!(read_run_list(&path).unwrap(), written);
        std::fs::write(&path, "no table").unwrap();
        assert!(matches!(read_run_list(&path), Err(ArchiveError::Damaged { .. })));
    }

    #[test]
    fn lists_say_the_same_in_whatever_order_they_are_merged() {
        let lists = [
            vec![entry(A, 1, None), entry("B", 1, Some("x"))],
            vec![entry(A, 2, Some("named"))],
            vec![RunListEntry { is_present: false, ..entry("B", 2, None) }, entry("C", 1, None)],
            vec![entry(A, 2, Some("other"))],
        ];
        let merge = |order: &[usize]| {
            let mut merged = MergedRunList::default();
            order.iter().for_each(|list| merged.add(lists[*list].clone()));
            merged
        };
        let merged = merge(&[0, 1, 2, 3]);
        assert_eq!(merged, merge(&[3, 2, 1, 0]));
        assert_eq!(merged, merge(&[2, 0, 3, 1]));
        let present: Vec<_> =
            merged.present().map(|entry| (entry.id.as_str(), entry.label.as_deref())).collect();
        assert_eq!(present, [(A, Some("other")), ("C", None)]);
        assert_eq!((merged.next_revision("B"), merged.next_revision("new")), (3, 1));
    }
}
