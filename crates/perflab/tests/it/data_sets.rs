//! `[data]`: made once for those who share it, restored before each iteration, and made anew where it was damaged.

use std::fs;
use std::process::Command;

use crate::laboratory::{Sandbox, skip_test};

/// Each making leaves a line beside the laboratory, and the workload spoils its copy.
const WORKLOAD: &str = r#"
[parameter.size]
type = "integer"
default = 1
about = "what the data depend on"
[parameter.depth]
type = "integer"
default = 1
about = "what they do not depend on"
[parameter.damage]
type = "boolean"
default = false
about = "whether an iteration writes where all begin"
[data]
argv = ["sh", "-c", "mkdir set; echo $1 > set/size; echo made >> LOG", "data", "{{ size }}"]
once = "ONCE"
[needs]
scratch = true
"#;

const SCRIPT: &str = "[ $(cat {{ scratch }}/set/size) = {{ size }} ] && echo speed 1 && echo spoilt > {{ scratch }}/set/size && \
                      if [ {{ 'yes' if damage else 'no' }} = yes ]; then echo spoilt > {{ data }}/set/size; fi";

/// How often the data of a study with this matrix are made, and what was warned of.
fn count_makings(once: &str, matrix: &str) -> (usize, Vec<String>) {
    let laboratory = Sandbox::new();
    let log = laboratory.path("makings");
    let tables = WORKLOAD.replace("ONCE", once).replace("LOG", &log.display().to_string());
    laboratory.write_workload("sized", &tables, SCRIPT);
    let text = format!("[run]\niterations = 2\nwarmup = 0\n[workload.sized]\nmatrix = {matrix}\n");
    let study = laboratory.write_study("s.toml", &text);
    laboratory.run_successfully(&["run", &study, "--no-report", "--quiet"]);
    let journal = fs::read_to_string(laboratory.only_run().join("journal.jsonl")).unwrap();
    let events = journal.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let warnings = events.filter_map(|event| Some(event["what"]["warning"]["message"].as_str()?.to_owned()));
    (fs::read_to_string(&log).unwrap().lines().count(), warnings.collect())
}

#[test]
fn data_are_made_once_for_all_that_share_them() {
    assert_eq!(count_makings("disk", "{ depth = [1, 2] }"), (1, Vec::new()));
    assert_eq!(count_makings("disk", "{ size = [1, 2] }"), (2, Vec::new()));
    assert_eq!(count_makings("case", "{ depth = [1, 2] }"), (2, Vec::new()));
}

/// The command runs where its data are restored.
#[test]
fn a_command_of_a_study_has_data_too() {
    let laboratory = Sandbox::new();
    let text = "[run]\niterations = 2\nwarmup = 0\n[workload.w]\ncommand = \"rm set/a && ! [ -e $LEFT ] && cat {{ data }}/{{ size }}\"\n\
                environment = { LEFT = \"b\" }\nmatrix = { size = [1, 2] }\n\
                [workload.w.data]\ncommand = \"mkdir set; touch set/a {{ size }} b\"\nonce = \"case\"\nrestore = [\"set\"]\n";
    let study = laboratory.write_study("s.toml", text);
    laboratory.run_successfully(&["run", &study, "--no-report", "--quiet"]);
    let refusal = |data: &str| {
        let text = format!("[workload.w]\ncommand = 'true'\n[workload.w.data]\n{data}\n");
        let study = laboratory.write_study("s.toml", &text);
        let said = laboratory.run(&["study", "check", &study]);
        assert_eq!(said.code, Some(2));
        said.stable_err()
    };
    insta::assert_snapshot!(refusal("command = ''"), @"error: /tmp/.TMP/s.toml:5:1: `workload.w.data.command`: runs nothing; name a program and its arguments");
    insta::assert_snapshot!(refusal("command = 'touch {{ scratch }}/a'"), @"error: /tmp/.TMP/s.toml:5:1: `workload.w.data.command[2]`: `scratch` is no parameter and no name of the host; known here: cpus, cores, threads_per_core, sockets, llcs, llc_size, numa_nodes, memory, available, swap, page_size, huge_page, kept, perflab, target, targets, data");
    insta::assert_snapshot!(refusal("command = 'touch a'\nrestore = ['/a']"), @"error: /tmp/.TMP/s.toml:6:12: `workload.w.data.restore[0]`: `/a` is no path below {{ data }}");
    insta::assert_snapshot!(refusal("command = 'touch a'\nonce = 'never'"), @"error: /tmp/.TMP/s.toml:6:8: `workload.w.data.once`: the value `never` is not known here; known here: disk, case");
}

#[test]
fn what_an_iteration_damaged_is_made_anew_and_told() {
    let (makings, warnings) = count_makings("disk", "{ damage = [true] }");
    assert_eq!(makings, 2);
    insta::assert_snapshot!(warnings.join("\n"), @"sized damage=true: its data were made anew: set/size was not as it was made");
}

#[test]
fn data_that_cannot_be_made_are_why_an_iteration_failed() {
    let laboratory = Sandbox::new();
    let outcome = |script: &str| {
        let tables = format!("[data]\nargv = [\"sh\", \"-c\", '''{script}''']\n[needs]\nscratch = true\n");
        laboratory.write_workload("w", &tables, "echo speed 1");
        let study = laboratory.write_study("s.toml", "[run]\niterations = 1\nwarmup = 0\n[workload.w]\n");
        assert_eq!(laboratory.run(&["run", &study, "--no-report", "--quiet"]).code, Some(4));
        let listed = laboratory.run_json(&["show", "--iterations"]);
        listed[0]["outcome"].as_str().unwrap().to_owned()
    };
    insta::assert_snapshot!(outcome("echo half > half; echo no room >&2; exit 1"), @"failed: `data` exited with code 1: no room");
    insta::assert_snapshot!(outcome("true").split(" in /").next().unwrap(), @"failed: `data` made nothing");
}

