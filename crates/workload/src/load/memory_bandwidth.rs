//! The four kernels of STREAM (J. D. McCalpin, <https://www.cs.virginia.edu/stream/>) over arrays that
//! are larger than the caches, and the check of its result by arithmetic.
//!
//! Bytes are counted as STREAM counts them: two words per element for copy and scale, three for add
//! and triad, whatever the cache fetches besides. MB are 10^6 bytes. As there, the first pass is not
//! timed.

mod arrays;
mod cache;

use serde_json::json;

use super::LoadError;
use super::options::BuiltinLoadArgs;
use super::pages::{self, PAGES};
use crate::parse::median;
use arrays::{StreamKernel, StreamTimings};

/// Bytes of one element: f64.
const WORD: usize = 8;

pub(super) fn measure_memory_bandwidth(
    options: &mut BuiltinLoadArgs,
) -> Result<serde_json::Value, LoadError> {
    let asked = options.size("size", 0)?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.count("threads", cpus, 1)?;
    let passes = options.count("passes", 10, 1)?;
    let pages = options.choice("pages", PAGES)?;
    options.require_all_used()?;
    let (size, caches) =
        (if asked == 0 { cache::default_array_size() } else { asked }, cache::last_level_cache_size());
    if caches.is_some_and(|caches| size < caches) {
        let said = format_args!(
            "perflab load: an array of {size} bytes fits into the cache; this is not memory bandwidth\n"
        );
        // Measured all the same, if nobody listens.
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), said);
    }
    let length = (size / WORD).max(threads);
    let [a, b, c] = [(); 3].map(|()| pages::map_buffer(length * WORD, pages));
    let timings = arrays::run_stream([a?, b?, c?], threads, passes)?;
    Ok(render_bandwidth_json(&timings, length, threads))
}

fn render_bandwidth_json(timings: &StreamTimings, length: usize, threads: usize) -> serde_json::Value {
    let mut result = json!({ "array_bytes": length * WORD, "threads": threads });
    for kernel in StreamKernel::ALL {
        let bytes = (kernel.words_per_element() * WORD * length) as f64;
        let rates: Vec<f64> =
            timings.seconds_of(kernel).iter().map(|seconds| bytes / seconds / 1e6).collect();
        let best = rates.iter().copied().fold(0.0, f64::max);
        if let Some(object) = result.as_object_mut() {
            object.insert(kernel.name().into(), json!({ "best": best, "median": median(&rates) }));
        }
    }
    result
}
