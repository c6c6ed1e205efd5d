//! Messages over the loopback interface or a Unix socket: streams one way, or requests and responses, between pairs of tasks.
//!
//! The loads are netperf's (R. Jones, <https://hewlettpackard.github.io/netperf/>): TCP_STREAM, TCP_RR, UDP_STREAM, UDP_RR and their
//! kin over Unix sockets, written anew. What counts is what arrived.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use serde_json::json;

use crate::load::args::{BuiltinLoadArgs, LoadError, invalid_value_error};
use crate::load::arrivals::{ArrivalPlan, LoopPhase, LoopTime, RequestTimes, run_open_loop};
use crate::load::latency::LatencyHistogram;
use crate::load::latency_log::LatencyLog;
use crate::load::tasks::{MOST_TASKS, Task, TaskPlan, wake_exactly};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetProtocol {
    Tcp,
    Udp,
    Unix,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetPattern {
    Stream,
    RequestResponse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressFamily {
    Ipv4,
    Ipv6,
}

const PROTOCOLS: &[(&str, NetProtocol)] =
    &[("tcp", NetProtocol::Tcp), ("udp", NetProtocol::Udp), ("unix", NetProtocol::Unix)];
const PATTERNS: &[(&str, NetPattern)] =
    &[("stream", NetPattern::Stream), ("request-response", NetPattern::RequestResponse)];
const FAMILIES: &[(&str, AddressFamily)] = &[("ipv4", AddressFamily::Ipv4), ("ipv6", AddressFamily::Ipv6)];

/// Bytes of a message of a stream, and of a request and its response, as netperf chooses them on Linux.
const STREAM_SIZE: usize = 16 << 10;
const REQUEST_SIZE: usize = 1;
/// The largest message, and the largest datagram over IPv4.
const LARGEST_MESSAGE: usize = 1 << 30;
const LARGEST_DATAGRAM: usize = 65_507;
/// Bytes that the receiver of a stream asks for at once, as netperf's does on Linux.
const RECEIVE_SIZE: usize = 128 << 10;
/// How long a datagram, or room for one, is waited for before it is looked whether it is enough.
const PATIENCE: Duration = Duration::from_millis(100);

/// Who waits for whom, and with what.
#[derive(Debug, Clone, Copy)]
struct NetPlan {
    protocol: NetProtocol,
    pattern: NetPattern,
    size: usize,
    pairs: usize,
    /// none where each request waits for the answer to the one before
    arrivals: Option<ArrivalPlan>,
}

pub(crate) fn measure_net(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    let protocol = options.choice("protocol", PROTOCOLS)?;
    let pattern = options.choice("pattern", PATTERNS)?;
    let size = options.size("size", 0)?;
    let family = options.choice("family", FAMILIES)?;
    let pairs = options.count_within("pairs", 1, 1..=MOST_TASKS / 2)?;
    let arrivals = ArrivalPlan::take(options)?;
    let log = LatencyLog::take(options)?;
    let tasks = TaskPlan::take_with_tasks(options, 2 * pairs)?;
    options.require_all_used()?;
    let default = if pattern == NetPattern::Stream { STREAM_SIZE } else { REQUEST_SIZE };
    let size = if size == 0 { default } else { size };
    let plan = NetPlan { protocol, pattern, size, pairs, arrivals };
    plan.check()?;
    let pairs = (0..pairs).map(|_| connect_pair(protocol, family)).collect::<io::Result<Vec<_>>>();
    let pairs = pairs.map_err(LoadError::system_error("connect a pair of sockets"))?;
    let counted = tasks.measure(&|task| {
        let (asking, answering) = &pairs[task.index / 2];
        let failed = LoadError::system_error("pass messages");
        match task.index % 2 {
            0 => plan.ask(task, asking.as_fd()).map_err(failed),
            _ => plan.answer(task, answering.as_fd()).map_err(failed),
        }
    })?;
    // The other side of each pair counts nothing.
    let counting = usize::from(pattern == NetPattern::Stream);
    let of_pairs = counted.operations.iter().skip(counting).step_by(2);
    let rates: Vec<f64> = of_pairs.map(|count| *count as f64 / counted.seconds).collect();
    let rate: f64 = rates.iter().sum();
    let mut times = RequestTimes::new()?;
    for report in &counted.reports {
        match plan.arrivals {
            Some(_) => times.merge_bytes(report),
            None => times.service.merge_bytes(report),
        }
    }
    log.write(counted.seconds, &times.tagged())?;
    // What arrives of a stream is counted in bytes; a transaction is a request and its response.
    let (operations, bytes) = match pattern {
        NetPattern::Stream => (rate / plan.size as f64, rate),
        NetPattern::RequestResponse => (rate, 2.0 * rate * plan.size as f64),
    };
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    let mut result = json!({
        "size": plan.size,
        "pairs": pairs.len(),
        "seconds": counted.seconds,
        "operations_per_second": operations,
        "bytes_per_second": bytes,
        "fairness": least / most,
        "latency": times.service.to_json(),
    });
    if let Some(arrivals) = &plan.arrivals {
        times.write_json(arrivals, &mut result);
    }
    Ok(result)
}

impl NetPlan {
    fn check(&self) -> Result<(), LoadError> {
        let most = if self.protocol == NetProtocol::Udp { LARGEST_DATAGRAM } else { LARGEST_MESSAGE };
        if self.size > most {
            let reason = format!("{} is too many; a message has at most {most} bytes", self.size);
            return Err(invalid_value_error("size", &reason));
        }
        if self.arrivals.is_some() && self.pattern == NetPattern::Stream {
            return Err(invalid_value_error("rate", "is one of requests, and a stream has none"));
        }
        Ok(())
    }

    /// The side that sends requests when they are due.
    fn ask_at_rate(&self, arrivals: &ArrivalPlan, task: &Task<'_>, socket: impl AsFd) -> io::Result<Vec<u8>> {
        let mut times = RequestTimes::new().map_err(io::Error::other)?;
        let mut buffer = vec![0; self.size];
        wake_exactly()?;
        task.begin();
        let time = TaskTime { task, began: Instant::now() };
        let ask = || {
            self.send_message(task, &socket, &buffer)?;
            let is_answered = self.receive_message(task, &socket, &mut buffer)?;
            if is_answered {
                task.count(1);
            }
            Ok(is_answered)
        };
        run_open_loop(&time, arrivals.schedule(task.index / 2, self.pairs), ask, &mut times)?;
        // The other side may be in its last wait.
        let _ = rustix::net::shutdown(&socket, Shutdown::Both);
        Ok(times.to_bytes())
    }

    /// The side that sends a stream, or requests.
    fn ask(&self, task: &Task<'_>, socket: impl AsFd) -> io::Result<Vec<u8>> {
        if let Some(arrivals) = &self.arrivals {
            return self.ask_at_rate(arrivals, task, socket);
        }
        let mut latencies = LatencyHistogram::new().map_err(io::Error::other)?;
        let mut buffer = vec![0; self.size];
        task.begin();
        while !task.is_stopped() {
            if self.pattern == NetPattern::Stream {
                // Whatever was sent of it: the receiver counts.
                wait_patiently(rustix::net::send(&socket, &buffer, SendFlags::NOSIGNAL))?;
                continue;
            }
            let start = Instant::now();
            self.send_message(task, &socket, &buffer)?;
            if !self.receive_message(task, &socket, &mut buffer)? {
                // A datagram was lost, or this is the end: another request.
                continue;
            }
            if task.is_measured() {
                latencies.record(start.elapsed());
            }
            task.count(1);
        }
        // The other side may be in its last wait.
        let _ = rustix::net::shutdown(&socket, Shutdown::Both);
        Ok(latencies.to_bytes())
    }

    /// The side that receives.
    fn answer(&self, task: &Task<'_>, socket: impl AsFd) -> io::Result<Vec<u8>> {
        let room = if self.pattern == NetPattern::Stream { RECEIVE_SIZE.max(self.size) } else { self.size };
        let mut buffer = vec![0; room];
        task.begin();
        while !task.is_stopped() {
            if self.pattern == NetPattern::Stream {
                match wait_patiently(rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty()))? {
                    Some((0, _)) => break,
                    Some((received, _)) => task.count(received as u64),
                    None => true,
                };
            } else if self.receive_message(task, &socket, &mut buffer)? {
                self.send_message(task, &socket, &buffer)?;
            }
        }
        let _ = rustix::net::shutdown(&socket, Shutdown::Both);
        Ok(Vec::new())
    }

    /// All of a message, or what there is of it at the end.
    fn send_message(&self, task: &Task<'_>, socket: impl AsFd, message: &[u8]) -> io::Result<()> {
        let mut rest = message;
        while !rest.is_empty() && !task.is_stopped() {
            if let Some(sent) = wait_patiently(rustix::net::send(&socket, rest, SendFlags::NOSIGNAL))? {
                rest = &rest[sent..];
            }
        }
        Ok(())
    }

    /// Whether a whole message has come; a datagram that does not come in a while is lost.
    fn receive_message(&self, task: &Task<'_>, socket: impl AsFd, message: &mut [u8]) -> io::Result<bool> {
        let mut received = 0;
        while received < message.len() {
            match wait_patiently(rustix::net::recv(&socket, &mut message[received..], RecvFlags::empty()))? {
                Some((0, _)) => return Ok(false),
                Some((bytes, _)) => received += bytes,
                None if task.is_stopped() || self.protocol == NetProtocol::Udp => return Ok(false),
                None => {}
            }
        }
        Ok(true)
    }
}

/// The clock and the end of a task.
struct TaskTime<'a> {
    task: &'a Task<'a>,
    began: Instant,
}

