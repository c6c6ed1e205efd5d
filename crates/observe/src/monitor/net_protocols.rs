//! Series `net-protocols` on a clock: one wide row of all protocols' counters.

use perflab_formats::kernel::net_protocols::{
    NET_PROTOCOL_FILES, discover_protocol_column, parse_protocol_counters,
};
use perflab_model::{CellRow, SeriesSchema};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::text_file::ProcFile;
use crate::monitor::wide_row::WideColumns;

struct NetProtocolsMonitor {
    schema: SeriesSchema,
    files: Vec<ProcFile>,
    columns: WideColumns,
}

pub(crate) fn open_net_protocols(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let opened = NET_PROTOCOL_FILES.iter().map(|path| ProcFile::open(opening.root, path));
    let (files, mut refused): (Vec<_>, Vec<_>) = opened.partition(Result::is_ok);
    if files.is_empty() {
        return Err(refused.swap_remove(0).err().unwrap_or_else(|| {
            ObserveError::read_failed(opening.file.source, rustix::io::Errno::NOENT.into())
        }));
    }
    let files: Vec<ProcFile> = files.into_iter().flatten().collect();
    let mut schema = opening.schema_with_columns(Vec::new());
    schema.source = files.iter().map(ProcFile::path).collect::<Vec<_>>().join(", ");
    let mut monitor = NetProtocolsMonitor { schema, files, columns: WideColumns::default() };
    monitor.read_rows(&mut Vec::new())?;
    monitor.columns.settle();
    monitor.schema.columns = monitor.columns.columns().collect();
    Ok(Box::new(monitor))
}

impl Monitor for NetProtocolsMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        let mut row = self.columns.begin_row([]);
        for file in &mut self.files {
            let (path, text) = file.read_with_path()?;
            let mut prefix = String::new();
            parse_protocol_counters(text, |protocol, name, number| {
                if prefix.strip_suffix('_') != Some(protocol) {
                    prefix.clear();
                    prefix.push_str(protocol);
                    if !protocol.is_empty() {
                        prefix.push('_');
                    }
                }
                row.set(&mut self.columns, &prefix, name, number, discover_protocol_column);
            })
            .map_err(|malformed| ObserveError::malformed(path, malformed))?;
        }
        rows.extend(row.finish(&self.columns));
        Ok(())
    }
}
