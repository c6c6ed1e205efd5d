//! `hyperfine --export-json`: the time of every run of every command.

use std::collections::HashSet;

use indexmap::IndexMap;
use perflab_formats::reading_parser::LineOutcome;
use perflab_model::{Direction, Scalar};
use serde_json::Value;

use crate::document_import::{count_failed, count_unusable, open_document, varied_names};
use crate::import_report::FileReport;
use crate::imported_run::{RunMetadata, imported_metric};
use crate::importer::{Importer, Recognition};
use crate::input_document::{DocumentError, InputDocument, finite_json_number, json_text};
use crate::log_stream::LogStream;

/// Output of hyperfine --export-json.
pub(crate) const IMPORTER: Importer = Importer {
    name: "hyperfine",
    about: "output of hyperfine --export-json",
    knows_boots: false,
    recognises: Recognition::File(|input| input.json_document().is_some_and(is_hyperfine_document)),
    open: |path, options| open_document("hyperfine", path, options, read_hyperfine_document),
};

fn is_hyperfine_document(document: &InputDocument) -> bool {
    document.list_member("results").iter().any(|result| {
        result.get("command").is_some() && ["mean", "times"].iter().any(|name| result.get(name).is_some())
    })
}

/// The longest command in bytes: the kernel starts none of more words, unless a stack's limit was raised for it.
const LONGEST_COMMAND: usize = 2 << 20;

/// Signs of a command that are shown in a sentence.
const SHOWN: usize = 200;

/// Parameters of all commands together: hyperfine has one for each option `-P` or `-L`, and each becomes a column.
const MOST_PARAMETERS: usize = 100;

fn read_hyperfine_document(
    document: &InputDocument,
    metadata: &mut RunMetadata,
    report: &mut FileReport,
) -> Result<Vec<LogStream>, DocumentError> {
    let results = document.list_member("results");
    let mut names: HashSet<String> = HashSet::new();
    for (number, result) in results.iter().enumerate() {
        let length = json_text(result, "command").len();
        names.extend(result_parameters(result).into_iter().map(|(name, _)| name));
        let count = names.len();
        if length > LONGEST_COMMAND {
            let reason = format!(
                "command {number} has {length} bytes, and the longest that is started {LONGEST_COMMAND}"
            );
            return Err(DocumentError::new(reason));
        }
        if count > MOST_PARAMETERS {
            let reason = format!(
                "up to command {number} there are {count} parameters, and {MOST_PARAMETERS} are the most that are read"
            );
            return Err(DocumentError::new(reason));
        }
    }
    for (result, place) in results.iter().zip(hyperfine_cases(results)) {
        read_hyperfine_result(result, place, metadata, report);
    }
    report.add_note("means of user and system time are left out, as they are of no single run");
    Ok(Vec::new())
}

/// Where a result stands: what it is a case of, and the levels of what was varied.
struct HyperfineCase {
    point: IndexMap<String, Scalar>,
    levels: Vec<(String, String)>,
}

/// Commands and parameters of which there are several are what was varied: factors. hyperfine fills parameters into its
/// commands; where its values are taken out of them again, commands that differ in nothing else are one.
fn hyperfine_cases(results: &[Value]) -> Vec<HyperfineCase> {
    let command = |result| json_text(result, "command").to_owned();
    let templates: Vec<String> = results.iter().map(command_template).collect();
    let keys: HashSet<(&String, Vec<(String, String)>)> =
        templates.iter().zip(results.iter().map(result_parameters)).collect();
    // Two commands that would fall together are told apart by their own text.
    let commands =
        if keys.len() == results.len() { templates } else { results.iter().map(command).collect() };
    // Where parameters alone tell results apart, a command beside them would leave nothing to compare.
    let points: HashSet<Vec<(String, String)>> = results.iter().map(result_parameters).collect();
    let commands = if points.len() == results.len() {
        vec![common_beginning(&commands); results.len()]
    } else {
        commands
    };
    let is_varied = commands.iter().collect::<HashSet<_>>().len() > 1;
    let varied = varied_names(results.iter().flat_map(result_parameters), results.len(), String::is_empty);
    let place = |(result, command): (&Value, String)| {
        let (mut point, mut levels) = (IndexMap::new(), Vec::new());
        match is_varied {
            true => levels.push(("command".to_owned(), command)),
            false => drop(point.insert("command".to_owned(), Scalar::from(command.as_str()))),
        }
        for (name, value) in result_parameters(result) {
            match varied.contains(&name) {
                true => levels.push((name, value)),
                false => drop(point.insert(name, to_parameter(value))),
            }
        }
        HyperfineCase { point, levels }
    };
    results.iter().zip(commands).map(place).collect()
}

