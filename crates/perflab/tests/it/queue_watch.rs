//! `perflab queue watch` on real git trees: what is new is tested once, whatever kills perflab in between, and what steps is bisected.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::interrupted::{send_signal, wait_for_condition};
use crate::laboratory::{is_root, skip_test, to_command_output};
use crate::repository::Repository;

/// Says the commit's speed, with a little noise.
const SPEED: &str = "run = { iterations = 3, warmup = 0 }\n[workload.speed]\n\
    command = 'echo speed $(( $(cat $PERFLAB_TREE/built) + $(date +%N | tail -c 2) ))'\n\
    [[workload.speed.metric]]\nname = \"speed\"\nunit = \"ops/s\"\ndirection = \"higher\"\nprimary = true\n\
    regex = 'speed (?<value>[0-9.]+)'\n";

const WATCH: &[&str] = &["queue", "watch", "tree", "--study", "speed.toml", "--build", "sh build.sh"];

/// A tree whose only commit is as fast as this.
fn prepare_tree(test: &str, study: &str, speed: u32) -> Option<Repository> {
    let mut repository = Repository::empty(test)?;
    repository.sandbox.write_study("speed.toml", study);
    repository.write("build.sh", "cp speed built\n");
    commit_speed(&mut repository, speed, "the first");
    Some(repository)
}

fn commit_speed(repository: &mut Repository, speed: u32, subject: &str) -> String {
    repository.write("speed", &format!("{speed}\n"));
    repository.write("notes", &format!("{subject}\n"));
    repository.commit(subject)
}

/// One look; its exit code, and what it says.
fn look(repository: &Repository, more: &[&str]) -> (Option<i32>, Value) {
    let typed = [&["--format", "json"], WATCH, &["--once"], more].concat();
    let said = repository.sandbox.run(&typed);
    let document = serde_json::from_str(&said.out);
    (said.code, document.unwrap_or_else(|error| panic!("{error}: {}\n{}", said.out, said.err)))
}

fn list_runs(repository: &Repository) -> Vec<Value> {
    repository.sandbox.run_json(&["list"]).as_array().unwrap().clone()
}

fn count_bisections(runs: &[Value]) -> usize {
    runs.iter().filter(|run| run["label"].as_str().unwrap().starts_with("bisect:")).count()
}

/// What the only watch has on the disk.
fn read_state(repository: &Repository) -> Value {
    let folders = fs::read_dir(repository.sandbox.path("state/watch")).into_iter().flatten();
    let files = folders.map(|folder| folder.unwrap().path().join("state.json"));
    let text = files.filter_map(|file| fs::read_to_string(file).ok()).next();
    text.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
}

