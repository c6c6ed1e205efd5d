use super::*;

const GOOD: &str = r#"
title = "pages"
[values]
half = "memory / 2"
[run]
iterations = 8
time-limit = "30s"
[workload.sweep]
use = "page-faults"
parameters = { size = "half" }
matrix = { threads = [1, 2] }
[factor.pages]
kind = "parameter"
levels = ["ordinary", "huge"]
[factor.caches]
kind = "drop-caches"
levels = [0, 3]
[factor.daemon]
kind = "commands"
levels = [{ name = "off" }, { name = "on", apply = ["true"], undo = ["true"] }]
[monitors]
vmstat = "100ms"
[metric.faults]
margin = "2%"
"#;

fn parse_error_text(text: &str) -> String {
    TomlSource::new("s.toml", text).parse_study().unwrap_err().to_string()
}

#[test]
fn a_good_study_reads() {
    let study = TomlSource::new("s.toml", GOOD).parse_study().unwrap();
    assert_eq!(study.run.iterations, 8);
    assert_eq!(study.run.warmup, 1);
    assert_eq!(study.factor["caches"].levels[1].name, "3");
    assert_eq!(study.factor["daemon"].levels[1].apply, ["true"]);
    assert_eq!(study.metric["faults"].margin_fraction(), Some(0.02));
}

#[test]
fn an_unknown_key_gets_the_nearest_name() {
    let text = GOOD.replace("iterations = 8", "iteratons = 8");
    assert_eq!(
        parse_error_text(&text),
        "s.toml:6:1: `run.iteratons`: the key `iteratons` is not known here; did you mean `iterations`?"
    );
}

#[test]
fn a_wrong_type_is_named_with_its_place() {
    let text = GOOD.replace("iterations = 8", "iterations = \"many\"");
    let said = parse_error_text(&text);
    assert!(said.starts_with("s.toml:6:14: `run.iterations`: invalid type: string \"many\""), "{said}");
}

#[test]
fn a_number_without_its_unit_is_shown_with_one() {
    let text = GOOD.replace("\"2%\"", "2");
    let said = parse_error_text(&text);
    assert!(
        said.ends_with(
            "`metric.faults.margin`: invalid type: integer `2`, expected a text; write `margin = \"2%\"`"
        ),
        "{said}"
    );
    let said = parse_error_text(&GOOD.replace("vmstat = \"100ms\"", "vmstat = 100"));
    assert!(said.ends_with("expected a text; write `vmstat = \"100ms\"`"), "{said}");
}

#[test]
fn all_that_an_empty_study_lacks_is_told_at_once() {
    let problems = TomlSource::new("s.toml", "").parse_study().unwrap_err();
    let said: Vec<&str> = problems.list.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(said, ["the key `title` is missing", "the key `workload` is missing"]);
}

#[test]
fn a_level_twice_is_refused() {
    let text = GOOD.replace("\"huge\"", "\"ordinary\"");
    let said = parse_error_text(&text);
    assert!(
        said.starts_with("s.toml:14:23: `factor.pages.levels[1]`: the level `ordinary` stands here twice"),
        "{said}"
    );
}

#[test]
fn every_problem_is_reported_at_once() {
    let text =
        GOOD.replace("[0, 3]", "[0, 7]").replace("2%", "two").replace("iterations = 8", "iterations = 0");
    let problems = TomlSource::new("s.toml", text).parse_study().unwrap_err();
    let keys: Vec<&str> = problems.list.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["run.iterations", "factor.caches.levels[1]", "metric.faults.margin"]);
    assert!(problems.list.iter().all(|problem| problem.span.is_some()));
}

#[test]
fn text_that_is_not_toml_is_placed() {
    let said = parse_error_text("title = \nworkload = 3");
    assert!(said.starts_with("s.toml:1:"), "{said}");
}

#[test]
fn a_table_named_twice_is_placed() {
    let said = parse_error_text(&format!("{GOOD}[factor.pages]\nkind = \"label\"\nlevels = [1]\n"));
    assert!(said.contains("duplicate key"), "{said}");
}

#[test]
fn the_schema_names_every_table() {
    let schema = study_json_schema();
    for table in ["run", "workload", "factor", "monitors", "metric", "disk"] {
        assert!(schema["properties"][table].is_object(), "{table}");
    }
}

#[test]
fn targets_are_checked_with_what_refers_to_them() {
    let targets = "[target.guest]\nkind = \"process\"\ncount = 2\n[factor.guests]\nkind = \"targets\"\nlevels = [1, 2]\n";
    let study = TomlSource::new("s.toml", format!("{GOOD}{targets}")).parse_study().unwrap();
    assert_eq!((study.target_count(), study.run.boots), (2, 1));
    let said = parse_error_text(&format!("{GOOD}{}", targets.replace("[1, 2]", "[1, 3]")));
    assert!(said.contains("`3` is no number of targets; from 1 to 2"), "{said}");
    let said = parse_error_text(&format!("{GOOD}{}", targets.replace("process", "ssh")));
    assert!(said.contains("needs `address`"), "{said}");
    let said =
        parse_error_text(&GOOD.replace("kind = \"drop-caches\"", "kind = \"drop-caches\"\non = \"guest\""));
    assert!(said.contains("the study has no targets"), "{said}");
    let said = parse_error_text(&GOOD.replace("iterations = 8", "iterations = 8\nboots = 2"));
    assert!(said.contains("there is nothing to start anew"), "{said}");
}

#[test]
fn a_study_without_targets_is_stored_without_a_word_of_them() {
    let study = TomlSource::new("s.toml", GOOD).parse_study().unwrap();
    let stored = serde_json::to_string(&study).unwrap();
    assert!(!["target", "boots", "lost"].iter().any(|word| stored.contains(word)), "{stored}");
}

#[test]
fn a_factor_over_the_disk_needs_a_disk_and_a_key_that_varies() {
    let text = GOOD
        .replace("kind = \"drop-caches\"\nlevels = [0, 3]", "kind = \"disk\"\nlevels = [\"ext4\", \"ext9\"]");
    let said = parse_error_text(&text);
    assert!(
        said.contains("no disk to make afresh") && said.contains("`caches` of a disk cannot be varied"),
        "{said}"
    );
    let text = text.replace("[factor.caches]", "[factor.filesystem]");
    assert!(parse_error_text(&text).contains("`ext9` is not known here"), "{}", parse_error_text(&text));
}
