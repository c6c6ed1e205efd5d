//! A machine's facts as flat keys with the path each was read from, and what differs between
//! two machines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Scalar;
use crate::fact_table::{self, FactKey, FactVolatility, fact_spec};

/// One fact and where it was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// The value; sizes in bytes, times in nanoseconds.
    pub value: Scalar,
    /// The file or command it came from.
    pub source: String,
}

/// All facts of one target by their keys, which [`fact_table`] declares: `cpu.model`, `memory.total`, `thp.enabled`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Facts(BTreeMap<String, Fact>);

impl Facts {
    /// Names that expressions may use, and the fact behind each.
    pub const VARIABLES: &[(&str, FactKey)] = &[
        ("cpus", fact_table::CPU_ONLINE),
        ("cores", fact_table::CPU_CORES),
        ("threads_per_core", fact_table::CPU_THREADS_PER_CORE),
        ("sockets", fact_table::CPU_SOCKETS),
        ("llcs", fact_table::CPU_LLCS),
        ("llc_size", fact_table::CPU_LLC_SIZE),
        ("numa_nodes", fact_table::NUMA_NODES),
        ("memory", fact_table::MEMORY_TOTAL),
        ("available", fact_table::MEMORY_AVAILABLE),
        ("swap", fact_table::MEMORY_SWAP),
        ("page_size", fact_table::MEMORY_PAGE_SIZE),
        ("huge_page", fact_table::MEMORY_HUGE_PAGE_SIZE),
    ];

    /// Records one fact.
    pub fn add(&mut self, key: FactKey, value: impl Into<Scalar>, source: &str) {
        self.0.insert(key.into_stored(), Fact { value: value.into(), source: source.into() });
    }

    /// The value of `key`.
    pub fn value(&self, key: &FactKey) -> Option<&Scalar> {
        self.stored(key.as_str()).map(|fact| &fact.value)
    }

    /// The value of `key` as people and tools read it; empty where it is not known.
    pub fn text(&self, key: &FactKey) -> String {
        self.value(key).map(ToString::to_string).unwrap_or_default()
    }

    /// The value of `key` as a whole number.
    pub fn integer(&self, key: &FactKey) -> Option<i64> {
        match self.value(key) {
            Some(Scalar::Int(n)) => Some(*n),
            _ => None,
        }
    }

    /// The fact whose key was read from another record.
    pub fn stored(&self, key: &str) -> Option<&Fact> {
        self.0.get(key)
    }

    /// All facts with their keys, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Fact)> {
        self.0.iter().map(|(key, fact)| (key.as_str(), fact))
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What expressions may use, as far as it is known ([`Facts::VARIABLES`]); sizes in bytes.
    pub fn expression_names(&self) -> BTreeMap<String, Scalar> {
        let known = Self::VARIABLES.iter();
        let known = known.filter_map(|(name, key)| Some(((*name).into(), self.value(key)?.clone())));
        known.collect()
    }

    /// Keys whose values differ, each with (ours, theirs); facts that vary by themselves are left out.
    pub fn changes_to<'a>(&'a self, other: &'a Facts) -> Vec<FactChange<'a>> {
        self.all_changes_to(other).into_iter().filter(|difference| !difference.is_volatile()).collect()
    }

    /// The same with facts that vary by themselves, such as the load, which explain something where they varied a lot.
    pub fn all_changes_to<'a>(&'a self, other: &'a Facts) -> Vec<FactChange<'a>> {
        let keys: std::collections::BTreeSet<&str> =
            self.0.keys().chain(other.0.keys()).map(String::as_str).collect();
        let value = |facts: &'a Facts, key| facts.stored(key).map(|fact| &fact.value);
        let pair = |key| FactChange { key, ours: value(self, key), theirs: value(other, key) };
        keys.into_iter().map(pair).filter(|pair| pair.ours != pair.theirs).collect()
    }
}

impl IntoIterator for Facts {
    type Item = (String, Fact);
    type IntoIter = std::collections::btree_map::IntoIter<String, Fact>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Facts as an agent reports them or a record has them.
impl FromIterator<(String, Fact)> for Facts {
    fn from_iter<T: IntoIterator<Item = (String, Fact)>>(stored: T) -> Self {
        Facts(stored.into_iter().collect())
    }
}

impl Extend<(String, Fact)> for Facts {
    fn extend<T: IntoIterator<Item = (String, Fact)>>(&mut self, stored: T) {
        self.0.extend(stored);
    }
}

/// One fact that is not the same on two sides.
#[derive(Debug, Clone, PartialEq)]
pub struct FactChange<'a> {
    /// The fact's key.
    pub key: &'a str,
    /// Its value on this side, if known here.
    pub ours: Option<&'a Scalar>,
    /// Its value on the other side.
    pub theirs: Option<&'a Scalar>,
}

impl FactChange<'_> {
    /// Whether the fact varies by itself from run to run.
    pub fn is_volatile(&self) -> bool {
        fact_spec(self.key).volatility == FactVolatility::Varies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_leave_out_what_varies_by_itself() {
        let (mut a, mut b) = (Facts::default(), Facts::default());
        a.add(fact_table::KERNEL_RELEASE, "6.1", "uname");
        b.add(fact_table::KERNEL_RELEASE, "6.18", "uname");
        a.add(fact_table::LOAD_1, 1_i64, "/proc/loadavg");
        b.add(fact_table::LOAD_1, 2_i64, "/proc/loadavg");
        b.add(fact_table::THP_ENABLED, "always", "sysfs");
        let keys: Vec<&str> = a.changes_to(&b).iter().map(|d| d.key).collect();
        assert_eq!(keys, ["kernel.release", "thp.enabled"]);
    }
}
