//! The table of exporters, by the names that they have on the command line.

use std::str::FromStr;

/// A format of other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exporter {
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
    /// a trace of the whole run, for ui.perfetto.dev
    Perfetto,
    /// what `hyperfine --export-json` writes, for its scripts
    Hyperfine,
}

impl Exporter {
    /// All formats with their names.
    pub const ALL: [(&str, Exporter); 12] = [
        ("csv", Exporter::Csv),
        ("json", Exporter::Json),
        ("markdown", Exporter::Markdown),
        ("latex", Exporter::Latex),
        ("parquet", Exporter::Parquet),
        ("gobench", Exporter::GoBench),
        ("bmf", Exporter::Bencher),
        ("kcidb", Exporter::Kcidb),
        ("junit", Exporter::Junit),
        ("openmetrics", Exporter::OpenMetrics),
        ("perfetto", Exporter::Perfetto),
        ("hyperfine", Exporter::Hyperfine),
    ];
}

impl FromStr for Exporter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Exporter::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, format)| format);
        let names = || Exporter::ALL.map(|(name, _)| name).join(", ");
        found.ok_or_else(|| format!("`{text}` is no format of exports: {}", names()))
    }
}
