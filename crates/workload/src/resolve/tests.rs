use perflab_model::study::TomlSource;

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

fn read_tool_definition() -> WorkloadDefinition {
    WorkloadDefinition::read(&TomlSource::new("tool.toml", TOOL)).unwrap_or_else(|error| panic!("{error}"))
}

fn host_scope() -> ExpressionScope {
    let mut scope = ExpressionScope::default();
    scope.set("cpus", Scalar::Int(4));
    scope.set("memory", Scalar::Int(1000));
    scope
}

fn resolve_given(given: &[(&str, Scalar)]) -> Result<IndexMap<String, Scalar>, Vec<Problem>> {
    let given = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    read_tool_definition().resolve_parameters(&given, &host_scope())
}

fn resolve_one(name: &str, value: impl Into<Scalar>) -> Scalar {
    resolve_given(&[(name, value.into())]).unwrap()[name].clone()
}

fn resolution_problem_text(name: &str, value: impl Into<Scalar>) -> String {
    let problems = resolve_given(&[(name, value.into())]).unwrap_err();
    let problem = &problems[0];
    format!("{}: {}; {}", problem.key, problem.message, problem.hint.as_deref().unwrap_or_default())
}

#[test]
fn defaults_are_filled_in_and_typed() {
    let values = resolve_given(&[]).unwrap();
    let expected = [
        ("threads", Scalar::Int(8)),
        ("ratio", Scalar::Float(0.5)),
        ("size", Scalar::Int(4096)),
        ("time", Scalar::Float(1.5)),
        ("name", Scalar::from("8-way")),
        ("mode", Scalar::from("read")),
        ("sync", Scalar::Bool(false)),
    ];
    let expected: IndexMap<String, Scalar> = expected.map(|(name, value)| (name.to_owned(), value)).into();
    assert_eq!(values, expected);
}

#[test]
fn texts_for_numbers_are_quantities_or_expressions() {
    assert_eq!(resolve_one("threads", "cpus / 2"), Scalar::Int(2));
    assert_eq!(resolve_one("size", "1MiB"), Scalar::Int(1 << 20));
    assert_eq!(resolve_one("size", "memory / 3"), Scalar::Int(333));
    assert_eq!(resolve_one("size", 7), Scalar::Int(7));
    assert_eq!(resolve_one("time", "250ms"), Scalar::Float(0.25));
    assert_eq!(resolve_one("time", 2), Scalar::Float(2.0));
    assert_eq!(resolve_one("mode", 4), Scalar::from("4"));
    assert_eq!(resolve_one("sync", "cpus > 2"), Scalar::Bool(true));
}

#[test]
fn what_does_not_fit_is_told_what_would() {
    assert_eq!(
        resolution_problem_text("thread", 1),
        "thread: workload `tool` has no parameter `thread`; did you mean `threads`?"
    );
    assert_eq!(resolution_problem_text("threads", 65), "threads: 65 is out of range; allowed: at most 64");
    assert_eq!(
        resolution_problem_text("threads", "cpus / 3"),
        "threads: `cpus / 3` gives 1.3333333333333333, and a whole number is needed; write a whole number or an expression such as \"2 * cpus\""
    );
    assert_eq!(
        resolution_problem_text("threads", Scalar::Bool(true)),
        "threads: `true` is a boolean, which is no integer; write a whole number or an expression such as \"2 * cpus\""
    );
    assert_eq!(
        resolution_problem_text("threads", "2 * cpu"),
        "threads: `2 * cpu`: `cpu` is not known; did you mean `cpus`?; write a whole number or an expression such as \"2 * cpus\""
    );
    assert_eq!(
        resolution_problem_text("size", "2GiB"),
        "size: 2.0 GiB is out of range; allowed: at most 1.0 GiB"
    );
    assert_eq!(resolution_problem_text("size", -1), "size: -1 is out of range; allowed: at least 0 B");
    assert_eq!(
        resolution_problem_text("mode", "writ"),
        "mode: `writ` is not a choice; did you mean `write`? allowed: read, write, 4"
    );
    assert_eq!(
        resolution_problem_text("sync", "maybe").split(';').next(),
        Some("sync: `maybe`: `maybe` is not known")
    );
    assert_eq!(
        resolution_problem_text("name", "{{ nobody }}").split(';').next(),
        Some("name: `{{ nobody }}`: `nobody` is not known")
    );
}

#[test]
fn all_problems_come_at_once() {
    let problems =
        resolve_given(&[("nobody", 1.into()), ("ratio", 2.into()), ("time", "soon".into())]).unwrap_err();
    assert_eq!(
        problems.iter().map(|problem| problem.key.as_str()).collect::<Vec<_>>(),
        ["nobody", "ratio", "time"]
    );
}
