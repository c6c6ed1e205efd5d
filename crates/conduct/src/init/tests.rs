use std::io::Cursor;

use proptest::prelude::*;

use super::*;

fn said() -> impl Strategy<Value = Said> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..100);
    prop_oneof![
        Just(Said::Ready),
        bytes.clone().prop_map(Said::Output),
        bytes.prop_map(Said::Errors),
        any::<i32>().prop_map(Said::Exited),
        any::<i32>().prop_map(Said::Killed),
        "[a-z ]{0,50}".prop_map(Said::Failed),
    ]
}

proptest! {
    #[test]
    fn what_is_said_is_heard(all in proptest::collection::vec(said(), 0..20)) {
        let mut stream = Vec::new();
        all.iter().for_each(|one| one.write(&mut stream).unwrap());
        let mut stream = Cursor::new(stream);
        let mut heard = Vec::new();
        while let Some(one) = Said::read(&mut stream).unwrap() {
            heard.push(one);
        }
        prop_assert_eq!(heard, all);
    }

    #[test]
    fn garbage_is_refused_and_never_takes_much_memory(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut stream = Cursor::new(bytes);
        while let Ok(Some(one)) = Said::read(&mut stream) {
            prop_assert!(one.take_apart().1.len() <= LARGEST);
        }
    }
}

#[test]
fn a_frame_that_announces_too_much_is_refused() {
    let mut frame = vec![1];
    frame.extend_from_slice(&(LARGEST as u32 + 1).to_le_bytes());
    let error = Said::read(&mut Cursor::new(frame)).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
}

#[test]
fn a_failure_is_told_in_text_that_steers_no_terminal() {
    let mut stream = Vec::new();
    Said::Failed("no \x1b]0;evil\x07root".into()).write(&mut stream).unwrap();
    let heard = Said::read(&mut Cursor::new(stream)).unwrap();
    assert_eq!(heard, Some(Said::Failed("no \u{fffd}]0;evil\u{fffd}root".into())));
}

#[test]
fn this_process_is_no_guests_first_one() {
    assert!(!is_first());
}
