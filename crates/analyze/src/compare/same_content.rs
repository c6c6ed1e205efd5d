//! Runs that were imported from the very same files, or from files with the very same values, are one measurement: on one side they count once, and two sides that
//! share one are not different there.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use perflab_model::{RunRecord, fact_table};

use crate::compare::diagnostic::ComparisonDiagnostic;
use crate::compare::options::ComparisonSide;

/// Fewest different values that no two measurements have by chance, in this many digits at least.
const FEWEST_VALUES: usize = 5;
const FEWEST_DIGITS: usize = 6;

/// So many values show whether they are such.
const LOOKED_AT: usize = 64;

/// By what the content of an imported run is known again: the files that it was made of, and its values, which a file has however it
/// is written.
fn content_keys(run: &RunRecord) -> Vec<String> {
    let hash = run.manifest.content_hash();
    let is_imported = run.manifest.facts.value(&fact_table::IMPORT_KIND).is_some();
    let is_telling = |value: &f64| {
        format!("{:e}", value.abs()).bytes().take_while(|byte| *byte != b'e').count() > FEWEST_DIGITS
    };
    let values = run.samples.iter().take(LOOKED_AT).map(|sample| sample.value).filter(is_telling);
    let telling: HashSet<u64> = values.map(f64::to_bits).collect();
    let are_telling = is_imported && telling.len() >= FEWEST_VALUES;
    let values = are_telling.then(|| {
        let mut hasher = DefaultHasher::new();
        for sample in &run.samples {
            (sample.case, sample.boot, sample.value.to_bits()).hash(&mut hasher);
        }
        format!("{} values {:016x}", run.samples.len(), hasher.finish())
    });
    hash.into_iter().chain(values).collect()
}

/// The side with one run of each content, the first; nothing where all contents differ.
fn count_content_once(
    side: &ComparisonSide,
    contents: &[Vec<String>],
) -> Option<(ComparisonSide, Vec<ComparisonDiagnostic>)> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut left_out: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, contents) in contents.iter().enumerate() {
        let known = contents.iter().find_map(|content| first.get(content.as_str()).copied());
        let counted = known.unwrap_or(at);
        for content in contents {
            first.entry(content).or_insert(counted);
        }
        if counted < at {
            left_out.entry(counted).or_default().push(at);
        }
    }
    if left_out.is_empty() {
        return None;
    }
    let id = |at: usize| side.runs.get(at).map_or(String::new(), |run| run.manifest.id.clone());
    let mut counted: Vec<usize> = left_out.keys().copied().collect();
    counted.sort_unstable();
    let found = counted.iter().map(|at| ComparisonDiagnostic::CountedOnce {
        side: side.name.clone(),
        run: id(*at),
        left_out: left_out.get(at).into_iter().flatten().map(|at| id(*at)).collect(),
    });
    let found = found.collect();
    let is_counted = |at: usize| !left_out.values().flatten().any(|left_out| *left_out == at);
    let runs = side.runs.iter().enumerate().filter(|(at, _)| is_counted(*at)).map(|(_, run)| run.clone());
    Some((ComparisonSide { name: side.name.clone(), runs: runs.collect() }, found))
}

/// The sides with one run of each content, and what was left out or is on both sides.
pub(crate) fn count_contents_once<'a>(
    baseline: &'a ComparisonSide,
    candidates: &'a [ComparisonSide],
) -> (Vec<Cow<'a, ComparisonSide>>, Vec<ComparisonDiagnostic>) {
    let (mut sides, mut found) = (Vec::with_capacity(candidates.len() + 1), Vec::new());
    let contents_of = |side: &ComparisonSide| side.runs.iter().map(content_keys).collect::<Vec<_>>();
    let of_baseline = contents_of(baseline);
    let of_candidates: Vec<Vec<Vec<String>>> = candidates.iter().map(contents_of).collect();
    let all =
        std::iter::once(baseline).chain(candidates).zip([&of_baseline].into_iter().chain(&of_candidates));
    for (side, contents) in all {
        match count_content_once(side, contents) {
            Some((counted, left_out)) => {
                sides.push(Cow::Owned(counted));
                found.extend(left_out);
            }
            None => sides.push(Cow::Borrowed(side)),
        }
    }
    let known: HashSet<&str> = of_baseline.iter().flatten().map(String::as_str).collect();
    let candidates = candidates.iter().zip(&of_candidates);
    found.extend(candidates.filter_map(|candidate| same_content_diagnostic(baseline, &known, candidate)));
    (sides, found)
}

