//! A command that runs beside an iteration, again and again until the iteration is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::background_execution::BackgroundExecution;
use crate::error::WorkloadError;
use crate::execution::ExecutionEnd;
use crate::invocation::Invocation;

/// Between two looks at whether it has ended.
const ROUND: Duration = Duration::from_millis(2);

/// A command that goes on beside an iteration. Dropped, it is ended.
#[derive(Debug)]
pub struct BesideLoop {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<BesideRecord>>,
}

/// What a command did beside an iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct BesideRecord {
    /// How often it came to its end.
    pub completed: u64,
    /// How long it was there.
    pub time: Duration,
    /// Why it was not there all the while: it failed, or could not be started again.
    pub failure: Option<String>,
}

impl BesideLoop {
    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(invocation: Invocation, environment: Vec<(String, String)>) -> Result<Self, WorkloadError> {
        let first = BackgroundExecution::start(&invocation, &environment, None)?;
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = thread::spawn(move || repeat_until(&seen, first, &invocation, &environment));
        Ok(BesideLoop { over, thread: Some(thread) })
    }

    /// Ends it, and says what it did.
    pub fn stop(mut self) -> Option<BesideRecord> {
        self.end()
    }

    fn end(&mut self) -> Option<BesideRecord> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take()?.join().ok()
    }
}

impl Drop for BesideLoop {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts it again whenever it has ended well, until it is over.
fn repeat_until(
    over: &AtomicBool,
    first: BackgroundExecution,
    invocation: &Invocation,
    environment: &[(String, String)],
) -> BesideRecord {
    let begun = Instant::now();
    let (mut running, mut completed) = (first, 0);
    let failure = loop {
        if over.load(Ordering::Relaxed) {
            running.stop(Duration::ZERO);
            break None;
        }
        match running.find_end() {
            None => thread::sleep(ROUND),
            Some(ExecutionEnd::Exit { code: 0 }) => {
                completed += 1;
                match BackgroundExecution::start(invocation, environment, None) {
                    Ok(next) => running = next,
                    Err(error) => break Some(error.to_string()),
                }
            }
            Some(_) => break running.describe_end(),
        }
    };
    BesideRecord { completed, time: begun.elapsed(), failure }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invocation::invoke_script;

    #[test]
    fn it_is_started_again_until_it_is_over() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let script = format!("echo turn >> {}", file.path().display());
        let running = BesideLoop::start(invoke_script(&script), Vec::new()).unwrap();
        let turns = || std::fs::read_to_string(file.path()).unwrap().lines().count();
        while turns() < 3 {
            thread::sleep(ROUND);
        }
        let record = running.stop().unwrap();
        assert!(record.completed >= 2 && record.failure.is_none(), "{record:?}");
        let after = turns();
        thread::sleep(10 * ROUND);
        assert_eq!(turns(), after);
    }

    #[test]
    fn one_that_fails_says_why() {
        let running = BesideLoop::start(invoke_script("echo broken >&2; exit 2"), Vec::new()).unwrap();
        while !running.thread.as_ref().unwrap().is_finished() {
            thread::sleep(ROUND);
        }
        assert_eq!(running.stop().unwrap().failure.as_deref(), Some("exited with code 2: broken"));
    }
}
