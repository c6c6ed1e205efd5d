//! One log as somebody kept it: a file of the kernel once or again and again, or the slabinfo tool's output. Its first
//! lines say which.
//!
//! `orders` beside it has each name under /sys/kernel/slab with the order of its slabs, `NAME ORDER` a line. The
//! notebook that this file was made for took 0 for a name that is not in it. Here nothing depends on it: `pagesperslab`
//! of slabinfo is 2 to the same power.

use std::path::Path;

use perflab_formats::kernel::slab_counts::{LoggedMachine, MachinePageSize};
use perflab_formats::kernel::slabinfo::{SlabinfoParser, is_slabinfo_row};
use perflab_formats::kernel::sysfs_slab::{SLAB_CACHES, SlabCacheRow};
use perflab_formats::kernel::{KernelFile, KernelFileLayout, open_log_parser, recognise_kernel_file};
use perflab_formats::reading_parser::{LineOutcome, ReadingParser, TextLine};
use perflab_formats::tool::slabinfo_tool::{SlabinfoToolParser, is_slabinfo_tool_head};
use perflab_model::column::stored_columns;
use perflab_model::{Bytes, CellRow, RowSchema};

use crate::dump_log::{DumpLog, ReadingSource};
use crate::error::ImportError;
use crate::import_report::FileReport;
use crate::imported_run::{ImportedRun, RunMetadata};
use crate::importer::{ImportOptions, ImportSource, Importer, Recognition};
use crate::input_lines::InputLines;
use crate::log_stream::LogStream;
use crate::machine_page_size::settle_page_size;

/// One log of a kernel file, dumped once or again and again.
pub(crate) const IMPORTER: Importer = Importer {
    name: "dump",
    about: "dumps of /proc/slabinfo or another file of the kernel, with `time: EPOCH` lines or alone",
    knows_boots: false,
    recognises: Recognition::File(|input| input.first_lines().is_some_and(is_kernel_dump)),
    open: open_kernel_dump,
};

/// Lines that are looked at to see what a log is.
const LOOKED_AT: usize = 20;

/// Whether the first lines of a file are those of a log: any text has words and numbers, and a row of slabinfo little more,
/// so that something else must speak for it. Nothing but comments may be one.
fn is_kernel_dump(lines: &[String]) -> bool {
    let is_marked = |text: &str| recognise_kernel_file(text).is_some() || is_slabinfo_tool_head(text);
    let is_time = |text: &str| text.starts_with("time:");
    let texts = || lines.iter().map(|line| line.trim_ascii_end());
    // Dumps of a file that is not known have times too.
    let is_bare_slabinfo = || texts().any(is_time) && texts().any(is_slabinfo_row);
    texts().any(is_marked)
        || is_bare_slabinfo()
        || texts().all(|text| text.is_empty() || text.starts_with('#') || is_time(text))
}

/// The events of a log.
fn open_kernel_dump(path: &Path, options: &ImportOptions) -> Result<Box<dyn ImportSource>, ImportError> {
    let reported = options.page_size.map(stated_page_size);
    let stream = LogStream::from_source(open_dump_log(path, reported.clone())?)?;
    if stream.is_finished() {
        return Err(ImportError::not_importable(path, None, no_dump_reason(&stream)));
    }
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut metadata = RunMetadata {
        title: format!("Imported {} of {name}", stream.series_name()),
        description: format!("One log, imported from {}; what ran meanwhile is not known.", path.display()),
        target: "imported".into(),
        ..RunMetadata::default()
    };
    settle_page_size(reported, &[&stream], &mut metadata);
    Ok(Box::new(ImportedRun::new(IMPORTER.name, path, options, metadata, vec![stream])))
}

fn no_dump_reason(stream: &LogStream) -> String {
    match stream.file_report().unusable.first() {
        Some(first) => format!("no dump in it can be read; line {}: {}", first.line, first.reason),
        None => "it is empty: there is no dump in it".into(),
    }
}

/// What the user passed.
pub(crate) fn stated_page_size(bytes: Bytes) -> MachinePageSize {
    MachinePageSize { bytes: bytes.0, source: "--page-size".into() }
}

