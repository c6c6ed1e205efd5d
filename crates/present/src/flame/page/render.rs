//! The viewer's page as one text.

use minijinja::value::{Serde, Value};
use serde::Serialize;

use super::data::FlameViewerData;
use crate::report::{ReportError, bundle, page_json, page_templates};

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
        policy: bundle::content_security_policy(),
        style: bundle::STYLE,
        script: bundle::SCRIPT,
        flames: page_json(picture)?,
    };
    Ok(page_templates()?.get_template("flame.html")?.render(Value::from(Serde(filled)))?)
}
