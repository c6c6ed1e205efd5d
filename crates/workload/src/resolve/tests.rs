use perflab_model::study::Source;

use super::*;

const TOOL: &str = r#"
title = "a"
measures = "b"
homepage = "c"
licence = "MIT"
argv = ["tool"]
parameter.threads = { type = "integer", default = "2 * cpus", min = 1, max = 64, about = "" }
parameter.ratio = { type = "float", default = 0.5, min = 0, max = 1, about = "" }
parameter.size = { type = "size", default = "4KiB", max = "1GiB", about = "" }
parameter.time = { type = "duration", default = "1.5s", about = "" }
parameter.name = { type = "text", default = "{{ threads }}-way", about = "" }
parameter.mode = { type = "choice", default = "read", choices = ["read", "write", "4"], about = "" }
parameter.sync = { type = "boolean", default = false, about = "" }
metric = [{ name = "time", unit = "s", direction = "lower", time = "wall" }]
"#;

fn tool() -> Definition {
    Definition::read(&Source::new("tool.toml", TOOL)).unwrap_or_else(|error| panic!("{error}"))
}

fn scope() -> Scope {
    let mut scope = Scope::default();
    scope.set("cpus", Value::Int(4));
    scope.set("memory", Value::Int(1000));
    scope
}

fn resolve(given: &[(&str, Value)]) -> Result<IndexMap<String, Value>, Vec<Problem>> {
    let given = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    tool().resolve(&given, &scope())
}

fn one(name: &str, value: impl Into<Value>) -> Value {
    resolve(&[(name, value.into())]).unwrap()[name].clone()
}

fn complaint(name: &str, value: impl Into<Value>) -> String {
    let problems = resolve(&[(name, value.into())]).unwrap_err();
    let problem = &problems[0];
    format!("{}: {}; {}", problem.key, problem.message, problem.hint.as_deref().unwrap_or_default())
}

#[test]
fn defaults_are_filled_in_and_typed() {
    let values = resolve(&[]).unwrap();
    let expected = [
        ("threads", Value::Int(8)),
        ("ratio", Value::Float(0.5)),
        ("size", Value::Int(4096)),
        ("time", Value::Float(1.5)),
        ("name", Value::from("8-way")),
        ("mode", Value::from("read")),
        ("sync", Value::Bool(false)),
    ];
    let expected: IndexMap<String, Value> = expected.map(|(name, value)| (name.to_owned(), value)).into();
    assert_eq!(values, expected);
}

#[test]
fn texts_for_numbers_are_quantities_or_expressions() {
    assert_eq!(one("threads", "cpus / 2"), Value::Int(2));
    assert_eq!(one("size", "1MiB"), Value::Int(1 << 20));
    assert_eq!(one("size", "memory / 3"), Value::Int(333));
    assert_eq!(one("size", 7), Value::Int(7));
    assert_eq!(one("time", "250ms"), Value::Float(0.25));
    assert_eq!(one("time", 2), Value::Float(2.0));
    assert_eq!(one("mode", 4), Value::from("4"));
    assert_eq!(one("sync", "cpus > 2"), Value::Bool(true));
}

#[test]
fn what_does_not_fit_is_told_what_would() {
    assert_eq!(
        complaint("thread", 1),
        "thread: workload `tool` has no parameter `thread`; did you mean `threads`?"
    );
    assert_eq!(complaint("threads", 65), "threads: 65 is out of range; allowed: at most 64");
    assert_eq!(
        complaint("threads", "cpus / 3"),
        "threads: `cpus / 3` gives 1.3333333333333333, and a whole number is needed; write a whole number or an expression such as \"2 * cpus\""
    );
    assert_eq!(
        complaint("threads", Value::Bool(true)),
        "threads: `true` is a boolean, which is no integer; write a whole number or an expression such as \"2 * cpus\""
    );
    assert_eq!(
        complaint("threads", "2 * cpu"),
        "threads: `2 * cpu`: `cpu` is not known; did you mean `cpus`?; write a whole number or an expression such as \"2 * cpus\""
    );
    assert_eq!(complaint("size", "2GiB"), "size: 2.0 GiB is out of range; allowed: at most 1.0 GiB");
    assert_eq!(complaint("size", -1), "size: -1 is out of range; allowed: at least 0 B");
    assert_eq!(
        complaint("mode", "writ"),
        "mode: `writ` is not a choice; did you mean `write`? allowed: read, write, 4"
    );
    assert_eq!(complaint("sync", "maybe").split(';').next(), Some("sync: `maybe`: `maybe` is not known"));
    assert_eq!(
        complaint("name", "{{ nobody }}").split(';').next(),
        Some("name: `{{ nobody }}`: `nobody` is not known")
    );
}

#[test]
fn all_problems_come_at_once() {
    let problems =
        resolve(&[("nobody", 1.into()), ("ratio", 2.into()), ("time", "soon".into())]).unwrap_err();
    assert_eq!(
        problems.iter().map(|problem| problem.key.as_str()).collect::<Vec<_>>(),
        ["nobody", "ratio", "time"]
    );
}
