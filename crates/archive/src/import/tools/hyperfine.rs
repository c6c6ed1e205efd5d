//! `hyperfine --export-json`: the time of every run of every command.

use std::collections::HashSet;

use indexmap::IndexMap;
use perflab_model::{Direction, Value as Parameter};
use serde_json::Value;

use super::super::feed::Feed;
use super::super::story::{Story, metric};
use super::super::took::{Read, Took};
use super::document::{number, text};
use super::{Document, Fault, left_out, varied_names};

pub(super) fn looks(document: &Document) -> bool {
    document.list("results").iter().any(|result| {
        result.get("command").is_some() && ["mean", "times"].iter().any(|name| result.get(name).is_some())
    })
}

/// The longest command in bytes: the kernel starts none of more words, unless a stack's limit was raised for it.
const LONGEST_COMMAND: usize = 2 << 20;
/// Signs of a command that are shown in a sentence.
const SHOWN: usize = 200;
/// Parameters of all commands together: hyperfine has one for each option `-P` or `-L`, and each becomes a column.
const MOST_PARAMETERS: usize = 100;

pub(super) fn read(document: &Document, story: &mut Story, took: &mut Took) -> Result<Vec<Feed>, Fault> {
    let results = document.list("results");
    let mut names: HashSet<String> = HashSet::new();
    for (number, result) in results.iter().enumerate() {
        let length = text(result, "command").len();
        names.extend(parameters(result).into_iter().map(|(name, _)| name));
        let count = names.len();
        if length > LONGEST_COMMAND {
            let reason = format!(
                "command {number} has {length} bytes, and the longest that is started {LONGEST_COMMAND}"
            );
            return Err(Fault::new(reason));
        }
        if count > MOST_PARAMETERS {
            let reason = format!(
                "up to command {number} there are {count} parameters, and {MOST_PARAMETERS} are the most that are read"
            );
            return Err(Fault::new(reason));
        }
    }
    for (result, place) in results.iter().zip(places(results)) {
        command(result, place, story, took);
    }
    took.note("means of user and system time are left out, as they are of no single run");
    Ok(Vec::new())
}

/// Where a result stands: what it is a case of, and the levels of what was varied.
struct Place {
    point: IndexMap<String, Parameter>,
    levels: Vec<(String, String)>,
}

/// Commands and parameters of which there are several are what was varied: factors. hyperfine fills parameters into its
/// commands; where its values are taken out of them again, commands that differ in nothing else are one.
fn places(results: &[Value]) -> Vec<Place> {
    let command = |result| text(result, "command").to_owned();
    let templates: Vec<String> = results.iter().map(template).collect();
    let keys: HashSet<(&String, Vec<(String, String)>)> =
        templates.iter().zip(results.iter().map(parameters)).collect();
    // Two commands that would fall together are told apart by their own text.
    let commands =
        if keys.len() == results.len() { templates } else { results.iter().map(command).collect() };
    // Where parameters alone tell results apart, a command beside them would leave nothing to compare.
    let points: HashSet<Vec<(String, String)>> = results.iter().map(parameters).collect();
    let commands =
        if points.len() == results.len() { vec![common(&commands); results.len()] } else { commands };
    let is_varied = commands.iter().collect::<HashSet<_>>().len() > 1;
    let varied = varied_names(results.iter().flat_map(parameters), results.len(), String::is_empty);
    let place = |(result, command): (&Value, String)| {
        let (mut point, mut levels) = (IndexMap::new(), Vec::new());
        match is_varied {
            true => levels.push(("command".to_owned(), command)),
            false => drop(point.insert("command".to_owned(), Parameter::from(command.as_str()))),
        }
        for (name, value) in parameters(result) {
            match varied.contains(&name) {
                true => levels.push((name, value)),
                false => drop(point.insert(name, parameter(value))),
            }
        }
        Place { point, levels }
    };
    results.iter().zip(commands).map(place).collect()
}

/// What commands have in common at their beginning: all of it, where they are one.
fn common(commands: &[String]) -> String {
    let Some((first, rest)) = commands.split_first() else { return String::new() };
    let alike =
        |other: &String| first.char_indices().zip(other.chars()).take_while(|((_, a), b)| a == b).count();
    match rest.iter().map(alike).min() {
        Some(count) if rest.iter().any(|other| other != first) => {
            first.chars().take(count).chain(['…']).collect()
        }
        _ => first.clone(),
    }
}

fn parameter(value: String) -> Parameter {
    value.parse().map_or_else(|_| Parameter::Text(value), Parameter::Int)
}

/// The parameters of a result, as text.
fn parameters(result: &Value) -> Vec<(String, String)> {
    let all = result.get("parameters").and_then(Value::as_object).into_iter().flatten();
    all.map(|(key, value)| (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect()
}

/// A command with its parameters' names in the place of their values, where these stand as words.
fn template(result: &Value) -> String {
    parameters(result).into_iter().fold(text(result, "command").to_owned(), |command, (name, value)| {
        let is_end = |sign: Option<char>| sign.is_none_or(|sign| !sign.is_alphanumeric());
        let (mut out, mut rest) = (String::new(), command.as_str());
        while let Some(at) = rest.find(&value).filter(|_| !value.is_empty()) {
            let (before, after) =
                (rest.get(..at).unwrap_or_default(), rest.get(at + value.len()..).unwrap_or_default());
            let is_word = is_end(before.chars().next_back().or(out.chars().next_back()))
                && is_end(after.chars().next());
            out += before;
            match is_word {
                true => out.extend(["{", name.as_str(), "}"]),
                false => out += &value,
            }
            rest = after;
            // Long names in the place of short values would grow without end.
            if out.len() > 2 * LONGEST_COMMAND {
                break;
            }
        }
        out + rest
    })
}

fn command(result: &Value, place: Place, story: &mut Story, took: &mut Took) {
    let name: String = text(result, "command").chars().take(SHOWN).collect();
    let levels: Vec<(&str, &str)> =
        place.levels.iter().map(|(factor, level)| (factor.as_str(), level.as_str())).collect();
    let case = story.results.case_at("hyperfine", place.point, &levels);
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
