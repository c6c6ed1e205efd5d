//! The load of the study against the standard library's set: 1,416,100 random insertions, lookups of all keys in
//! another order, ordered folds; rising keys too. Each structure runs in a process of its own; times are CPU time of
//! the thread where the kernel tells it, the least of several rounds; memory is growth of the resident set.
//!
//! `cargo bench -p slablist -- [N] [ROUNDS]`

use std::collections::BTreeSet;
use std::hint::black_box;
use std::process::Command;

use slablist::{
    BoundedReap, ListShape, MinCapacity, NeverReap, NoProbe, ReapPolicy, ReapThresholds, SlabEvent,
    SlabProbe, SlabSet,
};

const STRUCTURES: [&str; 8] = [
    "BTreeSet",
    "slablist",
    "slablist-4080",
    "slablist-never",
    "slablist-old",
    "slablist-new",
    "slablist-probed",
    "slablist-2012-old",
];

const FOLDS: usize = 40;

trait BenchSet {
    fn insert(&mut self, key: u64) -> bool;
    fn contains(&self, key: &u64) -> bool;
    fn sum(&self) -> u64;
    fn walk(&self) -> u64;
    fn remove(&mut self, key: &u64) -> bool;
}

impl BenchSet for BTreeSet<u64> {
    fn insert(&mut self, key: u64) -> bool {
        Self::insert(self, key)
    }
    fn contains(&self, key: &u64) -> bool {
        Self::contains(self, key)
    }
    fn sum(&self) -> u64 {
        self.iter().fold(0, |sum, key| sum ^ key)
    }
    fn walk(&self) -> u64 {
        let mut sum = 0;
        for key in self {
            sum ^= key;
        }
        sum
    }
    fn remove(&mut self, key: &u64) -> bool {
        Self::remove(self, key)
    }
}

impl<R: ReapPolicy, P: SlabProbe> BenchSet for SlabSet<u64, R, P> {
    fn insert(&mut self, key: u64) -> bool {
        Self::insert(self, key)
    }
    fn contains(&self, key: &u64) -> bool {
        Self::contains(self, key)
    }
    fn sum(&self) -> u64 {
        self.slabs().fold(0, |sum, slab| slab.iter().fold(sum, |sum, key| sum ^ key))
    }
    fn walk(&self) -> u64 {
        let mut sum = 0;
        for key in self {
            sum ^= key;
        }
        sum
    }
    fn remove(&mut self, key: &u64) -> bool {
        Self::remove(self, key)
    }
}

/// Does as little as a probe that does something can.
#[derive(Clone, Default)]
struct TickProbe(u64);

impl SlabProbe for TickProbe {
    fn event(&mut self, _: SlabEvent) {
        self.0 += 1;
    }
}

/// splitmix64.
fn random_keys(n: usize) -> Vec<u64> {
    let mut state = 2012_u64;
    std::iter::repeat_with(|| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
    .take(n)
    .collect()
}

/// Nanoseconds that this thread was on a CPU. Not schedstat's, which the kernel only brings up to date at its ticks.
fn thread_cpu_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn time_per_element(n: usize, work: impl FnOnce()) -> f64 {
    let from = thread_cpu_ns();
    work();
    thread_cpu_ns().saturating_sub(from) as f64 / n as f64
}

fn resident_bytes() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(pages.split(' ').nth(1)?.parse::<u64>().ok()? * 4096)
}

