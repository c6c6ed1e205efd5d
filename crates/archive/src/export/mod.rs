//! A run in the formats of other tools.
//!
//! Samples are written one by one where a format has a place for them (CSV, JSON, Parquet, Go benchmark text); the
//! others get the median of each metric of each case, with the interval that the caller's function gives it. No format
//! carries verdicts: those need two runs.
//!
//! | module | content |
//! |---|---|
//! | `registry` | [`Exporter`]: the formats by name |
//! | `exporter` | [`ExportSheet`]: what every format is made of |
//! | `json` | the run as one document, with its schema |
//! | `text` | CSV, Go benchmark text, Markdown, LaTeX |
//! | `services` | JUnit, KCIDB, Bencher, OpenMetrics |

pub(crate) mod exporter;
pub(crate) mod json;
pub(crate) mod registry;
pub(crate) mod services;
pub(crate) mod text;

use std::io::{self, Write};

use perflab_model::RunRecord;

pub use exporter::{ExportSheet, MedianIntervalFn, MetricSummary};
pub use json::{ExportDocument, export_schema};
pub use registry::Exporter;

/// Writes a run in a format that is text. [`Exporter::Parquet`] is a file of the run's already, see
/// [`crate::RunDir::samples_path`]; [`Exporter::Perfetto`] needs what a record has not: series and operations; and
/// [`Exporter::Hyperfine`] the times of commands, which somebody else makes of it.
///
/// # Errors
/// What writing to `out` fails with; `InvalidInput` for these three.
pub fn write_export(
    record: &RunRecord,
    interval: MedianIntervalFn<'_>,
    format: Exporter,
    out: &mut dyn Write,
) -> io::Result<()> {
    let sheet = ExportSheet::from_record(record, interval);
    match format {
        Exporter::Csv => crate::export::text::write_csv_export(&sheet, out),
        Exporter::Json => crate::export::json::write_json_document(&sheet, out),
        Exporter::Markdown => crate::export::text::write_markdown_export(&sheet, out),
        Exporter::Latex => crate::export::text::write_latex_export(&sheet, out),
        Exporter::GoBench => crate::export::text::write_go_bench(&sheet, out),
        Exporter::Bencher => crate::export::services::write_bencher(&sheet, out),
        Exporter::Kcidb => crate::export::services::write_kcidb(&sheet, out),
        Exporter::Junit => crate::export::services::write_junit(&sheet, out),
        Exporter::OpenMetrics => crate::export::services::write_open_metrics(&sheet, out),
        Exporter::Parquet | Exporter::Perfetto | Exporter::Hyperfine => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "the format is no text of a record"))
        }
    }
}
