//! Events counted in the kernel: exactly, of a workload or the machine, by key, in pairs; what is wrong with one, and machines that
//! refuse BPF.

use std::process::Command;

use perflab_model::IterationEdge;
use perflab_model::table::StoredValue;

use crate::laboratory::{Sandbox, is_root, mask_numbers, skip_test, to_command_output};

fn latest_run(laboratory: &Sandbox) -> perflab_archive::RunDir {
    let archive = perflab_archive::Archive::open(&laboratory.path("archive")).unwrap();
    archive.find_runs("@latest").unwrap().remove(0)
}

/// What each iteration said of a column at its end, less what it said at its begin where it counts; of the row with this key.
fn of_iterations(laboratory: &Sandbox, column: &str, key: &str) -> Vec<f64> {
    let edges = latest_run(laboratory).read_edges("events").unwrap().unwrap();
    let columns = &edges.schema.columns;
    let place = columns.iter().position(|known| known.name == column).expect(column);
    let counts = columns[place].kind == perflab_model::column::ColumnKind::Counter;
    let cells = edges.table.cell_column(place).unwrap();
    let keys = columns.iter().position(|known| known.name == "key");
    let keys = keys.map(|place| edges.table.cell_column(place).unwrap());
    let mut begun = 0.0;
    let mut found = Vec::new();
    for (row, stamp) in edges.stamps.iter().enumerate() {
        if keys.is_some_and(|keys| !matches!(keys.get(row), Some(StoredValue::Text(text)) if text == key)) {
            continue;
        }
        let Some(number) = cells.number(row) else { continue };
        match stamp.edge {
            IterationEdge::Begin => begun = number,
            IterationEdge::End => found.push(if counts { number - begun } else { number }),
        }
    }
    found
}

/// `dd` writes as often as it is told, as much as it is told.
#[test]
fn system_calls_of_the_workload_are_counted_to_the_last_one_by_key_and_by_value() {
    if !is_root() {
        return skip_test("system_calls_of_the_workload_are_counted", "root, for tracepoints");
    }
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 3, warmup = 0 }\n\
         [workload.w]\ncommand = [\"dd\", \"if=/dev/zero\", \"of=/dev/null\", \"bs=512\", \"count=4321\", \"status=none\"]\n\
         [events.writes]\nevent = \"raw_syscalls:sys_exit\"\nfilter = \"id == write\"\nvalue = \"ret\"\nunit = \"bytes\"\n\
         of = \"workload\"\n\
         [events.calls]\nevent = \"raw_syscalls:sys_enter\"\nkey = \"id\"\nof = \"workload\"\n\
         [events.few]\nevent = \"raw_syscalls:sys_enter\"\nkey = \"id\"\nkeys = 1\nof = \"workload\"\n",
    );
    laboratory.run_successfully(&["run", &study, "--no-report"]);
    assert_eq!(of_iterations(&laboratory, "writes.count", "all"), [4_321.0; 3]);
    assert_eq!(of_iterations(&laboratory, "writes.sum", "all"), [4_321.0 * 512.0; 3]);
    // One value alone is known exactly, as the largest.
    for column in ["writes.mean", "writes.p50", "writes.p99", "writes.max"] {
        assert_eq!(of_iterations(&laboratory, column, "all"), [512.0; 3], "{column}");
    }
    assert_eq!(of_iterations(&laboratory, "calls.count", "write"), [4_321.0; 3]);
    let (calls, few) =
        (of_iterations(&laboratory, "calls.count", "all"), of_iterations(&laboratory, "few.count", "all"));
    assert_eq!(calls, few, "keys that are too many are counted all the same");
    assert!(of_iterations(&laboratory, "few.count", "other").iter().sum::<f64>() > 0.0);
    let record = latest_run(&laboratory).read_record().unwrap();
    let told: Vec<&str> = record.warnings.iter().map(|warning| warning.message.as_str()).collect();
    insta::assert_snapshot!(mask_numbers(&told.join("\n")), @"N events of `few` came with keys beyond the first N: they are `other`");
    let shown = laboratory.run_json(&["compare", "@latest", "@latest", "--monitor", "events"]);
    let rows = shown["rows"].as_array().unwrap();
    assert!(
        rows.iter().any(|row| row["metric"] == "writes.p99 key=all" && row["unit"] == "bytes"),
        "{shown}"
    );
}

