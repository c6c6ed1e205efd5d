//! The page size of a machine, from how many of its objects fill a slab.
//!
//! SLUB puts `pages * page size / padded size` objects into a slab (mm/slub.c, `order_objects`), so rows of several
//! sizes fit one page size only. The older SLAB kept its lists in the slab: up to an eighth less.

use crate::imported_run::RunMetadata;
use crate::log_stream::LogStream;

/// Page sizes that kernels have, in bytes.
const KNOWN: [u64; 5] = [4096, 8192, 16_384, 32_768, 65_536];

/// Rows that must agree before they count as saying something.
const ENOUGH: u32 = 3;

/// One slab's shape: padded object size in bytes, objects, pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlabShape {
    pub(crate) object: i64,
    pub(crate) objects: i64,
    pub(crate) pages: i64,
}

impl SlabShape {
    /// Whether that many objects fit into a slab at all.
    pub(crate) fn is_possible(self, page: u64) -> bool {
        let room = u64::try_from(self.pages).ok().and_then(|pages| pages.checked_mul(page));
        let needed = self.object.checked_mul(self.objects).and_then(|bytes| u64::try_from(bytes).ok());
        matches!((room, needed), (Some(room), Some(needed)) if needed <= room)
    }

    /// Whether they fill it, as the allocator would.
    fn is_filled(self, page: u64) -> bool {
        let objects = u64::try_from(self.objects).unwrap_or(0);
        let object = u64::try_from(self.object).ok().filter(|object| *object > 0);
        let room = u64::try_from(self.pages).unwrap_or(0).saturating_mul(page);
        let most = object.map_or(0, |object| room / object);
        objects > 0 && objects <= most && most - objects <= objects / 8
    }
}

/// Counts which page sizes rows fit.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageSizeVotes {
    rows: u32,
    fit: [u32; KNOWN.len()],
}

impl PageSizeVotes {
    pub(crate) fn add(&mut self, shape: SlabShape) {
        self.rows += 1;
        for (page, fit) in KNOWN.iter().zip(&mut self.fit) {
            *fit += u32::from(shape.is_filled(*page));
        }
    }

    /// The page size that most rows fit, if the rows are clear about it.
    pub(crate) fn best_page_size(&self) -> Option<u64> {
        let (page, fit) = KNOWN.iter().zip(self.fit).max_by_key(|(_, fit)| *fit)?;
        (fit >= ENOUGH && fit * 2 > self.rows).then_some(*page)
    }
}

/// Where a page size is known from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MachinePageSize {
    /// In bytes.
    pub(crate) bytes: u64,
    /// `--page-size`, a file, or the rows themselves.
    pub(crate) source: String,
}

/// Decides the page size of a run and writes it into its metadata: what was stated, else what the rows fit,
/// else 4096 with a warning.
pub(crate) fn settle_page_size(
    reported: Option<MachinePageSize>,
    streams: &[&LogStream],
    metadata: &mut RunMetadata,
) -> u64 {
    let of_rows = |stream: &&LogStream| {
        let source = format!("how many objects fill a slab in {}", stream.file_report().file_name());
        Some(MachinePageSize { bytes: stream.page_size()?, source })
    };
    let known = reported.or_else(|| streams.iter().find_map(of_rows));
    if known.is_none() {
        metadata.notes.push((
            "the page size is not known: 4096 bytes are assumed, and all bytes of slabs depend on it".into(),
            "say --page-size where the machine had another one".into(),
        ));
    }
    let assumed = || MachinePageSize { bytes: KNOWN[0], source: "assumed".into() };
    let MachinePageSize { bytes, source } = known.unwrap_or_else(assumed);
    metadata.facts.add("memory.page_size", i64::try_from(bytes).unwrap_or(i64::MAX), &source);
    bytes
}
