//! A row a run: what a list of runs shows of it, and what it was made of.

use jiff::Timestamp;
use perflab_model::{RunStatus, SharedStr};
use rusqlite::{Connection, Row, Transaction, params};

use super::run_stamp::HeadBytes;
use crate::run_summary::RunSummary;

/// What is stored of a closed run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RunHead {
    /// The run's id: the name of its directory.
    pub(super) id: String,
    /// What a list shows.
    pub(super) summary: RunSummary,
    /// What it takes on the disk, in bytes.
    pub(super) bytes: u64,
}

/// A row of the table `run`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredHead {
    /// The run.
    pub(super) head: RunHead,
    /// Of the files that the row was made from.
    pub(super) stamp: HeadBytes,
    /// When they were read, nanoseconds since 1970.
    pub(super) read_at: i64,
}

const COLUMNS: &str = "id, stamp, read_at, label, title, study_file, status, begun, iterations, planned, bytes, \
                       content_hash, continues, first_part";

/// All rows, or those from an id on, by id.
pub(super) fn read_heads(connection: &Connection, from: Option<&str>) -> rusqlite::Result<Vec<StoredHead>> {
    let mut statement =
        connection.prepare(&format!("SELECT {COLUMNS} FROM run WHERE id >= ? ORDER BY id"))?;
    let mut repeated = RepeatedTexts::default();
    let rows = statement.query_map([from.unwrap_or_default()], |row| parse_row(row, &mut repeated))?;
    rows.collect()
}

/// Texts that most runs have from the run before them: held once.
#[derive(Default)]
struct RepeatedTexts {
    title: RepeatedText,
    study_file: RepeatedText,
    content_hash: RepeatedText,
}

#[derive(Default)]
struct RepeatedText(SharedStr);

impl RepeatedText {
    /// The text of a column, shared where it is the one of the row before.
    fn share(&mut self, text: &str) -> SharedStr {
        if self.0 != *text {
            self.0 = text.into();
        }
        self.0.clone()
    }
}

fn parse_row(row: &Row<'_>, repeated: &mut RepeatedTexts) -> rusqlite::Result<StoredHead> {
    let status = row.get_ref(6)?.as_str()?;
    let status = parse_status(status).ok_or_else(|| {
        let unknown = format!("unknown status {status}");
        rusqlite::Error::FromSqlConversionFailure(6, rusqlite::types::Type::Text, unknown.into())
    })?;
    let summary = RunSummary {
        label: row.get(3)?,
        title: repeated.title.share(row.get_ref(4)?.as_str()?),
        study_file: repeated.study_file.share(row.get_ref(5)?.as_str()?),
        status,
        begun: Timestamp::from_nanosecond(i128::from(row.get::<_, i64>(7)?)).unwrap_or_default(),
        iterations: row.get(8)?,
        planned: row.get(9)?,
        content_hash: row.get_ref(11)?.as_str_or_null()?.map(|hash| repeated.content_hash.share(hash)),
        continues: row.get(12)?,
        first_part: row.get(13)?,
    };
    let head = RunHead { id: row.get(0)?, summary, bytes: row.get(10)? };
    Ok(StoredHead { head, stamp: row.get(1)?, read_at: row.get(2)? })
}

/// The status of a closed run; one that is not closed has no row.
fn parse_status(name: &str) -> Option<RunStatus> {
    let closed = [RunStatus::Finished, RunStatus::Failed, RunStatus::Stopped, RunStatus::Interrupted];
    closed.into_iter().find(|status| status.as_str() == name)
}

/// Writes rows, in the place of older ones of the same runs.
pub(super) fn write_heads(transaction: &Transaction<'_>, rows: &[StoredHead]) -> rusqlite::Result<()> {
    let marks = vec!["?"; COLUMNS.split(',').count()].join(", ");
    let mut statement =
        transaction.prepare(&format!("INSERT OR REPLACE INTO run ({COLUMNS}) VALUES ({marks})"))?;
    for StoredHead { head, stamp, read_at } in rows {
        let RunSummary {
            label,
            title,
            study_file,
            status,
            begun,
            iterations,
            planned,
            content_hash,
            continues,
            first_part,
        } = &head.summary;
        let begun = i64::try_from(begun.as_nanosecond()).unwrap_or(i64::MAX);
        statement.execute(params![
            head.id,
            stamp,
            read_at,
            label,
            title.as_str(),
            study_file.as_str(),
            status.to_string(),
            begun,
            iterations,
            planned,
            head.bytes,
            content_hash.as_deref(),
            continues,
            first_part,
        ])?;
    }
    Ok(())
}

/// Removes the rows of runs.
pub(super) fn remove_heads(transaction: &Transaction<'_>, runs: &[String]) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare("DELETE FROM run WHERE id = ?")?;
    runs.iter().try_for_each(|run| statement.execute([run]).map(drop))
}
