//! Facts of all runs side by side: those that differ are seen first, all on demand.

use std::collections::BTreeSet;

use perflab_model::{Bytes, Facts, Scalar};
use serde::Serialize;

use crate::section::ReportRun;

/// The table of facts: a row a key, a column a run.
#[derive(Debug, Serialize)]
pub(crate) struct FactsTable {
    differing: Vec<FactsRow>,
    equal: Vec<FactsRow>,
}

#[derive(Debug, Serialize)]
struct FactsRow {
    key: String,
    source: String,
    values: Vec<String>,
}

/// All facts of the runs.
pub(crate) fn facts_table(runs: &[ReportRun]) -> FactsTable {
    let facts: Vec<&Facts> = runs.iter().map(|run| &run.record.manifest.facts).collect();
    let keys: BTreeSet<&str> = facts.iter().flat_map(|facts| facts.0.keys()).map(String::as_str).collect();
    let differ = differing_keys(&facts);
    let (differing, equal) = keys.into_iter().partition::<Vec<&str>, _>(|key| differ.contains(key));
    let lines = |keys: Vec<&str>| keys.into_iter().map(|key| facts_row(key, &facts)).collect();
    FactsTable { differing: lines(differing), equal: lines(equal) }
}

/// Keys that differ from the first run's, without those that vary by themselves.
fn differing_keys<'a>(facts: &[&'a Facts]) -> BTreeSet<&'a str> {
    let Some((first, others)) = facts.split_first() else { return BTreeSet::new() };
    others.iter().flat_map(|other| first.changes_to(other)).map(|difference| difference.key).collect()
}

fn facts_row(key: &str, facts: &[&Facts]) -> FactsRow {
    let source = facts.iter().find_map(|facts| facts.0.get(key)).map(|fact| fact.source.clone());
    let value =
        |facts: &&Facts| facts.value(key).map_or_else(|| "–".into(), |value| fact_value_text(key, value));
    FactsRow {
        key: key.into(),
        source: source.unwrap_or_default(),
        values: facts.iter().map(value).collect(),
    }
}

/// Families of facts that are sizes in bytes.
const SIZES: &[&str] = &["memory.", "cpu.cache."];

/// Sizes are stored in bytes; people read them scaled.
fn fact_value_text(key: &str, value: &Scalar) -> String {
    match value {
        Scalar::Int(bytes) if SIZES.iter().any(|prefix| key.starts_with(prefix)) && *bytes >= 1024 => {
            format!("{} ({bytes})", Bytes(bytes.unsigned_abs()))
        }
        other => other.to_string(),
    }
}
