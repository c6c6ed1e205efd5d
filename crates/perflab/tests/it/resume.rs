//! `perflab resume`: what an interrupted run lacks is measured once, and counts with the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Child, Command, Stdio};

use perflab_archive::Archive;
use perflab_model::{Manifest, RunRecord, RunStatus, join_continued_runs};

use crate::interrupted::{send_signal, wait_for_condition};
use crate::laboratory::{Sandbox, to_command_output};

/// Cases times iterations of the study.
const ITERATIONS: usize = 10;

/// A study of two levels in blocks of one warm-up and five measured ones, whose every iteration leaves a line in `log`. The iteration that
/// `hold` names by its number waits until that file is gone.
fn write_held_study(laboratory: &Sandbox, more: &str) -> String {
    let at = |file: &str| laboratory.path(file).display().to_string();
    let (log, hold, held) = (at("log"), at("hold"), at("held"));
    laboratory.write_study(
        "held.toml",
        &format!(
            "[run]\niterations = 5\nwarmup = 1\n{more}[workload.w]\ncommand = \"\"\"\necho $A >> {log}\n\
             if [ \\\"$(wc -l < {log})\\\" = \\\"$(cat {hold})\\\" ]; then touch {held}; while [ -e {hold} ]; do sleep 0.02; done; fi\n\"\"\"\n\
             [factor.A]\nkind = \"environment\"\nlevels = [1, 2]\n"
        ),
    )
}

/// Starts perflab, and gives it once the iteration with this number is being carried out.
fn start_until(laboratory: &Sandbox, arguments: &[&str], number: usize) -> Child {
    start_command_until(laboratory, laboratory.command(arguments), number)
}

fn start_command_until(laboratory: &Sandbox, mut command: Command, number: usize) -> Child {
    fs::write(laboratory.path("hold"), number.to_string()).unwrap();
    let _ = fs::remove_file(laboratory.path("held"));
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_condition(|| laboratory.path("held").exists());
    child
}

fn read_records(laboratory: &Sandbox) -> Vec<RunRecord> {
    let archive = Archive::open(&laboratory.path("archive")).unwrap();
    let runs = archive.list_runs().unwrap();
    runs.iter().map(|entry| archive.open_run(entry).read_record().unwrap()).collect()
}

/// How often each measured iteration of each level has a time.
fn count_times(records: &[RunRecord]) -> BTreeMap<(String, u32), usize> {
    let mut counts = BTreeMap::new();
    for record in records {
        for sample in record.samples.iter().filter(|sample| sample.metric == "time") {
            let level = record.manifest.plan.case(sample.case).unwrap().levels["A"].clone();
            *counts.entry((level, sample.iteration)).or_default() += 1;
        }
    }
    counts
}

