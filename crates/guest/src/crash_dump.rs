//! The memory of a guest whose kernel gave up, as an ELF core that gdb and crash(8) read.
//!
//! A guest that is debugged stays as it is when its kernel reboots or powers off (`-action shutdown=pause`). Whether it panicked is on
//! its console; if it did, its memory is written before QEMU ends.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use perflab_model::StopRequest;
use serde_json::json;

use crate::console_log::find_panic_in;
use crate::error::GuestError;
use crate::machine::GuestDebug;
use crate::qmp::QmpConnection;

/// How often QEMU is asked whether the guest still runs.
const LOOK: Duration = Duration::from_millis(100);

/// Waits for the end of a guest that is debugged.
#[derive(Debug)]
pub(crate) struct CrashWatch {
    thread: JoinHandle<Result<Option<PathBuf>, GuestError>>,
    end: StopRequest,
}

impl CrashWatch {
    /// Watches the guest of this console, with a monitor for nobody else at `socket`, on a thread of its own.
    ///
    /// # Errors
    /// QEMU's monitor does not answer.
    pub(crate) fn start(
        name: &str,
        debug: &GuestDebug,
        socket: &Path,
        console: &Path,
    ) -> Result<Self, GuestError> {
        let end = StopRequest::new();
        let monitor = QmpConnection::connect(name, socket, &end)?;
        let (debug, console, until) = (debug.clone(), console.to_owned(), end.clone());
        let thread = std::thread::spawn(move || watch_guest(monitor, &debug, &console, &until));
        Ok(CrashWatch { thread, end })
    }

    /// Ends the watch; where the dump is, if there is one.
    ///
    /// # Errors
    /// The kernel panicked, and its memory could not be written.
    pub(crate) fn finish(self) -> Result<Option<PathBuf>, GuestError> {
        self.end.request_stop();
        self.thread.join().unwrap_or(Ok(None))
    }
}

/// Until QEMU is gone, or nobody waits any more.
fn watch_guest(
    mut monitor: QmpConnection,
    debug: &GuestDebug,
    console: &Path,
    end: &StopRequest,
) -> Result<Option<PathBuf>, GuestError> {
    loop {
        // Whoever is gone has no status.
        let Ok(status) = monitor.execute("query-status") else { return Ok(None) };
        if status.get("status").and_then(serde_json::Value::as_str) == Some("shutdown") {
            break;
        }
        if end.is_requested() {
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
    let dumped = find_panic_in(console).map(|_| monitor.dump_memory(&debug.dump)).transpose();
    let _ = monitor.execute("quit");
    Ok(dumped?.map(|()| debug.dump.clone()))
}

impl QmpConnection {
    /// Writes the guest's memory with its page tables applied, which gdb needs, to a file that was not there.
    fn dump_memory(&mut self, path: &Path) -> Result<(), GuestError> {
        let arguments = json!({ "paging": true, "protocol": format!("file:{}", path.display()) });
        self.execute_slowly(&json!({ "execute": "dump-guest-memory", "arguments": arguments }))
    }
}
