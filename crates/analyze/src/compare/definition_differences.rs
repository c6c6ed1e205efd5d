//! In what two definitions of one workload differ, key by key.

use perflab_model::Manifest;
use serde_json::Value as Json;

use crate::compare::side_values::{RunValues, differing_keys};

/// A longer value is shown from where it differs.
const LONGEST: usize = 160;

/// So much of what is the same is shown before that.
const BEFORE: usize = 20;

/// A key of a definition with what two have under it, the baseline first.
pub(crate) type DefinitionDifference = (String, [Option<String>; 2]);

/// The keys in which the definitions of two digests, or beginnings of these, differ; none where a run does not have one of them.
pub(crate) fn definition_differences(runs: &[&Manifest], digests: [&str; 2]) -> Vec<DefinitionDifference> {
    let [Some(ours), Some(theirs)] = digests.map(|digest| find_parts(runs, digest)) else {
        return Vec::new();
    };
    let [ours, theirs] = [ours, theirs].map(|parts| {
        let mut found = Vec::new();
        collect_values("", parts, &mut found);
        found
    });
    let found = differing_keys([&[ours], &[theirs]], |_| true).into_iter();
    found.map(|(key, pair)| (key, shorten_pair(pair.map(|side| side.to_text())))).collect()
}

fn find_parts<'a>(runs: &[&'a Manifest], digest: &str) -> Option<&'a Json> {
    runs.iter().find_map(|run| {
        let mut known = run.plan.definitions.iter();
        let (uses, _) = known.find(|(_, whole)| whole.starts_with(digest))?;
        run.plan.definition_parts.get(uses)
    })
}

/// The values of a definition by their keys: `parameter.size.default`, `metric.speed.regex`.
fn collect_values(key: &str, value: &Json, found: &mut RunValues) {
    let below = |name: &str| match (key, name) {
        ("", "argv") => "command".to_owned(),
        ("", name) => name.to_owned(),
        _ => format!("{key}.{name}"),
    };
    match value {
        Json::Object(table) => {
            table.iter().for_each(|(name, value)| collect_values(&below(name), value, found));
        }
        Json::Array(list) if list.iter().any(Json::is_object) && key != "command" => {
            for (index, one) in list.iter().enumerate() {
                let name =
                    one.get("name").and_then(Json::as_str).map_or_else(|| index.to_string(), str::to_owned);
                collect_values(&below(&name), one, found);
            }
        }
        Json::Array(list) => {
            let words: Option<Vec<&str>> = list.iter().map(Json::as_str).collect();
            found.push((
                key.to_owned(),
                words.map_or_else(|| value.to_string(), |words| command_text(&words)),
            ));
        }
        Json::String(text) => found.push((key.to_owned(), text.clone())),
        other => found.push((key.to_owned(), other.to_string())),
    }
}

/// Words as a shell takes them; of a script for a shell, the script.
fn command_text(words: &[&str]) -> String {
    match words {
        [_, "-c", script] => (*script).to_owned(),
        // A word that cannot be quoted holds a zero byte.
        words => shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" ")),
    }
}

/// Of texts with several lines the first line that differs, and of long ones what differs.
fn shorten_pair(pair: [Option<String>; 2]) -> [Option<String>; 2] {
    let [Some(ours), Some(theirs)] = &pair else { return pair.map(|one| one.map(|text| cut_text(&text, 0))) };
    let (mut line, mut texts) = (None, [ours.as_str(), theirs.as_str()]);
    if texts.iter().any(|text| text.contains('\n')) {
        let first = (0..).find(|at| ours.lines().nth(*at) != theirs.lines().nth(*at)).unwrap_or_default();
        line = Some(first + 1);
        texts = texts.map(|text| text.lines().nth(first).unwrap_or_default());
    }
    let [ours, theirs] = texts;
    let same = ours.chars().zip(theirs.chars()).take_while(|(one, other)| one == other).count();
    texts.map(|text| {
        let cut = cut_text(text, same);
        Some(line.map_or_else(|| cut.clone(), |line| format!("line {line}: {cut}")))
    })
}

fn cut_text(text: &str, same: usize) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let start = same.saturating_sub(BEFORE);
    let begin = if start > 0 { "…" } else { "" };
    let shown: String = text.chars().skip(start).take(LONGEST).collect();
    let end = if text.chars().count() > start + LONGEST { "…" } else { "" };
    format!("{begin}{shown}{end}")
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::RunBuilder;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_is_named_by_its_key() {
        let run = |id: &str, digest: &str, parts: Json| {
            let mut run = RunBuilder::new(id).build_run(|_| Some(1.0)).manifest;
            run.plan.definitions.insert("w".into(), digest.into());
            run.plan.definition_parts.insert("w".into(), parts);
            run
        };
        let script = |last: &str| json!(["/bin/sh", "-c", format!("first\n{last}\nthird")]);
        let one = json!({
            "argv": script("one"), "setup": ["touch", "a b"], "metric": [{ "name": "speed", "regex": "x" }], "allow-exit": [1]
        });
        let other = json!({
            "argv": script("two"), "metric": [{ "name": "speed", "regex": "y" }], "allow-exit": [1]
        });
        let (one, other) = (run("01A", "abcd", one), run("01B", "ef", other));
        let text = |text: &str| Some(text.to_owned());
        let mut found = definition_differences(&[&one, &other], ["ab", "ef"]);
        found.sort();
        assert_eq!(
            found,
            [
                ("command".to_owned(), [text("line 2: one"), text("line 2: two")]),
                ("metric.speed.regex".to_owned(), [text("x"), text("y")]),
                ("setup".to_owned(), [text("touch 'a b'"), None]),
            ]
        );
        assert_eq!(definition_differences(&[&one, &other], ["ab", "unknown"]), []);
    }

    #[test]
    fn a_long_text_is_shown_where_it_differs() {
        let long = |end: &str| Some("x".repeat(300) + end);
        let found = shorten_pair([long("a"), long("b")]).map(Option::unwrap);
        assert!(found.iter().all(|text| text.chars().count() <= LONGEST + 2), "{found:?}");
        assert!(found[0].ends_with("xa") && found[1].ends_with("xb"), "{found:?}");
    }
}
