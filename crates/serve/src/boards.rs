//! Boards: every study of the archive with the metrics that decide, in a line each: `/boards` and `/api/v1/boards`.
//!
//! What was found of a study is kept until a run of it changes: the first look reads them all, through the index.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use indexmap::IndexMap;
use jiff::tz::TimeZone;
use perflab_analyze::Verdict;
use perflab_archive::ArchiveEntry;
use perflab_model::{Nanos, RunNote, RunStatus};
use perflab_present::board::BoardRow;
use schemars::JsonSchema;
use serde::Serialize;

use crate::board_cache::FoundStudyRows;
use crate::laboratory::WebLaboratory;
use crate::page::{format_minute, render_page};
use crate::refusal::{RequestRefusal, unknown_name};
use crate::route::{RouteAnswer, RouteParameter, RouteParameterKind, RouteRequest, encode_query};
use crate::study_rows::{StudyRows, UnreadableRunDocument};

/// Studies of an answer.
const MOST_STUDIES: usize = 40;

/// Of each study so many runs are looked at: steps are found in a time that grows faster than the runs.
const LATEST_RUNS: usize = 200;

/// Studies that are looked at, at once.
const MOST_THREADS: usize = 4;

/// Runs of an answer that cannot be read.
const MOST_UNREADABLE: usize = 100;

/// Of those a page names so many.
const MOST_NAMED: usize = 5;

/// Rows of a study on a page; its history has the others.
const MOST_ROWS: usize = 20;

/// What boards take.
pub(crate) const BOARD_PARAMETERS: &[RouteParameter] = &[
    RouteParameter::optional(
        "study",
        RouteParameterKind::Texts,
        "only the study with this title or file (repeatable)",
    ),
    RouteParameter::optional(
        "machine",
        RouteParameterKind::Text,
        "only this machine, by its fact `machine.id`",
    ),
    RouteParameter::optional(
        "steps",
        RouteParameterKind::Text,
        "only rows with such a last step: `any`, `worse`, or `open` (worse, and nobody has acknowledged it)",
    ),
    RouteParameter::optional(
        "skip",
        RouteParameterKind::Number,
        "leave out so many studies, those with the newest runs: the next page",
    ),
];

/// The boards that were asked for, the study with the newest run first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BoardsDocument {
    /// Version of this document.
    format: u32,
    /// Studies in the archive.
    total: usize,
    /// Those of this answer, 40 at most.
    studies: Vec<StudyBoardDocument>,
    /// Runs that cannot be read so far that anybody knew their study.
    unreadable_runs: usize,
    /// The newest of them, 100 at most.
    unreadable: Vec<UnreadableRunDocument>,
    /// `skip` for the next studies; none with the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

/// The board of one study.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct StudyBoardDocument {
    /// The study's title.
    study: String,
    /// Runs of it, whatever their status; rows are of the latest 200.
    runs: usize,
    /// A line for each metric that decides.
    rows: Vec<BoardRowDocument>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// Runs that are not in the rows, as their values cannot be read.
    unreadable: Vec<UnreadableRunDocument>,
}

/// One line.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct BoardRowDocument {
    #[serde(flatten)]
    pub(crate) row: BoardRow,
    /// What people wrote about the last step, the oldest first: with a note it is acknowledged.
    notes: Vec<RunNote>,
}

impl BoardRowDocument {
    /// Whether its last step is for the worse, and nobody has said anything of it.
    pub(crate) fn is_open(&self) -> bool {
        self.is_worse()
            && self.notes.is_empty()
            && self.row.step.as_ref().is_some_and(|step| step.accepted.is_none())
    }

    fn is_worse(&self) -> bool {
        self.row.step.as_ref().is_some_and(|step| step.verdict == Verdict::Worse)
    }
}

/// The runs of an archive as boards have them.
#[derive(Default)]
struct GroupedRuns {
    /// By the title of their study, that with the newest run first.
    studies: IndexMap<String, Vec<ArchiveEntry>>,
    /// Those of which nobody knows the study, the newest first.
    unreadable: Vec<UnreadableRunDocument>,
}

fn group_by_study(entries: Vec<ArchiveEntry>) -> GroupedRuns {
    let mut found = GroupedRuns::default();
    for entry in entries.into_iter().rev() {
        match &entry.summary {
            Ok(summary) => found.studies.entry(summary.title.to_string()).or_default().push(entry),
            Err(problem) => {
                let problem = problem.clone();
                found.unreadable.push(UnreadableRunDocument { run: entry.short, problem });
            }
        }
    }
    for runs in found.studies.values_mut() {
        runs.reverse();
    }
    found
}

