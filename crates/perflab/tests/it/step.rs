//! Several targets in step, as processes of this host: real agents, killed, frozen, gone mad.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use perflab_model::resource_use::ResourceMetric;

use crate::laboratory::{CommandOutput, Sandbox, to_command_output};

fn write_step_study(laboratory: &Sandbox, rules: &str, script: &str) -> String {
    laboratory.write_workload("work", "", script);
    let text = format!(
        "[run]\nwarmup = 0\n{rules}\n[workload.work]\n[target.guest]\nkind = \"process\"\ncount = 3\n\
         [monitors]\nmeminfo = \"50ms\"\n"
    );
    laboratory.write_study("step.toml", &text)
}

/// The events of the only run, `{"at", "target", "what"}` each.
fn read_events(laboratory: &Sandbox) -> Vec<Value> {
    let journal = fs::read_to_string(laboratory.only_run().join("journal.jsonl")).unwrap();
    journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What iterations used of the machine is none of them.
fn events_of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<(&'a Value, &'a Value)> {
    events
        .iter()
        .filter(|event| event["what"][kind].is_object())
        .filter(|event| {
            event["what"][kind]["metric"].as_str().is_none_or(|metric| !ResourceMetric::is_name(metric))
        })
        .map(|event| (event, &event["what"][kind]))
        .collect()
}

/// The agents of a perflab, oldest first: its children but the guard of its executions.
fn agent_pids(perflab: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for task in fs::read_dir(format!("/proc/{perflab}/task")).into_iter().flatten().flatten() {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        children.extend(text.split_whitespace().map(|pid| pid.parse::<u32>().unwrap()));
    }
    let is_guard = |pid: &u32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("execution-guard")
    };
    children.retain(|pid| !is_guard(pid));
    children.sort_unstable();
    children
}

fn signal_process(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

fn wait_for_named(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came: {what}");
        sleep(Duration::from_millis(20));
    }
}

