//! The single-file report: one HTML page that works offline, with or without JavaScript.
//!
//! Its sections in their order, the page and its policy, and the conclusions of a run. What can be read with JavaScript
//! off (verdicts, interval plots, facts, plan) is rendered here; what needs a pointer (dots, timelines, filter) is
//! drawn by the bundle under `assets/`, built from `web/` and committed.
//!
//! The page's policy allows exactly that script and style, by hash: nothing that a study's or a metric's name smuggles
//! in can run.

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use perflab_analyze::MetricHistories;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::flame::viewer::FlameViewerData;
use crate::run_overview::{self, PageView};
use crate::run_viewer;
use crate::section::{ReportData, ReportError};

#[derive(Serialize)]
struct ReportPageValues<'a> {
    page: &'a PageView,
    policy: String,
    style: &'a str,
    script: &'a str,
    data: String,
    /// The viewer's data; empty where nothing was profiled.
    flames: String,
}

/// One HTML file: readable without JavaScript, without a network, on a phone and on paper.
///
/// # Errors
///
/// Without a run; and where page or data cannot be written, which would be a mistake of ours.
pub fn render_report(input: &ReportData) -> Result<String, ReportError> {
    fill_report_page(input, None)
}

/// The same page with a section about the history of metrics, its newest run among the input's.
///
/// # Errors
///
/// As [`render_report`].
pub fn render_report_with_history(
    input: &ReportData,
    history: &MetricHistories,
) -> Result<String, ReportError> {
    fill_report_page(input, Some(history))
}

fn fill_report_page(input: &ReportData, history: Option<&MetricHistories>) -> Result<String, ReportError> {
    if input.runs.is_empty() {
        return Err(ReportError::NoRuns);
    }
    let page = run_overview::page_view(input, history);
    let data = run_viewer::RunViewerData { runs: input.runs.iter().map(run_viewer::viewer_run).collect() };
    let filled = ReportPageValues {
        page: &page,
        policy: content_security_policy(),
        style: STYLE,
        script: SCRIPT,
        data: embed_json(&data)?,
        flames: input.flames.as_ref().map(embed_json).transpose()?.unwrap_or_default(),
    };
    let templates = page_templates()?;
    Ok(templates.get_template("report.html")?.render(Value::from(Serde(filled)))?)
}

/// JSON that no HTML parser takes for the end of its element.
pub(crate) fn embed_json(data: &impl Serialize) -> Result<String, ReportError> {
    Ok(serde_json::to_string(data)?.replace('<', "\\u003c"))
}

/// The page's templates, by name.
fn page_templates() -> Result<Environment<'static>, ReportError> {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.add_filter("code", mark_code);
    for (name, text) in TEMPLATES {
        templates.add_template(name, text)?;
    }
    Ok(templates)
}

/// What stands between a pair of backticks becomes code; everything is escaped.
fn mark_code(text: String) -> Value {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if escaped.matches('`').count() % 2 == 1 {
        return Value::from_safe_string(escaped);
    }
    let part = |(at, part)| if at % 2 == 1 { format!("<code>{part}</code>") } else { String::from(part) };
    Value::from_safe_string(escaped.split('`').enumerate().map(part).collect())
}

/// The front end: one script without imports.
const SCRIPT: &str = include_str!("../assets/report.js");

/// Its style sheet.
const STYLE: &str = include_str!("../assets/report.css");

/// The page's template and its parts, by name.
const TEMPLATES: &[(&str, &str)] = &[
    ("report.html", include_str!("../assets/report.html")),
    ("comparison.html", include_str!("../assets/comparison.html")),
    ("runs.html", include_str!("../assets/runs.html")),
    ("history.html", include_str!("../assets/history.html")),
    ("slab.html", include_str!("../assets/slab.html")),
    ("flame.html", include_str!("../assets/flame.html")),
    ("flame_section.html", include_str!("../assets/flame_section.html")),
    ("startup.html", include_str!("../assets/startup.html")),
    ("fairness.html", include_str!("../assets/fairness.html")),
    ("trace.html", include_str!("../assets/trace.html")),
];

/// The content security policy: nothing from anywhere, no style attributes, no script but ours.
fn content_security_policy() -> String {
    let (script, style) = (hash_source(SCRIPT), hash_source(STYLE));
    format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; img-src data:; \
         base-uri 'none'; form-action 'none'"
    )
}

fn hash_source(text: &str) -> String {
    encode_base64(&Sha256::digest(text.as_bytes()))
}

/// RFC 4648, section 4.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |group: u32, at: u32| {
        let sextet = (group >> (18 - 6 * at)) & 63;
        DIGITS.get(sextet as usize).map_or('=', |digit| char::from(*digit))
    };
    let four = |chunk: &[u8]| {
        let group =
            (0..3).fold(0, |group, at| (group << 8) | chunk.get(at).map_or(0, |byte| u32::from(*byte)));
        (0..4).map(|at| if at as usize > chunk.len() { '=' } else { digit(group, at) }).collect::<String>()
    };
    bytes.chunks(3).map(four).collect()
}

#[derive(Serialize)]
struct FlamePageValues<'a> {
    title: &'a str,
    writer: &'a str,
    policy: String,
    style: &'a str,
    script: &'a str,
    flames: String,
}

/// One HTML file that asks nothing of any network.
///
/// # Errors
///
/// Where page or data cannot be written, which would be a mistake of ours.
pub fn render_flame_page(writer: &str, picture: &FlameViewerData) -> Result<String, ReportError> {
    let filled = FlamePageValues {
        title: &picture.title,
        writer,
        policy: content_security_policy(),
        style: STYLE,
        script: SCRIPT,
        flames: embed_json(picture)?,
    };
    Ok(page_templates()?.get_template("flame.html")?.render(Value::from(Serde(filled)))?)
}

#[cfg(test)]
mod tests {
    use super::render_report;
    use super::*;
    use crate::section::{ReportData, ReportError};

    #[test]
    fn base64_gives_the_vectors_of_rfc_4648() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ];
        for (plain, coded) in vectors {
            assert_eq!(encode_base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn nothing_in_the_bundle_ends_its_own_element() {
        assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--"));
        assert!(!STYLE.contains("</style"));
    }

    #[test]
    fn code_stays_in_its_budget() {
        assert!(SCRIPT.len() + STYLE.len() <= 150_000, "{} bytes", SCRIPT.len() + STYLE.len());
    }

    #[test]
    fn a_report_of_nothing_is_refused() {
        let input = ReportData { title: "t".into(), ..ReportData::default() };
        assert!(matches!(render_report(&input), Err(ReportError::NoRuns)));
    }
}
