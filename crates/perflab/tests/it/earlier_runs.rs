//! Runs that earlier versions wrote stay readable, and say what they said: see `tests/data/earlier/README.md`.

use std::path::Path;

use serde_json::Value;

use crate::laboratory::Sandbox;

/// A recorded run, what is asked of it, and where the answer of that version lies.
const ANSWERS: &[(&str, &[&str], &str)] = &[
    ("monitored", &["show"], "show"),
    ("monitored", &["compare", "--by", "arenas"], "compare"),
    ("monitored", &["flame", "shares"], "flame-shares"),
    ("monitored", &["trace", "causes"], "trace-causes"),
    ("monitored", &["export", "--to", "json"], "export"),
    ("io", &["io", "show"], "io-show"),
];

fn recorded(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/earlier").join(name)
}

#[test]
fn runs_of_earlier_versions_say_what_they_said() {
    let sandbox = Sandbox::new();
    for (run, asked, answer) in ANSWERS {
        let file = recorded(&format!("{run}.perflab")).display().to_string();
        let mut arguments = asked.to_vec();
        arguments.extend([file.as_str()]);
        arguments.extend(if *answer == "export" { ["--output", "-"] } else { ["--format", "json"] });
        let printed = sandbox.run_successfully(&arguments).out;
        let expected = std::fs::read_to_string(recorded(&format!("expected/{answer}.json"))).unwrap();
        let (printed, expected) = (value_of(&printed), value_of(&expected));
        let printed: Vec<Value> =
            printed.into_iter().zip(&expected).map(|(one, was)| without_added_keys(one, was)).collect();
        assert_eq!(printed, expected, "{asked:?} of {run}");
    }
}

/// A document without the keys that later versions added.
fn without_added_keys(printed: Value, expected: &Value) -> Value {
    match (printed, expected) {
        (Value::Object(map), Value::Object(was)) => map
            .into_iter()
            .filter_map(|(key, value)| {
                let was = was.get(&key)?;
                Some((key, without_added_keys(value, was)))
            })
            .collect(),
        (Value::Array(list), Value::Array(was)) if list.len() == was.len() => {
            list.into_iter().zip(was).map(|(value, was)| without_added_keys(value, was)).collect()
        }
        (other, _) => other,
    }
}

/// The documents that were printed (one a case, from some), without what names the version that wrote them, and without
/// sentences.
fn value_of(json: &str) -> Vec<Value> {
    let documents = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    let mut values = documents.collect::<Result<Vec<_>, _>>().unwrap();
    assert!(!values.is_empty());
    for map in values.iter_mut().filter_map(Value::as_object_mut) {
        map.remove("writer");
        map.remove("notes");
    }
    values
}

/// Whole: a run that was packed without a monitor has no part that fails for want of one.
#[test]
fn reports_of_earlier_runs_are_whole() {
    let sandbox = Sandbox::new();
    for run in ["io", "monitored"] {
        let file = recorded(&format!("{run}.perflab")).display().to_string();
        sandbox.run_successfully(&["report", &file, "-o", "page.html"]);
        let page = std::fs::read_to_string(sandbox.path("page.html")).unwrap();
        assert!(!page.contains(" data-failed>"), "{run}");
    }
}

#[test]
fn every_cache_of_an_earlier_run_has_the_figures_it_had() {
    let file = recorded("monitored.perflab").display().to_string();
    let printed = Sandbox::new().run_successfully(&["slab", "show", &file, "--format", "csv"]).out;
    assert_eq!(printed, std::fs::read_to_string(recorded("expected/slab-show.csv")).unwrap());
}

#[test]
fn a_run_of_an_earlier_version_is_kept_and_compared_with_a_new_one() {
    let sandbox = Sandbox::new();
    let file = recorded("monitored.perflab").display().to_string();
    sandbox.run_successfully(&["import", &file]);
    sandbox.run_echo("new", 100);
    let listed = sandbox.run_successfully(&["list", "--format", "csv"]).out;
    assert_eq!(listed.lines().count(), 3, "{listed}");
    sandbox.run_successfully(&["report", "@latest"]);
}
