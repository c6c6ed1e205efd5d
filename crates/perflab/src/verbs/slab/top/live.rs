//! The caches now: one reading of the monitors, made into what the analysis reads.

use perflab_analyze::slab::{SlabFacts, SlabInput, SlabRecording};
use perflab_model::series::{ColumnData, ColumnType, RowRuns, Series};
use perflab_model::{CellRow, Nanos, TableCell};
use perflab_observe::{Monitor, Root};

/// The opened monitors. Attributes and exact counts are optional: a kernel may lack /sys/kernel/slab.
pub struct LiveSlab {
    slabinfo: Box<dyn Monitor>,
    caches: Option<Box<dyn Monitor>>,
    attributes: Option<Series>,
    names: Vec<String>,
    system: SlabFacts,
}

impl LiveSlab {
    /// Opens them.
    pub fn open(root: &Root, every: Nanos) -> anyhow::Result<Self> {
        let open =
            |name: &str| perflab_observe::open_monitor(perflab_observe::find_monitor(name)?, root, every);
        let facts = perflab_observe::collect_facts(root, None)?;
        let fact = |key| facts.integer(key).and_then(|value| u64::try_from(value).ok());
        let system = SlabFacts {
            page_size: fact("memory.page_size"),
            cpus: fact("cpu.online"),
            nodes: fact("numa.nodes"),
        };
        Ok(LiveSlab {
            slabinfo: open("slabinfo")?,
            caches: open("slab-caches").ok(),
            attributes: None,
            names: Vec::new(),
            system,
        })
    }

    /// Reads once. Attributes are read again only where the set of caches changed.
    pub fn sample(&mut self) -> anyhow::Result<SlabRecording> {
        let slabinfo = read_one_tick(self.slabinfo.as_mut())?;
        let names = cache_names(&slabinfo);
        if names != self.names {
            // The monitor gives rows only when the set changed since it was asked last.
            let read = self.caches.as_mut().and_then(|caches| read_one_tick(caches.as_mut()).ok());
            if let Some(read) = read.filter(|read| !read.at.is_empty()) {
                self.attributes = Some(read);
            }
            self.names = names;
        }
        let input = SlabInput {
            slabinfo: Some(&RowRuns::from_series(&slabinfo)),
            caches: self.attributes.as_ref(),
            system: self.system,
            ..SlabInput::default()
        };
        Ok(SlabRecording::read(&input)?)
    }
}

fn cache_names(series: &Series) -> Vec<String> {
    match series.columns.first() {
        Some(ColumnData::Text(names)) => names.iter().flatten().cloned().collect(),
        _ => Vec::new(),
    }
}

fn read_one_tick(monitor: &mut dyn Monitor) -> anyhow::Result<Series> {
    let mut rows = Vec::new();
    monitor.read_rows(&mut rows)?;
    let schema = monitor.schema().clone();
    let columns = schema.columns.iter().enumerate();
    let columns = columns.map(|(index, column)| gather_column(&rows, index, column.stored)).collect();
    // Attributes of a later scan hold for earlier rows too, so one moment is enough for all.
    Ok(Series { schema, at: vec![Nanos(1); rows.len()], columns })
}

fn gather_column(rows: &[CellRow], index: usize, stored: ColumnType) -> ColumnData {
    let cells = rows.iter().map(|row| row.get(index));
    match stored {
        ColumnType::Int => ColumnData::Int(
            cells
                .map(|cell| match cell {
                    Some(TableCell::Int(value)) => Some(*value),
                    _ => None,
                })
                .collect(),
        ),
        ColumnType::Float => ColumnData::Float(
            cells
                .map(|cell| match cell {
                    Some(TableCell::Float(value)) => Some(*value),
                    _ => None,
                })
                .collect(),
        ),
        ColumnType::Text => ColumnData::Text(
            cells
                .map(|cell| match cell {
                    Some(TableCell::Text(text)) => Some(text.clone()),
                    _ => None,
                })
                .collect(),
        ),
    }
}
