//! The four kernels of STREAM (J. D. McCalpin, <https://www.cs.virginia.edu/stream/>) over arrays that are larger
//! than the caches, and the check of its result by arithmetic.
//!
//! Bytes are counted as STREAM counts them: two words per element for copy and scale, three for add and triad,
//! whatever the cache fetches besides. MB are 10^6 bytes. As in STREAM, the first pass is not timed.

use std::fs;
use std::sync::Barrier;
use std::time::Instant;

use memmap2::MmapMut;
use perflab_formats::metric_extraction::median;
use perflab_model::Bytes;
use serde_json::json;

use crate::load::args::{BuiltinLoadArgs, LoadError};
use crate::load::page_buffer::{self, PAGES};

/// Bytes of one element: f64.
const WORD: usize = 8;

pub(crate) fn measure_memory_bandwidth(
    options: &mut BuiltinLoadArgs,
) -> Result<serde_json::Value, LoadError> {
    let requested = options.size("size", 0)?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.count("threads", cpus, 1)?;
    let passes = options.count("passes", 10, 1)?;
    let pages = options.choice("pages", PAGES)?;
    options.require_all_used()?;
    let (size, caches) =
        (if requested == 0 { default_array_size() } else { requested }, last_level_cache_size());
    if caches.is_some_and(|caches| size < caches) {
        let note = format_args!(
            "perflab load: an array of {size} bytes fits into the cache; this is not memory bandwidth\n"
        );
        // Measured all the same, if stderr is closed.
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), note);
    }
    let length = (size / WORD).max(threads);
    let [a, b, c] = [(); 3].map(|()| page_buffer::map_buffer(length * WORD, pages));
    let timings = run_stream([a?, b?, c?], threads, passes)?;
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

type StreamWord = [u8; WORD];

/// STREAM's scalar.
const SCALAR: f64 = 3.0;

/// STREAM's bound on the mean relative error of doubles.
const EPSILON: f64 = 1e-13;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamKernel {
    Copy,
    Scale,
    Add,
    Triad,
}

impl StreamKernel {
    pub(crate) const ALL: [StreamKernel; 4] =
        [StreamKernel::Copy, StreamKernel::Scale, StreamKernel::Add, StreamKernel::Triad];

    pub(crate) fn name(self) -> &'static str {
        match self {
            StreamKernel::Copy => "copy",
            StreamKernel::Scale => "scale",
            StreamKernel::Add => "add",
            StreamKernel::Triad => "triad",
        }
    }

    /// Words that STREAM counts per element.
    fn words_per_element(self) -> usize {
        match self {
            StreamKernel::Copy | StreamKernel::Scale => 2,
            StreamKernel::Add | StreamKernel::Triad => 3,
        }
    }
}

/// Seconds of every timed pass, kernel by kernel.
#[derive(Debug, Default)]
struct StreamTimings(Vec<(StreamKernel, f64)>);

impl StreamTimings {
    fn seconds_of(&self, kernel: StreamKernel) -> Vec<f64> {
        self.0.iter().filter(|(one, _)| *one == kernel).map(|(_, seconds)| *seconds).collect()
    }
}

/// One thread's part of the three arrays.
struct StreamSlice<'a> {
    a: &'a mut [StreamWord],
    b: &'a mut [StreamWord],
    c: &'a mut [StreamWord],
}

impl StreamSlice<'_> {
    /// STREAM's initial values; its first test doubles `a`. The first touch is by the thread that
    /// will use the memory, so that it is near.
    fn fill(&mut self) {
        self.a.fill(2.0_f64.to_ne_bytes());
        self.b.fill(2.0_f64.to_ne_bytes());
        self.c.fill(0.0_f64.to_ne_bytes());
    }

    fn run_kernel(&mut self, kernel: StreamKernel) {
        match kernel {
            StreamKernel::Copy => self.c.copy_from_slice(self.a),
            StreamKernel::Scale => map_array(self.b, self.c, |c| SCALAR * c),
            StreamKernel::Add => combine_arrays(self.c, self.a, self.b, |a, b| a + b),
            StreamKernel::Triad => combine_arrays(self.a, self.b, self.c, |b, c| b + SCALAR * c),
        }
    }

    fn verify(&self, runs: usize) -> Result<(), LoadError> {
        let [a, b, c] = expected_values(runs);
        verify_array("a", self.a, a)?;
        verify_array("b", self.b, b)?;
        verify_array("c", self.c, c)
    }
}

fn map_array(to: &mut [StreamWord], from: &[StreamWord], operation: impl Fn(f64) -> f64) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = operation(f64::from_ne_bytes(*from)).to_ne_bytes();
    }
}

fn combine_arrays(
    to: &mut [StreamWord],
    x: &[StreamWord],
    y: &[StreamWord],
    operation: impl Fn(f64, f64) -> f64,
) {
    for ((to, x), y) in to.iter_mut().zip(x).zip(y) {
        *to = operation(f64::from_ne_bytes(*x), f64::from_ne_bytes(*y)).to_ne_bytes();
    }
}

