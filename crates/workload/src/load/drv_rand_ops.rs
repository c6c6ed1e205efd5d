//! Random insertions into a slab list, each of them traced: the driver of the slab-list study of 2012, under its name
//! and with its modes. Keys come from a seed instead of /dev/urandom, so that two policies can be given the same ones,
//! and lie in memory before the first insertion.

mod keys;
mod told;

use std::path::{Path, PathBuf};

use optrace::{File, Recorder, Trace, Words};
use serde_json::json;
use slablist::{Policy, Shape, SlabList, SlabSet, State};
use tempfile::TempDir;

use super::LoadError;
use super::options::{Options, wrong};
use told::{INSERT, NUMBERS, SPANS, Told};

/// What is inserted, and whether the list keeps it sorted.
#[derive(Clone, Copy)]
enum Mode {
    SortedIntegers,
    OrderedIntegers,
    SortedTexts,
    OrderedTexts,
}

const MODES: &[(&str, Mode)] = &[
    ("intsrt", Mode::SortedIntegers),
    ("intord", Mode::OrderedIntegers),
    ("strsrt", Mode::SortedTexts),
    ("strord", Mode::OrderedTexts),
];

/// The sizes of 2012, with which the study's outliers come back, or those of today.
const SHAPES: &[(&str, Shape)] = &[("2012", Shape::ORIGINAL_2012), ("default", Shape::DEFAULT)];

struct Plan {
    elements: usize,
    seed: u64,
    shape: Shape,
    policy: Policy,
}

/// `drv_rand_ops N MODE [--reap POLICY] [--shape SHAPE] [--seed SEED]`
pub(super) fn measure(options: &mut Options) -> Result<serde_json::Value, LoadError> {
    options.in_order(&["elements", "mode"]);
    let elements = options.count("elements", 1_416_100, 1)?;
    let mode = options.choice("mode", MODES)?;
    let policy = options.take_shown(
        "reap",
        Policy::Thresholds(slablist::Thresholds::default()),
        "the list's own thresholds",
    )?;
    let shape = options.choice("shape", SHAPES)?;
    let seed = options.take("seed", 1)?;
    options.done()?;
    let plan = Plan { elements, seed, shape, policy };
    let (path, _folder) = place().map_err(|error| wrong("trace", &format!("no place for it: {error}")))?;
    let result = traced(&path, |recorder| match mode {
        Mode::SortedIntegers => sorted(&plan, keys::integers(&plan), recorder),
        Mode::OrderedIntegers => ordered(&plan, keys::integers(&plan), recorder),
        Mode::SortedTexts => sorted(&plan, keys::texts(&plan), recorder),
        Mode::OrderedTexts => ordered(&plan, keys::texts(&plan), recorder),
    })
    .and_then(|list| summary(&path, &plan, &list));
    result.map_err(|error| wrong("trace", &error.to_string()))
}

/// Where the trace goes: where somebody wants it, or into a folder that nobody else can guess or enter, removed when it is
/// dropped.
fn place() -> std::io::Result<(PathBuf, Option<TempDir>)> {
    if let Some(path) = std::env::var_os(optrace::ENVIRONMENT).filter(|path| !path.is_empty()) {
        return Ok((path.into(), None));
    }
    let folder = tempfile::Builder::new().prefix("drv_rand_ops-").tempdir()?;
    Ok((folder.path().join("trace"), Some(folder)))
}

/// How the list was at the end.
struct List {
    state: State,
    slab_bytes: usize,
    resident: u64,
    reaps: (u64, u64),
}

fn traced(path: &Path, work: impl FnOnce(&Recorder) -> List) -> Result<List, optrace::Error> {
    let words = Words::new(&["insert"], &SPANS, &NUMBERS)?;
    let trace = Trace::create(path, &words, optrace::Options::default())?;
    let recorder = trace.recorder();
    let list = work(&recorder);
    drop(recorder);
    trace.finish().map(|_| list)
}

fn sorted<K: Copy + Ord>(plan: &Plan, keys: Vec<K>, recorder: &Recorder) -> List {
    let mut set = SlabSet::with(plan.shape, plan.policy, Told::new(recorder));
    let before = resident();
    for (elements, key) in (0..).zip(&keys) {
        recorder.begin(INSERT);
        recorder.number(told::ELEMENTS, elements);
        set.probe_mut().settle();
        set.insert(*key);
        recorder.end();
    }
    let resident = resident().saturating_sub(before);
    let slab_bytes = plan.shape.capacity::<K>() * size_of::<K>();
    List { state: set.state(), slab_bytes, resident, reaps: set.probe().reaps() }
}

fn ordered<K: Copy>(plan: &Plan, keys: Vec<K>, recorder: &Recorder) -> List {
    let mut list = SlabList::with(plan.shape, plan.policy, Told::new(recorder));
    let before = resident();
    for (elements, key) in (0..).zip(&keys) {
        recorder.begin(INSERT);
        recorder.number(told::ELEMENTS, elements);
        list.probe_mut().settle();
        list.push_back(*key);
        recorder.end();
    }
    let resident = resident().saturating_sub(before);
    let slab_bytes = plan.shape.capacity::<K>() * size_of::<K>();
    List { state: list.state(), slab_bytes, resident, reaps: list.probe().reaps() }
}

/// Bytes of this process in memory.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = pages.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// The figures of the whole run, those of single insertions read back from the trace.
fn summary(path: &Path, plan: &Plan, list: &List) -> Result<serde_json::Value, optrace::Error> {
    let mut times = Vec::with_capacity(plan.elements);
    let told = File::open(path)?.read(|operation| times.push(operation.on_cpu()))?;
    times.sort_unstable();
    let quantile = |share: f64| {
        let at = (share * times.len() as f64).ceil() as usize;
        times.get(at.clamp(1, times.len().max(1)) - 1).copied().unwrap_or(0)
    };
    let bytes = list.state.slabs * list.slab_bytes;
    Ok(json!({
        "insertions": times.len(),
        "mean_ns": times.iter().sum::<u64>() as f64 / times.len().max(1) as f64,
        "p50_ns": quantile(0.5), "p99_ns": quantile(0.99), "p999_ns": quantile(0.999), "p9999_ns": quantile(0.9999),
        "max_ns": times.last(),
        "slabs": list.state.slabs,
        "fill": list.state.elements as f64 / (list.state.slabs * list.state.slab_capacity).max(1) as f64,
        "bytes_per_element": bytes as f64 / list.state.elements.max(1) as f64,
        "resident_bytes_per_element": list.resident as f64 / list.state.elements.max(1) as f64,
        "reaps": list.reaps.0, "saved": list.reaps.1,
        "lost": told.lost,
    }))
}
