//! `price`: what one more microsecond in a system call costs, where somebody waits for it and where nobody does.

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::laboratory::{Sandbox, command_as_nobody, is_root, skip_test};

/// A system call that nothing else makes here, so often: signal 0 does nothing.
fn signals(count: u32) -> String {
    format!("i=0; while [ $i -lt {count} ]; do kill -0 $$; i=$((i+1)); done")
}

/// What a price list lacks is measured, and the list is printed.
#[test]
fn a_price_list_that_was_cut_is_gone_on_with_as_one() {
    let laboratory = Sandbox::new();
    let mut command = laboratory.command(&[
        "price",
        "--dose",
        "environment:PAUSE=0.01,0.03,0.06",
        "--iterations",
        "8",
        "--quiet",
        "--",
        "sh",
        "-c",
        "sleep $PAUSE",
    ]);
    let mut cut = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    crate::interrupted::wait_for_condition(|| crate::interrupted::count_samples(&laboratory) > 50);
    crate::interrupted::send_signal(&cut, rustix::process::Signal::INT);
    assert_eq!(cut.wait().unwrap().code(), Some(4));
    let found = laboratory.run_json(&["resume", "--quiet"]);
    let row = row(&found, "PAUSE");
    assert_eq!((&row["blocks"], &row["metric"]), (&8.into(), &"time".into()), "{found:#}");
    laboratory.run_successfully(&["report", "@latest", "-o", "prices.html"]);
    let page = fs::read_to_string(laboratory.path("prices.html")).unwrap();
    assert!(page.contains("<section id=\"prices\""));
}

/// Twelve blocks have an interval of 99.9 %, which a test may rely on.
const SURE: [&str; 6] = ["--iterations", "12", "--confidence", "99.9%", "--format", "json"];

fn price_json(laboratory: &Sandbox, dose: &[&str], command: &str) -> Value {
    let doses = dose.iter().flat_map(|dose| ["--dose", *dose]);
    let arguments: Vec<&str> =
        ["price"].into_iter().chain(doses).chain(SURE).chain(["--quiet", "--", command]).collect();
    let said = laboratory.run_successfully(&arguments);
    serde_json::from_str(&said.out).unwrap()
}

fn row<'a>(found: &'a Value, factor: &str) -> &'a Value {
    found["rows"].as_array().unwrap().iter().find(|row| row["factor"] == factor).unwrap()
}

#[test]
fn a_call_that_is_waited_for_costs_as_often_as_it_is_made() {
    let laboratory = Sandbox::new();
    // Beside other tests a run may be too disturbed to say so surely.
    let measure = || {
        let found =
            price_json(&laboratory, &["syscall:kill=0us,2ms,5ms", "syscall:link=0us,5ms"], &signals(60));
        (row(&found, "kill")["verdict"] == "priced").then_some(found)
    };
    let found = (0..3).find_map(|_| measure()).expect("it had no price each time");
    let kill = row(&found, "kill");
    assert_eq!(kill["calls"].as_f64(), Some(60.0));
    assert_eq!(kill["blocks"], 12);
    // The delays as taken are those that were asked for, or longer.
    let numbers = |key: &str| -> Vec<f64> {
        kill[key].as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    };
    assert!(numbers("taken").iter().zip(numbers("asked")).all(|(taken, asked)| *taken >= asked), "{kill:#}");
    let waited = &kill["waited"];
    let (low, high) = (waited["low"].as_f64().unwrap(), waited["high"].as_f64().unwrap());
    assert!(low <= 1.1 && high >= 0.9, "all of them are waited for: {kill:#}");
    assert_eq!(row(&found, "link")["verdict"], "never-called", "{found:#}");
    // The run is as any other: its list can be had again, of any of its metrics.
    let again = laboratory.run_json(&["price", "--by", "kill", "--metric", "kill-delay"]);
    assert_eq!(again["rows"][0]["metric"], "kill-delay", "{again:#}");
    let csv = laboratory.run_successfully(&["price", "--format", "csv"]).out;
    assert_eq!(csv.lines().count(), 3, "{csv}");
    // One dose at a time: the first levels, two of one and one of the other.
    let run = fs::read_dir(laboratory.path("archive/runs")).unwrap().next().unwrap().unwrap().path();
    let manifest: Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
    assert_eq!(manifest["plan"]["cases"].as_array().unwrap().len(), 4);
}

