//! Runs that end once they are decided: what stopped them is what is shown.

use serde_json::Value;

use crate::laboratory::Sandbox;

/// A workload whose speed scatters by 2 % around its parameter, the same way in every laboratory.
fn scattering_laboratory() -> Sandbox {
    let laboratory = Sandbox::new();
    let count = laboratory.path("count");
    laboratory.write_workload(
        "scatter",
        "[parameter.speed]\ntype = \"integer\"\ndefault = 1000\nabout = \"what it says\"",
        &format!(
            "n=$(cat {count} 2>/dev/null || echo 0); echo $((n + 1)) > {count}; \
             echo speed $(({{{{ speed }}}} + (n * 7919 + n * n * 31) % 41 - 20))",
            count = count.display()
        ),
    );
    laboratory
}

/// Runs two levels of speed until they are decided; their row of the comparison.
fn decide(laboratory: &Sandbox, speeds: [u32; 2], until: &str) -> Value {
    let text = format!(
        "run = {{ until = \"{until}\", warmup = 0 }}\n[workload.scatter]\n\
         [factor.speed]\nkind = \"parameter\"\nlevels = {speeds:?}\n"
    );
    let study = laboratory.write_study("decide.toml", &text);
    laboratory.run_successfully(&["run", &study, "--seed", "7", "--quiet", "--no-report"]);
    let mut shown = laboratory.run_json(&["compare", "@latest", "--by", "speed"]);
    assert_eq!(shown["runs"][0]["until"], format!("{until}"), "{shown}");
    shown["rows"][0].take()
}

fn blocks(row: &Value) -> u64 {
    row["baseline"]["n"].as_u64().unwrap()
}

#[test]
fn a_run_ends_once_it_is_decided_and_shows_what_ended_it() {
    let laboratory = scattering_laboratory();
    let row = decide(&laboratory, [1000, 1100], "decided, at least 6, at most 80");
    assert_eq!((&row["verdict"], &row["method"]["always-valid"]), (&"better".into(), &true.into()), "{row}");
    assert!(row["change"]["interval"]["low"].as_f64() > Some(0.0), "{row}");
    assert!((8..80).contains(&blocks(&row)), "{row}");
    let row = decide(&laboratory, [1000, 1001], "decided, at least 6, at most 80");
    assert_eq!(row["verdict"], "same", "{row}");
    let narrow = &row["change"]["narrow"];
    assert!(narrow["low"].as_f64() > Some(-0.03) && narrow["high"].as_f64() < Some(0.03), "{row}");
    assert!((8..80).contains(&blocks(&row)), "{row}");
}

#[test]
fn a_run_that_is_not_decided_ends_with_its_last_block() {
    let laboratory = scattering_laboratory();
    let row = decide(&laboratory, [1000, 1030], "decided, at least 6, at most 8");
    assert_eq!((&row["verdict"], blocks(&row)), (&"unclear".into(), 8), "{row}");
    // As many blocks that were not looked at have a narrower interval.
    let text = "run = { iterations = 8, warmup = 0 }\n[workload.scatter]\n[factor.speed]\nkind = \"parameter\"\n\
                levels = [1000, 1100]\n";
    let study = laboratory.write_study("fixed.toml", text);
    laboratory.run_successfully(&["run", &study, "--seed", "7", "--quiet", "--no-report"]);
    let fixed = laboratory.run_json(&["compare", "@latest", "--by", "speed"]);
    assert_eq!(fixed["rows"][0]["method"]["always-valid"], Value::Null, "{fixed}");
    assert_eq!(fixed["runs"][0]["until"], Value::Null, "{fixed}");
}

#[test]
fn the_command_line_gives_a_rule_in_place_of_the_studys() {
    let laboratory = scattering_laboratory();
    let text = "run = { iterations = 3, warmup = 0 }\n[workload.scatter]\n[factor.speed]\nkind = \"parameter\"\n\
                levels = [1000, 1100]\n";
    let study = laboratory.write_study("s.toml", text);
    let run =
        |arguments: &[&str]| laboratory.run(&[&["run", &study, "--no-report"], arguments].concat()).code;
    assert_eq!(run(&["--until", "decided"]), Some(0));
    let shown = laboratory.run_json(&["compare", "@latest", "--by", "speed"]);
    assert!(blocks(&shown["rows"][0]) >= 8, "{shown}");
    assert_eq!(run(&["--until", "decided", "--iterations", "3"]), Some(2));
    assert_eq!(run(&["--until", "significant"]), Some(2));
    // One level is left, and there is nothing to decide.
    assert_eq!(run(&["--until", "decided", "--set", "speed=1000"]), Some(2));
}

/// Of failures, too, enough is known once chance does not explain them; a side that never gives a value is given up.
#[test]
fn a_side_that_fails_decides() {
    let laboratory = Sandbox::new();
    let marker = laboratory.path("failed");
    laboratory.write_workload(
        "fails",
        "[parameter.code]\ntype = \"integer\"\ndefault = 0\nabout = \"its exit code\"",
        &format!(
            "echo speed 100; [ {{{{ code }}}} = 1 ] && [ ! -e {marker} ] && touch {marker} && exit 0; exit {{{{ code }}}}",
            marker = marker.display()
        ),
    );
    let run = |levels: [u32; 2]| {
        let text = format!(
            "run = {{ until = \"decided, at most 80\", warmup = 0 }}\n[workload.fails]\n[factor.code]\n\
             kind = \"parameter\"\nlevels = {levels:?}\n"
        );
        let study = laboratory.write_study("s.toml", &text);
        assert_eq!(laboratory.run(&["run", &study, "--quiet", "--no-report"]).code, Some(4));
    };
    run([0, 1]);
    let shown = laboratory.run_json(&["compare", "@latest", "--by", "code"]);
    let row = &shown["rows"][0];
    assert_eq!((&row["verdict"], &row["basis"]), (&"worse".into(), &"failures".into()), "{row}");
    assert!((6..80).contains(&blocks(row)), "{row}");
    run([0, 2]);
    let shown = laboratory.run_json(&["show", "@latest"]);
    assert!(shown[0]["n"].as_u64() < Some(80), "{shown}");
}

#[test]
fn what_does_not_go_with_it_is_refused() {
    let laboratory = scattering_laboratory();
    let code = |rest: &str| {
        let study = laboratory.write_study("s.toml", rest);
        laboratory.run(&["study", "check", &study]).code
    };
    let factor = "[workload.scatter]\n[factor.speed]\nkind = \"parameter\"\nlevels = [1000, 1100]\n";
    assert_eq!(code(&format!("run = {{ until = \"decided, at most 80\" }}\n{factor}")), Some(0));
    assert_eq!(code("run = { until = \"decided, at most 80\" }\n[workload.scatter]\n"), Some(2));
    for run in ["order = \"sequential\"", "layout = 4"] {
        assert_eq!(
            code(&format!("run = {{ until = \"decided, at most 80\", {run} }}\n{factor}")),
            Some(2),
            "{run}"
        );
    }
}
