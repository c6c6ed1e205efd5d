//! The page as one text.

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use perflab_analyze::History;
use serde::Serialize;

use super::page::{self, Page};
use super::{ReportError, ReportInput, bundle, data, run};

#[derive(Serialize)]
struct Filled<'a> {
    page: &'a Page,
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
pub fn render(input: &ReportInput) -> Result<String, ReportError> {
    filled(input, None)
}

/// The same page with a section about the history of metrics, its newest run among the input's.
///
/// # Errors
///
/// As [`render`].
pub fn render_history(input: &ReportInput, history: &History) -> Result<String, ReportError> {
    filled(input, Some(history))
}

fn filled(input: &ReportInput, history: Option<&History>) -> Result<String, ReportError> {
    if input.runs.is_empty() {
        return Err(ReportError::NoRuns);
    }
    let page = page::page(input, history);
    let data = data::ReportData { runs: input.runs.iter().map(run::run).collect() };
    let filled = Filled {
        page: &page,
        policy: bundle::policy(),
        style: bundle::STYLE,
        script: bundle::SCRIPT,
        data: json(&data)?,
        flames: input.flames.as_ref().map(json).transpose()?.unwrap_or_default(),
    };
    let templates = templates()?;
    Ok(templates.get_template("report.html")?.render(Value::from(Serde(filled)))?)
}

/// JSON that no HTML parser takes for the end of its element.
pub(crate) fn json(data: &impl Serialize) -> Result<String, ReportError> {
    Ok(serde_json::to_string(data)?.replace('<', "\\u003c"))
}

/// The page's templates, by name.
pub(crate) fn templates() -> Result<Environment<'static>, ReportError> {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.add_filter("code", code);
    for (name, text) in bundle::TEMPLATES {
        templates.add_template(name, text)?;
    }
    Ok(templates)
}

/// What stands between a pair of backticks becomes code; everything is escaped.
fn code(text: String) -> Value {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if escaped.matches('`').count() % 2 == 1 {
        return Value::from_safe_string(escaped);
    }
    let part = |(at, part)| if at % 2 == 1 { format!("<code>{part}</code>") } else { String::from(part) };
    Value::from_safe_string(escaped.split('`').enumerate().map(part).collect())
}
