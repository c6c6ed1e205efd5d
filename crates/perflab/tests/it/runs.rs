//! Runs as things: list, label, rm, show, diff, export, import, prune.

use std::process::Stdio;

use crate::laboratory::{Sandbox, is_root, skip_test};

/// A label that no run has is told with the nearest, as by every verb that takes one; the list is printed all the same.
#[test]
fn a_label_that_no_run_has_is_no_empty_answer_alone() {
    let laboratory = Sandbox::new();
    let empty = laboratory.run(&["list", "--label", "before", "--format", "json"]);
    assert_eq!((empty.code, empty.out.trim()), (Some(2), "[]"), "{}", empty.err);
    laboratory.run_echo("before", 100);
    assert_eq!(laboratory.run_json(&["list", "--label", "before"]).as_array().unwrap().len(), 1);
    let said = laboratory.run(&["list", "--label", "befor", "--format", "json"]);
    assert_eq!((said.code, said.out.trim()), (Some(2), "[]"));
    insta::assert_snapshot!(said.stable_err(), @"error: no run has the label `befor`; did you mean `before`?");
    assert_eq!(laboratory.run(&["history", "--label", "befor"]).code, said.code);
}

/// What a workload leaves running is ended, and whoever meant to measure it learns of that once.
#[test]
fn processes_that_a_workload_leaves_behind_are_told_once() {
    let laboratory = Sandbox::new();
    let study = "run = { iterations = 3, warmup = 0 }\n[workload.leave]\nshell = \"sh\"\n\
         setup = \"setsid sleep 3571 & true\"\ncommand = \"sleep 3571 & sleep 3571 & true\"\n[workload.wait]\nshell = \"sh\"\ncommand = \"true & wait\"\n";
    let study = laboratory.write_study("leave.toml", study);
    let said = laboratory.run_successfully(&["run", &study, "--label", "l", "--no-report"]);
    // As it happens, and in the summary.
    let count = |what: &str| said.err.lines().filter(|line| line.starts_with(what)).count();
    let told =
        ["warning: `setup` of leave left a process", "warning: an iteration of leave left 2 processes"];
    assert_eq!((told.map(count), count("warning: ")), ([2, 2], 4), "{}", said.err);
    let processes = std::process::Command::new("ps").args(["-eo", "args"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&processes.stdout).contains("sleep 3571"));
}