#[test]
fn mistakes_of_data_have_their_place() {
    let laboratory = Sandbox::new();
    let refusal = |tables: &str| {
        laboratory.write_workload("w", tables, "echo speed 1");
        let said = laboratory.run(&["workload", "show", "w"]);
        assert_eq!(said.code, Some(2));
        said.stable_err()
    };
    insta::assert_snapshot!(refusal("[data]\nargv = ['touch', 'a']"), @"error: /tmp/.TMP/workloads/w.toml:6:2: `data`: has no directory to be restored to; write `scratch = true` into `[needs]`");
    insta::assert_snapshot!(refusal("[data]\nargv = ['touch', '{{ scratch }}/a']\nrestore = ['../a', '']\n[needs]\nscratch = true"), @r#"
error: /tmp/.TMP/workloads/w.toml:8:12: `data.restore[0]`: `../a` is no path below {{ data }}
error: /tmp/.TMP/workloads/w.toml:8:20: `data.restore[1]`: `` is no path below {{ data }}
error: /tmp/.TMP/workloads/w.toml:7:18: `data.argv[1]`: `scratch` is no parameter and no name of the host; known here: cpus, cores, threads_per_core, sockets, llcs, llc_size, numa_nodes, memory, available, swap, page_size, huge_page, kept, perflab, target, targets, data
"#);
    insta::assert_snapshot!(refusal("[data]\nargv = []\nonce = 'iteration'\n[needs]\nscratch = true"), @"error: /tmp/.TMP/workloads/w.toml:8:8: `data.once`: the value `iteration` is not known here; known here: disk, case");
    insta::assert_snapshot!(refusal("[environment]\nA = '{{ data }}'"), @"error: /tmp/.TMP/workloads/w.toml:7:1: `environment.A`: `data` is no parameter and no name of the host; known here: cpus, cores, threads_per_core, sockets, llcs, llc_size, numa_nodes, memory, available, swap, page_size, huge_page, scratch, kept, perflab, free_port, target, targets");
}

/// The database is made once for both cases, and each iteration has a server of its own.
#[test]
fn a_database_is_measured_on_a_server_of_its_own() {
    if Command::new("pgbench").arg("--version").output().is_err() {
        return skip_test("pgbench", "postgresql is not installed");
    }
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "[run]\niterations = 2\nwarmup = 0\n[workload.pgbench]\nparameters = { scale = 1, time = \"1s\", fsync = false }\n\
         matrix = { mode = [\"select-only\", \"simple-update\"] }\n",
    );
    laboratory.run_successfully(&["run", &study, "--no-report", "--quiet"]);
    let listed = laboratory.run_json(&["show", "--iterations"]);
    let outcomes: Vec<&str> =
        listed.as_array().unwrap().iter().filter_map(|row| row["outcome"].as_str()).collect();
    assert_eq!(outcomes, ["ok"; 4]);
    let left = Command::new("pgrep").args(["-f", "^postgres -D .*/iteration-"]).output().unwrap();
    assert!(left.stdout.is_empty(), "{}", String::from_utf8_lossy(&left.stdout));
}

/// Two files of a source that is no kernel's: each iteration compiles both.
#[test]
fn a_source_is_unpacked_once_and_compiled_in_each_iteration() {
    if Command::new("make").arg("--version").output().is_err() {
        return skip_test("build", "make is not installed");
    }
    let laboratory = Sandbox::new();
    let source = laboratory.path("hello-1.0");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("Makefile"), "all: a.o b.o\n").unwrap();
    for name in ["a", "b"] {
        fs::write(source.join(format!("{name}.c")), format!("int {name}(void) {{ return 1; }}\n")).unwrap();
    }
    let archive = laboratory.path("hello.tar");
    let mut tar = Command::new("tar");
    tar.arg("-cf").arg(&archive).arg("-C").arg(laboratory.path("")).arg("hello-1.0");
    assert!(tar.status().unwrap().success());
    let text = format!(
        "[run]\niterations = 2\nwarmup = 0\n[workload.build]\nparameters = {{ source = \"{}\", config = \"\", targets = \"all\" }}\n",
        archive.display()
    );
    let study = laboratory.write_study("s.toml", &text);
    laboratory.run_successfully(&["run", &study, "--no-report", "--quiet"]);
    let exported = laboratory.run_successfully(&["export", "--to", "csv", "--output", "-"]).out;
    let rows: Vec<Vec<&str>> = exported.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|title| *title == name).unwrap();
    let [name, value] = ["metric", "value"].map(column);
    let objects: Vec<f64> = rows[1..]
        .iter()
        .filter(|row| row[name] == "objects")
        .map(|row| row[value].parse().unwrap())
        .collect();
    assert_eq!(objects, [2.0, 2.0]);
    let missing = text.replace("hello.tar", "none.tar");
    let study = laboratory.write_study("s.toml", &missing);
    assert_eq!(laboratory.run(&["run", &study, "--no-report", "--quiet"]).code, Some(4));
}
