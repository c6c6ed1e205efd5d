//! Where the processes of a workload may run and take memory from: the levels of a factor of kind `placement`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error_class::{Classify, ErrorClass};

/// Some of this machine's CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CpuPlacement {
    /// all that there are
    #[default]
    Any,
    /// one
    OneCpu,
    /// the threads of one core, two at least
    Siblings,
    /// one thread of every core
    OnePerCore,
    /// all that share one last-level cache
    SameCache,
    /// one of each last-level cache, two at least
    CrossCache,
    /// all of one node of memory
    SameNode,
    /// one of each node, two at least
    CrossNode,
    /// these, by their numbers, in ascending order
    Listed(Vec<u32>),
}

/// Which nodes memory is taken from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum MemoryPlacement {
    /// the kernel's own choice
    #[default]
    Default,
    /// that of the CPU which asks for it
    Local,
    /// all in turn
    Interleave,
    /// these and no other
    Bind(Vec<u32>),
    /// this one as long as it has some
    Preferred(u32),
}

/// A placement, as a level says it: `same-cache`, `cpus=0-3 memory=bind:0`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Placement {
    /// where it runs
    pub cpus: CpuPlacement,
    /// where its memory is
    pub memory: MemoryPlacement,
}

/// Why a text is no placement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no placement: {reason}")]
pub struct PlacementError {
    /// the text
    pub text: String,
    /// what is wrong with it
    pub reason: String,
}

impl Classify for PlacementError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

impl PlacementError {
    /// What would be right.
    pub const HINT: &str = "any, one-cpu, siblings, one-per-core, same-cache, cross-cache, same-node, cross-node or \
                            cpus=0-3,8; for memory also memory=local, interleave, bind:0 or preferred:0";
}

/// The words for CPUs that take no list.
const CPU_WORDS: [(&str, CpuPlacement); 8] = [
    ("any", CpuPlacement::Any),
    ("one-cpu", CpuPlacement::OneCpu),
    ("siblings", CpuPlacement::Siblings),
    ("one-per-core", CpuPlacement::OnePerCore),
    ("same-cache", CpuPlacement::SameCache),
    ("cross-cache", CpuPlacement::CrossCache),
    ("same-node", CpuPlacement::SameNode),
    ("cross-node", CpuPlacement::CrossNode),
];

/// CPUs and nodes have smaller numbers.
const HIGHEST_NUMBER: u32 = 65_535;

impl Placement {
    /// Whether it leaves everything to the kernel.
    pub fn is_free(&self) -> bool {
        *self == Placement::default()
    }
}

impl FromStr for Placement {
    type Err = PlacementError;

    fn from_str(text: &str) -> Result<Self, PlacementError> {
        let refuse = |reason: String| PlacementError { text: text.to_owned(), reason };
        let mut found = Placement::default();
        let (mut has_cpus, mut has_memory) = (false, false);
        for word in text.split_whitespace() {
            let seen = if let Some(memory) = word.strip_prefix("memory=") {
                found.memory = parse_memory(memory).map_err(refuse)?;
                &mut has_memory
            } else {
                found.cpus = parse_cpus(word).map_err(refuse)?;
                &mut has_cpus
            };
            if std::mem::replace(seen, true) {
                return Err(refuse(format!("`{word}` is the second of its kind")));
            }
        }
        if has_cpus || has_memory { Ok(found) } else { Err(refuse("it is empty".into())) }
    }
}

fn parse_cpus(word: &str) -> Result<CpuPlacement, String> {
    if let Some(list) = word.strip_prefix("cpus=") {
        return parse_number_set(list).map(CpuPlacement::Listed);
    }
    let known = CPU_WORDS.into_iter().find(|(name, _)| *name == word);
    known.map(|(_, cpus)| cpus).ok_or_else(|| format!("`{word}` is not known"))
}

