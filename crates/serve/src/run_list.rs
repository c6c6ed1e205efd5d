//! The list of runs, filtered: `/` and `/api/v1/runs`.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use perflab_archive::run_id::is_run_id;
use perflab_archive::{ArchiveEntry, RunSummary};
use perflab_model::{Bytes, RunStatus};
use schemars::JsonSchema;
use serde::Serialize;

use crate::laboratory::WebLaboratory;
use crate::page::render_page;
use crate::refusal::{RequestRefusal, unknown_name};
use crate::route::{RouteAnswer, RouteParameter, RouteParameterKind, RouteRequest};

/// Runs of a page, and of an answer of which nobody says how long it is.
const USUAL_LENGTH: usize = 100;

/// The longest answer.
const MOST_RUNS: usize = 1000;

/// What the list takes.
pub(crate) const LIST_PARAMETERS: &[RouteParameter] = &[
    RouteParameter::optional(
        "q",
        RouteParameterKind::Text,
        "words that are all in a run's id, label, title or file",
    ),
    RouteParameter::optional("status", RouteParameterKind::Text, "only runs of this status, or `damaged`"),
    RouteParameter::optional("label", RouteParameterKind::Text, "only runs with this label"),
    RouteParameter::optional(
        "study",
        RouteParameterKind::Text,
        "only runs of the study with this title or file",
    ),
    RouteParameter::optional(
        "before",
        RouteParameterKind::Text,
        "only runs whose id comes before this one: the next page",
    ),
    RouteParameter::optional(
        "limit",
        RouteParameterKind::Number,
        "at most so many runs, 100 unless given, and at most 1000",
    ),
];

/// The runs that were asked for, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunListDocument {
    /// Version of this document.
    format: u32,
    /// Runs in the archive.
    total: usize,
    /// Runs that are as was asked, on this page or on others.
    matched: usize,
    /// Those of this page.
    runs: Vec<ListedRunDocument>,
    /// `before` for the next page; none on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// One run of the list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListedRunDocument {
    /// Its id, a ULID.
    id: String,
    /// The shortest beginning that names it in this archive.
    short: String,
    /// running, finished, failed, stopped, interrupted, disk-full, or damaged
    status: String,
    /// The name that somebody gave it.
    label: Option<String>,
    /// The study's title.
    title: Option<String>,
    /// The study's file.
    study_file: Option<String>,
    /// When it began, in UTC.
    begun: Option<String>,
    /// Iterations that ended, warm-ups included.
    iterations: Option<u64>,
    /// Iterations that were planned.
    planned: Option<u64>,
    /// What it takes on the disk.
    bytes: u64,
    /// The id of the interrupted run that it goes on with; both count as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    continues: Option<String>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// What stands for the status of a run that cannot be read.
pub(crate) const DAMAGED: &str = "damaged";

/// What the status of a run that can be read may be.
pub(crate) const RUN_STATUSES: [RunStatus; 6] = [
    RunStatus::Running,
    RunStatus::Finished,
    RunStatus::Failed,
    RunStatus::Stopped,
    RunStatus::Interrupted,
    RunStatus::DiskFull,
];

impl ListedRunDocument {
    fn new(entry: &ArchiveEntry) -> Self {
        let summary = entry.summary.as_ref().ok();
        let of = |get: fn(&RunSummary) -> String| summary.map(get);
        ListedRunDocument {
            id: entry.id.clone(),
            short: entry.short.clone(),
            status: status_name(entry).to_owned(),
            label: summary.and_then(|run| run.label.clone()),
            title: of(|run| run.title.to_string()),
            study_file: of(|run| run.study_file.to_string()),
            begun: of(|run| run.begun.to_string()),
            iterations: summary.map(|run| run.iterations),
            planned: summary.map(|run| run.planned),
            bytes: entry.bytes,
            continues: summary.and_then(|run| run.continues.clone()),
            problem: entry.summary.as_ref().err().cloned(),
        }
    }
}

fn status_name(entry: &ArchiveEntry) -> &'static str {
    entry.summary.as_ref().map_or(DAMAGED, |run| run.status.as_str())
}

/// Which runs are asked for.
struct RunFilter<'a> {
    words: Vec<String>,
    status: Option<&'a str>,
    label: Option<&'a str>,
    study: Option<&'a str>,
}

