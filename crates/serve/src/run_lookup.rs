//! From what an address names to runs: looked up among the runs of the archive, never joined to a path, and nothing that
//! leads out of the archive.

use axum::http::StatusCode;
use perflab_archive::RunDir;

use crate::laboratory::WebLaboratory;
use crate::refusal::RequestRefusal;

/// The one run that `selector` names.
pub(crate) fn find_run(laboratory: &WebLaboratory, selector: &str) -> Result<RunDir, RequestRefusal> {
    let mut runs = find_runs(laboratory, selector)?;
    let count = runs.len();
    match (runs.pop(), count) {
        (Some(run), 1) => Ok(run),
        _ => Err(RequestRefusal::new(
            StatusCode::CONFLICT,
            format!("`{selector}` names {count} runs, and one is asked for: name it by its id"),
        )),
    }
}

/// The runs that `selector` names, at least one.
pub(crate) fn find_runs(laboratory: &WebLaboratory, selector: &str) -> Result<Vec<RunDir>, RequestRefusal> {
    laboratory.refuse_missing_archive()?;
    Ok(laboratory.archive.find_contained_runs(selector)?)
}

/// What a page of these runs is made from, in a text: another one once a run has changed.
pub(crate) fn runs_version(runs: &[RunDir]) -> Option<String> {
    runs.iter().map(|run| Some(format!("{} {}", run.id(), run.change_stamp()?))).collect()
}
