//! `perflab bench` and `perflab run -- COMMAND`: commands timed, in a line.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::laboratory::Sandbox;

/// The rows of a comparison's first document.
fn rows(comparisons: &Value) -> &Vec<Value> {
    comparisons[0]["rows"].as_array().unwrap()
}

#[test]
fn commands_are_compared_in_one_line_and_exported_as_hyperfine_does() {
    let sandbox = Sandbox::new();
    let bench = [
        "bench",
        "sleep 0.01",
        "sleep 0.2",
        "-n",
        "short",
        "-r",
        "6",
        "--export",
        "times.json",
        "--label",
        "b",
    ];
    let found = sandbox.run_json(&bench);
    let time = rows(&found).iter().find(|row| row["metric"] == "time").unwrap();
    assert_eq!((time["verdict"].as_str(), found[0]["by"].as_str()), (Some("worse"), Some("command")));

    let times: Value = serde_json::from_slice(&std::fs::read(sandbox.path("times.json")).unwrap()).unwrap();
    let results = times["results"].as_array().unwrap();
    let commands: Vec<&str> = results.iter().map(|one| one["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["short", "sleep 0.2"]);
    assert!(results.iter().all(|one| one["times"].as_array().unwrap().len() == 6));

    let exported = sandbox.run_successfully(&["export", "b", "--to", "hyperfine"]).out;
    assert_eq!(serde_json::from_str::<Value>(&exported).unwrap(), times);
    // What was written is read as what hyperfine wrote.
    sandbox.run_successfully(&["import", "times.json", "--label", "read-back"]);
    let again = sandbox.run_json(&["compare", "read-back", "--by", "command"]);
    assert_eq!(again["rows"].as_array().unwrap()[0]["metric"], "time");
}

#[test]
fn a_parameter_is_a_factor_and_commands_run_without_a_shell() {
    let sandbox = Sandbox::new();
    let found = sandbox.run_json(&["bench", "-N", "-L", "n", "1,2", "-r", "2", "printf '%s\\n' {n} {{x}}"]);
    assert_eq!(found[0]["by"], "n");
    let printed = sandbox.run_successfully(&["show", "@latest", "--output", "1"]).out;
    let lines: BTreeSet<&str> = printed.lines().filter(|line| line.len() < 6).collect();
    assert!(lines.contains("{{x}}") && (lines.contains("1") || lines.contains("2")), "{printed}");
}

#[test]
fn one_command_has_its_times_and_a_failing_one_its_exit_code() {
    let sandbox = Sandbox::new();
    let times = sandbox.run_json(&["bench", "true", "-r", "3"]);
    assert_eq!((times[0]["command"].as_str(), times[0]["runs"].as_u64()), (Some("true"), Some(3)));
    assert_eq!(sandbox.run(&["bench", "exit 3", "-r", "2"]).code, Some(4));
    assert_eq!(sandbox.run(&["bench", "-i", "exit 3", "-r", "2"]).code, Some(0));
    let refused = [
        &["bench", ""][..],
        &["bench"],
        &["bench", "true", "-r", "0"],
        &["bench", "-N", "echo 'a"],
        &["bench", "-N", "/no/such/program"],
        &["bench", "true", "true"],
        &["bench", "true", "-n", "alone"],
        &["bench", "true", "--time-cap", "0s"],
        &["bench", "true {n}", "-L", "n", "1,2", "-L", "n", "3,4"],
        &["bench", "true {n}", "-P", "n", "1", "9223372036854775807"],
    ];
    for refused in refused {
        assert_eq!(sandbox.run(refused).code, Some(2), "{refused:?}");
    }
}

/// A block is begun before the time is over, or not at all.
#[test]
fn no_run_begins_after_the_time_cap() {
    let sandbox = Sandbox::new();
    let bench =
        ["bench", "sleep 0.6", "--warmup", "0", "--time-cap", "500ms", "--quiet", "--label", "capped"];
    sandbox.run_successfully(&bench);
    let shown = sandbox.run_json(&["show", "capped"]);
    let time = shown.as_array().unwrap().iter().find(|row| row["metric"] == "time").unwrap();
    assert_eq!(time["n"], 1, "{time}");
}

/// Every iteration from the first on fails: nothing comes of more of them. Those that have begun when that is seen end, too.
#[test]
fn a_command_that_always_fails_ends_the_run() {
    let sandbox = Sandbox::new();
    let iterations = |words: &[&str]| {
        assert_eq!(sandbox.run(words).code, Some(4), "{words:?}");
        sandbox.run_json(&["show", "@latest", "--iterations"]).as_array().unwrap().len()
    };
    let few = 5..80;
    assert!(few.contains(&iterations(&["bench", "-r", "200", "exit 3"])));
    assert!(few.contains(&iterations(&["bench", "-r", "200", "exit 3", "exit 4"])));
    let words = ["run", "--iterations", "200", "--no-report", "--", "sh", "-c", "exit 3"];
    assert!(few.contains(&iterations(&words)));
    // One that ends well makes failures results, of whichever command they are.
    assert_eq!(iterations(&["bench", "-r", "20", "exit 3", "true"]), 42);
    let every_other = "test -e x && { rm x; exit 3; }; touch x";
    assert_eq!(iterations(&["bench", "-r", "20", every_other]), 21);
    // Whoever wrote a study gets what it says.
    let study = "run = { iterations = 20, warmup = 0 }\n[workload.fails]\ncommand = \"exit 3\"\n";
    let study = sandbox.write_study("fails.toml", study);
    assert_eq!(iterations(&["run", &study, "--no-report"]), 20);
}

#[test]
fn what_surrounds_the_runs_is_carried_out() {
    let sandbox = Sandbox::new();
    let say = |word: &str| format!("echo {word} >> {}", sandbox.path("log").display());
    let (setup, prepare, conclude, cleanup) = (say("setup"), say("prepare"), say("conclude"), say("cleanup"));
    let typed = [
        "bench", "true", "-r", "2", "-w", "0", "-s", &setup, "-p", &prepare, "-C", &conclude, "-c", &cleanup,
    ];
    sandbox.run_successfully(&typed);
    let log = std::fs::read_to_string(sandbox.path("log")).unwrap();
    let order = ["setup", "prepare", "conclude", "prepare", "conclude", "cleanup"];
    assert_eq!(log.lines().collect::<Vec<_>>(), order);
}

/// What was measured is kept, and the exit code says that something was not put away.
#[test]
fn a_failing_cleanup_fails_the_run() {
    let sandbox = Sandbox::new();
    let said = sandbox.run(&["bench", "true", "-r", "2", "-c", "echo still there >&2; exit 3"]);
    assert_eq!(said.code, Some(4));
    assert_eq!(sandbox.latest_status(), "failed");
    let listed = sandbox.run_json(&["show", "--iterations"]);
    assert!(listed.as_array().unwrap().iter().all(|row| row["outcome"] == "ok"), "{listed}");
}

#[test]
fn a_command_runs_under_any_factor() {
    let sandbox = Sandbox::new();
    let typed = [
        "--format",
        "json",
        "run",
        "--vary",
        "environment:HOW=first,second",
        "--iterations",
        "6",
        "--no-report",
        "--",
        "sh",
        "-c",
        "echo $HOW",
    ];
    let found: Value = serde_json::from_str(&sandbox.run_successfully(&typed).out).unwrap();
    assert_eq!((found[0]["by"].as_str(), found[0]["baseline"].as_str()), (Some("HOW"), Some("first")));
    let metrics: BTreeSet<&str> = rows(&found).iter().map(|row| row["metric"].as_str().unwrap()).collect();
    assert_eq!(metrics.first(), Some(&"time"), "{metrics:?}");
    // All that an iteration used is there where it is asked for.
    let used = sandbox.run_json(&["compare", "@latest", "--metric", "user", "--metric", "minor-faults"]);
    assert_eq!(used["rows"].as_array().unwrap().len(), 2);

    let both = ["run", "quickstart", "--", "true"];
    assert_eq!(sandbox.run(&both).code, Some(2));
    assert_eq!(sandbox.run(&["run", "--vary", "sysctl:vm.swappiness=1", "--", "true"]).code, Some(2));
    assert_eq!(sandbox.run(&["run", "--", "no-such-program-anywhere"]).code, Some(2));
}

#[test]
fn a_study_has_commands_of_its_own_and_mistakes_in_them_have_their_place() {
    let sandbox = Sandbox::new();
    let study = |rule: &str| {
        sandbox.write_study(
            "own.toml",
            &format!(
                "run = {{ iterations = 2, warmup = 0 }}\n[workload.count]\ncommand = \"seq {{{{ n }}}} | wc -l\"\n\
                 [[workload.count.metric]]\nname = \"lines\"\nunit = \"1\"\ndirection = \"higher\"\nprimary = true\n{rule}\n\
                 [factor.n]\nkind = \"parameter\"\nlevels = [10, 20]\n"
            ),
        )
    };
    let good = study("regex = '(?<value>\\d+)'");
    sandbox.run_successfully(&["study", "check", &good]);
    let found: Value = serde_json::from_str(
        &sandbox.run_successfully(&["run", &good, "--no-report", "--format", "json"]).out,
    )
    .unwrap();
    let lines = rows(&found).iter().find(|row| row["metric"] == "lines").unwrap();
    assert_eq!(
        (lines["baseline"]["median"].as_f64(), lines["candidate"]["median"].as_f64()),
        (Some(10.0), Some(20.0))
    );

    let bad = study("regex = '('");
    let said = sandbox.run(&["study", "check", &bad]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stable_err(), @"error: /tmp/.TMP/own.toml:10:1: `workload.count.metric[0].regex`: regex parse error:     (     ^ error: unclosed group");
}

#[test]
fn a_study_has_histograms_of_its_own() {
    let sandbox = Sandbox::new();
    let study = sandbox.write_study(
        "own.toml",
        "run = { iterations = 2, warmup = 0 }\n[workload.count]\ncommand = \"printf '3 98\\\\n{{ n }} 2\\\\n'\"\n\
         [[workload.count.histogram]]\nname = \"late\"\nunit = \"us\"\ndirection = \"lower\"\npercentiles = [50, 99, 99.9]\n\
         primary = [\"p99\"]\nregex = '^(?<value>\\d+) (?<count>\\d+)$'\n\
         [factor.n]\nkind = \"parameter\"\nlevels = [10, 20]\n",
    );
    let said = sandbox.run_successfully(&["run", &study, "--no-report", "--format", "json"]);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    let late = |name: &str| rows(&found).iter().find(|row| row["metric"] == name);
    let medians = |row: &Value| ["baseline", "candidate"].map(|side| row[side]["median"].as_f64());
    assert_eq!(medians(late("late-p99").unwrap()), [Some(10.0), Some(20.0)]);
    // Of a hundred values there is no thousandth.
    assert!(late("late-p99.9").is_none(), "{}", said.out);
}

#[test]
fn what_a_command_prints_on_its_way_is_a_table_like_a_monitors() {
    let sandbox = Sandbox::new();
    let command = "for i in 1 2 3; do sleep 0.05; echo at $((i * 50)) ms: $((i * {{ n }})); done";
    let study = sandbox.write_study(
        "own.toml",
        &format!(
            "run = {{ iterations = 2, warmup = 0 }}\n[workload.count]\ncommand = \"{command}\"\n\
             [[workload.count.series]]\nname = \"progress\"\nregex = '^at (?<time>\\d+) ms: (?<rate>\\d+)$'\n\
             columns = {{ rate = \"1/s\" }}\ninterval = \"50ms\"\ntime_scale = 0.001\n\
             [factor.n]\nkind = \"parameter\"\nlevels = [10, 20]\n"
        ),
    );
    sandbox.run_successfully(&["run", &study, "--no-report", "--label", "own"]);
    let found = sandbox.run_json(&["compare", "own", "--by", "n", "--monitor", "count-progress"]);
    let rate = found["rows"].as_array().unwrap().iter().find(|row| row["metric"] == "rate").unwrap();
    let medians = ["baseline", "candidate"].map(|side| rate[side]["median"].as_f64());
    assert_eq!(medians, [Some(20.0), Some(40.0)]);
    sandbox.run_successfully(&[
        "plot",
        "timeline",
        "own",
        "--column",
        "count-progress.rate",
        "-o",
        "rate.svg",
    ]);
    assert!(sandbox.path("rate.svg").is_file());
}

#[test]
fn files_of_other_tools_are_compared_as_they_are() {
    let sandbox = Sandbox::new();
    let write = |name: &str, times: &[f64]| {
        let results = serde_json::json!({ "results": [{
            "command": "make", "mean": 1.0, "stddev": 0.1, "median": 1.0, "user": 0.5, "system": 0.1,
            "min": 0.9, "max": 1.1, "times": times, "exit_codes": vec![0; times.len()],
        }] });
        std::fs::write(sandbox.path(name), results.to_string()).unwrap();
    };
    write("old.json", &[1.00, 1.01, 1.02, 1.00, 1.01, 0.99, 1.00, 1.01]);
    write("new.json", &[2.00, 2.01, 2.02, 2.00, 2.01, 1.99, 2.00, 2.01]);
    let found = sandbox.run_json(&["compare", "old.json", "new.json"]);
    assert_eq!(
        (found["baseline"].as_str(), found["candidates"][0].as_str()),
        (Some("old.json"), Some("new.json"))
    );
    assert_eq!(found["rows"][0]["verdict"], "differs");
    let turned = sandbox.run_json(&["compare", "old.json", "new.json", "--baseline", "new.json"]);
    assert_eq!(turned["baseline"], "new.json");
    // Nothing is left of them.
    assert_eq!(sandbox.run_json(&["list"]).as_array().unwrap().len(), 0);
    std::fs::write(sandbox.path("what.txt"), "nothing that anybody knows\n").unwrap();
    assert_eq!(sandbox.run(&["compare", "old.json", "what.txt"]).code, Some(2));
}

#[test]
fn the_machine_is_watched_while_a_command_runs_and_at_rest() {
    let sandbox = Sandbox::new();
    let typed = ["--format", "json", "watch", "--quiet-time", "200ms", "--every", "20ms", "--"];
    let said =
        sandbox.run_successfully(&[&typed[..], &["sh", "-c", "seq 3000000 | sort > /dev/null"]].concat());
    let found: Value = serde_json::from_str(&said.out).unwrap();
    let activity = found["activity"].as_array().unwrap();
    let user = activity.iter().find(|one| one["source"] == "stat.user").unwrap();
    assert!(user["during"].as_f64().unwrap() > 0.0 && user["at_rest"].is_number(), "{user}");
    assert!(activity.iter().any(|one| one["source"] == "meminfo.MemAvailable"));
    assert_eq!(sandbox.run(&["watch", "--quiet-time", "0s", "--", "sh", "-c", "exit 3"]).code, Some(4));
    // What is over before the first tick is known by what was read at its edges.
    let typed = ["--format", "json", "watch", "--quiet-time", "0s", "--every", "5s", "--"];
    let said =
        sandbox.run_successfully(&[&typed[..], &["sh", "-c", "seq 3000000 | sort > /dev/null"]].concat());
    let found: Value = serde_json::from_str(&said.out).unwrap();
    let activity = found["activity"].as_array().unwrap();
    let rate = |source: &str| activity.iter().find(|one| one["source"] == source)?["during"].as_f64();
    assert!(rate("stat.user").is_some_and(|user| user > 0.0), "{found}");
    assert!(rate("stat.processes").is_some_and(|forks| forks > 0.0), "{found}");
    assert_eq!(sandbox.run(&["reproduce"]).code, Some(2), "no study describes it");
}

#[test]
fn parameters_reach_every_command_and_what_is_varied_is_checked() {
    let sandbox = Sandbox::new();
    let found = sandbox.run_json(&["bench", "-L", "n", "1,2", "-r", "2", "echo a{n}", "echo b{n}"]);
    assert_eq!(found.as_array().unwrap().len(), 2, "two factors");
    let printed: BTreeSet<String> = (0..8)
        .flat_map(|slot| {
            let typed = ["show", "@latest", "--output", &slot.to_string()];
            let said = sandbox.run(&typed).out;
            said.lines().filter(|line| line.len() == 2).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(printed.into_iter().collect::<Vec<_>>(), ["a1", "a2", "b1", "b2"]);

    let run = |vary: &str, command: &str| {
        let typed = ["run", "--vary", vary, "--iterations", "2", "--no-report", "--", "sh", "-c", command];
        sandbox.run(&typed).code
    };
    let file = sandbox.path("file");
    assert_eq!(run("parameter:n=1,2", &format!("echo {{n}} >> {}", file.display())), Some(0));
    assert!(std::fs::read_to_string(&file).unwrap().lines().all(|line| ["1", "2"].contains(&line)));
    let before = std::fs::read(&file).unwrap();
    assert_eq!(run(&format!("file:{}=a,b", file.display()), "true"), Some(2), "not under /proc or /sys");
    let decoy = file.display().to_string();
    assert_eq!(run(&format!("file:/proc/..{decoy}=a,b"), "true"), Some(2), "up and out of /proc");
    assert_eq!(run(&format!("sysctl:../..{decoy}=1,2"), "true"), Some(2), "up and out of /proc/sys");
    assert_ne!(run(&format!("file:/proc/self/root{decoy}=a,b"), "true"), Some(0), "a link out of /proc");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    assert_eq!(run("parameter:n=1,2", "true"), Some(2), "nothing names it");
    assert_eq!(run("drop-caches=0,9", "true"), Some(2));
    assert_eq!(run("disk:filesystem=ext4,nosuchfs", "true"), Some(2));
}