/// A sleep lasts no less than it was told.
#[test]
fn pairs_have_the_time_between_their_ends_and_only_those_of_the_workload() {
    if !is_root() {
        return skip_test("pairs_have_the_time_between_their_ends", "root, for tracepoints");
    }
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 2, warmup = 0 }\n\
         [workload.w]\ncommand = [\"sh\", \"-c\", \"for i in 1 2 3 4 5 6 7; do sleep 0.02; done\"]\n\
         [events.sleeps]\nbegin = { event = \"raw_syscalls:sys_enter\", filter = \"id == clock_nanosleep\" }\n\
         end = { event = \"raw_syscalls:sys_exit\", filter = \"id == clock_nanosleep\" }\nof = \"workload\"\n\
         [events.delay]\nrecipe = \"run-queue-delay\"\n",
    );
    laboratory.run_successfully(&["run", &study, "--no-report"]);
    assert_eq!(of_iterations(&laboratory, "sleeps.count", ""), [7.0; 2]);
    let [p50, max] = ["sleeps.p50", "sleeps.max"].map(|column| of_iterations(&laboratory, column, ""));
    for (p50, max) in p50.iter().zip(&max) {
        assert!(*p50 >= 20e6 * (1.0 - 1.0 / 32.0) && p50 <= max, "{p50} {max}");
    }
    assert!(of_iterations(&laboratory, "sleeps.sum", "").iter().all(|sum| *sum >= 7.0 * 20e6));
    // Each sleeper was woken, and each process was created, before it ran.
    assert!(of_iterations(&laboratory, "delay.count", "").iter().all(|count| *count >= 14.0));
}

/// Four seeks to five bytes before the end, by a task that is called as the row of all keys is.
#[test]
fn what_is_below_zero_is_lost_and_a_task_may_be_called_all() {
    let name = "what_is_below_zero_is_lost_and_a_task_may_be_called_all";
    if !is_root() {
        return skip_test(name, "root, for tracepoints");
    }
    let laboratory = Sandbox::new();
    let script = "$0 = \"all\"; open(F, \"<\", \"/proc/self/exe\"); sysseek(F, -5, 2) for 1 .. 4; select(undef, undef, undef, 0.05)";
    let study = laboratory.write_study(
        "s.toml",
        &format!(
            "run = {{ iterations = 2, warmup = 0 }}\n[workload.w]\ncommand = [\"perl\", \"-e\", '{script}']\n\
             [events.seeks]\nevent = \"syscalls:sys_enter_lseek\"\nfilter = \"whence == 2\"\nvalue = \"offset\"\nof = \"workload\"\n\
             [events.switches]\nevent = \"sched:sched_switch\"\nkey = \"prev_comm\"\nkeys = 1000\n"
        ),
    );
    laboratory.run_successfully(&["run", &study, "--no-report"]);
    assert_eq!(of_iterations(&laboratory, "seeks.count", "all"), [4.0; 2]);
    assert_eq!(of_iterations(&laboratory, "seeks.lost", "all"), [4.0; 2]);
    assert_eq!(of_iterations(&laboratory, "seeks.sum", "all"), [0.0; 2]);
    let [named, every] = ["\"all\"", "all"].map(|key| of_iterations(&laboratory, "switches.count", key));
    assert!(
        named.iter().zip(&every).all(|(named, every)| *named >= 1.0 && named < every),
        "{named:?} {every:?}"
    );
}

#[test]
fn a_pair_that_never_ends_is_bounded_and_told() {
    if !is_root() {
        return skip_test("a_pair_that_never_ends_is_bounded_and_told", "root, for tracepoints");
    }
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 1, warmup = 0 }\n[workload.w]\ncommand = [\"sh\", \"-c\", \"true; /bin/true\"]\n\
         [events.never]\nbegin = { event = \"raw_syscalls:sys_enter\", by = \"id\" }\n\
         end = { event = \"raw_syscalls:sys_exit\", by = \"id\", filter = \"id == -77\" }\nin-flight = 2\n",
    );
    let ended = laboratory.run_successfully(&["run", &study, "--no-report"]);
    assert_eq!(of_iterations(&laboratory, "never.count", ""), [0.0]);
    assert!(of_iterations(&laboratory, "never.lost", "")[0] > 0.0);
    insta::assert_snapshot!(
        ended.err_wording_of("lost events").lines().next().unwrap().split(" on CPU").next().unwrap(),
        @"warning: `never` lost events: N"
    );
}

