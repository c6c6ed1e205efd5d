//! Counts of one slab cache: whether they contradict each other, and when the kernel estimates them.
//!
//! SLUB keeps slabs and objects of a node in two counters and adds to one after the other (mm/slub.c,
//! `inc_slabs_node`), and free objects are counted later still, so a reader may fall in between. A count of objects
//! below slabs times objects is not always that: where memory was too fragmented for the preferred order, slabs of
//! a lower one hold fewer objects (`allocate_slab`). Such a cache gives the same counts twice.
//!
//! SLUB puts `pages * page size / padded size` objects into a slab (mm/slub.c, `order_objects`), so rows of several
//! sizes fit one page size only. The older SLAB kept its lists in the slab: up to an eighth less.
//!
//! Since 6.10, the kernel looks at no more than 10,000 slabs of a node's partial list, half from each end, and scales
//! up (mm/slub.c, `count_partial_free_approx`). Only sysfs says how long that list is; that it may be so long, the
//! counts do.

/// What one reading says of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlabCounts {
    /// Objects in use, as far as the kernel knows.
    pub in_use: u64,
    /// Objects that its slabs have room for.
    pub objects: u64,
    /// Objects of a slab of the preferred order.
    pub per_slab: u64,
    /// Its slabs in use, where that is counted.
    pub active_slabs: Option<u64>,
    /// Its slabs.
    pub slabs: u64,
}

/// What those counts say about each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountConsistency {
    /// They agree.
    Sound,
    /// Fewer objects than slabs of the preferred order hold: torn, or some slabs are of a lower order.
    Short,
    /// They cannot all have been true at once, and why.
    Torn(&'static str),
}

impl SlabCounts {
    /// What they say about each other.
    pub fn consistency(&self) -> CountConsistency {
        match self.slabs.checked_mul(self.per_slab) {
            _ if self.in_use > self.objects => CountConsistency::Torn("more active objects than objects"),
            _ if self.active_slabs.is_some_and(|active| active > self.slabs) => {
                CountConsistency::Torn("more active slabs than slabs")
            }
            Some(full) if full == self.objects => CountConsistency::Sound,
            Some(full) if full < self.objects => CountConsistency::Torn("more objects than its slabs hold"),
            // Every slab, of whatever order, holds an object at least.
            Some(_) if self.objects >= self.slabs => CountConsistency::Short,
            _ => CountConsistency::Torn("more slabs than objects"),
        }
    }

    /// Whether `self` and an earlier reading show slabs of a lower order: short by the same, twice.
    pub fn shows_lower_order(&self, earlier: &SlabCounts) -> bool {
        let same = (self.objects, self.slabs) == (earlier.objects, earlier.slabs);
        same && self.consistency() == CountConsistency::Short
    }

    /// Whether so many of its slabs can be partial that a kernel which estimates does: every partial slab has a free object.
    pub fn can_be_estimated(&self) -> bool {
        self.slabs > MOST_COUNTED && self.objects.saturating_sub(self.in_use) > MOST_COUNTED
    }
}

/// Partial slabs of a node that every kernel counts one by one (MAX_PARTIAL_TO_SCAN).
pub const MOST_COUNTED: u64 = 10_000;

/// What is known of a machine whose log is read.
#[derive(Debug, Clone, Default)]
pub struct LoggedMachine {
    /// Its page size.
    pub page_size: Option<MachinePageSize>,
    /// Its kernel's release.
    pub kernel: Option<String>,
}

/// The kernel that began to estimate.
const ESTIMATES_SINCE: (u32, u32) = (6, 10);

/// Whether a kernel estimates; one that does not say its version is taken for a new one.
pub fn kernel_estimates(release: Option<&str>) -> bool {
    release.and_then(parse_kernel_version).is_none_or(|version| version >= ESTIMATES_SINCE)
}

/// `6.18.44-fc-v445`
fn parse_kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.trim_start_matches('v').split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Page sizes that kernels have, in bytes.
const PAGE_SIZES: [u64; 5] = [4096, 8192, 16_384, 32_768, 65_536];

/// Rows that must agree before they count as saying something.
const ENOUGH: u32 = 3;

