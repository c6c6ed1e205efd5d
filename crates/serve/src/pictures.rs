//! Pictures by their addresses: what `perflab plot` draws, and badges.

use perflab_present::chart::SceneSurface;

use crate::laboratory::WebLaboratory;
use crate::refusal::RequestRefusal;
use crate::result_pages::{HISTORY_FILTERS, history_request};
use crate::result_source::PictureRequest;
use crate::route::{RouteAnswer, RouteParameter, RouteParameterKind, RouteRequest};
use crate::run_lookup::find_runs;

/// The type of a picture.
pub(crate) const SVG: &str = "image/svg+xml";

/// The kinds of pictures: those of `perflab plot`.
pub const PICTURE_KINDS: &[&str] =
    &["strip", "ecdf", "histogram", "interval", "scaling", "timeline", "heatmap"];

const PICTURE: RouteParameter = RouteParameter::required(
    "picture",
    RouteParameterKind::Path,
    "a kind of `perflab plot`: strip.svg, ecdf.svg, histogram.svg, interval.svg, scaling.svg, timeline.svg or heatmap.svg",
);

const RUN: RouteParameter = RouteParameter::optional(
    "run",
    RouteParameterKind::Texts,
    "a run: the beginning of its id, a label (its runs are repetitions) or @latest, which it is where none is named (repeatable)",
);

/// What a picture takes beside its runs; what it means of a kind, `perflab plot KIND --help` says.
const PICTURE_OPTIONS: &[RouteParameter] = &[
    RouteParameter::optional(
        "metric",
        RouteParameterKind::Texts,
        "only this metric, in which * stands for any text (repeatable)",
    ),
    RouteParameter::optional("workload", RouteParameterKind::Texts, "only this workload (repeatable)"),
    RouteParameter::optional(
        "where",
        RouteParameterKind::Texts,
        "only cases with this level of a factor, or value of a parameter: KEY=VALUE (repeatable)",
    ),
    RouteParameter::optional("by", RouteParameterKind::Text, "one line for each level of this factor"),
    RouteParameter::optional("baseline", RouteParameterKind::Text, "interval: what others are compared with"),
    RouteParameter::optional(
        "margin",
        RouteParameterKind::Text,
        "interval: the smallest change that matters",
    ),
    RouteParameter::optional(
        "confidence",
        RouteParameterKind::Text,
        "confidence of intervals and bands: 95%",
    ),
    RouteParameter::optional(
        "bins",
        RouteParameterKind::Text,
        "histogram: the rule of the bins, fd or scott",
    ),
    RouteParameter::optional(
        "over",
        RouteParameterKind::Text,
        "scaling: the parameter along the axis; heatmap: two of them, ACROSS,DOWN",
    ),
    RouteParameter::optional(
        "fit",
        RouteParameterKind::Text,
        "scaling: the law that is fitted, amdahl or usl",
    ),
    RouteParameter::optional(
        "column",
        RouteParameterKind::Text,
        "timeline, heatmap: what is drawn of a monitor, MONITOR.COLUMN",
    ),
    RouteParameter::optional(
        "row",
        RouteParameterKind::Texts,
        "timeline, heatmap: only the row of this key (repeatable)",
    ),
    RouteParameter::optional(
        "x-range",
        RouteParameterKind::Text,
        "ends of the horizontal axis: 10ms:20ms, 0:",
    ),
    RouteParameter::optional("y-range", RouteParameterKind::Text, "ends of the vertical axis"),
    RouteParameter::optional(
        "range",
        RouteParameterKind::Text,
        "heatmap: the values at the ends of the colours",
    ),
    RouteParameter::optional(
        "log",
        RouteParameterKind::Text,
        "logarithmic axes: x, y or x,y; of a heatmap, true for its colours",
    ),
    RouteParameter::optional("title", RouteParameterKind::Text, "the title"),
    RouteParameter::optional("size", RouteParameterKind::Text, "pixels: 900x440"),
];

/// Everything that the route of pictures takes.
pub(crate) const PICTURE_PARAMETERS: &[RouteParameter] = &joined_parameters();

const fn joined_parameters() -> [RouteParameter; PICTURE_OPTIONS.len() + 2] {
    let mut all = [PICTURE; PICTURE_OPTIONS.len() + 2];
    all[1] = RUN;
    let mut at = 0;
    while at < PICTURE_OPTIONS.len() {
        all[at + 2] = PICTURE_OPTIONS[at];
        at += 1;
    }
    all
}

/// The names of what a picture takes beside its runs: options of `perflab plot`.
pub fn picture_option_names() -> impl Iterator<Item = &'static str> {
    PICTURE_OPTIONS.iter().map(|option| option.name)
}

const CASE: RouteParameter = RouteParameter::optional(
    "case",
    RouteParameterKind::Text,
    "the case, as `perflab guard` names it; needed where the metric is of several",
);

/// What a badge is made of.
pub(crate) const BADGE_PARAMETERS: &[RouteParameter] = &[
    RouteParameter::required(
        "study",
        RouteParameterKind::Text,
        "the study whose newest run is judged, by its title or file",
    ),
    RouteParameter::required("metric", RouteParameterKind::Text, "the metric"),
    CASE,
    HISTORY_FILTERS[0],
    HISTORY_FILTERS[1],
    HISTORY_FILTERS[2],
];

/// `/api/v1/pictures/{picture}`
pub(crate) fn send_picture(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    let name = request.path_part("picture");
    let kind = name.strip_suffix(".svg").filter(|kind| PICTURE_KINDS.contains(kind)).ok_or_else(|| {
        let names: Vec<String> = PICTURE_KINDS.iter().map(|kind| format!("{kind}.svg")).collect();
        RequestRefusal::not_found(format!("there is no picture `{name}`: there are {}", names.join(", ")))
    })?;
    let mut runs: Vec<String> = request.texts("run").map(str::to_owned).collect();
    if runs.is_empty() {
        runs.push("@latest".to_owned());
    }
    for run in &runs {
        find_runs(laboratory, run)?;
    }
    let options = PICTURE_OPTIONS.iter().flat_map(|option| {
        request.texts(option.name).map(|value| (option.name.to_owned(), value.to_owned()))
    });
    let of = PictureRequest { kind: kind.to_owned(), runs, options: options.collect() };
    let scene = laboratory.source.picture(&of)?;
    Ok(RouteAnswer::new(scene.to_svg(SceneSurface::Paper)))
}

/// `/api/v1/badge.svg`
pub(crate) fn send_badge(
    laboratory: &WebLaboratory,
    request: &RouteRequest,
) -> Result<RouteAnswer, RequestRefusal> {
    for name in ["study", "metric"] {
        request.required_text(name)?;
    }
    laboratory.refuse_missing_archive()?;
    let scene = laboratory.source.badge(&history_request(request)?, request.text("case"))?;
    Ok(RouteAnswer::new(scene.to_svg(SceneSurface::Paper)))
}
