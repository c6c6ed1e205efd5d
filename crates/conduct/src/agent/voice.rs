//! The speaking end of an agent's stream, shared by its threads: one whole frame at a time.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use perflab_model::{RunEvent, RunEventKind};

use crate::protocol::{AgentReport, ProtocolError, encode_frame, greeting_line};

/// Output is told in parts of so many bytes. In JSON each may take six.
const PART: usize = 512 << 10;

/// Says reports.
#[derive(Debug, Clone)]
pub(super) struct FramedReportWriter(Arc<Mutex<File>>);

impl FramedReportWriter {
    pub(super) fn new(writing: File) -> Self {
        FramedReportWriter(Arc::new(Mutex::new(writing)))
    }

    pub(super) fn write_greeting(&self) -> io::Result<()> {
        self.write_bytes(&greeting_line())
    }

    /// An error means that the host is gone.
    pub(super) fn write_report(&self, report: &AgentReport) -> io::Result<()> {
        self.write_bytes(&encode_frame(report).map_err(io::Error::other)?)
    }

    /// Tells an event: long output in parts, and of what fits into no frame at least that it happened.
    pub(super) fn write_event(&self, event: RunEvent) -> io::Result<()> {
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
