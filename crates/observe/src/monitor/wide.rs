//! Files of one `name value` a line, whose names vary by kernel: one wide row, its columns found when opened.

use perflab_model::{CellRow, ColumnSpec, SeriesSchema, TableCell};

use super::column::parse_integer_cell;
use super::kind::{Monitor, MonitorContext};
use super::line::{MalformedLine, numbered_lines};
use super::proc_file::ProcFile;
use crate::ObserveError;

/// One column found, and what the kernel's number is multiplied by to be in its unit.
#[derive(Debug, Clone)]
pub(super) struct DiscoveredColumn {
    pub column: ColumnSpec,
    pub scale: u64,
}

/// How such a file tells its columns: from name and the text after it.
pub(super) type ColumnDiscovery = fn(name: &str, rest: &str) -> DiscoveredColumn;

/// A monitor of such a file.
struct NameValueMonitor {
    file: ProcFile,
    schema: SeriesSchema,
    found: Vec<DiscoveredColumn>,
}

impl Monitor for NameValueMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        match parse_name_value_row(self.file.read()?, &self.found) {
            Ok(row) => rows.push(row),
            Err(malformed) => return Err(self.file.malformed_error(malformed)),
        }
        Ok(())
    }
}

impl MonitorContext<'_> {
    /// Opens the monitor's file and finds its columns.
    pub(super) fn open_name_value_file(
        &self,
        discover: ColumnDiscovery,
    ) -> Result<Box<dyn Monitor>, ObserveError> {
        let mut file = ProcFile::open(self.root, self.kind.source)?;
        let found =
            discover_columns(file.read()?, discover).map_err(|malformed| file.malformed_error(malformed))?;
        let schema = self.schema_with_columns(found.iter().map(|found| found.column.clone()).collect());
        Ok(Box::new(NameValueMonitor { file, schema, found }))
    }
}

/// The columns of `text`.
pub(super) fn discover_columns(
    text: &str,
    discover: ColumnDiscovery,
) -> Result<Vec<DiscoveredColumn>, MalformedLine> {
    let mut found: Vec<DiscoveredColumn> = Vec::new();
    for (number, line) in numbered_lines(text) {
        let (name, rest) = split_name_value(number, line)?;
        if found.iter().all(|known| known.column.name != name) {
            found.push(discover(name, rest));
        }
    }
    if found.is_empty() { Err(MalformedLine::new(1, "at least one line", "the file", "")) } else { Ok(found) }
}

/// The row of `text`. Lines stand where they stood before, nearly always; a name that came later is left out.
pub(super) fn parse_name_value_row(text: &str, found: &[DiscoveredColumn]) -> Result<CellRow, MalformedLine> {
    let mut row = vec![TableCell::Missing; found.len()];
    for (index, (number, line)) in numbered_lines(text).enumerate() {
        let (name, rest) = split_name_value(number, line)?;
        let is_it = |known: &DiscoveredColumn| known.column.name == name;
        let place =
            if found.get(index).is_some_and(is_it) { Some(index) } else { found.iter().position(is_it) };
        let Some((known, cell)) = place.and_then(|place| Some((found.get(place)?, row.get_mut(place)?)))
        else {
            continue;
        };
        let word = rest.split_ascii_whitespace().next().unwrap_or_default();
        *cell = parse_integer_cell(word, known.scale)
            .ok_or_else(|| MalformedLine::new(number, "a number", name, word))?;
    }
    if row.iter().all(|cell| *cell == TableCell::Missing) {
        return Err(MalformedLine::new(1, "a known name", "any line", text));
    }
    Ok(row)
}

/// `name value` and `name: value unit` as name and the rest.
fn split_name_value(number: usize, line: &str) -> Result<(&str, &str), MalformedLine> {
    let halves = line.split_once(':').or_else(|| line.trim_start().split_once(' '));
    let (name, rest) =
        halves.ok_or_else(|| MalformedLine::new(number, "a name and a number", "a line", line))?;
    Ok((name.trim(), rest.trim()))
}