#[test]
fn a_call_that_nobody_waits_for_has_no_price() {
    let laboratory = Sandbox::new();
    // In the background, beside something that takes much longer.
    let command = format!("({}) & sleep 0.15; wait", signals(20));
    let found = price_json(&laboratory, &["syscall:kill=0us,200us,500us"], &command);
    let kill = row(&found, "kill");
    assert_eq!(kill["calls"].as_f64(), Some(20.0), "{found:#}");
    assert_ne!(kill["verdict"], "priced", "{found:#}");
}

#[test]
fn any_number_that_a_run_varied_has_a_price() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "sleeps.toml",
        "run = { iterations = 8, warmup = 0 }\n[workload.sleeps]\nshell = \"sh\"\ncommand = \"sleep $LONG\"\n\
         [factor.long]\nkind = \"environment\"\nkey = \"LONG\"\nlevels = [\"0.01\", \"0.11\", \"0.21\"]\n\
         [factor.word]\nkind = \"environment\"\nlevels = [\"a\", \"b\"]\n",
    );
    laboratory.run_successfully(&["run", &study, "--quiet", "--no-report"]);
    let found = laboratory.run_json(&["price"]);
    // Under each level of the other factor.
    assert_eq!(found["rows"].as_array().unwrap().len(), 2, "{found:#}");
    for row in found["rows"].as_array().unwrap() {
        assert_eq!((&row["factor"], &row["verdict"]), (&"long".into(), &"priced".into()), "{found:#}");
        let slope = row["slope"]["value"].as_f64().unwrap();
        assert!((slope - 1.0).abs() < 0.2, "a second more is a second more: {found:#}");
    }
    assert_eq!(found["left_out"].as_array().unwrap().len(), 1, "{found:#}");
    // What did not take turns has none.
    let sequential = ["run", &study, "--set", "word=a", "--iterations", "6", "--quiet", "--no-report"];
    let text = fs::read_to_string(laboratory.path("sleeps.toml")).unwrap();
    fs::write(
        laboratory.path("sleeps.toml"),
        text.replace("iterations = 8,", "iterations = 8, order = \"sequential\","),
    )
    .unwrap();
    laboratory.run_successfully(&sequential);
    assert_eq!(laboratory.run(&["price"]).code, Some(2));
}

#[test]
fn what_is_no_dose_is_refused_before_anything_runs() {
    let laboratory = Sandbox::new();
    for (dose, command) in [
        ("syscall:fsnyc=0us,20us", "true"),
        ("syscall:fsync=0us,20", "true"),
        ("syscall:fsync=0us,20min", "true"),
        ("syscall:fsync=0us", "true"),
        ("environment:N=one,two", "true"),
        ("environment:N=4k,8k,1M", "true"),
        ("environment:N=10,10.0", "true"),
        ("syscal:fsync=0us,20us", "true"),
        ("syscall:fsync=0us,20us", "no-such-program"),
    ] {
        let refused = laboratory.run(&["price", "--dose", dose, "--", command]);
        assert!(matches!(refused.code, Some(2 | 3)), "{dose}: {:?} {}", refused.code, refused.err);
    }
    assert_eq!(laboratory.run(&["price", "--", "true"]).code, Some(2));
    assert_eq!(laboratory.run(&["price", "--dose", "syscall:kill=0us,1us"]).code, Some(2));
    assert_eq!(laboratory.run(&["price", "nothing"]).code, Some(2));
    let two =
        ["price", "--dose", "syscall:kill=0us,1us", "--dose", "other=syscall:kill=0us,2us", "--", "true"];
    assert_eq!(laboratory.run(&two).code, Some(2));
    assert!(!laboratory.path("archive/runs").exists());
    laboratory.run_successfully(&["run", "--iterations", "1", "--quiet", "--no-report", "--", "true"]);
    let told = laboratory.run(&["price"]);
    assert_eq!(told.code, Some(2), "nothing was varied");
}

