//! An agent's reports as frames on its stream to the host.
//!
//! The sending end of the stream is shared by the agent's threads, one whole frame at a time. What is too long for
//! a frame goes in parts: stacks, output, the files that tracers wrote.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use data_encoding::BASE64;
use perflab_model::{Bytes, RunEvent, RunEventKind, describe_error_chain};

use crate::agent_worker::{ReportSink, WorkerReport};
use crate::error::ConductError;
use crate::protocol::{
    AgentReport, ProtocolError, TraceFilePart, encode_frame, greeting_line, largest_trace,
};

/// Frames, stacks and samples in a message, a good hundred bytes each: far below what a frame may hold.
const BATCH: usize = 8192;

/// The reports of a run: what its executor sends as events, and what its worker reports.
pub(crate) struct FramedReports {
    pub(crate) writer: FramedReportWriter,
    /// What happened and was not sent yet.
    pub(crate) events: Receiver<RunEvent>,
}

impl ReportSink for FramedReports {
    fn report(&self, report: WorkerReport) {
        self.events.try_iter().for_each(|event| self.send_event(event));
        match report {
            WorkerReport::Changed(changes) => changes.into_iter().for_each(|what| self.send_stamped(what)),
            WorkerReport::Reached { point, .. } => self.send_report(&AgentReport::Reached(point)),
            // Its host ends all the same: nobody waits for an iteration that it stopped.
            WorkerReport::Unbegun { .. } => {}
            WorkerReport::Failed(error) => self.send_report(&AgentReport::Refused(error_reasons(&error))),
        }
    }
}

impl FramedReports {
    /// Sends what happens now.
    pub(crate) fn send_stamped(&self, what: RunEventKind) {
        self.send_event(RunEvent::new(perflab_observe::monotonic_now(), what));
    }

    /// Whoever does not listen any more is noticed by the listening thread.
    fn send_report(&self, report: &AgentReport) {
        let _ = self.writer.write_report(report);
    }

    fn send_event(&self, event: RunEvent) {
        let RunEvent { at, target, what } = event;
        let batch = match what {
            RunEventKind::Stacks(batch) => batch,
            RunEventKind::Traced { slot, tracer, file } => {
                if let Err(error) = self.writer.write_trace_file(slot, &tracer, &file) {
                    let message = format!("the trace of {tracer} in iteration {slot} was left out: {error}");
                    let advice =
                        "trace less at a time, and see that the target has room for temporary files".into();
                    self.send_stamped(RunEventKind::Warning { message, advice });
                }
                return;
            }
            what => {
                let _ = self.writer.write_event(RunEvent { at, target, what });
                return;
            }
        };
        for part in batch.split(BATCH) {
            let what = RunEventKind::Stacks(Box::new(part));
            let _ = self.writer.write_event(RunEvent { at, target, what });
        }
    }
}

/// What went wrong, each in one line with its causes.
pub(crate) fn error_reasons(error: &ConductError) -> Vec<String> {
    if let ConductError::Refused(list) = error {
        return list.iter().map(ToString::to_string).collect();
    }
    vec![describe_error_chain(error)]
}

/// Output is sent in parts of this many bytes. In JSON each byte may take six.
const PART: usize = 512 << 10;

/// Says reports.
#[derive(Debug, Clone)]
pub(crate) struct FramedReportWriter(Arc<Mutex<File>>);

impl FramedReportWriter {
    pub(crate) fn new(writing: File) -> Self {
        FramedReportWriter(Arc::new(Mutex::new(writing)))
    }

    pub(crate) fn write_greeting(&self) -> io::Result<()> {
        self.write_bytes(&greeting_line())
    }

    /// An error means that the host is gone.
    pub(crate) fn write_report(&self, report: &AgentReport) -> io::Result<()> {
        self.write_bytes(&encode_frame(report).map_err(io::Error::other)?)
    }

    /// Sends a tracer's file in parts, and removes it.
    fn write_trace_file(&self, slot: u32, tracer: &str, path: &Path) -> io::Result<()> {
        let file = File::open(path)?;
        let (length, most) = (Bytes(file.metadata()?.len()), largest_trace(tracer));
        // What stays costs room and nothing else.
        let _ = std::fs::remove_file(path);
        if length > most {
            return Err(io::Error::other(format!("it holds {length}, and {most} may be sent")));
        }
        loop {
            let mut part = Vec::with_capacity(PART);
            (&file).take(PART as u64).read_to_end(&mut part)?;
            let last = part.len() < PART;
            let bytes = BASE64.encode(&part);
            let part = TraceFilePart { slot, tracer: tracer.to_owned(), bytes, last };
            self.write_report(&AgentReport::TraceFile(part))?;
            if last {
                return Ok(());
            }
        }
    }

    /// Sends the kernel's symbols in parts.
    pub(crate) fn write_kernel_symbols(&self, text: &str) -> io::Result<()> {
        let mut parts = split_text(text).peekable();
        while let Some(part) = parts.next() {
            let last = parts.peek().is_none();
            self.write_report(&AgentReport::KernelSymbols { text: part.into(), last })?;
        }
        Ok(())
    }

    /// Sends an event: long output in parts, and of what fits into no frame at least that it happened.
    pub(crate) fn write_event(&self, event: RunEvent) -> io::Result<()> {
        if let RunEventKind::Output { slot, name, text } = &event.what {
            for part in split_text(text) {
                let what = RunEventKind::Output { slot: *slot, name: name.clone(), text: part.into() };
                self.write_report(&AgentReport::Event(RunEvent::new(event.at, what)))?;
            }
            return Ok(());
        }
        let at = event.at;
        match encode_frame(&AgentReport::Event(event)) {
            Ok(bytes) => self.write_bytes(&bytes),
            Err(ProtocolError::TooLarge { size }) => {
                let message = format!("an event of {size} bytes was left out: it fits into no frame");
                let advice = "record less at a time".into();
                self.write_report(&AgentReport::Event(RunEvent::new(
                    at,
                    RunEventKind::Warning { message, advice },
                )))
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn write_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let mut writing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writing.write_all(bytes)?;
        writing.flush()
    }
}

/// A text in parts of at most [`PART`] bytes, cut between characters.
fn split_text(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = (0..=PART.min(rest.len())).rev().find(|end| rest.is_char_boundary(*end)).unwrap_or(0);
        let (part, left) = rest.split_at_checked(end).filter(|(part, _)| !part.is_empty())?;
        rest = left;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_the_whole_and_each_fits() {
        let text = "é".repeat(PART);
        let parts: Vec<&str> = split_text(&text).collect();
        assert!(parts.len() > 1 && parts.iter().all(|part| part.len() <= PART));
        assert_eq!(parts.concat(), text);
        assert_eq!(super::split_text("").count(), 0);
    }
}