/// Whether a study is called so, by its title or its file.
fn is_study_named(title: &str, runs: &[ArchiveEntry], name: &str) -> bool {
    let has_name =
        |run: &ArchiveEntry| run.summary.as_ref().is_ok_and(|run| run.study_names().any(|own| own == name));
    title == name || runs.iter().any(has_name)
}

/// What a board is made from, in a number.
fn board_version(runs: &[ArchiveEntry], accepted: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    accepted.hash(&mut hasher);
    // A run that is being recorded is in no board, and changes all the time.
    let is_recorded =
        |run: &&ArchiveEntry| run.summary.as_ref().is_ok_and(|run| run.status != RunStatus::Running);
    for run in runs.iter().filter(is_recorded) {
        let summary = run.summary.as_ref().ok();
        let status = summary.map(|run| (run.status.as_str(), run.label.as_deref(), run.iterations));
        (&run.id, run.bytes, status).hash(&mut hasher);
    }
    hasher.finish()
}

fn accepted_version(laboratory: &WebLaboratory) -> Result<u64, RequestRefusal> {
    let steps = laboratory.archive.read_accepted_steps()?;
    let text =
        serde_json::to_string(&steps).map_err(|error| RequestRefusal::unexpected(error.to_string()))?;
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    Ok(hasher.finish())
}

fn study_rows(
    laboratory: &WebLaboratory,
    study: &str,
    runs: &[ArchiveEntry],
    accepted: u64,
) -> FoundStudyRows {
    let version = board_version(runs, accepted);
    if let Some(rows) = laboratory.boards.find(study, version) {
        return rows;
    }
    let found = laboratory.source.study_history(runs, LATEST_RUNS);
    let rows = found.map(|history| history.as_ref().map(StudyRows::new).unwrap_or_default());
    let rows = Arc::new(rows.map_err(|refused| refused.sentence));
    laboratory.boards.keep(study, version, &rows);
    rows
}

/// The rows of several studies, in their order, on as many threads as there are processors.
fn all_study_rows(
    laboratory: &WebLaboratory,
    studies: &[(&String, &Vec<ArchiveEntry>)],
    accepted: u64,
) -> Vec<FoundStudyRows> {
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_THREADS);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((title, runs)) = studies.get(at) else { return made };
            made.push((at, study_rows(laboratory, title, runs, accepted)));
        }
    };
    let mut made: Vec<(usize, FoundStudyRows)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut made = work();
        for other in others {
            // A mistake on another thread is one here.
            made.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        made
    });
    made.sort_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, rows)| rows).collect()
}

/// Which rows are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepFilter {
    All,
    Any,
    Worse,
    Open,
}

impl StepFilter {
    fn of_request(request: &RouteRequest) -> Result<Self, RequestRefusal> {
        match request.text("steps") {
            None => Ok(StepFilter::All),
            Some("any") => Ok(StepFilter::Any),
            Some("worse") => Ok(StepFilter::Worse),
            Some("open") => Ok(StepFilter::Open),
            Some(other) => Err(RequestRefusal::bad_request(format!(
                "`steps={other}` is unknown: write any, worse or open"
            ))),
        }
    }

    fn accepts(self, row: &BoardRowDocument) -> bool {
        match self {
            StepFilter::All => true,
            StepFilter::Any => row.row.step.is_some(),
            StepFilter::Worse => row.is_worse(),
            StepFilter::Open => row.is_open(),
        }
    }
}

/// What a page needs beside the document.
struct CollectedBoards {
    document: BoardsDocument,
    /// Titles of all studies.
    titles: Vec<String>,
    /// Machines of the rows before they were filtered.
    machines: BTreeSet<String>,
}