#[test]
fn what_is_new_is_tested_once_and_the_tree_is_only_read() {
    let Some(mut repository) = prepare_tree("queue_watch", SPEED, 10000) else { return };
    // What is not committed is of no matter.
    repository.write("speed", "1\n");
    let before = repository.git(&["status", "--porcelain", "--ignored"]);
    // A tag of the branch's name is not the branch.
    repository.git(&["tag", "main"]);
    let (code, first) = look(&repository, &["--runs", "2"]);
    assert_eq!((code, &first["is_new"], &first["outcome"]), (Some(0), &true.into(), &"unjudged".into()));
    assert_eq!(first["commit"]["id"], repository.commits[0].as_str());
    let runs = list_runs(&repository);
    assert!(runs.len() == 2 && runs.iter().all(|run| run["label"] == "watch:main"), "{runs:?}");
    let facts = repository.sandbox.run_json(&["show", "@latest", "--facts"]);
    assert!(facts.to_string().contains(&repository.commits[0]), "{facts}");
    let exported = repository.sandbox.run_successfully(&["export", "--to", "csv", "--output", "-"]).out;
    let speeds: Vec<&str> = exported.lines().filter(|line| line.contains(",ops/s,")).collect();
    assert!(speeds.len() == 3 && speeds.iter().all(|line| line.contains(",1000")), "{exported}");
    assert_eq!(repository.git(&["status", "--porcelain", "--ignored"]), before);
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
    repository.git(&["checkout", "-q", "."]);

    let (code, again) = look(&repository, &["--runs", "2"]);
    assert_eq!((code, &again["is_new"], &again["outcome"]), (Some(0), &false.into(), &"unjudged".into()));

    // A comment changes nothing of what a study means.
    repository.sandbox.write_study("speed.toml", &format!("{SPEED}# a comment\n"));
    assert_eq!(look(&repository, &[]).1["is_new"], false);

    // A commit that does not build is said once, and stands in the report; a build writes nothing into the tree.
    repository
        .write("build.sh", "git push -q origin HEAD:refs/heads/pushed; echo 'speed.c:7: no' >&2; exit 2\n");
    let broken = commit_speed(&mut repository, 10000, "cannot be built");
    let (code, told) = look(&repository, &[]);
    assert_eq!((code, &told["outcome"]), (Some(4), &"unbuildable".into()));
    assert!(fs::read_to_string(told["report"].as_str().unwrap()).unwrap().contains("cannot be built"));
    assert_eq!(repository.git(&["branch", "--list"]), "* main");
    assert!(told["reason"].is_string() && told["commit"]["id"] == broken.as_str(), "{told}");
    let (code, again) = look(&repository, &[]);
    assert_eq!((code, &again["is_new"]), (Some(0), &false.into()));
    assert_eq!(list_runs(&repository).len(), 2);
    let (code, again) = look(&repository, &["--retry"]);
    assert_eq!((code, &again["is_new"], &again["outcome"]), (Some(4), &true.into(), &"unbuildable".into()));

    // The branch is rewritten, without that commit.
    repository.git(&["reset", "-q", "--hard", &repository.commits[0]]);
    let (code, back) = look(&repository, &[]);
    assert_eq!((code, &back["is_new"], &back["rewritten_from"]), (Some(0), &false.into(), &broken.into()));
    commit_speed(&mut repository, 10010, "another second one");
    let (code, other) = look(&repository, &[]);
    assert_eq!((code, &other["is_new"], &other["rewritten_from"]), (Some(0), &true.into(), &Value::Null));
    assert_eq!(list_runs(&repository).len(), 3);

    // A study that was edited has tested nothing yet.
    repository.sandbox.write_study("speed.toml", &SPEED.replace("iterations = 3", "iterations = 2"));
    let (code, edited) = look(&repository, &[]);
    assert_eq!((code, &edited["is_new"]), (Some(0), &true.into()));
}

#[test]
fn what_is_wrong_is_said() {
    let Some(mut repository) = prepare_tree("queue_watch", SPEED, 10000) else { return };
    for wrong in [
        &["--branch", "no-such-branch"][..],
        &["--metric", "no-such-metric"],
        &["--only", "no-such-workload"],
        &["--archive", "tree/archive"],
        &["--archive", "tree"],
        &["--archive", "tree/missing/../archive"],
        &["--archive", "tree/missing/archive"],
        &["--accept", "nothing was tested"],
        &["--runs", "0"],
        &["--label", "@latest"],
        &["--set", "a=b"],
    ] {
        let said = repository.sandbox.run(&[WATCH, &["--once"], wrong].concat());
        assert_eq!(said.code, Some(2), "{wrong:?}: {}", said.err);
    }
    repository.sandbox.write_study("speed.toml", &SPEED.replace("iterations", "repeats"));
    assert_eq!(repository.sandbox.run(&[WATCH, &["--once"]].concat()).code, Some(2));
    repository.sandbox.write_study("speed.toml", SPEED);
    assert!(!repository.sandbox.path("tree/archive").exists());
    let watches = fs::read_dir(repository.sandbox.path("state/watch")).unwrap();
    let mut logs = watches.map(|watch| watch.unwrap().path().join("logs"));
    assert!(!logs.any(|logs| logs.exists()), "nothing was built before that was told");
    fs::create_dir(repository.sandbox.path("nowhere")).unwrap();
    let nowhere = ["queue", "watch", "nowhere", "--study", "speed.toml", "--once"];
    assert_eq!(repository.sandbox.run(&nowhere).code, Some(2));
    assert_eq!(look(&repository, &[]).0, Some(0));
    // A program that fails is the commit's fault, and so told once.
    repository.write("build.sh", "echo 1 2 > built\n");
    repository.commit("says no number");
    let (code, failed) = look(&repository, &[]);
    assert_eq!((code, &failed["outcome"]), (Some(4), &"unrunnable".into()), "{failed}");
    assert_eq!(look(&repository, &[]).0, Some(0));
}