#[test]
fn what_this_machine_does_not_have_is_said_by_name_and_the_rest_is_counted() {
    if !is_root() {
        return skip_test("what_this_machine_does_not_have_is_said_by_name", "root, for tracepoints");
    }
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 1, warmup = 0 }\n[workload.w]\ncommand = \"true\"\n\
         [events.a]\nevent = \"sched:sched_swich\"\n[events.b]\nevent = \"sched:sched_wakeup\"\nkey = \"target_cu\"\n\
         [events.c]\nevent = \"sched:sched_wakeup\"\nfilter = \"pid > many\"\n[events.d]\nevent = \"sched:sched_wakeup\"\n",
    );
    let ended = laboratory.run_successfully(&["run", &study, "--no-report"]);
    insta::assert_snapshot!(ended.err_wording_of("events `"));
    assert!(of_iterations(&laboratory, "d.count", "")[0] > 0.0);
}

#[test]
fn a_study_says_what_is_no_event_before_anything_runs() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "[workload.w]\ncommand = \"true\"\n[events.a]\nevent = \"sched_switch\"\n[events.b]\nrecipe = \"run-queue-dely\"\n\
         [events.c]\nevent = \"a:b\"\nkeep = \"histogram\"\n[events.d]\nbegin = \"a:b\"\n",
    );
    let refused = laboratory.run(&["study", "check", &study]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    insta::assert_snapshot!(refused.stable_err());
    let monitored =
        laboratory.write_study("m.toml", "[workload.w]\ncommand = \"true\"\n[monitors]\nevents = \"1s\"\n");
    assert_eq!(laboratory.run(&["study", "check", &monitored]).code, Some(2));
}

/// Closing takes the kernel longer than a reading may take, and nobody waits for it.
#[test]
fn events_on_a_clock_lose_no_reading_when_the_run_closes_them() {
    if !is_root() {
        return skip_test("events_on_a_clock_lose_no_reading", "root, for tracepoints");
    }
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 1, warmup = 0 }\n[workload.w]\ncommand = [\"sleep\", \"1\"]\n[monitors]\nevents = \"200ms\"\n\
         [events.a]\nrecipe = \"run-queue-delay\"\n[events.b]\nrecipe = \"system-call-latency\"\n\
         [events.c]\nrecipe = \"block-latency\"\n[events.d]\nevent = \"sched:sched_switch\"\n",
    );
    laboratory.run_successfully(&["run", &study, "--no-report"]);
    let run = latest_run(&laboratory);
    let closing = run.read_record().unwrap().gaps.into_iter().filter(|gap| gap.to.is_none());
    assert_eq!(closing.count(), 0);
    let series = run.read_series("events").unwrap();
    let place = series.schema.columns.iter().position(|column| column.name == "d.count").unwrap();
    let (keys, cells) = (series.table.cell_column(0).unwrap(), series.table.cell_column(place).unwrap());
    let is_all = |row: &usize| matches!(keys.get(*row), Some(StoredValue::Text(text)) if text == "all");
    let rows: Vec<usize> = (0..series.at.len()).filter(is_all).collect();
    assert!(rows.len() >= 3 && rows.iter().all(|row| cells.number(*row).is_some()));
}

