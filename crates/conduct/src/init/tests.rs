use std::io::Cursor;

use proptest::prelude::*;

use super::*;

fn guest_messages() -> impl Strategy<Value = GuestMessage> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..100);
    prop_oneof![
        Just(GuestMessage::Ready),
        bytes.clone().prop_map(GuestMessage::Output),
        bytes.prop_map(GuestMessage::Errors),
        any::<i32>().prop_map(GuestMessage::Exited),
        any::<i32>().prop_map(GuestMessage::Killed),
        "[a-z ]{0,50}".prop_map(GuestMessage::Failed),
    ]
}

proptest! {
    #[test]
    fn what_is_said_is_heard(all in proptest::collection::vec(guest_messages(), 0..20)) {
        let mut stream = Vec::new();
        all.iter().for_each(|one| one.write(&mut stream).unwrap());
        let mut stream = Cursor::new(stream);
        let mut heard = Vec::new();
        while let Some(one) = GuestMessage::read(&mut stream).unwrap() {
            heard.push(one);
        }
        prop_assert_eq!(heard, all);
    }

    #[test]
    fn garbage_is_refused_and_never_takes_much_memory(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut stream = Cursor::new(bytes);
        while let Ok(Some(one)) = GuestMessage::read(&mut stream) {
            prop_assert!(one.to_parts().1.len() <= MAX_CONTROL_FRAME_BYTES);
        }
    }
}

#[test]
fn a_frame_that_announces_too_much_is_refused() {
    let mut frame = vec![1];
    frame.extend_from_slice(&(MAX_CONTROL_FRAME_BYTES as u32 + 1).to_le_bytes());
    let error = GuestMessage::read(&mut Cursor::new(frame)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
}

#[test]
fn a_failure_is_told_in_text_that_steers_no_terminal() {
    let mut stream = Vec::new();
    GuestMessage::Failed("no \x1b]0;evil\x07root".into()).write(&mut stream).unwrap();
    let heard = GuestMessage::read(&mut Cursor::new(stream)).unwrap();
    assert_eq!(heard, Some(GuestMessage::Failed("no \u{fffd}]0;evil\u{fffd}root".into())));
}

#[test]
fn this_process_is_no_guests_first_one() {
    assert!(!is_guest_init());
}
