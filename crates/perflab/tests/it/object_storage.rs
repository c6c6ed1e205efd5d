//! Archives in object storage: a real S3 server over a folder of the test's own, and plain folders.
//!
//! The server is `rclone serve s3`, which checks signatures; with `PERFLAB_S3_SERVER=.../versitygw` it is Versity's gateway, which
//! also checks hashes and honours conditions (`go install github.com/versity/versitygw/cmd/versitygw@v1.8.0`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::documents::{prepare_sandbox, read_page};
use crate::laboratory::{CommandOutput, Sandbox, skip_test, to_command_output};

const KEY: &str = "perflab-tests";
const SECRET: &str = "a-secret-that-nobody-prints";

/// An S3 server; killed when it goes.
struct StorageServer {
    child: Option<Child>,
    program: PathBuf,
    port: u16,
    home: tempfile::TempDir,
}

impl Drop for StorageServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The server that `cargo xtask test` installs, or the one that is named.
fn find_server() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PERFLAB_S3_SERVER") {
        return Some(named.into());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-venv/bin/rclone");
    path.exists().then_some(path)
}

impl StorageServer {
    /// A server with one bucket, `lab`; none where the program is not there.
    fn start(test: &str) -> Option<Self> {
        if !cfg!(feature = "object-storage") {
            skip_test(test, "this perflab was built without object storage (--features object-storage)");
            return None;
        }
        let Some(program) = find_server() else {
            skip_test(test, "no target/test-venv/bin/rclone (cargo xtask test installs it)");
            return None;
        };
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("lab")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = StorageServer { child: None, program, port, home };
        server.restart();
        Some(server)
    }

    fn restart(&mut self) {
        let mut command = Command::new(&self.program);
        let address = format!("127.0.0.1:{}", self.port);
        if self.program.ends_with("rclone") {
            command.args(["serve", "s3", "--addr", &address, "--auth-key", &format!("{KEY},{SECRET}")]);
            command.args(["--config", "/dev/null", "--vfs-cache-mode", "off", "--dir-cache-time", "100ms"]);
        } else {
            command.args(["--access", KEY, "--secret", SECRET, "--port", &address, "--quiet", "posix"]);
        }
        command.arg(self.home.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap());
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the server does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// The keys, as the environment has them.
    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ACCESS_KEY_ID", KEY.into()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port)),
        ]
    }

    fn object_path(&self, name: &str) -> PathBuf {
        self.home.path().join("lab").join(name)
    }

    /// Puts other contents in the place of an object, behind the server's back.
    fn alter_object(&self, name: &str, content: &[u8]) {
        fs::write(self.object_path(name), content).unwrap();
        // The server may remember the folder for so long.
        std::thread::sleep(Duration::from_millis(200));
    }

    /// perflab with the keys and a home of the laboratory's own; whatever it says, no secret is in it.
    fn command(&self, laboratory: &Sandbox, arguments: &[&str]) -> Command {
        let mut command = laboratory.command(arguments);
        let home = laboratory.path("home");
        command.envs(self.environment()).env("HOME", &home).env_remove("XDG_DATA_HOME");
        command
    }

    fn run(&self, laboratory: &Sandbox, arguments: &[&str]) -> CommandOutput {
        let said = to_command_output(self.command(laboratory, arguments).output().unwrap());
        assert!(!said.out.contains(SECRET) && !said.err.contains(SECRET), "{}\n{}", said.out, said.err);
        said
    }

    fn run_successfully(&self, laboratory: &Sandbox, arguments: &[&str]) -> CommandOutput {
        let said = self.run(laboratory, arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}\n{}\n{}", said.out, said.err);
        said
    }

    /// The ids and labels that a list shows.
    fn list(&self, laboratory: &Sandbox, arguments: &[&str]) -> BTreeMap<String, Option<String>> {
        let arguments = [&["list", "--format", "json"], arguments].concat();
        let rows: serde_json::Value =
            serde_json::from_str(&self.run_successfully(laboratory, &arguments).out).unwrap();
        let row = |row: &serde_json::Value| {
            (row["run"].as_str().unwrap().to_owned(), row["label"].as_str().map(str::to_owned))
        };
        rows.as_array().unwrap().iter().map(row).collect()
    }
}

