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

pub use document::{ExportDocument, export_schema};
pub use format::Exporter;
pub use sheet::{ExportSheet, MedianIntervalFn, MetricSummary};

/// Writes a run in a format that is text. [`Exporter::Parquet`] is a file of the run's already, see
/// [`crate::RunDir::samples_path`].
///
/// # Errors
/// What writing to `out` fails with; `InvalidInput` for Parquet.
pub fn write_export(
    record: &RunRecord,
    interval: MedianIntervalFn<'_>,
    format: Exporter,
    out: &mut dyn Write,
) -> io::Result<()> {
    let sheet = ExportSheet::from_record(record, interval);
    match format {
        Exporter::Csv => separated::write_csv_export(&sheet, out),
        Exporter::Json => document::write_json_document(&sheet, out),
        Exporter::Markdown => markup::write_markdown_export(&sheet, out),
        Exporter::Latex => markup::write_latex_export(&sheet, out),
        Exporter::GoBench => go_bench::write_go_bench(&sheet, out),
        Exporter::Bencher => bencher::write_bencher(&sheet, out),
        Exporter::Kcidb => kcidb::write_kcidb(&sheet, out),
        Exporter::Junit => junit::write_junit(&sheet, out),
        Exporter::OpenMetrics => open_metrics::write_open_metrics(&sheet, out),
        Exporter::Parquet => Err(io::Error::new(io::ErrorKind::InvalidInput, "Parquet is no text")),
    }
}
