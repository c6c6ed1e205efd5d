//! The usual monitor: one file, one parser from its text to rows.

use perflab_model::{Row, SeriesSchema};

use super::kind::{Monitor, Opening};
use super::line::Malformed;
use super::proc_file::ProcFile;
use crate::ObserveError;

/// A monitor of one file.
struct OneFile<P> {
    file: ProcFile,
    schema: SeriesSchema,
    parse: P,
}

impl<P> Monitor for OneFile<P>
where
    P: FnMut(&str, &mut Vec<Row>) -> Result<(), Malformed> + Send,
{
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn sample(&mut self, rows: &mut Vec<Row>) -> Result<(), ObserveError> {
        let parsed = (self.parse)(self.file.read()?, rows);
        parsed.map_err(|malformed| self.file.malformed(malformed))
    }
}

impl Opening<'_> {
    /// Opens the monitor's file; `parse` turns its text into rows of the declared columns.
    pub(super) fn one_file(
        &self,
        parse: fn(&str, &mut Vec<Row>) -> Result<(), Malformed>,
    ) -> Result<Box<dyn Monitor>, ObserveError> {
        let file = ProcFile::open(self.root, self.kind.source)?;
        Ok(Box::new(OneFile { file, schema: self.declared(), parse }))
    }
}
