//! Targets that lie: an agent of somebody else's may say any number, and the run ends well all the same.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::laboratory::{CommandOutput, Sandbox, to_command_output};

/// An `ssh` whose other end is an agent that does nothing, and says of it what `$LIE` names.
const SSH: &str = r#"#!/usr/bin/python3
import json, os, struct, sys, time
if "tar " in sys.argv[-1]:
    while os.read(0, 1 << 20): pass
    sys.exit(0)
lie, most, started = os.environ["LIE"], 2**64 - 1, False
def write(data):
    while data: data = data[os.write(1, data):]
def say(report):
    data = json.dumps(report).encode()
    write(struct.pack("<I", len(data)) + data)
now = lambda: time.clock_gettime_ns(time.CLOCK_MONOTONIC)
held = b""
def take(count):
    global held
    while len(held) < count:
        more = os.read(0, 1 << 16)
        if not more: sys.exit(0)
        held += more
    taken, held = held[:count], held[count:]
    return taken
def tell(what): say({"event": {"at": now(), "what": what}})
write(b"\nperflab-agent/2\n")
say({"hello": {"program": "perflab 0.1.0", "kernel": "k", "boot_id": "b", "cpus": 4}})
greeting = b""
while not greeting.endswith(b"perflab-agent/2\n"): greeting += take(1)
while True:
    order = json.loads(take(struct.unpack("<I", take(4))[0]))
    if order == "undo": say({"reached": "last"})
    elif order == "leave":
        tell({"ended": {"status": "finished", "overhead": {"cpu": most, "monitors_cpu": most, "wall": most, "peak_rss": most,
            "bytes_written": most, "ticks": most, "late_ticks": most, "lost_ticks": most}}})
        say({"reached": "end"})
    elif order == "cancel": pass
    elif "ping" in order:
        wrong = lie == "clock" or (lie == "clock-later" and started)
        say({"pong": {"id": order["ping"]["id"], "at": most if wrong else now()}})
    elif "configure" in order: say({"reached": "first"})
    elif "prepare" in order: say({"reached": {"before": order["prepare"]["index"]}})
    elif "start" in order:
        index, at, started = order["start"]["index"], now(), True
        if lie == "symbols": say({"kernel-symbols": {"text": "ffffffff81000000 T _stext\n", "last": True}})
        if lie == "stacks":
            tell({"stacks": {"slot": index, "frames": [{"name": "x", "kind": "kernel"}], "nodes": [[None, 0]], "comms": ["c"],
                "samples": [[1, 1, 1, 1, 0, 0, most, most]] * 2}})
        tell({"sample": {"boot": 0, "target": None, "case": 0, "iteration": index, "metric": "speed", "value": 1.0,
            "unit": "ops/s", "direction": "higher", "primary": True, "start": at, "end": at}})
        tell({"iteration-ended": {"slot": index, "outcome": {"outcome": "ok"}, "start": at, "end": at}})
        say({"reached": {"after": index}})
    elif "rehearse" in order: say({"woke": {"at": now()}})
"#;

/// What a liar says that notices in time that nobody listens to it any more.
const LAST_WORDS: &str = "; its last output: BrokenPipeError: [Errno N] Broken pipe";

fn run_against_lying_agent(laboratory: &Sandbox, lie: &str) -> CommandOutput {
    let ssh = laboratory.path("bin/ssh");
    fs::create_dir_all(laboratory.path("bin")).unwrap();
    fs::write(&ssh, SSH).unwrap();
    fs::set_permissions(&ssh, PermissionsExt::from_mode(0o755)).unwrap();
    let study = laboratory.write_study(
        "liar.toml",
        "run = { iterations = 3, warmup = 0 }\nprofile = { frequency = 99, scope = \"workload\" }\n[workload.echo]\n\
         [target.liar]\nkind = \"ssh\"\naddress = \"nowhere\"\n",
    );
    let path = format!("{}:{}", laboratory.path("bin").display(), std::env::var("PATH").unwrap());
    let mut command = laboratory.command(&["run", &study]);
    to_command_output(command.env("PATH", path).env("LIE", lie).output().unwrap())
}

#[test]
fn a_target_whose_clock_no_machine_has_is_given_up_for_that() {
    let mut errors = Vec::new();
    for lie in ["clock", "clock-later"] {
        let ended = run_against_lying_agent(&Sandbox::new(), lie);
        assert!(matches!(ended.code, Some(1 | 4)), "{lie}: {:?} {}", ended.code, ended.err);
        let wording = ended.err_wording_of(" ns").replace(LAST_WORDS, "");
        errors.push(wording.lines().next().unwrap().to_owned());
    }
    insta::assert_snapshot!(errors.join("\n"), @"
    error: target liar: its clock says N ns, and no machine is up for so long
    warning: target liar was lost: its clock says N ns, and no machine is up for so long; see its output in the run's logs
    ");
}

#[test]
fn a_profile_that_no_target_can_have_is_not_stored() {
    let laboratory = Sandbox::new();
    let ended = run_against_lying_agent(&laboratory, "stacks");
    insta::assert_snapshot!(ended.err_wording_of("liar").replace(LAST_WORDS, ""), @"
    liar.toml: N case, N iterations, randomised order
    warning: target liar was lost: it reported an impossible sample: count N, weight N; see its output in the run's logs
    warning: echo (slot N on liar): it reported an impossible sample: count N, weight N
    RUN: liar.toml
    warning: target liar was lost: it reported an impossible sample: count N, weight N; see its output in the run's logs
    ");
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let shares = laboratory.run(&["flame", "shares"]);
    assert_eq!(shares.code, Some(2), "{}", shares.err);
    insta::assert_snapshot!(shares.stable_err(), @"error: case 0 of run RUN has no call stacks: record some with `perflab flame record` or a study's [profile]");
}

#[test]
fn symbols_that_nobody_asked_for_end_a_target() {
    let laboratory = Sandbox::new();
    let ended = run_against_lying_agent(&laboratory, "symbols");
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    insta::assert_snapshot!(ended.err_wording_of("liar").replace(LAST_WORDS, ""), @"
    liar.toml: N case, N iterations, randomised order
    warning: target liar was lost: it sent symbols that nobody had asked for; see its output in the run's logs
    warning: echo (slot N on liar): it sent symbols that nobody had asked for
    RUN: liar.toml
    warning: target liar was lost: it sent symbols that nobody had asked for; see its output in the run's logs
    ");
}

#[test]
fn what_a_target_claims_to_have_cost_ends_no_run() {
    let laboratory = Sandbox::new();
    let ended = run_against_lying_agent(&laboratory, "");
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(laboratory.only_run().join("run.json")).unwrap()).unwrap();
    assert_eq!(manifest["overhead"]["ticks"], u64::MAX, "{}", manifest["overhead"]);
}