#[test]
fn a_killed_and_a_stopped_run_are_gone_on_with_and_nothing_is_run_twice() {
    let laboratory = Sandbox::new();
    let study = write_held_study(&laboratory, "");
    // Two warm-ups, and two and a half blocks.
    let mut killed = start_until(&laboratory, &["run", &study, "--no-report", "--quiet"], 8);
    send_signal(&killed, rustix::process::Signal::KILL);
    killed.wait().unwrap();
    let arguments = ["resume", "--no-report", "--quiet"];
    // Two warm-ups, the block that was cut, and half of the next.
    let mut stopped = start_until(&laboratory, &arguments, 8 + 2 + 2 + 2);
    let first = read_records(&laboratory)[0].manifest.id.clone();
    for run in [&["resume"][..], &["resume", &first], &["rm", &first], &["label", &first, "other"]] {
        assert_eq!(laboratory.run(run).code, Some(2), "{run:?}: somebody goes on with it");
    }
    send_signal(&stopped, rustix::process::Signal::INT);
    assert_eq!(stopped.wait().unwrap().code(), Some(4));
    fs::remove_file(laboratory.path("hold")).unwrap();
    fs::write(laboratory.path("hold"), "0").unwrap();
    let ended = laboratory.run_successfully(&arguments);
    let records = read_records(&laboratory);
    check_whole(&records);
    let measured: Vec<usize> =
        records.iter().map(|one| count_times(std::slice::from_ref(one)).len()).collect();
    assert_eq!(measured, [5, 3, 4], "complete blocks are not run again");
    let manifests: Vec<&Manifest> = records.iter().map(|record| &record.manifest).collect();
    let statuses: Vec<RunStatus> = manifests.iter().map(|manifest| manifest.status).collect();
    assert_eq!(statuses, [RunStatus::Interrupted, RunStatus::Stopped, RunStatus::Finished]);
    let continues: Vec<Option<&str>> = manifests.iter().map(|one| one.continues.as_deref()).collect();
    assert_eq!(continues, [None, Some(manifests[0].id.as_str()), Some(manifests[1].id.as_str())]);
    let label = manifests[0].label.clone().unwrap();
    assert!(manifests.iter().all(|manifest| manifest.label.as_ref() == Some(&label)));
    // What was printed at the end is the comparison of all parts.
    let compared = laboratory.run_successfully(&["compare", &label, "--by", "A", "--quiet"]);
    let table =
        |text: &str| text.lines().filter(|line| line.contains("time")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(table(&ended.out), table(&compared.out));
    let json = laboratory.run_json(&["compare", &label, "--by", "A"]);
    for selector in [label.as_str(), "@latest", &manifests[0].id, &manifests[1].id] {
        let row = laboratory.run_json(&["compare", selector, "--by", "A"])["rows"][0].take();
        assert_eq!((&row["baseline"]["n"], &row["candidate"]["n"]), (&5.into(), &5.into()), "{row}");
    }
    check_shown_whole(&laboratory, &label, &manifests);
    let kinds = json["warnings"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap());
    assert!(kinds.clone().all(|kind| kind != "not-finished"), "{json}");
    // It is whole now; what it goes on with is told by its name.
    let lines = fs::read_to_string(laboratory.path("log")).unwrap().lines().count();
    laboratory.run_successfully(&arguments);
    assert_eq!(fs::read_to_string(laboratory.path("log")).unwrap().lines().count(), lines);
    for name in [&first, &label] {
        laboratory.run_successfully(&["resume", name, "--no-report"]);
    }
    assert_eq!(read_records(&laboratory).len(), 3);
    let ids: Vec<&String> = manifests.iter().map(|one| &one.id).collect();
    check_labelled_together(&laboratory, ids[1], &label);
    // Parts are kept together, and name each other.
    let pruned = laboratory.run_json(&["prune", "--keep", "1", "--labelled"]);
    assert_eq!(pruned.as_array().map(Vec::len), Some(0), "{pruned}");
    let names = |text: &str, id: &str| {
        let is_of = |word: &str| ids.iter().filter(|one| one.starts_with(word)).collect::<Vec<_>>() == [&id];
        text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| word.len() > 3).any(is_of)
    };
    let shown = laboratory.run_successfully(&["show", ids[1]]).err;
    assert!(names(&shown, ids[0]) && names(&shown, ids[2]), "{shown}");
    let removed = laboratory.run_successfully(&["rm", ids[1]]).err;
    assert!(names(&removed, ids[2]), "{removed}");
    let pruned = laboratory.run_json(&["prune", "--keep", "1", "--labelled"]);
    assert_eq!(
        pruned.as_array().map(Vec::len),
        Some(0),
        "parts stay together without their middle: {pruned}"
    );
    let compared = laboratory.run(&["compare", "@latest", "--by", "A"]);
    let shown = laboratory.run_successfully(&["show", "@latest"]);
    assert!(
        compared.err.contains(ids[1].as_str()) && shown.err.contains(ids[1].as_str()),
        "{}",
        compared.err
    );
    let resumed = laboratory.run(&["resume", "@latest"]);
    assert!(resumed.code == Some(2) && resumed.err.contains(ids[1].as_str()), "{}", resumed.err);
}

