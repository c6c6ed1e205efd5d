//! What is made of runs by the functions behind `perflab report`, `compare` and `history`: pages, and comparisons as JSON.

use std::fmt::Write as _;

use axum::body::Bytes;
use perflab_analyze::Comparison;
use perflab_archive::RunDir;
use perflab_present::ReportData;
use perflab_present::comparison::ComparisonDocument;
use perflab_present::report::{SECTIONS, page_policy, render_report, render_run_matter};
use perflab_present::run_matter::{RUN_MATTERS, RunMatter};
use perflab_present::section::{PageLink, ReportError};

use crate::laboratory::WebLaboratory;
use crate::refusal::RequestRefusal;
use crate::result_source::HistoryRequest;
use crate::route::{RouteAnswer, RouteParameter, RouteParameterKind, RouteRequest, encode_query};
use crate::run_document::RUN_PARAMETER;
use crate::run_lookup::{find_run, find_runs, runs_version};

/// The two sides of a comparison.
pub(crate) const SIDE_PARAMETERS: &[RouteParameter] = &[SIDE_A, SIDE_B];

const SIDE_A: RouteParameter = RouteParameter::required(
    "a",
    RouteParameterKind::Text,
    "the baseline: the beginning of a run's id, a label (its runs are repetitions), or @latest",
);

const SIDE_B: RouteParameter =
    RouteParameter::required("b", RouteParameterKind::Text, "the candidate, named likewise");

/// What a comparison as JSON takes.
pub(crate) const COMPARE_PARAMETERS: &[RouteParameter] = &[
    SIDE_A,
    RouteParameter::optional(
        "b",
        RouteParameterKind::Text,
        "the candidate; without one, the levels of a factor of `a` are compared",
    ),
    RouteParameter::optional("by", RouteParameterKind::Text, "that factor, where `a` has several"),
];

/// Which runs of a study are looked at.
pub(crate) const HISTORY_FILTERS: [RouteParameter; 3] = [
    RouteParameter::optional("workload", RouteParameterKind::Texts, "only this workload (repeatable)"),
    RouteParameter::optional("label", RouteParameterKind::Text, "only runs with this label"),
    RouteParameter::optional("last", RouteParameterKind::Number, "only the latest runs, as many"),
];

/// What a history is made of.
pub(crate) const HISTORY_PARAMETERS: &[RouteParameter] = &[
    RouteParameter::optional("metric", RouteParameterKind::Texts, "only this metric (repeatable)"),
    RouteParameter::optional(
        "study",
        RouteParameterKind::Text,
        "only runs of this study, by its title or file",
    ),
    HISTORY_FILTERS[0],
    HISTORY_FILTERS[1],
    HISTORY_FILTERS[2],
];

