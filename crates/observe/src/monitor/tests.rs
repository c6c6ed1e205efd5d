//! Monitors on trees of files.

use perflab_formats::kernel::KernelFileLayout;

use super::*;
use crate::{ObserveError, Root};

#[test]
fn every_folder_has_an_opening_of_its_own() {
    for file in all_monitors() {
        let is_own = matches!(file.layout, KernelFileLayout::Tree | KernelFileLayout::Judged(_));
        assert_eq!(is_own, registry::OPENINGS.iter().any(|(name, _)| *name == file.name), "{}", file.name);
    }
}

#[test]
fn a_strange_name_gets_the_nearest_one() {
    let error = find_monitor("slabinf").unwrap_err();
    assert_eq!(error.to_string(), "`slabinf` is no monitor; did you mean `slabinfo`?");
}

#[test]
fn files_longer_than_the_buffer_and_bytes_that_are_no_text() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("proc")).unwrap();
    let mut text = b"cpu 1 2 3 4\nname\xff\xfe 1\n".to_vec();
    text.extend("cpu0 1\n".repeat(20_000).bytes());
    std::fs::write(root.path().join("proc/stat"), text).unwrap();
    let kind = find_monitor("stat").unwrap();
    let mut monitor = open_monitor(kind, &Root(root.path().into()), perflab_model::Nanos(1)).unwrap();
    let mut rows = Vec::new();
    monitor.read_rows(&mut rows).unwrap();
    assert_eq!(rows.len(), 20_001);
}

#[test]
fn a_text_that_is_not_understood_names_file_and_line() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("proc")).unwrap();
    std::fs::write(root.path().join("proc/loadavg"), "0.1 0.2 oops 1/2 3\n").unwrap();
    let mut monitor =
        open_monitor(find_monitor("loadavg").unwrap(), &Root(root.path().into()), perflab_model::Nanos(1))
            .unwrap();
    let error: ObserveError = monitor.read_rows(&mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "/proc/loadavg, line 1: a number was expected for load_15, found `oops`");
}
