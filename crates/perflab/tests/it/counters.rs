//! Events that are counted: of the workload exactly, on CPUs, in guests; and those that a machine does not count.

use perflab_model::series::Series;

use crate::laboratory::{Sandbox, is_root, skip_test, to_command_output};
use crate::vm::GuestSandbox;

fn latest_run(laboratory: &Sandbox) -> perflab_archive::RunDir {
    let archive = perflab_archive::Archive::open(&laboratory.path("archive")).unwrap();
    archive.find_runs("@latest").unwrap().remove(0)
}

/// The numbers of a column, in the order of the readings.
fn numbers(series: &Series, column: &str) -> Vec<f64> {
    let place = series.schema.columns.iter().position(|known| known.name == column).unwrap();
    let column = series.table.cell_column(place).unwrap();
    (0..series.table.row_count()).filter_map(|row| column.number(row)).collect()
}

/// `dd` makes two system calls a block.
#[test]
fn what_each_command_caused_is_compared_to_the_last_system_call() {
    if !is_root() {
        return skip_test("what_each_command_caused_is_compared", "root, for tracepoints");
    }
    let laboratory = Sandbox::new();
    let copy = |blocks: u32| format!("dd if=/dev/zero of=/dev/null bs=512 count={blocks} status=none");
    let events = "raw_syscalls:sys_enter,task-clock,nothing/at-all/";
    let ended = laboratory.run_successfully(&[
        "bench",
        "-N",
        "-r",
        "6",
        "--counters",
        events,
        &copy(1_000),
        &copy(4_000),
    ]);
    let said: Vec<&str> = ended.err.lines().filter(|line| line.contains("`nothing/at-all/`")).collect();
    assert_eq!(said.len(), 1, "{}", ended.err);
    let compared = laboratory.run_json(&["compare", "@latest", "--by", "command", "--monitor", "counters"]);
    let rows = compared["rows"].as_array().unwrap();
    let row = |metric: &str| rows.iter().find(|row| row["metric"] == metric).unwrap();
    let calls = row("raw_syscalls:sys_enter");
    assert_eq!((&calls["unit"], calls["change"]["scale"].as_str()), (&"1".into(), Some("ratio")), "{calls}");
    let [few, many] = ["baseline", "candidate"].map(|side| calls[side]["values"].as_array().unwrap().clone());
    assert!(few.len() == 6 && many.len() == 6, "{calls}");
    for (few, many) in few.iter().zip(&many) {
        assert_eq!(many["value"].as_f64().unwrap() - few["value"].as_f64().unwrap(), 6_000.0);
    }
    assert_eq!(row("task-clock")["unit"], "ns");
}

#[test]
fn clocks_of_cpus_go_on_whoever_runs_and_the_workloads_do_not() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 2, warmup = 0 }\n[workload.w]\ncommand = [\"sleep\", \"0.3\"]\n\
         [counters]\nevents = [[\"task-clock\", \"page-faults\"]]\ncpus = [[\"cpu-clock\", \"page-faults\"]]\n\
         [monitors]\ncounters = \"20ms\"\ncpu-counters = \"20ms\"\n",
    );
    laboratory.run_successfully(&["run", &study, "--no-report"]);
    let run = latest_run(&laboratory);
    let used = numbers(&run.read_series("counters").unwrap(), "task-clock");
    assert!(used.len() > 10 && used.is_sorted() && used[0] < used[used.len() - 1], "{used:?}");
    if !is_root() {
        return;
    }
    let series = run.read_series("cpu-counters").unwrap();
    let clock = numbers(&series, "cpu-clock");
    let cpus = series.at.iter().take_while(|at| **at == series.at[0]).count();
    let (first, last) = (clock[0], clock[clock.len() - cpus]);
    let lasted = series.at[series.at.len() - 1].0 - series.at[0].0;
    // Edges and clock are of one count, and every event of a group is counted.
    let edges = run.read_edges("cpu-counters").unwrap().unwrap();
    for column in ["cpu-clock", "page-faults"] {
        let place = edges.schema.columns.iter().position(|known| known.name == column).unwrap();
        let at_edges = edges.table.cell_column(place).unwrap();
        let mut both: Vec<(u64, f64)> = (0..edges.stamps.len())
            .step_by(cpus)
            .map(|row| (edges.stamps[row].at.0, at_edges.number(row).unwrap()))
            .chain(
                series
                    .at
                    .iter()
                    .step_by(cpus)
                    .zip(numbers(&series, column).into_iter().step_by(cpus))
                    .map(|(at, number)| (at.0, number)),
            )
            .collect();
        both.sort_unstable_by_key(|(at, _)| *at);
        assert!(both.is_sorted_by_key(|(_, number)| *number), "{column}: {both:?}");
    }
    // Both clocks are of one machine; the readings of a tick are some microseconds apart.
    assert!(((last - first) / lasted as f64 - 1.0).abs() < 0.05, "{first} {last} {lasted}");
}

#[test]
fn events_that_are_none_are_said_before_anything_runs() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "[workload.w]\ncommand = \"true\"\n[counters]\nevents = [\"instrutions\", \"cs\", \"context-switches\", \"sched:\"]\n\
         [monitors]\ncpu-counters = \"1s\"\n",
    );
    let refused = laboratory.run(&["study", "check", &study]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    insta::assert_snapshot!(refused.stable_err(), @r#"
    error: /tmp/.TMP/s.toml:5:1: `counters.events`: `instrutions` is no event; did you mean `instructions`?
    error: /tmp/.TMP/s.toml:5:1: `counters.events`: `context-switches` is there twice; leave one out
    error: /tmp/.TMP/s.toml:5:1: `counters.events`: `sched:` is no event; one of a unit is UNIT/EVENT/, a raw one rNNN, a tracepoint GROUP:NAME, and `perflab monitor show counters` lists the others
    error: /tmp/.TMP/s.toml:7:1: `monitors.cpu-counters`: the monitor `cpu-counters` counts what [counters] names under `cpus`: nothing; [counters] cpus = ["task-clock", "context-switches"], or leave the monitor out
    "#);
    let listed = laboratory.run(&["bench", "true", "--counters", "{cycles,instructions"]);
    assert_eq!(listed.code, Some(2), "{}", listed.err);
}

#[test]
fn a_guest_counts_its_own_workload_and_says_what_it_has_no_counter_for() {
    let Some(guests) = GuestSandbox::new("a_guest_counts_its_own_workload") else { return };
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 2, warmup = 0 }\n[workload.w]\n\
         command = \"dd if=/dev/zero of=/dev/null bs=512 count=1000\"\n\
         [target.box]\nkind = \"vm\"\nkernel = \"debian-cloud\"\nroot = \"bare\"\nmemory = \"512MiB\"\nprograms = [\"sh\", \"dd\"]\n\
         [counters]\nevents = [\"task-clock\", \"page-faults\", \"instructions\"]\n",
    );
    let mut command = laboratory.command(&["run", &study, "--no-report"]);
    let ended = to_command_output(command.env("XDG_RUNTIME_DIR", guests.home()).output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let run = latest_run(&laboratory);
    let edges = run.read_edges("counters.box").unwrap().unwrap();
    let columns: Vec<&str> = edges.schema.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!((edges.stamps.len(), columns), (4, vec!["task-clock", "page-faults"]), "{}", ended.err);
    let clock = edges.table.cell_column(0).unwrap();
    let clock: Vec<f64> = (0..4).filter_map(|row| clock.number(row)).collect();
    assert!(clock[0] == 0.0 && clock[1] > 0.0 && clock[3] > clock[2], "{clock:?}");
    guests.assert_nothing_is_left();
}
