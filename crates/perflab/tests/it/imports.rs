//! Imports as people make them: what files do not say is not made up, and no file commands a terminal.

use std::fs;

use crate::laboratory::{CommandOutput, Sandbox};

fn write_hyperfine_json(laboratory: &Sandbox, name: &str, commands: &[(&str, f64)]) -> String {
    let result = |(command, time): &(&str, f64)| {
        let times: Vec<f64> = (0..10).map(|run| time + f64::from(run) * 1e-4).collect();
        serde_json::json!({ "command": command, "mean": time, "times": times })
    };
    let results: Vec<_> = commands.iter().map(result).collect();
    let path = laboratory.path(name);
    fs::write(&path, serde_json::json!({ "results": results }).to_string()).unwrap();
    path.display().to_string()
}

/// fio's JSON of a job with this block size and bandwidth.
fn write_fio_json(laboratory: &Sandbox, name: &str, bs: &str, bandwidth: u64) -> String {
    let read = serde_json::json!({ "io_bytes": 1_048_576, "bw_bytes": bandwidth, "iops": 100.0 });
    let job = serde_json::json!({
        "jobname": "j", "error": 0, "job_runtime": 10, "job options": { "bs": bs, "rw": "read" }, "read": read
    });
    let path = laboratory.path(name);
    fs::write(&path, serde_json::json!({ "fio version": "fio-3.33", "jobs": [job] }).to_string()).unwrap();
    path.display().to_string()
}

