//! `kind = "placement"` and lists from expressions: where a workload runs, and sweeps that follow the machine.

use crate::laboratory::Sandbox;

/// nproc(1) counts the CPUs that it may use.
const COUNTING: &str = r#"
[run]
iterations = 2
[workload.count]
command = "echo cpus $(nproc)"
[[workload.count.metric]]
name = "cpus"
unit = "CPUs"
direction = "higher"
primary = true
regex = 'cpus (?<value>\d+)'
[factor.place]
kind = "placement"
levels = ["any", "one-cpu"]
"#;

#[test]
fn a_workload_runs_where_its_level_says() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("s.toml", COUNTING);
    laboratory.run_successfully(&["run", &study, "--no-report"]);
    let all = perflab_workload::list_allowed_cpus().len() as f64;
    let counted = laboratory.samples_by_level("place", "cpus");
    assert_eq!(counted.len(), 4);
    for (level, cpus) in counted {
        assert_eq!(cpus, if level == "any" { all } else { 1.0 }, "{level}");
    }
}

#[test]
fn a_place_that_the_machine_does_not_have_is_refused_before_anything_runs() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("s.toml", &COUNTING.replace("\"one-cpu\"", "\"cpus=1023\""));
    let said = laboratory.run(&["run", &study]);
    assert_eq!(said.code, Some(3));
    insta::assert_snapshot!(said.err, @"error: factor `place`, level `cpus=1023`: CPU 1023 is not online, or this process may not use it; leave the level out, or name CPUs and nodes of this machine: cpus=0-3 memory=bind:0");
    let study = laboratory.write_study("s.toml", &COUNTING.replace("\"one-cpu\"", "\"near\""));
    let said = laboratory.run(&["study", "check", &study]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stable_err(), @"error: /tmp/.TMP/s.toml:15:18: `factor.place.levels[1]`: `near` is no placement: `near` is not known; any, one-cpu, siblings, one-per-core, same-cache, cross-cache, same-node, cross-node or cpus=0-3,8; for memory also memory=local, interleave, bind:0 or preferred:0");
}

#[test]
fn a_workload_is_in_one_place() {
    let laboratory = Sandbox::new();
    let second = "[factor.again]\nkind = \"placement\"\nlevels = [\"any\", \"cpus=0\"]\n";
    let study = laboratory.write_study("s.toml", &format!("{COUNTING}{second}"));
    let said = laboratory.run(&["study", "check", &study]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stable_err(), @r#"error: /tmp/.TMP/s.toml:16:9: `factor.again`: places what the factor `place` places already; make them one factor: levels = ["siblings memory=local", …]"#);
}

#[test]
fn a_list_may_be_an_expression() {
    let laboratory = Sandbox::new();
    let text = "[run]\niterations = 1\n[workload.w]\ncommand = \"true {{ n }}\"\n\
                matrix = { n = \"powers(1, 6)\" }\n[factor.m]\nkind = \"environment\"\nlevels = \"steps(1, 9, 3)\"\n";
    let study = laboratory.write_study("s.toml", text);
    let count_cases = |more: &[&str]| {
        let expanded = laboratory.run_json(&[&["study", "expand", &study], more].concat());
        expanded.as_array().unwrap().iter().filter(|slot| slot["block"] == "0").count()
    };
    assert_eq!(count_cases(&[]), 4 * 3);
    assert_eq!(count_cases(&["--set", "m=5"]), 4);
    let study = laboratory.write_study("s.toml", &text.replace("steps(1, 9, 3)", "steps(1, 9)"));
    let said = laboratory.run(&["study", "check", &study]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stable_err(), @"error: /tmp/.TMP/s.toml:9:1: `factor.m.levels`: `steps(1, 9)`: missing argument");
}
