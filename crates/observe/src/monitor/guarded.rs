//! A monitor whose reads may block: of a file system that does not answer, of a process whose memory is held. It is read on
//! a thread of its own, and a read that takes too long is given up, so that no other monitor waits for it.
//!
//! The thread that is stuck stays until its read returns; the monitor is not opened again before.

use std::collections::BTreeSet;
use std::io::{Error, ErrorKind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use perflab_formats::kernel::KernelFile;
use perflab_model::{CellRow, Nanos, SeriesSchema};

use crate::error::ObserveError;
use crate::events::run_events::RunTracepoints;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::root::Root;
use crate::run_counters::RunCounters;

/// A read is given up after an interval, but not before this,
const SHORTEST: Duration = Duration::from_millis(50);

/// and no later than that.
const LONGEST: Duration = Duration::from_secs(1);

/// A monitor over a root.
type MonitorKey = (PathBuf, &'static str);

/// Those with a read that was given up and has not returned.
static STUCK: Mutex<BTreeSet<MonitorKey>> = Mutex::new(BTreeSet::new());

/// How a monitor is opened.
type OpenMonitor = fn(&MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError>;

/// What the thread answers: all rows of a reading.
type Answer = Result<Vec<CellRow>, ObserveError>;

struct GuardedMonitor {
    schema: SeriesSchema,
    source: &'static str,
    key: MonitorKey,
    limit: Duration,
    asks: Sender<()>,
    answers: Receiver<Answer>,
    /// Whether an answer was given up that is still to come.
    is_late: bool,
}

/// Opens a monitor on a thread of its own.
pub(crate) fn open_guarded(
    opening: &MonitorContext<'_>,
    open: OpenMonitor,
) -> Result<Box<dyn Monitor>, ObserveError> {
    let (file, root, interval) = (opening.file, opening.root.clone(), opening.interval);
    let key = (root.0.clone(), file.name);
    let failed = |source| ObserveError::read_failed(file.source, source);
    if lock_stuck().contains(&key) {
        let reason = "an earlier read of it has not returned yet";
        return Err(failed(Error::new(ErrorKind::TimedOut, reason)));
    }
    let (asks, asked) = channel();
    let (answer, answers) = channel();
    let (opened, schema) = channel();
    let of_thread = key.clone();
    let spawned = std::thread::Builder::new().name(format!("monitor {}", file.name)).spawn(move || {
        serve_monitor(open, file, &root, interval, &opened, &asked, &answer);
        lock_stuck().remove(&of_thread);
    });
    spawned.map_err(failed)?;
    let limit = Duration::from_nanos(interval.0).clamp(SHORTEST, LONGEST);
    // To open may take longer than to read: everything is looked at for the first time.
    let opened = schema.recv_timeout(LONGEST).or_else(|_| {
        lock_stuck().insert(key.clone());
        // The thread has not ended unless it answered by now.
        let answered = schema.try_recv();
        if answered.is_ok() {
            lock_stuck().remove(&key);
        }
        answered
    });
    let schema = opened.map_err(|_| failed(late_error(LONGEST)))??;
    Ok(Box::new(GuardedMonitor { schema, source: file.source, key, limit, asks, answers, is_late: false }))
}

/// The thread's whole life: it ends when nobody asks any more.
fn serve_monitor(
    open: OpenMonitor,
    file: &'static KernelFile,
    root: &Root,
    interval: Nanos,
    opened: &Sender<Result<SeriesSchema, ObserveError>>,
    asked: &Receiver<()>,
    answer: &Sender<Answer>,
) {
    let mut monitor = match open(&MonitorContext {
        file,
        root,
        interval,
        counters: &RunCounters::default(),
        events: &RunTracepoints::default(),
    }) {
        Ok(monitor) => monitor,
        Err(error) => return drop(opened.send(Err(error))),
    };
    if opened.send(Ok(monitor.schema().clone())).is_err() {
        return;
    }
    while asked.recv().is_ok() {
        let mut rows = Vec::new();
        if answer.send(monitor.read_rows(&mut rows).map(|()| rows)).is_err() {
            return;
        }
    }
}

fn lock_stuck() -> MutexGuard<'static, BTreeSet<MonitorKey>> {
    STUCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn late_error(limit: Duration) -> Error {
    let reason = format!("the read took longer than {} ms and was given up", limit.as_millis());
    Error::new(ErrorKind::TimedOut, reason)
}

impl Monitor for GuardedMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        let source_path = self.source;
        let failed = |source| ObserveError::read_failed(source_path, source);
        if !self.is_late {
            self.asks.send(()).map_err(|_| failed(ErrorKind::BrokenPipe.into()))?;
        }
        match self.answers.recv_timeout(self.limit) {
            // What comes too late is of another time: the next reading asks again.
            Ok(_) if std::mem::take(&mut self.is_late) => {
                lock_stuck().remove(&self.key);
                self.read_rows(rows)
            }
            Ok(answer) => {
                rows.extend(answer?);
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => {
                // The thread cannot end before this monitor is dropped: the entry is removed after it was made.
                lock_stuck().insert(self.key.clone());
                self.is_late = true;
                Err(failed(late_error(self.limit)))
            }
            Err(RecvTimeoutError::Disconnected) => Err(failed(ErrorKind::BrokenPipe.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use perflab_formats::kernel::loadavg::LOADAVG;

    use super::*;

    /// Blocks while there is a file `block` in its root.
    struct BlockingMonitor(SeriesSchema, Root);

    impl Monitor for BlockingMonitor {
        fn schema(&self) -> &SeriesSchema {
            &self.0
        }

        fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
            while self.1.path("/block").exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            rows.push(CellRow::new());
            Ok(())
        }
    }

    fn open_blocking(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
        Ok(Box::new(BlockingMonitor(opening.declared_schema(), opening.root.clone())))
    }

    #[test]
    fn a_read_that_blocks_is_given_up_and_not_begun_twice() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root(directory.path().into());
        let context = MonitorContext {
            file: &LOADAVG,
            root: &root,
            interval: Nanos(60_000_000),
            counters: &RunCounters::default(),
            events: &RunTracepoints::default(),
        };
        let mut monitor = open_guarded(&context, open_blocking).unwrap();
        let mut rows = Vec::new();
        monitor.read_rows(&mut rows).unwrap();
        assert_eq!(rows.len(), 1);
        std::fs::write(root.path("/block"), "").unwrap();
        let given_up = monitor.read_rows(&mut rows).unwrap_err().to_string();
        assert_eq!(given_up, "/proc/loadavg: the read took longer than 60 ms and was given up");
        drop(monitor);
        let refused = open_guarded(&context, open_blocking).map(drop).unwrap_err().to_string();
        assert_eq!(refused, "/proc/loadavg: an earlier read of it has not returned yet");
        std::fs::remove_file(root.path("/block")).unwrap();
        // The thread ends once its read has returned.
        let opened = (0..400).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            open_guarded(&context, open_blocking).ok()
        });
        assert!(opened.is_some_and(|mut monitor| monitor.read_rows(&mut rows).is_ok()));
    }
}
