//! Frames: four bytes of length, little-endian, then as many bytes of JSON.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ProtocolError;

/// The largest frame, in bytes. Whoever has more to say says it in parts.
pub const MAX_FRAME_BYTES: usize = 4 << 20;

const HEAD: usize = 4;

/// A message as bytes.
///
/// # Errors
/// It is larger than [`MAX_FRAME_BYTES`], or no JSON can be made of it.
pub fn encode_frame<T: Serialize>(message: &T) -> Result<Vec<u8>, ProtocolError> {
    let mut bytes = vec![0; HEAD];
    serde_json::to_writer(&mut bytes, message)
        .map_err(|error| ProtocolError::Garbled { size: 0, reason: error.to_string() })?;
    let size = bytes.len() - HEAD;
    let length = u32::try_from(size).ok().filter(|_| size <= MAX_FRAME_BYTES);
    let length = length.ok_or(ProtocolError::TooLarge { size })?;
    bytes.splice(..HEAD, length.to_le_bytes());
    Ok(bytes)
}

/// Takes messages of one kind out of a stream. Never holds more than one frame and what was given last.
#[derive(Debug)]
pub struct FrameDecoder<T> {
    held: Vec<u8>,
    taken: usize,
    kind: PhantomData<T>,
}

impl<T> Default for FrameDecoder<T> {
    fn default() -> Self {
        FrameDecoder { held: Vec::new(), taken: 0, kind: PhantomData }
    }
}

impl<T: DeserializeOwned> FrameDecoder<T> {
    /// Takes what came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.drain(..self.taken);
        self.taken = 0;
        self.held.extend_from_slice(bytes);
    }

    /// The next whole message, if there is one.
    ///
    /// # Errors
    /// A frame that is too large or not understood: nothing after it can be trusted.
    pub fn next_message(&mut self) -> Result<Option<T>, ProtocolError> {
        let waiting = self.held.get(self.taken..).unwrap_or_default();
        let Some((head, rest)) = waiting.split_first_chunk::<HEAD>() else { return Ok(None) };
        let size = u32::from_le_bytes(*head) as usize;
        if size > MAX_FRAME_BYTES {
            return Err(ProtocolError::TooLarge { size });
        }
        let Some(body) = rest.get(..size) else { return Ok(None) };
        let message = serde_json::from_slice(body)
            .map_err(|error| ProtocolError::Garbled { size, reason: error.to_string() })?;
        self.taken += HEAD + size;
        Ok(Some(message))
    }
}