#[test]
fn a_step_is_bisected_told_once_and_written_into_the_report() {
    let Some(mut repository) = prepare_tree("queue_watch", SPEED, 10000) else { return };
    assert_eq!(look(&repository, &["--runs", "6"]).0, Some(0));
    commit_speed(&mut repository, 10000, "nothing");
    let culprit = commit_speed(&mut repository, 5000, "makes it slow");
    commit_speed(&mut repository, 5000, "nothing again");
    let report = repository.sandbox.path("report.html");
    // Killed while it bisects, it goes on.
    let mut watch = watch_in_background(&repository);
    wait_for_condition(|| count_bisections(&list_runs(&repository)) >= 1);
    kill(&mut watch);
    let (code, worse) = look(&repository, &["-o", "report.html"]);
    assert_eq!((code, &worse["outcome"]), (Some(5), &"worse".into()), "{worse}");
    assert_eq!(worse["steps"][0]["good"], repository.commits[0].as_str());
    let bisected = &worse["bisections"][0];
    assert_eq!(
        (&bisected["outcome"], &bisected["culprits"][0]["id"]),
        (&"found".into(), &culprit.clone().into())
    );
    assert!(fs::read_to_string(report).unwrap().contains("makes it slow"));

    // It is worse with the next one, too, and that is known.
    let third = commit_speed(&mut repository, 5010, "nothing for the third time");
    let runs = list_runs(&repository);
    assert_eq!(runs.iter().filter(|run| run["label"] == "watch:main").count(), 7);
    let before = count_bisections(&runs);
    let (code, known) = look(&repository, &[]);
    assert_eq!((code, &known["outcome"]), (Some(0), &"worse".into()), "{known}");
    assert_eq!((&known["steps"][0]["is_known"], &known["commit"]["id"]), (&true.into(), &third.into()));
    // The report goes on to name who is to blame.
    assert!(fs::read_to_string(known["report"].as_str().unwrap()).unwrap().contains("makes it slow"));
    assert_eq!(count_bisections(&list_runs(&repository)), before);
    commit_speed(&mut repository, 10000, "mends it");
    let (code, good) = look(&repository, &[]);
    assert_eq!((code, &good["outcome"]), (Some(0), &"good".into()), "{good}");
    assert_eq!(
        (&good["repaired"][0]["metric"], &good["guard"]["rows"][0]["verdict"]),
        (&"speed".into(), &"same".into())
    );

    // Without a bisection it is said how to do one; a single run is no step.
    let slow = commit_speed(&mut repository, 4000, "makes it slow once more");
    let (code, told) = look(&repository, &["--no-bisect"]);
    assert_eq!((code, &told["outcome"]), (Some(0), &"good".into()), "{told}");
    let command = told["steps"][0]["command"].as_str().unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    assert!(words.starts_with(&["perflab", "bisect"]) && words.contains(&slow.as_str()), "{command}");

    // What was worse before it was mended hides nothing that comes later.
    commit_speed(&mut repository, 4010, "nothing for the fourth time");
    let (code, again) = look(&repository, &[]);
    assert_eq!(
        (code, &again["outcome"], &again["repaired"]),
        (Some(5), &"worse".into(), &Value::Array(vec![]))
    );
    assert_eq!(
        (&again["steps"][0]["good"], &again["bisections"][0]["culprits"][0]["id"]),
        (&good["commit"]["id"], &slow.into())
    );
}

/// Nobody followed it: all the same it does not hide the next one.
#[test]
fn a_suspicion_that_is_over_is_no_measure_either() {
    let Some(mut repository) = prepare_tree("queue_watch", SPEED, 10000) else { return };
    assert_eq!(look(&repository, &["--runs", "6"]).0, Some(0));
    for (speed, suspicions) in [(5000, 1), (5000, 1), (10000, 0), (5000, 1), (10000, 0)] {
        let subject = format!("{speed}, after {}", repository.commits.len());
        commit_speed(&mut repository, speed, &subject);
        let (code, told) = look(&repository, &["--no-bisect"]);
        let steps = told["steps"].as_array().unwrap();
        assert_eq!((code, steps.len()), (Some(0), suspicions), "{told}");
    }
}

