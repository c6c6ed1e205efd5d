//! Pages of the laboratory's own (reports are of `present`): one style, one frame, everything escaped.

use axum::body::Bytes;
use jiff::tz::TimeZone;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use perflab_model::Nanos;
use perflab_present::report::{PAGE_STYLE, mark_code};
use serde::Serialize;

use crate::laboratory::WebLaboratory;
use crate::refusal::RequestRefusal;
use crate::route::{RouteAnswer, RouteRequest};

/// The policy of these pages: nothing from anywhere else, and nobody frames them.
pub(crate) const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Each template with its name.
const TEMPLATES: &[(&str, &str)] = &[
    ("frame.html", include_str!("../assets/frame.html")),
    ("boards.html", include_str!("../assets/boards.html")),
    ("runs.html", include_str!("../assets/runs.html")),
    ("notes.html", include_str!("../assets/notes.html")),
    ("refusal.html", include_str!("../assets/refusal.html")),
];

/// What the laboratory's pages have beside the style of reports.
const OWN_STYLE: &str = include_str!("../assets/laboratory.css");

/// Their script, built from `web/src/laboratory/`: all but writing works without it.
const SCRIPT: &str = include_str!("../assets/laboratory.js");

/// A time as pages show it.
pub(crate) fn format_minute(at: Nanos, zone: &TimeZone) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(at.0)).unwrap_or_default();
    at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// Fills a template.
pub(crate) fn render_page(template: &str, values: impl Serialize) -> Result<Bytes, RequestRefusal> {
    let refuse =
        |error: minijinja::Error| RequestRefusal::unexpected(format!("cannot make the page: {error}"));
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.add_filter("code", mark_code);
    for (name, text) in TEMPLATES {
        templates.add_template(name, text).map_err(refuse)?;
    }
    let text = templates.get_template(template).and_then(|page| page.render(Value::from(Serde(values))));
    Ok(text.map_err(refuse)?.into())
}

#[derive(Serialize)]
struct RefusalView<'a> {
    status: u16,
    reason: &'a str,
    sentence: &'a str,
}

/// A refusal for people.
pub(crate) fn render_refusal(refused: &RequestRefusal) -> Bytes {
    let view = RefusalView {
        status: refused.status.as_u16(),
        reason: refused.status.canonical_reason().unwrap_or("Refused"),
        sentence: &refused.sentence,
    };
    render_page("refusal.html", view).unwrap_or_else(|failed| failed.sentence.into())
}

/// `/assets/page.css`
pub(crate) fn send_style(_: &WebLaboratory, _: &RouteRequest) -> Result<RouteAnswer, RequestRefusal> {
    Ok(RouteAnswer::new([PAGE_STYLE, OWN_STYLE].concat()))
}

/// `/assets/laboratory.js`
pub(crate) fn send_script(_: &WebLaboratory, _: &RouteRequest) -> Result<RouteAnswer, RequestRefusal> {
    Ok(RouteAnswer::new(SCRIPT))
}
