//! Owns the four ways to print. It refuses a fifth: whoever wants another reads the JSON.

use std::str::FromStr;

/// `--format`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
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
pub struct NotAFormat {
    text: String,
}

impl FromStr for Format {
    type Err = NotAFormat;

    fn from_str(text: &str) -> Result<Self, NotAFormat> {
        match text {
            "table" => Ok(Format::Table),
            "json" => Ok(Format::Json),
            "csv" => Ok(Format::Csv),
            "markdown" | "md" => Ok(Format::Markdown),
            _ => Err(NotAFormat { text: text.into() }),
        }
    }
}

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
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
