//! What histories are made of: the manifest of each run without its slots, and its samples.
//!
//! Most of a manifest is the same in the runs of a study on a machine. It is stored in parts, and a part that several
//! runs share is stored once: the plan, and the facts that do not vary by themselves. They are JSON, which SQL can look
//! into.

use std::collections::HashMap;
use std::rc::Rc;

use perflab_files::sha256_hex;
use perflab_model::fact_table::{FactVolatility, fact_spec};
use perflab_model::run::ClockAnchor;
use perflab_model::{Facts, Manifest, Overhead, RunPlan, RunRecord, RunStatus, TargetRecord};
use rusqlite::{Connection, OptionalExtension as _, Statement, Transaction, params};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::sample_blob::{MOST_SAMPLES, decode_samples, encode_samples};

/// A row of the table `record`, with the documents that it refers to.
#[derive(Debug, Clone)]
pub(super) struct StoredRecord {
    run: String,
    stamp: Vec<u8>,
    read_at: i64,
    plan: String,
    facts: String,
    own: String,
    samples: Vec<u8>,
}

/// What hardly any two manifests share.
#[derive(Serialize, Deserialize)]
struct OwnPart {
    id: String,
    label: Option<String>,
    boot_id: String,
    anchor: ClockAnchor,
    seed: u64,
    status: RunStatus,
    overhead: Overhead,
    targets: Vec<TargetRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    continues: Option<String>,
    /// Facts that vary by themselves.
    facts: Facts,
}

/// Leaves of a record what the index stores: the manifest without slots, and the samples without times.
pub(super) fn condense_record(mut record: RunRecord) -> RunRecord {
    record.manifest.plan.slots = Vec::new();
    for sample in &mut record.samples {
        (sample.start, sample.end) = Default::default();
    }
    let RunRecord { manifest, samples, .. } = record;
    RunRecord { samples, ..RunRecord::new(manifest) }
}

impl StoredRecord {
    /// The row of a condensed record that was read at `read_at`; `None` where it is too long to be stored.
    pub(super) fn from_record(record: &RunRecord, run: &str, stamp: &[u8], read_at: i64) -> Option<Self> {
        if record.samples.len() > MOST_SAMPLES {
            return None;
        }
        let manifest = record.manifest.clone();
        let (varying, lasting): (Facts, Facts) = manifest
            .facts
            .into_iter()
            .partition(|(key, _)| fact_spec(key).volatility == FactVolatility::Varies);
        let own = OwnPart {
            id: manifest.id,
            label: manifest.label,
            boot_id: manifest.boot_id,
            anchor: manifest.anchor,
            seed: manifest.plan.seed,
            status: manifest.status,
            overhead: manifest.overhead,
            targets: manifest.targets,
            continues: manifest.continues,
            facts: varying,
        };
        let shared = Manifest {
            id: String::new(),
            label: None,
            boot_id: String::new(),
            anchor: ClockAnchor::default(),
            status: RunStatus::Finished,
            overhead: Overhead::default(),
            targets: Vec::new(),
            variants: Vec::new(),
            duet: None,
            continues: None,
            facts: Facts::default(),
            plan: RunPlan { seed: 0, ..manifest.plan },
            ..record.manifest.clone()
        };
        Some(StoredRecord {
            run: run.into(),
            stamp: stamp.into(),
            read_at,
            plan: serde_json::to_string(&shared).ok()?,
            facts: serde_json::to_string(&lasting).ok()?,
            own: serde_json::to_string(&own).ok()?,
            samples: encode_samples(&record.samples),
        })
    }
}

