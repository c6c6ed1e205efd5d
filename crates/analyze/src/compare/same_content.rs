//! Runs that were imported from the very same files are one measurement: on one side they count once, and two sides that
//! share one are not different there.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::compare::diagnostic::ComparisonDiagnostic;
use crate::compare::options::ComparisonSide;

/// The side with one run of each content, the first; nothing where all contents differ.
fn count_content_once(side: &ComparisonSide) -> Option<(ComparisonSide, Vec<ComparisonDiagnostic>)> {
    let mut first: HashMap<String, usize> = HashMap::new();
    let mut left_out: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, run) in side.runs.iter().enumerate() {
        let Some(content) = run.manifest.content_hash() else { continue };
        let counted = *first.entry(content).or_insert(at);
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
    for side in std::iter::once(baseline).chain(candidates) {
        match count_content_once(side) {
            Some((counted, left_out)) => {
                sides.push(Cow::Owned(counted));
                found.extend(left_out);
            }
            None => sides.push(Cow::Borrowed(side)),
        }
    }
    found.extend(candidates.iter().filter_map(|candidate| same_content_diagnostic(baseline, candidate)));
    (sides, found)
}

/// Whether the candidate has a run that was made of the same files as one of the baseline.
fn same_content_diagnostic(
    baseline: &ComparisonSide,
    candidate: &ComparisonSide,
) -> Option<ComparisonDiagnostic> {
    let contents: Vec<String> = baseline.runs.iter().filter_map(|run| run.manifest.content_hash()).collect();
    let is_shared = |hash: Option<String>| hash.is_some_and(|hash| contents.contains(&hash));
    let shared = candidate.runs.iter().filter(|run| is_shared(run.manifest.content_hash()));
    let runs: Vec<String> = shared.map(|run| run.manifest.id.clone()).collect();
    (!runs.is_empty()).then(|| ComparisonDiagnostic::SameContent {
        baseline: baseline.name.clone(),
        candidate: candidate.name.clone(),
        runs,
    })
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::RunBuilder;
    use perflab_model::fact_table;

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
}
