//! `perflab bisect` in real git repositories, with real builds and real kills.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::repository::Repository;

/// A repository of thirteen commits. The fifth does not build, and from this one on the program works twice as long.
const CULPRIT: usize = 8;
const UNBUILDABLE: usize = 5;

impl Repository {
    /// Nothing where git is not there.
    fn new(test: &str) -> Option<Self> {
        let mut repository = Repository::empty(test)?;
        // It sleeps: the machine may be as busy as it likes.
        repository.write("work.sh", "sleep $(cat built)\n");
        for number in 0..13 {
            let seconds = if number >= CULPRIT { 0.1 } else { 0.05 };
            repository.write("seconds", &format!("{seconds}\n"));
            let build = if number == UNBUILDABLE {
                "echo 'work.c:7: no' >&2; exit 2\n"
            } else {
                "cp seconds built\n"
            };
            repository.write("build.sh", build);
            repository.write("notes", &format!("change number {number}\n"));
            repository.commit(&format!("change number {number}"));
        }
        Some(repository)
    }

    fn bisect<'a>(&'a self, good: &'a str, bad: &'a str) -> Vec<&'a str> {
        vec![
            "--format",
            "json",
            "bisect",
            "--tree",
            "tree",
            "--good",
            good,
            "--bad",
            bad,
            "--build",
            "sh build.sh",
        ]
    }

    fn assert_culprit(&self, found: &Value) {
        assert_eq!(found["outcome"], "found", "{found}");
        let culprits: Vec<&str> =
            found["culprits"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
        assert_eq!(culprits, [self.commits[CULPRIT].as_str()]);
        assert_eq!(found["parent"]["id"], self.commits[CULPRIT - 1].as_str());
    }
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_commit_is_named_with_its_change_and_the_tree_is_left_alone() {
    let Some(repository) = Repository::new("bisect") else { return };
    let sandbox = &repository.sandbox;
    let before = repository.git(&["status", "--porcelain", "--ignored"]);
    let typed = [&repository.bisect(&repository.commits[0], "main")[..], &["--", "sh", "work.sh"]].concat();
    let found = parse(&sandbox.run_successfully(&typed).out);
    repository.assert_culprit(&found);
    let change = &found["change"];
    let [low, high] = ["low", "high"].map(|end| change[end].as_f64().unwrap());
    // How near depends on how busy the machine is.
    assert!(change["scale"] == "ratio" && low <= 1.0 && 0.5 <= high, "{change}");
    assert!(found["excluded_at"].as_f64().unwrap() <= 0.05);
    assert_eq!(found["culprits"][0]["author"], "Jane Doe <jane@example.org>");
    assert_eq!(found["metric"], "time");

    // What was measured are runs, which are no history; nothing of the walk is in the tree.
    let label = format!("bisect:{}..{}", &repository.commits[0][..7], &repository.commits[12][..7]);
    let runs = sandbox.run_json(&["list"]);
    let runs = runs.as_array().unwrap();
    assert_eq!(runs.len(), found["runs"].as_array().unwrap().len());
    assert!(runs.iter().all(|run| run["label"] == label.as_str()), "{runs:?}");
    assert_eq!(sandbox.run(&["history"]).code, Some(2));
    assert_eq!(repository.git(&["status", "--porcelain", "--ignored"]), before);
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);

    // Once more: it is known.
    let again = parse(&sandbox.run_successfully(&typed).out);
    assert_eq!(again, found);
    assert_eq!(sandbox.run_json(&["list"]).as_array().unwrap().len(), runs.len());
}

