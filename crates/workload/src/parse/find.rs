//! Every place in an output that a rule points at, as text.

use serde_json::Value as Json;

use crate::definition::ExtractionRule;

/// All finds in order; an error where the output is not in the rule's format.
pub(super) fn find_texts(rule: &ExtractionRule, text: &str) -> Result<Vec<String>, String> {
    match rule {
        ExtractionRule::Regex(regex) => Ok(find_captures(regex, text)),
        ExtractionRule::Json(pointers) => find_in_json(pointers, text),
        ExtractionRule::Csv { column, separator } => find_in_csv(column, *separator, text),
        ExtractionRule::Key { key, separator } => Ok(find_key_values(key, separator, text)),
        ExtractionRule::Wall => Ok(Vec::new()),
    }
}

fn find_captures(regex: &regex::Regex, text: &str) -> Vec<String> {
    let found = regex.captures_iter(text).filter_map(|captures| captures.name("value"));
    found.map(|value| value.as_str().to_owned()).collect()
}

/// The first JSON document, whatever stands before and behind it: some tools greet first.
fn find_in_json(pointers: &[String], text: &str) -> Result<Vec<String>, String> {
    let document = find_json_document(text)?;
    let found = pointers.iter().filter_map(|pointer| document.pointer(pointer));
    Ok(found
        .map(|value| match value {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        })
        .collect())
}

fn find_json_document(text: &str) -> Result<Json, String> {
    // A greeting may hold brackets of its own, so every line that begins like JSON gets its chance.
    let mut offset = 0;
    let mut reason = "it holds no JSON".to_owned();
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with(['{', '[']) {
            let rest = text.get(offset..).unwrap_or_default();
            match serde_json::Deserializer::from_str(rest).into_iter::<Json>().next() {
                Some(Ok(document)) => return Ok(document),
                Some(Err(error)) => reason = error.to_string(),
                None => {}
            }
        }
        offset += line.len();
    }
    Err(reason)
}

fn find_in_csv(column: &str, separator: u8, text: &str) -> Result<Vec<String>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| error.to_string())?;
    let Some(index) = headers.iter().position(|name| name == column) else { return Ok(Vec::new()) };
    let rows: Result<Vec<csv::StringRecord>, _> = reader.records().collect();
    let rows = rows.map_err(|error| error.to_string())?;
    Ok(rows.iter().filter_map(|row| row.get(index)).map(str::to_owned).collect())
}

fn find_key_values(key: &str, separator: &str, text: &str) -> Vec<String> {
    let pairs = text.lines().filter_map(|line| line.split_once(separator));
    pairs.filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned()).collect()
}