fn compared_verdicts(laboratory: &Sandbox, words: &[&str]) -> Vec<String> {
    let told = laboratory.run_successfully(&[words, &["--format", "json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    let comparison = document.get(0).unwrap_or(&document);
    let rows = comparison["rows"].as_array().unwrap();
    rows.iter().map(|row| row["verdict"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn commands_of_one_hyperfine_are_compared() {
    let laboratory = Sandbox::new();
    let file = write_hyperfine_json(&laboratory, "h.json", &[("slow", 0.2), ("quick", 0.1)]);
    laboratory.run_successfully(&["import", &file, "--label", "hyp"]);
    assert_eq!(compared_verdicts(&laboratory, &["compare", "hyp", "--by", "command"]), ["differs"]);
    assert_eq!(compared_verdicts(&laboratory, &["compare", "hyp"]), ["differs"], "it has one factor only");
    let [alone, named] = [&["compare", "hyp"][..], &["compare", "hyp", "--by", "command"]]
        .map(|words| laboratory.run_successfully(words));
    assert_eq!(alone.out, named.out);
    let added = alone.err.lines().find(|line| !named.err.contains(line));
    insta::assert_snapshot!(added.unwrap(), @"one run is named: the levels of its factor `command` are compared (--by command)");
}

/// Runs of one import are made at one time, with which their ids begin: as many letters are shown as tell them apart.
#[test]
fn ids_of_one_import_are_told_apart() {
    let laboratory = Sandbox::new();
    let files: Vec<String> = (0..12)
        .map(|n| write_hyperfine_json(&laboratory, &format!("h{n}.json"), &[("c", 0.1 + f64::from(n))]))
        .collect();
    let mut words = vec!["import"];
    words.extend(files.iter().map(String::as_str));
    words.extend(["--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&laboratory.run_successfully(&words).out).unwrap();
    let ids: std::collections::BTreeSet<&str> =
        json.as_array().unwrap().iter().map(|row| row["run"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 12, "{json}");
    for id in ids {
        laboratory.run_successfully(&["show", id]);
    }
}

/// Files whose every run failed are sides like any other: what failed is a result.
#[test]
fn a_file_whose_every_run_failed_is_imported_and_worse() {
    let laboratory = Sandbox::new();
    let file = |name: &str, text: &str| {
        fs::write(laboratory.path(name), text).unwrap();
        let path = laboratory.path(name).display().to_string();
        laboratory.run_successfully(&["import", &path, "--label", name]);
    };
    let hyperfine = |codes: &serde_json::Value| {
        let times = [0.101, 0.102, 0.1, 0.103, 0.1, 0.099];
        serde_json::json!({ "results": [{ "command": "c", "mean": 0.1, "times": times, "exit_codes": codes }] })
            .to_string()
    };
    // A run that a signal ended has no exit code.
    file("h-good", &hyperfine(&serde_json::json!([0, 0, 0, 0, 0, 0])));
    file("h-bad", &hyperfine(&serde_json::json!([1, 1, 1, null, 1, 1])));
    let go = |line: &str| format!("goos: linux\npkg: p\n{}FAIL\n", line.repeat(6));
    file("g-good", &go("BenchmarkA-8 10 5.1 ns/op\n"));
    file("g-bad", &go("--- FAIL: BenchmarkA\n    a_test.go:3: no\n"));
    let google = |more: &str| {
        let one =
            format!(r#"{{"name":"F/64","run_name":"F/64","run_type":"iteration","time_unit":"ns",{more}}}"#);
        format!(r#"{{"context":{{}},"benchmarks":[{}]}}"#, [one.as_str(); 6].join(","))
    };
    file("b-good", &google(r#""real_time":10.5,"cpu_time":10.1"#));
    file("b-bad", &google(r#""real_time":0.0,"cpu_time":0.0,"error_occurred":true,"error_message":"no""#));
    for tool in ["h", "g", "b"] {
        let [good, bad] = ["good", "bad"].map(|end| format!("{tool}-{end}"));
        let json = laboratory.run_json(&["compare", &good, &bad]);
        let rows = json["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["primary"] == true).unwrap();
        assert_eq!((&row["verdict"], &row["basis"]), (&"worse".into(), &"failures".into()), "{tool}: {row}");
        assert_eq!(row["failures"]["candidate"], serde_json::json!({ "failed": 6, "of": 6 }), "{tool}");
        assert_eq!(laboratory.run(&["compare", &good, &bad, "--fail-if", "worse:50%"]).code, Some(5));
        assert_eq!(laboratory.run(&["compare", &bad, &good, "--fail-if", "worse"]).code, Some(0));
        let both = laboratory.run_json(&["compare", &bad, &bad]);
        assert_eq!(both["rows"][0]["basis"], "missing-values", "{tool}: {both}");
    }
}

/// The values of golang.org/x/perf's own test of exact units; the table has the figures that its benchstat prints for them.
#[test]
fn units_of_go_benchmarks_that_are_exact_are_compared_exactly() {
    let laboratory = Sandbox::new();
    let unit = "Unit text-bytes assume=exact better=lower\n";
    let before = "BenchmarkSize 1 100 text-bytes\nBenchmarkNonExact 1 100 text-bytes\nBenchmarkNonExact 1 101 text-bytes\n\
                  BenchmarkNonExact 1 101 text-bytes\nBenchmarkKept 1 5000000 text-bytes\n";
    let after = "BenchmarkSize 1 105 text-bytes\nBenchmarkNonExact 1 101 text-bytes\nBenchmarkNonExact 1 101 text-bytes\n\
                 BenchmarkNonExact 1 101 text-bytes\nBenchmarkKept 1 5000000 text-bytes\n";
    for (label, text) in [("before", before), ("after", after)] {
        let path = laboratory.path(&format!("{label}.txt"));
        fs::write(&path, format!("{unit}{text}")).unwrap();
        laboratory.run_successfully(&["import", &path.display().to_string(), "--label", label]);
    }
    let rows = laboratory.run_successfully(&["compare", "before", "after", "--format", "json"]).out;
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    let row = |name: &str| {
        rows["rows"].as_array().unwrap().iter().find(|row| row["workload"] == name).unwrap().clone()
    };
    let (size, kept, differing) = (row("Size"), row("Kept"), row("NonExact"));
    assert_eq!(
        (&size["verdict"], &size["exact"], &size["p"]),
        (&"worse".into(), &true.into(), &serde_json::Value::Null)
    );
    assert_eq!((&kept["verdict"], &kept["unseen_share"]), (&"same".into(), &serde_json::Value::Null));
    assert!(differing["method"].is_object(), "values that differ are compared by statistics: {differing}");
    let kinds: Vec<&str> =
        rows["warnings"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"not-exact"), "{kinds:?}");
    let exported = laboratory.run_successfully(&["export", "after", "--to", "gobench"]).out;
    assert!(
        exported.lines().any(|line| line.starts_with("Unit ") && line.ends_with(" assume=exact")),
        "{exported}"
    );
    let gate = laboratory.run(&["compare", "before", "after", "--workload", "Size", "--fail-if", "worse"]);
    assert_eq!(gate.code, Some(5));
    assert_eq!(size["flags"], serde_json::json!([]));
    insta::assert_snapshot!(
        laboratory.run_successfully(&["compare", "before", "after", "--style", "benchstat"]).out
    );
}

/// Three slow beginnings are reported, and left out only where that is asked for.
#[test]
fn warm_up_is_reported_and_left_out_on_demand() {
    let laboratory = Sandbox::new();
    for (label, slow) in [("flat", 1.0), ("warming", 1.8)] {
        let times: Vec<f64> = (0..30)
            .map(|run| 0.1 * if run < 3 { slow } else { 1.0 } + f64::from(run * 7 % 11) * 1e-4)
            .collect();
        let results = serde_json::json!({ "results": [{ "command": "x", "mean": 0.1, "times": times }] });
        let path = laboratory.path(&format!("{label}.json"));
        fs::write(&path, results.to_string()).unwrap();
        laboratory.run_successfully(&["import", &path.display().to_string(), "--label", label]);
    }
    let compare = |words: &[&str]| -> serde_json::Value {
        let words = [&["compare", "flat", "warming", "--format", "json"], words].concat();
        serde_json::from_str(&laboratory.run_successfully(&words).out).unwrap()
    };
    let found = |comparison: &serde_json::Value| -> Vec<(String, u64)> {
        let warnings = comparison["warnings"].as_array().unwrap().iter();
        let warm_up = warnings.filter(|one| one["kind"] == "warm-up");
        warm_up
            .map(|one| (one["place"]["side"].as_str().unwrap().to_owned(), one["values"].as_u64().unwrap()))
            .collect()
    };
    let (kept, left_out) = (compare(&[]), compare(&["--warmup", "auto"]));
    assert_eq!(found(&kept), [("warming".to_owned(), 3)]);
    assert_eq!(
        (&kept["rows"][0]["candidate"]["n"], &left_out["rows"][0]["candidate"]["n"]),
        (&30.into(), &27.into())
    );
    assert_eq!((found(&left_out), &left_out["rows"][0]["baseline"]["n"]), (Vec::new(), &30.into()));
    let lines = |label: &str| {
        let shown = laboratory.run_successfully(&["show", label]).err;
        shown.lines().filter(|line| line.starts_with("warm-up")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines("flat"), Vec::<String>::new());
    insta::assert_snapshot!(lines("warming").join("\n"));
}

/// Which of two factors is meant is for the user to say.
#[test]
fn one_run_of_two_factors_needs_one_named() {
    let laboratory = Sandbox::new();
    let result = |command: &str, threads: &str, size: &str| {
        let parameters = serde_json::json!({ "threads": threads, "size": size });
        serde_json::json!({ "command": command, "times": [0.1, 0.2], "parameters": parameters })
    };
    let results = [
        result("x 1 8", "1", "8"),
        result("x 2 8", "2", "8"),
        result("x 1 9", "1", "9"),
        result("x 2 9", "2", "9"),
    ];
    let path = laboratory.path("h.json");
    fs::write(&path, serde_json::json!({ "results": results }).to_string()).unwrap();
    laboratory.run_successfully(&["import", &path.display().to_string(), "--label", "hyp"]);
    let refused = laboratory.run(&["compare", "hyp"]);
    assert_eq!(refused.code, Some(2));
    insta::assert_snapshot!(refused.err, @"error: one run alone cannot be compared; name a second run, or one of its factors with --by: size, threads");
}

#[test]
fn imports_of_which_nobody_knows_the_boot_are_not_boots() {
    let laboratory = Sandbox::new();
    for (label, bandwidth) in [("old", 1000), ("new", 2000)] {
        for run in 0..5 {
            let file = write_fio_json(&laboratory, &format!("{label}{run}.json"), "4k", bandwidth + run);
            laboratory.run_successfully(&["import", &file, "--label", label]);
        }
    }
    let json = |words: &[&str]| {
        let told =
            laboratory.run_successfully(&[words, &["--format", "json", "--metric", "bandwidth"]].concat());
        let document: serde_json::Value = serde_json::from_str(&told.out).unwrap();
        document.get(0).unwrap_or(&document)["rows"][0].clone()
    };
    let unknown = json(&["compare", "old", "new"]);
    assert_eq!(unknown["method"]["level"], "run");
    assert!(unknown["flags"].as_array().unwrap().contains(&"unknown-boot".into()), "{unknown}");
    let told = json(&["compare", "old", "new", "--boots-differ"]);
    assert_eq!(told["method"]["level"], "boot");
    assert!(!told["flags"].as_array().unwrap().contains(&"unknown-boot".into()), "{told}");
}

#[test]
fn other_job_options_get_no_verdict_and_are_named() {
    let laboratory = Sandbox::new();
    for (label, bs) in [("old", "4k"), ("new", "16k")] {
        for run in 0..5 {
            let file = write_fio_json(&laboratory, &format!("{label}{run}.json"), bs, 1000 + run);
            laboratory.run_successfully(&["import", &file, "--label", label]);
        }
    }
    let found = compared_verdicts(&laboratory, &["compare", "old", "new"]);
    assert!(
        found.iter().all(|verdict| !["better", "worse", "same"].contains(&verdict.as_str())),
        "{found:?}"
    );
    let told = laboratory.run_successfully(&["compare", "old", "new"]);
    let named = told.out.lines().find(|line| line.contains("bs: ")).unwrap_or_default();
    insta::assert_snapshot!(named.trim(), @"fio job=j direction=read (new): fio: bs: 4k -> 16k");
}

#[test]
fn a_file_counts_once_under_a_label() {
    let laboratory = Sandbox::new();
    let file = write_fio_json(&laboratory, "f.json", "4k", 1000);
    let first = laboratory.run_successfully(&["import", "-q", &file, "--label", "l"]).out;
    assert_eq!(first.trim().len(), 26, "an id, and nothing else: {first}");
    let copy = laboratory.path("copy.json");
    fs::copy(&file, &copy).unwrap();
    let again = laboratory.run(&["import", copy.to_str().unwrap(), "--label", "l"]);
    assert_eq!(again.code, Some(2), "{}", again.err);
    insta::assert_snapshot!(again.stable_err(), @"error: /tmp/.TMP/copy.json: run RUN was made of the same files under the label `l`, and they count once; --again takes it once more");
    let runs = || fs::read_dir(laboratory.path("archive/runs")).unwrap().count();
    assert_eq!(runs(), 1, "nothing is left of what was refused");
    laboratory.run_successfully(&["import", &file, "--label", "other"]);
    laboratory.run_successfully(&["import", &file, "--label", "l", "--again"]);
    assert_eq!(runs(), 3);
    // What was taken in twice counts once, and what is held against itself is named.
    let json = laboratory.run_json(&["compare", "l", "other", "--across"]);
    let warnings = json["warnings"].as_array().unwrap();
    let of_kind = |kind: &str| warnings.iter().filter(|warning| warning["kind"] == kind).count();
    assert_eq!((of_kind("counted-once"), of_kind("same-content")), (1, 1), "{warnings:?}");
    assert_eq!(json["runs"].as_array().unwrap().len(), 2);
    assert_eq!(laboratory.run_json(&["history"])["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_profile_counts_once_under_a_label_too() {
    let laboratory = Sandbox::new();
    fs::write(laboratory.path("p.folded"), "sh;main 5\nsh;main;inner 2\n").unwrap();
    laboratory.run_successfully(&["import", "p.folded", "--label", "l"]);
    assert_eq!(laboratory.run(&["import", "p.folded", "--label", "l"]).code, Some(2));
    let told = laboratory.run_successfully(&["import", "p.folded", "--label", "other"]);
    insta::assert_snapshot!(told.err_wording_of("labelled"), @"
    warning: run RUN (labelled l) was made of the very same files; compare runs of different measurements: of these, one counts
    run: RUN, labelled other (taken for folded)
    ");
}

/// The one JSON document of a verb that lists rows.
fn json_rows(text: &str) -> Vec<serde_json::Value> {
    let document: serde_json::Value = serde_json::from_str(text).unwrap();
    document.as_array().unwrap().clone()
}

#[test]
fn several_paths_of_any_kind_are_imported_in_one_call() {
    let laboratory = Sandbox::new();
    let fio = write_fio_json(&laboratory, "f.json", "4k", 1000);
    let hyperfine = write_hyperfine_json(&laboratory, "h.json", &[("true", 0.1)]);
    fs::write(laboratory.path("p.folded"), "sh;main 5\nsh;main;inner 2\n").unwrap();
    laboratory.run_successfully(&["import", "-q", &fio, "--label", "away"]);
    laboratory.run_successfully(&["export", "away", "away.perflab"]);
    laboratory.run_successfully(&["rm", "away"]);
    let all = ["import", &fio, &hyperfine, "p.folded", "away.perflab", "--format", "json"];
    let rows = json_rows(&laboratory.run_successfully(&all).out);
    let kinds: Vec<&str> = rows.iter().map(|row| row["taken for"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["fio", "hyperfine", "folded", "perflab"]);
    assert_eq!(rows[2]["used"], 7);
    let runs = || fs::read_dir(laboratory.path("archive/runs")).unwrap().count();
    assert_eq!(runs(), 4);

    // One that cannot be read keeps nobody from being imported; the worst is the exit code.
    fs::write(laboratory.path("notes"), "Dear reader,\nthis is nothing.\n").unwrap();
    let told = laboratory.run(&["import", "notes", "nowhere", &hyperfine, "--label", "again"]);
    assert_eq!(told.code, Some(2), "{}", told.err);
    assert_eq!(told.err.matches("error: ").count(), 2, "{}", told.err);
    assert_eq!(runs(), 5);
}

#[test]
fn a_path_that_is_named_twice_is_imported_once() {
    let laboratory = Sandbox::new();
    let file = write_fio_json(&laboratory, "f.json", "4k", 1000);
    let runs = || fs::read_dir(laboratory.path("archive/runs")).unwrap().count();
    let told = laboratory.run_successfully(&["import", &file, "./f.json", "--label", "l"]);
    insta::assert_snapshot!(told.stable_err(), @"
    ./f.json is named twice, and imported once
    warning: the files give no time: the run is dated by the file's last change; copy such files with their times (cp -p), so that runs keep their order
    run: RUN, labelled l (taken for fio)
    ");
    assert_eq!(runs(), 1);
    // The same content by another name is noticed, too.
    fs::copy(&file, laboratory.path("copy.json")).unwrap();
    let told = laboratory.run(&["import", &file, "copy.json", "--label", "m"]);
    assert_eq!(told.code, Some(2), "{}", told.err);
    assert_eq!(runs(), 2);
    laboratory.run_successfully(&["import", &file, &file, "--label", "n", "--again"]);
    assert_eq!(runs(), 4);
}

/// Threads come to equal files in any order; the first path counts.
#[test]
fn of_equal_files_the_first_path_is_imported() {
    let laboratory = Sandbox::new();
    let file = write_fio_json(&laboratory, "f.json", "4k", 1000);
    let names: Vec<String> = (1..=8).map(|number| format!("{number}.json")).collect();
    for name in &names {
        fs::copy(&file, laboratory.path(name)).unwrap();
    }
    let runs = || fs::read_dir(laboratory.path("archive/runs")).unwrap().count();
    for round in 1..=4 {
        let label = format!("l{round}");
        let mut arguments = vec!["import"];
        arguments.extend(names.iter().map(String::as_str));
        arguments.extend(["--label", &label]);
        let told = laboratory.run(&arguments);
        assert_eq!((told.code, runs()), (Some(2), round), "{}", told.err);
        let refused: Vec<bool> =
            names.iter().map(|name| told.err.contains(&format!("error: {name}"))).collect();
        assert_eq!(refused, [false, true, true, true, true, true, true, true], "{}", told.err);
    }
}

#[test]
fn what_is_not_read_of_a_folder_is_named() {
    let laboratory = Sandbox::new();
    let sources = |told: &CommandOutput| -> Vec<String> {
        let rows: serde_json::Value = serde_json::from_str(&told.out).unwrap();
        rows.as_array().unwrap().iter().map(|row| row["became"].as_str().unwrap().to_owned()).collect()
    };
    let folder = laboratory.path("result");
    fs::create_dir(&folder).unwrap();
    fs::write(
        folder.join("slabinfo"),
        "slabinfo - version: 2.1\ndentry 10 42 192 21 1 : tunables 0 0 0 : slabdata 2 2 0\n",
    )
    .unwrap();
    for name in ["a.dat", "b.dat", "c.dat", "d.dat"] {
        fs::write(folder.join(name), "x").unwrap();
    }
    let cache = folder.join("slab/dentry");
    fs::create_dir_all(&cache).unwrap();
    for (name, value) in
        [("object_size", "192"), ("slab_size", "192"), ("objs_per_slab", "21"), ("order", "0")]
    {
        fs::write(cache.join(name), value).unwrap();
    }
    let told = laboratory.run_successfully(&["import", folder.to_str().unwrap(), "--format", "json"]);
    insta::assert_snapshot!("what_is_not_read_of_a_folder_is_named_1", told.stable_err());
    // The tree beside the log is read.
    insta::assert_snapshot!(sources(&told).join(" "), @"slabinfo slab-caches slab-exact");

    fs::remove_file(folder.join("slabinfo")).unwrap();
    fs::write(folder.join("slab/notes"), "x").unwrap();
    let told = laboratory.run_successfully(&["import", folder.to_str().unwrap(), "--format", "json"]);
    insta::assert_snapshot!("what_is_not_read_of_a_folder_is_named_2", told.stable_err());
    insta::assert_snapshot!(sources(&told).join(" "), @"slab-caches slab-exact");
}

#[test]
fn what_is_not_read_of_criterions_folder_is_named() {
    let laboratory = Sandbox::new();
    let result = laboratory.path("project/target/criterion/sum/new");
    fs::create_dir_all(&result).unwrap();
    fs::write(result.join("benchmark.json"), r#"{"group_id":"sum","function_id":null,"value_str":null}"#)
        .unwrap();
    fs::write(result.join("sample.json"), r#"{"iters":[1.0,2.0],"times":[10.0,20.0]}"#).unwrap();
    for own in ["tukey.json", "estimates.json"] {
        fs::write(result.join(own), "{}").unwrap();
    }
    for own in ["sum/base", "sum/change", "report"] {
        fs::create_dir_all(laboratory.path("project/target/criterion").join(own)).unwrap();
    }
    let told = laboratory.run_successfully(&["import", "project"]);
    insta::assert_snapshot!(told.stable_err(), @"
    warning: the files give no time: the run is dated by the file's last change; copy such files with their times (cp -p), so that runs keep their order
    run: RUN (taken for criterion)
    ");
    for other in ["notes.txt", "sum/old.json", "sum/new/a", "sum/new/b"] {
        fs::write(laboratory.path("project/target/criterion").join(other), "x").unwrap();
    }
    let told = laboratory.run_successfully(&["import", "project", "--label", "more"]);
    insta::assert_snapshot!(told.stable_err(), @"
    warning: not read of criterion: notes.txt, sum/new/a, sum/new/b and 1 more; nothing of them is in this run
    warning: the files give no time: the run is dated by the file's last change; copy such files with their times (cp -p), so that runs keep their order
    warning: run RUN was made of the very same files; compare runs of different measurements: of these, one counts
    run: RUN, labelled more (taken for criterion)
    ");
}

/// Everything that importers quote, and what of it comes out again.
#[test]
fn files_command_no_terminal() {
    let laboratory = Sandbox::new();
    let evil = "\u{1b}[2J\u{7}\u{9b}5m\u{202e}";
    let mut said = String::new();
    let mut take = |words: &[&str]| {
        let told = laboratory.run(words);
        said += &(told.out + &told.err);
    };
    let write = |name: &str, text: String| {
        let path = laboratory.path(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let files = [
        write(
            "go.txt",
            format!(
                "goos: {evil}\nBenchmark{evil}-8 10 5 ns/op\nBenchmarkX{evil} z\nBenchmarkY-8 1 2 ns/op\n"
            ),
        ),
        write("evil.xml", format!("<?xml version=\"1.0\"?><PhoronixTestSuite><{evil}>")),
        write("evil.json", format!("{{\"fio version\": \"{evil}\", {evil}")),
        write("evil.log", format!("time: {evil}\nslabinfo - version: {evil}\n")),
        write(&format!("name{evil}.txt"), "nothing".into()),
        write_hyperfine_json(&laboratory, "hyp.json", &[(evil, 0.2), ("quick", 0.1)]),
    ];
    for file in &files {
        take(&["import", file, "--label", evil]);
        take(&["import", file]);
    }
    take(&["import", &laboratory.path(&format!("none{evil}")).display().to_string()]);
    for words in [
        &["list"][..],
        &["show"],
        &["show", "--format", "markdown"],
        &["show", "--format", "csv"],
        &["compare", "@latest", "--by", "command"],
        &["compare", "@latest", "--by", evil],
        &["plan", "@latest"],
        &["export", "@latest", "--to", "markdown", "-o", "-"],
        &["diff", "@latest", "@latest"],
        &["show", evil],
        &["report", "@latest", "-o", "r.html"],
    ] {
        take(words);
    }
    assert!(said.contains("\\x1b[2J"), "{said:?}");
    assert!(!said.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{said:?}");
}

/// A command may be called anything: in what people read, its name begins no line.
#[test]
fn a_name_with_line_ends_stays_in_its_line() {
    let laboratory = Sandbox::new();
    let name = "x\r\n::error::from a name\nBcc: a@b";
    let file = write_hyperfine_json(&laboratory, "h.json", &[(name, 0.2), ("quick", 0.1)]);
    for format in ["table", "short", "mail", "markdown"] {
        let said = laboratory.run(&["compare", &file, "--format", format]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        let is_forged =
            |line: &str| line.trim_start().starts_with("::") || line.trim_start().starts_with("Bcc:");
        let forged: Vec<&str> =
            said.out.lines().chain(said.err.lines()).filter(|line| is_forged(line)).collect();
        assert!(
            forged.is_empty() && (format == "short" || said.out.contains("from a name")),
            "{format}: {}\n{}",
            said.out,
            said.err
        );
    }
}