fn collect_boards(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<CollectedBoards, RequestRefusal> {
    let filter = StepFilter::of_request(request)?;
    let skip: usize = request.number("skip")?.unwrap_or_default();
    let wanted: Vec<&str> = request.texts("study").collect();
    let machine = request.text("machine");
    let GroupedRuns { studies, mut unreadable } = group_by_study(laboratory.list_runs()?);
    for name in &wanted {
        if !studies.iter().any(|(title, runs)| is_study_named(title, runs, name)) {
            return Err(unknown_name("study", name, studies.keys().map(String::as_str)));
        }
    }
    let accepted = accepted_version(laboratory)?;
    let is_wanted = |title: &str, runs: &[ArchiveEntry]| {
        wanted.is_empty() || wanted.iter().any(|name| is_study_named(title, runs, name))
    };
    let chosen = studies.iter().filter(|(title, runs)| is_wanted(title, runs));
    let mut chosen = chosen.skip(skip);
    let (mut documents, mut machines) = (Vec::new(), BTreeSet::new());
    let of_page: Vec<(&String, &Vec<ArchiveEntry>)> = chosen.by_ref().take(MOST_STUDIES).collect();
    for ((title, runs), found) in of_page.iter().zip(all_study_rows(laboratory, &of_page, accepted)) {
        let (rows, left_out, problem) = match &*found {
            Ok(found) => (found.rows.as_slice(), found.unreadable.clone(), None),
            Err(problem) => (&[][..], Vec::new(), Some(problem.clone())),
        };
        machines.extend(rows.iter().map(|row| row.machine.clone()).filter(|machine| !machine.is_empty()));
        let rows = rows.iter().filter(|row| machine.is_none_or(|machine| row.machine == machine));
        let rows =
            rows.map(|row| BoardRowDocument { notes: step_notes(laboratory, runs, row), row: row.clone() });
        let rows: Vec<BoardRowDocument> = rows.filter(|row| filter.accepts(row)).collect();
        let is_asked = filter == StepFilter::All && machine.is_none();
        if !rows.is_empty() || is_asked {
            documents.push(StudyBoardDocument {
                study: (*title).clone(),
                runs: runs.iter().map(ArchiveEntry::first_part_id).collect::<BTreeSet<_>>().len(),
                rows,
                problem,
                unreadable: left_out,
            });
        }
    }
    let next = chosen.next().map(|_| skip + MOST_STUDIES);
    // On other pages there may be further machines.
    if let Some(unknown) = machine.filter(|name| next.is_none() && skip == 0 && !machines.contains(*name)) {
        return Err(unknown_name("machine", unknown, machines.iter().map(String::as_str)));
    }
    let unreadable_runs = unreadable.len();
    unreadable.truncate(MOST_UNREADABLE);
    let total = studies.len();
    let document = BoardsDocument { format: 1, total, studies: documents, unreadable_runs, unreadable, next };
    Ok(CollectedBoards { document, titles: studies.into_keys().collect(), machines })
}

/// The rows of the studies with the newest runs, each with its study.
pub(crate) fn latest_board_rows(
    laboratory: &WebLaboratory,
) -> Result<Vec<(String, BoardRowDocument)>, RequestRefusal> {
    let found = collect_boards(laboratory, &RouteRequest::default())?;
    let studies = found.document.studies.into_iter();
    Ok(studies.flat_map(|board| board.rows.into_iter().map(move |row| (board.study.clone(), row))).collect())
}

/// The notes on the last step of a row. A run that cannot be read has none.
fn step_notes(laboratory: &WebLaboratory, runs: &[ArchiveEntry], row: &BoardRow) -> Vec<RunNote> {
    let Some(step) = &row.step else { return Vec::new() };
    let is_own =
        |note: &RunNote| note.case.as_ref() == Some(&row.case) && note.metric.as_ref() == Some(&row.metric);
    let around = runs.iter().filter(|run| step.around.contains(&run.id));
    let notes = around.filter_map(|run| laboratory.archive.open_contained_run(run).ok()?.read_notes().ok());
    let mut notes: Vec<RunNote> = notes.flatten().filter(is_own).collect();
    notes.sort_by_key(|note| note.at);
    notes
}

/// `/api/v1/boards`
pub(crate) fn send_boards(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    RouteAnswer::json(&collect_boards(laboratory, request)?.document)
}

#[derive(Serialize)]
struct BoardsView<'a> {
    archive: String,
    total: usize,
    latest_runs: usize,
    facets: Vec<BoardFacetView<'a>>,
    is_filtered: bool,
    has_machines: bool,
    unreadable: String,
    studies: Vec<StudyBoardView<'a>>,
    older: Option<String>,
    page_key: Option<&'a str>,
}

#[derive(Serialize)]
struct BoardFacetView<'a> {
    title: &'static str,
    name: &'static str,
    /// Values with their texts, and whether they are chosen.
    choices: Vec<(&'a str, &'a str, bool)>,
}

#[derive(Serialize)]
struct StudyBoardView<'a> {
    study: &'a str,
    runs: usize,
    history: String,
    problem: Option<&'a str>,
    unreadable: String,
    rows: Vec<BoardRowView<'a>>,
    left_out: usize,
}

#[derive(Serialize)]
struct BoardRowView<'a> {
    #[serde(flatten)]
    row: &'a BoardRow,
    sparkline: &'a str,
    history: String,
    date: String,
    machine_short: &'a str,
    step_class: &'static str,
    step_date: String,
    commit_short: &'a str,
    notes: Vec<BoardNoteView<'a>>,
    is_open: bool,
}

