//! A process that outlives perflab by a moment, and ends what perflab was running when it is killed.
//!
//! PR_SET_PDEATHSIG would not do: it reaches the direct child only, dies with the thread that started the child, and has to be
//! asked for between fork and exec, where each measured time would carry the cost of copying perflab's page tables.

use std::io::{ErrorKind, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::descendants::ExecutionOwner;

/// Between two looks at a perflab that closed the pipe and lives: it has become `perflab undo`.
const ROUND: Duration = Duration::from_millis(20);

/// The guard of this process's executions; dropped, it goes and leaves everything alone.
#[derive(Debug)]
pub struct ExecutionGuard(Child);

impl ExecutionGuard {
    /// Starts `command`, which is to call [`guard_executions`] with the owner that is added to it as an argument.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(mut command: Command) -> std::io::Result<Self> {
        command.arg(ExecutionOwner::current().to_string());
        // It holds nothing of the user's: no folder, no terminal, no pipe.
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(ExecutionGuard(command.spawn()?))
    }
}

impl Drop for ExecutionGuard {
    fn drop(&mut self) {
        let farewell = self.0.stdin.take().map(|mut pipe| pipe.write_all(b"q"));
        if !matches!(farewell, Some(Ok(()))) {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

/// Waits until this perflab says on standard input that it ends, or is gone without; then ends what is left of its executions.
pub fn guard_executions(executor: &ExecutionOwner) {
    // Who kills perflab's whole group or closes its terminal does not mean us.
    let _ = rustix::process::setsid();
    let mut byte = [0];
    loop {
        match std::io::stdin().read(&mut byte) {
            Ok(0) => break,
            Ok(_) => return,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    while executor.is_living() {
        sleep(ROUND);
    }
    executor.end_executions();
}
