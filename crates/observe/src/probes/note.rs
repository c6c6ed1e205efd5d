//! One note of `.note.stapsdt`, version 3: where a USDT probe is, its semaphore, its provider and name, and where its
//! arguments are. Owns the layout; what the arguments mean is `arguments`'.
//!
//! Source: <https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation>

use crate::words::read_u64_at;

/// The type of such notes.
pub(super) const KIND: u64 = 3;

/// A USDT probe as its note tells it: addresses as they were linked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UsdtNote {
    pub address: u64,
    /// where `.stapsdt.base` was when the note was written: prelinking moves it, and the addresses with it
    pub base: u64,
    /// 0: none
    pub semaphore: u64,
    pub provider: String,
    pub name: String,
    /// `8@%rbp -4@%eax`
    pub arguments: String,
}

impl UsdtNote {
    /// From a note's description, of a 64-bit little-endian file.
    pub(super) fn parse(description: &[u8]) -> Option<UsdtNote> {
        let word = |at: usize| read_u64_at(description, at * 8);
        let mut texts = description.get(24..)?.split(|byte| *byte == 0);
        let mut text = || Some(String::from_utf8_lossy(texts.next()?).into_owned());
        let (provider, name) = (text()?, text()?);
        let named = !provider.is_empty() && !name.is_empty();
        let arguments = text().unwrap_or_default();
        named.then_some(UsdtNote {
            address: word(0)?,
            base: word(1)?,
            semaphore: word(2)?,
            provider,
            name,
            arguments,
        })
    }
}