impl<'a> RunFilter<'a> {
    fn of_request(request: &'a RouteRequest) -> Self {
        let words = request.text("q").unwrap_or_default();
        RunFilter {
            words: words.split_whitespace().map(str::to_lowercase).collect(),
            status: request.text("status"),
            label: request.text("label"),
            study: request.text("study"),
        }
    }

    /// Refuses a status, label or study that no run has: a slip would find nothing, in silence.
    fn check(&self, entries: &[ArchiveEntry]) -> Result<(), RequestRefusal> {
        let summaries = || entries.iter().filter_map(|entry| entry.summary.as_ref().ok());
        let statuses = RUN_STATUSES.map(RunStatus::as_str);
        if let Some(status) = self.status.filter(|status| *status != DAMAGED && !statuses.contains(status)) {
            return Err(RequestRefusal::bad_request(format!(
                "`status={status}` is unknown: write {} or {DAMAGED}",
                statuses.join(", ")
            )));
        }
        let labels: BTreeSet<&str> = summaries().filter_map(|run| run.label.as_deref()).collect();
        if let Some(label) = self.label.filter(|label| !labels.contains(label)) {
            return Err(unknown_name("label", label, labels.iter().copied()));
        }
        let has_name = |study: &str| summaries().any(|run| run.study_names().any(|own| own == study));
        if let Some(study) = self.study.filter(|study| !has_name(study)) {
            let titles: BTreeSet<&str> = summaries().map(|run| run.title.as_str()).collect();
            return Err(unknown_name("study", study, titles.iter().copied()));
        }
        Ok(())
    }

    fn accepts(&self, entry: &ArchiveEntry) -> bool {
        let summary = entry.summary.as_ref().ok();
        let is =
            |wanted: Option<&str>, found: Option<&str>| wanted.is_none_or(|wanted| found == Some(wanted));
        is(self.status, Some(status_name(entry)))
            && is(self.label, summary.and_then(|run| run.label.as_deref()))
            && self
                .study
                .is_none_or(|study| summary.is_some_and(|run| run.study_names().any(|own| own == study)))
            && self.has_words(entry, summary)
    }

    fn has_words(&self, entry: &ArchiveEntry, summary: Option<&RunSummary>) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let texts =
            summary.map(|run| [run.label.as_deref().unwrap_or_default(), &run.title, &run.study_file]);
        let texts = texts
            .into_iter()
            .flatten()
            .chain([entry.id.as_str()])
            .chain(entry.summary.as_ref().err().map(String::as_str));
        let text = texts.collect::<Vec<_>>().join("\n").to_lowercase();
        self.words.iter().all(|word| text.contains(word.as_str()))
    }
}

fn list_page(entries: &[ArchiveEntry], request: &RouteRequest) -> Result<RunListDocument, RequestRefusal> {
    let limit = request.number("limit")?.unwrap_or(USUAL_LENGTH);
    if !(1..=MOST_RUNS).contains(&limit) {
        return Err(RequestRefusal::bad_request(format!("`limit={limit}` is not between 1 and {MOST_RUNS}")));
    }
    let filter = RunFilter::of_request(request);
    filter.check(entries)?;
    let all: Vec<&ArchiveEntry> = entries.iter().rev().filter(|entry| filter.accepts(entry)).collect();
    let before = request.text("before").filter(|id| !id.is_empty());
    if let Some(other) = before.filter(|id| !is_run_id(id)) {
        return Err(RequestRefusal::bad_request(format!(
            "`before={other}` is no run's id: take `next` of the page before"
        )));
    }
    let mut rest = all.iter().filter(|entry| before.is_none_or(|before| entry.id.as_str() < before));
    let runs: Vec<ListedRunDocument> =
        rest.by_ref().take(limit).map(|entry| ListedRunDocument::new(entry)).collect();
    let next = rest.next().and_then(|_| runs.last()).map(|last| last.id.clone());
    Ok(RunListDocument { format: 1, total: entries.len(), matched: all.len(), runs, next })
}

/// `/api/v1/runs`
pub(crate) fn send_list(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    RouteAnswer::json(&list_page(&laboratory.list_runs()?, request)?)
}