/// Whether the candidate has a run of a content that the baseline has, or the very run.
fn same_content_diagnostic(
    baseline: &ComparisonSide,
    known: &HashSet<&str>,
    (candidate, contents): (&ComparisonSide, &Vec<Vec<String>>),
) -> Option<ComparisonDiagnostic> {
    let is_shared = |run: &RunRecord, contents: &[String]| {
        baseline.runs.iter().any(|ours| ours.manifest.id == run.manifest.id)
            || contents.iter().any(|content| known.contains(content.as_str()))
    };
    let shared = candidate.runs.iter().zip(contents).filter(|(run, contents)| is_shared(run, contents));
    let runs: Vec<String> = shared.map(|(run, _)| run.manifest.id.clone()).collect();
    (!runs.is_empty()).then(|| ComparisonDiagnostic::SameContent {
        baseline: baseline.name.clone(),
        candidate: candidate.name.clone(),
        runs,
    })
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::RunBuilder;

    use super::*;

    fn side(name: &str, contents: &[&str]) -> ComparisonSide {
        let run = |(at, content): (usize, &&str)| {
            let mut run = RunBuilder::new(&format!("{name}{at}")).build_run(|_| Some(1.0));
            if !content.is_empty() {
                run.manifest.facts.add(fact_table::IMPORT_SHA256, *content, "the files");
            }
            run
        };
        ComparisonSide { name: name.into(), runs: contents.iter().enumerate().map(run).collect() }
    }

    #[test]
    fn runs_of_the_same_files_count_once() {
        let (a, b) =
            (side("a", &["x", "y", "x", "", "", "x", "y"]), [side("b", &["z"]), side("c", &["", "y"])]);
        let (sides, found) = count_contents_once(&a, &b);
        let ids = |side: &ComparisonSide| -> Vec<String> {
            side.runs.iter().map(|run| run.manifest.id.clone()).collect()
        };
        assert_eq!(ids(&sides[0]), ["a0", "a1", "a3", "a4"]);
        assert_eq!((ids(&sides[1]).len(), ids(&sides[2]).len()), (1, 2));
        let once = |run: &str, left_out: &[&str]| ComparisonDiagnostic::CountedOnce {
            side: "a".into(),
            run: run.into(),
            left_out: left_out.iter().map(|id| (*id).to_owned()).collect(),
        };
        let shared = ComparisonDiagnostic::SameContent {
            baseline: "a".into(),
            candidate: "c".into(),
            runs: vec!["c1".into()],
        };
        assert_eq!(found, [once("a0", &["a2", "a5"]), once("a1", &["a6"]), shared]);
    }

    /// A file that was written again, with other white space, has another hash.
    #[test]
    fn runs_of_the_same_values_count_once() {
        let run = |name: &str, scale: f64, digits: i32| {
            let power = 10_f64.powi(digits);
            let value =
                |iteration: u32| ((f64::from(iteration) + 1.0).sqrt() * scale * power).round() / power;
            let mut run = RunBuilder::new(name).build_run(|at| Some(value(at.iteration)));
            run.manifest.facts.add(fact_table::IMPORT_KIND, "hyperfine", "the file");
            run.manifest.facts.add(fact_table::IMPORT_SHA256, name, "the file");
            run
        };
        let count = |digits: i32| {
            let runs = [("a", 1.0), ("b", 1.0), ("c", 1.1), ("d", 1.1)];
            let runs = runs.map(|(name, scale)| run(name, scale, digits)).to_vec();
            let side = ComparisonSide { name: "side".into(), runs };
            let (sides, found) = count_contents_once(&side, &[]);
            (sides[0].runs.len(), found.len())
        };
        assert_eq!(count(9), (2, 2));
        // Coarse values are equal by chance.
        assert_eq!(count(1), (4, 0));
    }
}