/// Five runs are a level; a step among the first of them is told once the history shows it.
#[test]
fn a_step_among_the_first_commits_is_told_once() {
    let Some(mut repository) = prepare_tree("queue_watch", SPEED, 10000) else { return };
    assert_eq!(look(&repository, &["--runs", "4"]).0, Some(0));
    let slow = commit_speed(&mut repository, 7000, "makes it slow");
    let (code, told) = look(&repository, &["--runs", "4"]);
    assert_eq!((code, &told["steps"][0]["evidence"]), (Some(5), &"standing".into()), "{told}");
    assert_eq!(
        (&told["steps"][0]["good"], &told["bisections"][0]["culprits"][0]["id"]),
        (&repository.commits[0].clone().into(), &slow.into())
    );
    let runs = count_bisections(&list_runs(&repository));
    commit_speed(&mut repository, 7000, "nothing");
    let (code, known) = look(&repository, &[]);
    assert_eq!((code, &known["steps"][0]["is_known"]), (Some(0), &true.into()), "{known}");
    assert_eq!(count_bisections(&list_runs(&repository)), runs);
    // What is accepted is the level that the next one is held against.
    repository.sandbox.run_successfully(&[WATCH, &["--accept", "meant"]].concat());
    commit_speed(&mut repository, 7000, "nothing again");
    let (code, good) = look(&repository, &[]);
    assert_eq!(
        (code, &good["outcome"], &good["repaired"]),
        (Some(0), &"good".into(), &Value::Array(vec![])),
        "{good}"
    );
    assert_eq!(repository.sandbox.run(&[WATCH, &["--accept", "meant"]].concat()).code, Some(2));
}

/// Labels that differ in signs only have reports of their own, and a label is of one branch.
#[test]
fn each_branch_has_its_own_label_and_report() {
    let Some(mut repository) = prepare_tree("queue_watch", SPEED, 10000) else { return };
    let long = ["b".repeat(80), "c".repeat(80), "d".repeat(80)].join("/");
    let mut reports = Vec::new();
    for branch in ["a/b", "a-b", &long] {
        repository.git(&["branch", branch]);
        let (code, told) = look(&repository, &["--branch", branch]);
        assert_eq!(code, Some(0), "{told}");
        reports.push(told["report"].as_str().unwrap().to_owned());
    }
    assert!(reports.iter().all(|report| fs::exists(report).unwrap()), "{reports:?}");
    let distinct: std::collections::BTreeSet<&String> = reports.iter().collect();
    assert_eq!(distinct.len(), 3, "{reports:?}");
    let mixed = [WATCH, &["--once", "--branch", "a-b", "--label", "watch:a/b"]].concat();
    assert_eq!(repository.sandbox.run(&mixed).code, Some(2));
    commit_speed(&mut repository, 10000, "on another branch");
    assert_eq!(look(&repository, &["--branch", "a-b"]).1["is_new"], false);
}

/// What cannot be removed is named, and the next look goes on once it can.
#[test]
fn a_file_that_cannot_be_removed_is_named_root() {
    if !is_root() {
        skip_test("queue_watch", "needs root");
        return;
    }
    let Some(mut repository) = prepare_tree("queue_watch", SPEED, 10000) else { return };
    repository.write(
        "build.sh",
        "cp speed built; mkdir deep; touch deep/kept; chattr +i deep/kept || rm deep/kept\n",
    );
    let commit = repository.commit("leaves what cannot be removed");
    assert_eq!(look(&repository, &[]).0, Some(0));
    let watches = fs::read_dir(repository.sandbox.path("state/watch")).unwrap();
    let watch = watches.map(|watch| watch.unwrap().path()).next().unwrap();
    let kept = watch.join("trees").join(commit).join("deep/kept");
    if !kept.exists() {
        skip_test("queue_watch", "this file system has no immutable files");
        return;
    }
    repository.write("build.sh", "cp speed built\n");
    repository.commit("does not");
    let said = repository.sandbox.run(&[WATCH, &["--once"]].concat());
    assert!(Command::new("chattr").arg("-i").arg(&kept).status().unwrap().success());
    assert!(said.code == Some(3) && said.err.contains(kept.to_str().unwrap()), "{}", said.err);
    assert_eq!(look(&repository, &[]).0, Some(0));
}

/// What it leaves is perflab's own to remove, and it is the commit's fault.
#[test]
fn a_commit_whose_build_fills_the_disk_is_left_out_root() {
    if !is_root() {
        skip_test("queue_watch", "needs root");
        return;
    }
    let Some(mut repository) = prepare_tree("queue_watch", SPEED, 10000) else { return };
    let state = repository.sandbox.path("state");
    fs::create_dir(&state).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=32m,mode=700", "tmpfs"];
    assert!(Command::new("mount").args(mount).arg(&state).status().unwrap().success());
    repository.write("build.sh", "cat /dev/zero > big\n");
    repository.commit("fills the disk");
    let mut codes: Vec<Option<i32>> = Vec::new();
    for _ in 0..3 {
        codes.push(repository.sandbox.run(&[WATCH, &["--once"]].concat()).code);
    }
    repository.write("build.sh", "cp speed built\n");
    repository.commit("does not");
    let next = look(&repository, &[]);
    assert!(Command::new("umount").arg(&state).status().unwrap().success());
    assert_eq!(codes, [Some(3), Some(3), Some(4)]);
    assert_eq!(next.0, Some(0), "{}", next.1);
}

