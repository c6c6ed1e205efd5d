//! The first line of either side. It names the version before anything depends on it, and what comes before it (a
//! login's greeting over ssh, a kernel's last words on a port) is skipped.

use super::ProtocolError;

/// Version of the protocol. Both sides must have the same: they are the same binary.
pub const VERSION: u32 = 1;

const HEAD: &[u8] = b"\nperflab-agent/";
/// What may come before a greeting.
const PATIENCE: usize = 64 << 10;
/// Digits of a version.
const DIGITS: usize = 9;

/// The line itself. It begins with a line end, so that it stands alone whatever was printed before.
pub fn greeting() -> Vec<u8> {
    format!("\nperflab-agent/{VERSION}\n").into_bytes()
}

/// Looks for the other side's greeting.
#[derive(Debug, Default)]
pub struct Greeter {
    seen: Vec<u8>,
}

impl Greeter {
    /// Takes what came. Once the greeting was in it: what came after it, which belongs to the frames.
    ///
    /// # Errors
    /// Another version, or too much without a greeting.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, ProtocolError> {
        self.seen.extend_from_slice(bytes);
        let begin = self.seen.windows(HEAD.len()).position(|window| window == HEAD);
        let version = begin.and_then(|begin| self.seen.get(begin + HEAD.len()..));
        let end = version.and_then(|text| text.iter().position(|byte| *byte == b'\n'));
        match version.zip(end) {
            Some((text, end)) => self.check(text.get(..end), text.get(end + 1..)).map(Some),
            None if self.seen.len() > PATIENCE => Err(self.no_greeting()),
            None => Ok(None),
        }
    }

    fn check(&self, version: Option<&[u8]>, rest: Option<&[u8]>) -> Result<Vec<u8>, ProtocolError> {
        let text =
            version.filter(|text| text.len() <= DIGITS).and_then(|text| std::str::from_utf8(text).ok());
        match text.and_then(|text| text.parse().ok()) {
            Some(VERSION) => Ok(rest.unwrap_or_default().to_vec()),
            Some(theirs) => Err(ProtocolError::Version { theirs }),
            None => Err(self.no_greeting()),
        }
    }

    fn no_greeting(&self) -> ProtocolError {
        let beginning = self.seen.get(..self.seen.len().min(80)).unwrap_or_default();
        let beginning = String::from_utf8_lossy(beginning).into_owned();
        ProtocolError::NoGreeting { bytes: self.seen.len(), beginning }
    }
}
