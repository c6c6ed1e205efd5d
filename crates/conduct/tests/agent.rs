//! An agent on a thread of this process, spoken to over a socket pair, byte by byte.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use perflab_conduct::agent::{AgentError, serve_agent};
use perflab_conduct::protocol::{
    AgentOrder, AgentReport, FrameDecoder, GreetingParser, ProtocolError, encode_frame, greeting_line,
};
use perflab_conduct::{Connection, LocalMachine};
use perflab_model::Nanos;
use perflab_observe::{Root, monotonic_now};
use perflab_workload::Catalogue;

struct AgentConversation {
    stream: UnixStream,
    decoder: FrameDecoder<AgentReport>,
    agent: JoinHandle<Result<(), AgentError>>,
}

impl AgentConversation {
    fn start() -> Self {
        let (stream, theirs) = UnixStream::pair().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let host = LocalMachine {
            root: Root::host(),
            state: PathBuf::from("/nonexistent"),
            perflab: PathBuf::from("perflab"),
            catalogue: Catalogue::embedded(),
            runs_as_typed: false,
            quiet_after: None,
            traces: Default::default(),
            monitors: Default::default(),
            counters: Default::default(),
            events: Default::default(),
        };
        let channel = Connection::duplex("host", theirs).unwrap();
        AgentConversation {
            stream,
            decoder: FrameDecoder::default(),
            agent: std::thread::spawn(|| serve_agent(channel, false, None, host)),
        }
    }

    fn start_greeted() -> Self {
        let mut spoken = AgentConversation::start();
        spoken.stream.write_all(&greeting_line()).unwrap();
        let mut greeter = GreetingParser::default();
        let mut byte = [0];
        loop {
            spoken.stream.read_exact(&mut byte).unwrap();
            if greeter.feed(&byte).unwrap().is_some() {
                return spoken;
            }
        }
    }

    fn send_order(&mut self, order: &AgentOrder) {
        self.stream.write_all(&encode_frame(order).unwrap()).unwrap();
    }

    fn receive_report(&mut self) -> AgentReport {
        let mut buffer = [0; 4096];
        loop {
            if let Some(report) = self.decoder.next_message().unwrap() {
                return report;
            }
            let length = self.stream.read(&mut buffer).unwrap();
            assert!(length > 0, "the agent ended");
            self.decoder.push(&buffer[..length]);
        }
    }

    fn end(self) -> Result<(), AgentError> {
        self.stream.shutdown(Shutdown::Both).unwrap();
        self.agent.join().unwrap()
    }
}

#[test]
fn an_agent_says_who_it_is_tells_the_time_and_wakes_when_told() {
    let mut spoken = AgentConversation::start_greeted();
    let AgentReport::Hello(hello) = spoken.receive_report() else { panic!("no hello") };
    assert!(hello.program.starts_with("perflab ") && hello.cpus > 0, "{hello:?}");
    let before = monotonic_now();
    spoken.send_order(&AgentOrder::Ping { id: 7 });
    let AgentReport::Pong { id: 7, at } = spoken.receive_report() else { panic!("no pong") };
    assert!(before <= at && at <= monotonic_now());
    let at = Nanos(monotonic_now().0 + 5_000_000);
    spoken.send_order(&AgentOrder::Rehearse { at });
    let AgentReport::Woke { at: woke } = spoken.receive_report() else { panic!("it slept on") };
    assert!(woke >= at);
    spoken.end().unwrap();
}

#[test]
fn pings_are_answered_while_it_waits_and_the_end_of_the_stream_ends_the_wait() {
    let mut spoken = AgentConversation::start_greeted();
    spoken.receive_report();
    spoken.send_order(&AgentOrder::Rehearse { at: Nanos(u64::MAX) });
    spoken.send_order(&AgentOrder::Ping { id: 8 });
    assert!(matches!(spoken.receive_report(), AgentReport::Pong { id: 8, .. }));
    spoken.end().unwrap();
}

#[test]
fn a_host_of_another_version_and_garbage_are_refused() {
    let mut spoken = AgentConversation::start();
    spoken.stream.write_all(b"\nperflab-agent/99\n").unwrap();
    let refused = spoken.agent.join().unwrap().unwrap_err();
    assert!(matches!(refused, AgentError::Protocol(ProtocolError::Version { theirs: 99 })), "{refused}");
    let mut spoken = AgentConversation::start_greeted();
    spoken.stream.write_all(&[3, 0, 0, 0, b'?', b'?', b'?']).unwrap();
    let refused = spoken.agent.join().unwrap().unwrap_err();
    assert!(matches!(refused, AgentError::Protocol(ProtocolError::Garbled { size: 3, .. })), "{refused}");
}