fn start_step_study(laboratory: &Sandbox, study: &str) -> Child {
    let mut command = laboratory.command(&["run", study, "--no-report"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs the study, does something to its agents once the second iteration began, and waits for the end.
fn run_with_disturbed_agents(
    laboratory: &Sandbox,
    study: &str,
    disturb: impl FnOnce(&[u32]),
) -> (CommandOutput, Vec<u32>) {
    let child = start_step_study(laboratory, study);
    let runs = laboratory.path("archive/runs");
    let released = |runs: &Path| {
        let journals = fs::read_dir(runs).into_iter().flatten().flatten();
        let texts = journals.filter_map(|run| fs::read_to_string(run.path().join("journal.jsonl")).ok());
        texts.map(|text| text.matches("\"released\"").count()).sum::<usize>()
    };
    wait_for_named("the second iteration", || released(&runs) >= 2);
    let agents = agent_pids(child.id());
    assert_eq!(agents.len(), 3);
    disturb(&agents);
    let ended = to_command_output(child.wait_with_output().unwrap());
    (ended, agents)
}

/// The name of the one target that was lost, and the reason. (They start at the same time, so that the order of their
/// processes says nothing.)
fn lost_target(laboratory: &Sandbox, said: &CommandOutput) -> (String, String) {
    let events = read_events(laboratory);
    let [(event, lost)] = &events_of_kind(&events, "target-lost")[..] else { panic!("{}", said.err) };
    let name = laboratory.target_name(event);
    // What it printed last may have come, or not.
    let reason = lost["reason"].as_str().unwrap().split("; its last output").next().unwrap().to_owned();
    // Once when it happened, once in the summary.
    let named = |line: &&str| line.contains(&format!("target {name} ")) && line.contains(&reason);
    assert_eq!(said.err.lines().filter(named).count(), 2, "{}", said.err);
    (name, reason)
}

fn assert_processes_gone(pids: &[u32]) {
    wait_for_named("the end of all agents", || {
        pids.iter().all(|pid| !Path::new(&format!("/proc/{pid}/stat")).exists())
    });
}

#[test]
fn three_agents_do_every_iteration_at_one_instant_and_tell_it_on_one_axis() {
    let laboratory = Sandbox::new();
    let study = write_step_study(&laboratory, "iterations = 4", "echo speed 7");
    laboratory.run_successfully(&["run", &study, "--no-report"]);
    let events = read_events(&laboratory);
    let (released, ended) = (events_of_kind(&events, "released"), events_of_kind(&events, "iteration-ended"));
    assert_eq!((released.len(), ended.len(), events_of_kind(&events, "sample").len()), (4, 12, 12));
    for (_, release) in released {
        assert_eq!(release["targets"], 3);
        let mine = ended.iter().filter(|(_, end)| end["slot"] == release["slot"]);
        let starts: Vec<u64> = mine.map(|(_, end)| end["start"].as_u64().unwrap()).collect();
        // Nobody may be early, but for what its clock is not known.
        assert!(
            starts.iter().all(|start| start + 20_000_000 > release["start"].as_u64().unwrap()),
            "{starts:?}"
        );
    }
    // They have our clock, so its offset is known: nothing, within the bound.
    for (_, clock) in events_of_kind(&events, "clock") {
        let (offset, bound) = (clock["offset"].as_i64().unwrap(), clock["bound"].as_u64().unwrap());
        assert!(offset.unsigned_abs() <= bound && bound > 0, "{clock}");
    }
    let manifest: Value =
        serde_json::from_str(&fs::read_to_string(laboratory.only_run().join("run.json")).unwrap()).unwrap();
    let names: Vec<&str> = manifest["targets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|target| target["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["guest1", "guest2", "guest3"]);
    assert!(manifest["targets"][0]["facts"]["kernel.release"]["value"].is_string(), "each says what it is");
    let archive = perflab_archive::Archive::open(&laboratory.path("archive")).unwrap();
    let documents = archive.find_runs("@latest").unwrap()[0].read_documents().unwrap();
    let tunables = documents.iter().filter(|one| one.document.name == perflab_model::FactDocument::SYSCTL);
    let machines: std::collections::BTreeSet<Option<u32>> = tunables.map(|one| one.target).collect();
    assert_eq!(machines, [None, Some(0), Some(1), Some(2)].into(), "the host and each target");
}

/// What happened, without when and where, and without what only a run of several machines tells.
fn told_without_times(events: &[Value]) -> Vec<Value> {
    let mut told = Vec::new();
    for event in events {
        let mut what = event["what"].clone();
        let kind = what.as_object().map(|kind| kind.keys().next().unwrap().clone()).unwrap_or_default();
        if ["began", "clock", "released", "ended"].contains(&kind.as_str()) {
            continue;
        }
        let is_used = what[kind.as_str()]["metric"].as_str().is_some_and(ResourceMetric::is_name);
        if is_used {
            continue;
        }
        for key in ["start", "end", "target", "remaining"] {
            if let Some(fields) = what[kind.as_str()].as_object_mut() {
                fields.remove(key);
            }
        }
        told.push(what);
    }
    told
}

#[test]
fn a_study_tells_the_same_of_this_host_as_of_a_target() {
    let text = "run = { iterations = 2, warmup = 1, seed = 4 }\n[workload.work]\n\
                [factor.which]\nkind = \"environment\"\nkey = \"WHICH\"\nlevels = [\"one\", \"two\"]\n\
                [factor.state]\nkind = \"commands\"\nlevels = [\n\
                { name = \"a\", apply = [\"true\"], undo = [\"true\"] },\n\
                { name = \"b\", apply = [\"true\"], undo = [\"true\"] }]\n";
    let told = |rest: &str| {
        let laboratory = Sandbox::new();
        // Once it fails.
        let mark = laboratory.path("once").display().to_string();
        let script = format!(
            "if [ \"$WHICH\" = two ] && mkdir {mark} 2>/dev/null; then echo no luck >&2; exit 3; fi; echo speed 7"
        );
        laboratory.write_workload("work", "", &script);
        let study = laboratory.write_study("same.toml", &format!("{text}{rest}"));
        let ended = laboratory.run(&["run", &study, "--no-report"]);
        assert_eq!(ended.code, Some(4), "{}", ended.err);
        let events = read_events(&laboratory);
        assert!(events_of_kind(&events, "target-lost").is_empty(), "{}", ended.err);
        told_without_times(&events)
    };
    let here = told("");
    let there = told("on = \"guest\"\n[target.guest]\nkind = \"process\"\n");
    assert!(here.len() > 50, "{here:?}");
    for (number, (here, there)) in here.iter().zip(&there).enumerate() {
        assert_eq!(here, there, "event {number}");
    }
    assert_eq!(here.len(), there.len());
}

#[test]
fn a_setting_of_this_host_that_fails_ends_the_run_and_the_targets_undo_theirs() {
    let laboratory = Sandbox::new();
    laboratory.write_workload("work", "", "echo speed 7");
    let mark = laboratory.path("undone").display().to_string();
    let text = format!(
        "run = {{ iterations = 2, warmup = 0, order = \"sequential\" }}\n[workload.work]\n\
         [target.guest]\nkind = \"process\"\n\
         [factor.theirs]\nkind = \"commands\"\non = \"guest\"\n\
         levels = [{{ name = \"a\", apply = [\"true\"], undo = [\"touch\", \"{mark}\"] }}]\n\
         [factor.ours]\nkind = \"commands\"\n\
         levels = [{{ name = \"fine\", apply = [\"true\"], undo = [\"true\"] }}, {{ name = \"bad\", apply = [\"false\"], undo = [\"true\"] }}]\n"
    );
    let study = laboratory.write_study("fails.toml", &text);
    let ended = laboratory.run(&["run", &study, "--no-report"]);
    assert_eq!(ended.code, Some(3), "{}", ended.err);
    insta::assert_snapshot!(ended.err_wording_of("`bad`"), @"error: factor `ours`, level `bad`: `false` failed: exit status: N: it printed nothing");
    assert!(laboratory.path("undone").exists(), "{}", ended.err);
    let events = read_events(&laboratory);
    assert!(events_of_kind(&events, "target-lost").is_empty(), "{}", ended.err);
    assert_eq!(events_of_kind(&events, "iteration-ended").len(), 2, "those of the level that is fine");
    assert_eq!(events_of_kind(&events, "setting-undone").len(), 2, "{events:?}");
}

#[test]
fn a_total_time_limit_stops_targets_and_boots_no_more() {
    let laboratory = Sandbox::new();
    let rules = "iterations = 50\nboots = 3\ntotal-time-limit = \"400ms\"";
    let study = write_step_study(&laboratory, rules, "sleep 0.2; echo speed 7");
    let ended = laboratory.run(&["run", &study, "--no-report"]);
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let events = read_events(&laboratory);
    assert_eq!(events_of_kind(&events, "warning").len(), 1, "no further boot comes to its limit");
    let manifest: Value =
        serde_json::from_str(&fs::read_to_string(laboratory.only_run().join("run.json")).unwrap()).unwrap();
    assert_eq!(manifest["status"], "stopped");
}

#[test]
fn the_terminal_says_how_evenly_targets_were_served_and_how_well_their_starts_are_known() {
    let laboratory = Sandbox::new();
    let study = write_step_study(&laboratory, "iterations = 4", "echo speed $(( $$ % 97 + 1 ))");
    laboratory.run_successfully(&["run", &study, "--no-report"]);
    let events = read_events(&laboratory);
    let value = |iteration: u64, target: Option<u64>| {
        let samples = events_of_kind(&events, "sample").into_iter();
        let mine = samples.filter(|(event, sample)| {
            sample["iteration"] == iteration && target.is_none_or(|target| event["target"] == target)
        });
        let values: Vec<f64> = mine.map(|(_, sample)| sample["value"].as_f64().unwrap()).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let median = |target: Option<u64>| {
        let mut values: Vec<f64> = (0..4).map(|iteration| value(iteration, target)).collect();
        values.sort_by(f64::total_cmp);
        f64::midpoint(values[1], values[2])
    };
    let shown = laboratory.run_successfully(&["show", "--format", "json"]);
    let mut rows: Vec<Value> = serde_json::from_str(&shown.out).unwrap();
    rows.retain(|row| row["metric"] == "speed");
    let who = [("mean of all", None), ("guest1", Some(0)), ("guest2", Some(1)), ("guest3", Some(2))];
    assert_eq!(rows.len(), who.len(), "{}", shown.out);
    for (row, (name, target)) in rows.iter().zip(who) {
        assert_eq!((row["target"].as_str(), row["n"].as_u64()), (Some(name), Some(4)));
        assert!((row["median"].as_f64().unwrap() - median(target)).abs() < 1e-9, "{row}");
    }
    // The bound is the one at the releases, not that of the first greeting.
    let mut bounds: Vec<u64> =
        events_of_kind(&events, "clock").iter().map(|(_, clock)| clock["bound"].as_u64().unwrap()).collect();
    bounds.sort_unstable();
    let known = |bound: u64| perflab_model::Nanos(bound).to_string();
    assert_eq!(bounds.len(), 12);
    for bound in [bounds[6], bounds[11]] {
        assert!(shown.err.contains(&format!(" {} ", known(bound))), "{bound}: {}", shown.err);
    }
    let even = |said: &CommandOutput| said.err.lines().filter(|line| line.contains("Jain's index")).count();
    assert_eq!(
        (even(&shown), even(&laboratory.run_successfully(&["compare", "@latest", "@latest"]))),
        (1, 2)
    );
}

#[test]
fn a_killed_agent_is_named_its_iteration_does_not_count_and_the_others_go_on() {
    let laboratory = Sandbox::new();
    let rules = "iterations = 4\non-lost-target = \"continue\"";
    let study = write_step_study(&laboratory, rules, "sleep 0.5; echo speed 7");
    let (ended, agents) =
        run_with_disturbed_agents(&laboratory, &study, |agents| signal_process(agents[1], Signal::KILL));
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let (lost, reason) = lost_target(&laboratory, &ended);
    insta::assert_snapshot!(reason, @"its stream ended");
    let events = read_events(&laboratory);
    let failed: Vec<_> = events_of_kind(&events, "iteration-ended")
        .into_iter()
        .filter(|(_, end)| end["outcome"]["outcome"] == "failed")
        .collect();
    assert_eq!(failed.len(), 3, "the iteration of the loss counts for nobody");
    let meanwhile = |end: &Value| end["outcome"]["reason"].as_str().unwrap().contains(&lost);
    assert_eq!(failed.iter().filter(|(_, end)| meanwhile(end)).count(), 2);
    // One whole iteration before it, two with those that were left.
    assert_eq!(events_of_kind(&events, "sample").len(), 3 + 2 * 2);
    assert_processes_gone(&agents);
}

#[test]
fn levels_that_cannot_be_met_any_more_give_no_samples_and_the_others_go_on() {
    let laboratory = Sandbox::new();
    let rules = "iterations = 3\norder = \"sequential\"\non-lost-target = \"continue\"\n\
                 [factor.guests]\nkind = \"targets\"\nlevels = [3, 1]";
    let study = write_step_study(&laboratory, rules, "sleep 0.5; echo speed 7");
    let (ended, agents) =
        run_with_disturbed_agents(&laboratory, &study, |agents| signal_process(agents[1], Signal::KILL));
    let told = ended.err.split_once("warning: target ").unwrap_or_else(|| panic!("{}", ended.err)).1;
    let lost = told.split_once(" was lost: its stream ended").unwrap().0.to_owned();
    // Without the first guest no level is left; iterations that did not begin are failures of theirs, and compared as such.
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let events = read_events(&laboratory);
    let manifest: perflab_model::Manifest =
        serde_json::from_str(&fs::read_to_string(laboratory.only_run().join("run.json")).unwrap()).unwrap();
    let level = |slot: &Value| {
        let slot = manifest.plan.slots[slot.as_u64().unwrap() as usize];
        manifest.plan.case(slot.case).unwrap().levels["guests"].to_string()
    };
    let mut ends: std::collections::BTreeMap<u64, (String, Vec<String>)> = Default::default();
    for (_, end) in events_of_kind(&events, "iteration-ended") {
        let (_, how) = ends.entry(end["slot"].as_u64().unwrap()).or_insert((level(&end["slot"]), Vec::new()));
        let reason = end["outcome"]["reason"].as_str();
        how.push(reason.map_or_else(|| "ok".into(), |reason| reason.replace(&lost, "LOST")));
    }
    let mut three = ends.values().filter(|(level, _)| level == "3").map(|(_, how)| how);
    assert_eq!(three.next().unwrap(), &["ok", "ok", "ok"]);
    let meanwhile =
        three.next().unwrap().iter().filter(|how| how.starts_with("LOST was lost meanwhile")).count();
    assert_eq!(meanwhile, 2);
    let last = "not begun: LOST was lost before, and `guests=3` cannot be met";
    assert_eq!(three.next().unwrap(), &[last, last]);
    let one = ends.values().filter(|(level, _)| level == "1").map(|(_, how)| how);
    let expected =
        if lost == "guest1" { "not begun: LOST was lost before, and `guests=1` cannot be met" } else { "ok" };
    assert_eq!(one.collect::<Vec<_>>(), [&[expected]; 3]);
    let samples = if lost == "guest1" { 3 } else { 3 + 3 };
    assert_eq!(events_of_kind(&events, "sample").len(), samples);
    assert_processes_gone(&agents);
}

#[test]
fn a_target_that_cannot_be_started_ends_the_run_or_the_others_go_on_as_the_study_says() {
    let laboratory = Sandbox::new();
    let study = write_step_study(&laboratory, "iterations = 2", "echo speed 7");
    let text = fs::read_to_string(&study).unwrap();
    let text = format!("{text}[target.away]\nkind = \"ssh\"\naddress = \"away\"\n");
    fs::write(&study, &text).unwrap();
    let programs = laboratory.path("programs");
    fs::create_dir(&programs).unwrap();
    crate::image::write_executable_script(&programs.join("ssh"), "echo 'nobody is there' >&2; exit 255");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let run = || {
        to_command_output(
            laboratory.command(&["run", &study, "--no-report"]).env("PATH", &path).output().unwrap(),
        )
    };
    let stopped = run();
    assert_ne!(stopped.code, Some(0));
    insta::assert_snapshot!(stopped.err_wording_of("away"), @"error: target away: perflab could not be copied there: nobody is there");
    fs::write(&study, text.replace("[run]", "[run]\non-lost-target = \"continue\"")).unwrap();
    let ended = run();
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    insta::assert_snapshot!(ended.err_wording_of("target away"), @"
    warning: target away was lost: perflab could not be copied there: nobody is there; see its output in the run's logs
    warning: target away was lost: perflab could not be copied there: nobody is there; see its output in the run's logs
    ");
    let events = read_events(&laboratory);
    assert_eq!(events_of_kind(&events, "target-lost").len(), 1);
    let targets: Vec<&Value> =
        events_of_kind(&events, "sample").into_iter().map(|(event, _)| &event["target"]).collect();
    assert_eq!(targets.len(), 2 * 3, "{targets:?}");
    // With targets that all fail there is nobody to go on.
    let nobody = text.replace("kind = \"process\"\ncount = 3", "kind = \"ssh\"\naddress = \"away\"");
    fs::write(&study, nobody.replace("[run]", "[run]\non-lost-target = \"continue\"")).unwrap();
    let ended = run();
    assert_ne!(ended.code, Some(0), "{}", ended.err);
    insta::assert_snapshot!(ended.err_wording_of("error: target "), @"error: target guest: perflab could not be copied there: nobody is there");
}

#[test]
fn a_frozen_agent_is_given_up_in_time_and_the_run_stops_where_the_study_says_so() {
    let laboratory = Sandbox::new();
    let study =
        write_step_study(&laboratory, "iterations = 50\nlost-after = \"2s\"", "sleep 0.3; echo speed 7");
    let (ended, agents) =
        run_with_disturbed_agents(&laboratory, &study, |agents| signal_process(agents[2], Signal::STOP));
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    insta::assert_snapshot!(lost_target(&laboratory, &ended).1, @"it did not answer for 2 s");
    let events = read_events(&laboratory);
    assert!(events_of_kind(&events, "released").len() < 30, "it stopped");
    assert_eq!(events_of_kind(&events, "ended").len(), 1);
    assert_processes_gone(&agents);
}

#[test]
fn an_agent_that_becomes_a_liar_is_given_up_and_nothing_of_it_is_believed() {
    let laboratory = Sandbox::new();
    let study = write_step_study(
        &laboratory,
        "iterations = 3\non-lost-target = \"continue\"",
        "sleep 0.5; echo speed 7",
    );
    // Its standard output is the stream: whoever may open it can write rubbish between its frames.
    let (ended, agents) = run_with_disturbed_agents(&laboratory, &study, |agents| {
        let rubbish = [0xff_u8; 64];
        let fd = fs::read_link(format!("/proc/{}/fd/1", agents[0])).unwrap();
        assert!(fd.to_string_lossy().starts_with("socket:"), "{fd:?}");
        write_into_stdout_of(agents[0], &rubbish);
    });
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    insta::assert_snapshot!(lost_target(&laboratory, &ended).1, @"a frame of 4294967295 bytes was announced; at most 4194304 are allowed");
    assert_processes_gone(&agents);
}

/// Writes into another process's standard output, which is a socket and so cannot be opened by its path.
fn write_into_stdout_of(pid: u32, rubbish: &[u8]) {
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
    let process =
        pidfd_open(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), PidfdFlags::empty()).unwrap();
    let stream = pidfd_getfd(process, 1, PidfdGetfdFlags::empty()).unwrap();
    rustix::io::write(stream, rubbish).unwrap();
}

#[test]
fn interrupt_ends_all_agents_and_keeps_what_was_measured() {
    let laboratory = Sandbox::new();
    let study = write_step_study(&laboratory, "iterations = 500", "sleep 0.1; echo speed 7");
    let child = start_step_study(&laboratory, &study);
    wait_for_named("samples", || {
        let runs = fs::read_dir(laboratory.path("archive/runs")).into_iter().flatten().flatten();
        runs.filter_map(|run| fs::read_to_string(run.path().join("journal.jsonl")).ok())
            .any(|journal| journal.matches("\"metric\":\"speed\",\"value\"").count() >= 6)
    });
    let agents = agent_pids(child.id());
    signal_process(child.id(), Signal::INT);
    let ended = to_command_output(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    assert_eq!(laboratory.latest_status(), "stopped");
    assert_processes_gone(&agents);
}

#[test]
fn what_a_target_lacks_is_refused_before_the_run_begins_with_its_name() {
    let laboratory = Sandbox::new();
    let study = write_step_study(&laboratory, "iterations = 1", "echo speed 7");
    let text = fs::read_to_string(laboratory.path("step.toml")).unwrap();
    let text = format!(
        "{text}[factor.knob]\nkind = \"sysctl\"\nkey = \"vm.no_such_knob\"\non = \"guest\"\nlevels = [1, 2]\n"
    );
    fs::write(laboratory.path("step.toml"), text).unwrap();
    let refused = laboratory.run(&["run", &study]);
    assert_eq!(refused.code, Some(3), "{}", refused.err);
    let wording = refused.err_wording_of("guest1: ");
    insta::assert_snapshot!(wording.split_once("guest1: ").unwrap().1, @"sysctl vm.no_such_knob: /proc/sys/vm/no_such_knob is not there; this kernel lacks it: check the name, or leave the factor out");
    assert!(
        !laboratory.path("archive/runs").exists()
            || fs::read_dir(laboratory.path("archive/runs")).unwrap().count() == 0
    );
}

#[test]
fn a_run_in_step_ends_when_its_medians_are_precise() {
    let laboratory = Sandbox::new();
    let study = write_step_study(&laboratory, "until = \"precision 5%, at most 60\"", "echo speed 7");
    laboratory.run_successfully(&["run", &study, "--no-report"]);
    let events = read_events(&laboratory);
    let released = events_of_kind(&events, "released").len();
    assert!((5..40).contains(&released), "{released}");
    assert_eq!(events_of_kind(&events, "sample").len(), 3 * released);
}

#[test]
fn operations_and_io_of_every_target_are_kept_root() {
    if !crate::tracing_refused::may_trace("operations_and_io_of_every_target_are_kept_root") {
        return;
    }
    let laboratory = Sandbox::new();
    let text = "[run]\nwarmup = 1\niterations = 2\n[workload.drv_rand_ops]\nparameters = { elements = 3000 }\n\
                [target.guest]\nkind = \"process\"\ncount = 2\n[io]\nscope = \"workload\"\n";
    let study = laboratory.write_study("traces.toml", text);
    let caches = crate::caches::CachesLock::acquire();
    laboratory.run_successfully(&["run", &study, "--no-report"]);
    drop(caches);
    let archive = perflab_archive::Archive::open(&laboratory.path("archive")).unwrap();
    let run = archive.find_runs("@latest").unwrap().remove(0);
    // The warm-up of slot 0 gives none.
    let expected = [(1, Some(0)), (1, Some(1)), (2, Some(0)), (2, Some(1))];
    let mut summaries = run.read_trace_summaries("optrace").unwrap();
    summaries.sort_by_key(|summary| summary.iteration());
    assert_eq!(summaries.iter().map(|one| (one.slot, one.target)).collect::<Vec<_>>(), expected);
    for summary in &summaries {
        assert_eq!(summary.operations, 3000, "{summary:?}");
        assert_eq!(run.read_operations("optrace", summary.iteration()).unwrap().wall.len(), 3000);
    }
    let mut recordings = run.read_io_recordings().unwrap();
    recordings.sort_by_key(|(iteration, _)| *iteration);
    assert_eq!(recordings.iter().map(|(one, _)| (one.slot, one.target)).collect::<Vec<_>>(), expected);
    for (iteration, recording) in &recordings {
        assert!(recording.events.iter().any(|event| event.name.is_some()), "{iteration:?}");
    }
    for verb in [["trace", "show", "@latest"], ["io", "show", "@latest"]] {
        laboratory.run_successfully(&[&verb[..], &["--target", "guest2"]].concat());
        let unknown = laboratory.run(&[&verb[..], &["--target", "guest3"]].concat());
        assert_eq!(unknown.code, Some(2), "{}", unknown.err);
    }
}