/// What is shown and exported of a run is all of it; a part alone is shown alone.
fn check_shown_whole(laboratory: &Sandbox, label: &str, parts: &[&Manifest]) {
    let shown = |selector: &str| {
        let shown = laboratory.run_json(&["show", selector, "--iterations"]);
        shown.as_array().unwrap().iter().filter(|row| row["outcome"] == "ok").count()
    };
    let [whole, first, second, third] = [label, &parts[0].id, &parts[1].id, &parts[2].id].map(shown);
    assert!(whole >= ITERATIONS && [first, second, third].iter().all(|part| *part < whole), "{whole}");
    let exported = |selector: &str| {
        laboratory.run_successfully(&["export", selector, "--to", "csv"]).out.lines().count() - 1
    };
    let of_whole = exported(label);
    let csv = laboratory.run_successfully(&["export", label, "--to", "csv"]).out;
    let ids: BTreeSet<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(ids, parts.iter().map(|part| part.id.as_str()).collect(), "each row has its own part's id");
    assert_eq!([&parts[0].id, &parts[2].id].map(|id| exported(id)), [of_whole; 2]);
    let portable = laboratory.run(&["export", label]);
    assert_eq!(portable.code, Some(2), "a file holds one part: {}", portable.err);
    let differences = laboratory.run_json(&["diff", &parts[0].id, "@latest"]);
    assert_eq!(differences.as_array().map(Vec::len), Some(0), "{differences}");
}

/// Parts have one label, whichever of them gets it.
fn check_labelled_together(laboratory: &Sandbox, part: &str, label: &str) {
    let labels = || read_records(laboratory).into_iter().map(|one| one.manifest.label).collect::<Vec<_>>();
    laboratory.run_successfully(&["label", part, "nightly"]);
    assert_eq!(labels(), vec![Some("nightly".to_owned()); 3]);
    laboratory.run_successfully(&["label", "nightly", label]);
    assert_eq!(labels(), vec![Some(label.to_owned()); 3]);
}

/// All parts together have each iteration once.
fn check_whole(records: &[RunRecord]) {
    let joined = join_continued_runs(records.to_vec());
    assert_eq!(joined.len(), 1);
    let walls: u64 = records.iter().map(|record| record.manifest.overhead.wall.0).sum();
    assert_eq!(joined[0].manifest.overhead.wall.0, walls, "the cost is that of all parts");
    let counts = count_times(&joined);
    assert_eq!(counts.len(), ITERATIONS);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
}

/// A run that was copied to another archive is gone on with in both, and the parts come together.
#[test]
fn of_two_runs_that_go_on_with_the_same_one_the_later_counts_and_both_are_named() {
    let laboratory = Sandbox::new();
    let study = write_held_study(&laboratory, "");
    let run = ["run", &study, "--no-report", "--quiet", "--label", "cut"];
    let mut killed = start_until(&laboratory, &run, 6);
    send_signal(&killed, rustix::process::Signal::KILL);
    killed.wait().unwrap();
    fs::remove_file(laboratory.path("hold")).unwrap();
    fs::write(laboratory.path("hold"), "0").unwrap();
    let other = laboratory.path("other").display().to_string();
    let archive = laboratory.path("archive").display().to_string();
    assert!(Command::new("cp").args(["-r", &archive, &other]).status().unwrap().success());
    let in_other = |arguments: &[&str]| {
        laboratory.run_successfully(&[&["--archive", &other][..], arguments].concat());
    };
    in_other(&["resume", "--no-report"]);
    laboratory.run_successfully(&["resume", "--no-report"]);
    let part = laboratory.path("part").display().to_string();
    in_other(&["export", "@latest", "-o", &part]);
    laboratory.run_successfully(&["import", &part]);
    let mut records = read_records(&laboratory);
    records.sort_by(|one, other| one.manifest.id.cmp(&other.manifest.id));
    let ids: Vec<&String> = records.iter().map(|record| &record.manifest.id).collect();
    check_whole(&records);
    for selector in ["cut", ids[0], ids[1], ids[2]] {
        let compared = laboratory.run_successfully(&["compare", selector, "--by", "A", "--format", "json"]);
        let found: serde_json::Value = serde_json::from_str(&compared.out).unwrap();
        assert_eq!(found["runs"][0]["parts"], serde_json::json!(ids), "{selector}");
        assert!(ids.iter().all(|id| compared.err.contains(id.as_str())), "{selector}: {}", compared.err);
    }
    let listed = laboratory.run_json(&["list"]);
    let continues: Vec<Option<&str>> =
        listed.as_array().unwrap().iter().map(|run| run["continues"].as_str()).collect();
    assert_eq!(continues, [None, Some(ids[0].as_str()), Some(ids[0].as_str())]);
}