#[test]
fn a_commit_that_does_not_build_is_left_out_and_a_study_measures_too() {
    let Some(repository) = Repository::new("bisect") else { return };
    let sandbox = &repository.sandbox;
    let study = sandbox.write_study(
        "sleep.toml",
        "run = { warmup = 0 }\n[workload.sleep]\ncommand = \"sh -c 'cd $PERFLAB_TREE && sh work.sh && echo took $(cat built)'\"\n\
         [[workload.sleep.metric]]\nname = \"took\"\nunit = \"s\"\ndirection = \"lower\"\nprimary = true\n\
         regex = 'took (?<value>[0-9.]+)'\n",
    );
    let (good, bad) = (repository.commits[UNBUILDABLE - 1].clone(), repository.commits[CULPRIT].clone());
    let typed = [&repository.bisect(&good, &bad)[..], &["--study", &study, "--metric", "took"]].concat();
    let found = parse(&sandbox.run_successfully(&typed).out);
    repository.assert_culprit(&found);
    let skipped = found["skipped"].as_array().unwrap();
    assert!(
        skipped.len() <= 1
            && skipped.iter().all(|one| one["commit"]["id"] == repository.commits[UNBUILDABLE].as_str())
    );
    // It says the same each time: no noise, and a change that is known exactly.
    assert!((found["change"]["value"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{found}");

    let unknown = [&repository.bisect(&good, &bad)[..], &["--study", &study, "--metric", "tok"]].concat();
    assert_eq!(sandbox.run(&unknown).code, Some(2));
}

/// The end says which ones it may be.
#[test]
fn where_nothing_between_builds_all_of_them_are_named() {
    let Some(repository) = Repository::new("bisect") else { return };
    let sandbox = &repository.sandbox;
    let last = repository.commits[12].clone();
    let build = format!(
        "case $PERFLAB_COMMIT in {}|{last}) cp seconds built ;; *) exit 1 ;; esac",
        repository.commits[9]
    );
    let typed =
        ["--format", "json", "bisect", "--tree", "tree", "--good", &repository.commits[9], "--build", &build];
    // From the tenth on all take as long: good and bad do not differ.
    let equal = sandbox.run(&[&typed[..], &["--margin", "60%", "--", "sh", "work.sh"]].concat());
    assert_eq!((equal.code, parse(&equal.out)["outcome"].as_str()), (Some(7), Some("ends-equal")));

    let first = repository.commits[0].clone();
    let build = format!("case $PERFLAB_COMMIT in {first}|{last}) cp seconds built ;; *) exit 1 ;; esac");
    let typed = [
        "--format", "json", "bisect", "--tree", "tree", "--good", &first, "--build", &build, "--", "sh",
        "work.sh",
    ];
    let found = parse(&sandbox.run_successfully(&typed).out);
    assert_eq!(
        (found["culprits"].as_array().unwrap().len(), found["skipped"].as_array().unwrap().len()),
        (12, 11)
    );
}

#[test]
fn a_killed_bisection_goes_on() {
    let Some(repository) = Repository::new("bisect") else { return };
    let sandbox = &repository.sandbox;
    let state = sandbox.path("walk").display().to_string();
    let good = repository.commits[0].clone();
    let typed = [&repository.bisect(&good, "main")[..], &["--state", &state, "--", "sh", "work.sh"]].concat();
    let journal = sandbox.path("walk/journal.jsonl");
    let lines = || std::fs::read_to_string(&journal).map_or(0, |text| text.lines().count());
    let mut kills = 0;
    for wanted in [4, 7] {
        let mut killed = sandbox.command(&typed).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        while lines() < wanted && killed.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < Duration::from_secs(120), "{} lines", lines());
            std::thread::sleep(Duration::from_millis(20));
        }
        // Nobody else walks with this state meanwhile.
        if killed.try_wait().unwrap().is_none() {
            assert_eq!(sandbox.run(&typed).code, Some(3));
        }
        killed.kill().unwrap();
        killed.wait().unwrap();
        kills += 1;
    }
    assert_eq!(kills, 2);
    let before = std::fs::read_to_string(&journal).unwrap();
    // A line that was being written is as good as not there.
    std::fs::write(&journal, format!("{before}{{\"what\":\"buil")).unwrap();
    let found = parse(&sandbox.run_successfully(&typed).out);
    repository.assert_culprit(&found);
    let after = std::fs::read_to_string(&journal).unwrap();
    assert!(after.starts_with(&before) && after.len() > before.len());

    // The state is that of this walk alone.
    let other =
        [&repository.bisect(&good, "main")[..], &["--error", "1%", "--state", &state, "--", "sh", "work.sh"]]
            .concat();
    assert_eq!(sandbox.run(&other).code, Some(2));
}

#[test]
fn what_cannot_be_bisected_is_said() {
    let Some(repository) = Repository::new("bisect") else { return };
    let sandbox = &repository.sandbox;
    let commits = &repository.commits;
    repository.git(&["checkout", "-q", "-b", "side", &commits[3]]);
    repository.git(&["commit", "-q", "--allow-empty", "-m", "aside"]);
    repository.git(&["checkout", "-q", "main"]);
    std::fs::create_dir(sandbox.path("nowhere")).unwrap();
    let refused: [&[&str]; 7] = [
        &["--good", &commits[12], "--bad", &commits[0]],
        &["--good", "main", "--bad", "main"],
        &["--good", "no-such-tag"],
        &["--good", "side"],
        &["--good", &commits[UNBUILDABLE], "--build", "sh build.sh"],
        &["--good", &commits[0], "--error", "0%"],
        &["--good", &commits[0], "--tree", "nowhere"],
    ];
    for refused in refused {
        let typed = [&["bisect", "--tree", "tree"][..], refused, &["--", "sh", "work.sh"]].concat();
        let typed: Vec<&str> = match refused.contains(&"--tree") {
            true => [&["bisect"][..], refused, &["--", "true"]].concat(),
            false => typed,
        };
        let said = sandbox.run(&typed);
        assert_eq!(said.code, Some(2), "{typed:?}: {}", said.err);
    }
    // What got better is not what made it worse.
    let swapped =
        [&repository.bisect(&commits[0], "main")[..], &["--worse", "smaller", "--", "sh", "work.sh"]]
            .concat();
    let swapped = sandbox.run(&swapped);
    assert_eq!((swapped.code, parse(&swapped.out)["outcome"].as_str()), (Some(7), Some("swapped")));
}

/// A script as somebody would write it, and git itself: each commit is held against the archive of the good one.
#[test]
fn git_bisect_run_reads_the_codes_of_the_guard() {
    let Some(repository) = Repository::new("bisect") else { return };
    let sandbox = &repository.sandbox;
    for speed in [1000, 1003, 998, 1001, 997, 1002, 999, 1001] {
        sandbox.run_echo("nightly", speed);
    }
    let study = sandbox.path("echo.toml").display().to_string();
    let perflab =
        format!("{} --workloads {}", env!("CARGO_BIN_EXE_perflab"), sandbox.path("workloads").display());
    let (archive, own) =
        (sandbox.path("archive").display().to_string(), sandbox.path("own").display().to_string());
    let speed = sandbox.path("speed").display().to_string();
    let script = format!(
        "sh build.sh || exit 125\nrm -rf {own}; cp -r {archive} {own}\n\
         export PERFLAB_ARCHIVE={own} PERFLAB_STATE={state}\n\
         case $(cat built) in 0.1) slow=1 ;; *) slow=0 ;; esac\n\
         for i in 1 2 3 4 5 6 7 8; do\n\
         echo $((1000 - 150 * slow + i % 4)) > {speed}\n\
         {perflab} run {study} --label nightly --quiet > /dev/null 2>&1 || exit 125\ndone\n\
         {perflab} guard --for git-bisect\n",
        state = sandbox.path("state").display(),
    );
    std::fs::write(sandbox.path("judge.sh"), script).unwrap();
    repository.git(&["bisect", "start", "main", &repository.commits[0]]);
    let judge = sandbox.path("judge.sh").display().to_string();
    repository.git(&["bisect", "run", "sh", &judge]);
    assert_eq!(repository.git(&["rev-parse", "refs/bisect/bad"]), repository.commits[CULPRIT]);

    let code = |typed: &[&str]| sandbox.run(&[&["guard", "--for", "git-bisect"], typed].concat()).code;
    assert_eq!(code(&[]), Some(0));
    std::fs::write(sandbox.path("speed"), "500").unwrap();
    sandbox.run_echo("nightly", 500);
    assert_eq!(code(&[]), Some(125), "one run is no step");
    assert_eq!(code(&["--no-such-option"]), Some(128));
    assert_eq!(code(&["--label", "no-such-label"]), Some(128));
    assert_eq!(sandbox.run(&["guard", "--for=git-bisect", "--margin", "2"]).code, Some(128));
    assert_eq!(sandbox.run(&["guard", "--no-such-option"]).code, Some(2));
}
