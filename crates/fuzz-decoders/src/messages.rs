//! What agents and guests send.

use perflab_conduct::protocol::{
    AgentOrder, AgentReport, FrameDecoder, GreetingParser, ProtocolError, encode_frame,
};
use perflab_guest::init_protocol::{ControlFrame, GuestMessage, HostMessage, MAX_CONTROL_FRAME_BYTES};

/// A greeting and frames behind it, however they are cut: the first byte says in parts of how many bytes they come.
pub(crate) fn decode_agent_frames(bytes: &[u8]) {
    let Some((cut, stream)) = bytes.split_first() else { return };
    let (mut greeting, mut reports) = (GreetingParser::default(), FrameDecoder::<AgentReport>::default());
    let mut is_greeted = false;
    for part in stream.chunks(usize::from(*cut).max(1)) {
        let frames = if is_greeted { Some(part.to_vec()) } else { greeting.feed(part).ok().flatten() };
        is_greeted |= frames.is_some();
        reports.push(&frames.unwrap_or_default());
        while let Ok(Some(report)) = reports.next_message() {
            let again = encode_frame(&report);
            assert!(matches!(again, Ok(_) | Err(ProtocolError::TooLarge { .. })), "{report:?}: {again:?}");
        }
    }
    let mut orders = FrameDecoder::<AgentOrder>::default();
    orders.push(stream);
    while let Ok(Some(_)) = orders.next_message() {}
}

/// Frames of both directions; what is understood is written as it was read.
pub(crate) fn decode_control_frames(bytes: &[u8]) {
    let mut stream = bytes;
    while let Ok(Some(message)) = GuestMessage::read(&mut stream) {
        assert!(message.to_parts().1.len() <= 3 * MAX_CONTROL_FRAME_BYTES);
        let mut again = Vec::new();
        assert!(message.write(&mut again).is_ok());
    }
    let mut stream = bytes;
    while let Ok(Some(_)) = HostMessage::read(&mut stream) {}
}
