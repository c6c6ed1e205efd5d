use perflab_model::study::TomlSource;

use super::*;

const GOOD: &str = r#"title = "a"
measures = "b"
homepage = "https://example.org"
licence = "MIT"
argv = ["tool", "--threads={{ threads }}", { when = "fast", args = ["--fast"] }]
[parameter.threads]
type = "integer"
default = "2 * cpus"
min = 1
about = "threads"
[parameter.fast]
type = "boolean"
default = false
about = "fast"
[brief]
threads = 1
[[metric]]
name = "rate"
unit = "ops/s"
direction = "higher"
primary = true
regex = 'rate (?<value>\d+)'
"#;

fn definition_error_text(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    WorkloadDefinition::read(&TomlSource::new("w/tool.toml", GOOD.replace(from, to))).unwrap_err().to_string()
}

#[test]
fn a_good_definition_reads() {
    let definition = WorkloadDefinition::read(&TomlSource::new("w/tool.toml", GOOD)).unwrap();
    assert_eq!(definition.name, "tool");
    assert_eq!(definition.needs.programs, ["tool"]);
    assert_eq!(definition.metrics().len(), 1);
    assert!(!definition.is_built_in());
}

#[test]
fn an_unknown_key_gets_its_place_and_the_nearest_name() {
    let said = definition_error_text("licence =", "license =");
    assert_eq!(
        said,
        "w/tool.toml:4:1: `license`: the key `license` is not known here; did you mean `licence`?"
    );
    let said = definition_error_text("min = 1", "minimum = 1");
    assert!(said.starts_with("w/tool.toml:9:1: `parameter.threads.minimum`"), "{said}");
    let said = definition_error_text("unit = \"ops/s\"", "units = \"ops/s\"");
    assert!(said.contains("did you mean `unit`?"), "{said}");
}

#[test]
fn a_wrong_type_gets_its_place() {
    let said = definition_error_text("title = \"a\"", "title = 3");
    assert!(said.starts_with("w/tool.toml:1:9: `title`: invalid type"), "{said}");
    let said = definition_error_text("type = \"integer\"", "type = \"int\"");
    assert!(said.contains("did you mean `integer`?"), "{said}");
    let said = definition_error_text("args = [\"--fast\"]", "arg = [\"--fast\"]");
    assert!(said.contains("did you mean `args`?"), "{said}");
}

#[test]
fn rules_are_exactly_one_and_capture_a_value() {
    let said = definition_error_text("regex = 'rate (?<value>\\d+)'", "");
    assert!(said.contains("`metric[0]`: has no rule that finds it; write exactly one of"), "{said}");
    let said = definition_error_text("primary = true", "time = \"wall\"");
    assert!(said.contains("has more than one rule"), "{said}");
    let said = definition_error_text("(?<value>\\d+)", "(\\d+)");
    assert!(said.contains("captures nothing named `value`"), "{said}");
    let said = definition_error_text("(?<value>\\d+)", "(?<value>\\d+");
    assert!(said.contains("unclosed group"), "{said}");
    let said = definition_error_text("regex = 'rate (?<value>\\d+)'", "json = \"a/b\"");
    assert!(said.contains("is not a JSON pointer"), "{said}");
}

#[test]
fn templates_name_what_exists() {
    let said = definition_error_text("{{ threads }}", "{{ thread }}");
    assert!(
        said.contains("`argv[1]`: `thread` is no parameter and no name of the host; did you mean `threads`?"),
        "{said}"
    );
    let said = definition_error_text("{{ threads }}", "{{ threads");
    assert!(said.contains("argv[1]"), "{said}");
    let said = definition_error_text("when = \"fast\"", "when = \"fasst\"");
    assert!(said.contains("did you mean `fast`?"), "{said}");
}

#[test]
fn defaults_bounds_and_brief_values_fit_their_parameter() {
    let said = definition_error_text("default = \"2 * cpus\"", "default = 0");
    assert!(said.contains("`parameter.threads.default`: 0 is out of range; allowed: at least 1"), "{said}");
    let said = definition_error_text("min = 1", "min = \"few\"");
    assert!(said.contains("`few` is no bound of type integer"), "{said}");
    let said = definition_error_text("threads = 1\n[[", "thread = 1\n[[");
    assert!(
        said.contains("`brief.thread`: there is no parameter `thread`; did you mean `threads`?"),
        "{said}"
    );
    let said = definition_error_text("type = \"boolean\"", "type = \"choice\"");
    assert!(said.contains("list `choices`"), "{said}");
}

#[test]
fn a_script_takes_its_values_as_positions() {
    let said = definition_error_text("argv = [\"tool\",", "shell = true\nargv = [\"tool {{ threads }}\",");
    assert!(said.contains("`argv[0]`: a script takes no template; pass the value"), "{said}");
}

#[test]
fn metrics_and_argv_must_be_there() {
    let said = definition_error_text(
        "argv = [\"tool\", \"--threads={{ threads }}\", { when = \"fast\", args = [\"--fast\"] }]",
        "argv = []",
    );
    assert!(said.contains("`argv`: is empty"), "{said}");
    let metric = GOOD.split_once("[[metric]]").unwrap().1;
    let said = definition_error_text("[[metric]]", &format!("[[metric]]{metric}\n[[metric]]"));
    assert!(said.contains("`metric[1].name`: the metric `rate` stands here twice"), "{said}");
}

/// What is one's own needs no homepage and no licence; what ships has both.
#[test]
fn a_private_definition_says_what_it_does_and_no_more() {
    let text = "title = \"a\"\nmeasures = \"b\"\nargv = [\"true\"]\n[[metric]]\nname = \"time\"\nunit = \"s\"\n\
                direction = \"lower\"\ntime = \"wall\"\n";
    let definition = WorkloadDefinition::read(&TomlSource::new("w/own.toml", text)).unwrap();
    assert_eq!((&definition.homepage, &definition.licence), (&None, &None));
    let problems = WorkloadDefinition::read(&TomlSource::new("w/own.toml", "title = \"a\"")).unwrap_err();
    let said: Vec<&str> = problems.list.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(said, ["measures", "argv", "metric"].map(|key| format!("the key `{key}` is missing")));
    for shipped in crate::Catalogue::embedded().unwrap().iter() {
        assert!(shipped.homepage.is_some() && shipped.licence.is_some(), "{}", shipped.name);
    }
}