/// Blocks of other programs, or under other doses, mean nothing together.
#[test]
fn runs_of_one_label_that_are_no_repetitions_have_no_price_together() {
    let laboratory = Sandbox::new();
    let measure = |label: &str, dose: &str, command: &str| {
        let dose = format!("environment:N={dose}");
        laboratory.run_successfully(&[
            "price",
            "--quiet",
            "--label",
            label,
            "--iterations",
            "2",
            "--dose",
            &dose,
            "--",
            "sh",
            "-c",
            command,
        ]);
    };
    measure("programs", "1,2", "true");
    measure("programs", "1,2", "exit 0");
    measure("doses", "1,2", "true");
    measure("doses", "1,3", "true");
    measure("same", "1,2", "true");
    measure("same", "1,2", "true");
    let codes = ["programs", "doses", "same"].map(|label| laboratory.run(&["price", label]).code);
    assert_eq!(codes, [Some(2), Some(2), Some(0)]);
}

/// Who is asked about already cannot be asked about by another: a workload of a delayed workload is told so.
#[test]
fn where_seccomp_is_taken_it_says_so() {
    let laboratory = Sandbox::new();
    let inner = "perflab --archive inner price --dose syscall:kill=0us,1us -- true; echo $? > code; true";
    let like = laboratory.command(&["list"]);
    let folder = std::path::Path::new(like.get_program()).parent().unwrap().display().to_string();
    let mut outer = laboratory.command(&[
        "price",
        "--dose",
        "syscall:link=0us,1us",
        "--iterations",
        "1",
        "--quiet",
        "--",
        inner,
    ]);
    outer.env("PATH", format!("{folder}:{}", std::env::var("PATH").unwrap()));
    assert!(outer.output().unwrap().status.success());
    assert_eq!(fs::read_to_string(laboratory.path("code")).unwrap().trim(), "3");
}

#[test]
fn without_root_it_works_as_well() {
    if !is_root() {
        return skip_test("without_root_it_works_as_well", "every other test shows it");
    }
    let (folder, mut command) = command_as_nobody();
    command.current_dir(folder.path());
    let arguments = ["price", "--dose", "syscall:kill=0us,2ms,5ms", "--quiet", "--format", "json", "--"];
    let output = command.args(arguments).arg(signals(40)).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(row(&found, "kill")["verdict"], "priced", "{found:#}");
}

/// Nobody answers any more for a call that waits: its process is ended, and what was measured before can be read.
#[test]
fn a_killed_perflab_leaves_nobody_waiting() {
    let laboratory = Sandbox::new();
    let command = "echo $$ > waiting; kill -0 $$; echo late > late; sleep 60";
    let mut perflab = laboratory
        .command(&["price", "--dose", "syscall:kill=9s,10s", "--iterations", "1", "--", command])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let pid = loop {
        let read = fs::read_to_string(laboratory.path("waiting")).unwrap_or_default();
        if let Ok(pid) = read.trim().parse::<u32>() {
            break pid;
        }
        assert!(Instant::now() < deadline, "it never began");
        sleep(Duration::from_millis(10));
    };
    perflab.kill().unwrap();
    perflab.wait().unwrap();
    let is_living = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    };
    while is_living() {
        assert!(Instant::now() < deadline, "process {pid} is left");
        sleep(Duration::from_millis(10));
    }
    assert_eq!(laboratory.run(&["price"]).code, Some(2), "no iteration counts");
}

#[test]
fn help_lists_doses_and_the_schema_is_the_documents() {
    let laboratory = Sandbox::new();
    let list = laboratory.run_json(&["price", "--list"]);
    let doses: Vec<&str> = list.as_array().unwrap().iter().filter_map(|one| one["dose"].as_str()).collect();
    assert!(doses.iter().any(|dose| dose.starts_with("syscall:")), "{doses:?}");
    let schema: Value =
        serde_json::from_str(&laboratory.run_successfully(&["price", "--schema"]).out).unwrap();
    assert!(schema["properties"]["rows"].is_object(), "{schema:#}");
}