/// Writes rows, in the place of older ones of the same runs.
pub(super) fn write_records(transaction: &Transaction<'_>, rows: &[StoredRecord]) -> rusqlite::Result<()> {
    let mut known = transaction.prepare("SELECT number FROM document WHERE hash = ?")?;
    let mut add = transaction.prepare("INSERT INTO document (hash, body) VALUES (?, ?)")?;
    let mut document = |body: &str| -> rusqlite::Result<i64> {
        // Reading what is in memory does not fail.
        let hash = sha256_hex(&mut body.as_bytes()).unwrap_or_default();
        match known.query_row([&hash], |row| row.get(0)).optional()? {
            Some(number) => Ok(number),
            None => add.insert([hash.as_str(), body]),
        }
    };
    let mut write = transaction.prepare(
        "INSERT OR REPLACE INTO record (run, stamp, read_at, plan, facts, own, samples) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )?;
    for row in rows {
        let (plan, facts) = (document(&row.plan)?, document(&row.facts)?);
        write.execute(params![row.run, row.stamp, row.read_at, plan, facts, row.own, row.samples])?;
    }
    Ok(())
}

/// Removes the rows of runs. Documents that nobody refers to any more go when the index is made anew.
pub(super) fn remove_records(transaction: &Transaction<'_>, runs: &[String]) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare("DELETE FROM record WHERE run = ?")?;
    runs.iter().try_for_each(|run| statement.execute([run]).map(drop))
}

/// Reads records one by one, and each document once.
pub(super) struct RecordReader<'c> {
    rows: Statement<'c>,
    documents: Statement<'c>,
    plans: HashMap<i64, Rc<Manifest>>,
    facts: HashMap<i64, Rc<Facts>>,
}

impl<'c> RecordReader<'c> {
    pub(super) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(RecordReader {
            rows: connection
                .prepare("SELECT stamp, read_at, plan, facts, own, samples FROM record WHERE run = ?")?,
            documents: connection.prepare("SELECT body FROM document WHERE number = ?")?,
            plans: HashMap::new(),
            facts: HashMap::new(),
        })
    }

    /// The condensed record of `run`, if its row `is_current`, which is asked with the row's stamp and time; `None` where it
    /// has none, or one that makes no sense.
    pub(super) fn read(
        &mut self,
        run: &str,
        is_current: impl Fn(&[u8], i64) -> bool,
    ) -> rusqlite::Result<Option<RunRecord>> {
        let mut rows = self.rows.query([run])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let stamp = row.get_ref(0)?.as_blob()?;
        if !is_current(stamp, row.get(1)?) {
            return Ok(None);
        }
        let plan = read_document(&mut self.documents, &mut self.plans, row.get(2)?)?;
        let facts = read_document(&mut self.documents, &mut self.facts, row.get(3)?)?;
        let own: Option<OwnPart> = serde_json::from_str(row.get_ref(4)?.as_str()?).ok();
        let samples = decode_samples(row.get_ref(5)?.as_blob()?);
        let (Some(plan), Some(facts), Some(own), Some(samples)) = (plan, facts, own, samples) else {
            return Ok(None);
        };
        let mut all_facts = Facts::clone(&facts);
        all_facts.extend(own.facts);
        let manifest = Manifest {
            id: own.id,
            label: own.label,
            boot_id: own.boot_id,
            anchor: own.anchor,
            status: own.status,
            overhead: own.overhead,
            targets: own.targets,
            continues: own.continues,
            facts: all_facts,
            plan: RunPlan { seed: own.seed, ..plan.plan.clone() },
            ..Manifest::clone(&plan)
        };
        Ok(Some(RunRecord { samples, ..RunRecord::new(manifest) }))
    }
}

fn read_document<T: DeserializeOwned>(
    documents: &mut Statement<'_>,
    known: &mut HashMap<i64, Rc<T>>,
    number: i64,
) -> rusqlite::Result<Option<Rc<T>>> {
    if let Some(known) = known.get(&number) {
        return Ok(Some(Rc::clone(known)));
    }
    let mut rows = documents.query([number])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let read: Option<Rc<T>> = serde_json::from_str(row.get_ref(0)?.as_str()?).ok().map(Rc::new);
    if let Some(read) = &read {
        known.insert(number, Rc::clone(read));
    }
    Ok(read)
}
