//! Histories, the guard, plans and the noise card, from the outside.

use crate::laboratory::{Sandbox, is_root, skip_test};

/// Nightly runs of the echo workload with these speeds.
fn nightly_runs(speeds: &[u32]) -> Sandbox {
    let laboratory = Sandbox::new();
    for speed in speeds {
        laboratory.run_echo("nightly", *speed);
    }
    laboratory
}

#[test]
fn a_step_is_named_with_its_runs_and_drawn() {
    let laboratory = nightly_runs(&[1000, 1003, 998, 1001, 997, 1002, 900, 903, 898, 901]);
    let said =
        laboratory.run_successfully(&["history", "speed", "-o", "speed.svg", "--report", "history.html"]);
    assert_eq!(said.out.lines().count(), 11, "{}", said.out);
    let picture = std::fs::read_to_string(laboratory.path("speed.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.matches("<rect").count() > 10);
    let page = std::fs::read_to_string(laboratory.path("history.html")).unwrap();
    assert!(page.contains("<h2 id=\"history-title\">"));
    let json = laboratory.run_json(&["history"]);
    let [step] = &json["series"][0]["steps"].as_array().unwrap()[..] else { panic!("{json}") };
    assert_eq!((&step["at"], &step["verdict"]), (&6.into(), &"worse".into()));
    assert_eq!((&step["last_good"], &step["first_bad"]), (&json["runs"][5]["id"], &json["runs"][6]["id"]));
    let change = step["change"]["value"].as_f64().unwrap();
    assert!((change + 0.1).abs() < 0.005, "{step}");
}

/// Runs of one import share the time with which their ids begin.
#[test]
fn runs_of_one_import_have_names_of_their_own() {
    let laboratory = Sandbox::new();
    let paths: Vec<String> = (0..8)
        .map(|number| {
            let path = laboratory.path(&format!("{number}.txt"));
            std::fs::write(&path, format!("BenchmarkX 1 {} ns/op\n", 1000 + number)).unwrap();
            path.to_str().unwrap().to_owned()
        })
        .collect();
    let import = ["import", "--kind", "go-bench", "--label", "nightly", "--quiet"];
    let arguments: Vec<&str> = import.into_iter().chain(paths.iter().map(String::as_str)).collect();
    laboratory.run_successfully(&arguments);
    let said = laboratory.run_successfully(&["history"]);
    let name = |line: &str| Some(line.split_once("nightly (")?.1.split_once(')')?.0.to_owned());
    let names: std::collections::BTreeSet<String> = said.out.lines().filter_map(name).collect();
    assert_eq!(names.len(), 8, "{}", said.out);
    for name in names {
        laboratory.run_successfully(&["show", &name]);
    }
}

/// Whoever sets a guard up has one run, and no mistake made.
#[test]
fn the_guard_judges_nothing_on_the_first_night() {
    let laboratory = nightly_runs(&[1000]);
    let listed = laboratory.run_json(&["list"]);
    let study = listed[0]["study"].as_str().unwrap();
    let mistyped = laboratory.run(&["guard", "--study", &format!("{study}x")]);
    assert!(mistyped.code == Some(2) && mistyped.err.contains(&format!("`{study}`")), "{}", mistyped.err);
    let said = laboratory.run(&["guard"]);
    assert_eq!(said.code, Some(7), "{}", said.err);
    insta::assert_snapshot!(said.err_wording_of("nothing was judged"), @"perflab: nothing was judged in run RUN: it is the first of its history, and N earlier runs are needed to judge by");
}

#[test]
fn the_guard_ends_with_five_where_a_step_for_the_worse_stays() {
    let laboratory = nightly_runs(&[1000, 1003, 998, 1001, 997, 1002]);
    let verdicts = |margin: &[&str]| -> Vec<String> {
        let json = laboratory.run_json(&[&["guard"], margin].concat());
        json["rows"].as_array().unwrap().iter().map(|row| row["verdict"].to_string()).collect()
    };
    assert_eq!(verdicts(&[]), ["\"same\""]);
    laboratory.run_echo("nightly", 850);
    let once = laboratory.run(&["guard", "speed"]);
    assert_eq!(once.code, Some(0), "one run is no step: {}", once.err);
    insta::assert_snapshot!("one_run_outside_its_history_is_no_alarm_1", once.stable_out());
    insta::assert_snapshot!("one_run_outside_its_history_is_no_alarm_2", once.stable_err());
    for speed in [852, 849, 851, 850, 853, 848, 851] {
        laboratory.run_echo("nightly", speed);
    }
    let said = laboratory.run(&["guard", "speed", "--report", "guard.html"]);
    assert_eq!(said.code, Some(5), "{}", said.err);
    insta::assert_snapshot!("the_guard_ends_with_five_where_the_newest_run_is_worse_1", said.stable_out());
    insta::assert_snapshot!("the_guard_ends_with_five_where_the_newest_run_is_worse_2", said.stable_err());
    assert!(laboratory.path("guard.html").exists());
    let json: serde_json::Value =
        serde_json::from_str(&laboratory.run(&["guard", "--format", "json"]).out).unwrap();
    let step = &json["rows"][0]["alarm"];
    let (before, after) = (step["before"].as_f64().unwrap(), step["after"].as_f64().unwrap());
    assert!(before > 990.0 && after < 860.0 && step["runs"] == 6, "{step}");
    assert_ne!(verdicts(&["--margin", "20%"]), ["\"worse\""]);
    let said = laboratory.run(&["guard", "speed", "--format", "ktap"]);
    assert_eq!(said.code, Some(5), "{}", said.err);
    assert!(
        said.out.starts_with("KTAP version 1\n1..1\n# ") && said.out.ends_with("\nnot ok 1 echo speed\n"),
        "{}",
        said.out
    );
}

/// Nothing is said of what failed by those that ended well.
#[test]
fn the_guard_ends_with_five_where_the_newest_run_fails_more() {
    let laboratory = Sandbox::new();
    let file = |name: &str| laboratory.path(name).to_str().unwrap().to_owned();
    let (count, fails) = (file("count"), file("fails"));
    std::fs::write(&count, "0").unwrap();
    // The script stays, or it would be another case.
    let script = format!(
        "n=$(cat {count}); echo $((n + 1)) > {count}; test $((n % 8)) -ge $(cat {fails}) && echo speed $((1000 + n % 3))"
    );
    laboratory.write_workload("shaky", "", &script);
    let study = laboratory.write_study("s.toml", "run = { iterations = 8, warmup = 0 }\n[workload.shaky]");
    let run = |failing: u32| {
        std::fs::write(&fails, failing.to_string()).unwrap();
        laboratory.run(&["run", &study, "--label", "nightly", "--no-report"]).code
    };
    for _ in 0..8 {
        assert_eq!(run(0), Some(0));
    }
    assert_eq!(laboratory.run(&["guard"]).code, Some(0));
    assert_eq!(run(1), Some(4));
    let once = laboratory.run_json(&["guard"]);
    assert_eq!(once["failures"][0]["newest"], serde_json::json!({ "failed": 1, "of": 8 }), "{once}");
    assert_eq!(
        (&once["failures"][0]["verdict"], &once["rows"][0]["verdict"]),
        (&"unclear".into(), &"unclear".into())
    );
    assert_eq!(laboratory.run(&["guard"]).code, Some(0));
    assert_eq!(run(6), Some(4));
    let said = laboratory.run(&["guard", "--format", "json"]);
    assert_eq!(said.code, Some(5), "{}", said.err);
    let failures = serde_json::from_str::<serde_json::Value>(&said.out).unwrap()["failures"][0].take();
    assert_eq!(failures["newest"], serde_json::json!({ "failed": 6, "of": 8 }), "{failures}");
    assert_eq!(failures["earlier"], serde_json::json!({ "failed": 1, "of": 72 }), "{failures}");
    assert_eq!((&failures["runs"], &failures["verdict"]), (&9.into(), &"worse".into()), "{failures}");
    insta::assert_snapshot!(laboratory.run(&["guard"]).err_wording_of("iterations failed"), @"perflab: shaky: N of N iterations failed, N of N in N runs before: more than chance explains");
    let ktap = laboratory.run(&["guard", "--format", "ktap"]).out;
    assert!(
        ktap.ends_with("\nnot ok 2 shaky iterations\n") && ktap.contains("\nok 1 shaky speed # SKIP "),
        "{ktap}"
    );
    // Where none ends well, there is no value, and still a word.
    assert_eq!(run(8), Some(4));
    let said = laboratory.run(&["guard", "--format", "junit"]);
    assert!(said.code == Some(5) && said.out.contains("failures=\"1\""), "{}", said.out);
    // A newest run that nobody can read is not passed over.
    let listed = laboratory.run_json(&["list"]);
    let ids: Vec<&str> = listed.as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    for id in &ids[9..] {
        std::fs::write(laboratory.path("archive/runs").join(id).join("run.json"), "{").unwrap();
    }
    let said = laboratory.run(&["guard"]);
    assert!(said.code == Some(7) && said.err.contains("is newer, and cannot be read"), "{}", said.err);
    let found: serde_json::Value =
        serde_json::from_str(&laboratory.run(&["guard", "--format", "json"]).out).unwrap();
    let unreadable = found["newer_unreadable"].as_str().unwrap_or_default();
    assert!(!unreadable.is_empty() && ids.last().unwrap().starts_with(unreadable), "{found}");
}

#[test]
fn an_alarm_is_accepted_with_a_note_that_the_archive_keeps() {
    let laboratory =
        nightly_runs(&[1000, 1003, 998, 1001, 997, 1002, 850, 852, 849, 851, 850, 853, 848, 851]);
    assert_eq!(laboratory.run(&["guard"]).code, Some(5));
    assert_eq!(laboratory.run(&["guard", "--accept", " "]).code, Some(2));
    let said = laboratory.run(&["guard", "--accept", "the new allocator"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let json = laboratory.run_json(&["guard"]);
    assert_eq!(
        (&json["rows"][0]["baseline"]["note"], &json["rows"][0]["alarm"]),
        (&"the new allocator".into(), &serde_json::Value::Null)
    );
    let json = laboratory.run_json(&["history"]);
    assert_eq!(json["series"][0]["baselines"][0]["at"], 6);
    // Thrown away with nothing that counts.
    std::fs::remove_file(laboratory.path("archive/index.sqlite")).unwrap();
    assert_eq!(laboratory.run(&["guard"]).code, Some(0));
    assert_eq!(laboratory.run(&["guard", "--accept", "again"]).code, Some(2), "nothing alarms any more");
    for speed in [720, 722, 719, 721, 720, 723, 718] {
        laboratory.run_echo("nightly", speed);
    }
    assert_eq!(laboratory.run(&["guard"]).code, Some(5), "a step after it alarms");
}

/// What is installed stands in a file: old and new are written to it before the iterations that measure them.
#[test]
fn an_alarm_counts_once_old_and_new_were_measured_again() {
    let laboratory =
        nightly_runs(&[1000, 1003, 998, 1001, 997, 1002, 850, 852, 849, 851, 850, 853, 848, 851]);
    let install = |speed: u32| format!("echo {speed} > {}", laboratory.path("speed").display());
    let confirm = |old: u32, new: u32, until: &str| {
        let arguments =
            ["guard", "--confirm", "--old", &install(old), "--new", &install(new), "--until", until];
        let said = laboratory.run(&[&arguments[..], &["--format", "json"]].concat());
        let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let mut row = json["rows"][0].clone();
        (said.code, row["verdict"].take(), row["alarm"]["confirmation"]["verdict"].take())
    };
    assert_eq!(confirm(1000, 850, "decided"), (Some(5), "worse".into(), "worse".into()));
    assert_eq!(std::fs::read_to_string(laboratory.path("speed")).unwrap(), "850\n", "new is put back");
    assert_eq!(confirm(850, 850, "decided"), (Some(0), "same".into(), "same".into()));
    assert_eq!(confirm(850, 1000, "decided").1, "better");
    // Two blocks decide nothing.
    assert_eq!(confirm(1000, 850, "decided, at most 2").0, Some(7));
    let label = laboratory.run_json(&["list", "--last", "1"])[0]["label"].clone();
    assert_eq!(label, "confirm");
    // They are no part of the series, and nothing was accepted.
    assert_eq!(laboratory.run(&["guard"]).code, Some(5));
    for arguments in [&["--old", "true", "--new", "true"][..], &["--confirm", "--old", "true"]] {
        assert_eq!(laboratory.run(&[&["guard"], arguments].concat()).code, Some(2), "{arguments:?}");
    }
}

/// The runs before the step are said to have had another setting: that one is chosen, set for old and for new in turn, and put back.
/// Nothing depends on it, so that the alarm is not confirmed.
#[test]
fn the_setting_that_changed_is_what_old_and_new_differ_in() {
    let test = "the_setting_that_changed_is_what_old_and_new_differ_in";
    if !is_root() {
        return skip_test(test, "others cannot set it");
    }
    // Without effect while memory may be overcommitted by rule of thumb.
    let (key, file) = ("vm.overcommit_ratio", "/proc/sys/vm/overcommit_ratio");
    let found = std::fs::read_to_string(file).unwrap();
    let old: u32 = found.trim().parse::<u32>().unwrap() + 1;
    let laboratory =
        nightly_runs(&[1000, 1003, 998, 1001, 997, 1002, 850, 852, 849, 851, 850, 853, 848, 851]);
    let mut runs: Vec<_> = std::fs::read_dir(laboratory.path("archive/runs"))
        .unwrap()
        .map(|run| run.unwrap().path().join("run.json"))
        .collect();
    runs.sort();
    for run in &runs[..6] {
        let mut manifest: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(run).unwrap()).unwrap();
        let fact = &mut manifest["facts"][format!("sysctl.{key}")];
        assert!(fact.is_object(), "{fact}");
        fact["value"] = old.into();
        std::fs::write(run, manifest.to_string()).unwrap();
    }
    let said = laboratory.run(&[
        "guard",
        "--confirm",
        "--until",
        "precision 50%, at least 7, at most 7",
        "--format",
        "json",
    ]);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let confirmation = &json["rows"][0]["alarm"]["confirmation"];
    assert_eq!(
        (said.code, &confirmation["verdict"], &confirmation["iterations"]),
        (Some(0), &"same".into(), &7.into()),
        "{}",
        said.err
    );
    let confirming = confirmation["run"].as_str().unwrap();
    let shown =
        std::fs::read_to_string(laboratory.path("archive/runs").join(confirming).join("run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let factor = &manifest["study"]["factor"]["confirm"];
    assert_eq!((&factor["kind"], &factor["key"]), (&"sysctl".into(), &key.into()), "{factor}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), found, "put back");
}

#[test]
fn without_an_alarm_there_is_nothing_to_confirm() {
    let laboratory = nightly_runs(&[1000, 1003, 998, 1001, 997, 1002, 1001]);
    let before = laboratory.run_json(&["list"]).as_array().unwrap().len();
    assert_eq!(laboratory.run(&["guard", "--confirm"]).code, Some(0));
    assert_eq!(laboratory.run_json(&["list"]).as_array().unwrap().len(), before);
}

#[test]
fn a_damaged_run_is_left_out_and_named_unless_it_is_the_one_to_judge() {
    let laboratory = nightly_runs(&[1000, 1003, 998, 1001, 997, 1002, 1001]);
    let mut runs: Vec<_> = std::fs::read_dir(laboratory.path("archive/runs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    runs.sort();
    let damage = |run: &std::path::Path| std::fs::write(run.join("samples.parquet"), "no table").unwrap();
    damage(&runs[2]);
    let id = runs[2].file_name().unwrap().to_str().unwrap();
    for verb in ["history", "guard"] {
        let said = laboratory.run_successfully(&[verb, "--format", "json"]);
        assert!(said.err.contains(id), "{}", said.err);
        let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let runs = if verb == "guard" { &json["rows"][0]["runs"] } else { &json["series"][0]["points"] };
        // The newest one is judged by the five before it.
        let count = runs.as_u64().unwrap_or_else(|| runs.as_array().unwrap().len() as u64 - 1);
        assert_eq!(count, 5, "{json}");
    }
    damage(&runs[6]);
    assert_eq!(laboratory.run_successfully(&["history", "--quiet"]).code, Some(0));
    let judged = laboratory.run(&["guard"]);
    assert!(judged.code == Some(1) && judged.err.contains(runs[6].to_str().unwrap()), "{}", judged.err);
}

#[test]
fn histories_that_are_none_are_named() {
    let laboratory = nightly_runs(&[1000, 1001]);
    let said = laboratory.run(&["guard"]);
    assert_eq!(said.code, Some(7), "nothing was judged: no pass");
    insta::assert_snapshot!("histories_that_are_none_are_named_1", said.stable_out());
    let wrong: [&[&str]; 3] = [&["sped"], &["--label", "weekly"], &["-o", "x.bmp"]];
    let errors = wrong.map(|arguments| {
        let said = laboratory.run(&[&["history"], arguments].concat());
        assert_eq!(said.code, Some(2), "{arguments:?}");
        said.err_wording_of("error: ")
    });
    insta::assert_snapshot!(errors.join("\n"), @"
    error: `history` has no samples of sped: it has bytes-read, bytes-written, involuntary-switches, major-faults, minor-faults, speed, system, user, voluntary-switches; did you mean `speed`?
    error: the archive has no such run; no run has the label `weekly`
    error: x.bmp: a picture is drawn as .svg or .png; name the file picture.svg or picture.png, or - for SVG on standard output
    ");
    let empty = Sandbox::new();
    assert_eq!(empty.run(&["guard"]).code, Some(2));
}

#[test]
fn a_plan_costs_iterations_where_one_boot_was_seen() {
    let laboratory = Sandbox::new();
    laboratory.write_workload("noisy", "", "date +%N | awk '{ print \"speed \" 1000 + $1 % 40 }'");
    let study =
        laboratory.write_study("noisy.toml", "run = { iterations = 12, warmup = 0 }\n[workload.noisy]");
    laboratory.run_successfully(&["run", &study, "--label", "before", "--quiet"]);
    let said = laboratory.run_successfully(&["plan", "before", "--precision", "0.5%"]);
    insta::assert_snapshot!("a_plan_costs_iterations_where_one_boot_was_seen_2", said.stable_err());
    let said = laboratory.run_successfully(&["plan", "before", "--detect", "2%", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(json[0]["repetitions a side"], 1);
    assert_eq!(json[0]["design"], "interleaved");
    assert!(json[0]["σ between"].is_null(), "{json}");
    assert!(json[0]["iterations"].as_u64().unwrap() >= 4);
    for (option, value) in
        [("--precision", "much"), ("--precision", "0%"), ("--boot-cost", "60"), ("--iterations", "0")]
    {
        assert_eq!(laboratory.run(&["plan", "before", option, value]).code, Some(2));
    }
}

#[test]
fn the_noise_card_is_measured_shown_used_and_grows_old() {
    let laboratory = Sandbox::new();
    laboratory.write_workload("noisy", "", "date +%N | awk '{ print \"speed \" 1000 + $1 % 40 }'");
    let study =
        laboratory.write_study("noisy.toml", "run = { iterations = 8, warmup = 0 }\n[workload.noisy]");
    assert_eq!(laboratory.run(&["noise", "--show"]).code, Some(2));
    let said = laboratory.run_successfully(&["noise", &study, "--iterations", "10", "--quiet"]);
    assert_eq!(laboratory.run_successfully(&["noise", "--show"]).out, said.out);
    let card = laboratory.run_json(&["noise", "--show"]);
    assert_eq!((&card[0]["case"], &card[0]["n"]), (&"noisy".into(), &10.into()), "{card}");
    let folder = laboratory.path("archive/noise");
    let card = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let mut text: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&card).unwrap()).unwrap();
    laboratory.run_successfully(&["run", &study, "--label", "before", "--quiet"]);
    laboratory.run_successfully(&["run", &study, "--label", "after", "--quiet"]);
    let has_doubt = |json: &serde_json::Value| {
        json["warnings"].as_array().unwrap().iter().any(|warning| warning["kind"] == "old-noise-card")
    };
    assert!(!has_doubt(&laboratory.run_json(&["compare", "before", "after"])));
    text["made"] = 1_600_000_000_000_000_000_u64.into();
    text["kernel"] = "2.6.0".into();
    std::fs::write(&card, text.to_string()).unwrap();
    assert!(has_doubt(&laboratory.run_json(&["compare", "before", "after"])));
    std::fs::write(&card, "{").unwrap();
    let said = laboratory.run(&["compare", "before", "after"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains(card.to_str().unwrap()), "{}", said.err);
}

#[test]
fn several_noise_runs_show_what_a_run_adds_which_plan_and_compare_use() {
    let laboratory = Sandbox::new();
    laboratory.write_workload("noisy", "", "date +%N | awk '{ print \"speed \" 1000 + $1 % 40 }'");
    let study =
        laboratory.write_study("noisy.toml", "run = { iterations = 8, warmup = 0 }\n[workload.noisy]");
    laboratory.run_successfully(&["noise", &study, "--iterations", "8", "--quiet"]);
    let designs = |json: &serde_json::Value| -> Vec<String> {
        json.as_array().unwrap().iter().map(|row| row["design"].as_str().unwrap().to_owned()).collect()
    };
    let plan = ["plan", "--noise-card", "--detect", "1%"];
    assert_eq!(designs(&laboratory.run_json(&plan)), ["interleaved"]);
    let card = laboratory.run_json(&["noise", &study, "--iterations", "8", "--runs", "3", "--quiet"]);
    assert!(card[0]["σ runs"].is_number() && card[0]["σ iterations"].is_number(), "{card}");
    assert!(card[0]["σ boots"].is_null(), "{card}");
    let proposed = laboratory.run_json(&plan);
    assert_eq!(designs(&proposed), ["interleaved", "runs"]);
    assert_eq!(proposed.as_array().unwrap().iter().filter(|row| row["cheapest"] == true).count(), 1);
    for label in ["before", "after"] {
        laboratory.run_successfully(&["run", &study, "--label", label, "--quiet"]);
    }
    let compared = laboratory.run_json(&["compare", "before", "after"]);
    let row = &compared["rows"][0];
    assert_eq!(
        (&row["between_runs"]["from_card"], &row["between_runs"]["earlier_pairs"]),
        (&true.into(), &3.into())
    );
    assert!(row["change"]["covers"].is_null(), "the interval is one of the change: {row}");
}

#[test]
fn no_card_proposes_nothing() {
    let laboratory = Sandbox::new();
    assert_eq!(laboratory.run(&["plan", "--noise-card"]).code, Some(2));
    assert_eq!(laboratory.run(&["noise", "--runs", "0"]).code, Some(2));
}

/// 501 runs are one run copied, as an archive that was synced here.
#[test]
fn a_history_looks_back_on_the_latest_runs_of_each_study_unless_all_are_asked_for() {
    let laboratory = nightly_runs(&[1000]);
    let run = laboratory.only_run();
    let id = run.file_name().unwrap().to_str().unwrap().to_owned();
    let manifest = std::fs::read_to_string(run.join("run.json")).unwrap();
    for number in 0..500 {
        let copied = format!("{}Z{number:03}", &id[..id.len() - 4]);
        let folder = run.with_file_name(&copied);
        std::fs::create_dir(&folder).unwrap();
        for file in ["journal.jsonl", "samples.parquet", "iterations.parquet"] {
            std::fs::copy(run.join(file), folder.join(file)).unwrap();
        }
        std::fs::write(folder.join("run.json"), manifest.replace(&id, &copied)).unwrap();
    }
    let runs = |arguments: &[&str]| {
        let json = laboratory.run_json(&[&["history"], arguments].concat());
        json["runs"].as_array().unwrap().len()
    };
    assert_eq!((runs(&[]), runs(&["--all"]), runs(&["--last", "501"])), (500, 501, 501));
    assert_eq!(laboratory.run(&["history", "--all", "--last", "5"]).code, Some(2));
}