/// insert, find, fold, walk, remove in ns an element, resident bytes an element, insert of rising keys.
fn measure_set<S: BenchSet>(n: usize, make: impl Fn() -> S) -> [f64; 7] {
    let keys = random_keys(n);
    let mut probes = keys.clone();
    probes.sort_unstable_by_key(|key| key.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let (mut set, before) = (make(), resident_bytes());
    let insert = time_per_element(n, || keys.iter().for_each(|key| _ = set.insert(*key)));
    let bytes =
        before.zip(resident_bytes()).map_or(f64::NAN, |(from, to)| to.saturating_sub(from) as f64 / n as f64);
    let find = time_per_element(n, || assert!(probes.iter().all(|key| set.contains(key))));
    // Repeated: the first fold finds the caches as the lookups left them.
    let fold = time_per_element(n * FOLDS, || (0..FOLDS).for_each(|_| _ = black_box(black_box(&set).sum())));
    let walk = time_per_element(n * FOLDS, || (0..FOLDS).for_each(|_| _ = black_box(black_box(&set).walk())));
    let remove = time_per_element(n, || assert!(probes.iter().all(|key| set.remove(key))));
    let mut set = make();
    let rising = time_per_element(n, || (0..n as u64).for_each(|key| _ = set.insert(key)));
    [insert, find, fold, walk, remove, bytes, rising]
}

fn measure_by_name(name: &str, n: usize) -> [f64; 7] {
    let (shape, bounded) = (ListShape::DEFAULT, BoundedReap::default());
    match name {
        "slablist" => measure_set(n, || SlabSet::with_shape(shape, bounded, NoProbe)),
        "slablist-4080" => {
            measure_set(n, || SlabSet::with_shape(ListShape::new(4080, 128, 64), bounded, NoProbe))
        }
        "slablist-never" => measure_set(n, || SlabSet::with_shape(shape, NeverReap, NoProbe)),
        "slablist-old" => measure_set(n, || SlabSet::with_shape(shape, MinCapacity::default(), NoProbe)),
        "slablist-new" => measure_set(n, || SlabSet::with_shape(shape, ReapThresholds::default(), NoProbe)),
        "slablist-probed" => measure_set(n, || SlabSet::with_shape(shape, bounded, TickProbe::default())),
        "slablist-2012-old" => {
            measure_set(n, || SlabSet::with_shape(ListShape::ORIGINAL_2012, MinCapacity::default(), NoProbe))
        }
        _ => measure_set(n, BTreeSet::new),
    }
}

/// Runs the structure in a process of its own.
fn measure_in_child_process(name: &str, n: usize) -> Option<Vec<f64>> {
    let out =
        Command::new(std::env::current_exe().ok()?).args(["child", name, &n.to_string()]).output().ok()?;
    String::from_utf8(out.stdout).ok()?.split_whitespace().map(|figure| figure.parse().ok()).collect()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if let [word, name, n] = args.as_slice()
        && word == "child"
    {
        let figures = measure_by_name(name, n.parse().unwrap_or(1000));
        return println!("{}", figures.map(|figure| figure.to_string()).join(" "));
    }
    let number = |at: usize, default| args.get(at).and_then(|arg| arg.parse().ok()).unwrap_or(default);
    // `cargo test --benches` only wants to see it run.
    let quick = std::env::args().any(|arg| arg == "--test") || cfg!(debug_assertions);
    let (n, rounds) = (number(0, if quick { 1000 } else { 1_416_100 }), number(1, if quick { 1 } else { 5 }));
    println!("{n} random u64, ns of CPU an element, least of {rounds}; in brackets: times BTreeSet");
    println!(
        "{:18} {:>14} {:>14} {:>14} {:>14} {:>14} {:>14} {:>14}",
        "", "insert", "find", "fold", "walk", "remove", "bytes", "rising"
    );
    let mut best = vec![vec![f64::INFINITY; 7]; STRUCTURES.len()];
    for _ in 0..rounds {
        for (best, name) in best.iter_mut().zip(STRUCTURES) {
            let figures = measure_in_child_process(name, n).unwrap_or_default();
            best.iter_mut().zip(figures).for_each(|(best, now)| *best = best.min(now));
        }
    }
    let base = best.first().cloned().unwrap_or_default();
    for (best, name) in best.iter().zip(STRUCTURES) {
        let cells: Vec<String> = best
            .iter()
            .zip(&base)
            .map(|(now, base)| format!("{:>14}", format!("{now:.2} ({:.2})", now / base)))
            .collect();
        println!("{name:18} {}", cells.join(" "));
    }
}
