//! Whatever a document holds, reading it ends with samples that are numbers, or with a reason.

use std::path::Path;

use proptest::prelude::*;

use crate::document::input_document::InputDocument;
use crate::document::{TOOLS, fio, go_bench, hyperfine};
use crate::import_report::FileReport;
use crate::imported_run::RunMetadata;

const RECORDED: [&str; 17] = [
    include_str!("../../tests/recorded/tools/fio.json"),
    include_str!("../../tests/recorded/tools/perf-stat.json"),
    include_str!("../../tests/recorded/tools/perf-stat-interval.json"),
    include_str!("../../tests/recorded/tools/perf-stat.csv"),
    include_str!("../../tests/recorded/tools/perf-stat-interval.csv"),
    include_str!("../../tests/recorded/tools/perf-stat-repeat.csv"),
    include_str!("../../tests/recorded/tools/hyperfine.json"),
    include_str!("../../tests/recorded/tools/gbench.json"),
    include_str!("../../tests/recorded/tools/pyperf.json"),
    include_str!("../../tests/recorded/tools/perf-stat-colon.csv"),
    include_str!("../../tests/recorded/tools/perf-stat-space.csv"),
    include_str!("../../tests/recorded/tools/go.txt"),
    include_str!("../../tests/recorded/tools/go.jsonl"),
    include_str!("../../tests/recorded/tools/composite.xml"),
    include_str!("../../tests/recorded/tools/phoronix.xml"),
    include_str!("../../tests/recorded/tools/sar.json"),
    include_str!("../../tests/recorded/tools/matrix.json"),
];

/// Every tool reads it, whether it looks like one of its own or not.
fn check_every_tool(text: &str) {
    let document = InputDocument::from_text(text);
    for tool in TOOLS {
        let _ = (tool.looks)(&document);
        let (mut metadata, mut report) =
            (RunMetadata::default(), FileReport::new(Path::new("document"), "samples"));
        let read = (tool.read)(&document, &mut metadata, &mut report);
        assert_eq!(report.rows_read, report.rows_used + report.rows_unusable, "{:?}", tool.kind);
        if let Ok(streams) = read {
            assert!(streams.iter().all(|stream| !stream.series_schema().columns.is_empty()));
        }
    }
}

#[test]
fn each_recording_is_taken_for_one_kind() {
    for text in RECORDED {
        let mut document = InputDocument::from_text(text);
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
        check_every_tool(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_words_are_survived(text in "(Benchmark[a-z/=0-9-]{0,12}( [0-9.]{1,5} [a-z/]{1,5}){0,3}\n|[<>{}\\[\\],;:\"a-z0-9 .%-]{0,40}\n){0,8}") {
        check_every_tool(&text);
    }
}

#[test]
fn as_many_names_as_a_file_likes_are_each_found_once() {
    let units: String = (0..3000).map(|n| format!(" 1.5 u{n}")).collect();
    let mut metadata = RunMetadata::default();
    let document = InputDocument::from_text(&format!("BenchmarkX 1{units}\nBenchmarkX 1{units}\n"));
    go_bench::read_go_bench_document(
        &document,
        &mut metadata,
        &mut FileReport::new(Path::new("f"), "samples"),
    )
    .map(drop)
    .unwrap();
    let plan = metadata.results.to_plan();
    assert_eq!((plan.metrics["X"].len(), plan.cases.len(), plan.slots.len()), (3000, 1, 2));
    assert_eq!(metadata.results.len(), 6000);
}

#[test]
fn jobs_of_one_name_are_told_apart_by_what_differs() {
    let job = |name: &str, options: &str| {
        format!(
            r#"{{"jobname":"{name}","job options":{{{options}}},"read":{{"io_bytes":1,"bw_bytes":5,"iops":3}}}}"#
        )
    };
    let mut jobs = vec![job("a", r#""bs":"4k","rw":"read""#), job("a", r#""bs":"8k","rw":"read""#)];
    jobs.extend([job("a", r#""bs":"8k","rw":"read","numjobs":"2""#), job("b", r#""bs":"16k""#)]);
    let document =
        InputDocument::from_text(&format!(r#"{{"fio version":"fio-3","jobs":[{}]}}"#, jobs.join(",")));
    let mut metadata = RunMetadata::default();
    fio::read_fio_document(&document, &mut metadata, &mut FileReport::new(Path::new("f"), "samples"))
        .map(drop)
        .unwrap();
    let labels: Vec<String> =
        metadata.results.to_plan().cases.iter().map(perflab_model::Case::label).collect();
    let requested = [
        "fio job=a way=read bs=4k",
        "fio job=a way=read bs=8k",
        "fio job=a way=read bs=8k numjobs=2",
        "fio job=b way=read",
    ];
    assert_eq!(labels, requested);
}

#[test]
fn a_command_that_nobody_started_is_refused() {
    let result = |command: &str, parameters: &str| {
        let text = format!(
            r#"{{"results":[{{"command":"{command}","times":[1.0],"parameters":{{{parameters}}}}}]}}"#
        );
        let mut metadata = RunMetadata::default();
        let read = hyperfine::read_hyperfine_document(
            &InputDocument::from_text(&text),
            &mut metadata,
            &mut FileReport::new(Path::new("f"), "samples"),
        );
        read.map(drop).map_err(|fault| fault.reason)
    };
    let long = result(&"x".repeat(3 << 20), "").unwrap_err();
    assert!(long.contains("command 0 has 3145728 bytes"), "{long}");
    let many: Vec<String> = (0..101).map(|n| format!(r#""p{n}":"{n}""#)).collect();
    let many = result("c", &many.join(",")).unwrap_err();
    assert!(many.contains("up to command 0 there are 101 parameters"), "{many}");
    // A long name in the place of each short value: not filled in again and again.
    let long_name = format!(r#""{}":"1""#, "n".repeat(100_000));
    result(&"1 ".repeat(100_000), &long_name).unwrap();
}
