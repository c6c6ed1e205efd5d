//! `/proc/slabinfo`, version 2: one row a cache of the slab allocator.
//!
//! `objsize` is the padded size of an object, `num_objs` the capacity; SLUB counts objects that are free in a CPU's
//! own slab as active, and reports `active_slabs` equal to `num_slabs` (mm/slub.c, `get_slabinfo`). Slab bytes are
//! `num_slabs * pagesperslab * page size` (series `slab-caches`, fact `memory.page_size`). A name may stand on several
//! rows of a tick, told apart by `ordinal`, and may hold spaces, so a line is read from its right end.
//!
//! No row is left out. What is wrong with one stands in `flags`:
//!
//! | flag | meaning |
//! |---|---|
//! | `torn` | the counts contradict each other, in each of a few readings within the tick |
//! | `approximate` | the kernel may have estimated `active_objs` (more than 10,000 partial slabs on a node) |
//! | `malformed` | the line was cut or holds something that is no number; what could not be read is missing |
//!
//! Fewer objects than `num_slabs * objperslab`, twice the same, are no contradiction: some slabs are of a lower order.

mod memory;
mod parse;
mod sample;
#[cfg(test)]
mod tests;

use super::column::DeclaredColumn;
use super::kind::{MonitorContext, MonitorDescriptor};
use super::proc_file::ProcFile;
use super::slab::{CountEstimates, WITHOUT_ROOT};

#[cfg(test)]
pub(super) use parse::parse_slabinfo;
pub(super) use parse::slabinfo_names;

pub(super) const KIND: MonitorDescriptor = MonitorDescriptor {
    name: "slabinfo",
    source: "/proc/slabinfo",
    about: "objects and slabs of every cache of the kernel's slab allocator",
    needs: "root",
    without: WITHOUT_ROOT,
    columns: COLUMNS,
    open: open_slabinfo,
};

const COLUMNS: &[DeclaredColumn] = &[
    DeclaredColumn::key("cache"),
    DeclaredColumn::gauge("ordinal", "1"),
    DeclaredColumn::gauge("active_objs", "objects"),
    DeclaredColumn::gauge("num_objs", "objects"),
    DeclaredColumn::gauge("objsize", "bytes"),
    DeclaredColumn::gauge("objperslab", "objects"),
    DeclaredColumn::gauge("pagesperslab", "pages"),
    DeclaredColumn::gauge("active_slabs", "slabs"),
    DeclaredColumn::gauge("num_slabs", "slabs"),
    DeclaredColumn::key("flags"),
];

fn open_slabinfo(opening: &MonitorContext<'_>) -> Result<Box<dyn super::Monitor>, crate::ObserveError> {
    let file = ProcFile::open(opening.root, KIND.source)?;
    Ok(Box::new(sample::SlabinfoMonitor::new(
        opening.declared_schema(),
        CountEstimates::new(opening.root),
        file,
    )))
}