/// `/runs/{id}`, where it is made already.
pub(crate) fn find_run_page(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<Option<RouteAnswer>, RequestRefusal> {
    let run = find_run(laboratory, request.path_part("id"))?;
    Ok(run_version(&[run]).and_then(|version| find_report(laboratory, &version)))
}

/// `/compare`, where it is made already.
pub(crate) fn find_comparison_page(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<Option<RouteAnswer>, RequestRefusal> {
    let sides = [request.required_text("a")?, request.required_text("b")?];
    let version = sides_version(laboratory, &sides)?;
    Ok(version.and_then(|version| find_report(laboratory, &version)))
}

/// `/runs/{id}`
pub(crate) fn send_run_page(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    let run = find_run(laboratory, request.path_part("id"))?;
    let id = run.id().to_owned();
    let links = vec![
        PageLink { text: "Runs".into(), address: "/".into() },
        PageLink { text: "Label and notes".into(), address: format!("/runs/{id}/notes") },
        PageLink { text: "As JSON".into(), address: format!("/api/v1/runs/{id}") },
    ];
    let links = links.into_iter().chain(matter_links(&id, None)).collect();
    send_report(laboratory, run_version(&[run]), links, || Ok(laboratory.source.report_data(&[id])?))
}

/// Links to the pages of a run's matters, but for the one that is shown.
fn matter_links(id: &str, shown: Option<&str>) -> impl Iterator<Item = PageLink> {
    let others = RUN_MATTERS.iter().filter(move |matter| Some(matter.name) != shown);
    let link = |matter: &RunMatter| PageLink {
        text: matter.title.into(),
        address: format!("/runs/{id}/{}", matter.name),
    };
    others.map(link).collect::<Vec<_>>().into_iter()
}

/// What a matter is named by.
pub(crate) const MATTER_PARAMETERS: &[RouteParameter] = &[
    RUN_PARAMETER,
    RouteParameter::required(
        "matter",
        RouteParameterKind::Path,
        "slab, operations, flame, io, guests, startups, timelines or kernels",
    ),
];

fn find_matter(request: &RouteRequest) -> Result<&'static RunMatter, RequestRefusal> {
    let name = request.path_part("matter");
    RUN_MATTERS.iter().find(|matter| matter.name == name).ok_or_else(|| {
        let names: Vec<&str> = RUN_MATTERS.iter().map(|matter| matter.name).collect();
        RequestRefusal::not_found(format!(
            "a run has no page `{name}`: there are notes, {}",
            names.join(", ")
        ))
    })
}

fn matter_version(matter: &RunMatter, run: &[RunDir]) -> Option<String> {
    runs_version(run).map(|version| format!("{} {version}", matter.name))
}

/// `/runs/{id}/{matter}`, where it is made already.
pub(crate) fn find_matter_page(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<Option<RouteAnswer>, RequestRefusal> {
    let matter = find_matter(request)?;
    let run = find_run(laboratory, request.path_part("id"))?;
    Ok(matter_version(matter, &[run]).and_then(|version| find_report(laboratory, &version)))
}

/// `/runs/{id}/{matter}`
pub(crate) fn send_matter_page(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    let matter = find_matter(request)?;
    let run = find_run(laboratory, request.path_part("id"))?;
    let id = run.id().to_owned();
    let links = [
        PageLink { text: "Runs".into(), address: "/".into() },
        PageLink { text: "The whole report".into(), address: format!("/runs/{id}") },
    ];
    let links = links.into_iter().chain(matter_links(&id, Some(matter.name))).collect();
    let data = || Ok(laboratory.source.run_data(&id)?);
    send_made_page(laboratory, matter_version(matter, &[run]), links, data, |data| {
        render_run_matter(data, matter)
    })
}

/// `/compare`
pub(crate) fn send_comparison_page(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    let sides = [request.required_text("a")?, request.required_text("b")?];
    let version = sides_version(laboratory, &sides)?;
    let [a, b] = sides.map(encode_query);
    let links = vec![
        PageLink { text: "Runs".into(), address: "/".into() },
        PageLink { text: "Other way round".into(), address: format!("/compare?a={b}&b={a}") },
        PageLink { text: "As JSON".into(), address: format!("/api/v1/compare?a={a}&b={b}") },
    ];
    let sides = sides.map(str::to_owned);
    send_report(laboratory, version, links, || Ok(laboratory.source.report_data(&sides)?))
}

/// `/api/v1/compare`
pub(crate) fn send_comparison(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    let sides: Vec<&str> = std::iter::once(request.required_text("a")?).chain(request.text("b")).collect();
    for side in &sides {
        find_runs(laboratory, side)?;
    }
    let sides: Vec<String> = sides.into_iter().map(str::to_owned).collect();
    let found: Comparison = laboratory.source.comparison(&sides, request.text("by"))?;
    RouteAnswer::json(&ComparisonDocument::new(&found))
}

/// Which runs and metrics are asked for.
pub(crate) fn history_request(request: &RouteRequest) -> Result<HistoryRequest, RequestRefusal> {
    let texts = |name| request.texts(name).map(str::to_owned).collect();
    Ok(HistoryRequest {
        metrics: texts("metric"),
        workloads: texts("workload"),
        label: request.text("label").map(str::to_owned),
        study: request.text("study").map(str::to_owned),
        last: request.number("last")?,
    })
}

/// `/history`
pub(crate) fn send_history_page(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    laboratory.refuse_missing_archive()?;
    let of = history_request(request)?;
    let links = vec![PageLink { text: "Runs".into(), address: "/".into() }];
    send_report(laboratory, None, links, || Ok(laboratory.source.history_data(&of)?))
}

/// Sends a report that is there already, or makes it.
fn send_report(
    laboratory: &WebLaboratory,
    version: Option<String>,
    links: Vec<PageLink>,
    data: impl FnOnce() -> Result<ReportData<'static>, RequestRefusal>,
) -> Result<RouteAnswer, RequestRefusal> {
    send_made_page(laboratory, version, links, data, |data| render_report(data, SECTIONS))
}

/// Sends a page that is there already, or makes it. `version` says what it is made from; without one it is made each time.
fn send_made_page(
    laboratory: &WebLaboratory,
    version: Option<String>,
    links: Vec<PageLink>,
    data: impl FnOnce() -> Result<ReportData<'static>, RequestRefusal>,
    render: impl FnOnce(&ReportData<'static>) -> Result<String, ReportError>,
) -> Result<RouteAnswer, RequestRefusal> {
    // Somebody else may have asked for it, too, and been first.
    if let Some(made) = version.as_deref().and_then(|version| find_report(laboratory, version)) {
        return Ok(made);
    }
    let data = ReportData { links, ..data()? };
    let page = render(&data)
        .map_err(|error| RequestRefusal::unexpected(format!("cannot make the page: {error}")))?;
    let page = Bytes::from(page);
    if let Some(version) = version {
        laboratory.pages.keep(version, &page);
    }
    Ok(report_answer(page))
}

fn find_report(laboratory: &WebLaboratory, version: &str) -> Option<RouteAnswer> {
    laboratory.pages.find(version).map(report_answer)
}

fn report_answer(page: Bytes) -> RouteAnswer {
    let policy = Some(format!("{}; frame-ancestors 'none'", page_policy()));
    RouteAnswer { policy, ..RouteAnswer::new(page) }
}

/// What the page of a run is made from.
fn run_version(run: &[RunDir]) -> Option<String> {
    runs_version(run).map(|version| format!("run {version}"))
}

/// What a comparison is made from: its runs, and the newest of the archive, as others of a study tell what is usual.
fn sides_version(laboratory: &WebLaboratory, sides: &[&str]) -> Result<Option<String>, RequestRefusal> {
    let mut version = "compare".to_owned();
    for side in sides {
        let runs = find_runs(laboratory, side)?;
        let Some(part) = runs_version(&runs) else { return Ok(None) };
        // Writing to a string cannot fail.
        let _ = write!(version, " {} {side} {part}", runs.len());
    }
    let newest = laboratory.archive.list_latest_runs(1)?.pop().map(|run| run.id).unwrap_or_default();
    Ok(Some(format!("{version} {newest}")))
}
