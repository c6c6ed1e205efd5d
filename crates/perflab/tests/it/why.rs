//! `why`: what goes with a change, and what it says where there is little to go by.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::laboratory::{Sandbox, is_root, skip_test};

/// A run of two levels in blocks: `more` holds 60 MB in memory that it never had, page by page.
fn run_faulting(laboratory: &Sandbox, monitors: &str) {
    let study = format!(
        "run = {{ iterations = 10, warmup = 0 }}\n[workload.hold]\nshell = \"sh\"\n\
         command = \"head -c $HELD /dev/zero | tail -c $HELD > /dev/null\"\n\
         [factor.held]\nkind = \"environment\"\nkey = \"HELD\"\nlevels = [\"1\", \"60000000\"]\n{monitors}"
    );
    let study = laboratory.write_study("hold.toml", &study);
    laboratory.run_successfully(&["run", &study, "--label", "held", "--quiet", "--no-report"]);
}

fn series_of(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["series"].as_str().unwrap()).collect()
}

const MONITORS: &str = "[monitors]\nvmstat = \"edges\"\nstat = \"edges\"\n";

#[test]
fn a_change_is_explained_by_what_its_runs_recorded() {
    let laboratory = Sandbox::new();
    run_faulting(&laboratory, MONITORS);
    let found = laboratory.run_json(&["why", "held", "--by", "held"]);
    assert_eq!(found["rows"][0]["verdict"], "worse", "{found:#}");
    let explanation = &found["explanation"];
    assert_eq!(explanation["unit"], "s");
    let suspects = series_of(&explanation["suspects"]);
    assert!(suspects.contains(&"minor-faults"), "{explanation:#}");
    let whole = explanation["change"]["value"].as_f64().unwrap().abs();
    for suspect in explanation["suspects"].as_array().unwrap() {
        assert!(suspect["account"]["at_most"].as_f64().is_none_or(|most| most <= whole * (1.0 + 1e-9)));
        assert!(suspect["difference"]["adjusted_p"].as_f64().unwrap() <= 0.05);
        // What would test it can be typed: its study is found, its factor understood.
        let test = suspect["test"].as_str().unwrap();
        assert!(test.contains("hold.toml"), "{test}");
    }
    // Beneath the row of a comparison stands the first of them, where chance would seldom make it.
    let compared = laboratory.run_json(&["compare", "held", "--by", "held"]);
    let row = compared["rows"].as_array().unwrap().iter().find(|row| row["primary"] == true).unwrap();
    let first = &explanation["suspects"][0];
    // On a busy machine none may carry half of the change.
    let carries_half = |suspect: &Value| {
        let most = suspect["account"]["at_most"].as_f64().unwrap_or(whole);
        let carried = suspect["account"]["carries"]["value"].as_f64();
        carried.map_or(most, |carried| carried.abs().min(most)) >= 0.5 * whole
    };
    let is_carried = explanation["suspects"].as_array().unwrap().iter().any(carries_half);
    if first["difference"]["adjusted_p"].as_f64().unwrap() > 0.01 || !is_carried {
        assert!(row["suspect"].is_null(), "{row:#}");
    } else {
        assert_eq!(row["suspect"]["cause"], first["cause"], "{row:#}");
        assert_eq!(row["suspect"]["carries"].is_null(), first["account"]["carries"].is_null(), "{row:#}");
        let carried = row["suspect"]["carries"].as_f64().or(row["suspect"]["at_most"].as_f64());
        let change = row["suspect"]["change"].as_f64().unwrap();
        assert!(carried.is_none_or(|carried| carried <= change), "{row:#}");
    }
    // The same in the other formats, with another confidence.
    let csv = laboratory.run_successfully(&["why", "held", "--format", "csv"]).out;
    assert_eq!(csv.lines().count(), suspects.len() + 1);
    let narrow = laboratory.run_json(&["why", "held", "--confidence", "90%"]);
    let width = |found: &Value| {
        let change = &found["explanation"]["change"];
        change["high"].as_f64().unwrap() - change["low"].as_f64().unwrap()
    };
    assert!(width(&narrow) < width(&found));
    let text = laboratory.run_successfully(&["why", "held"]).out;
    assert!(text.lines().count() <= 10 && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    // The figures of a suspect are printed by the command that it names: pairs, and the means that stand in the answer.
    let faults =
        explanation["suspects"].as_array().unwrap().iter().find(|one| one["series"] == "minor-faults");
    let faults = faults.unwrap();
    let command = shlex::split(faults["shown_by"].as_str().unwrap()).unwrap();
    let words: Vec<&str> = command.iter().skip(1).map(String::as_str).collect();
    let figures = laboratory.run_json(&words);
    let rows = figures["rows"].as_array().unwrap();
    let mean =
        rows.iter().map(|row| row["candidate_series"].as_f64().unwrap()).sum::<f64>() / rows.len() as f64;
    assert_eq!((rows.len(), figures["paired"].as_bool()), (10, Some(true)));
    assert!((mean - faults["after"].as_f64().unwrap()).abs() < 1e-6 * mean);
    let csv = laboratory.run_successfully(&[&words[..], &["--format", "csv"]].concat()).out;
    assert_eq!(csv.lines().count(), 11);
    assert_eq!(laboratory.run(&["why", "held", "--series", "nothing"]).code, Some(2));
}

/// Held by who varies settings of the machine: laboratories do not see one another's, and the second to begin would put back what the
/// first had set.
fn settings_lock() -> MutexGuard<'static, ()> {
    static SETTINGS: Mutex<()> = Mutex::new(());
    SETTINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What stood on a command line stands in the commands of an answer, so that they can be pasted.
#[test]
fn commands_of_a_bench_are_typed_again() {
    let _settings = settings_lock();
    let laboratory = Sandbox::new();
    let [less, more] = [
        "head -c 1 /dev/zero | tail -c 1 >/dev/null",
        "head -c 60000000 /dev/zero | tail -c 60000000 >/dev/null",
    ];
    laboratory.run_successfully(&["bench", "-r", "8", "--label", "b", "--quiet", less, more]);
    let found = laboratory.run_json(&["why", "b"]);
    let explanation = &found["explanation"];
    let suspects = explanation["suspects"].as_array().unwrap();
    assert!(!suspects.is_empty(), "{found:#}");
    for suspect in suspects {
        let words = shlex::split(suspect["test"].as_str().unwrap()).unwrap();
        assert_eq!(words.last().map(String::as_str), Some(more), "{suspect:#}");
        let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        let said = laboratory.run(&[&["--quiet"], &words[..]].concat());
        assert_ne!(said.code, Some(2), "{suspect:#}: {}", said.err);
    }
}

/// The commands of an answer vary what the run varied, and measure: none fails for want of a variable, or varies one thing twice.
#[test]
fn commands_of_what_was_varied_can_be_run() {
    let _settings = settings_lock();
    let laboratory = Sandbox::new();
    let hold = "head -c $HELD /dev/zero | tail -c $HELD > /dev/null";
    let varied = "environment:HELD=1,60000000";
    let words =
        ["run", "--vary", varied, "--iterations", "8", "--label", "v", "--quiet", "--no-report", "--", hold];
    laboratory.run_successfully(&words);
    let listed = "head -c {n} /dev/zero | tail -c {n} > /dev/null";
    let words = ["bench", "-L", "n", "1,60000000", "-r", "8", "-w", "0", "--label", "l", "--quiet", listed];
    laboratory.run_successfully(&words);
    for label in ["v", "l"] {
        let explanation = laboratory.run_json(&["why", label])["explanation"].clone();
        let suspects = explanation["suspects"].as_array().unwrap().iter().map(|one| &one["test"]);
        let advice = explanation["to_record"].as_array().unwrap().iter().map(|one| &one["command"]);
        let commands: Vec<&str> = suspects.chain(advice).map(|one| one.as_str().unwrap()).collect();
        assert!(!commands.is_empty(), "{explanation:#}");
        for command in commands {
            let words = shlex::split(command).unwrap();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let [_, words @ ..] = &words[..] else { panic!("{command}") };
            let said = laboratory.run(&[&["--quiet"], words].concat());
            // This machine may lack a tracepoint, or root.
            assert!(matches!(said.code, Some(0 | 3)), "{command}: {:?} {}", said.code, said.err);
            if said.code == Some(0) {
                let subject = if label == "v" { "HELD" } else { "n" };
                let compared = laboratory.run_json(&["compare", "@latest", "--by", subject]);
                assert!(compared["rows"][0]["verdict"].is_string(), "{command}");
            }
        }
    }
}

/// A limit that the study sets is what was varied, and throttling what it acts through.
#[test]
fn a_quota_is_named_as_what_was_varied() {
    let laboratory = Sandbox::new();
    let study = "run = { iterations = 10, warmup = 0 }\n[workload.spin]\nshell = \"sh\"\n\
         command = \"i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done\"\n\
         [factor.quota]\nkind = \"setting\"\nkey = \"cpu-max\"\nlevels = [\"none\", \"10%\"]\n\
         [monitors]\ncgroup = \"edges\"\n";
    let study = laboratory.write_study("quota.toml", study);
    let ran = laboratory.run(&["run", &study, "--label", "q", "--quiet", "--no-report"]);
    if ran.code == Some(3) {
        return eprintln!("SKIP a_quota_is_named_as_what_was_varied: {}", ran.err);
    }
    let explanation = laboratory.run_json(&["why", "q"])["explanation"].clone();
    let varied = &explanation["varied"][0];
    assert_eq!(varied["key"], "cpu-max", "{explanation:#}");
    assert_eq!((varied["baseline"].as_str(), varied["candidate"].as_str()), (Some("none"), Some("10%")));
    assert_eq!(varied["in_blocks"], true);
    assert_eq!(explanation["suspects"][0]["cause"], "throttling by a CPU quota", "{explanation:#}");
}

/// The command that each suspect names as its test is one that perflab takes.
#[test]
fn tests_are_commands_that_can_be_typed() {
    let _settings = settings_lock();
    let laboratory = Sandbox::new();
    let study = "run = { iterations = 1, warmup = 0 }\n[workload.true]\ncommand = \"true\"\n";
    let study = laboratory.write_study("true.toml", study);
    for cause in perflab_analyze::why::CAUSES {
        let command = cause.test.replace("{study}", &study);
        let words: Vec<&str> = command.split(' ').skip_while(|word| *word != "perflab").skip(1).collect();
        let said = laboratory.run(&[&words[..], &["--no-report"]].concat());
        // Some need root, a tracepoint or a kernel that this machine lacks: that is no mistake in the command.
        assert_ne!(said.code, Some(2), "{command}: {}", said.err);
    }
}

#[test]
fn where_nothing_changed_there_is_nothing_to_explain() {
    let laboratory = Sandbox::new();
    for label in ["one", "other"] {
        laboratory.run_echo(label, 100);
    }
    let said = laboratory.run(&["why", "one", "other", "--format", "json"]);
    assert_eq!(said.code, Some(7), "{}", said.err);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    assert!(found["explanation"].is_null() && found["rows"].as_array().unwrap().len() == 1);
    assert_eq!(laboratory.run(&["why", "one"]).code, Some(2), "it has no factor");
    assert_eq!(laboratory.run(&["why", "one", "nobody"]).code, Some(2));
}

/// The tables of a monitor: of its ticks and of its edges.
fn tables_of(laboratory: &Sandbox, monitor: &str) -> Vec<PathBuf> {
    let mut folders = vec![laboratory.path("archive/runs")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let is_table =
                entry.file_name().is_some_and(|name| name == format!("{monitor}.parquet").as_str());
            if entry.is_dir() {
                folders.push(entry)
            } else if is_table {
                found.push(entry)
            }
        }
    }
    found
}