/// Cases share `{{ kept }}`: in turns, each would have what the other's set-up made last.
#[test]
fn a_set_up_that_writes_over_what_another_made_is_told_once() {
    let laboratory = Sandbox::new();
    let warned = |order: &str, one: &str, other: &str| {
        let workload = |name: &str, count: &str| {
            format!(
                "[workload.{name}]\ncommand = \"wc -l < {{{{ kept }}}}/lines\"\nsetup = \"seq {count} | tee {{{{ kept }}}}/lines\"\n"
            )
        };
        let text = format!(
            "run = {{ iterations = 2, warmup = 0, order = \"{order}\" }}\n{}{}",
            workload("a", one),
            workload("b", other)
        );
        let study = laboratory.write_study("kept.toml", &text);
        laboratory.run_successfully(&["run", &study, "--seed", "1", "--no-report"]);
        let archive = perflab_archive::Archive::open(&laboratory.path("archive")).unwrap();
        let warnings = archive.find_runs("@latest").unwrap().remove(0).read_record().unwrap().warnings;
        warnings.into_iter().map(|one| one.message).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(warned("randomised", "10", "20"), @"`setup` of a wrote over what that of b had made: {{ kept }}/lines");
    assert_eq!(warned("sequential", "10", "20"), "", "the other's iterations are over");
    assert_eq!(warned("randomised", "10", "10"), "", "it is the same");
}

/// Definitions that differ are told by what differs in them.
#[test]
fn two_runs_of_a_study_that_was_edited_differ_in_what_was_edited() {
    let laboratory = Sandbox::new();
    let run = |setup: &str| {
        let text = format!(
            "run = {{ iterations = 1, warmup = 0 }}\n[workload.w]\ncommand = \"true\"\nsetup = \"echo {setup}\"\n[workload.echo]\n"
        );
        let study = laboratory.write_study("edited.toml", &text);
        laboratory.run_successfully(&["run", &study, "--no-report", "--quiet"]);
    };
    run("one");
    laboratory.write_workload("echo", "", "echo speed 7");
    run("two");
    let found = laboratory.run_json(&["diff"]);
    let keys = found.as_array().unwrap().iter().map(|row| row["what"].as_str().unwrap());
    let keys: Vec<&str> = keys.filter(|key| key.contains(": ") && !key.starts_with("fact ")).collect();
    assert_eq!(keys[0], "w: setup", "{found:#}");
    assert!(
        keys.contains(&"echo: command") && !keys.iter().any(|key| key.ends_with(": definition")),
        "{keys:?}"
    );
}

#[test]
fn a_run_travels_as_one_file() {
    let (home, away) = (Sandbox::new(), Sandbox::new());
    home.run_echo("a", 100);
    let file = home.path("a.perflab").display().to_string();
    home.run_successfully(&["export", "a", &file]);
    let direct = home.run_successfully(&["show", &file]);
    away.run_successfully(&["import", &file]);
    assert_eq!(away.run_successfully(&["show", "a"]).out, direct.out);
    let again = away.run(&["import", &file]);
    assert_eq!(again.code, Some(2), "{}", again.err);
}

#[test]
fn prune_says_first_and_does_on_apply() {
    let laboratory = Sandbox::new();
    for label in ["a", "b", "c"] {
        laboratory.run_echo(label, 100);
    }
    let runs = || laboratory.run_successfully(&["list", "--format", "csv"]).out.lines().count() - 1;
    assert_eq!(laboratory.run(&["prune"]).code, Some(2));
    laboratory.run_successfully(&["prune", "--keep", "1", "--labelled"]);
    assert_eq!(runs(), 3);
    laboratory.run_successfully(&["prune", "--keep", "1", "--apply"]);
    assert_eq!(runs(), 3, "labelled runs stay unless named");
    laboratory.run_successfully(&["prune", "--keep", "1", "--labelled", "--apply"]);
    assert_eq!(runs(), 1);
    assert_eq!(laboratory.run(&["prune", "--older-than", "soon"]).code, Some(2));
}

#[test]
fn a_label_is_given_later_and_a_run_removed_by_name() {
    let laboratory = Sandbox::new();
    for label in ["a", "a", "b"] {
        laboratory.run_echo(label, 100);
    }
    let listed = |arguments: &[&str]| -> Vec<(String, String)> {
        let table = laboratory.run_successfully(&[&["list", "--format", "json"], arguments].concat()).out;
        let rows: Vec<serde_json::Value> = serde_json::from_str(&table).unwrap();
        let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        rows.iter().map(|row| (text(row, "run"), text(row, "label"))).collect()
    };
    let all = listed(&[]);
    assert_eq!(listed(&["--label", "a"]), all[..2]);
    assert_eq!(listed(&["--last", "1"]), all[2..]);
    assert_eq!(listed(&["--label", "a", "--last", "1"]), all[1..2]);
    let before = laboratory.run_successfully(&["show", "@latest", "--format", "json"]).out;
    laboratory.run_successfully(&["label", "b", "candidate"]);
    assert_eq!(laboratory.run(&["show", "b"]).code, Some(2), "nothing is called so any more");
    laboratory.run_successfully(&["label", "candidate", "b"]);
    assert_eq!(
        laboratory.run_successfully(&["show", "b", "--format", "json"]).out,
        before,
        "nothing else changed"
    );
    laboratory.run_successfully(&["label", "@latest", "--remove"]);
    assert_eq!(listed(&[])[2].1, "");
    for wrong in
        [&["rm", "a"][..], &["rm", &all[0].0, "nothing"], &["label", "a", "x"], &["rm"], &["label", "b"]]
    {
        assert_eq!(laboratory.run(wrong).code, Some(2), "{wrong:?}");
    }
    assert_eq!(listed(&[]).len(), 3, "where one is wrong, none goes");
    std::fs::write(laboratory.path(&format!("archive/runs/{}/run.json", all[1].0)), "{").unwrap();
    laboratory.run_successfully(&["rm", &all[1].0, "@latest"]);
    assert_eq!(listed(&[]), all[..1], "a damaged one too");
    let (other, file) = (Sandbox::new(), laboratory.path("a.perflab").display().to_string());
    laboratory.run_successfully(&["export", "a", &file]);
    let elsewhere = laboratory.path(&format!("archive/runs/{}", all[0].0)).display().to_string();
    for wrong in [&file, &elsewhere] {
        assert_eq!(other.run(&["rm", wrong]).code, Some(2), "{wrong} is no run of that archive");
        assert_eq!(other.run(&["label", wrong, "x"]).code, Some(2));
    }
    assert_eq!(listed(&[]), all[..1]);
}

#[test]
fn diff_names_what_is_not_the_same() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("a", 100);
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 3, warmup = 0, order = \"sequential\" }\n[workload.echo]",
    );
    laboratory.run_successfully(&["run", &study, "--label", "b"]);
    let told = laboratory.run_json(&["diff", "a", "b"]);
    let rows = told.as_array().unwrap();
    // Of both runs, whose names are the columns'.
    let values = |what: &str| -> Vec<&str> {
        let row = rows.iter().find(|row| row["what"] == what).unwrap().as_object().unwrap();
        let of_runs = row.iter().filter(|(column, _)| column.starts_with("01"));
        of_runs.map(|(_, value)| value.as_str().unwrap()).collect()
    };
    assert_eq!(values("order"), ["randomised", "sequential"]);
    assert_eq!(values("iterations"), ["8", "3"]);
    assert!(rows.iter().all(|row| row["what"] != "cpu.model"), "what is the same is left out: {told}");
}

