//! What may be changed with `--write`: the label of a run, and notes on it.

use jiff::tz::TimeZone;
use perflab_archive::parse_label;
use perflab_model::untrusted_text::escape_controls_in_line;
use perflab_model::{RunNote, RunStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::laboratory::WebLaboratory;
use crate::page::render_page;
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
    RouteAnswer::json(&laboratory.archive.add_note(&run, &note.by, &note.text)?)
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
    by: String,
    text: String,
}

impl NoteView {
    fn new(note: &RunNote) -> Self {
        let at = jiff::Timestamp::from_nanosecond(i128::from(note.at.0)).unwrap_or_default();
        NoteView {
            at: at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
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
