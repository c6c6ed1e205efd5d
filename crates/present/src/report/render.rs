//! The page as one text.

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use perflab_analyze::MetricHistories;
use serde::Serialize;

use super::page::{self, PageView};
use super::{ReportData, ReportError, bundle, data, run};

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
    let page = page::page_view(input, history);
    let data = data::RunViewerData { runs: input.runs.iter().map(run::viewer_run).collect() };
    let filled = ReportPageValues {
        page: &page,
        policy: bundle::content_security_policy(),
        style: bundle::STYLE,
        script: bundle::SCRIPT,
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
pub(crate) fn page_templates() -> Result<Environment<'static>, ReportError> {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.add_filter("code", mark_code);
    for (name, text) in bundle::TEMPLATES {
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
