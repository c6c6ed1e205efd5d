//! The viewer's page as one text.

use minijinja::value::{Serde, Value};
use serde::Serialize;

use super::data::Picture;
use crate::report::{ReportError, bundle, page_json, templates};

#[derive(Serialize)]
struct Filled<'a> {
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
pub fn page(writer: &str, picture: &Picture) -> Result<String, ReportError> {
    let filled = Filled {
        title: &picture.title,
        writer,
        policy: bundle::policy(),
        style: bundle::STYLE,
        script: bundle::SCRIPT,
        flames: page_json(picture)?,
    };
    Ok(templates()?.get_template("flame.html")?.render(Value::from(Serde(filled)))?)
}