#[test]
fn a_truncated_table_leaves_the_others() {
    let laboratory = Sandbox::new();
    run_faulting(&laboratory, MONITORS);
    let tables = tables_of(&laboratory, "vmstat");
    assert!(!tables.is_empty());
    for table in tables {
        let bytes = fs::read(&table).unwrap();
        fs::write(&table, &bytes[..bytes.len() / 2]).unwrap();
    }
    let explanation = laboratory.run_json(&["why", "held"])["explanation"].clone();
    let left_out = explanation["left_out"].as_array().unwrap();
    assert!(left_out.iter().any(|one| one["unreadable"]["monitor"] == "vmstat"), "{left_out:#?}");
    assert!(series_of(&explanation["suspects"]).contains(&"minor-faults"));
}

/// Without monitors there is what iterations used; with different ones on the sides, what both have.
#[test]
fn sides_with_different_monitors_are_explained_by_what_both_have() {
    let laboratory = Sandbox::new();
    for (label, held, monitor) in [("less", 1, "vmstat"), ("more", 150_000_000, "stat")] {
        let study = format!(
            "run = {{ iterations = 20, warmup = 0 }}\n[workload.hold]\nshell = \"sh\"\n\
             command = \"head -c {held} /dev/zero | tail -c {held} > /dev/null\"\n\
             [monitors]\n{monitor} = \"edges\"\n"
        );
        let study = laboratory.write_study("hold.toml", &study);
        laboratory.run_successfully(&["run", &study, "--label", label, "--quiet", "--no-report"]);
    }
    let said = laboratory.run(&["why", "less", "more", "--across", "--format", "json"]);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    let explanation = &found["explanation"];
    assert_eq!(explanation["units"]["these_two_only"], true, "{found:#}");
    let one_sided: Vec<&str> = explanation["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|one| one["one-sided"]["names"].as_array().into_iter().flatten())
        .map(|name| name.as_str().unwrap())
        .collect();
    assert!(one_sided.contains(&"vmstat") && one_sided.contains(&"stat"), "{one_sided:?}");
    // On a busy machine the time may go to something else, and then they are ruled out.
    let ruled_out = explanation["ruled_out"].as_array().unwrap();
    let mut examined = series_of(&explanation["suspects"]);
    examined.extend(ruled_out.iter().filter_map(|one| one["series"].as_str()));
    assert!(examined.contains(&"minor-faults"), "{explanation:#}");
}

/// Pages that are huge on one side only make it faster; where all pages are huge, nothing of that is left: the test of the suspect
/// says so, by a run of its own.
#[test]
fn a_suspect_is_tested_by_switching_it() {
    if !is_root() {
        return skip_test("a_suspect_is_tested_by_switching_it", "sets huge pages, which only root may");
    }
    let _settings = settings_lock();
    let setting = "/sys/kernel/mm/transparent_hugepage/enabled";
    let before = fs::read_to_string(setting).unwrap();
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "pages.toml",
        "run = { iterations = 20, warmup = 1 }\n[workload.memory-sweep]\nparameters = { size = \"64MiB\", passes = 4 }\n\
         [factor.pages]\nkind = \"parameter\"\nlevels = [\"ordinary\", \"huge\"]\n[monitors]\nvmstat = \"edges\"\n",
    );
    let run_study = |label: &str| {
        laboratory.run_successfully(&["run", &study, "--label", label, "--quiet", "--no-report"]);
    };
    // Tests beside this one can hide the effect, which is then undecided and never anything else.
    let tested = (0..4).find_map(|attempt| {
        let label = format!("pages-{attempt}");
        run_study(&label);
        let found = laboratory.run_json(&["why", &label, "--test", "10min"]);
        let tested = found["explanation"]["tested"].clone();
        assert_eq!(tested["levels"].as_array().map(Vec::len), Some(2), "{found:#}");
        (tested["word"] != "undecided").then_some(tested)
    });
    let tested = tested.expect("it was undecided each time");
    assert_eq!(tested["word"], "cause", "{tested:#}");
    assert!(tested["share"]["low"].as_f64().unwrap() > 0.5, "{tested:#}");
    let refused = laboratory.run(&["why", "pages-0", "--test", "1ms"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    let runs = laboratory.run_json(&["list", "--label", "suspect-test"]);
    assert!(!runs.as_array().unwrap().is_empty());
    assert_eq!(fs::read_to_string(setting).unwrap(), before, "the setting is put back");
}
