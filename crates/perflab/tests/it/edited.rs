//! Studies that were edited between two runs (review D2, D4, D7, D26).

use crate::laboratory::Sandbox;

fn parse_json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn an_edited_study_gets_no_verdict_and_the_edit_is_named_first() {
    let laboratory = Sandbox::new();
    laboratory.run_echo_edited("before", 1000);
    laboratory.run_echo_edited("after", 500);
    let found =
        parse_json(&laboratory.run_successfully(&["compare", "before", "after", "--format", "json"]).out);
    assert_eq!(found["rows"][0]["verdict"], "unclear");
    assert_eq!(found["rows"][0]["withheld"], "echo: speed: 1000 -> 500");
    assert_eq!(found["warnings"][0]["kind"], "different-case");
    let meant = parse_json(
        &laboratory.run_successfully(&["compare", "before", "after", "--across", "--format", "json"]).out,
    );
    assert_eq!(
        (&meant["rows"][0]["verdict"], &meant["rows"][0]["withheld"]),
        (&"differs".into(), &serde_json::Value::Null)
    );
    assert_eq!(laboratory.run(&["compare", "before", "after", "--fail-if", "worse"]).code, Some(7));
    assert_eq!(
        laboratory.run(&["compare", "before", "after", "--across", "--fail-on-differs"]).code,
        Some(5)
    );
    let differences =
        parse_json(&laboratory.run_successfully(&["diff", "before", "after", "--format", "json"]).out);
    assert_eq!(differences[0]["what"], "echo: speed", "{differences}");
}

#[test]
fn an_edited_definition_is_another_case() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("before", 1000);
    let file = laboratory.path("workloads/echo.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("# a comment\n{}", text.replace("a test", "still a test"))).unwrap();
    laboratory.run_echo("same", 500);
    std::fs::write(&file, text.replace("echo speed", "true; echo speed")).unwrap();
    laboratory.run_echo("other", 500);
    let first = |with: &str| {
        parse_json(&laboratory.run_successfully(&["compare", "before", with, "--format", "json"]).out)["rows"]
            [0]
        .clone()
    };
    assert_eq!(first("same")["verdict"], "differs");
    assert!(first("other")["withheld"].as_str().unwrap().starts_with("echo: command: "));
}

#[test]
fn the_guard_is_not_green_for_an_edited_study_nor_for_another_one() {
    let laboratory = Sandbox::new();
    for speed in [1000, 1003, 998, 1001, 997, 1002] {
        laboratory.run_echo("nightly", speed);
    }
    assert_eq!(laboratory.run(&["guard"]).code, Some(0));
    laboratory.run_echo_edited("nightly", 500);
    assert_eq!(laboratory.run(&["guard"]).code, Some(7));
    laboratory.write_workload("other", "", "echo speed 5");
    let study =
        laboratory.write_study("other.toml", "run = { iterations = 3, warmup = 0 }\n[workload.other]");
    laboratory.run_successfully(&["run", &study, "--quiet"]);
    assert_eq!(laboratory.run(&["guard"]).code, Some(7));
    let unknown = laboratory.run(&["guard", "--study", "nosuch"]);
    assert_eq!(unknown.code, Some(2));
    laboratory.run_echo("nightly", 1000);
    assert_eq!(laboratory.run(&["guard", "--study", "echo.toml"]).code, Some(0));
}

#[test]
fn shares_need_their_sign_and_a_confidence_may_have_it() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("before", 1000);
    laboratory.run_echo("after", 990);
    let code =
        |arguments: &[&str]| laboratory.run(&[&["compare", "before", "after"], arguments].concat()).code;
    assert_eq!(code(&["--confidence", "95%"]), Some(0));
    assert_eq!(code(&["--confidence", "0.95"]), Some(2));
    assert_eq!(code(&["--confidence", "40%"]), Some(2));
    assert_eq!(code(&["--margin", "3%"]), Some(0));
    assert_eq!(code(&["--margin", "3"]), Some(2));
    assert_eq!(code(&["--margin", "0.03"]), Some(2));
    assert_eq!(code(&["--fail-if", "worse:3"]), Some(2));
    assert_eq!(code(&["--fail-if", "worse:3%"]), Some(0));
}
