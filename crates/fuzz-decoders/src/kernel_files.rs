//! Files of /proc and /sys as the monitors read them, and logs of them and of tools.

use perflab_formats::kernel::slab_counts::LoggedMachine;
use perflab_formats::kernel::{KERNEL_FILES, KernelFile, open_log_parser};
use perflab_formats::reading_parser::{LineOutcome, ReadingParser, text_lines};
use perflab_formats::tool::TOOL_LOGS;
use perflab_model::column::ColumnType;
use perflab_model::{CellRow, ColumnSpec, Nanos, TableCell};
use perflab_observe::mounts::MountTable;
use perflab_observe::{Root, open_monitor};

use crate::decoder::choose;
use crate::memory_folder::MemoryFolder;

/// The kernel files that are a text, in the order of their registry.
pub fn kernel_texts() -> Vec<&'static KernelFile> {
    let machine = LoggedMachine::default();
    KERNEL_FILES.iter().filter(|file| open_log_parser(file, "", &machine).is_some()).collect()
}

/// A file, read twice: what it says the second time stands behind a zero byte. The first byte says which of
/// [`kernel_texts`] it is.
pub(crate) fn decode_kernel_file(bytes: &[u8]) {
    let files = kernel_texts();
    let Some((file, texts)) = choose(&files, bytes) else { return };
    let folder = MemoryFolder::new("proc");
    let write = |text: &[u8]| {
        for (_, path) in file.parts() {
            folder.write(path.trim_start_matches('/'), text);
        }
    };
    let mut texts = texts.splitn(2, |byte| *byte == 0);
    write(texts.next().unwrap_or_default());
    let root = Root(folder.path().into());
    let Ok(mut monitor) = open_monitor(file, &root, Nanos(1_000_000_000)) else { return };
    let columns = monitor.schema().columns.clone();
    let mut rows = Vec::new();
    if monitor.read_rows(&mut rows).is_ok() {
        assert!(rows.iter().all(|row| fits_columns(row, &columns)), "{}: {rows:?}", file.name);
    }
    if let Some(second) = texts.next() {
        let _ = monitor.read_changes();
        write(second);
        let _ = monitor.read_changes();
    }
}

fn fits_columns(row: &CellRow, columns: &[ColumnSpec]) -> bool {
    let is_of = |(cell, column): (&TableCell, &ColumnSpec)| match cell {
        TableCell::Int(_) => column.stored == ColumnType::Int,
        TableCell::Float(_) => column.stored == ColumnType::Float,
        TableCell::Text(_) => column.stored == ColumnType::Text,
        TableCell::Missing => true,
    };
    row.len() == columns.len() && row.iter().zip(columns).all(is_of)
}

/// Every parser of a log: the kernel's files, then tools'.
pub fn log_parsers() -> Vec<Box<dyn ReadingParser>> {
    let machine = LoggedMachine::default();
    let kernel = KERNEL_FILES.iter().filter_map(|file| open_log_parser(file, "label", &machine));
    kernel.chain(TOOL_LOGS.iter().map(|log| (log.parser)())).collect()
}

/// A log, of which the first byte says which of [`log_parsers`] reads it: rows fit their columns, and no row is of a line that
/// was not counted.
pub(crate) fn decode_text_log(bytes: &[u8]) {
    let mut parsers = log_parsers();
    let Some((first, text)) = bytes.split_first() else { return };
    let index = usize::from(*first) % parsers.len();
    let parser = &mut parsers[index];
    let text = String::from_utf8_lossy(text);
    let (mut readings, mut open, mut used) = (Vec::new(), Vec::new(), 0_usize);
    for line in text_lines(&text) {
        let Ok(role) = parser.line_role(line.text) else { return };
        if role.is_head() && !open.is_empty() {
            if parser.end_reading(&mut open).is_err() {
                return;
            }
            readings.append(&mut open);
        }
        if role.is_row() {
            let before = open.len();
            let outcome = parser.parse_row(line, &mut open);
            let is_used = matches!(outcome, LineOutcome::Used | LineOutcome::Flagged(_));
            assert!(is_used || open.len() == before, "{outcome:?} gave a row: {:?}", line.text);
            used += usize::from(is_used);
        }
    }
    if parser.end_reading(&mut open).is_err() {
        return;
    }
    readings.append(&mut open);
    let columns = parser.columns();
    assert!(readings.iter().all(|row| fits_columns(row, &columns)), "{}: {readings:?}", parser.series());
    assert!(readings.len() <= used, "{}: {} rows of {used} lines", parser.series(), readings.len());
}

/// The table of mounts.
pub(crate) fn decode_mounts(bytes: &[u8]) {
    for mount in MountTable::parse(bytes).iter() {
        let _ = format!("{mount:?}");
    }
}
