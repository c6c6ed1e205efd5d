//! Whether the numbers of a row can have been true at one instant, and how the row says so. The rules are those of the
//! sampler in `observe`; what it reads again at once, a log only has in its next dump.

use super::super::page_size::SlabShape;
use super::parse::SlabinfoNumbers;

/// Partial slabs that every kernel counts one by one (MAX_PARTIAL_TO_SCAN).
const COUNTED: i64 = 10_000;
/// The kernel that began to estimate.
const ESTIMATES: (u32, u32) = (6, 10);

/// A flag, and why.
type FlagWithReason = (&'static str, &'static str);

/// The rows of one name.
#[derive(Debug, Default)]
pub(super) struct RepeatedCacheNames {
    /// The dump in which it stood last, and how often so far.
    tick: u64,
    given: usize,
    known: Vec<EarlierCounts>,
}

/// What is known of one cache from the dumps before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EarlierCounts {
    counts: [Option<i64>; 2],
    /// Whether some of its slabs are of a lower order and hold fewer objects: it was short by the same in
    /// two dumps one after the other, which torn counts are not.
    falls_back: bool,
}

impl RepeatedCacheNames {
    /// The number of the next row of this name in the dump `tick`, and what is known of it now.
    pub(super) fn next_row(
        &mut self,
        tick: u64,
        numbers: &SlabinfoNumbers,
        seen: &mut usize,
    ) -> (i64, EarlierCounts) {
        let ordinal = if self.tick == tick { self.given } else { 0 };
        (self.tick, self.given) = (tick, ordinal + 1);
        if self.known.len() <= ordinal {
            *seen += 1;
            self.known.push(EarlierCounts::default());
        }
        let slot = self.known.get_mut(ordinal);
        let known = slot.map_or_else(EarlierCounts::default, |known| {
            *known = known.with_counts(numbers);
            *known
        });
        (i64::try_from(ordinal).unwrap_or(i64::MAX), known)
    }
}

impl EarlierCounts {
    fn with_counts(self, numbers: &SlabinfoNumbers) -> Self {
        let [_, all, _, each, _, _, slabs] = *numbers;
        let full = slabs.zip(each).map(|(slabs, each)| slabs.saturating_mul(each));
        let counts = [all, slabs];
        let short = all.zip(full).is_some_and(|(all, full)| all < full);
        EarlierCounts { counts, falls_back: self.falls_back || (short && counts == self.counts) }
    }
}

/// Whether a kernel estimates; one that does not say its version is taken for a new one.
pub(super) fn kernel_estimates(kernel: Option<&str>) -> bool {
    kernel.and_then(parse_kernel_version).is_none_or(|version| version >= ESTIMATES)
}

/// The flags of a row as they are stored, empty for none, and why in words.
pub(super) fn row_flags(
    numbers: &SlabinfoNumbers,
    known: EarlierCounts,
    page: Option<u64>,
    estimates: bool,
) -> FlagWithReason {
    let broken = malformed_reason(numbers, page);
    let torn = if broken.is_none() { torn_reason(numbers, known) } else { None };
    let estimate = if estimates { estimate_reason(numbers) } else { None };
    let flags = [broken, torn, estimate].into_iter().flatten();
    flags.reduce(|first, (flag, _)| (join_flags(first.0, flag), first.1)).unwrap_or_default()
}

/// How the row's slabs are filled.
pub(super) fn slab_shape(numbers: &SlabinfoNumbers) -> Option<SlabShape> {
    let [_, _, Some(object), Some(objects), Some(pages), _, _] = *numbers else { return None };
    Some(SlabShape { object, objects, pages })
}

/// What is wrong with the numbers, as the flag and in words.
fn malformed_reason(numbers: &SlabinfoNumbers, page: Option<u64>) -> Option<FlagWithReason> {
    if numbers.iter().any(Option::is_none) {
        return Some(("malformed", "a number is missing"));
    }
    let denied = slab_shape(numbers).zip(page).is_some_and(|(shape, page)| !shape.is_possible(page));
    denied.then_some(("malformed", "its objects do not fit into its pages"))
}

/// Counts that cannot all have been true at once, or nearly so (see [`EarlierCounts::shows_lower_order`]).
fn torn_reason(numbers: &SlabinfoNumbers, known: EarlierCounts) -> Option<FlagWithReason> {
    let [Some(active), Some(all), _, Some(each), _, Some(active_slabs), Some(slabs)] = *numbers else {
        return None;
    };
    let why = match slabs.saturating_mul(each) {
        _ if active > all => "more active objects than objects",
        _ if active_slabs > slabs => "more active slabs than slabs",
        full if all > full => "more objects than its slabs hold",
        _ if all < slabs => "more slabs than objects",
        full if all < full && !known.falls_back => {
            "fewer objects than its slabs hold, and not twice the same"
        }
        _ => return None,
    };
    Some(("torn", why))
}

/// Since 6.10 the kernel looks at 10,000 slabs of a long partial list and scales up (mm/slub.c,
/// `count_partial_free_approx`). How long it was no log says; that it may have been, the counts do.
fn estimate_reason(numbers: &SlabinfoNumbers) -> Option<FlagWithReason> {
    let [Some(active), Some(all), .., Some(slabs)] = *numbers else { return None };
    let may = slabs > COUNTED && all.saturating_sub(active) > COUNTED;
    may.then_some(("approximate", "more than 10,000 of its slabs may have been partial"))
}

/// The only flags that come together.
fn join_flags(first: &'static str, second: &'static str) -> &'static str {
    match (first, second) {
        ("torn", "approximate") => "torn,approximate",
        ("malformed", "approximate") => "malformed,approximate",
        _ => first,
    }
}

/// `6.18.44-fc-v445`
fn parse_kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.trim_start_matches('v').split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
