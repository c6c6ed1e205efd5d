//! Owns CSV: titles, then rows, quoted where needed. It refuses rounding: cells come with every digit.

use super::format::GridError;

/// The rows as CSV text with one line of titles.
pub(super) fn write_csv(
    titles: Vec<String>,
    rows: impl Iterator<Item = Vec<String>>,
) -> Result<String, GridError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(titles)?;
    for row in rows {
        writer.write_record(row)?;
    }
    let bytes = writer.into_inner().map_err(|error| GridError::Unfinished(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| GridError::Unfinished(error.to_string()))
}