/// One slab's shape: padded object size in bytes, objects, pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlabShape {
    /// bytes of an object
    pub object: u64,
    /// objects of a slab
    pub objects: u64,
    /// its pages
    pub pages: u64,
}

impl SlabShape {
    /// Whether that many objects fit into a slab at all.
    pub fn is_possible(self, page: u64) -> bool {
        let (room, needed) = (self.pages.checked_mul(page), self.object.checked_mul(self.objects));
        room.zip(needed).is_some_and(|(room, needed)| needed <= room)
    }

    /// Whether they fill it, as the allocator would.
    fn is_filled(self, page: u64) -> bool {
        let room = self.pages.saturating_mul(page);
        let most = room.checked_div(self.object).unwrap_or(0);
        self.objects > 0 && self.objects <= most && most - self.objects <= self.objects / 8
    }
}

/// Counts which page sizes rows fit.
#[derive(Debug, Clone, Default)]
pub struct PageSizeVotes {
    rows: u32,
    fit: [u32; PAGE_SIZES.len()],
}

impl PageSizeVotes {
    /// Counts one slab.
    pub fn add(&mut self, shape: SlabShape) {
        self.rows += 1;
        for (page, fit) in PAGE_SIZES.iter().zip(&mut self.fit) {
            *fit += u32::from(shape.is_filled(*page));
        }
    }

    /// The page size that most rows fit, if the rows are clear about it.
    pub fn best_page_size(&self) -> Option<u64> {
        let (page, fit) = PAGE_SIZES.iter().zip(self.fit).max_by_key(|(_, fit)| *fit)?;
        (fit >= ENOUGH && fit * 2 > self.rows).then_some(*page)
    }
}

/// Where a page size is known from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachinePageSize {
    /// In bytes.
    pub bytes: u64,
    /// `--page-size`, a file, or the rows themselves.
    pub source: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn consistency(in_use: u64, objects: u64, per_slab: u64, slabs: u64) -> CountConsistency {
        SlabCounts { in_use, objects, per_slab, active_slabs: Some(slabs), slabs }.consistency()
    }

    #[test]
    fn counts_agree_are_short_or_torn() {
        assert_eq!(consistency(20, 20, 10, 2), CountConsistency::Sound);
        assert_eq!(consistency(5, 15, 10, 2), CountConsistency::Short);
        for torn in
            [(21, 20, 10, 2), (1, 21, 10, 2), (0, 1, 10, 2), (u64::MAX, 20, 10, 2), (0, 1, u64::MAX, 2)]
        {
            let found = consistency(torn.0, torn.1, torn.2, torn.3);
            assert!(matches!(found, CountConsistency::Torn(_)), "{torn:?}");
        }
        let more_active =
            SlabCounts { in_use: 1, objects: 20, per_slab: 10, active_slabs: Some(3), slabs: 2 };
        assert_eq!(more_active.consistency(), CountConsistency::Torn("more active slabs than slabs"));
    }

    #[test]
    fn page_sizes_show_in_how_slabs_are_filled() {
        let votes = |page: u64| {
            let mut votes = PageSizeVotes::default();
            for (object, order) in [(104, 0), (192, 0), (1088, 3), (5952, 3), (8192, 3), (168, 0)] {
                let pages = 1 << order;
                votes.add(SlabShape { object, objects: pages * page / object, pages });
            }
            votes.best_page_size()
        };
        assert_eq!(votes(4096), Some(4096));
        assert_eq!(votes(16_384), Some(16_384));
        assert_eq!(votes(65_536), Some(65_536));
        assert_eq!(PageSizeVotes::default().best_page_size(), None);
    }

    #[test]
    fn kernels_estimate_since_6_10() {
        assert!(kernel_estimates(None) && kernel_estimates(Some("6.18.44-fc-v445")));
        assert!(kernel_estimates(Some("v6.10")) && kernel_estimates(Some("6")) && kernel_estimates(Some("")));
        assert!(!kernel_estimates(Some("5.0.0-31-generic")) && !kernel_estimates(Some("6.9.1")));
    }
}
