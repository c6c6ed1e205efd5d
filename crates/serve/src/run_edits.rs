//! What may be changed with `--write`: the label of a run, and notes on it.

use jiff::tz::TimeZone;
use perflab_archive::{RunDir, parse_label};
use perflab_model::untrusted_text::escape_controls_in_line;
use perflab_model::{Nanos, RunNote, RunStatus, Sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::laboratory::WebLaboratory;
use crate::page::{format_minute, render_page};
use crate::refusal::RequestRefusal;
use crate::route::{RouteAnswer, RouteRequest};
use crate::run_lookup::find_run;

/// Letters of a label, and of who wrote a note.
const LONGEST_NAME: usize = 200;

/// The label of a run.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LabelDocument {
    /// The name; null for none. One that is left out is no null.
    #[serde(deserialize_with = "Option::deserialize")]
    label: Option<String>,
}

/// A note to be written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewNoteDocument {
    /// What to write, at most 10,000 letters.
    text: String,
    /// Who writes it.
    #[serde(default)]
    by: String,
    /// Where it is about a step of a history that began with the run: the case, as boards name it.
    #[serde(default)]
    case: Option<String>,
    /// The metric that stepped, with `case`.
    #[serde(default)]
    metric: Option<String>,
}

/// The notes on a run, the oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NotesDocument {
    /// Version of this document.
    format: u32,
    notes: Vec<RunNote>,
}

fn read_body<T: for<'de> Deserialize<'de>>(request: &RouteRequest) -> Result<T, RequestRefusal> {
    serde_json::from_slice(&request.body)
        .map_err(|error| RequestRefusal::bad_request(format!("the body is not as the API has it: {error}")))
}

fn check_name(name: &str) -> Result<(), RequestRefusal> {
    if name.chars().count() > LONGEST_NAME || escape_controls_in_line(name) != name {
        return Err(RequestRefusal::bad_request(format!(
            "a name has {LONGEST_NAME} letters at most, and no control characters"
        )));
    }
    Ok(())
}

/// `POST /api/v1/runs/{id}/label`
pub(crate) fn change_label(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    let wanted: LabelDocument = read_body(request)?;
    if let Some(label) = &wanted.label {
        parse_label(label).map_err(RequestRefusal::bad_request)?;
    }
    let run = find_run(laboratory, request.path_part("id"))?;
    laboratory.archive.set_label(run.id(), wanted.label.as_deref())?;
    RouteAnswer::json(&wanted)
}

/// `/api/v1/runs/{id}/notes`
pub(crate) fn send_notes(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    let notes = find_run(laboratory, request.path_part("id"))?.read_notes()?;
    RouteAnswer::json(&NotesDocument { format: 1, notes })
}

/// `POST /api/v1/runs/{id}/notes`
pub(crate) fn write_note(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    let note: NewNoteDocument = read_body(request)?;
    check_name(&note.by)?;
    let run = find_run(laboratory, request.path_part("id"))?;
    check_step(&run, &note)?;
    let note = RunNote { at: Nanos(0), by: note.by, text: note.text, case: note.case, metric: note.metric };
    RouteAnswer::json(&laboratory.archive.add_note(&run, note)?)
}

/// A step is one of a metric that the run has.
fn check_step(run: &RunDir, note: &NewNoteDocument) -> Result<(), RequestRefusal> {
    let (case, metric) = match (&note.case, &note.metric) {
        (None, None) => return Ok(()),
        (Some(case), Some(metric)) => (case, metric),
        _ => return Err(RequestRefusal::bad_request("a step has both `case` and `metric`")),
    };
    let record = run.read_record()?;
    let is_own = |sample: &Sample| {
        let of = record.manifest.plan.case(sample.case);
        sample.metric == *metric && of.is_some_and(|of| of.label() == *case)
    };
    if record.samples.iter().any(is_own) {
        return Ok(());
    }
    let sentence = format!("run {} has no metric `{metric}` of a case `{case}`", run.short_id());
    Err(RequestRefusal::bad_request(sentence))
}

#[derive(Serialize)]
struct NotesView<'a> {
    id: &'a str,
    short: &'a str,
    title: &'a str,
    label: &'a str,
    notes: Vec<NoteView>,
    page_key: Option<&'a str>,
    is_live: bool,
}

#[derive(Serialize)]
struct NoteView {
    at: String,
    /// The metric and the case whose step it is about.
    about: Option<(String, String)>,
    by: String,
    text: String,
}

impl NoteView {
    fn new(note: &RunNote) -> Self {
        NoteView {
            at: format_minute(note.at, &TimeZone::system()),
            about: note.metric.clone().map(|metric| (metric, note.case.clone().unwrap_or_default())),
            by: note.by.clone(),
            text: note.text.clone(),
        }
    }
}

/// `/runs/{id}/notes`
pub(crate) fn send_notes_page(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    let run = find_run(laboratory, request.path_part("id"))?;
    let manifest = run.manifest()?;
    let view = NotesView {
        id: run.id(),
        short: run.short_id(),
        title: &manifest.study.title,
        label: manifest.label.as_deref().unwrap_or_default(),
        notes: run.read_notes()?.iter().map(NoteView::new).collect(),
        page_key: laboratory.page_key.as_deref(),
        is_live: manifest.status == RunStatus::Running,
    };
    Ok(RouteAnswer::new(render_page("notes.html", view)?))
}
