//! `[workload.NAME.server]`: a server that is there while the command runs, and what becomes of one that is not.

use std::net::TcpListener;
use std::process::Command;

use crate::laboratory::{Sandbox, skip_test};

/// Listens on a port and answers each connection with a line.
const ANSWERING: &str = r#"
[run]
iterations = 2
warmup = 0
[workload.ask]
command = "curl --silent --fail http://127.0.0.1:{{ free_port }}/ > /dev/null"
prepare = "curl --silent --fail http://127.0.0.1:{{ free_port }}/ > /dev/null"
[workload.ask.server]
command = ["python3", "-m", "http.server", "{{ free_port }}", "--bind", "127.0.0.1"]
ready = { port = "{{ free_port }}" }
"#;

fn is_missing(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_err()
}

/// Why the iterations of the newest run failed, each reason once.
fn failures(laboratory: &Sandbox) -> Vec<String> {
    let listed = laboratory.run_json(&["show", "--iterations"]);
    let outcomes = listed.as_array().unwrap().iter().map(|row| row["outcome"].to_string());
    let mut found: Vec<String> = outcomes.collect();
    found.dedup();
    found
}

#[test]
fn a_command_has_its_server_while_it_runs_and_none_is_left() {
    if is_missing("curl") || is_missing("python3") {
        return skip_test("server", "no curl, or no python3");
    }
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("s.toml", ANSWERING);
    laboratory.run_successfully(&["run", &study, "--no-report", "--quiet"]);
    let listed = laboratory.run_json(&["show", "--iterations"]);
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let left = Command::new("pgrep").args(["-f", "http[.]server .*--bind 127[.]0[.]0[.]1"]).output().unwrap();
    assert!(left.stdout.is_empty(), "{}", String::from_utf8_lossy(&left.stdout));
}

#[test]
fn a_server_that_is_not_there_is_why_an_iteration_failed() {
    let laboratory = Sandbox::new();
    let run = |server: &str, command: &str| {
        let text = format!(
            "[run]\niterations = 1\nwarmup = 0\n[workload.w]\ncommand = '{command}'\n[workload.w.server]\n{server}\n"
        );
        let study = laboratory.write_study("s.toml", &text);
        assert_eq!(laboratory.run(&["run", &study, "--no-report", "--quiet"]).code, Some(4));
        failures(&laboratory).join("; ")
    };
    let dead = run("command = 'echo no licence >&2; exit 3'\nready = { line = 'ready' }", "true");
    insta::assert_snapshot!(dead, @r#""failed: the server `/bin/sh` exited with code 3: no licence""#);
    let late =
        run("command = 'echo loading; sleep 100'\nready = { line = 'ready' }\nwithin = '200ms'", "true");
    insta::assert_snapshot!(late, @r#""failed: the server `/bin/sh` was not ready within 200 ms: loading""#);
    let server =
        "command = 'echo $$ > {{ scratch }}/pid; echo ready; exec sleep 100'\nready = { line = '^ready$' }";
    let killed = run(server, "kill -9 $(cat {{ scratch }}/pid); sleep 0.2");
    insta::assert_snapshot!(killed, @r#""failed: the server was killed by signal 9: ready""#);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let taken = run(&format!("command = 'sleep 100'\nready = {{ port = '{port}' }}"), "true");
    insta::assert_snapshot!(taken.replace(&port.to_string(), "PORT"), @r#""failed: port PORT of 127.0.0.1 is taken: something listens on it already; choose another, or end it""#);
}

#[test]
fn mistakes_of_a_server_have_their_place() {
    let laboratory = Sandbox::new();
    let refusal = |server: &str| {
        let text = format!("[workload.w]\ncommand = 'true'\n[workload.w.server]\n{server}\n");
        let study = laboratory.write_study("s.toml", &text);
        let said = laboratory.run(&["study", "check", &study]);
        assert_eq!(said.code, Some(2));
        said.stable_err()
    };
    insta::assert_snapshot!(refusal("command = 'sleep 1'\nready = { }"), @"error: /tmp/.TMP/s.toml:6:1: `workload.w.server.ready`: says not exactly once when the server is ready; write one of `port`, `line`, `file` and `command`");
    insta::assert_snapshot!(refusal("command = 'sleep 1'\nready = { line = '(' }"), @"error: /tmp/.TMP/s.toml:6:11: `workload.w.server.ready.line`: regex parse error:     (     ^ error: unclosed group");
    insta::assert_snapshot!(refusal("command = 'sleep {{ tme }}'\nready = { port = '80' }"), @"error: /tmp/.TMP/s.toml:5:1: `workload.w.server.command[2]`: `tme` is no parameter and no name of the host; known here: cpus, cores, threads_per_core, sockets, llcs, llc_size, numa_nodes, memory, available, swap, page_size, huge_page, scratch, kept, perflab, free_port, target, targets");
    insta::assert_snapshot!(refusal("command = ''\nready = { port = '80' }"), @"error: /tmp/.TMP/s.toml:5:1: `workload.w.server.command`: runs nothing; name a program and its arguments");
}