/// What commands have in common at their beginning: all of it, where they are one.
fn common_beginning(commands: &[String]) -> String {
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

fn to_parameter(value: String) -> Scalar {
    value.parse().map_or_else(|_| Scalar::Text(value), Scalar::Int)
}

/// The parameters of a result, as text.
fn result_parameters(result: &Value) -> Vec<(String, String)> {
    let all = result.get("parameters").and_then(Value::as_object).into_iter().flatten();
    all.map(|(key, value)| (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect()
}

/// A command with its parameters' names in the place of their values, where these stand as words.
fn command_template(result: &Value) -> String {
    result_parameters(result).into_iter().fold(
        json_text(result, "command").to_owned(),
        |command, (name, value)| {
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
        },
    )
}

fn read_hyperfine_result(
    result: &Value,
    place: HyperfineCase,
    metadata: &mut RunMetadata,
    report: &mut FileReport,
) {
    let name: String = json_text(result, "command").chars().take(SHOWN).collect();
    let levels: Vec<(&str, &str)> =
        place.levels.iter().map(|(factor, level)| (factor.as_str(), level.as_str())).collect();
    let case = metadata.results.find_or_add_case_at("hyperfine", place.point, &levels);
    let time =
        metadata.results.find_or_add_metric(case, imported_metric("time", "s", Direction::Lower, true));
    let Some(times) = result.get("times").and_then(Value::as_array) else {
        return count_unusable(report, 0, format!("`{name}` has no `times`: its mean alone is no sample"));
    };
    let codes = result.get("exit_codes").and_then(Value::as_array);
    for (place, value) in times.iter().enumerate() {
        let execution = metadata.results.next_execution(case, 0, None);
        let failure = codes.and_then(|codes| failed_exit_text(codes.get(place)?));
        match finite_json_number(Some(value)) {
            Some(value) if value < 0.0 => {
                count_unusable(report, 0, format!("run {place} of `{name}` has a time below zero: {value} s"))
            }
            Some(value) if failure.is_none() => {
                metadata.results.add_sample(execution, time, value, None);
                report.count_row(0, LineOutcome::Used);
            }
            Some(_) => {
                let reason = format!("run {place} of `{name}` {}", failure.unwrap_or_default());
                metadata.results.mark_failed(execution, &reason);
                count_failed(report, 0, reason);
            }
            None => {
                count_unusable(report, 0, format!("run {place} of `{name}` has a time that is no number"))
            }
        }
    }
}

/// How a run ended that failed; hyperfine writes `null` where a signal ended it.
fn failed_exit_text(code: &Value) -> Option<String> {
    match code.as_i64() {
        Some(0) => None,
        Some(code) => Some(format!("ended with status {code}")),
        None => Some("was ended by a signal".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_command_that_nobody_started_is_refused() {
        let result = |command: &str, parameters: &str| {
            let text = format!(
                r#"{{"results":[{{"command":"{command}","times":[1.0],"parameters":{{{parameters}}}}}]}}"#
            );
            let mut metadata = RunMetadata::default();
            let read = read_hyperfine_document(
                &InputDocument::from_text(&text),
                &mut metadata,
                &mut FileReport::new(Path::new("f"), "samples"),
            );
            read.map(drop).map_err(|fault| fault.reason)
        };
        let long = result(&"x".repeat(3 << 20), "").unwrap_err();
        insta::assert_snapshot!(long, @"command 0 has 3145728 bytes, and the longest that is started 2097152");
        let many: Vec<String> = (0..101).map(|n| format!(r#""p{n}":"{n}""#)).collect();
        let many = result("c", &many.join(",")).unwrap_err();
        insta::assert_snapshot!(many, @"up to command 0 there are 101 parameters, and 100 are the most that are read");
        // A long name in the place of each short value: not filled in again and again.
        let long_name = format!(r#""{}":"1""#, "n".repeat(100_000));
        result(&"1 ".repeat(100_000), &long_name).unwrap();
    }
}