fn parse_memory(word: &str) -> Result<MemoryPlacement, String> {
    match word.split_once(':') {
        None if word == "local" => Ok(MemoryPlacement::Local),
        None if word == "interleave" => Ok(MemoryPlacement::Interleave),
        Some(("bind", nodes)) => parse_number_set(nodes).map(MemoryPlacement::Bind),
        Some(("preferred", node)) => match parse_number_set(node)?.as_slice() {
            [node] => Ok(MemoryPlacement::Preferred(*node)),
            _ => Err("`preferred` names one node".into()),
        },
        _ => Err(format!("`memory={word}` is not known")),
    }
}

/// The numbers of a list, each once, in ascending order.
fn parse_number_set(text: &str) -> Result<Vec<u32>, String> {
    let numbers: std::collections::BTreeSet<u32> = parse_number_list(text)?.into_iter().collect();
    Ok(numbers.into_iter().collect())
}

/// `0-3,8` as the kernel writes lists of CPUs and nodes; the numbers in the order in which they stand there.
pub fn parse_number_list(text: &str) -> Result<Vec<u32>, String> {
    let refuse = || format!("`{text}` is no list of numbers such as 0-3,8");
    let number = |digits: &str| digits.parse::<u32>().ok().filter(|number| *number <= HIGHEST_NUMBER);
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high) =
            number(low).zip(number(high)).filter(|(low, high)| low <= high).ok_or_else(refuse)?;
        numbers.extend(low..=high);
    }
    Ok(numbers)
}

/// `0-3,8`
fn format_number_list(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match parts.last_mut() {
            Some((_, high)) if *high + 1 == *number => *high = *number,
            _ => parts.push((*number, *number)),
        }
    }
    let part = |(low, high): &(u32, u32)| if low == high { low.to_string() } else { format!("{low}-{high}") };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cpus {
            CpuPlacement::Listed(cpus) => write!(f, "cpus={}", format_number_list(cpus))?,
            known => {
                let word = CPU_WORDS.iter().find(|(_, cpus)| cpus == known);
                f.write_str(word.map_or("any", |(word, _)| word))?;
            }
        }
        match &self.memory {
            MemoryPlacement::Default => Ok(()),
            MemoryPlacement::Local => f.write_str(" memory=local"),
            MemoryPlacement::Interleave => f.write_str(" memory=interleave"),
            MemoryPlacement::Bind(nodes) => write!(f, " memory=bind:{}", format_number_list(nodes)),
            MemoryPlacement::Preferred(node) => write!(f, " memory=preferred:{node}"),
        }
    }
}

impl TryFrom<String> for Placement {
    type Error = PlacementError;

    fn try_from(text: String) -> Result<Self, PlacementError> {
        text.parse()
    }
}

impl From<Placement> for String {
    fn from(placement: Placement) -> String {
        placement.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placements_print_as_they_are_read() {
        for text in [
            "any",
            "one-cpu",
            "cross-node memory=interleave",
            "cpus=0-3,8",
            "any memory=bind:0-1",
            "same-node memory=preferred:2",
            "siblings memory=local",
        ] {
            assert_eq!(text.parse::<Placement>().unwrap().to_string(), text);
        }
        assert_eq!("cpus=3,1,2,1".parse::<Placement>().unwrap().to_string(), "cpus=1-3");
        assert_eq!("memory=local".parse::<Placement>().unwrap().to_string(), "any memory=local");
        assert!("any".parse::<Placement>().unwrap().is_free());
    }

    #[test]
    fn what_is_no_placement_says_why() {
        let refusal = |text: &str| text.parse::<Placement>().unwrap_err().to_string();
        insta::assert_snapshot!(refusal("same-core"), @"`same-core` is no placement: `same-core` is not known");
        insta::assert_snapshot!(refusal(""), @"`` is no placement: it is empty");
        insta::assert_snapshot!(refusal("cpus=3-1"), @"`cpus=3-1` is no placement: `3-1` is no list of numbers such as 0-3,8");
        insta::assert_snapshot!(refusal("any one-cpu"), @"`any one-cpu` is no placement: `one-cpu` is the second of its kind");
        insta::assert_snapshot!(refusal("memory=preferred:0-1"), @"`memory=preferred:0-1` is no placement: `preferred` names one node");
        insta::assert_snapshot!(refusal("cpus=99999"), @"`cpus=99999` is no placement: `99999` is no list of numbers such as 0-3,8");
    }
}
