//! `perflab compare --all-studies`: every study that two labels share, one comparison a study.

use indexmap::IndexMap;
use perflab_analyze::{AnalysisOptions, Comparison, ComparisonSide, compare_sides};
use perflab_model::RunRecord;
use perflab_present::comparison::{
    ComparisonDocument, OutputFormat, StudyComparison, StudyComparisons, recipe_text, render_comparisons,
    studies_mail,
};
use serde::Serialize;

use crate::app::App;
use crate::failure::{Failure, UsageError};

/// Compares the runs of each study that both sides have.
///
/// # Errors
/// Not two sides; no study on both.
pub fn compare_shared_studies(
    sides: &[ComparisonSide],
    options: &AnalysisOptions,
) -> Result<StudyComparisons, UsageError> {
    let [baseline, candidate] = sides else {
        return Err(UsageError::new(
            "--all-studies compares two labels",
            "name the baseline and the candidate: perflab compare OLD NEW --all-studies",
        ));
    };
    let [ours, theirs] = [baseline, candidate].map(runs_by_study);
    let mut found = StudyComparisons {
        baseline: baseline.name.clone(),
        candidate: candidate.name.clone(),
        ..StudyComparisons::default()
    };
    for (study, runs) in &ours {
        let Some(others) = theirs.get(study) else {
            found.one_sided.push(((*study).to_owned(), baseline.name.clone()));
            continue;
        };
        let side = |of: &ComparisonSide, runs: &[&RunRecord]| ComparisonSide {
            name: of.name.clone(),
            runs: runs.iter().map(|run| (*run).clone()).collect(),
        };
        let outcome = compare_sides(&side(baseline, runs), &[side(candidate, others)], options);
        let outcome = outcome.map_err(|error| error.to_string());
        found.studies.push(StudyComparison { study: (*study).to_owned(), outcome });
    }
    let only_theirs = theirs.keys().filter(|study| !ours.contains_key(*study));
    found.one_sided.extend(only_theirs.map(|study| ((*study).to_owned(), candidate.name.clone())));
    if found.studies.is_empty() {
        let names = |of: &IndexMap<&str, Vec<&RunRecord>>| of.keys().copied().collect::<Vec<_>>().join(", ");
        return Err(UsageError::new(
            format!("`{}` and `{}` share no study", baseline.name, candidate.name),
            format!("`{}` has {}; `{}` has {}", baseline.name, names(&ours), candidate.name, names(&theirs)),
        ));
    }
    Ok(found)
}

/// The runs of each study, by its title, in their order.
fn runs_by_study(side: &ComparisonSide) -> IndexMap<&str, Vec<&RunRecord>> {
    let mut studies: IndexMap<&str, Vec<&RunRecord>> = IndexMap::new();
    for run in &side.runs {
        studies.entry(run.manifest.study.title.as_str()).or_default().push(run);
    }
    studies
}

/// A study as JSON.
#[derive(Serialize)]
struct StudyDocument<'a> {
    study: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<ComparisonDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> StudyDocument<'a> {
    fn from_study(study: &'a StudyComparison) -> Self {
        StudyDocument {
            study: &study.study,
            comparison: study.outcome.as_ref().ok().map(ComparisonDocument::new),
            reason: study.outcome.as_ref().err().map(String::as_str),
        }
    }
}

/// Prints them: the mail for people, a list of studies as JSON, the rows of all for the other formats.
pub fn print_studies(context: &App, found: &StudyComparisons) -> Result<(), Failure> {
    match context.format {
        OutputFormat::Table => context.print_text(&studies_mail(found)),
        OutputFormat::Mail => context.print_text(&(studies_mail(found) + &recipe_text(found.comparisons()))),
        OutputFormat::Json => {
            context.print_json(&found.studies.iter().map(StudyDocument::from_study).collect::<Vec<_>>())
        }
        format => {
            let all: Vec<Comparison> = found.comparisons().cloned().collect();
            context.print_text(&render_comparisons(&all, format, context.width, context.colour)?)
        }
    }
}
