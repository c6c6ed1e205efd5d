//! A machine's facts as flat keys with the path each was read from, and what differs between
//! two machines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Scalar;
use crate::fact_table::{FactVolatility, fact_spec};

/// One fact and where it was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// The value; sizes in bytes, times in nanoseconds.
    pub value: Scalar,
    /// The file or command it came from.
    pub source: String,
}

/// All facts of one target, by dotted key: `cpu.model`, `memory.total`, `thp.enabled`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Facts(pub BTreeMap<String, Fact>);

impl Facts {
    /// Names that expressions may use, and the fact behind each.
    pub const VARIABLES: &[(&str, &str)] = &[
        ("cpus", "cpu.online"),
        ("cores", "cpu.cores"),
        ("memory", "memory.total"),
        ("numa_nodes", "numa.nodes"),
        ("page_size", "memory.page_size"),
    ];

    /// Records one fact.
    pub fn add(&mut self, key: &str, value: impl Into<Scalar>, source: &str) {
        self.0.insert(key.into(), Fact { value: value.into(), source: source.into() });
    }

    /// The value of `key`.
    pub fn value(&self, key: &str) -> Option<&Scalar> {
        self.0.get(key).map(|fact| &fact.value)
    }

    /// The value of `key` as a whole number.
    pub fn integer(&self, key: &str) -> Option<i64> {
        match self.value(key) {
            Some(Scalar::Int(n)) => Some(*n),
            _ => None,
        }
    }

    /// What expressions may use: `cpus`, `cores`, `memory` (bytes), `numa_nodes`, `page_size` (bytes).
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
        let pair = |key| FactChange { key, ours: self.value(key), theirs: other.value(key) };
        keys.into_iter().map(pair).filter(|pair| pair.ours != pair.theirs).collect()
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
        a.add("kernel.release", "6.1", "uname");
        b.add("kernel.release", "6.18", "uname");
        a.add("load.1", 1_i64, "/proc/loadavg");
        b.add("load.1", 2_i64, "/proc/loadavg");
        b.add("thp.enabled", "always", "sysfs");
        let keys: Vec<&str> = a.changes_to(&b).iter().map(|d| d.key).collect();
        assert_eq!(keys, ["kernel.release", "thp.enabled"]);
    }
}
