//! Owns which facts differ between the sides and how likely each explains a change. It refuses to blame: it ranks.

use perflab_model::RunRecord;
use serde::Serialize;

/// A fact that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactDifference {
    /// The fact's key.
    pub key: String,
    /// Name of the candidate side.
    pub candidate_name: String,
    /// Its value on the baseline, as text; absent where not known there.
    pub baseline: Option<String>,
    /// Its value on the candidate, as text; absent where not known there.
    pub candidate: Option<String>,
    /// Whether it is of a kind that often changes results.
    pub important: bool,
}

/// Kinds of facts that often change results, the likeliest first.
const IMPORTANT: &[&str] = &["kernel.", "cpu.", "mitigations.", "thp.", "sysctl."];

/// The rank of a fact: its place in [`IMPORTANT`], or behind.
fn rank(key: &str) -> usize {
    IMPORTANT.iter().position(|prefix| key.starts_with(prefix)).unwrap_or(IMPORTANT.len())
}

/// Facts that differ between the first run of the baseline and any run of a candidate, the likely causes first.
pub(crate) fn differences(
    baseline: &[RunRecord],
    name: &str,
    candidate: &[RunRecord],
) -> Vec<FactDifference> {
    let Some(first) = baseline.first() else { return Vec::new() };
    let mut found: Vec<FactDifference> = Vec::new();
    for difference in candidate.iter().flat_map(|run| between(first, name, run)) {
        if !found.iter().any(|known| known.key == difference.key) {
            found.push(difference);
        }
    }
    found.sort_by_key(|difference| rank(&difference.key));
    found
}

/// Facts that differ between two runs, the likely causes first.
pub(crate) fn between(baseline: &RunRecord, name: &str, candidate: &RunRecord) -> Vec<FactDifference> {
    let all = baseline.manifest.facts.differences(&candidate.manifest.facts);
    let mut found: Vec<FactDifference> = all
        .into_iter()
        .map(|difference| FactDifference {
            key: difference.key.into(),
            candidate_name: name.into(),
            baseline: difference.ours.map(ToString::to_string),
            candidate: difference.theirs.map(ToString::to_string),
            important: rank(difference.key) < IMPORTANT.len(),
        })
        .collect();
    found.sort_by_key(|difference| rank(&difference.key));
    found
}
