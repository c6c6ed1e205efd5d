//! Series `writeback` on a clock: a row of the whole machine, and one a device where debugfs can be read.

use perflab_formats::kernel::kernel_folder::{split_at_colon, split_at_space};
use perflab_formats::kernel::vmstat::discover_vmstat_column;
use perflab_formats::kernel::writeback::{BDI_FOLDER, WRITEBACK_NAMES, discover_bdi_column};
use perflab_model::{CellRow, ColumnSpec, SeriesSchema, TableCell};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::folder::SmallFile;
use crate::monitor::text_file::ProcFile;
use crate::monitor::wide_row::WideColumns;
use crate::root::Root;

/// Readings after which devices are listed again.
const LISTED_EVERY: u32 = 16;

struct WritebackMonitor {
    root: Root,
    schema: SeriesSchema,
    vmstat: ProcFile,
    devices: Vec<(String, SmallFile)>,
    columns: WideColumns,
    until_listed: u32,
    buffer: Vec<u8>,
}

pub(crate) fn open_writeback(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let mut schema = opening.schema_with_columns(Vec::new());
    let devices = std::fs::read_dir(opening.root.path(BDI_FOLDER));
    schema.source = match devices {
        Ok(_) => format!("{}, {BDI_FOLDER}", opening.file.source),
        Err(error) => format!("{}; no single devices: {BDI_FOLDER}: {error}", opening.file.source),
    };
    let mut monitor = WritebackMonitor {
        root: opening.root.clone(),
        schema,
        vmstat: ProcFile::open(opening.root, opening.file.source)?,
        devices: Vec::new(),
        columns: WideColumns::default(),
        until_listed: 0,
        buffer: vec![0; 4096],
    };
    monitor.list_devices();
    monitor.read_rows(&mut Vec::new())?;
    monitor.columns.settle();
    monitor.schema.columns =
        [ColumnSpec::key("device")].into_iter().chain(monitor.columns.columns()).collect();
    Ok(Box::new(monitor))
}

impl WritebackMonitor {
    fn list_devices(&mut self) {
        self.until_listed = LISTED_EVERY;
        let names = self.root.list(BDI_FOLDER);
        self.devices.retain(|(name, _)| names.contains(name));
        for name in names {
            if !self.devices.iter().any(|(known, _)| *known == name) {
                let path = self.root.path(&format!("{BDI_FOLDER}/{name}/stats"));
                self.devices.push((name, SmallFile::new(path)));
            }
        }
    }
}

impl Monitor for WritebackMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        self.until_listed = self.until_listed.saturating_sub(1);
        if self.until_listed == 0 {
            self.list_devices();
        }
        let mut row = self.columns.begin_row([TableCell::Text("all".into())]);
        let text = self.vmstat.read()?;
        for (name, rest) in text.lines().filter_map(split_at_space) {
            if WRITEBACK_NAMES.contains(&name) {
                row.set(&mut self.columns, "", name, rest, |name| discover_vmstat_column(name, rest));
            }
        }
        rows.extend(row.finish(&self.columns));
        for (name, file) in &mut self.devices {
            let Ok(text) = file.read(&mut self.buffer) else { continue };
            let mut row = self.columns.begin_row([TableCell::Text(name.clone())]);
            for (name, rest) in text.lines().filter_map(split_at_colon) {
                row.set(&mut self.columns, "", name, rest, |name| discover_bdi_column(name, rest));
            }
            rows.extend(row.finish(&self.columns));
        }
        Ok(())
    }
}
