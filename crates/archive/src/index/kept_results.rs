//! Results of analyses that take long and are asked for again: change points, the state of a guard.
//!
//! A result is worth as much as its basis: whatever it was computed from, put into one text (a hash, say). Whoever reads
//! it compares the basis, so a run that was removed, relabelled or copied in makes no result wrong. Results may be thrown
//! away with the index at any time: what cannot be computed again has no place here.

use std::collections::HashMap;

use rusqlite::{Connection, Transaction, params};

use super::run_stamp::now;

/// Results of one kind that are kept: those that were computed last.
const MOST_RESULTS: u32 = 100_000;

/// A result of an analysis, and what it was computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptResult {
    /// What it was computed from, as a text that no other basis has.
    pub basis: String,
    /// The result, in whatever form the analysis likes.
    pub body: String,
}

/// Results of one kind to be written.
#[derive(Debug, Clone, Default)]
pub(super) struct ResultChanges {
    /// What kind of result.
    pub(super) kind: &'static str,
    /// Each with what it is a result of.
    pub(super) results: Vec<(String, KeptResult)>,
}

/// The results of a kind, by what each is a result of.
pub(super) fn read_kept_results(
    connection: &Connection,
    kind: &str,
) -> rusqlite::Result<HashMap<String, KeptResult>> {
    let mut statement = connection.prepare("SELECT subject, basis, body FROM result WHERE kind = ?")?;
    let rows = statement
        .query_map([kind], |row| Ok((row.get(0)?, KeptResult { basis: row.get(1)?, body: row.get(2)? })))?;
    rows.collect()
}

/// Writes rows, and removes the oldest where they are too many.
pub(super) fn write_results(transaction: &Transaction<'_>, changes: &ResultChanges) -> rusqlite::Result<()> {
    if changes.results.is_empty() {
        return Ok(());
    }
    let mut statement = transaction.prepare(
        "INSERT OR REPLACE INTO result (kind, subject, kept_at, basis, body) VALUES (?, ?, ?, ?, ?)",
    )?;
    let now = now();
    for (subject, KeptResult { basis, body }) in &changes.results {
        statement.execute(params![changes.kind, subject, now, basis, body])?;
    }
    let mut prune = transaction.prepare(
        "DELETE FROM result WHERE kind = ?1 AND kept_at < \
         (SELECT kept_at FROM result WHERE kind = ?1 ORDER BY kept_at DESC LIMIT 1 OFFSET ?2)",
    )?;
    prune.execute(params![changes.kind, MOST_RESULTS]).map(drop)
}
