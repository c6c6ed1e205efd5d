//! What a process says on standard error, kept within bounds: the last of it.

use std::io::Read;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes kept.
const MOST: usize = 64 << 10;

/// Listens to a child's standard error on a thread of its own, which ends with the stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct StderrTail(Arc<Mutex<Vec<u8>>>);

impl StderrTail {
    /// Listens to `child`, whose standard error is a pipe.
    pub(crate) fn of_child(child: &mut Child) -> Self {
        let words = StderrTail::default();
        if let Some(mut stderr) = child.stderr.take() {
            let heard = words.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = stderr.read(&mut buffer) {
                    heard.append(buffer.get(..length).unwrap_or_default());
                }
            });
        }
        words
    }

    fn append(&self, bytes: &[u8]) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.extend_from_slice(bytes);
        let over = held.len().saturating_sub(MOST);
        held.drain(..over);
    }

    /// What was said so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}
