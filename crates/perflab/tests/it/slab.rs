//! The slab instrument: imported logs everywhere, live caches where we are root.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::laboratory::{CommandOutput, Sandbox, is_root, skip_test, to_command_output};

/// A log as lkp's monitor writes it: dentry grows by a slab a second, filp stays, and one cache is empty.
/// `more` slabs of dentry are there from the beginning.
pub fn slabinfo_log(seconds: u64, more: u64) -> String {
    let mut text = String::new();
    for second in 0..seconds {
        let slabs = 100 + more + second;
        let _ = write!(
            text,
            "time: {}\nslabinfo - version: 2.1\n\
             # name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n\
             dentry {} {} 192 21 1 : tunables 0 0 0 : slabdata {slabs} {slabs} 0\n\
             filp 300 320 256 16 1 : tunables 0 0 0 : slabdata 20 20 0\n\
             empty_one 0 0 64 64 1 : tunables 0 0 0 : slabdata 0 0 0\n",
            1_570_735_000 + second,
            slabs * 21 - 5,
            slabs * 21,
        );
    }
    text
}

fn import_slabinfo_logs(labels: &[(&str, u64)]) -> Sandbox {
    let laboratory = Sandbox::new();
    for (label, more) in labels {
        fs::write(laboratory.path("slabinfo.log"), slabinfo_log(20, *more)).unwrap();
        // Logs of equal content are repetitions all the same here.
        let words = ["import", "slabinfo.log", "--page-size", "4KiB", "--again", "--label", label];
        laboratory.run_successfully(&words);
    }
    laboratory
}

fn output_json(said: &CommandOutput) -> Value {
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(document["version"], 1);
    document["result"].clone()
}

#[test]
fn an_imported_log_is_shown_in_exact_bytes() {
    let laboratory = import_slabinfo_logs(&[("log", 0)]);
    let said = laboratory.run_successfully(&["slab", "show", "log", "--format", "json"]);
    let result = output_json(&said);
    assert_eq!(result["rows"]["read"], 60);
    assert_eq!(result["rows"]["empty"], 20);
    insta::assert_snapshot!("an_imported_log_is_shown_in_exact_bytes_1", said.stable_err());
    let filp = result["caches"].as_array().unwrap().iter().find(|cache| cache["name"] == "filp").unwrap();
    assert_eq!(filp["end"]["slab_bytes"], 20 * 4096);
    assert_eq!(filp["end"]["used_bytes"], 300 * 256);
    let table = laboratory.run_successfully(&["slab", "show", "log", "--top", "1"]);
    insta::assert_snapshot!("an_imported_log_is_shown_in_exact_bytes_2", table.stable_out());
    // The notebook's names come with all columns only.
    let wide = laboratory.run_successfully(&["slab", "show", "log", "--wide"]);
    let table = laboratory.run_successfully(&["slab", "show", "log"]);
    insta::assert_snapshot!(wide.err.strip_prefix(&table.err).unwrap(), @"the notebook's names (in brackets the slabinfo tool's): cache = name (Name); slab = space_normalized_in_kb (Space); wasted = none (Loss); tail = none (Lpadd, of all slabs); align = none (Lalig, of all slots); free = none (in neither of Loss's parts); efficiency = percent_efficient (%Ef), a whole number there; at least = none; unweighted = mean of percent_efficient over ticks; packing = ef; alignment = none; occupancy = active_vs_num, of objects; object = object_size (Objsize); per slab = o_s (O/S); peak = none; other names = none (slabinfo -a)");
}

#[test]
fn tables_read_as_they_were_looked_at() {
    let laboratory = import_slabinfo_logs(&[("before", 0), ("after", 50)]);
    let table = |arguments: &[&str]| laboratory.run_successfully(arguments).out;
    insta::assert_snapshot!("slab_import", {
        fs::write(laboratory.path("slabinfo.log"), slabinfo_log(20, 0)).unwrap();
        table(&["import", "slabinfo.log", "--page-size", "4KiB", "--label", "third"])
    });
    insta::assert_snapshot!("slab_show", table(&["slab", "show", "before"]));
    insta::assert_snapshot!("slab_timeline", table(&["slab", "timeline", "before"]));
    insta::assert_snapshot!("slab_growth", table(&["slab", "timeline", "before", "--growth"]));
    insta::assert_snapshot!("slab_histogram", table(&["slab", "histogram", "before"]));
    insta::assert_snapshot!("slab_compare", table(&["slab", "compare", "before", "after", "--all"]));
    insta::assert_snapshot!("slab_what_if", table(&["slab", "what-if", "before"]));
}