#[test]
fn the_output_of_an_iteration_is_kept() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("a", 123);
    assert_eq!(laboratory.run_successfully(&["show", "a", "--output", "0"]).out, "speed 123\n");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let laboratory = Sandbox::new();
    let mut command = laboratory.command(&["check", "--facts"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_report_of_two_runs_is_one_file() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("a", 100);
    laboratory.run_echo("b", 90);
    laboratory.run_successfully(&["report", "a", "b", "--output", "r.html"]);
    let html = std::fs::read_to_string(laboratory.path("r.html")).unwrap();
    let rows = html.split("<tr role=\"row\" data-verdict=\"").skip(1);
    let verdicts: Vec<&str> = rows.filter_map(|row| row.split('"').next()).collect();
    assert_eq!(verdicts, ["differs"]);
}

#[test]
fn the_index_is_checked_and_made_anew() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("before", 100);
    laboratory.run_echo("after", 90);
    let check = laboratory.run_json(&["index"]);
    assert_eq!(
        (&check["runs"], &check["right"], &check["wrong"]),
        (&2.into(), &2.into(), &serde_json::json!([]))
    );
    std::fs::write(laboratory.path("archive/index.sqlite"), "no index").unwrap();
    let said = laboratory.run_successfully(&["index", "--check", "--format", "json"]);
    let check: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert!(check["unusable"].is_string() && check["stale"].as_array().unwrap().len() == 2, "{check}");
    assert_eq!(laboratory.run_json(&["index", "--rebuild"])["runs"], 2);
    assert_eq!(laboratory.run_json(&["index", "--check"])["right"], 2);
    assert_eq!(laboratory.run(&["index", "--check", "--rebuild"]).code, Some(2));
}

