//! Every route of the laboratory. The server, OpenAPI and the reference page are made of this table.

use axum::body::Body;
use perflab_model::RunNote;
use perflab_present::comparison::ComparisonDocument;

use crate::boards::{BOARD_PARAMETERS, BoardsDocument, send_boards, send_boards_page};
use crate::history_points::{HistoryPointsDocument, send_history};
use crate::laboratory::WebLaboratory;
use crate::live_feed::{RunChangeDocument, open_feed};
use crate::open_metrics::{OPEN_METRICS, send_metrics};
use crate::page::{send_script, send_style};
use crate::pictures::{BADGE_PARAMETERS, PICTURE_PARAMETERS, SVG, send_badge, send_picture};
use crate::refusal::RequestRefusal;
use crate::result_pages::{
    COMPARE_PARAMETERS, HISTORY_PARAMETERS, MATTER_PARAMETERS, SIDE_PARAMETERS, find_comparison_page,
    find_matter_page, find_run_page, send_comparison, send_comparison_page, send_history_page,
    send_matter_page, send_run_page,
};
use crate::route::RouteHandler::{Feed, Kept, Lookup, Rendering, Writing};
use crate::route::{ApiRoute, RouteAnswer, RouteContent, RouteMethod, RouteParameterKind, RouteRequest};
use crate::run_document::{RUN_PARAMETER, RunDocument, send_run};
use crate::run_edits::{
    LabelDocument, NewNoteDocument, NotesDocument, change_label, send_notes, send_notes_page, write_note,
};
use crate::run_list::{LIST_PARAMETERS, RunListDocument, send_list, send_runs_page};
use crate::series_window::{SERIES_PARAMETERS, send_series};