#[derive(Serialize)]
struct RunsView<'a> {
    archive: String,
    list: &'a RunListDocument,
    query: RunsQueryView<'a>,
    facets: Vec<FacetView>,
    is_filtered: bool,
    rows: Vec<RunRowView<'a>>,
    older: Option<String>,
    /// The newest run of the archive: later ones are news.
    newest: &'a str,
}

#[derive(Serialize)]
struct RunsQueryView<'a> {
    q: &'a str,
}

/// A choice of the filter, with how many runs of the archive there are of each.
#[derive(Serialize)]
struct FacetView {
    title: &'static str,
    name: &'static str,
    choices: Vec<FacetChoiceView>,
}

#[derive(Serialize)]
struct FacetChoiceView {
    value: String,
    count: usize,
    is_chosen: bool,
}

#[derive(Serialize)]
struct RunRowView<'a> {
    id: &'a str,
    short: &'a str,
    label: &'a str,
    title: &'a str,
    begun: String,
    status: &'a str,
    is_live: bool,
    iterations: u64,
    planned: u64,
    done: String,
    size: String,
    problem: Option<&'a str>,
}

impl<'a> RunRowView<'a> {
    fn new(run: &'a ListedRunDocument, zone: &TimeZone) -> Self {
        let begun = run.begun.as_deref().and_then(|begun| begun.parse::<jiff::Timestamp>().ok());
        let begun = begun.map(|begun| begun.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string());
        RunRowView {
            id: &run.id,
            short: &run.short,
            label: run.label.as_deref().unwrap_or_default(),
            title: run.title.as_deref().unwrap_or_default(),
            begun: begun.unwrap_or_default(),
            status: &run.status,
            is_live: run.status == RunStatus::Running.as_str(),
            iterations: run.iterations.unwrap_or_default(),
            planned: run.planned.unwrap_or_default(),
            done: run
                .iterations
                .zip(run.planned)
                .map(|(done, all)| format!("{done}/{all}"))
                .unwrap_or_default(),
            size: Bytes(run.bytes).to_string(),
            problem: run.problem.as_deref(),
        }
    }
}

/// Choices of a facet beyond which the rarest are left to the words.
const MOST_CHOICES: usize = 200;

fn count_facet(
    (title, name): (&'static str, &'static str),
    entries: &[ArchiveEntry],
    chosen: Option<&str>,
    value: impl Fn(&ArchiveEntry) -> Option<&str>,
) -> FacetView {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in entries {
        if let Some(value) = value(entry) {
            *counts.entry(value).or_default() += 1;
        }
    }
    let mut choices: Vec<(&str, usize)> = counts.into_iter().collect();
    choices.sort_by_key(|(value, count)| (chosen != Some(*value), std::cmp::Reverse(*count)));
    choices.truncate(MOST_CHOICES);
    choices.sort_by_key(|(value, _)| *value);
    let choice = |(value, count): (&str, usize)| FacetChoiceView {
        is_chosen: chosen == Some(value),
        value: value.to_owned(),
        count,
    };
    FacetView { title, name, choices: choices.into_iter().map(choice).collect() }
}

/// `/`
pub(crate) fn send_runs_page(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    let entries = laboratory.list_runs()?;
    let list = list_page(&entries, request)?;
    let filter = RunFilter::of_request(request);
    let zone = TimeZone::system();
    let view = RunsView {
        archive: laboratory.archive.path().display().to_string(),
        query: RunsQueryView { q: request.text("q").unwrap_or_default() },
        facets: vec![
            count_facet(("Status", "status"), &entries, filter.status, |entry| Some(status_name(entry))),
            count_facet(("Label", "label"), &entries, filter.label, |entry| {
                entry.summary.as_ref().ok()?.label.as_deref()
            }),
            count_facet(("Study", "study"), &entries, filter.study, |entry| {
                Some(entry.summary.as_ref().ok()?.title.as_str())
            }),
        ],
        is_filtered: request.query.iter().any(|(_, value)| !value.is_empty()),
        rows: list.runs.iter().map(|run| RunRowView::new(run, &zone)).collect(),
        older: list.next.as_deref().map(|next| older_address(request, next)),
        list: &list,
        newest: entries.last().map_or("", |entry| entry.id.as_str()),
    };
    Ok(RouteAnswer::new(render_page("runs.html", view)?))
}

/// The address of the page after this one, with the same filter.
fn older_address(request: &RouteRequest, next: &str) -> String {
    request.address_with("/", "before", next)
}