#[test]
fn a_check_holds_events_against_the_tracepoints_of_this_machine() {
    let laboratory = Sandbox::new();
    let check = |events: &str| {
        let text = format!("[workload.w]\ncommand = \"true\"\n{events}\n");
        let study = laboratory.write_study("s.toml", &text);
        let said = laboratory.run(&["study", "check", &study, "--format", "json"]);
        let unchecked = serde_json::from_str::<serde_json::Value>(&said.out).ok();
        (said.code, unchecked.map(|found| found["unchecked"].as_array().unwrap().len()))
    };
    let good = "[events.a]\nevent = \"sched:sched_switch\"\nkey = \"next_pid\"\nfilter = \"prev_pid > 1\"";
    let guest = "[target.g]\nkind = \"vm\"\nkernel = \"host\"\n[events.a]\nevent = \"sched:sched_swich\"";
    assert_eq!(check(guest), (Some(0), Some(1)), "what a target's kernel has is not known here");
    if !is_root() {
        assert_eq!(check(good), (Some(0), Some(1)), "who cannot look says so");
        return skip_test("a_check_holds_events_against_tracepoints", "root, for tracepoints");
    }
    assert_eq!(check(good), (Some(0), Some(0)));
    for bad in [
        "[events.a]\nevent = \"sched:sched_swich\"",
        "[events.a]\nevent = \"shced:sched_switch\"",
        "[events.a]\nevent = \"sched:sched_switch\"\nkey = \"next_pd\"",
        "[events.a]\nevent = \"sched:sched_switch\"\nvalue = \"prev_comm\"",
        "[events.a]\nevent = \"sched:sched_switch\"\nfilter = \"prev_pid >\"",
        "[events.a]\nrecipe = \"run-queue-delay\"\nkey = \"nothing\"",
        "[events.a]\nbegin = \"sched:sched_wakeup\"\nend = \"sched:sched_switch\"\nby = \"pid\"",
    ] {
        assert_eq!(check(bad), (Some(2), None), "{bad}");
    }
}

/// Where BPF is refused (root without CAP_BPF and CAP_SYS_ADMIN), numbers are counted by perf events, and exactly; what needs BPF
/// says so.
#[test]
fn without_bpf_perf_events_count_and_histograms_are_refused_by_name() {
    if !is_root() {
        return skip_test("without_bpf_perf_events_count", "root, to drop capabilities");
    }
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 2, warmup = 0 }\n\
         [workload.w]\ncommand = [\"dd\", \"if=/dev/zero\", \"of=/dev/null\", \"bs=512\", \"count=1234\", \"status=none\"]\n\
         [events.writes]\nevent = \"raw_syscalls:sys_enter\"\nfilter = \"id == write\"\nof = \"workload\"\n\
         [events.all]\nevent = \"raw_syscalls:sys_enter\"\n\
         [events.latency]\nrecipe = \"system-call-latency\"\n",
    );
    let perflab = laboratory.command(&["run", &study, "--no-report"]);
    let mut words = vec![perflab.get_program().to_owned()];
    words.extend(perflab.get_args().map(ToOwned::to_owned));
    let mut command = Command::new("unshare");
    let script = "mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing; \
                  exec setpriv --bounding-set=-sys_admin,-bpf \"$@\"";
    command.args(["--mount", "sh", "-c", script, "sh"]).args(words);
    for (name, value) in perflab.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let ended = to_command_output(command.output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(of_iterations(&laboratory, "writes.count", ""), [1_234.0; 2], "{}", ended.err);
    assert!(of_iterations(&laboratory, "all.count", "").iter().all(|count| *count >= 2_468.0));
    insta::assert_snapshot!(ended.err_wording_of("events `"));
}

/// Programs and maps belong to perflab's descriptors: nothing is pinned.
#[test]
fn a_perflab_that_is_killed_leaves_no_program_behind() {
    if !is_root() {
        return skip_test("a_perflab_that_is_killed_leaves_no_program_behind", "root, for tracepoints");
    }
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 1, warmup = 0 }\n[workload.w]\ncommand = [\"sleep\", \"60\"]\n[events.delay]\nrecipe = \"run-queue-delay\"\n",
    );
    let mut running = laboratory.command(&["run", &study, "--no-report"]).spawn().unwrap();
    let fds = format!("/proc/{}/fd", running.id());
    let programs = || -> usize {
        let entries = std::fs::read_dir(&fds).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .filter(|link| link.to_string_lossy().contains("bpf-prog"))
            .count()
    };
    while programs() == 0 {
        assert!(running.try_wait().unwrap().is_none(), "it ended before it counted");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    running.kill().unwrap();
    running.wait().unwrap();
    // Nothing holds them but descriptors, and there is no file system in which they could be pinned by us.
    assert_eq!(programs(), 0);
    laboratory.run_successfully(&["undo"]);
}
