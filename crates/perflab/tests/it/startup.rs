//! `perflab startup`: what counts as started, what is measured, and what happens where nothing starts.

use serde_json::Value;

use crate::image::Image;
use crate::laboratory::{Laboratory, is_root, skip};

/// Every sign, seen on a program that gives it and goes on: it is ended then.
#[test]
fn every_sign_of_a_start_is_seen() {
    let laboratory = Laboratory::new();
    let place = laboratory.home.path().display().to_string();
    let python = |code: &str| format!("import socket, time, os\n{code}\ntime.sleep(600)");
    let signs = [
        ("line:ready", python("print('getting ready', flush=True)")),
        ("line", python("print('x', flush=True)")),
        (&*format!("file:{place}/made"), python(&format!("open('{place}/made', 'w')"))),
        (
            "notify",
            python(
                "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'READY=1', os.environ['NOTIFY_SOCKET'])",
            ),
        ),
        ("listen:47831", python("s = socket.create_server(('127.0.0.1', 47831))")),
        (
            &*format!("listen:{place}/socket"),
            python(&format!("s = socket.socket(socket.AF_UNIX); s.bind('{place}/socket'); s.listen()")),
        ),
        ("exit", "print('over')".into()),
    ];
    if !std::process::Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|said| said.status.success())
    {
        return skip("every_sign_of_a_start_is_seen", "python3 is missing");
    }
    for (sign, code) in signs {
        let said = laboratory.good(&[
            "start-once",
            "--caches",
            "warm",
            "--prefetch",
            "none",
            "--until",
            sign,
            "--limit",
            "60s",
            "--",
            "python3",
            "-c",
            &code,
        ]);
        let document: Value = serde_json::from_str(&said.out).unwrap();
        let wall = document["wall"].as_f64().unwrap();
        assert!(wall > 0.0 && wall < 60.0, "{sign}: {document}");
        assert_eq!(document["prefetch"], 0.0);
        assert!(document["major-faults"].is_u64(), "{document}");
    }
}

#[test]
fn a_program_that_never_starts_is_reported_with_its_output() {
    let laboratory = Laboratory::new();
    let once = |until: &str, limit: &str, script: &str| {
        laboratory.run(&[
            "start-once",
            "--caches",
            "warm",
            "--prefetch",
            "none",
            "--until",
            until,
            "--limit",
            limit,
            "--",
            "sh",
            "-c",
            script,
        ])
    };
    let said = once("line:ready", "60s", "echo no such library; exit 3");
    assert!(said.code == Some(4), "{}", said.err);
    assert!(
        said.err.contains("no such library") && said.err.contains("before a line with `ready`"),
        "{}",
        said.err
    );
    let said = once("exit", "60s", "exit 3");
    assert!(said.code == Some(4) && said.err.contains("it ended with exit status: 3"), "{}", said.err);
    let said = once("notify", "300ms", "sleep 600");
    assert!(said.code == Some(4) && said.err.contains("READY=1 did not come within"), "{}", said.err);
    let said = laboratory.run(&["startup", "--until", "window", "--", "true"]);
    assert!(said.code == Some(2) && said.err.contains("listen:PORT"), "{}", said.err);
    let said = laboratory.run(&["startup", "--", "/no/such/program"]);
    assert!(said.code == Some(2) && said.err.contains("there is no program"), "{}", said.err);
}

/// The whole way: learnt, each way measured in blocks, compared. Judged by requests, never by time.
#[test]
fn reading_ahead_leaves_fewer_faults_to_the_program() {
    let name = "reading_ahead_leaves_fewer_faults_to_the_program";
    if !is_root() {
        return skip(name, "dropping caches needs root");
    }
    let Some(image) = Image::new(name) else { return };
    let laboratory = Laboratory::new();
    (0..30).for_each(|file| drop(image.write(&format!("lib/{file}"), 8)));
    let program = image.place().join("start");
    let script = format!("#!/bin/sh\ncat {}/lib/* > /dev/null\n", image.place().display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = program.display().to_string();
    let output = laboratory
        .command(&[
            "startup",
            "--prefetch",
            "none,sync,async,staged",
            "--runs",
            "3",
            "--aside",
            "1",
            "--label",
            "s",
            "--",
            &program,
        ])
        .env("PERFLAB_PREFETCH", laboratory.path("store"))
        .output()
        .unwrap();
    let said = crate::laboratory::said(output);
    assert!(said.code == Some(0) && said.err.contains("learnt:"), "{}\n{}", said.out, said.err);
    let compared = laboratory.good(&["compare", "s", "--by", "prefetch", "--format", "json"]).out;
    assert!(compared.contains("staged") && compared.contains("requests"), "{compared}");
    let samples = laboratory.good(&["export", "s", "--to", "csv"]).out;
    let cold = samples.lines().filter(|line| line.contains("resident-before")).count();
    assert_eq!(cold, 12, "four ways, three starts each: {samples}");
    let read = samples.lines().filter(|line| line.contains(",read,")).count();
    assert_eq!(read, 12, "{samples}");
}
