//! The usual monitor: one file, one parser from its text to rows.

use perflab_model::{CellRow, SeriesSchema};

use super::kind::{Monitor, MonitorContext};
use super::line::MalformedLine;
use super::proc_file::ProcFile;
use crate::ObserveError;

/// A monitor of one file.
struct TextFileMonitor<P> {
    file: ProcFile,
    schema: SeriesSchema,
    parse: P,
}

impl<P> Monitor for TextFileMonitor<P>
where
    P: FnMut(&str, &mut Vec<CellRow>) -> Result<(), MalformedLine> + Send,
{
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        let parsed = (self.parse)(self.file.read()?, rows);
        parsed.map_err(|malformed| self.file.malformed_error(malformed))
    }
}

impl MonitorContext<'_> {
    /// Opens the monitor's file; `parse` turns its text into rows of the declared columns.
    pub(super) fn open_text_file(
        &self,
        parse: fn(&str, &mut Vec<CellRow>) -> Result<(), MalformedLine>,
    ) -> Result<Box<dyn Monitor>, ObserveError> {
        let file = ProcFile::open(self.root, self.kind.source)?;
        Ok(Box::new(TextFileMonitor { file, schema: self.declared_schema(), parse }))
    }
}
