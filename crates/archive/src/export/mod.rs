//! A run in the formats of other tools. Owns what each of them can say, and says it in their words; refuses to judge, as
//! a format that carries verdicts needs two runs.
//!
//! Samples go out one by one where a format has a place for them (CSV, JSON, Parquet, Go benchmark text); the others get
//! the median of each metric of each case, with the interval that the caller's function gives it.

mod bencher;
mod document;
mod format;
mod go_bench;
mod junit;
mod kcidb;
mod markup;
mod names;
mod open_metrics;
mod separated;
mod sheet;

use std::io::{self, Write};

use perflab_model::RunRecord;

pub use document::{Document, schema};
pub use format::ExportFormat;
pub use sheet::{IntervalOf, Sheet, Summary};

/// Writes a run in a format that is text. [`ExportFormat::Parquet`] is a file of the run's already, see
/// [`crate::RunDir::samples_file`].
///
/// # Errors
/// What writing to `out` fails with; `InvalidInput` for Parquet.
pub fn write(
    record: &RunRecord,
    interval: IntervalOf<'_>,
    format: ExportFormat,
    out: &mut dyn Write,
) -> io::Result<()> {
    let sheet = Sheet::of(record, interval);
    match format {
        ExportFormat::Csv => separated::write(&sheet, out),
        ExportFormat::Json => document::write(&sheet, out),
        ExportFormat::Markdown => markup::markdown(&sheet, out),
        ExportFormat::Latex => markup::latex(&sheet, out),
        ExportFormat::GoBench => go_bench::write(&sheet, out),
        ExportFormat::Bencher => bencher::write(&sheet, out),
        ExportFormat::Kcidb => kcidb::write(&sheet, out),
        ExportFormat::Junit => junit::write(&sheet, out),
        ExportFormat::OpenMetrics => open_metrics::write(&sheet, out),
        ExportFormat::Parquet => Err(io::Error::new(io::ErrorKind::InvalidInput, "Parquet is no text")),
    }
}