fn open_dump_log(path: &Path, page: Option<MachinePageSize>) -> Result<Box<dyn ReadingSource>, ImportError> {
    let machine = LoggedMachine { page_size: page, kernel: None };
    let mut lines = InputLines::open(path)?;
    for _ in 0..LOOKED_AT {
        let Some(line) = lines.next_line()? else { break };
        if is_slabinfo_tool_head(line.text) {
            return Ok(Box::new(DumpLog::open(path, Box::new(SlabinfoToolParser))?));
        }
        if let Some(parser) =
            recognise_kernel_file(line.text).and_then(|file| open_named_log(file, path, &machine))
        {
            return Ok(Box::new(DumpLog::open(path, parser)?));
        }
    }
    Ok(Box::new(DumpLog::open(path, Box::new(SlabinfoParser::new(&machine)))?))
}

/// The parser of a log of a file; which part of it that is, where there are several, the log's name says.
pub(crate) fn open_named_log(
    file: &KernelFile,
    path: &Path,
    machine: &LoggedMachine,
) -> Option<Box<dyn ReadingParser>> {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let part = file.parts().into_iter().map(|(label, _)| label).find(|label| name.contains(label));
    open_log_parser(file, part.unwrap_or_default(), machine)
}

/// The names that suites give to a log of a file: `proc-vmstat`, `slabinfo`. A bare `vmstat` is the tool's.
pub(crate) fn kernel_log_names(file: &KernelFile) -> Vec<String> {
    let is_folder = matches!(file.layout, KernelFileLayout::Tree);
    let bare = (file.name != "vmstat").then(|| file.name.to_owned());
    [format!("proc-{}", file.name)].into_iter().chain(bare).filter(|_| !is_folder).collect()
}

/// Names of one file at most.
const NAMES: u64 = 100_000;

/// The kernel's own bound is lower (MAX_PAGE_ORDER).
const HIGHEST: i64 = 30;

/// Bytes of a line.
const LONGEST: usize = 1024;

/// The file as rows of `slab-caches`.
pub(crate) fn open_orders(path: &Path, page: u64) -> Result<LogStream, ImportError> {
    let mut lines = InputLines::open_optional(path);
    let (mut report, mut rows) = (FileReport::new(path, "slab-caches"), Vec::new());
    while let Some(line) = lines.next_line()? {
        let number = line.number;
        if number > NAMES {
            return Err(ImportError::not_importable(
                path,
                Some(number),
                format!("it has more than {NAMES} lines"),
            ));
        }
        if !line.text.trim_ascii().is_empty() {
            let read = parse_orders_line(line, page, &mut rows);
            report.count_row(number, read);
        }
    }
    report.note_early_end(&lines);
    report.ticks = 1;
    Ok(LogStream::from_rows(
        "slab-caches",
        "/sys/kernel/slab/*/order",
        stored_columns(SLAB_CACHES.columns),
        rows,
        report,
    ))
}

fn parse_orders_line(line: TextLine<'_>, page: u64, rows: &mut Vec<CellRow>) -> LineOutcome {
    if line.text.len() > LONGEST {
        return LineOutcome::Unusable(format!("it is longer than {LONGEST} bytes"));
    }
    let Some((name, order)) = line.text.trim_ascii_end().rsplit_once([' ', '\t']) else {
        return LineOutcome::Unusable("it is not `NAME ORDER`".into());
    };
    let order = order.parse::<i64>().ok().filter(|order| (0..=HIGHEST).contains(order));
    let Some(order) = order else {
        return LineOutcome::Unusable("its order is no number from 0 to 30".into());
    };
    rows.push(orders_row(name.trim_ascii(), order, page));
    LineOutcome::Used
}

fn orders_row(name: &str, order: i64, page: u64) -> CellRow {
    let mut row = SlabCacheRow::missing_row();
    SlabCacheRow::CACHE.set(&mut row, name);
    SlabCacheRow::DIRECTORY.set(&mut row, name.starts_with(':').then_some(name));
    SlabCacheRow::PAGE_SIZE.set(&mut row, i64::try_from(page).ok());
    SlabCacheRow::ORDER.set(&mut row, order);
    SlabCacheRow::FLAGS.set(&mut row, "");
    row
}
