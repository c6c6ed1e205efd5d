//! Owns the four ways to print. It refuses a fifth: whoever wants another reads the JSON.

use std::str::FromStr;

/// `--format`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputFormat {
    /// columns for a terminal
    #[default]
    Table,
    /// every number, for programs
    Json,
    /// one line a row, for spreadsheets
    Csv,
    /// a table for an issue or a page
    Markdown,
}

/// A text that is no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a format: write table, json, csv or markdown")]
pub struct UnknownOutputFormat {
    text: String,
}

impl FromStr for OutputFormat {
    type Err = UnknownOutputFormat;

    fn from_str(text: &str) -> Result<Self, UnknownOutputFormat> {
        match text {
            "table" => Ok(OutputFormat::Table),
            "json" => Ok(OutputFormat::Json),
            "csv" => Ok(OutputFormat::Csv),
            "markdown" | "md" => Ok(OutputFormat::Markdown),
            _ => Err(UnknownOutputFormat { text: text.into() }),
        }
    }
}

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GridError {
    /// A value that JSON cannot hold.
    #[error("cannot write the table as JSON")]
    Json(#[from] serde_json::Error),
    /// A row that CSV cannot hold.
    #[error("cannot write the table as CSV")]
    Csv(#[from] csv::Error),
    /// The CSV writer did not finish.
    #[error("cannot finish the table as CSV: {0}")]
    Unfinished(String),
}
