//! What the runs of two sides have under one key: a fact, a key of the study, a part of a case. Every run of a side counts, not
//! the first alone, so that a label that mixes two things is seen whichever side it is on.

use indexmap::IndexMap;

/// So many values of a side are listed; of more, the first ones and how many others there are.
const MOST_LISTED: usize = 3;

/// The values of the runs of one side, each with the number of runs that have it; `None` is a run that has none.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct SideValues(IndexMap<Option<String>, usize>);

impl SideValues {
    fn add(&mut self, value: Option<String>) {
        *self.0.entry(value).or_default() += 1;
    }

    /// The value that all runs have, or each with its number of runs; none where no run has one.
    pub(crate) fn to_text(&self) -> Option<String> {
        if self.0.len() < 2 {
            return self.0.keys().next().cloned().flatten();
        }
        let listed = if self.0.len() > MOST_LISTED { MOST_LISTED - 1 } else { self.0.len() };
        let value = |(value, runs): (&Option<String>, &usize)| {
            let value = value.as_deref().unwrap_or("none");
            format!("{value} ({runs} {})", if *runs == 1 { "run" } else { "runs" })
        };
        let mut texts: Vec<String> = self.0.iter().take(listed).map(value).collect();
        if listed < self.0.len() {
            texts.push(format!("{} other values", self.0.len() - listed));
        }
        Some(texts.join(", "))
    }
}

/// What one run has, each value under its key.
pub(crate) type RunValues = Vec<(String, String)>;

/// The values of both sides, baseline first.
pub(crate) type SidePair = [SideValues; 2];

/// Counts what the runs have under every key, in the order in which the keys are first met; keys under which all runs of both
/// sides have one and the same value are left out. A run that lacks a key of which `absent_counts` says no tells nothing.
pub(crate) fn differing_keys(
    sides: [&[RunValues]; 2],
    absent_counts: impl Fn(&str) -> bool,
) -> Vec<(String, SidePair)> {
    let mut found: IndexMap<&str, SidePair> = IndexMap::new();
    for (key, _) in sides.iter().copied().flatten().flatten() {
        found.entry(key.as_str()).or_default();
    }
    for (at, runs) in sides.into_iter().enumerate() {
        for run in runs {
            let own: IndexMap<&str, &String> = run.iter().map(|(key, value)| (key.as_str(), value)).collect();
            for (key, pair) in &mut found {
                let value = own.get(*key).map(|value| (*value).clone());
                if let Some(side) = pair.get_mut(at).filter(|_| value.is_some() || absent_counts(key)) {
                    side.add(value);
                }
            }
        }
    }
    let differs = |pair: &SidePair| {
        let mut values = pair.iter().flat_map(|side| side.0.keys());
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    found.into_iter().filter(|(_, pair)| differs(pair)).map(|(key, pair)| (key.to_owned(), pair)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(all: &[&[(&str, &str)]]) -> Vec<RunValues> {
        let own =
            |one: &&[(&str, &str)]| one.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        all.iter().map(own).collect()
    }

    fn texts(found: Vec<(String, SidePair)>) -> Vec<(String, [Option<String>; 2])> {
        found.into_iter().map(|(key, pair)| (key, pair.map(|side| side.to_text()))).collect()
    }

    #[test]
    fn every_run_of_a_side_counts() {
        let mixed = runs(&[&[("a", "1"), ("b", "x")], &[("a", "2"), ("b", "x")], &[("a", "2"), ("b", "x")]]);
        let plain = runs(&[&[("a", "1"), ("b", "x")]]);
        let mixed_text = Some("1 (1 run), 2 (2 runs)".to_owned());
        let one = Some("1".to_owned());
        let expected = |pair: [&Option<String>; 2]| vec![("a".to_owned(), pair.map(Clone::clone))];
        assert_eq!(texts(differing_keys([&plain, &mixed], |_| true)), expected([&one, &mixed_text]));
        assert_eq!(texts(differing_keys([&mixed, &plain], |_| true)), expected([&mixed_text, &one]));
        assert_eq!(differing_keys([&plain, &plain], |_| true), []);
    }

    #[test]
    fn a_run_without_a_key_counts_where_that_tells_something() {
        let (with, without) = (runs(&[&[("a", "1")]]), runs(&[&[]]));
        assert_eq!(differing_keys([&with, &without], |_| false), []);
        assert_eq!(
            texts(differing_keys([&with, &without], |_| true)),
            [("a".to_owned(), [Some("1".to_owned()), None])]
        );
    }

    #[test]
    fn of_many_values_the_first_are_listed() {
        let many = runs(&[&[("a", "1")], &[("a", "2")], &[("a", "3")], &[("a", "4")]]);
        let found = texts(differing_keys([&many, &many], |_| true));
        assert_eq!(found[0].1[0].as_deref(), Some("1 (1 run), 2 (1 run), 2 other values"));
    }
}
