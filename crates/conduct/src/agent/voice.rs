//! The speaking end of an agent's stream, shared by its threads: one whole frame at a time.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use perflab_model::{Event, What};

use crate::protocol::{ProtocolError, Report, encode, greeting};

/// Output is told in parts of so many bytes. In JSON each may take six.
const PART: usize = 512 << 10;

/// Says reports.
#[derive(Debug, Clone)]
pub(super) struct Voice(Arc<Mutex<File>>);

impl Voice {
    pub(super) fn new(writing: File) -> Self {
        Voice(Arc::new(Mutex::new(writing)))
    }

    pub(super) fn greet(&self) -> io::Result<()> {
        self.write(&greeting())
    }

    /// An error means that the host is gone.
    pub(super) fn say(&self, report: &Report) -> io::Result<()> {
        self.write(&encode(report).map_err(io::Error::other)?)
    }

    /// Tells an event: long output in parts, and of what fits into no frame at least that it happened.
    pub(super) fn tell(&self, event: Event) -> io::Result<()> {
        if let What::Output { slot, name, text } = &event.what {
            for part in parts(text) {
                let what = What::Output { slot: *slot, name: name.clone(), text: part.into() };
                self.say(&Report::Event(Event::new(event.at, what)))?;
            }
            return Ok(());
        }
        let at = event.at;
        match encode(&Report::Event(event)) {
            Ok(bytes) => self.write(&bytes),
            Err(ProtocolError::TooLarge { size }) => {
                let message = format!("an event of {size} bytes was left out: it fits into no frame");
                let advice = "record less at a time".into();
                self.say(&Report::Event(Event::new(at, What::Warning { message, advice })))
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut writing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writing.write_all(bytes)?;
        writing.flush()
    }
}

/// A text in parts of at most [`PART`] bytes, cut between characters.
fn parts(text: &str) -> impl Iterator<Item = &str> {
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
        let parts: Vec<&str> = parts(&text).collect();
        assert!(parts.len() > 1 && parts.iter().all(|part| part.len() <= PART));
        assert_eq!(parts.concat(), text);
        assert_eq!(super::parts("").count(), 0);
    }
}
