//! `hyperfine --export-json`: the time of every run of every command.

use indexmap::IndexMap;
use perflab_model::{Direction, Value as Parameter};
use serde_json::Value;

use super::super::feed::Feed;
use super::super::story::{Story, metric};
use super::super::took::{Read, Took};
use super::document::{number, text};
use super::{Document, Fault, left_out};

pub(super) fn looks(document: &Document) -> bool {
    document
        .list("results")
        .iter()
        .any(|result| result.get("command").is_some() && result.get("mean").is_some())
}

pub(super) fn read(document: &Document, story: &mut Story, took: &mut Took) -> Result<Vec<Feed>, Fault> {
    for result in document.list("results") {
        command(result, story, took);
    }
    took.note("means of user and system time are left out, as they are of no single run");
    Ok(Vec::new())
}

fn command(result: &Value, story: &mut Story, took: &mut Took) {
    let name = text(result, "command");
    let mut point = IndexMap::from([("command".to_owned(), Parameter::from(name))]);
    for (key, value) in result.get("parameters").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        point.insert(key.clone(), value.parse().map_or_else(|_| Parameter::Text(value), Parameter::Int));
    }
    let case = story.results.case("hyperfine", point);
    let time = story.results.metric(case, metric("time", "s", Direction::Lower, true));
    let Some(times) = result.get("times").and_then(Value::as_array) else {
        return left_out(took, 0, format!("`{name}` has no `times`: its mean alone is no sample"));
    };
    let codes = result.get("exit_codes").and_then(Value::as_array);
    for (place, value) in times.iter().enumerate() {
        let execution = story.results.execution(case, 0, None);
        let code = codes.and_then(|codes| codes.get(place)?.as_i64()).unwrap_or(0);
        match number(Some(value)) {
            Some(value) if code == 0 => {
                story.results.sample(execution, time, value, None);
                took.count(0, Read::Used);
            }
            Some(_) => {
                let reason = format!("run {place} of `{name}` ended with status {code}");
                story.results.failed(execution, &reason);
                left_out(took, 0, reason);
            }
            None => left_out(took, 0, format!("run {place} of `{name}` has a time that is no number")),
        }
    }
}
