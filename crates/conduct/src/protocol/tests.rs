use super::*;

#[test]
fn a_greeting_is_found_behind_a_logins_noise_and_the_rest_belongs_to_the_frames() {
    let mut greeter = GreetingParser::default();
    let mut said = b"Welcome to Debian\nLast login: today".to_vec();
    said.extend(greeting_line());
    said.extend([7, 8]);
    for byte in &said[..said.len() - 3] {
        assert_eq!(greeter.feed(&[*byte]), Ok(None));
    }
    assert_eq!(greeter.feed(&said[said.len() - 3..]), Ok(Some(vec![7, 8])));
}

#[test]
fn another_version_is_refused_by_its_number() {
    let refused = GreetingParser::default().feed(b"\nperflab-agent/2\n").unwrap_err();
    assert_eq!(refused, ProtocolError::Version { theirs: 2 });
    assert!(refused.to_string().contains("version 2") && refused.to_string().contains("version 1"));
}

#[test]
fn noise_without_a_greeting_has_an_end() {
    let mut greeter = GreetingParser::default();
    let said = (0..100).map(|_| greeter.feed(&[b'x'; 1000])).find(Result::is_err).unwrap();
    assert!(matches!(said, Err(ProtocolError::NoGreeting { bytes: 66_000, .. })), "{said:?}");
    let mut greeter = GreetingParser::default();
    assert!(matches!(greeter.feed(b"\nperflab-agent/one\n"), Err(ProtocolError::NoGreeting { .. })));
}

#[test]
fn messages_come_out_as_they_went_in_however_they_are_cut() {
    let orders = [
        AgentOrder::Ping { id: 1 },
        AgentOrder::Cancel,
        AgentOrder::Rehearse { at: perflab_model::Nanos(3) },
    ];
    let bytes: Vec<u8> = orders.iter().flat_map(|order| encode_frame(order).unwrap()).collect();
    for cut in 1..bytes.len() {
        let mut decoder = FrameDecoder::default();
        let mut heard: Vec<AgentOrder> = Vec::new();
        for part in bytes.chunks(cut) {
            decoder.push(part);
            while let Some(order) = decoder.next_message().unwrap() {
                heard.push(order);
            }
        }
        assert_eq!(heard, orders, "in parts of {cut}");
    }
}

#[test]
fn a_frame_too_large_is_refused_before_it_comes_and_garbage_is_named() {
    let mut decoder: FrameDecoder<AgentOrder> = FrameDecoder::default();
    decoder.push(&u32::MAX.to_le_bytes());
    assert_eq!(decoder.next_message(), Err(ProtocolError::TooLarge { size: u32::MAX as usize }));
    let mut decoder: FrameDecoder<AgentOrder> = FrameDecoder::default();
    decoder.push(&[2, 0, 0, 0, b'h', b'i']);
    assert!(matches!(decoder.next_message(), Err(ProtocolError::Garbled { size: 2, .. })));
    assert!(matches!(encode_frame(&"x".repeat(MAX_FRAME_BYTES)), Err(ProtocolError::TooLarge { .. })));
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_never_panic_and_never_pile_up(parts: Vec<Vec<u8>>) {
        let (mut greeter, mut decoder) = (GreetingParser::default(), FrameDecoder::<AgentReport>::default());
        for part in parts {
            let _ = greeter.feed(&part);
            decoder.push(&part);
            while let Ok(Some(_)) = decoder.next_message() {}
        }
    }
}