#[derive(Serialize)]
struct BoardNoteView<'a> {
    at: String,
    by: &'a str,
    text: &'a str,
}

/// The history that a board was made from.
fn history_address(study: &str, metric: &str) -> String {
    format!("/history?study={}&metric={}&last={LATEST_RUNS}", encode_query(study), encode_query(metric))
}

/// The first letters of a hash, and what all of a text is that is none.
fn shorten_hash(text: &str) -> &str {
    let is_hash = text.len() > 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.get(..12).filter(|_| is_hash).unwrap_or(text)
}

impl<'a> BoardRowView<'a> {
    fn new(study: &str, found: &'a BoardRowDocument, zone: &TimeZone) -> Self {
        let row = &found.row;
        let step = row.step.as_ref();
        let day = |at: Nanos| format_minute(at, zone);
        BoardRowView {
            row,
            sparkline: &row.sparkline,
            history: history_address(study, &row.metric),
            date: day(row.newest_at),
            machine_short: shorten_hash(&row.machine),
            step_class: match step.map(|step| step.verdict) {
                Some(Verdict::Better) => "better",
                Some(Verdict::Worse) => "worse",
                _ => "",
            },
            step_date: step.map(|step| day(step.at)).unwrap_or_default(),
            commit_short: step.and_then(|step| step.commit.as_deref()).map_or("", shorten_hash),
            notes: found
                .notes
                .iter()
                .map(|note| BoardNoteView { at: day(note.at), by: &note.by, text: &note.text })
                .collect(),
            is_open: found.is_open(),
        }
    }
}

/// How many runs cannot be read, and which; nothing where all can.
fn unreadable_text(count: usize, runs: &[UnreadableRunDocument]) -> String {
    if count == 0 {
        return String::new();
    }
    let named = runs.iter().take(MOST_NAMED).map(|run| format!("{}: {}", run.run, run.problem));
    let more = count.saturating_sub(MOST_NAMED);
    let more = (more > 0).then(|| format!("and {more} more"));
    let what = if count == 1 { "run" } else { "runs" };
    format!("{count} {what} left out: {}", named.chain(more).collect::<Vec<_>>().join("; "))
}

/// `/boards`
pub(crate) fn send_boards_page(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    let found = collect_boards(laboratory, request)?;
    let zone = TimeZone::system();
    let studies = found.document.studies.iter().map(|board| StudyBoardView {
        study: &board.study,
        runs: board.runs,
        history: history_address(&board.study, "primary"),
        problem: board.problem.as_deref(),
        unreadable: unreadable_text(board.unreadable.len(), &board.unreadable),
        left_out: board.rows.len().saturating_sub(MOST_ROWS),
        rows: board
            .rows
            .iter()
            .take(MOST_ROWS)
            .map(|row| BoardRowView::new(&board.study, row, &zone))
            .collect(),
    });
    let steps = [("any", "any"), ("worse", "for the worse"), ("open", "worse, not acknowledged")];
    let chosen = |name: &'static str| request.text(name).unwrap_or_default();
    let titles = found.titles.iter().map(String::as_str);
    let machines = found.machines.iter().map(String::as_str);
    let view = BoardsView {
        archive: laboratory.archive.path().display().to_string(),
        total: found.document.total,
        latest_runs: LATEST_RUNS,
        facets: vec![
            BoardFacetView {
                title: "Study",
                name: "study",
                choices: titles.map(|title| (title, title, title == chosen("study"))).collect(),
            },
            BoardFacetView {
                title: "Machine",
                name: "machine",
                choices: machines
                    .map(|machine| (machine, shorten_hash(machine), machine == chosen("machine")))
                    .collect(),
            },
            BoardFacetView {
                title: "Last step",
                name: "steps",
                choices: steps.map(|(value, text)| (value, text, value == chosen("steps"))).to_vec(),
            },
        ],
        is_filtered: request.query.iter().any(|(_, value)| !value.is_empty()),
        has_machines: found.machines.len() > 1,
        unreadable: unreadable_text(found.document.unreadable_runs, &found.document.unreadable),
        studies: studies.collect(),
        older: found.document.next.map(|next| request.address_with("/boards", "skip", &next.to_string())),
        page_key: laboratory.page_key.as_deref(),
    };
    Ok(RouteAnswer::new(render_page("boards.html", view)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_shortened_and_names_are_not() {
        assert_eq!(shorten_hash("0123456789abcdef0123"), "0123456789ab");
        assert_eq!(shorten_hash("v6.12-rc3 of somebody"), "v6.12-rc3 of somebody");
        assert_eq!(shorten_hash("ééééééééééééééé"), "ééééééééééééééé");
    }
}
