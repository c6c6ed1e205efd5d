//! Bytes become operations: of chance here, of a fuzzer that looks for new paths in `fuzz/` at the root.

use slablist::ListShape;

use crate::{list_ops, set_ops};

/// Bytes being used up.
pub struct FuzzBytes<'a>(pub &'a [u8]);

impl FuzzBytes<'_> {
    pub fn next_byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn next_word(&mut self) -> Option<u16> {
        Some(u16::from(self.next_byte()?) << 8 | u16::from(self.next_byte()?))
    }

    /// Small enough that few operations reach every path.
    fn next_shape(&mut self) -> Option<ListShape> {
        let (bytes, fanout, small) = (self.next_byte()?, self.next_byte()?, self.next_byte()?);
        Some(ListShape::new(
            8 + usize::from(bytes % 72),
            4 + usize::from(fanout % 5),
            usize::from(small % 20),
        ))
    }

    fn next_policy(&mut self) -> Option<slablist::AnyReapPolicy> {
        let which = usize::from(self.next_byte()?) % set_ops::POLICIES.len();
        set_ops::POLICIES[which].parse().ok()
    }
}

/// The operations of these bytes on a set; panics where it is not as a `BTreeSet`.
pub fn fuzz_set(bytes: &[u8]) -> Option<()> {
    let mut bytes = FuzzBytes(bytes);
    let mut subject = set_ops::SetSubject::new(bytes.next_shape()?, bytes.next_policy()?);
    let keys = [40, 300, 2_000, 60_000][usize::from(bytes.next_byte()?) % 4];
    let mut turn = 0_u16;
    while let Some(op) = set_ops::SetOp::from_bytes(&mut bytes, keys) {
        subject.apply(op);
        turn = turn.wrapping_add(1);
        if turn.is_multiple_of(16) {
            subject.check_readers(turn.wrapping_mul(37) % keys);
        }
    }
    subject.check_all_readers();
    Some(())
}

/// The operations of these bytes on a positional list; panics where it is not as a `Vec`.
pub fn fuzz_list(bytes: &[u8]) -> Option<()> {
    let mut bytes = FuzzBytes(bytes);
    let mut subject = list_ops::ListSubject::new(bytes.next_shape()?, bytes.next_policy()?);
    while let Some(op) = list_ops::ListOp::from_bytes(&mut bytes) {
        subject.apply(op);
    }
    subject.check_all_readers();
    Some(())
}
