//! A recording of what one process, which somebody else started, and its descendants bring into the page cache. Made ready
//! beforehand, because buffers take tens of milliseconds to make, and begun within one while the process is held.

use std::time::Duration;

use perflab_model::io::{IoRecording, IoTraceSummary};

use super::IoTraceError;
use super::recorder::{
    IoRecordDecoder, PAGES, TraceInstanceRole, TraceReader, create_trace_instance, read_event_formats,
};
use super::tracefs::{TraceFs, TraceInstance};

/// Raw bytes that are kept of a recording, enough for 300,000 stretches of files; what comes later is left out.
const MOST: usize = 16 << 20;

/// Buffers that wait for a process.
#[derive(Debug)]
pub struct ProcessIoTracer {
    pages: TraceInstance,
    decoder: IoRecordDecoder,
    missing: Vec<String>,
}

impl ProcessIoTracer {
    /// Makes buffers, which wait.
    ///
    /// # Errors
    /// Why nothing can be traced, with what to do.
    pub fn new() -> Result<Self, IoTraceError> {
        let tracefs = TraceFs::find()?;
        let (mut described, missing) = read_event_formats(&tracefs)?;
        described.retain(|(event, _)| event.name == PAGES);
        let pages = create_trace_instance(&tracefs, "follow", TraceInstanceRole::Pages, &described)?;
        pages.set("options/event-fork", "1")?;
        Ok(ProcessIoTracer { pages, decoder: IoRecordDecoder::new(described, None), missing })
    }

    /// Begins to record what this process brings, and those that it makes.
    ///
    /// # Errors
    /// A process that is gone.
    pub fn start(self, process: u32) -> Result<ProcessIoRecording, IoTraceError> {
        self.pages.set("set_event_pid", &process.to_string())?;
        let begun = crate::monotonic_now();
        self.pages.set("tracing_on", "1")?;
        let reader = TraceReader::start(&[&self.pages], Some(MOST))?;
        let told = IoTraceSummary { begun, missing: self.missing, tree: true, ..IoTraceSummary::default() };
        Ok(ProcessIoRecording { pages: self.pages, decoder: self.decoder, reader, summary: told })
    }
}

/// A recording that goes on.
#[derive(Debug)]
pub struct ProcessIoRecording {
    pages: TraceInstance,
    decoder: IoRecordDecoder,
    reader: TraceReader,
    summary: IoTraceSummary,
}

impl ProcessIoRecording {
    /// Waits until every process that was followed has ended, or `most` is over, or `given_up` says so.
    pub fn wait_for_exit(&self, most: Duration, given_up: impl Fn() -> bool) {
        const GLANCE: Duration = Duration::from_millis(50);
        let begun = std::time::Instant::now();
        let lives = || self.pages.read("set_event_pid").is_ok_and(|pids| !pids.trim().is_empty());
        while begun.elapsed() < most && !given_up() && lives() {
            std::thread::sleep(GLANCE);
        }
    }

    /// Ends it, and returns what was seen. Files are not looked up yet: see [`identify`](super::resolve_files).
    ///
    /// # Errors
    /// A reader that died.
    pub fn stop(mut self) -> Result<IoRecording, IoTraceError> {
        self.pages.set("tracing_on", "0")?;
        self.summary.ended = crate::monotonic_now();
        let (pages, cost) = self.reader.stop()?;
        self.summary.cost = cost;
        self.summary.lost = self.pages.lost_events();
        Ok(IoRecording { events: self.decoder.decode_pages(&pages), files: Vec::new(), told: self.summary })
    }
}
