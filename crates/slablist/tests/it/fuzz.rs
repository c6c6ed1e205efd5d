//! Bytes become operations: of chance here, of a fuzzer that looks for new paths in `fuzz/` at the root.

use slablist::Shape;

use crate::{list_ops, set_ops};

/// Bytes being used up.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn word(&mut self) -> Option<u16> {
        Some(u16::from(self.byte()?) << 8 | u16::from(self.byte()?))
    }

    /// Small enough that few operations reach every path.
    fn shape(&mut self) -> Option<Shape> {
        let (bytes, fanout, small) = (self.byte()?, self.byte()?, self.byte()?);
        Some(Shape::new(8 + usize::from(bytes % 72), 4 + usize::from(fanout % 5), usize::from(small % 20)))
    }

    fn policy(&mut self) -> Option<slablist::Policy> {
        let which = usize::from(self.byte()?) % set_ops::POLICIES.len();
        set_ops::POLICIES[which].parse().ok()
    }
}

/// The operations of these bytes on a set; panics where it is not as a `BTreeSet`.
pub fn set(bytes: &[u8]) -> Option<()> {
    let mut bytes = Bytes(bytes);
    let mut subject = set_ops::Subject::new(bytes.shape()?, bytes.policy()?);
    let keys = [40, 300, 2_000, 60_000][usize::from(bytes.byte()?) % 4];
    let mut turn = 0_u16;
    while let Some(op) = set_ops::Op::of(&mut bytes, keys) {
        subject.apply(op);
        turn = turn.wrapping_add(1);
        if turn.is_multiple_of(16) {
            subject.same(turn.wrapping_mul(37) % keys);
        }
    }
    subject.end();
    Some(())
}

/// The operations of these bytes on a positional list; panics where it is not as a `Vec`.
pub fn list(bytes: &[u8]) -> Option<()> {
    let mut bytes = Bytes(bytes);
    let mut subject = list_ops::Subject::new(bytes.shape()?, bytes.policy()?);
    while let Some(op) = list_ops::Op::of(&mut bytes) {
        subject.apply(op);
    }
    subject.end();
    Some(())
}
