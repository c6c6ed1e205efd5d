//! QEMU's monitor (one JSON object a line over its socket): asking, quitting, pinning virtual processors to host
//! CPUs.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use perflab_model::StopRequest;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::{Value, json};

use crate::error::GuestError;
use crate::machine::GuestMachine;

/// A healthy QEMU answers within milliseconds, a starved one takes its time.
const PATIENCE: Duration = Duration::from_secs(20);

/// The same where it writes the guest's memory to a file.
const SLOW: Duration = Duration::from_secs(1800);

/// How often a wish to stop is looked for while it does not.
const LOOK: Duration = Duration::from_millis(200);

/// Bytes of an answer: more processors than anybody has fit into it.
const LONGEST_LINE: u64 = 4 << 20;

/// A connection to it.
#[derive(Debug)]
pub(crate) struct QmpConnection {
    name: String,
    stream: BufReader<UnixStream>,
    stop: StopRequest,
    patience: Duration,
}

impl QmpConnection {
    /// Connects and greets. Who wishes to `stop` does not wait for an answer.
    pub(crate) fn connect(
        name: &str,
        socket: &Path,
        stop: &StopRequest,
    ) -> Result<QmpConnection, GuestError> {
        let failed =
            |error: std::io::Error| GuestError::Monitor { name: name.into(), reason: error.to_string() };
        let stream = UnixStream::connect(socket).map_err(failed)?;
        stream.set_read_timeout(Some(LOOK)).map_err(failed)?;
        let mut monitor = QmpConnection {
            name: name.into(),
            stream: BufReader::new(stream),
            stop: stop.clone(),
            patience: PATIENCE,
        };
        monitor.read_message()?;
        monitor.execute("qmp_capabilities")?;
        Ok(monitor)
    }

    /// Runs one command without arguments; its answer.
    pub(crate) fn execute(&mut self, command: &str) -> Result<Value, GuestError> {
        self.execute_json(&json!({ "execute": command }))
    }

    /// Runs one line as a person would type it at the monitor; what it prints.
    pub(crate) fn execute_line(&mut self, line: &str) -> Result<String, GuestError> {
        let arguments = json!({ "command-line": line });
        let said =
            self.execute_json(&json!({ "execute": "human-monitor-command", "arguments": arguments }))?;
        Ok(said.as_str().unwrap_or_default().to_owned())
    }

    /// Runs a command that works through the guest's memory.
    pub(crate) fn execute_slowly(&mut self, command: &Value) -> Result<(), GuestError> {
        self.patience = SLOW;
        let done = self.execute_json(command);
        self.patience = PATIENCE;
        done.map(drop)
    }

    fn execute_json(&mut self, command: &Value) -> Result<Value, GuestError> {
        let text = format!("{command}\n");
        self.stream
            .get_mut()
            .write_all(text.as_bytes())
            .map_err(|error| self.connection_error(&error.to_string()))?;
        loop {
            let answer = self.read_message()?;
            if let Some(error) = answer.get("error") {
                return Err(
                    self.connection_error(error.get("desc").and_then(Value::as_str).unwrap_or("it refused"))
                );
            }
            if let Some(value) = answer.get("return") {
                return Ok(value.clone());
            }
        }
    }

    /// The threads of the virtual processors, in order.
    fn processor_threads(&mut self) -> Result<Vec<i32>, GuestError> {
        let answer = self.execute("query-cpus-fast")?;
        let list = answer.as_array().cloned().unwrap_or_default();
        let number = |one: &Value, key: &str| one.get(key).and_then(Value::as_i64);
        let mut threads: Vec<(i64, i64)> =
            list.iter().filter_map(|one| number(one, "cpu-index").zip(number(one, "thread-id"))).collect();
        threads.sort_unstable();
        Ok(threads.into_iter().filter_map(|(_, thread)| i32::try_from(thread).ok()).collect())
    }

    fn read_message(&mut self) -> Result<Value, GuestError> {
        let begun = Instant::now();
        let mut text = Vec::new();
        let mut bounded = std::io::Read::take(&mut self.stream, LONGEST_LINE);
        // What came of a line before the time was over is in the text already.
        while let Err(error) = bounded.read_until(b'\n', &mut text) {
            match error.kind() {
                _ if self.stop.is_requested() => return Err(GuestError::Stopped { name: self.name.clone() }),
                ErrorKind::WouldBlock | ErrorKind::TimedOut if begun.elapsed() < self.patience => {}
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    return Err(self.connection_error(&format!(
                        "it gave no answer within {} s",
                        self.patience.as_secs()
                    )));
                }
                _ => return Err(self.connection_error(&error.to_string())),
            }
        }
        serde_json::from_slice(&text).map_err(|_| self.connection_error("it hung up"))
    }

    fn connection_error(&self, reason: &str) -> GuestError {
        GuestError::Monitor { name: self.name.clone(), reason: reason.into() }
    }
}

/// Pins each virtual processor's thread to its CPU, round-robin where there are fewer CPUs than processors.
pub(crate) fn pin_processors(machine: &GuestMachine, monitor: &mut QmpConnection) -> Result<(), GuestError> {
    let Some(last) = machine.pin.len().checked_sub(1) else { return Ok(()) };
    let refused = |reason: String| GuestError::Monitor { name: machine.name.clone(), reason };
    for (index, thread) in monitor.processor_threads()?.into_iter().enumerate() {
        let Some(cpu) = machine.pin.get(index % (last + 1)) else { continue };
        let mut set = CpuSet::new();
        if *cpu as usize >= CpuSet::MAX_CPU {
            return Err(refused(format!("there is no CPU {cpu}")));
        }
        set.set(*cpu as usize);
        sched_setaffinity(Pid::from_raw(thread), &set)
            .map_err(|error| refused(format!("cannot pin processor {index} to CPU {cpu}: {error}")))?;
    }
    Ok(())
}
