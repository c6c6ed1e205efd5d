//! Protocol Buffers on the wire, as far as pprof needs them: numbers, texts, messages and packed numbers. Written by
//! hand: the format is a page long (<https://protobuf.dev/programming-guides/encoding/>), a code generator is not.

/// A message that is being written.
#[derive(Debug, Default)]
pub(super) struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    /// A number; 0 is what a missing field means, and is left out.
    pub(super) fn push_number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.push_varint(u64::from(field) << 3);
            self.push_varint(value);
        }
    }

    /// Bytes: a text, or another message.
    pub(super) fn push_bytes(&mut self, field: u32, value: &[u8]) {
        self.push_varint(u64::from(field) << 3 | 2);
        self.push_varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// A message within this one.
    pub(super) fn push_message(&mut self, field: u32, value: ProtobufMessage) {
        self.push_bytes(field, &value.0);
    }

    /// Many numbers in one field.
    pub(super) fn push_packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut packed = ProtobufMessage::default();
        values.into_iter().for_each(|value| packed.push_varint(value));
        self.push_message(field, packed);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn push_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 & 0x7f | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