/// What a build mounts below its folder is not removed with it.
#[test]
fn what_a_build_mounts_stays_and_is_named_root() {
    if !is_root() {
        skip_test("queue_watch", "needs root");
        return;
    }
    let Some(mut repository) = prepare_tree("queue_watch", SPEED, 10000) else { return };
    let victim = repository.sandbox.path("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("kept"), "").unwrap();
    let mount = format!("cp speed built; mkdir ro && mount --bind {} ro\n", victim.display());
    repository.write("build.sh", &mount);
    let commit = repository.commit("mounts");
    assert_eq!(look(&repository, &[]).0, Some(0));
    repository.write("build.sh", "cp speed built\n");
    repository.commit("does not");
    let said = repository.sandbox.run(&[WATCH, &["--once"]].concat());
    let folders = fs::read_dir(repository.sandbox.path("state/watch")).unwrap();
    let mut places = folders.map(|folder| folder.unwrap().path().join("trees").join(&commit).join("ro"));
    let place = places.find(|place| place.exists());
    assert!(Command::new("umount").arg(place.as_ref().unwrap()).status().unwrap().success());
    assert!(said.code == Some(3) && said.err.contains(place.unwrap().to_str().unwrap()), "{}", said.err);
    assert!(victim.join("kept").exists());
    assert_eq!(look(&repository, &[]).0, Some(0));
}

/// A value that falls out of its history although the commits are alike is the machine's.
#[test]
fn what_the_commits_do_not_explain_is_no_step() {
    let study = SPEED.replace("$PERFLAB_TREE/built", "SPEED_FILE");
    let Some(mut repository) = prepare_tree("queue_watch", SPEED, 10000) else { return };
    let machine = repository.sandbox.path("machine");
    fs::write(&machine, "10000").unwrap();
    repository.sandbox.write_study("speed.toml", &study.replace("SPEED_FILE", machine.to_str().unwrap()));
    assert_eq!(look(&repository, &["--runs", "6"]).0, Some(0));
    commit_speed(&mut repository, 7, "nothing");
    fs::write(&machine, "5000").unwrap();
    let (code, told) = look(&repository, &[]);
    assert_eq!((code, &told["outcome"]), (Some(0), &"good".into()), "{told}");
    assert_eq!(told["bisections"][0]["outcome"], "ends-equal");
}

/// A study whose iterations wait for the file `go`, and leave a line each.
fn waiting_study(repository: &Repository) -> String {
    let at = |name: &str| repository.sandbox.path(name).display().to_string();
    SPEED.replace(
        "command = '",
        &format!(
            "command = 'echo $$ >> {}; while [ ! -e {} ] && [ $(wc -l < {0}) -gt 1 ]; do sleep 0.05; done; ",
            at("iterations"),
            at("go")
        ),
    )
}

fn watch_in_background(repository: &Repository) -> Child {
    let mut command = repository.sandbox.command(&[&["--format", "json"], WATCH, &["--once"]].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

fn kill(watch: &mut Child) {
    send_signal(watch, rustix::process::Signal::KILL);
    watch.wait().unwrap();
}

#[test]
fn a_killed_watch_goes_on_where_it_was() {
    let Some(repository) = prepare_tree("queue_watch", SPEED, 10000) else { return };
    let mut repository = repository;
    let sandbox = &repository.sandbox;
    sandbox.write_study("speed.toml", &waiting_study(&repository));
    let at = |name: &str| sandbox.path(name).display().to_string();
    let build = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.05; done; cp speed built\n",
        at("building"),
        at("built")
    );
    fs::write(sandbox.path("tree/build.sh"), build).unwrap();
    let commit = repository.commit("takes a while to build");
    let sandbox = &repository.sandbox;

    let mut watch = watch_in_background(&repository);
    wait_for_condition(|| sandbox.path("building").exists());
    assert_eq!(read_state(&repository)["current"]["step"], "build");
    // One watches, and nobody else measures meanwhile.
    assert_eq!(sandbox.run(&[WATCH, &["--once"]].concat()).code, Some(3));
    kill(&mut watch);
    fs::write(sandbox.path("built"), "").unwrap();

    let lines = || fs::read_to_string(sandbox.path("iterations")).map_or(0, |text| text.lines().count());
    let mut watch = watch_in_background(&repository);
    // The second one runs, and that the first has ended is written.
    wait_for_condition(|| lines() == 2 && list_runs(&repository).iter().any(|run| run["iterations"] == 1));
    assert_eq!(read_state(&repository)["current"]["step"], "run");
    kill(&mut watch);
    fs::write(sandbox.path("go"), "").unwrap();

    let ended = to_command_output(watch_in_background(&repository).wait_with_output().unwrap());
    let told: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((ended.code, &told["outcome"]), (Some(0), &"unjudged".into()), "{told}");
    assert_eq!(told["commit"]["id"], commit.as_str());
    // The first iteration was not measured again: two parts are one run of three.
    let runs = list_runs(&repository);
    assert_eq!((runs.len(), lines()), (2, 4), "{runs:?}");
    assert!(runs.iter().any(|run| run["continues"].is_string()), "{runs:?}");
    let history = sandbox.run_json(&["history", "speed", "--label", "watch:main"]);
    assert_eq!(history["series"][0]["points"].as_array().unwrap().len(), 1, "{history}");
    assert_eq!(history["runs"][0]["commit"], commit.as_str());
    assert_eq!(read_state(&repository)["current"], Value::Null);
    assert_eq!(look(&repository, &[]).1["is_new"], false);
}

/// It may be what ends the machine.
#[test]
fn a_commit_that_ends_perflab_each_time_is_left_out() {
    let Some(mut repository) = prepare_tree("queue_watch", SPEED, 10000) else { return };
    let building = repository.sandbox.path("building");
    repository.write("build.sh", &format!("touch {}; sleep 60\n", building.display()));
    let commit = repository.commit("ends the machine");
    for _ in 0..3 {
        let mut watch = watch_in_background(&repository);
        wait_for_condition(|| building.exists());
        kill(&mut watch);
        fs::remove_file(&building).unwrap();
    }
    // What has come meanwhile is tested in its place.
    repository.write("build.sh", "cp speed built\n");
    let next = repository.commit("mends that");
    let said = repository.sandbox.run(&[&["--format", "json"], WATCH, &["--once"]].concat());
    let told: Vec<Value> =
        serde_json::Deserializer::from_str(&said.out).into_iter().map(Result::unwrap).collect();
    let commits: Vec<&Value> = told.iter().map(|look| &look["commit"]["id"]).collect();
    let outcomes: Vec<&Value> = told.iter().map(|look| &look["outcome"]).collect();
    assert_eq!((said.code, &outcomes[..]), (Some(4), &[&"unbuildable".into(), &"unjudged".into()][..]));
    assert_eq!(commits, [commit.as_str(), next.as_str()]);
}

#[test]
fn a_watch_that_goes_on_tests_what_comes_and_takes_turns_with_the_queue() {
    let Some(mut repository) = prepare_tree("queue_watch", SPEED, 10000) else { return };
    let at = |name: &str| repository.sandbox.path(name);
    let hold = format!(
        "touch {0}; while [ ! -e {1} ]; do sleep 0.05; done",
        at("began").display(),
        at("go").display()
    );
    let job = format!("run = {{ iterations = 1, warmup = 0 }}\n[workload.w]\ncommand = \"{hold}\"\n");
    repository.sandbox.write_study("job.toml", &job);
    repository.sandbox.run_successfully(&["queue", "add", "job.toml", "--no-report"]);
    let mut job = repository.sandbox.command(&["queue", "run", "--once"]);
    let mut job = job.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_condition(|| at("began").exists());

    let mut watch = repository.sandbox.command(&[WATCH, &["--every", "100ms"]].concat());
    let mut watch = watch.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_condition(|| read_state(&repository)["current"]["step"] == "build");
    assert_eq!(read_state(&repository)["current"]["attempts"], 0);
    fs::write(at("go"), "").unwrap();
    assert!(job.wait().unwrap().success());
    let tested = |count: usize| read_state(&repository)["tested"].as_array().map_or(0, Vec::len) == count;
    wait_for_condition(|| tested(1));
    let next = commit_speed(&mut repository, 10010, "the second");
    let state = || read_state(&repository);
    wait_for_condition(|| state()["tested"].as_array().map_or(0, Vec::len) == 2);
    assert_eq!(state()["tested"][1]["commit"]["id"], next.as_str());
    send_signal(&watch, rustix::process::Signal::TERM);
    assert!(watch.wait().unwrap().success());
}
