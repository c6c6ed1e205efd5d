//! One structure in one process: `peers NAME N KEYS`, with KEYS random, rising or falling. Prints CPU nanoseconds of one
//! insertion, one successful lookup in another order and one step of an ordered fold, then resident bytes a key, and the
//! longest single insertion on the wall (least of the rounds, which `run` takes).

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use slablist::SlabSet;

const FOLDS: usize = 20;

trait Set: Default {
    fn insert(&mut self, key: u64);
    fn contains(&self, key: u64) -> bool;
    fn fold(&self) -> u64;
}

impl Set for BTreeSet<u64> {
    fn insert(&mut self, key: u64) {
        Self::insert(self, key);
    }
    fn contains(&self, key: u64) -> bool {
        Self::contains(self, &key)
    }
    fn fold(&self) -> u64 {
        self.iter().fold(0, |sum, key| sum ^ key)
    }
}

#[derive(Default)]
struct Slabs(SlabSet<u64>);

impl Set for Slabs {
    fn insert(&mut self, key: u64) {
        self.0.insert(key);
    }
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }
    fn fold(&self) -> u64 {
        self.0.slabs().fold(0, |sum, slab| slab.iter().fold(sum, |sum, key| sum ^ key))
    }
}

impl Set for indexset::BTreeSet<u64> {
    fn insert(&mut self, key: u64) {
        Self::insert(self, key);
    }
    fn contains(&self, key: u64) -> bool {
        Self::contains(self, &key)
    }
    fn fold(&self) -> u64 {
        self.iter().fold(0, |sum, key| sum ^ key)
    }
}

#[derive(Default)]
struct Sweep(sweep_bptree::BPlusTreeSet<u64>);

impl Set for Sweep {
    fn insert(&mut self, key: u64) {
        self.0.insert(key);
    }
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }
    fn fold(&self) -> u64 {
        self.0.iter().fold(0, |sum, key| sum ^ key)
    }
}

/// splitmix64.
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn keys(n: u64, which: &str) -> Vec<u64> {
    let key = |at: u64| match which {
        "rising" => at,
        "falling" => n - at,
        _ => mix((at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(2012)),
    };
    (0..n).map(key).collect()
}

/// CPU nanoseconds of this thread. Not schedstat's, which the kernel only brings up to date at its ticks.
fn on_cpu() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn timed(turns: usize, work: impl FnOnce()) -> f64 {
    let from = on_cpu();
    work();
    (on_cpu() - from) as f64 / turns as f64
}

fn resident() -> f64 {
    let told = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    told.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(0.0) * 4096.0
}

fn measure<S: Set>(n: u64, which: &str) {
    let keys = keys(n, which);
    let mut order = keys.clone();
    order.sort_unstable_by_key(|key| mix(key.wrapping_mul(0x2545_f491_4f6c_dd1d)));
    let (mut set, before, turns) = (S::default(), resident(), n as usize);
    let insert = timed(turns, || keys.iter().for_each(|key| set.insert(*key)));
    let bytes = (resident() - before) / n as f64;
    let find = timed(turns, || assert!(order.iter().all(|key| set.contains(*key))));
    let fold = timed(turns * FOLDS, || (0..FOLDS).for_each(|_| _ = black_box(black_box(&set).fold())));
    let (mut again, mut worst) = (S::default(), 0);
    for key in &keys {
        let since = Instant::now();
        again.insert(*key);
        worst = worst.max(since.elapsed().as_nanos());
    }
    println!("{insert} {find} {fold} {bytes} {}", worst as f64 / 1e3);
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, n, which] = words.as_slice() else { return eprintln!("peers NAME N random|rising|falling") };
    let n = n.parse().unwrap_or(1000);
    match name.as_str() {
        "slablist" => measure::<Slabs>(n, which),
        "BTreeSet" => measure::<BTreeSet<u64>>(n, which),
        "indexset" => measure::<indexset::BTreeSet<u64>>(n, which),
        "sweep-bptree" => measure::<Sweep>(n, which),
        _ => eprintln!("no structure {name}"),
    }
}
