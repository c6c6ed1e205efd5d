//! Whatever a document holds, reading it ends with samples that are numbers, or with a reason.

use std::path::Path;

use proptest::prelude::*;

use super::super::story::Story;
use super::super::took::Took;
use super::{Document, TOOLS};

const RECORDED: [&str; 17] = [
    include_str!("../../../tests/recorded/tools/fio.json"),
    include_str!("../../../tests/recorded/tools/perf-stat.json"),
    include_str!("../../../tests/recorded/tools/perf-stat-interval.json"),
    include_str!("../../../tests/recorded/tools/perf-stat.csv"),
    include_str!("../../../tests/recorded/tools/perf-stat-interval.csv"),
    include_str!("../../../tests/recorded/tools/perf-stat-repeat.csv"),
    include_str!("../../../tests/recorded/tools/hyperfine.json"),
    include_str!("../../../tests/recorded/tools/gbench.json"),
    include_str!("../../../tests/recorded/tools/pyperf.json"),
    include_str!("../../../tests/recorded/tools/perf-stat-colon.csv"),
    include_str!("../../../tests/recorded/tools/perf-stat-space.csv"),
    include_str!("../../../tests/recorded/tools/go.txt"),
    include_str!("../../../tests/recorded/tools/go.jsonl"),
    include_str!("../../../tests/recorded/tools/composite.xml"),
    include_str!("../../../tests/recorded/tools/phoronix.xml"),
    include_str!("../../../tests/recorded/tools/sar.json"),
    include_str!("../../../tests/recorded/tools/matrix.json"),
];

/// Every tool reads it, whether it looks like one of its own or not.
fn sound(text: &str) {
    let document = Document::of(text);
    for tool in TOOLS {
        let _ = (tool.looks)(&document);
        let (mut story, mut took) = (Story::default(), Took::of(Path::new("document"), "samples"));
        let read = (tool.read)(&document, &mut story, &mut took);
        assert_eq!(took.rows_read, took.rows_used + took.rows_unusable, "{:?}", tool.kind);
        if let Ok(feeds) = read {
            assert!(feeds.iter().all(|feed| !feed.schema().columns.is_empty()));
        }
    }
}

#[test]
fn each_recording_is_taken_for_one_kind() {
    for text in RECORDED {
        let mut document = Document::of(text);
        document.path = "matrix.json".into();
        let kinds: Vec<_> =
            TOOLS.iter().filter(|tool| (tool.looks)(&document)).map(|tool| tool.kind).collect();
        assert_eq!(kinds.len(), 1, "{kinds:?}: {}", text.get(..60).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn damaged_documents_are_survived(
        which in 0..RECORDED.len(),
        changes in proptest::collection::vec((any::<usize>(), 0..5_u8, 32..127_u8), 1..6),
    ) {
        let mut bytes = RECORDED[which].as_bytes().to_vec();
        for (place, what, byte) in changes {
            let place = place % bytes.len().max(1);
            match what {
                0 if !bytes.is_empty() => bytes[place] = byte,
                1 => bytes.insert(place, byte),
                2 if !bytes.is_empty() => drop(bytes.remove(place)),
                3 => bytes.truncate(place.max(1)),
                _ => bytes.insert(place, b'\n'),
            }
        }
        sound(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_words_are_survived(text in "(Benchmark[a-z/=0-9-]{0,12}( [0-9.]{1,5} [a-z/]{1,5}){0,3}\n|[<>{}\\[\\],;:\"a-z0-9 .%-]{0,40}\n){0,8}") {
        sound(&text);
    }
}
