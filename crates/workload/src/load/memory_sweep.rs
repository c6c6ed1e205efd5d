//! One access to each page (or line) of a large buffer, each access waiting for the one before: what address
//! translation costs.
//!
//! Ordinary pages of 4 KiB miss the TLB where huge ones hit it.

use std::time::Instant;

use memmap2::MmapMut;
use serde_json::json;

use crate::load::args::{BuiltinLoadArgs, LoadError, invalid_value_error};
use crate::load::page_buffer::{self, PAGES};
use crate::load::random_order;

/// Bytes of a cache line on every machine that we know of, or half of one.
const LINE: usize = 64;

const LINK: usize = size_of::<u32>();

#[derive(Clone, Copy)]
enum SweepOrder {
    Random,
    Strided,
}

#[derive(Clone, Copy, PartialEq)]
enum SweepBuffer {
    /// touched before the clock starts
    Warmed,
    /// the first pass pays for the page faults
    Fresh,
}

pub(crate) fn measure_memory_sweep(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    let size = options.size("size", 32 << 20)?;
    let step = options.size("step", page_buffer::system_page_size())?;
    let passes = options.count("passes", 1000, 1)?;
    let seed: u64 = options.value("seed", 1)?;
    let order =
        options.choice("order", &[("random", SweepOrder::Random), ("strided", SweepOrder::Strided)])?;
    let kind = options.choice("buffer", &[("warmed", SweepBuffer::Warmed), ("fresh", SweepBuffer::Fresh)])?;
    let pages = options.choice("pages", PAGES)?;
    options.require_all_used()?;
    if step < LINE || size < 2 * step {
        return Err(invalid_value_error(
            "step",
            &format!("must be at least {LINE} and at most half of the size {size}"),
        ));
    }
    let mut map = page_buffer::map_buffer(size, pages)?;
    let places = size / step;
    let next = match order {
        SweepOrder::Random => random_order::single_cycle_order(places, seed),
        SweepOrder::Strided => (1..places as u32).chain([0]).collect(),
    };
    let nanos = match kind {
        SweepBuffer::Warmed => {
            write_links(&mut map, &next, step);
            time_work(|| follow_links(&map, step, places * passes))
        }
        SweepBuffer::Fresh => time_work(|| touch_in_order(&mut map, &next, step, passes)),
    };
    let accesses = (places * passes) as f64;
    Ok(json!({ "access_ns": nanos / accesses, "accesses": accesses, "seconds": nanos / 1e9 }))
}

fn time_work(work: impl FnOnce() -> u32) -> f64 {
    let start = Instant::now();
    std::hint::black_box(work());
    start.elapsed().as_nanos() as f64
}

/// Where in its step an access is: on a line drawn by a hash. Accesses at the same offset of every page, or
/// at one that repeats, would share a few sets of the cache, more so where pages are huge and lie in a
/// row, and the cache would be measured instead of the TLB. (The constant is the golden ratio, as in
/// Knuth's multiplicative hashing.)
fn offset_in_step(place: usize, step: usize) -> usize {
    let hash = (place as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    place * step + hash as usize % (step / LINE) * LINE
}

/// Writes the number of the next one into each.
fn write_links(map: &mut MmapMut, next: &[u32], step: usize) {
    for (place, next) in next.iter().enumerate() {
        let at = offset_in_step(place, step);
        if let Some(slot) = map.get_mut(at..at + LINK) {
            slot.copy_from_slice(&next.to_ne_bytes());
        }
    }
}

/// Follows the links; each load needs the one before, so latencies cannot overlap.
fn follow_links(map: &MmapMut, step: usize, accesses: usize) -> u32 {
    let mut place = 0;
    for _ in 0..accesses {
        let at = offset_in_step(place as usize, step);
        if let Some(Ok(link)) = map.get(at..at + LINK).map(TryInto::try_into) {
            place = u32::from_ne_bytes(link);
        }
    }
    place
}

/// Writes to each in order, page faults included.
fn touch_in_order(map: &mut MmapMut, next: &[u32], step: usize, passes: usize) -> u32 {
    let mut place = 0;
    for _ in 0..next.len() * passes {
        let at = offset_in_step(place as usize, step);
        if let Some(byte) = map.get_mut(at) {
            *byte = byte.wrapping_add(1);
        }
        place = next.get(place as usize).copied().unwrap_or_default();
    }
    place
}
