//! What a decoder is to the fuzzer: a name, and a function of any bytes.

/// A decoder under the name of its corpus.
#[derive(Debug, Clone, Copy)]
pub struct Decoder {
    /// What `fuzz/run` calls it.
    pub name: &'static str,
    /// Decodes any bytes.
    pub decode: fn(&[u8]),
}

/// The first byte chooses one of `all`; the rest is what it is given.
pub(crate) fn choose<'a, T>(all: &'a [T], bytes: &'a [u8]) -> Option<(&'a T, &'a [u8])> {
    let (first, rest) = bytes.split_first()?;
    Some((all.get(usize::from(*first) % all.len().max(1))?, rest))
}