/// Every file below a folder with its content, without locks.
fn read_tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if entry.file_name() != "lock" {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Imports results, a run each.
fn import_runs(laboratory: &Sandbox, label: &str, count: usize) {
    let mut paths = Vec::new();
    for number in 0..count {
        let path = laboratory.path(&format!("{label}-{number}.json"));
        let times = format!("0.1{number}, 0.2{number}");
        let text = format!(
            r#"{{"results":[{{"command":"true {label} {number}","mean":0.1,"stddev":0.0,"median":0.1,"user":0.0,"system":0.0,"min":0.1,"max":0.2,"times":[{times}]}}]}}"#
        );
        fs::write(&path, text).unwrap();
        paths.push(path.display().to_string());
    }
    let mut arguments = vec!["import", "--label", label, "--quiet"];
    arguments.extend(paths.iter().map(String::as_str));
    laboratory.run_successfully(&arguments);
}

#[test]
fn a_run_goes_to_a_bucket_and_comes_back_as_it_was() {
    let Some(server) = StorageServer::start("a_run_goes_to_a_bucket") else { return };
    let (here, there) = (Sandbox::new(), Sandbox::new());
    here.run_echo("before", 100);
    let url = "s3://lab/kernel/nightly";
    server.run_successfully(&here, &["push", "--remote", url, "before"]);
    let listed = server.list(&there, &["--remote", url]);
    assert_eq!(listed.values().cloned().collect::<Vec<_>>(), [Some("before".to_owned())]);
    server.run_successfully(&there, &["pull", "--remote", url]);
    assert_eq!(read_tree(&here.only_run()), read_tree(&there.only_run()));
    // Once more is nothing more.
    let again = server.run_successfully(&here, &["push", "--remote", url, "--format", "json"]);
    let rows: serde_json::Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(rows[0]["size"], serde_json::Value::Null);
    // The objects are what any tool reads: the run's files by their names.
    let id = listed.keys().next().unwrap();
    let object = server.object_path(&format!("kernel/nightly/runs/{id}/samples.parquet"));
    assert_eq!(fs::read(object).unwrap(), fs::read(here.only_run().join("samples.parquet")).unwrap());
}

#[test]
fn a_bit_that_flips_in_the_bucket_is_told_and_never_taken_for_a_number() {
    let Some(server) = StorageServer::start("a_bit_that_flips") else { return };
    let (here, there) = (Sandbox::new(), Sandbox::new());
    import_runs(&here, "whole", 1);
    import_runs(&here, "altered", 1);
    server.run_successfully(&here, &["push", "--remote", "s3://lab"]);
    server.run_successfully(&there, &["pull", "--check", "--remote", "s3://lab"]);
    assert!(!there.path("archive/index.sqlite").exists(), "a check keeps nothing");
    let listed = server.list(&here, &["--remote", "s3://lab"]);
    let altered = listed.iter().find(|(_, label)| label.as_deref() == Some("altered")).unwrap().0;
    let object = format!("runs/{altered}/samples.parquet");
    let mut content = fs::read(server.object_path(&object)).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    server.alter_object(&object, &content);
    for arguments in
        [["pull", "--check", "--remote", "s3://lab"].as_slice(), &["pull", "--remote", "s3://lab"]]
    {
        let said = server.run(&there, arguments);
        assert_eq!(said.code, Some(1), "{}", said.err);
        assert!(said.err.contains(altered) && said.err.contains("samples.parquet"), "{}", said.err);
    }
    // The other one arrived, and of this one nothing is left.
    let arrived: Vec<_> = fs::read_dir(there.path("archive/runs")).unwrap().collect();
    assert_eq!(arrived.len(), 1);
}

#[test]
fn what_others_put_into_a_run_or_among_the_lists_is_never_taken_for_ours() {
    let Some(server) = StorageServer::start("what_others_put_into_a_run") else { return };
    let here = Sandbox::new();
    import_runs(&here, "one", 1);
    let pull = ["pull", "--remote", "s3://lab"];
    server.run_successfully(&here, &["push", "--remote", "s3://lab"]);
    server.alter_object("lists/.DS_Store", b"no list");
    server.run_successfully(&Sandbox::new(), &pull);
    let id = server.list(&here, &["--remote", "s3://lab"]).into_keys().next().unwrap();
    let manifest = format!("runs/{id}/run.json");
    let good = fs::read_to_string(server.object_path(&manifest)).unwrap();
    server.alter_object(&manifest, good.replace("finished", "stopped").as_bytes());
    assert_eq!(server.run(&Sandbox::new(), &pull).code, Some(1), "another status");
    server.alter_object(&manifest, good.as_bytes());
    server.alter_object(&format!("runs/{id}/evil.sh"), b"true");
    assert_eq!(server.run(&Sandbox::new(), &pull).code, Some(1), "a file that no hash is of");
    // Every file once more: but for the strange one, which stays, the run is whole.
    fs::remove_file(server.object_path(&format!("runs/{id}/evil.sh"))).unwrap();
    server.alter_object(&format!("runs/{id}/samples.parquet"), b"short");
    let note = "{\"at\":1,\"by\":\"another\",\"text\":\"seen\"}\n";
    server.alter_object(&format!("runs/{id}/notes.jsonl"), note.as_bytes());
    fs::write(here.only_run().join("notes.jsonl"), note.replace("another", "me")).unwrap();
    server.run_successfully(&here, &["push", "--again", "--remote", "s3://lab", &id]);
    let there = Sandbox::new();
    server.run_successfully(&there, &pull);
    let notes = fs::read_to_string(there.only_run().join("notes.jsonl")).unwrap();
    assert_eq!(notes.lines().count(), 2, "what others noted there stays: {notes}");
}

#[test]
fn labels_of_verbs_that_run_at_once_are_all_kept() {
    let Some(server) = StorageServer::start("labels_of_verbs") else { return };
    let here = Sandbox::new();
    import_runs(&here, "run", 4);
    server.run_successfully(&here, &["push", "--remote", "s3://lab/l"]);
    let on = ["--archive", "s3://lab/l"];
    let ids: Vec<String> = server.list(&here, &on).into_keys().collect();
    std::thread::scope(|scope| {
        for (number, id) in ids.iter().enumerate() {
            let (here, server) = (&here, &server);
            scope.spawn(move || {
                let label = format!("new-{number}");
                server.run_successfully(here, &[&["label", id, &label], &on[..]].concat());
                server.run_successfully(here, &[&["list"], &on[..]].concat());
            });
        }
    });
    let listed = server.list(&Sandbox::new(), &["--remote", "s3://lab/l"]);
    let labels: BTreeSet<String> = listed.into_values().flatten().collect();
    assert_eq!(labels, (0..4).map(|number| format!("new-{number}")).collect());
}

#[test]
fn two_writers_at_once_lose_no_run() {
    let Some(server) = StorageServer::start("two_writers_at_once") else { return };
    let laboratories = [Sandbox::new(), Sandbox::new()];
    for (laboratory, label) in laboratories.iter().zip(["left", "right"]) {
        import_runs(laboratory, label, 20);
    }
    // A push for each run: so many lists are merged meanwhile, by both.
    std::thread::scope(|scope| {
        for laboratory in &laboratories {
            scope.spawn(|| {
                let ids = laboratory.run_json(&["list"]);
                for row in ids.as_array().unwrap() {
                    let id = row["run"].as_str().unwrap();
                    server
                        .run_successfully(laboratory, &["push", "--remote", "s3://lab/both", "--quiet", id]);
                }
            });
        }
    });
    let here: BTreeSet<String> = laboratories
        .iter()
        .flat_map(|laboratory| laboratory.run_json(&["list"]).as_array().unwrap().clone())
        .map(|row| row["run"].as_str().unwrap().to_owned())
        .collect();
    let listed = server.list(&laboratories[0], &["--remote", "s3://lab/both"]);
    assert_eq!(listed.into_keys().collect::<BTreeSet<_>>(), here);
    let lists = fs::read_dir(server.object_path("both/lists")).unwrap().count();
    assert!(lists < 26, "{lists} lists were never merged");
}

#[test]
fn a_push_that_was_killed_goes_on_and_is_not_seen_before() {
    let Some(server) = StorageServer::start("a_push_that_was_killed") else { return };
    let here = Sandbox::new();
    import_runs(&here, "many", 40);
    let pushed = || fs::read_dir(server.object_path("k/runs")).map_or(0, Iterator::count);
    let mut child = server.command(&here, &["push", "--quiet", "--remote", "s3://lab/k"]).spawn().unwrap();
    while pushed() < 5 {
        assert!(child.try_wait().unwrap().is_none(), "the push was faster than the test");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(pushed() < 40);
    // What no list says is not there.
    assert_eq!(server.list(&here, &["--remote", "s3://lab/k"]).len(), 0);
    let said = server.run_successfully(&here, &["push", "--remote", "s3://lab/k", "--format", "json"]);
    let rows: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let sizes: Vec<u64> = rows.as_array().unwrap().iter().map(|row| row["size"].as_u64().unwrap()).collect();
    assert_eq!(sizes.len(), 40);
    // Of the first ones only the head is sent again.
    assert!(sizes[0] < *sizes.last().unwrap(), "{sizes:?}");
    server.run_successfully(&here, &["pull", "--check", "--remote", "s3://lab/k"]);
}

#[test]
fn an_archive_in_a_bucket_is_worked_on_like_a_folder() {
    let Some(server) = StorageServer::start("an_archive_in_a_bucket") else { return };
    let (one, other) = (Sandbox::new(), Sandbox::new());
    let url = "s3://lab/shared";
    let study = one.write_study("echo.toml", "run = { iterations = 3, warmup = 0 }\n[workload.echo]");
    let on = |arguments: &[&'static str]| [arguments, &["--archive", url]].concat();
    server.run_successfully(&one, &["run", &study, "--label", "first", "--archive", url]);
    assert!(!one.path("archive").exists());
    // Another machine sees it, names it otherwise, and the first one sees that.
    let id = server.list(&other, &on(&[])).into_keys().next().unwrap();
    server.run_successfully(&other, &on(&["label", "first", "renamed"]));
    assert_eq!(server.list(&one, &on(&[]))[&id].as_deref(), Some("renamed"));
    let shown = server.run_successfully(&one, &on(&["show", "renamed", "--format", "json"]));
    assert!(serde_json::from_str::<serde_json::Value>(&shown.out).unwrap()[0]["metric"] == "speed");
    // What one removes is gone for the other, too, and does not come back from its copy.
    server.run_successfully(&other, &on(&["rm", "renamed"]));
    assert_eq!(server.list(&one, &on(&[])).len(), 0);
    assert_eq!(server.list(&other, &["--remote", url]).len(), 0);
    assert!(!server.object_path(&format!("shared/runs/{id}/run.json")).exists());
}

#[test]
fn a_dead_server_loses_no_run() {
    let Some(mut server) = StorageServer::start("a_dead_server") else { return };
    let here = Sandbox::new();
    let url = "s3://lab/fragile";
    let study = here.write_study("echo.toml", "run = { iterations = 2, warmup = 0 }\n[workload.echo]");
    server.run_successfully(&here, &["run", &study, "--label", "first", "--archive", url]);
    server.stop();
    let said = server.run(&here, &["run", &study, "--label", "second", "--archive", url]);
    assert_eq!(said.code, Some(3), "{}", said.err);
    // The copy answers meanwhile.
    let labels =
        |listed: BTreeMap<String, Option<String>>| listed.into_values().flatten().collect::<BTreeSet<_>>();
    let both: BTreeSet<String> = ["first", "second"].map(String::from).into();
    assert_eq!(labels(server.list(&here, &["--archive", url])), both);
    let removed = server.run(&here, &["rm", "first", "--archive", url]);
    assert_eq!(removed.code, Some(3), "what is there cannot be removed now: {}", removed.err);
    server.restart();
    assert_eq!(labels(server.list(&here, &["--archive", url])), both);
    assert_eq!(labels(server.list(&Sandbox::new(), &["--remote", url])), both, "the next verb sends it");
}

#[test]
fn sync_brings_both_in_step_and_removes_nothing() {
    let Some(server) = StorageServer::start("sync") else { return };
    let (here, there) = (Sandbox::new(), Sandbox::new());
    import_runs(&here, "here", 2);
    import_runs(&there, "there", 3);
    server.run_successfully(&there, &["sync", "--remote", "s3://lab/sync"]);
    server.run_successfully(&here, &["sync", "--remote", "s3://lab/sync"]);
    server.run_successfully(&there, &["sync", "--remote", "s3://lab/sync"]);
    for laboratory in [&here, &there] {
        assert_eq!(laboratory.run_json(&["list"]).as_array().unwrap().len(), 5);
    }
    // Notes of both are merged.
    let noted = here.run_json(&["list"])[0]["run"].as_str().unwrap().to_owned();
    let notes = |laboratory: &Sandbox| laboratory.path(&format!("archive/runs/{noted}/notes.jsonl"));
    for (laboratory, at) in [(&here, 2), (&there, 1)] {
        fs::write(notes(laboratory), format!("\n{{\"at\":{at},\"by\":\"me\",\"text\":\"seen\"}}")).unwrap();
    }
    for laboratory in [&here, &there, &here] {
        server.run_successfully(laboratory, &["sync", "--remote", "s3://lab/sync"]);
    }
    assert_eq!(fs::read(notes(&here)).unwrap(), fs::read(notes(&there)).unwrap());
    assert_eq!(fs::read_to_string(notes(&here)).unwrap().lines().count(), 2);
    // Labels that differ stay as they are until somebody says which one holds.
    let id = here.run_json(&["list"])[0]["run"].as_str().unwrap().to_owned();
    here.run_successfully(&["label", &id, "mine"]);
    server.run_successfully(&here, &["sync", "--remote", "s3://lab/sync"]);
    assert_ne!(server.list(&there, &["--remote", "s3://lab/sync"])[&id].as_deref(), Some("mine"));
    server.run_successfully(&here, &["push", "--remote", "s3://lab/sync", &id]);
    assert_eq!(server.list(&there, &["--remote", "s3://lab/sync"])[&id].as_deref(), Some("mine"));
}

#[test]
fn what_a_server_refuses_is_said_with_what_to_do() {
    let Some(server) = StorageServer::start("what_a_server_refuses") else { return };
    let here = Sandbox::new();
    import_runs(&here, "one", 1);
    let with = |arguments: &[&str], changed: &[(&str, &str)]| {
        let mut command = server.command(&here, arguments);
        command.envs(changed.iter().copied());
        let said = to_command_output(command.output().unwrap());
        assert!(!said.err.contains(SECRET) && !said.err.contains("panicked"), "{}", said.err);
        said
    };
    let push = ["push", "--remote", "s3://lab/x"];
    let wrong = with(&push, &[("AWS_SECRET_ACCESS_KEY", "wrong")]);
    assert_eq!(wrong.code, Some(3), "{}", wrong.err);
    assert!(
        wrong.err.contains("SignatureDoesNotMatch") && wrong.err.contains("AWS_PROFILE"),
        "{}",
        wrong.err
    );
    let missing = with(&["push", "--remote", "s3://no-such-bucket/x"], &[]);
    assert_eq!(missing.code, Some(2), "{}", missing.err);
    assert!(missing.err.contains("no-such-bucket"), "{}", missing.err);
    let empty = with(&["pull", "--remote", "s3://lab/nothing"], &[]);
    assert_eq!(empty.code, Some(2), "{}", empty.err);
    for (name, value) in [
        ("AWS_ENDPOINT_URL", "127.0.0.1:1"),
        ("AWS_ACCESS_KEY_ID", "key\n"),
        ("AWS_SESSION_TOKEN", "token\n"),
        ("AWS_ACCESS_KEY_ID", "nobody-knows-it"),
    ] {
        let said = with(&push, &[(name, value)]);
        assert_eq!(said.code, Some(3), "{name}: {}", said.err);
        assert!(said.err.contains(name), "{}", said.err);
    }
    for url in ["gs://lab/x", "s3://", "s3://key:secret@lab", "lab"] {
        assert_eq!(with(&["push", "--remote", url], &[]).code, Some(2), "{url}");
    }
    for url in ["gs://lab/x", "s3://"] {
        assert_eq!(with(&["list", "--archive", url], &[]).code, Some(2), "{url}");
    }
    // An archive of a perflab to come.
    server.run_successfully(&here, &push);
    let good = fs::read(server.object_path("x/archive.json")).unwrap();
    server.alter_object("x/archive.json", br#"{"layout": 99, "writer": "perflab 9.0"}"#);
    let newer = with(&["pull", "--remote", "s3://lab/x"], &[]);
    assert_eq!(newer.code, Some(1), "{}", newer.err);
    assert!(newer.err.contains("perflab 9.0"), "{}", newer.err);
    server.alter_object("x/archive.json", &good);
    server.run_successfully(&here, &["pull", "--remote", "s3://lab/x"]);
}

#[test]
fn keys_come_from_a_profile_too() {
    let Some(server) = StorageServer::start("keys_come_from_a_profile") else { return };
    let here = Sandbox::new();
    import_runs(&here, "one", 1);
    let home = here.path("home");
    fs::create_dir_all(home.join(".aws")).unwrap();
    fs::write(
        home.join(".aws/credentials"),
        format!("[lab]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"),
    )
    .unwrap();
    let config =
        format!("[profile lab]\nregion = us-east-1\nendpoint_url = http://127.0.0.1:{}\n", server.port);
    fs::write(home.join(".aws/config"), config).unwrap();
    let mut command = here.command(&["push", "--remote", "s3://lab/p"]);
    command.env("HOME", &home).env("AWS_PROFILE", "lab");
    let said = to_command_output(command.output().unwrap());
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(server.list(&here, &["--remote", "s3://lab/p"]).len(), 1);
}

/// The page, as a reader has one shell.
#[test]
fn the_page_about_object_storage_is_a_script_that_runs() {
    let Some(server) = StorageServer::start("object-storage.md") else { return };
    let other = Sandbox::new();
    import_runs(&other, "nightly", 2);
    server.run_successfully(&other, &["push", "--remote", "s3://lab/kernel"]);
    let laboratory = prepare_sandbox();
    let page = read_page("docs/object-storage.md");
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let script = format!("set -e\nperflab() {{ {} \"$@\"; }}\n", env!("CARGO_BIN_EXE_perflab"));
    let script = script + &blocks.collect::<Vec<_>>().concat();
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(laboratory.home.path()).stdin(Stdio::null());
    shell.envs(server.environment()).env("HOME", laboratory.path("home")).env_remove("XDG_DATA_HOME");
    shell.env("PERFLAB_ARCHIVE", laboratory.path("archive")).env("PERFLAB_STATE", laboratory.path("state"));
    let said = to_command_output(shell.output().unwrap());
    assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
    assert!(fs::read_dir(server.object_path("kernel/runs")).unwrap().count() >= 5);
}

/// A folder that is not mounted is empty, and is not filled by whoever reads.
#[test]
fn an_archive_that_is_gone_is_not_made_anew() {
    let (here, shared) = (Sandbox::new(), tempfile::tempdir().unwrap());
    let place = |name: &str| shared.path().join(name);
    let url = format!("file://{}", place("lab").display());
    let bench = ["--archive", &url, "bench", "--runs", "2", "true"];
    here.run_successfully(&bench);
    fs::rename(place("lab"), place("away")).unwrap();
    fs::create_dir(place("lab")).unwrap();
    let list = here.run_successfully(&["--archive", &url, "list", "--format", "json"]);
    assert_eq!(
        serde_json::from_str::<Vec<serde_json::Value>>(&list.out).unwrap().len(),
        1,
        "the copy has it"
    );
    assert_eq!(here.run(&["--archive", &url, "label", "@latest", "important"]).code, Some(3));
    assert_eq!(here.run(&bench).code, Some(3), "the run could not be sent");
    assert_eq!(fs::read_dir(place("lab")).unwrap().count(), 0);
    fs::remove_dir(place("lab")).unwrap();
    // Nor is another archive taken for it, or the shared folder for one of this machine.
    let other = Sandbox::new();
    other.run_echo("theirs", 100);
    other.run_successfully(&["push", "--remote", &url]);
    here.run_successfully(&["--archive", &url, "list"]);
    let theirs = here.run_successfully(&["list", "--remote", &url, "--format", "json"]);
    assert_eq!(serde_json::from_str::<Vec<serde_json::Value>>(&theirs.out).unwrap().len(), 1);
    let shared_folder = place("lab").display().to_string();
    assert_eq!(here.run(&["--archive", &shared_folder, "rm", "theirs"]).code, Some(2));
    fs::remove_dir_all(place("lab")).unwrap();
    fs::rename(place("away"), place("lab")).unwrap();
    here.run_successfully(&["--archive", &url, "list"]);
    let there = here.run_successfully(&["list", "--remote", &url, "--format", "json"]);
    assert_eq!(
        serde_json::from_str::<Vec<serde_json::Value>>(&there.out).unwrap().len(),
        2,
        "what was kept is sent"
    );
}

/// Nothing is measured for an archive that this program cannot send to.
#[cfg(not(feature = "object-storage"))]
#[test]
fn a_program_without_object_storage_refuses_buckets_before_it_runs_anything() {
    let here = Sandbox::new();
    for arguments in [&["push", "--remote", "s3://lab/x"][..], &["--archive", "s3://lab/x", "bench", "true"]]
    {
        let refused = here.run(arguments);
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        assert!(refused.err.contains("--features object-storage"), "{}", refused.err);
    }
}

#[test]
fn a_folder_that_several_machines_see_is_a_remote_too() {
    let (here, there, shared) = (Sandbox::new(), Sandbox::new(), tempfile::tempdir().unwrap());
    here.run_echo("before", 100);
    let url = format!("file://{}/lab", shared.path().display());
    here.run_successfully(&["push", "--remote", &url]);
    there.run_successfully(&["pull", "--remote", &url, "before"]);
    assert_eq!(read_tree(&here.only_run()), read_tree(&there.only_run()));
    let missing = there.run(&["pull", "--remote", &url, "befor"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("before"), "the nearest label is named: {}", missing.err);
    // An archive is no copy of itself.
    let own = format!("file://{}", here.path("archive").display());
    let tree = read_tree(&here.path("archive"));
    for verb in ["push", "pull", "sync"] {
        assert_eq!(here.run(&[verb, "--remote", &own]).code, Some(2), "{verb}");
        assert_eq!(here.run(&["--archive", &url, verb, "--remote", &url]).code, Some(2), "{verb}");
    }
    assert_eq!(read_tree(&here.path("archive")), tree);
    // Nor is that of another: what is pushed there its owner would not see as pushed.
    let others = format!("file://{}", there.path("archive").display());
    assert_eq!(here.run(&["push", "--remote", &others]).code, Some(2));
    // A file that vanished there is told.
    let object =
        shared.path().join("lab/runs").join(here.only_run().file_name().unwrap()).join("iterations.parquet");
    fs::remove_file(object).unwrap();
    assert_eq!(Sandbox::new().run(&["pull", "--remote", &url]).code, Some(1));
}

/// Of a list that cannot be read the runs themselves say what it said, and who writes puts a whole one in its place.
#[test]
fn a_damaged_list_hides_no_run_and_is_replaced_by_who_writes() {
    let (here, shared) = (Sandbox::new(), tempfile::tempdir().unwrap());
    let url = format!("file://{}/lab", shared.path().display());
    let lists = || {
        let all = fs::read_dir(shared.path().join("lab/lists")).unwrap();
        all.map(|list| list.unwrap().path()).collect::<BTreeSet<_>>()
    };
    let listed = |sandbox: &Sandbox| {
        let mut rows = sandbox.run_json(&["list", "--remote", &url]);
        rows.as_array_mut().unwrap().sort_by_key(|row| row["run"].to_string());
        rows
    };
    for label in ["one", "two"] {
        here.run_echo(label, 100);
        here.run_successfully(&["push", "--remote", &url]);
    }
    here.run_successfully(&["label", "one", "first"]);
    here.run_successfully(&["push", "--remote", &url]);
    let before = listed(&here);
    let good = lists();
    for list in &good {
        fs::write(list, b"PAR1 no more").unwrap();
    }
    // Who only reads loses nothing, and changes nothing.
    let there = Sandbox::new();
    assert_eq!(listed(&there), before);
    there.run_successfully(&["pull", "--remote", &url]);
    assert_eq!(read_tree(&there.path("archive/runs")), read_tree(&here.path("archive/runs")));
    assert_eq!(lists(), good);
    let warned = there.run(&["list", "--remote", &url]).err;
    assert!(good.iter().all(|list| warned.contains(list.file_name().unwrap().to_str().unwrap())), "{warned}");
    // Who writes heals.
    here.run_successfully(&["push", "--remote", &url]);
    assert_eq!(lists().len(), 1);
    let healed = there.run_successfully(&["list", "--remote", &url]);
    assert_eq!((listed(&there), healed.err.as_str()), (before, ""));
    // A run whose own record is damaged is named, and the others are there.
    let damaged = listed(&here)[0]["run"].as_str().unwrap().to_owned();
    fs::write(lists().first().unwrap(), b"PAR1 no more").unwrap();
    fs::write(shared.path().join("lab/runs").join(&damaged).join("run.json"), b"{").unwrap();
    let warned = there.run_successfully(&["list", "--remote", &url]).err;
    assert!(warned.contains(&damaged), "{warned}");
    assert_eq!(listed(&there).as_array().map(Vec::len), Some(1));
}
