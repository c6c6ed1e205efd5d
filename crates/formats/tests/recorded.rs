//! Recorded kernel files, read as they are now and as a log: the same rows.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use std::fs;
use std::path::{Path, PathBuf};

use perflab_formats::kernel::slab_counts::LoggedMachine;
use perflab_formats::kernel::slabinfo::parse_slabinfo;
use perflab_formats::kernel::{
    KERNEL_FILES, KernelFile, KernelFileLayout, KernelFileParser, open_log_parser, recognise_kernel_file,
};
use perflab_formats::reading_parser::{LineOutcome, text_lines};
use perflab_model::CellRow;

fn recorded_trees() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../observe/tests/fixtures")
}

/// Every recorded text of a kernel file, with the label of its part.
fn recorded_texts() -> Vec<(&'static KernelFile, &'static str, String)> {
    let mut texts = Vec::new();
    for tree in ["vm-6.18", "debian-6.1", "ubuntu-5.0", "written", "written-6.15"] {
        let is_log = |file: &&KernelFile| open_log_parser(file, "", &LoggedMachine::default()).is_some();
        for file in KERNEL_FILES.iter().filter(is_log) {
            for (label, path) in file.parts() {
                let path = recorded_trees().join(tree).join(path.trim_start_matches('/'));
                texts.extend(fs::read_to_string(path).ok().map(|text| (file, label, text)));
            }
        }
    }
    assert!(texts.len() > 15);
    texts
}

fn read_as_it_is_now(file: &KernelFile, label: &str, text: &str) -> Vec<CellRow> {
    let mut rows = Vec::new();
    match file.layout {
        KernelFileLayout::Judged(_) => parse_slabinfo(text, None, &mut rows).unwrap(),
        _ => KernelFileParser::new(file, label).parse_text(text, &mut rows).unwrap(),
    }
    rows
}

/// A log of readings, one after the other: the rows of each, and lines of which nothing could be used.
fn read_as_log(file: &KernelFile, label: &str, log: &str) -> (Vec<Vec<CellRow>>, usize) {
    let mut parser = open_log_parser(file, label, &LoggedMachine::default()).unwrap();
    let (mut readings, mut open, mut unusable) = (Vec::new(), Vec::new(), 0);
    for line in text_lines(log) {
        let role = parser.line_role(line.text).unwrap();
        if role.is_head() && !open.is_empty() {
            parser.end_reading(&mut open).unwrap();
            readings.push(std::mem::take(&mut open));
        }
        if role.is_row() {
            unusable += usize::from(matches!(parser.parse_row(line, &mut open), LineOutcome::Unusable(_)));
        }
    }
    parser.end_reading(&mut open).unwrap();
    readings.push(open);
    (readings, unusable)
}

#[test]
fn a_log_of_a_file_has_the_rows_that_a_monitor_has() {
    for (file, label, text) in recorded_texts() {
        let now = read_as_it_is_now(file, label, &text);
        let (readings, unusable) = read_as_log(file, label, &format!("{text}{text}"));
        assert_eq!(unusable, 0, "{}", file.name);
        // What a log flags in its first reading, a monitor reads again before it does.
        let plain = |rows: &[CellRow]| -> Vec<CellRow> {
            let is_judged = matches!(file.layout, KernelFileLayout::Judged(_));
            rows.iter().map(|row| row[..row.len() - usize::from(is_judged)].to_vec()).collect()
        };
        // Readings without rows, as of swaps where there is none, have nothing to be told apart by.
        let expected = if now.is_empty() { 1 } else { 2 };
        assert_eq!(readings.len(), expected, "{}", file.name);
        assert!(readings.iter().all(|rows| plain(rows) == plain(&now)), "{}", file.name);
    }
}

#[test]
fn the_first_lines_of_a_text_tell_which_file_it_is() {
    for (file, _, text) in recorded_texts() {
        let found = text.lines().find_map(recognise_kernel_file).map(|found| found.name);
        assert_eq!(found, Some(file.name));
    }
    for other in
        ["root:x:0:0:root:/root:/bin/bash", "cpu MHz : 2000", "version 1.2", "a b c 1/2", "{", "12 13 14"]
    {
        assert!(recognise_kernel_file(other).is_none(), "{other}");
    }
}
