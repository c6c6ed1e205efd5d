//! Guests on a network: each other by name and address over perflab's switch, the host by QEMU's user network.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::laboratory::{Sandbox, to_command_output};
use crate::vm::GuestSandbox;

/// Two guests that are not alike: one listens, the other asks, by name in one iteration and by address in the next.
const STUDY: &str = r#"
[run]
warmup = 0
iterations = 3
[workload.exchange]
command = '''sh -c '
if [ {{ target.name }} = server ]; then
    [ {{ targets.client.address }} = 10.77.0.2 ] || exit 1
    head -c 200000 /dev/zero | tr "\\0" x | nc -N -l 5000
    exit
fi
for who in server {{ targets.server.address }}; do
    for try in $(seq 200); do
        bytes=$(nc $who 5000 </dev/null | wc -c)
        [ "$bytes" = 0 ] || { echo "bytes $bytes"; exit 0; }
        sleep 0.05
    done
done
exit 1' '''
[target.server]
kind = "vm"
kernel = "debian-cloud"
root = "bare"
programs = ["sh", "nc", "head", "tr", "wc", "seq", "sleep"]
memory = "384MiB"
network = "guests"
[target.client]
kind = "vm"
kernel = "debian-cloud"
root = "bare"
programs = ["sh", "nc", "head", "tr", "wc", "seq", "sleep"]
memory = "384MiB"
network = "guests"
"#;

#[test]
fn guests_of_a_run_reach_each_other_and_are_told_apart() {
    let Some(guests) = GuestSandbox::new("guests_of_a_run_reach_each_other_and_are_told_apart") else {
        return;
    };
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("network.toml", STUDY);
    let mut command = laboratory.command(&["run", &study]);
    let ended = to_command_output(command.env("XDG_RUNTIME_DIR", guests.home()).output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let archive = perflab_archive::Archive::open(&laboratory.path("archive")).unwrap();
    let run = archive.find_runs("@latest").unwrap().remove(0);
    let client = run.list_outputs("stdout").unwrap();
    let answered = client.iter().filter(|output| output.text.trim() == "bytes 200000");
    assert_eq!(answered.count(), 3, "{client:?}");
    guests.assert_nothing_is_left();
    // Each target has its rows, and is held against the other.
    let compared = laboratory.run_successfully(&["compare", "--by", "target", "--format", "json"]);
    let found: Value = serde_json::from_str(&compared.out).unwrap();
    assert_eq!(
        (found["baseline"].as_str(), found["candidates"][0].as_str()),
        (Some("server"), Some("client"))
    );
    assert!(!found["rows"].as_array().unwrap().is_empty());
    let listed = laboratory.run_successfully(&["show", "--iterations", "--format", "csv"]).out;
    for target in ["server", "client"] {
        assert_eq!(
            listed.lines().filter(|line| line.ends_with(&format!(",{target}"))).count(),
            3,
            "{listed}"
        );
    }
}

#[test]
fn a_guest_reaches_this_host_and_is_reached_at_a_forwarded_port() {
    let Some(guests) = GuestSandbox::new("a_guest_reaches_this_host_and_is_reached_at_a_forwarded_port")
    else {
        return;
    };
    let here = TcpListener::bind("127.0.0.1:0").unwrap();
    let forwarded = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script =
        format!("nc host {} </dev/null; echo from the guest | nc -N -l 7", here.local_addr().unwrap().port());
    let forward = format!("{forwarded}:7");
    let words =
        ["vm", "boot", "--root", "bare", "--with", "nc", "--forward", &forward, "--", "sh", "-c", &script];
    let child = guests.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    here.set_nonblocking(true).unwrap();
    let begun = Instant::now();
    let mut caller = loop {
        match here.accept() {
            Ok((caller, _)) => break caller,
            Err(_) if begun.elapsed() < Duration::from_secs(120) => {
                std::thread::sleep(Duration::from_millis(10))
            }
            Err(error) => panic!("{error}: {}", to_command_output(child.wait_with_output().unwrap()).err),
        }
    };
    caller.write_all(b"from the host\n").unwrap();
    drop(caller);
    let mut answer = String::new();
    while answer.is_empty() && begun.elapsed() < Duration::from_secs(240) {
        let mut stream = TcpStream::connect(("127.0.0.1", forwarded)).unwrap();
        // QEMU takes the call before the guest does, and hangs up where nobody listens there.
        let _ = stream.read_to_string(&mut answer);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(answer, "from the guest\n");
    let ended = to_command_output(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "from the host\n"), "{}", ended.err);
    guests.assert_nothing_is_left();
}
