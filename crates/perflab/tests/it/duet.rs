//! `order = "duet"`: two levels at once, each on half of the CPUs, where one level against itself says that this tells more.

use std::collections::BTreeMap;
use std::fs;

use crate::laboratory::Sandbox;

/// What is printed is the same on both halves and at any time; where it ran is a metric that decides nothing.
const STEADY: &str = r#"
[run]
order = "duet"
iterations = 4
warmup = 0
seed = 3
[workload.steady]
command = ["sh", "-c", "sleep 0.2; echo value {{ value }}; grep Cpus_allowed_list /proc/self/status"]
parameters = { value = 10 }
[[workload.steady.metric]]
name = "value"
unit = "points"
direction = "higher"
primary = true
regex = 'value (?<value>\d+)'
[[workload.steady.metric]]
name = "first-cpu"
unit = "CPUs"
direction = "lower"
regex = 'Cpus_allowed_list:\s(?<value>\d+)'
[factor.value]
kind = "parameter"
levels = [10, 12]
"#;

#[test]
fn two_levels_run_at_once_and_swap_halves() {
    if perflab_workload::list_allowed_cpus().len() < 2 {
        return; // one CPU has no halves; the refusal is the topology's own test
    }
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("s.toml", STEADY);
    laboratory.run_successfully(&["run", &study, "--no-report"]);
    let archive = perflab_archive::Archive::open(&laboratory.path("archive")).unwrap();
    let run = archive.find_runs("@latest").unwrap().remove(0);
    let check = run.manifest().unwrap().duet.expect("what was measured before is kept");
    assert_eq!((check.together, check.alone), (vec![[10.0; 2]; 6], vec![[10.0; 2]; 6]));
    assert_eq!((check.together_spread, check.alone_spread), (0.0, 0.0));
    // Half of the iterations of each level were on either half.
    let mut halves: BTreeMap<(String, u64), u32> = BTreeMap::new();
    for (level, cpu) in laboratory.samples_by_level("value", "first-cpu") {
        *halves.entry((level, cpu as u64)).or_default() += 1;
    }
    assert_eq!(halves.values().copied().collect::<Vec<_>>(), [2; 4], "{halves:?}");
    // Those of a block were there at once.
    let mut times: BTreeMap<u64, Vec<[u64; 2]>> = BTreeMap::new();
    for line in fs::read_to_string(laboratory.only_run().join("journal.jsonl")).unwrap().lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let ended = &event["what"]["iteration-ended"];
        let Some(slot) = ended["slot"].as_u64() else { continue };
        let time = ["start", "end"].map(|key| ended[key].as_u64().unwrap());
        times.entry(slot / 2).or_default().push(time);
    }
    assert_eq!(times.len(), 4);
    for pair in times.values() {
        let [[first_start, first_end], [second_start, second_end]] = pair[..] else { panic!("{times:?}") };
        assert!(first_start < second_end && second_start < first_end, "{times:?}");
    }
    let row = &laboratory.run_json(&["compare", "@latest", "--by", "value"])["rows"][0];
    assert_eq!(row["metric"], "value");
    assert!((row["change"]["value"].as_f64().unwrap() - 0.2).abs() < 1e-9, "{row}");
}

#[test]
fn halves_that_are_no_equals_are_refused_with_the_figures() {
    if perflab_workload::list_allowed_cpus().len() < 2 {
        return;
    }
    let laboratory = Sandbox::new();
    // The value depends on where it is printed.
    let script = "list=$(sed -n 's/Cpus_allowed_list:[^0-9]*//p' /proc/self/status); \
                  echo value $((${list%%[,-]*} + {{ value }}))";
    let study = STEADY.replace("sleep 0.2; echo value {{ value }}", script);
    let study = laboratory.write_study("s.toml", &study);
    let said = laboratory.run(&["run", &study, "--no-report"]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    insta::assert_snapshot!(said.stable_err(), @"error: run.order: `steady value=10` against itself: two at once differ by 9.53 % (correlation 0.00; the first half is 9.53 % lower), two in turn by 0.00 %; leave `order` out: iterations in turn, in randomised blocks, tell more on this machine");
    assert_eq!(laboratory.run_json(&["list"]), serde_json::json!([]), "nothing was recorded");
}

/// What is printed is the time: the same on both halves, and another with each iteration.
#[test]
fn a_duet_of_one_variant_stands_on_the_noise_card_and_is_proposed() {
    if perflab_workload::list_allowed_cpus().len() < 2 {
        return;
    }
    let laboratory = Sandbox::new();
    laboratory.write_workload(
        "clock",
        "",
        "sleep 0.05; date +%s%N | awk '{ print \"speed \" 1000 + substr($1, 9, 8) / 1e5 }'",
    );
    let study =
        laboratory.write_study("clock.toml", "run = { iterations = 8, warmup = 0 }\n[workload.clock]");
    let plan = ["plan", "--noise-card", "--detect", "1%"];
    let designs = || -> Vec<String> {
        let proposed = laboratory.run_json(&plan);
        proposed.as_array().unwrap().iter().map(|row| row["design"].as_str().unwrap().to_owned()).collect()
    };
    laboratory.run_successfully(&["noise", &study, "--iterations", "8", "--quiet"]);
    assert_eq!(designs(), ["interleaved"]);
    let card = laboratory.run_json(&["noise", &study, "--iterations", "8", "--duet", "--quiet"]);
    assert!(card[0]["σ duet"].is_number() && card[0]["σ iterations"].is_number(), "{card}");
    assert_eq!(designs(), ["interleaved", "duet"]);
    // Another measurement in turn keeps what the halves showed.
    laboratory.run_successfully(&["noise", &study, "--iterations", "8", "--quiet"]);
    assert_eq!(designs(), ["interleaved", "duet", "runs"]);
    // What a duet cannot do is refused before anything runs.
    let targets = laboratory.write_study("t.toml", "[workload.clock]\n[target.here]\nkind = \"process\"");
    assert_eq!(laboratory.run(&["noise", &targets, "--duet"]).code, Some(2));
}
