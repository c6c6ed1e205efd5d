//! The first line of either side. It names the version before anything depends on it, and what comes before it (a
//! login's greeting over ssh, a kernel's last words on a port) is skipped.

use super::ProtocolError;

/// Version of the protocol. Both sides must have the same: they are the same binary.
pub const PROTOCOL_VERSION: u32 = 1;

const GREETING_START: &[u8] = b"\nperflab-agent/";
/// What may come before a greeting.
const MAX_BYTES_BEFORE_GREETING: usize = 64 << 10;
/// Digits of a version.
const DIGITS: usize = 9;

/// The line itself. It begins with a line end, so that it stands alone whatever was printed before.
pub fn greeting_line() -> Vec<u8> {
    format!("\nperflab-agent/{PROTOCOL_VERSION}\n").into_bytes()
}

/// Looks for the other side's greeting.
#[derive(Debug, Default)]
pub struct GreetingParser {
    seen: Vec<u8>,
}

impl GreetingParser {
    /// Takes what came. Once the greeting was in it: what came after it, which belongs to the frames.
    ///
    /// # Errors
    /// Another version, or too much without a greeting.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, ProtocolError> {
        self.seen.extend_from_slice(bytes);
        let begin = self.seen.windows(GREETING_START.len()).position(|window| window == GREETING_START);
        let version = begin.and_then(|begin| self.seen.get(begin + GREETING_START.len()..));
        let end = version.and_then(|text| text.iter().position(|byte| *byte == b'\n'));
        match version.zip(end) {
            Some((text, end)) => self.check_version(text.get(..end), text.get(end + 1..)).map(Some),
            None if self.seen.len() > MAX_BYTES_BEFORE_GREETING => Err(self.no_greeting_error()),
            None => Ok(None),
        }
    }

    fn check_version(&self, version: Option<&[u8]>, rest: Option<&[u8]>) -> Result<Vec<u8>, ProtocolError> {
        let text =
            version.filter(|text| text.len() <= DIGITS).and_then(|text| std::str::from_utf8(text).ok());
        match text.and_then(|text| text.parse().ok()) {
            Some(PROTOCOL_VERSION) => Ok(rest.unwrap_or_default().to_vec()),
            Some(theirs) => Err(ProtocolError::Version { theirs }),
            None => Err(self.no_greeting_error()),
        }
    }

    fn no_greeting_error(&self) -> ProtocolError {
        let beginning = self.seen.get(..self.seen.len().min(80)).unwrap_or_default();
        let beginning = String::from_utf8_lossy(beginning).into_owned();
        ProtocolError::NoGreeting { bytes: self.seen.len(), beginning }
    }
}