/// The kernel says who dropped its caches; a line that it prints at one level of a factor only stands below the verdicts. A process that
/// is killed for its memory is trouble.
#[test]
fn what_the_kernel_prints_on_one_side_only_is_compared_and_can_fail_root() {
    let kill = "root=/sys/fs/cgroup/memory; limit=memory.limit_in_bytes; [ -d $root ] || { root=/sys/fs/cgroup; limit=memory.max; \
                echo +memory > $root/cgroup.subtree_control; }; own=$root/perflab-test-$$; mkdir $own; echo 16M > $own/$limit; \
                sh -c \"echo \\$\\$ > $own/cgroup.procs; exec dd if=/dev/zero of=/dev/null bs=100M count=1\" 2> /dev/null; rmdir $own";
    let can_kill = is_root() && {
        let script = format!("({kill}) 2> /dev/null; dmesg | tail -n 5 | grep -q 'Killed process'");
        std::process::Command::new("sh").args(["-c", &script]).status().is_ok_and(|status| status.success())
    };
    if !can_kill {
        return skip_test(
            "what_the_kernel_prints_on_one_side_only",
            "needs root, memory cgroups and the kernel's log",
        );
    }
    let laboratory = Sandbox::new();
    let command = serde_json::json!(format!("[ $KILL = no ] || {{ {kill}; }}; true"));
    let text = format!(
        "[run]\niterations = 3\nwarmup = 0\n[workload.w]\ncommand = {command}\n[factor.kill]\nkind = \"environment\"\nkey = \"KILL\"\n\
         levels = [\"no\", \"yes\"]\n"
    );
    let study = laboratory.write_study("s.toml", &text);
    let run = |condition: &str| {
        laboratory
            .run(&["run", &study, "--no-report", "--quiet", "--label", condition, "--fail-if", condition])
            .code
    };
    assert_eq!(run("kernel-log:out-of-memory"), Some(5));
    let found = laboratory.run_json(&["compare", "kernel-log:out-of-memory", "--by", "kill"]);
    let log = &found["kernel_log"];
    let trouble = log["troubles"].as_array().unwrap();
    let of_ours = trouble.iter().find(|row| row["trouble"] == "out-of-memory").unwrap();
    let counts =
        [0, 1].map(|side: usize| (&of_ours["sides"][side]["iterations"], &of_ours["sides"][side]["of"]));
    assert_eq!(counts, [(&0.into(), &3.into()), (&3.into(), &3.into())], "{log}");
    let is_killed = |row: &serde_json::Value| {
        row["line"]
            .as_str()
            .unwrap()
            .starts_with("Memory cgroup out of memory: Killed process N (dd) total-vm:NkB")
    };
    assert!(log["lines"].as_array().unwrap().iter().any(is_killed), "{log}");
    let compare = |condition: &str| {
        let args = ["compare", "kernel-log:out-of-memory", "--by", "kill", "--fail-if", condition];
        laboratory.run(&args).code
    };
    assert_eq!((compare("kernel-log:any"), compare("kernel-log:machine-check")), (Some(5), Some(0)));
    let reversed = [
        "compare",
        "kernel-log:out-of-memory",
        "--by",
        "kill",
        "--baseline",
        "yes",
        "--fail-if",
        "kernel-log:any",
    ];
    assert_eq!(laboratory.run(&reversed).code, Some(0), "what the baseline has is not new");
    assert_eq!(laboratory.run(&["run", &study, "--fail-if", "worse"]).code, Some(2));
    assert_eq!(laboratory.run(&["run", &study, "--fail-if", "kernel-log:nothing"]).code, Some(2));
    // What was not kept cannot be judged.
    let text = format!("kernel-log = false\n{text}");
    let study = laboratory.write_study("without.toml", &text);
    let without =
        ["run", &study, "--no-report", "--quiet", "--label", "without", "--fail-if", "kernel-log:any"];
    assert_eq!(laboratory.run(&without).code, Some(7));
    assert_eq!(laboratory.run(&["compare", "without", "--fail-if", "kernel-log:any"]).code, Some(7));
}

/// The kernel says who dropped its caches.
#[test]
fn the_lines_of_the_kernels_log_are_shown_with_their_iterations_root() {
    if !is_root() {
        return skip_test(
            "the_lines_of_the_kernels_log_are_shown_with_their_iterations_root",
            "dropping caches and reading the log need root",
        );
    }
    let laboratory = Sandbox::new();
    let text = "[run]\niterations = 1\nwarmup = 0\n[workload.drop]\ncommand = \"echo 1 > /proc/sys/vm/drop_caches\"\n";
    let study = laboratory.write_study("s.toml", text);
    laboratory.run_successfully(&["run", &study, "--no-report", "--quiet"]);
    let shown = laboratory.run_json(&["show", "--kernel-log"]);
    let is_ours =
        |row: &serde_json::Value| row["slot"] == "0" && row["line"].as_str().unwrap().contains("drop_caches");
    assert!(shown.as_array().unwrap().iter().any(is_ours), "{shown}");
}

/// `@latest` is another run; without a letter nobody can name it.
#[test]
fn labels_can_be_used() {
    let laboratory = Sandbox::new();
    for label in ["@latest", "@mine", ""] {
        let bench = ["bench", "true", "-r", "1", "--quiet", "--label", label];
        assert_eq!(laboratory.run(&bench).code, Some(2), "{label}");
    }
    laboratory.run_successfully(&["bench", "true", "-r", "1", "--quiet", "--label", "mine"]);
    assert_eq!(laboratory.run(&["label", "mine", "@latest"]).code, Some(2));
    assert_eq!(laboratory.run(&["slab", "record", "--label", "@mine", "--", "true"]).code, Some(2));
}
