//! Files of one `name value` a line, whose names vary by kernel: one wide row, its columns found when opened.

use perflab_model::{Cell, Column, Row, SeriesSchema};

use super::column::integer;
use super::kind::{Monitor, Opening};
use super::line::{Malformed, lines};
use super::proc_file::ProcFile;
use crate::ObserveError;

/// One column found, and what the kernel's number is multiplied by to be in its unit.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub column: Column,
    pub scale: u64,
}

/// How such a file tells its columns: from name and the text after it.
pub(super) type Discover = fn(name: &str, rest: &str) -> Found;

/// A monitor of such a file.
struct Wide {
    file: ProcFile,
    schema: SeriesSchema,
    found: Vec<Found>,
}

impl Monitor for Wide {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn sample(&mut self, rows: &mut Vec<Row>) -> Result<(), ObserveError> {
        match parse(self.file.read()?, &self.found) {
            Ok(row) => rows.push(row),
            Err(malformed) => return Err(self.file.malformed(malformed)),
        }
        Ok(())
    }
}

impl Opening<'_> {
    /// Opens the monitor's file and finds its columns.
    pub(super) fn wide(&self, discover: Discover) -> Result<Box<dyn Monitor>, ObserveError> {
        let mut file = ProcFile::open(self.root, self.kind.source)?;
        let found = find(file.read()?, discover).map_err(|malformed| file.malformed(malformed))?;
        let schema = self.schema(found.iter().map(|found| found.column.clone()).collect());
        Ok(Box::new(Wide { file, schema, found }))
    }
}

/// The columns of `text`.
pub(super) fn find(text: &str, discover: Discover) -> Result<Vec<Found>, Malformed> {
    let mut found: Vec<Found> = Vec::new();
    for (number, line) in lines(text) {
        let (name, rest) = split(number, line)?;
        if found.iter().all(|known| known.column.name != name) {
            found.push(discover(name, rest));
        }
    }
    if found.is_empty() { Err(Malformed::new(1, "at least one line", "the file", "")) } else { Ok(found) }
}

/// The row of `text`. Lines stand where they stood before, nearly always; a name that came later is left out.
pub(super) fn parse(text: &str, found: &[Found]) -> Result<Row, Malformed> {
    let mut row = vec![Cell::Missing; found.len()];
    for (index, (number, line)) in lines(text).enumerate() {
        let (name, rest) = split(number, line)?;
        let is_it = |known: &Found| known.column.name == name;
        let place =
            if found.get(index).is_some_and(is_it) { Some(index) } else { found.iter().position(is_it) };
        let Some((known, cell)) = place.and_then(|place| Some((found.get(place)?, row.get_mut(place)?)))
        else {
            continue;
        };
        let word = rest.split_ascii_whitespace().next().unwrap_or_default();
        *cell = integer(word, known.scale).ok_or_else(|| Malformed::new(number, "a number", name, word))?;
    }
    if row.iter().all(|cell| *cell == Cell::Missing) {
        return Err(Malformed::new(1, "a known name", "any line", text));
    }
    Ok(row)
}

/// `name value` and `name: value unit` as name and the rest.
fn split(number: usize, line: &str) -> Result<(&str, &str), Malformed> {
    let halves = line.split_once(':').or_else(|| line.trim_start().split_once(' '));
    let (name, rest) = halves.ok_or_else(|| Malformed::new(number, "a name and a number", "a line", line))?;
    Ok((name.trim(), rest.trim()))
}