/// What a, b and c must hold after so many runs of all four kernels.
fn expected_values(runs: usize) -> [f64; 3] {
    let [mut a, mut b, mut c] = [2.0, 2.0, 0.0];
    for _ in 0..runs {
        c = a;
        b = SCALAR * c;
        c = a + b;
        a = b + SCALAR * c;
    }
    [a, b, c]
}

fn verify_array(name: &str, words: &[StreamWord], expected: f64) -> Result<(), LoadError> {
    let errors: f64 = words.iter().map(|word| (f64::from_ne_bytes(*word) - expected).abs()).sum();
    if errors / words.len() as f64 <= EPSILON * expected.abs() {
        return Ok(());
    }
    let off = words.iter().map(|word| f64::from_ne_bytes(*word)).find(|word| *word != expected);
    Err(LoadError::WrongResult { what: format!("array {name}"), expected, found: off.unwrap_or(f64::NAN) })
}

/// Runs all kernels `passes` times after an untimed pass, in `threads` threads that begin each kernel
/// together, and checks the result.
fn run_stream(mut maps: [MmapMut; 3], threads: usize, passes: usize) -> Result<StreamTimings, LoadError> {
    let [a, b, c] = &mut maps;
    let (a, b, c) = (as_stream_words(a), as_stream_words(b), as_stream_words(c));
    let share = a.len().div_ceil(threads);
    let parts: Vec<StreamSlice<'_>> = a
        .chunks_mut(share)
        .zip(b.chunks_mut(share))
        .zip(c.chunks_mut(share))
        .map(|((a, b), c)| StreamSlice { a, b, c })
        .collect();
    let barrier = Barrier::new(parts.len());
    std::thread::scope(|scope| {
        let barrier = &barrier;
        let workers: Vec<_> =
            parts.into_iter().map(|part| scope.spawn(move || run_slice(part, barrier, passes))).collect();
        let mut results = workers.into_iter().map(|worker| {
            worker.join().unwrap_or_else(|_| {
                Err(LoadError::system_error("finish a thread")(std::io::Error::other("it panicked")))
            })
        });
        // Barriers make all clocks agree; the first thread's is taken, and every thread's check.
        let first = results.next().unwrap_or_else(|| Ok(StreamTimings::default()));
        results.try_fold(first?, |timings, other| other.map(|_| timings))
    })
}

fn run_slice(
    mut part: StreamSlice<'_>,
    barrier: &Barrier,
    passes: usize,
) -> Result<StreamTimings, LoadError> {
    let mut timings = StreamTimings::default();
    part.fill();
    for pass in 0..=passes {
        for kernel in StreamKernel::ALL {
            barrier.wait();
            let start = Instant::now();
            part.run_kernel(kernel);
            barrier.wait();
            if pass > 0 {
                timings.0.push((kernel, start.elapsed().as_secs_f64()));
            }
        }
    }
    part.verify(passes + 1).map(|()| timings)
}

fn as_stream_words(map: &mut MmapMut) -> &mut [StreamWord] {
    map.as_chunks_mut().0
}

/// Where no cache is described.
const FALLBACK: usize = 128 << 20;

/// STREAM's rule: each array at least four times the last-level cache.
const TIMES: usize = 4;

/// Bytes of one array: four times the last-level cache, at least 32 MiB, at most a twelfth of the
/// memory that is available, as there are three.
fn default_array_size() -> usize {
    let array_bytes = last_level_cache_size().map_or(FALLBACK, |cache| TIMES * cache).max(32 << 20);
    read_available_memory().map_or(array_bytes, |memory| array_bytes.min(memory / 12))
}

/// Bytes of the largest cache of the first CPU, from /sys/devices/system/cpu/cpu0/cache.
fn last_level_cache_size() -> Option<usize> {
    let indices = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?.flatten();
    let sizes = indices.filter_map(|index| fs::read_to_string(index.path().join("size")).ok());
    sizes.filter_map(|size| usize::try_from(Bytes::parse(&size).ok()?.0).ok()).max()
}

fn read_available_memory() -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<usize>().ok().map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_word_is_found() {
        let maps = [(); 3].map(|()| MmapMut::map_anon(8 * 1000).unwrap());
        assert_eq!(run_stream(maps, 3, 2).unwrap().seconds_of(StreamKernel::Triad).len(), 2);
        let [mut a, mut b, mut c] = [(); 3].map(|()| vec![[0; WORD]; 10]);
        let mut part = StreamSlice { a: &mut a, b: &mut b, c: &mut c };
        part.fill();
        StreamKernel::ALL.iter().for_each(|kernel| part.run_kernel(*kernel));
        part.verify(1).unwrap();
        part.b[3] = 1.0_f64.to_ne_bytes();
        insta::assert_snapshot!(part.verify(1).unwrap_err(), @"array b: expected 6, found 1; this machine computes wrongly");
    }

    #[test]
    fn arithmetic_is_streams() {
        // Calculated by hand: a = 2 -> c = 2, b = 6, c = 8, a = 6 + 24.
        assert_eq!(expected_values(1), [30.0, 6.0, 8.0]);
    }
}