impl LoopTime for TaskTime<'_> {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn phase(&self) -> LoopPhase {
        match (self.task.is_stopped(), self.task.is_measured()) {
            (true, _) => LoopPhase::Stopped,
            (_, true) => LoopPhase::Measured,
            _ => LoopPhase::WarmUp,
        }
    }
}

/// None where there was nothing for a while, or a signal came; at the end, when the other side is gone, as well.
fn wait_patiently<T>(result: rustix::io::Result<T>) -> io::Result<Option<T>> {
    use rustix::io::Errno;
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::AGAIN | Errno::INTR | Errno::PIPE | Errno::CONNRESET | Errno::CONNREFUSED) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Two connected sockets: of the side that asks, and of the one that answers.
fn connect_pair(protocol: NetProtocol, family: AddressFamily) -> io::Result<(OwnedFd, OwnedFd)> {
    let local: SocketAddr = match family {
        AddressFamily::Ipv4 => (Ipv4Addr::LOCALHOST, 0).into(),
        AddressFamily::Ipv6 => (Ipv6Addr::LOCALHOST, 0).into(),
    };
    let (asking, answering): (OwnedFd, OwnedFd) = match protocol {
        NetProtocol::Tcp => {
            let listener = TcpListener::bind(local)?;
            let asking = TcpStream::connect(listener.local_addr()?)?;
            (asking.into(), listener.accept()?.0.into())
        }
        NetProtocol::Udp => {
            let (asking, answering) = (UdpSocket::bind(local)?, UdpSocket::bind(local)?);
            asking.connect(answering.local_addr()?)?;
            answering.connect(asking.local_addr()?)?;
            (asking.into(), answering.into())
        }
        NetProtocol::Unix => {
            let (asking, answering) = UnixStream::pair()?;
            (asking.into(), answering.into())
        }
    };
    for socket in [&asking, &answering] {
        set_socket_timeout(socket, Timeout::Recv, Some(PATIENCE))?;
        set_socket_timeout(socket, Timeout::Send, Some(PATIENCE))?;
    }
    Ok((asking, answering))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn measure(arguments: &[&str]) -> Result<serde_json::Value, LoadError> {
        let fixed = ["net", "--model", "threads", "--warm-up", "0"];
        let time = if arguments.contains(&"--time") { &[][..] } else { &["--time", "20ms"] };
        let all: Vec<OsString> = fixed.iter().chain(time).chain(arguments).map(Into::into).collect();
        measure_net(&mut BuiltinLoadArgs::parse(&all)?)
    }

    #[test]
    fn every_protocol_streams_and_answers() {
        for (protocol, _) in PROTOCOLS {
            for size in ["1", "3000"] {
                let arguments = ["--protocol", protocol, "--size", size, "--pairs", "2", "--pattern"];
                let stream = measure(&[&arguments[..], &["stream"]].concat()).unwrap();
                assert!(stream["bytes_per_second"].as_f64().unwrap() > 0.0, "{protocol}: {stream}");
                assert!(stream["latency"].is_null(), "{stream}");
                let asked = measure(&[&arguments[..], &["request-response"]].concat()).unwrap();
                assert!(asked["operations_per_second"].as_f64().unwrap() > 0.0, "{protocol}: {asked}");
                let [p50, p99] = ["p50_us", "p99_us"].map(|key| asked["latency"][key].as_f64().unwrap());
                assert!(p50 <= p99, "{asked}");
            }
        }
    }

    #[test]
    fn requests_that_come_at_a_rate_have_service_and_response_times() {
        for (protocol, _) in PROTOCOLS {
            let arguments = ["--protocol", protocol, "--pattern", "request-response", "--pairs", "2"];
            let rate = ["--rate", "1000", "--arrivals", "poisson", "--time", "100ms"];
            let result = measure(&[&arguments[..], &rate].concat()).unwrap();
            assert_eq!(result["offered_per_second"], 1000.0);
            let [service, response, delay] =
                ["latency", "response", "delay"].map(|key| result[key]["p50_us"].as_f64().unwrap());
            assert!(response >= service && response >= delay, "{result}");
            let counts = ["latency", "response"].map(|key| result[key]["count"].as_u64().unwrap());
            let overdue = result["overdue"].as_u64().unwrap();
            assert_eq!(counts[0] + overdue, counts[1], "{result}");
            // A hundred, unless the machine is busy when it begins.
            assert!(counts[1] + result["lost"].as_u64().unwrap() > 5, "{result}");
        }
    }

    #[test]
    fn impossible_parameters_are_named() {
        let error = |arguments: &[&str]| measure(arguments).unwrap_err().to_string();
        assert_eq!(
            error(&["--protocol", "udp", "--size", "64KiB"]),
            "--size: 65536 is too many; a message has at most 65507 bytes"
        );
        assert_eq!(
            error(&["--pattern", "stream", "--rate", "5"]),
            "--rate: is one of requests, and a stream has none"
        );
        assert_eq!(error(&["--pairs", "0"]), "--pairs: 0 is too few; at least 1");
        assert!(error(&["--tasks", "3"]).starts_with("--tasks: is not known here"));
    }
}