/// What a command reads from the shell is part of what it measures.
#[test]
fn a_variable_that_a_command_names_is_to_be_as_it_was() {
    let laboratory = Sandbox::new();
    let study = write_held_study(&laboratory, "[hooks]\nbefore-iteration = \"echo $PACE\"\n");
    let mut command = laboratory.command(&["run", &study, "--no-report", "--quiet"]);
    command.env("PACE", "slow").env("TZ", "UTC");
    let mut killed = start_command_until(&laboratory, command, 6);
    send_signal(&killed, rustix::process::Signal::KILL);
    killed.wait().unwrap();
    fs::write(laboratory.path("hold"), "0").unwrap();
    let resume = |pace: Option<&str>| {
        let mut command = laboratory.command(&["resume", "--no-report", "--quiet"]);
        command.env_remove("PACE").env("TZ", "CET");
        to_command_output(command.envs(pace.map(|pace| ("PACE", pace))).output().unwrap())
    };
    let refused = [None, Some("fast")].map(resume);
    assert_eq!(refused.each_ref().map(|one| one.code), [Some(2); 2], "{}", refused[0].err);
    insta::assert_snapshot!(refused[0].err_wording_of("PACE"), @"error: not as it was when the run began: environment.PACE was slow and is not set; the rest would be no part of that measurement: `perflab reproduce RUN --again` does all of it once more, and --changed measures the rest all the same, as a run by itself");
    let taken = resume(Some("slow"));
    assert_eq!(taken.code, Some(0), "{}", taken.err);
    assert!(taken.err.contains("environment.TZ"), "{}", taken.err);
    check_whole(&read_records(&laboratory));
}

#[test]
fn what_nobody_can_go_on_with_is_refused() {
    for (more, reason) in [("", "being recorded"), ("until = \"decided\"\n", "until")] {
        let laboratory = Sandbox::new();
        let study = write_held_study(&laboratory, more);
        let mut running = start_until(&laboratory, &["run", &study, "--no-report", "--quiet"], 5);
        let refused = laboratory.run(&["resume"]);
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        assert!(refused.err.contains(reason), "{}", refused.err);
        send_signal(&running, rustix::process::Signal::KILL);
        running.wait().unwrap();
        assert_eq!(read_records(&laboratory).len(), 1);
    }
}

#[test]
fn what_failed_is_not_run_again_and_a_whole_run_says_so() {
    let laboratory = Sandbox::new();
    let text = "run = { iterations = 2, warmup = 0 }\n[workload.w]\ncommand = \"false\"\n";
    let study = laboratory.write_study("failing.toml", text);
    assert_eq!(laboratory.run(&["run", &study, "--no-report"]).code, Some(4));
    assert_eq!(laboratory.run(&["resume"]).code, Some(4));
    assert_eq!(read_records(&laboratory).len(), 1);
}

#[test]
fn a_job_of_the_queue_is_gone_on_with_where_it_is_to() {
    let laboratory = Sandbox::new();
    let study = write_held_study(&laboratory, "");
    let add = ["queue", "add", "--if-interrupted", "resume", &study, "--no-report"];
    let until = laboratory.run(&[&add[..], &["--until", "decided, at most 9"]].concat());
    assert_eq!(until.code, Some(2), "its end depends on what was measured: {}", until.err);
    laboratory.run_successfully(&add);
    let mut runner = start_until(&laboratory, &["queue", "run", "--once"], 6);
    send_signal(&runner, rustix::process::Signal::KILL);
    runner.wait().unwrap();
    fs::write(laboratory.path("hold"), "0").unwrap();
    laboratory.run_successfully(&["queue", "run", "--once"]);
    let records = read_records(&laboratory);
    assert_eq!(records.len(), 2);
    check_whole(&records);
    let job = laboratory.run_json(&["queue", "list"])["result"][0].take();
    assert_eq!((&job["state"], &job["attempts"]), (&"finished".into(), &2.into()));
    assert_eq!(job["resumes"], records[0].manifest.id.as_str());
}
