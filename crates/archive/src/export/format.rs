//! The formats, by the names that they have on the command line.

use std::str::FromStr;

/// A format of other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// a row a sample, for spreadsheets
    Csv,
    /// everything, with a published schema
    Json,
    /// a table of medians, for mails and issues
    Markdown,
    /// a table of medians, for papers
    Latex,
    /// the table of samples as it is stored
    Parquet,
    /// what `go test -bench` prints, for benchstat
    GoBench,
    /// Bencher Metric Format
    Bencher,
    /// KernelCI's database, schema 5.3
    Kcidb,
    /// iterations as tests, for CI servers
    Junit,
    /// medians as gauges, for Prometheus
    OpenMetrics,
}

impl ExportFormat {
    /// All formats with their names.
    pub const ALL: [(&str, ExportFormat); 10] = [
        ("csv", ExportFormat::Csv),
        ("json", ExportFormat::Json),
        ("markdown", ExportFormat::Markdown),
        ("latex", ExportFormat::Latex),
        ("parquet", ExportFormat::Parquet),
        ("gobench", ExportFormat::GoBench),
        ("bmf", ExportFormat::Bencher),
        ("kcidb", ExportFormat::Kcidb),
        ("junit", ExportFormat::Junit),
        ("openmetrics", ExportFormat::OpenMetrics),
    ];
}

impl FromStr for ExportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = ExportFormat::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, format)| format);
        let names = || ExportFormat::ALL.map(|(name, _)| name).join(", ");
        found.ok_or_else(|| format!("`{text}` is no format of exports: {}", names()))
    }
}