/// Pages first, then the API.
pub(crate) const ROUTES: &[ApiRoute] = &[
    ApiRoute {
        method: RouteMethod::Get,
        path: "/",
        id: "runsPage",
        about: "The runs of the archive, filtered",
        parameters: LIST_PARAMETERS,
        gives: RouteContent::Page,
        handler: Lookup(send_runs_page),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/runs/{id}",
        id: "runPage",
        about: "The report of a run, as `perflab report` writes it",
        parameters: &[RUN_PARAMETER],
        gives: RouteContent::Page,
        handler: Kept(find_run_page, send_run_page),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/runs/{id}/notes",
        id: "notesPage",
        about: "The label of a run and the notes on it, to be changed with `--write`",
        parameters: &[RUN_PARAMETER],
        gives: RouteContent::Page,
        handler: Lookup(send_notes_page),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/runs/{id}/{matter}",
        id: "matterPage",
        about: "What the report of a run says of one matter, or which command records it",
        parameters: MATTER_PARAMETERS,
        gives: RouteContent::Page,
        handler: Kept(find_matter_page, send_matter_page),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/compare",
        id: "comparisonPage",
        about: "The report of two runs, or of two labels, the first being the baseline",
        parameters: SIDE_PARAMETERS,
        gives: RouteContent::Page,
        handler: Kept(find_comparison_page, send_comparison_page),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/history",
        id: "historyPage",
        about: "Metrics over runs with their steps, as `perflab history --report` writes them",
        parameters: HISTORY_PARAMETERS,
        gives: RouteContent::Page,
        handler: Rendering(send_history_page),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/boards",
        id: "boardsPage",
        about: "Every study with the metrics that decide: newest values, how they went, last steps",
        parameters: BOARD_PARAMETERS,
        gives: RouteContent::Page,
        handler: Rendering(send_boards_page),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/assets/page.css",
        id: "pageStyle",
        about: "The style sheet of these pages",
        parameters: &[],
        gives: RouteContent::Text("text/css; charset=utf-8"),
        handler: Lookup(send_style),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/assets/laboratory.js",
        id: "pageScript",
        about: "The script of these pages",
        parameters: &[],
        gives: RouteContent::Text("text/javascript; charset=utf-8"),
        handler: Lookup(send_script),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/metrics",
        id: "openMetrics",
        about: "The server, runs by status, those that are being recorded, and the newest value of each metric that decides, as OpenMetrics",
        parameters: &[],
        gives: RouteContent::Text(OPEN_METRICS),
        handler: Rendering(send_metrics),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/api/v1/runs",
        id: "listRuns",
        about: "The runs of the archive, filtered, the newest first",
        parameters: LIST_PARAMETERS,
        gives: RouteContent::Json(|schemas| schemas.subschema_for::<RunListDocument>()),
        handler: Lookup(send_list),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/api/v1/runs/{id}",
        id: "getRun",
        about: "A run: what was planned, varied and measured, its monitors and facts",
        parameters: &[RUN_PARAMETER],
        gives: RouteContent::Json(|schemas| schemas.subschema_for::<RunDocument>()),
        handler: Rendering(send_run),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/api/v1/runs/{id}/series/{monitor}",
        id: "getSeries",
        about: "What a monitor recorded: columns, by range and resolution",
        parameters: SERIES_PARAMETERS,
        gives: RouteContent::Arrow,
        handler: Rendering(send_series),
    },
    ApiRoute {
        method: RouteMethod::Post,
        path: "/api/v1/runs/{id}/label",
        id: "setLabel",
        about: "Gives a run that has ended another label, or none; needs `--write`",
        parameters: &[RUN_PARAMETER],
        gives: RouteContent::Json(|schemas| schemas.subschema_for::<LabelDocument>()),
        handler: Writing(change_label, |schemas| schemas.subschema_for::<LabelDocument>()),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/api/v1/runs/{id}/notes",
        id: "listNotes",
        about: "The notes on a run, the oldest first",
        parameters: &[RUN_PARAMETER],
        gives: RouteContent::Json(|schemas| schemas.subschema_for::<NotesDocument>()),
        handler: Lookup(send_notes),
    },
    ApiRoute {
        method: RouteMethod::Post,
        path: "/api/v1/runs/{id}/notes",
        id: "addNote",
        about: "Writes a note on a run, or acknowledges a step that it begins; needs `--write`",
        parameters: &[RUN_PARAMETER],
        gives: RouteContent::Json(|schemas| schemas.subschema_for::<RunNote>()),
        handler: Writing(write_note, |schemas| schemas.subschema_for::<NewNoteDocument>()),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/api/v1/boards",
        id: "listBoards",
        about: "The same for programs, with the notes by which steps are acknowledged",
        parameters: BOARD_PARAMETERS,
        gives: RouteContent::Json(|schemas| schemas.subschema_for::<BoardsDocument>()),
        handler: Rendering(send_boards),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/api/v1/history",
        id: "listHistory",
        about: "Metrics over runs, a row for each value and each step",
        parameters: HISTORY_PARAMETERS,
        gives: RouteContent::Json(|schemas| schemas.subschema_for::<HistoryPointsDocument>()),
        handler: Rendering(send_history),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/api/v1/events",
        id: "followRuns",
        about: "What changes in the archive while it is looked at: server-sent events, `run` for a run that is new or has changed, \
                `lost` where some were missed",
        parameters: &[],
        gives: RouteContent::Events(|schemas| schemas.subschema_for::<RunChangeDocument>()),
        handler: Feed(follow_runs),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/api/v1/compare",
        id: "compareRuns",
        about: "A comparison, as `perflab compare --format json` prints it",
        parameters: COMPARE_PARAMETERS,
        gives: RouteContent::Json(|schemas| schemas.subschema_for::<ComparisonDocument<'static>>()),
        handler: Rendering(send_comparison),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/api/v1/pictures/{picture}",
        id: "drawPicture",
        about: "A picture of runs, as `perflab plot` draws it",
        parameters: PICTURE_PARAMETERS,
        gives: RouteContent::Text(SVG),
        handler: Rendering(send_picture),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/api/v1/badge.svg",
        id: "drawBadge",
        about: "The value of a metric in the newest run of a study, with what `perflab guard` says of it, as a badge",
        parameters: BADGE_PARAMETERS,
        gives: RouteContent::Text(SVG),
        handler: Rendering(send_badge),
    },
    ApiRoute {
        method: RouteMethod::Get,
        path: "/api/v1/openapi.json",
        id: "getOpenApi",
        about: "This table as OpenAPI 3.1",
        parameters: &[],
        gives: RouteContent::Json(|_| schemars::json_schema!({ "type": "object" })),
        handler: Lookup(send_open_api),
    },
];

/// The names of all parameters that stand in queries.
pub fn query_parameter_names() -> impl Iterator<Item = &'static str> {
    let parameters = ROUTES.iter().flat_map(|route| route.parameters);
    parameters.filter(|parameter| parameter.kind != RouteParameterKind::Path).map(|parameter| parameter.name)
}

fn send_open_api(laboratory: &WebLaboratory, _: &RouteRequest) -> Result<RouteAnswer, RequestRefusal> {
    Ok(RouteAnswer::new(laboratory.open_api.clone()))
}

fn follow_runs(laboratory: &WebLaboratory) -> Result<Body, RequestRefusal> {
    laboratory.refuse_missing_archive()?;
    open_feed(&laboratory.feed, &laboratory.archive)
}
