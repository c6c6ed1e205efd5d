//! `perflab startup`: what counts as started, what is measured, and what happens where nothing starts.

use serde_json::Value;

use crate::caches::CachesLock;
use crate::image::MountedImage;
use crate::laboratory::{Sandbox, is_root, skip_test};
use crate::taken::{
    EvictedPages, MappingProcess, repeat_until_undisturbed, repeat_until_undisturbed_by_others,
};

/// Every sign, seen on a program that gives it and goes on: it is ended then.
#[test]
fn every_sign_of_a_start_is_seen() {
    let laboratory = Sandbox::new();
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
        return skip_test("every_sign_of_a_start_is_seen", "python3 is missing");
    }
    for (sign, code) in signs {
        let said = laboratory.run_successfully(&[
            "start-once",
            "--caches",
            "warm",
            "--prefetch",
            "none",
            "--ready-when",
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
    let laboratory = Sandbox::new();
    let once = |until: &str, limit: &str, script: &str| {
        laboratory.run(&[
            "start-once",
            "--caches",
            "warm",
            "--prefetch",
            "none",
            "--ready-when",
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
    insta::assert_snapshot!("a_program_that_never_starts_is_reported_with_its_output_1", said.stable_err());
    let said = once("exit", "60s", "exit 3");
    assert_eq!(said.code, Some(4), "{}", said.err);
    insta::assert_snapshot!("a_program_that_never_starts_is_reported_with_its_output_2", said.stable_err());
    let own = laboratory.path("own-session").display().to_string();
    let late = format!(
        "setsid sh -c '> {own}; sleep 0.05; echo late words' & until [ -e {own} ]; do :; done; exit 3"
    );
    let said = once("exit", "60s", &late);
    assert_eq!(said.code, Some(4), "{}", said.err);
    insta::assert_snapshot!("a_program_that_never_starts_is_reported_with_its_output_3", said.stable_err());
    let said = once("notify", "300ms", "sleep 600");
    assert_eq!(said.code, Some(4), "{}", said.err);
    insta::assert_snapshot!("a_program_that_never_starts_is_reported_with_its_output_4", said.stable_err());
    let wrong = [["--ready-when", "screen"], ["--reader", "true"], ["--prefetch", "none,reader"]];
    let errors = wrong.map(|arguments| {
        let said = laboratory.run(&[&["startup"], &arguments[..], &["--", "true"]].concat());
        assert_eq!(said.code, Some(2), "{}", said.err);
        said.stable_err()
    });
    insta::assert_snapshot!(errors.concat(), @"
    error: invalid value 'screen' for '--ready-when <CONDITION>': `screen` does not say when a program counts as started; exit, line, line:TEXT, file:PATH, notify, listen:PORT, listen:PATH, window, window:WxH or window:CLASS do

    For more information, try '--help'.
    error: --reader COMMAND and the mode `reader` in --prefetch go together; as in `--prefetch none,reader --reader 'vmtouch -qt /opt/app'`
    error: --reader COMMAND and the mode `reader` in --prefetch go together; as in `--prefetch none,reader --reader 'vmtouch -qt /opt/app'`
    ");
    let failing = ["--caches", "warm", "--prefetch", "reader", "--reader", "echo no pack; exit 7"];
    let rest = ["--ready-when", "exit", "--limit", "5s", "--", "true"];
    let said = laboratory.run(&[&["start-once"], &failing[..], &rest].concat());
    assert_eq!(said.code, Some(4), "{}", said.err);
    insta::assert_snapshot!("a_program_that_never_starts_is_reported_with_its_output_5", said.stable_err());
    let endless = ["--caches", "warm", "--prefetch", "reader", "--reader", "sleep 600; true"];
    let rest = ["--ready-when", "exit", "--limit", "200ms", "--", "true"];
    let said = laboratory.run(&[&["start-once"], &endless[..], &rest].concat());
    assert_eq!(said.code, Some(4), "{}", said.err);
    insta::assert_snapshot!("a_program_that_never_starts_is_reported_with_its_output_6", said.stable_err());
    let said = laboratory.run(&["startup", "--", "/no/such/program"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!("a_program_that_never_starts_is_reported_with_its_output_7", said.stable_err());
}

/// One line says what was asked; formats are what they say.
#[test]
fn a_startup_answers_in_one_line_and_in_the_format_that_is_wanted() {
    let laboratory = Sandbox::new();
    // What another test has open at the moment could not be read ahead.
    let program = laboratory.path("program");
    std::fs::copy("/bin/true", &program).unwrap();
    let program = program.to_str().unwrap();
    let startup = |format: &str, prefetch: &str| {
        let ways: &[&str] =
            if prefetch == "none" { &[] } else { &["--prefetch", "none,reader", "--reader", "sleep 0.05"] };
        let fixed = ["startup", "--format", format, "--caches", "warm", "--iterations", "6", "--warmup", "0"];
        laboratory.run_successfully(&[&fixed[..], ways, &["--", program]].concat())
    };
    let json = |said: &crate::laboratory::CommandOutput| -> Vec<Value> {
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.out))
    };
    assert!(!json(&startup("json", "none")).is_empty());
    let said = startup("json", "reader");
    let rows = json(&said)[0]["rows"].clone();
    let row =
        |metric: &str| rows.as_array().unwrap().iter().find(|row| row["metric"] == metric).cloned().unwrap();
    assert_eq!(row("wall")["direction"], "lower");
    // How much noise a busy machine adds is its own affair.
    let verdict = row("wall")["verdict"].as_str().unwrap().to_owned();
    assert!(["worse", "unclear"].contains(&verdict.as_str()), "a reader that sleeps: {rows}");
    assert!(said.err.lines().any(|line| line.starts_with("prefetch: reader")), "{}", said.err);
    for fact in ["prefetch", "resident-before"] {
        assert_eq!(row(fact)["direction"], "neither", "{fact} is a fact");
        assert_ne!(row(fact)["verdict"], "worse", "{fact}: {rows}");
    }
    let table = startup("table", "reader");
    assert!(table.out.starts_with("prefetch: reader"), "{}", table.out);
    let csv = startup("csv", "reader").out;
    assert!(csv.lines().all(|line| line.contains(',')), "{csv}");
    let said = laboratory.run(&["startup", "--", "no-such-program"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    // What it is taken for is a matter of this machine's PATH.
    insta::assert_snapshot!(said.err.split("; did you mean `").next().unwrap(), @"error: there is no program `no-such-program`, neither here nor in PATH: give its full path, or install it");
}

/// A daemon that a start left behind would make the next one another.
#[test]
fn what_left_its_process_group_is_ended_with_the_start() {
    let laboratory = Sandbox::new();
    let own = laboratory.path("daemon");
    let daemon =
        format!("setsid sh -c 'echo $$ > {0}; exec sleep 600' & until [ -s {0} ]; do :; done", own.display());
    let script = format!("{daemon}; echo ready; sleep 600");
    let start = [
        "start-once",
        "--caches",
        "warm",
        "--prefetch",
        "none",
        "--ready-when",
        "line:ready",
        "--limit",
        "60s",
    ];
    let said = laboratory.run_successfully(&[&start[..], &["--", "sh", "-c", &script]].concat());
    let daemon = std::fs::read_to_string(&own).unwrap();
    let stat = format!("/proc/{}/stat", daemon.trim());
    // Who has ended may wait for its parent to ask how.
    let lives = std::fs::read_to_string(stat).is_ok_and(|stat| !stat.contains(") Z "));
    let document: Value = serde_json::from_str(&said.out).unwrap();
    if document["cpu"].is_null() {
        assert!(lives, "without a control group nobody knows of it");
        let daemon = daemon.trim().parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
        rustix::process::kill_process(daemon, rustix::process::Signal::KILL).unwrap();
        return skip_test(
            "what_left_its_process_group_is_ended_with_the_start",
            "no control group can be made",
        );
    }
    assert!(!lives && document["cpu"].as_f64() > Some(0.0), "{daemon}: {document}");
}

#[test]
fn a_program_that_dies_while_it_is_learnt_leaves_nothing_behind() {
    let test = "a_program_that_dies_while_it_is_learnt_leaves_nothing_behind";
    if !is_root() {
        return skip_test(test, "tracing needs root");
    }
    let _caches = CachesLock::acquire();
    let laboratory = Sandbox::new();
    let store = laboratory.path("store");
    let command = ["--", "sh", "-c", "echo the library is missing >&2; exit 3"];
    let startup = |prefetch: &str| {
        let arguments =
            ["startup", "--prefetch", prefetch, "--caches", "warm", "--iterations", "1", "--warmup", "0"];
        let mut started = laboratory.command(&[&arguments[..], &command].concat());
        crate::laboratory::to_command_output(started.env("PERFLAB_PREFETCH", &store).output().unwrap())
    };
    let said = startup("none,sync");
    assert_eq!(said.code, Some(4), "{}", said.err);
    insta::assert_snapshot!(
        "a_program_that_dies_while_it_is_learnt_leaves_nothing_behind_1",
        said.stable_err()
    );
    assert!(!store.exists(), "nothing was learnt");
    let said = startup("none");
    assert_eq!(said.code, Some(4), "{}", said.err);
}

/// The whole way: learnt, each way measured in blocks, compared. Judged by requests, never by time.
#[test]
fn reading_ahead_leaves_fewer_faults_to_the_program() {
    let name = "reading_ahead_leaves_fewer_faults_to_the_program";
    if !is_root() {
        return skip_test(name, "dropping caches needs root");
    }
    let Some(image) = MountedImage::new(name) else { return };
    let laboratory = Sandbox::new();
    (0..30).for_each(|file| drop(image.write_pages(&format!("lib/{file}"), 8)));
    let program = image.mount_point().join("start");
    let script = format!("#!/bin/sh\ncat {}/lib/* > /dev/null\n", image.mount_point().display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = program.display().to_string();
    let taken = EvictedPages::by_others(&image.mount_point());
    let reader = format!("cat {}/lib/* | wc -c", image.mount_point().display());
    let output = laboratory
        .command(&[
            "startup",
            "--prefetch",
            "none,sync,async,staged,reader",
            "--reader",
            &reader,
            "--iterations",
            "3",
            "--warmup",
            "1",
            "--label",
            "s",
            "--",
            &program,
        ])
        .env("PERFLAB_PREFETCH", laboratory.path("store"))
        .output()
        .unwrap();
    let said = crate::laboratory::to_command_output(output);
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    let stored = std::fs::read_dir(laboratory.path("store")).unwrap().count();
    assert!(stored > 0, "its start was learnt: {}", said.err);
    let compared = laboratory.run_json(&["compare", "s", "--by", "prefetch"]);
    let rows = compared["rows"].as_array().unwrap();
    let is_of = |row: &Value| row["candidate_name"] == "staged" && row["metric"] == "requests";
    assert!(rows.iter().any(is_of), "{compared:#}");
    let samples = laboratory.run_successfully(&["export", "s", "--to", "csv"]).out;
    let cold = samples.lines().filter(|line| line.contains("resident-before")).count();
    assert_eq!(cold, 15, "five ways, three starts each: {samples}");
    let read = samples.lines().filter(|line| line.contains(",read,")).count();
    assert_eq!(read, 15, "{samples}");
    // What another maker read ahead, its program does not read again.
    let bytes = |way: &str| -> f64 {
        let ours = samples.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let ours = ours.filter(|line| line.contains(&"read") && line.contains(&way));
        ours.map(|line| {
            line[line.iter().position(|cell| *cell == "read").unwrap() + 1].parse::<f64>().unwrap()
        })
        .sum()
    };
    assert!(bytes("reader") < bytes("none") / 2.0 + taken.readable_again_bytes() as f64, "{samples}");
}

/// An X server of the test's own; ended when dropped.
struct TestXServer {
    server: std::process::Child,
    display: String,
}

impl TestXServer {
    fn new(test: &str) -> Option<Self> {
        use std::io::BufRead as _;
        let mut command = std::process::Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "1280x1024x24", "-nolisten", "tcp"]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        let Ok(mut server) = command.spawn() else {
            skip_test(test, "Xvfb is missing (package xvfb)");
            return None;
        };
        let mut number = String::new();
        std::io::BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
        Some(TestXServer { server, display: format!(":{}", number.trim()) })
    }
}

impl Drop for TestXServer {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// One start whose sign is a window.
fn start_until_window(
    display: &str,
    until: &str,
    limit: &str,
    command: &[&str],
) -> crate::laboratory::CommandOutput {
    let start =
        ["start-once", "--caches", "warm", "--prefetch", "none", "--ready-when", until, "--limit", limit];
    let laboratory = Sandbox::new();
    let arguments = [&start[..], &["--"], command].concat();
    let _caches = CachesLock::acquire();
    crate::laboratory::to_command_output(
        laboratory.command(&arguments).env("DISPLAY", display).output().unwrap(),
    )
}

#[test]
fn a_first_window_is_a_start_if_it_is_large_enough_and_of_the_class() {
    let test = "a_first_window_is_a_start_if_it_is_large_enough_and_of_the_class";
    let Some(screen) = TestXServer::new(test) else { return };
    let clock = |geometry| ["xclock", "-geometry", geometry];
    if std::process::Command::new("xclock").arg("-version").output().is_err() {
        return skip_test(test, "xclock is missing (package x11-apps)");
    }
    for (until, command) in [
        ("window", &clock("400x300")[..]),
        ("window:120x120", &clock("130x130")),
        ("window:XClock", &clock("400x300")),
        // The window comes small and grows.
        ("window:xterm", &["xterm", "-geometry", "80x24"]),
    ] {
        let said = start_until_window(&screen.display, until, "60s", command);
        assert_eq!(said.code, Some(0), "{until}: {}", said.err);
        let document: Value = serde_json::from_str(&said.out).unwrap();
        assert!(document["wall"].as_f64().unwrap() > 0.0, "{document}");
    }
    for (until, command, reason) in [
        ("window", &clock("100x100")[..], "a window of at least 300x200 pixels did not come within"),
        ("window:XTerm", &clock("400x300"), "and of class XTerm did not come within"),
    ] {
        let said = start_until_window(&screen.display, until, "1500ms", command);
        assert!(said.code == Some(4) && said.err.contains(reason), "{until}: {}", said.err);
    }
    let said =
        start_until_window(&screen.display, "window", "60s", &["sh", "-c", "echo no display here; exit 7"]);
    assert_eq!(said.code, Some(4), "{}", said.err);
    insta::assert_snapshot!(
        "a_first_window_is_a_start_if_it_is_large_enough_and_of_the_class_1",
        said.stable_err()
    );
}

#[test]
fn without_an_x_server_no_window_is_waited_for() {
    let said = start_until_window(":4711", "window", "60s", &["true"]);
    assert!(said.code == Some(3), "{}", said.err);
    insta::assert_snapshot!("without_an_x_server_no_window_is_waited_for_1", said.stable_err());
}

/// A file that somebody keeps mapped survives the dropping of caches: that is seen, with its name.
#[test]
fn what_stays_in_memory_is_seen_in_every_file_that_the_trace_knows() {
    let test = "what_stays_in_memory_is_seen_in_every_file_that_the_trace_knows";
    let Some(image) = MountedImage::new(test) else { return };
    let laboratory = Sandbox::new();
    let kept = image.write_pages("lib/kept", 1000);
    (0..5).for_each(|file| drop(image.write_pages(&format!("lib/{file}"), 10)));
    let program = image.mount_point().join("start");
    let (place, counts) = (image.mount_point(), laboratory.path("counts"));
    let (place, told) = (place.display(), counts.display());
    let script = format!("cat {place}/lib/* >/dev/null\ncat /proc/sys/kernel/task_delayacct >{told}");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    image.evict_files();
    let (store, program) = (laboratory.path("store").display().to_string(), program.display().to_string());
    laboratory.run_successfully(&["prefetch", "--store", &store, "learn", "--", &program]);
    let setting = || std::fs::read_to_string("/proc/sys/kernel/task_delayacct").unwrap();
    let before = setting();
    let once = || {
        let start =
            ["start-once", "--caches", "3", "--prefetch", "none", "--ready-when", "exit", "--limit", "60s"];
        let said = laboratory.run_successfully(&[&start[..], &["--store", &store, "--", &program]].concat());
        let document: Value = serde_json::from_str(&said.out).unwrap();
        let processors = std::thread::available_parallelism().unwrap().get() as f64;
        let most = document["wall"].as_f64().unwrap() * processors + 0.1;
        // Linux 6.18 often counts wrongly how long was waited. What is told is possible.
        for name in ["cpu", "delay"] {
            assert!(
                document[name].is_null() || (0.0..=most).contains(&document[name].as_f64().unwrap()),
                "{document}"
            );
        }
        let counted = std::fs::read_to_string(&counts).unwrap().trim() == "1";
        (document["resident-before"].as_u64().unwrap(), said.err, counted)
    };
    let Some(mapped) = MappingProcess::map_whole(&kept) else { return skip_test(test, "python3 is missing") };
    let (resident, said, counted) = once();
    drop(mapped);
    assert!(counted, "the kernel counts waiting while a program starts");
    assert!(resident >= 1000 << 12, "{resident}: {said}");
    assert!(said.contains(kept.to_str().unwrap()), "what was not cold is named: {said}");
    let (resident, said, counted) = once();
    assert!(resident < 1000 << 12, "{resident}: {said}");
    assert!(counted, "and so it does the next time");
    assert_eq!(setting(), before, "the kernel counts waiting as it did before");
}

/// Started from copies on another disk: what is read comes from there, and nothing of it after reading ahead.
#[test]
fn a_program_is_started_from_copies_of_its_packages() {
    let name = "a_program_is_started_from_copies_of_its_packages";
    if !std::path::Path::new("/usr/bin/dpkg-query").exists() {
        return skip_test(name, "there is no dpkg");
    }
    let Some(image) = MountedImage::new(name) else { return };
    let laboratory = Sandbox::new();
    let place = image.mount_point().display().to_string();
    let start = |package: &str, prefetch: &str| {
        let perflab = laboratory.command(&[]);
        let mut unshare = std::process::Command::new("unshare");
        unshare.args(["--mount", "--propagation", "slave"]).arg(perflab.get_program());
        unshare.args(["start-once", "--caches", "3", "--ready-when", "exit", "--limit", "60s", "--learn"]);
        unshare.args(["--store", &format!("{place}/traces"), "--inside", &place]);
        unshare.args(["--package", package, "--prefetch", prefetch, "--", "hostname"]);
        unshare.output().unwrap()
    };
    let document = |prefetch: &str| -> Value {
        let output = start("hostname", prefetch);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let cold = document("none");
    let ahead = repeat_until_undisturbed_by_others(&image.mount_point(), || document("sync"));
    assert!(cold["requests"].as_u64() >= Some(4) && cold["resident-before"] == 0, "{cold}");
    // A directory that came with others may be left, of a program that reads megabytes.
    let left = |document: &Value| document["read"].as_u64().unwrap();
    assert!(20 * left(&ahead) < left(&cold) && ahead["prefetch"].as_f64() > Some(0.0), "{cold}: {ahead}");
    let copy = ["files/usr/bin/hostname", "files/bin/hostname"].map(|name| image.mount_point().join(name));
    let copy = copy.iter().find(|copy| copy.is_file()).unwrap();
    let age = |path: &std::path::Path| path.metadata().unwrap().modified().unwrap();
    let original = std::path::Path::new("/bin/hostname");
    assert_eq!(age(copy), age(original), "what is compiled for a source looks at its age");
    let folder = std::fs::canonicalize(original).unwrap();
    assert_eq!(age(copy.parent().unwrap()), age(folder.parent().unwrap()), "and what lists a folder");
    assert!(!image.mount_point().join("seen/usr").exists(), "the root is mounted for everybody");
    let said = crate::laboratory::to_command_output(start("no-such-package", "none"));
    assert_eq!(said.code, Some(3), "{}", said.err);
    insta::assert_snapshot!(said.stable_err(), @"error: the package `no-such-package` is not installed; `apt install no-such-package` does it");
    let shared = laboratory.run(&[
        "start-once",
        "--caches",
        "warm",
        "--prefetch",
        "none",
        "--ready-when",
        "exit",
        "--limit",
        "9s",
        "--inside",
        &place,
        "--package",
        "hostname",
        "--",
        "hostname",
    ]);
    assert_eq!(shared.code, Some(3), "{}", shared.err);
    insta::assert_snapshot!("a_program_is_started_from_copies_of_its_packages_1", shared.stable_err());
}

/// What a trace knows is brought into memory first, whoever dropped it.
#[test]
fn a_warm_start_is_warm() {
    let Some(image) = MountedImage::new("a_warm_start_is_warm") else { return };
    let laboratory = Sandbox::new();
    let data = image.write_pages("data", 1000);
    let program = image.write_script("start", &format!("cat {} > /dev/null", data.display()));
    let store = laboratory.path("store").display().to_string();
    let start =
        ["start-once", "--caches", "warm", "--prefetch", "none", "--ready-when", "exit", "--limit", "60s"];
    let learnt = ["--learn", "--store", &store, "--", &program];
    let measured = || -> Value {
        serde_json::from_str(&laboratory.run_successfully(&[&start[..], &learnt].concat()).out).unwrap()
    };
    measured();
    let drop_all = || image.evict_files();
    // Where only some is there, what a glance sees of it may all be.
    let drop_some = || {
        let file = std::fs::File::open(&data).unwrap();
        let middle = std::num::NonZero::new(500 << 12);
        rustix::fs::fadvise(&file, 100 << 12, middle, rustix::fs::Advice::DontNeed).unwrap();
    };
    for dropped in [&drop_all as &dyn Fn(), &drop_some] {
        let document = repeat_until_undisturbed(&image.mount_point(), dropped, measured);
        let [resident, read] = ["resident-before", "read"].map(|metric| document[metric].as_u64().unwrap());
        assert!(resident >= 1000 << 12 && read == 0, "{document}");
    }
}

#[test]
fn cold_starts_without_root_are_refused_before_any_root() {
    if !is_root() {
        return skip_test(
            "cold_starts_without_root_are_refused_before_any_root",
            "becoming another user needs root",
        );
    }
    let home = tempfile::tempdir().unwrap();
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_perflab")];
    let mut command = std::process::Command::new("setpriv");
    command.args(user).args(["startup", "--", "true"]).env("HOME", home.path());
    let said = command.output().unwrap();
    assert_eq!(said.status.code(), Some(3), "{}", String::from_utf8_lossy(&said.stderr));
}