#[test]
fn time_is_told_by_tick_and_by_growth() {
    let laboratory = import_slabinfo_logs(&[("log", 0)]);
    let csv = laboratory.run_successfully(&["slab", "timeline", "log", "--format", "csv"]);
    assert_eq!(csv.out.lines().count(), 21, "a line of titles and every tick");
    let growth = output_json(
        &laboratory.run_successfully(&["slab", "timeline", "log", "--growth", "--format", "json"]),
    );
    assert_eq!(growth["contributors"][0]["name"], "dentry");
    let slope = growth["contributors"][0]["slope"]["bytes_per_second"].as_f64().unwrap();
    assert!((slope - 4096.0).abs() < 1.0, "{slope}");
    let one =
        laboratory.run_successfully(&["slab", "timeline", "log", "--cache", "filp", "--format", "csv"]).out;
    insta::assert_snapshot!(one.lines().take(2).collect::<Vec<_>>().join("\n"), @"
    time,slab,used,tail,align,free,efficiency,at least,unweighted,flagged,phase
    0.0,81920,76800,0,,5120,0.9375,,0.9375,0,
    ");
    let wrong = laboratory.run(&["slab", "timeline", "log", "--cache", "dentri"]);
    assert_eq!(wrong.code, Some(2));
    insta::assert_snapshot!("time_is_told_by_tick_and_by_growth_1", wrong.stable_err());
}

#[test]
fn everything_can_be_drawn() {
    let laboratory = import_slabinfo_logs(&[("a", 0), ("b", 50)]);
    let verbs: [&[&str]; 8] = [
        &["slab", "show", "a"],
        &["slab", "timeline", "a"],
        &["slab", "timeline", "a", "--picture", "waste"],
        &["slab", "timeline", "a", "--picture", "efficiency", "--cache", "dentry"],
        &["slab", "timeline", "a", "--growth"],
        &["slab", "histogram", "a"],
        &["slab", "histogram", "a", "--method", "notebook", "--of", "proc"],
        &["slab", "compare", "a", "b"],
    ];
    for verb in verbs {
        laboratory.run_successfully(&[verb, &["-o", "p.svg"]].concat());
        let svg = fs::read_to_string(laboratory.path("p.svg")).unwrap();
        assert!(svg.starts_with("<svg ") && svg.contains("<title>"), "{verb:?}");
        laboratory.run_successfully(&[verb, &["--output", "p.png"]].concat());
        let png = fs::read(laboratory.path("p.png")).unwrap();
        assert!(png.starts_with(b"\x89PNG") && png.len() > 5_000, "{verb:?}");
    }
    let wrong = laboratory.run(&["slab", "show", "a", "-o", "p.pdf"]);
    assert_eq!(wrong.code, Some(2));
    insta::assert_snapshot!("everything_can_be_drawn_1", wrong.stable_err());
}

#[test]
fn repetitions_decide_and_the_gate_says_so() {
    let repeated: Vec<(&str, u64)> =
        (0..6).flat_map(|turn| [("before", turn), ("after", 40 + turn)]).collect();
    let laboratory = import_slabinfo_logs(&repeated);
    let said =
        laboratory.run(&["slab", "compare", "before", "after", "--fail-if", "worse:5%", "--format", "json"]);
    assert_eq!(said.code, Some(5), "{}\n{}", said.out, said.err);
    let result = output_json(&said);
    let dentry = result["caches"].as_array().unwrap().iter().find(|one| one["cache"] == "dentry").unwrap();
    assert_eq!(dentry["verdict"], "worse");
    let same = laboratory.run(&["slab", "compare", "before", "before", "--fail-if", "worse"]);
    assert_eq!(same.code, Some(0), "{}\n{}", same.out, same.err);
    let caches = |arguments: &[&str]| -> Vec<String> {
        let csv = [&["slab", "compare", "before", "after", "--format", "csv"], arguments].concat();
        let csv = laboratory.run_successfully(&csv).out;
        csv.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect()
    };
    assert_eq!(caches(&[]), ["all caches", "dentry"]);
    assert_eq!(caches(&["--all"]), ["all caches", "dentry", "filp"]);
}

#[test]
fn what_would_be_is_counted_in_whole_slabs() {
    let laboratory = import_slabinfo_logs(&[("log", 0)]);
    let said = laboratory
        .run_successfully(&["slab", "what-if", "log", "--cache", "filp", "--order", "1", "--format", "json"]);
    let result = output_json(&said);
    assert_eq!(result[0]["what_if"]["then"]["objs_per_slab"], 32);
    assert_eq!(result[0]["what_if"]["bytes_then"], 320 / 32 * 8192);
    let all = output_json(&laboratory.run_successfully(&["slab", "what-if", "log", "--format", "json"]));
    assert!(all.as_array().unwrap().iter().any(|row| row["cache"] == "dentry"), "{all}");
    let wrong = laboratory.run(&[
        "slab",
        "what-if",
        "log",
        "--cache",
        "filp",
        "--object-size",
        "9000B",
        "--order",
        "0",
    ]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.err);
}

#[test]
fn a_log_without_the_tools_output_has_no_table_of_the_notebook() {
    let laboratory = import_slabinfo_logs(&[("log", 0)]);
    let said = laboratory.run(&["slab", "show", "log", "--method", "notebook"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!(said.stable_err(), @"error: no rows of `slabinfo-tool` in this run: import a folder that holds what the kernel's slabinfo tool printed");
    let packing =
        laboratory.run_successfully(&["slab", "histogram", "log", "--method", "notebook", "--of", "proc"]);
    insta::assert_snapshot!(packing.stable_err(), @"
    60 rows read, 40 counted; 0 caches move over time
    ours: 0 of 40 rows lie in these bars, 40 below 98.44 %, 0 above 100.00 %
    why it differs from ours: num_objs counts slots, used or free: the result is one constant a cache (the packing) and cannot move with the load
    why it differs from ours: objsize is the padded size of a slot, so that what alignment costs is counted as use
    why it differs from ours: 20 rows of caches without slabs are 0 / 0 and vanish without a word
    why it differs from ours: every cache counts the same: one of 16 kB as much as one of 260 MB, which says nothing about memory
    ");
}

#[test]
fn an_option_is_honoured_or_refused() {
    let laboratory = import_slabinfo_logs(&[("log", 0)]);
    let grown =
        output_json(&laboratory.run_successfully(&[
            "slab", "timeline", "log", "--growth", "--cache", "filp", "--format", "json",
        ]));
    let names: Vec<&str> = grown["contributors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cache| cache["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["filp"]);
    let columns = |arguments: &[&str]| {
        laboratory.run_successfully(arguments).out.lines().next().unwrap().trim_end().chars().count()
    };
    assert!(columns(&["slab", "show", "log"]) <= 120);
    assert!(columns(&["slab", "show", "log", "--wide"]) > 120);
    assert!(columns(&["slab", "timeline", "log", "--growth"]) <= 120);
    let refused: [&[&str]; 8] = [
        &["timeline", "log", "--growth", "--cache", "flip"],
        &["timeline", "log", "--picture", "waste"],
        &["timeline", "log", "--growth", "--picture", "waste", "-o", "x.svg"],
        &["timeline", "log", "--growth", "--method", "notebook"],
        &["histogram", "log", "--of", "proc"],
        &["histogram", "log", "--of", "proc", "--method", "notebook", "--bins", "3"],
        &["what-if", "log", "--cache", "filp", "--top", "3"],
        &["record", "--for", "1s", "--quiet-time", "1s"],
    ];
    for arguments in refused {
        let said = laboratory.run(&[&["slab"], arguments].concat());
        assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn bad_logs_are_refused_with_file_and_line() {
    let laboratory = Sandbox::new();
    let good = slabinfo_log(3, 0);
    let errors = [
        ("empty.log", String::new()),
        ("header.log", good.replace("version: 2.1", "version: 3.0")),
        ("words.log", "this is\nno slabinfo\n".to_owned()),
    ]
    .map(|(name, text)| {
        fs::write(laboratory.path(name), text).unwrap();
        let said = laboratory.run(&["import", name]);
        assert_eq!(said.code, Some(2), "{name}: {}", said.err);
        // The importers that there are follow.
        said.err.lines().next().unwrap().split(" (").next().unwrap().to_owned()
    });
    insta::assert_snapshot!(errors.join("\n"), @"
    error: empty.log: it is empty: there is no dump in it
    error: header.log:2: version `3.0` of slabinfo is not known: 2.0 and 2.1 are
    error: words.log: it looks like none of mmtests
    ");
    assert_ne!(laboratory.run(&["import", "not-there"]).code, Some(0));
    assert_eq!(
        laboratory.run_successfully(&["list", "--format", "csv"]).out.lines().count(),
        1,
        "nothing is left behind"
    );
}

#[test]
fn a_broken_row_is_counted_not_dropped() {
    let laboratory = Sandbox::new();
    let broken = slabinfo_log(3, 0).replacen("filp 300", "filp many", 1);
    fs::write(laboratory.path("broken.log"), broken).unwrap();
    let said =
        laboratory.run_successfully(&["import", "broken.log", "--page-size", "4KiB", "--format", "json"]);
    let rows: Value = serde_json::from_str(&said.out).unwrap();
    insta::assert_snapshot!(rows[0], @r#"{"became":"slabinfo","file":"broken.log","flagged":1,"rows read":9,"ticks":3,"unusable":0,"used":9}"#);
    insta::assert_snapshot!(said.stable_err(), @"
    warning: broken.log: 9 rows read, 9 used, 1 flagged, 0 unusable; the first at line 5: malformed: filp: a number is missing; flagged rows say so in their column `flags`; look at the file where lines are unusable
    warning: broken.log:5: malformed: filp: a number is missing
    run: RUN (taken for dump)
    ");
}

#[test]
fn without_root_totals_are_recorded_and_the_rest_is_named() {
    let name = "without_root_totals_are_recorded_and_the_rest_is_named";
    let laboratory = Sandbox::new();
    let arguments = ["slab", "record", "--for", "300ms", "--label", "user"];
    let command = laboratory.command(&arguments);
    let command = if is_root() {
        if Command::new("setpriv").arg("--version").output().is_err() {
            return skip_test(name, "setpriv is not installed");
        }
        for path in [laboratory.home.path().to_owned(), laboratory.path("workloads")] {
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
        }
        run_as_nobody(&command)
    } else {
        command
    };
    let ended = to_command_output(run_with_output(command));
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.out, ended.err);
    insta::assert_snapshot!("without_root_totals_are_recorded_and_the_rest_is_named_1", ended.stable_err());
    assert!(laboratory.path("archive").is_dir());
    let shown = laboratory.run(&["slab", "show", "user"]);
    assert_eq!(shown.code, Some(2), "{}", shown.err);
    insta::assert_snapshot!("without_root_totals_are_recorded_and_the_rest_is_named_2", shown.stable_err());
}

fn run_with_output(mut command: Command) -> std::process::Output {
    command.output().unwrap()
}

/// The same command as a user who may nothing.
fn run_as_nobody(command: &Command) -> Command {
    let mut outer = Command::new("setpriv");
    outer.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(command.get_program());
    outer.args(command.get_args()).stdin(Stdio::null());
    outer.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        outer.env(name, value.unwrap());
    }
    outer.env("TMPDIR", command.get_current_dir().unwrap());
    outer
}

#[test]
fn a_recording_holds_every_cache_root() {
    let name = "a_recording_holds_every_cache_root";
    if !is_root() {
        return skip_test(name, "/proc/slabinfo needs root");
    }
    let laboratory = Sandbox::new();
    laboratory.run_successfully(&[
        "slab",
        "record",
        "--every",
        "50ms",
        "--quiet-time",
        "200ms",
        "--label",
        "live",
        "--plot",
        "live.svg",
        "--",
        "sh",
        "-c",
        "sleep 0.4",
    ]);
    assert!(fs::read_to_string(laboratory.path("live.svg")).unwrap().contains("</svg>"));
    let result = output_json(&laboratory.run_successfully(&["slab", "show", "live", "--format", "json"]));
    assert!(result["caches"].as_array().unwrap().len() > 20);
    let ticks = result["ticks"].as_u64().unwrap();
    assert!(ticks >= 2, "{ticks}");
    // Only changes were told, and every tick has every cache.
    assert!(result["rows"]["read"].as_u64().unwrap() > 20 * ticks, "{}", result["rows"]);
    let growth = output_json(
        &laboratory.run_successfully(&["slab", "timeline", "live", "--growth", "--format", "json"]),
    );
    let manifest = fs::read(laboratory.only_run().join("run.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let began = manifest["anchor"]["monotonic"].as_u64().unwrap();
    let command_began = growth["phases"][0]["start"].as_u64().unwrap();
    assert!(command_began - began >= 200_000_000, "the system rests before the command");
    laboratory.run_successfully(&["report", "live", "-o", "r.html"]);
    let report = fs::read_to_string(laboratory.path("r.html")).unwrap();
    assert!(report.contains("<section id=\"slab\""), "the report has a section for it");
    let (_, section) = report.split_once("<section id=\"slab\"").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    // Its pictures, none of which is of --method notebook.
    let labels = section.split("role=\"img\" aria-label=\"").skip(1);
    let titles: Vec<&str> = labels.map(|label| label.split(". ").next().unwrap()).collect();
    insta::assert_snapshot!(titles.join("\n"), @"
    Slab memory by cache
    Slab memory that holds no object: all caches
    Slab memory that holds no object, by cache
    Growth of slab memory by cache
    Slab memory by efficiency
    ");
}

#[test]
fn a_recording_whose_command_failed_says_so_root() {
    let name = "a_recording_whose_command_failed_says_so_root";
    if !is_root() {
        return skip_test(name, "/proc/slabinfo needs root");
    }
    let laboratory = Sandbox::new();
    laboratory.run_successfully(&[
        "slab",
        "record",
        "--quiet-time",
        "0s",
        "--every",
        "50ms",
        "--label",
        "live",
        "--",
        "sleep",
        "1",
    ]);
    // Long enough for readings on a machine that gives perflab little time.
    let failed = laboratory.run(&[
        "slab",
        "record",
        "--quiet-time",
        "0s",
        "--every",
        "50ms",
        "--",
        "sh",
        "-c",
        "sleep 1; exit 3",
    ]);
    assert_eq!(failed.code, Some(4), "{}", failed.err);
    for verb in ["show", "timeline", "histogram", "what-if"] {
        let said = laboratory.run_successfully(&["slab", verb, "@latest"]);
        let wording = said.err_wording_of("--output");
        insta::allow_duplicates!(
            insta::assert_snapshot!(wording, @"warning: N of N iterations of run RUN did not end well (slot N: exited with code N, without output); `perflab show RUN --output N` prints its output")
        );
        let said = laboratory.run_successfully(&["slab", verb, "live"]).err;
        assert!(!said.contains("--output"), "{verb}: {said}");
    }
}

#[test]
fn a_recording_prints_one_document_of_json_root() {
    let name = "a_recording_prints_one_document_of_json_root";
    if !is_root() {
        return skip_test(name, "/proc/slabinfo needs root");
    }
    let laboratory = Sandbox::new();
    let said = laboratory.run_successfully(&[
        "slab",
        "record",
        "--quiet-time",
        "0s",
        "--every",
        "50ms",
        "--format",
        "json",
        "--",
        "sleep",
        "0.3",
    ]);
    let result = output_json(&said);
    let bytes = result["growth"]["total"]["peak_bytes"].as_u64().unwrap();
    assert!(bytes > 0 && result["show"]["caches"].as_array().unwrap().len() > 20);
}

#[test]
fn the_levels_of_a_factor_are_compared_by_their_slabs_root() {
    let name = "the_levels_of_a_factor_are_compared_by_their_slabs_root";
    if !is_root() {
        return skip_test(name, "/proc/slabinfo needs root");
    }
    let laboratory = Sandbox::new();
    laboratory.write_workload("rest", "", "echo speed 1; sleep 0.1");
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 3, warmup = 0 }\nmonitors = { slabinfo = \"20ms\" }\n[workload.rest]\n\
         [factor.nothing]\nkind = \"environment\"\nlevels = [\"a\", \"b\"]",
    );
    laboratory.run_successfully(&["run", &study, "--label", "levels", "--quiet", "--no-report"]);
    let arguments = ["slab", "compare", "levels", "--by", "nothing", "--format", "json"];
    let result = output_json(&laboratory.run_successfully(&arguments));
    let all = &result["caches"][0];
    assert_eq!((&all["cache"], &all["candidate_name"]), (&"all caches".into(), &"b".into()));
    assert_eq!(all["mean"]["baseline"]["n"], 3, "{all}");
    assert_eq!(all["mean"]["candidate"]["n"], 3);
    for wrong in [&["slab", "compare", "levels", "--by", "nothin"][..], &["slab", "compare", "levels"]] {
        assert_eq!(laboratory.run(wrong).code, Some(2));
    }
}

#[test]
fn control_c_is_how_a_recording_ends_root() {
    let name = "control_c_is_how_a_recording_ends_root";
    if !is_root() {
        return skip_test(name, "/proc/slabinfo needs root");
    }
    let laboratory = Sandbox::new();
    let mut command = laboratory.command(&["slab", "record", "--label", "open"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let journal = || {
        let runs = fs::read_dir(laboratory.path("archive/runs")).into_iter().flatten().flatten();
        runs.filter_map(|run| fs::read_to_string(run.path().join("journal.jsonl")).ok()).collect::<String>()
    };
    for _ in 0..1500 {
        let told = journal();
        if told.contains("iteration-began") && told.contains("\"rows\":{\"monitor\":\"slabinfo\"") {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = to_command_output(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    laboratory.run_successfully(&["slab", "show", "open"]);
}

#[test]
fn top_is_a_table_in_a_pipe_and_a_screen_on_a_terminal_root() {
    let name = "top_is_a_table_in_a_pipe_and_a_screen_on_a_terminal_root";
    if !is_root() {
        return skip_test(name, "/proc/slabinfo needs root");
    }
    let laboratory = Sandbox::new();
    let csv = laboratory.run_successfully(&["slab", "top", "--format", "csv"]);
    assert!(csv.out.starts_with("cache,slab,wasted,") && csv.out.lines().count() > 20, "{}", csv.out);
    if Command::new("script").arg("--version").output().is_err() {
        return skip_test(name, "script (bsdutils), which gives a terminal, is not installed");
    }
    let screen = type_on_terminal(&laboratory, "slab top --every 100ms", "g/kmalloc\rq");
    assert!(screen.contains("\u{1b}[?1049h"), "the screen is taken");
    let (_, given_back) = screen.rsplit_once("\u{1b}[?1049l").expect("the screen is given back");
    assert!(screen.rfind("\u{1b}[?25h") > screen.rfind("\u{1b}[?25l"), "and its cursor: {given_back:?}");
    assert!(screen.contains("efficiency") && screen.contains("kmalloc"), "{screen}");
}

/// What a terminal is told, while keys are pressed one by one.
fn type_on_terminal(laboratory: &Sandbox, arguments: &str, keys: &str) -> String {
    let line = format!("stty rows 30 cols 120; exec {} {arguments}", env!("CARGO_BIN_EXE_perflab"));
    let mut child = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(laboratory.home.path())
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    for key in keys.chars() {
        write!(stdin, "{key}").unwrap();
        stdin.flush().unwrap();
        std::thread::sleep(Duration::from_millis(150));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
