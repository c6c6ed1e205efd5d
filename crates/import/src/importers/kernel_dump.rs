//! One log as somebody kept it: `/proc/slabinfo` once or again and again, the slabinfo tool's output, or meminfo. Its
//! first lines say which.
//!
//! `orders` beside it has each name under /sys/kernel/slab with the order of its slabs, `NAME ORDER` a line. The
//! notebook that this file was made for took 0 for a name that is not in it. Here nothing depends on it: `pagesperslab`
//! of slabinfo is 2 to the same power.

use std::path::Path;

use perflab_formats::reading_parser::LineOutcome;
use perflab_model::{Bytes, CellRow, TableCell};

use crate::dump_log::{DumpLog, ReadingSource};
use crate::error::ImportError;
use crate::import_report::FileReport;
use crate::imported_run::{ImportedRun, RunMetadata};
use crate::importer::{ImportOptions, ImportSource, Importer};
use crate::input_lines::{InputLines, LogLine};
use crate::kernel_file::meminfo::MeminfoParser;
use crate::kernel_file::page_size::{self, MachinePageSize};
use crate::kernel_file::slab_columns;
use crate::kernel_file::slabinfo::SlabinfoParser;
use crate::log_stream::LogStream;
use crate::tool_log::slabinfo_tool::{self, SlabinfoToolParser};

/// One log of a kernel file, dumped once or again and again.
pub(crate) const IMPORTER: Importer = Importer {
    name: "dump",
    about: "dumps of /proc/slabinfo, with `time: EPOCH` lines or alone",
    recognises: |input| input.first_lines().is_some_and(is_kernel_dump),
    open: open_kernel_dump,
};

/// Lines that are looked at to see what a log is.
const LOOKED_AT: usize = 20;

/// Whether the first lines of a file are those of a log: any text has words and numbers, and a row of slabinfo little more,
/// so that something else must speak for it. Nothing but comments may be one.
fn is_kernel_dump(lines: &[String]) -> bool {
    let is_marked = |text: &str| {
        ["time:", "slabinfo - version", "MemTotal:", "# name"].iter().any(|mark| text.starts_with(mark))
            || text.contains(": slabdata")
            || text.contains(": tunables")
            || slabinfo_tool::is_slabinfo_tool_head(text)
    };
    let texts = || lines.iter().map(|line| line.trim_ascii());
    texts().any(is_marked) || texts().all(|text| text.is_empty() || text.starts_with('#'))
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
    page_size::settle_page_size(reported, &[&stream], &mut metadata);
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
    let mut lines = InputLines::open(path)?;
    for _ in 0..LOOKED_AT {
        let Some(line) = lines.next_line()? else { break };
        if slabinfo_tool::is_slabinfo_tool_head(line.text) {
            return Ok(Box::new(DumpLog::open(path, SlabinfoToolParser)?));
        }
        if line.text.starts_with("MemTotal:") {
            return Ok(Box::new(DumpLog::open(path, MeminfoParser::default())?));
        }
    }
    Ok(Box::new(DumpLog::open(path, SlabinfoParser::new(page, None))?))
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
        slab_columns::slab_cache_columns(),
        rows,
        report,
    ))
}

fn parse_orders_line(line: LogLine<'_>, page: u64, rows: &mut Vec<CellRow>) -> LineOutcome {
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
    let cell = |column: &perflab_model::ColumnSpec| match column.name.as_str() {
        "cache" => TableCell::Text(name.into()),
        "directory" if name.starts_with(':') => TableCell::Text(name.into()),
        "flags" => TableCell::Text(String::new()),
        "order" => TableCell::Int(order),
        "page_size" => i64::try_from(page).map_or(TableCell::Missing, TableCell::Int),
        _ => TableCell::Missing,
    };
    slab_columns::slab_cache_columns().iter().map(cell).collect()
}
