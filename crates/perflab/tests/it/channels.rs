//! The agent over what carries its stream beside pipes and virtio-serial: TCP, and vsock within a guest.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use perflab_conduct::protocol::{
    AgentOrder, AgentReport, FrameDecoder, GreetingParser, encode_frame, greeting_line,
};

use crate::laboratory::to_command_output;
use crate::vm::GuestSandbox;

#[test]
fn an_agent_calls_over_tcp_greets_and_tells_the_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp:{}", listener.local_addr().unwrap());
    let mut agent = Command::new(env!("CARGO_BIN_EXE_perflab"));
    let mut agent = agent.args(["agent", "--connect", &address]).stdin(Stdio::null()).spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(&greeting_line()).unwrap();
    stream.write_all(&encode_frame(&AgentOrder::Ping { id: 7 }).unwrap()).unwrap();
    let (mut greeter, mut decoder) =
        (Some(GreetingParser::default()), FrameDecoder::<AgentReport>::default());
    let (mut buffer, mut heard) = ([0; 4096], Vec::new());
    while heard.len() < 2 {
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0, "it hung up");
        match greeter.as_mut().map(|greeter| greeter.feed(&buffer[..length]).unwrap()) {
            None => decoder.push(&buffer[..length]),
            Some(None) => {}
            Some(Some(rest)) => {
                greeter = None;
                decoder.push(&rest);
            }
        }
        heard.extend(std::iter::from_fn(|| decoder.next_message().unwrap()));
    }
    assert!(
        matches!(heard[0], AgentReport::Hello(_)) && matches!(heard[1], AgentReport::Pong { id: 7, .. }),
        "{heard:?}"
    );
    drop(stream);
    assert!(agent.wait().unwrap().success(), "the end of the stream is its end");
}

/// Two agents and their conductor in one guest, whose kernel can speak vsock with itself; the workload counts the ends of
/// connections that the kernel knows, and the whole run comes back as its table.
const WITHIN: &str = r#"
mkdir /tmp/workloads
cat >/tmp/workloads/ends.toml <<'TOML'
title = "ends of vsock connections"
measures = "a test"
homepage = "https://localhost"
licence = "MIT"
argv = ["sh", "-c", "echo ends $(ss --vsock -nH state established | wc -l)"]
[[metric]]
name = "ends"
unit = "1"
direction = "lower"
primary = true
regex = 'ends (?<value>[0-9]+)'
TOML
cat >/tmp/study.toml <<'TOML'
title = "over vsock"
run = { iterations = 2, warmup = 0 }
[workload.ends]
[target.peer]
kind = "process"
channel = "vsock"
count = 2
TOML
export PERFLAB_ARCHIVE=/tmp/archive PERFLAB_STATE=/tmp/state
perflab=/run/perflab/perflab
$perflab --workloads /tmp/workloads run /tmp/study.toml --no-report --quiet >&2 || exit 9
$perflab show
"#;

#[test]
fn needs_root_two_agents_in_a_guest_are_conducted_over_vsock() {
    let Some(guests) = GuestSandbox::new("needs_root_two_agents_in_a_guest_are_conducted_over_vsock") else {
        return;
    };
    let mut words = vec!["vm", "boot", "--memory", "1GiB", "--name", "within"];
    words.extend(["--load", "vsock_loopback", "--load", "vsock_diag", "--", "sh", "-c", WITHIN]);
    let ended = to_command_output(guests.command(&words).output().unwrap());
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    // Two connections have four ends; each of two targets counted them twice.
    let rows = ended.out.lines().skip(1);
    let rows = rows.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "));
    let rows: Vec<String> = rows.filter(|row| row.starts_with("ends ends ")).collect();
    let all = ["mean of all", "peer1", "peer2"].map(|who| format!("ends ends {who} 4 4 4 2"));
    assert_eq!(rows, all, "{}", ended.err);
    guests.assert_nothing_is_left();
}
