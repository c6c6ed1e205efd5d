//! Random insertions into a slab list, each of them traced: the driver of the slab-list study of 2012, under its
//! name and with its modes.
//!
//! Keys come from a seed instead of /dev/urandom, so that two policies can be given the same ones, and lie in
//! memory before the first insertion. Each piece of work of the list is a span, the list's state numbers that are
//! recorded when they change.

use std::path::{Path, PathBuf};

use optrace::{Recorder, Trace, TraceFile, Vocabulary};
use serde_json::json;
use slablist::{AnyReapPolicy, ListShape, Occupancy, SlabEvent, SlabList, SlabProbe, SlabSet, SlabWork};
use tempfile::TempDir;

use crate::load::args::{BuiltinLoadArgs, LoadError, invalid_value_error};
use crate::load::random_order::Xorshift64;

/// What is inserted, and whether the list keeps it sorted.
#[derive(Clone, Copy)]
enum InsertionMode {
    SortedIntegers,
    OrderedIntegers,
    SortedTexts,
    OrderedTexts,
}

const MODES: &[(&str, InsertionMode)] = &[
    ("intsrt", InsertionMode::SortedIntegers),
    ("intord", InsertionMode::OrderedIntegers),
    ("strsrt", InsertionMode::SortedTexts),
    ("strord", InsertionMode::OrderedTexts),
];

/// The sizes of 2012, with which the study's outliers come back, or those of today.
const SHAPES: &[(&str, ListShape)] = &[("2012", ListShape::ORIGINAL_2012), ("default", ListShape::DEFAULT)];

struct InsertionPlan {
    elements: usize,
    seed: u64,
    shape: ListShape,
    policy: AnyReapPolicy,
}

/// `drv_rand_ops N MODE [--reap POLICY] [--shape SHAPE] [--seed SEED]`
pub(crate) fn measure_drv_rand_ops(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    options.bind_positionals(&["elements", "mode"]);
    let elements = options.count("elements", 1_416_100, 1)?;
    let mode = options.choice("mode", MODES)?;
    let policy = options.value_with_shown_default(
        "reap",
        AnyReapPolicy::Thresholds(slablist::ReapThresholds::default()),
        "the list's own thresholds",
    )?;
    let shape = options.choice("shape", SHAPES)?;
    let seed = options.value("seed", 1)?;
    options.require_all_used()?;
    let plan = InsertionPlan { elements, seed, shape, policy };
    let (path, _folder) = choose_trace_path()
        .map_err(|error| invalid_value_error("trace", &format!("no place for it: {error}")))?;
    let result = trace_insertions(&path, |recorder| match mode {
        InsertionMode::SortedIntegers => insert_sorted(&plan, random_integers(&plan), recorder),
        InsertionMode::OrderedIntegers => insert_ordered(&plan, random_integers(&plan), recorder),
        InsertionMode::SortedTexts => insert_sorted(&plan, random_texts(&plan), recorder),
        InsertionMode::OrderedTexts => insert_ordered(&plan, random_texts(&plan), recorder),
    })
    .and_then(|list| summarize_insertions(&path, &plan, &list));
    result.map_err(|error| invalid_value_error("trace", &error.to_string()))
}

/// Where the trace goes: where the caller wants it, or into a folder that no other user can guess or enter, removed when it is
/// dropped.
fn choose_trace_path() -> std::io::Result<(PathBuf, Option<TempDir>)> {
    if let Some(path) = std::env::var_os(optrace::ENVIRONMENT).filter(|path| !path.is_empty()) {
        return Ok((path.into(), None));
    }
    let folder = tempfile::Builder::new().prefix("drv_rand_ops-").tempdir()?;
    Ok((folder.path().join("trace"), Some(folder)))
}

/// How the list was at the end.
struct InsertedList {
    state: Occupancy,
    slab_bytes: usize,
    resident: u64,
    reaps: (u64, u64),
}

fn trace_insertions(
    path: &Path,
    work: impl FnOnce(&Recorder) -> InsertedList,
) -> Result<InsertedList, optrace::OptraceError> {
    let vocabulary = Vocabulary::new(&["insert"], &SPANS, &NUMBERS)?;
    let trace = Trace::create(path, &vocabulary, optrace::TraceOptions::default())?;
    let recorder = trace.recorder();
    let list = work(&recorder);
    drop(recorder);
    trace.finish().map(|_| list)
}

fn insert_sorted<K: Copy + Ord>(plan: &InsertionPlan, keys: Vec<K>, recorder: &Recorder) -> InsertedList {
    let mut set = SlabSet::with_shape(plan.shape, plan.policy, RecordingProbe::new(recorder));
    let before = read_resident_bytes();
    for (elements, key) in (0..).zip(&keys) {
        recorder.begin(INSERT);
        recorder.number(ELEMENTS, elements);
        set.probe_mut().record_pending_state();
        set.insert(*key);
        recorder.end();
    }
    let resident = read_resident_bytes().saturating_sub(before);
    let slab_bytes = plan.shape.capacity::<K>() * size_of::<K>();
    InsertedList { state: set.occupancy(), slab_bytes, resident, reaps: set.probe().reap_totals() }
}

fn insert_ordered<K: Copy>(plan: &InsertionPlan, keys: Vec<K>, recorder: &Recorder) -> InsertedList {
    let mut list = SlabList::with_shape(plan.shape, plan.policy, RecordingProbe::new(recorder));
    let before = read_resident_bytes();
    for (elements, key) in (0..).zip(&keys) {
        recorder.begin(INSERT);
        recorder.number(ELEMENTS, elements);
        list.probe_mut().record_pending_state();
        list.push_back(*key);
        recorder.end();
    }
    let resident = read_resident_bytes().saturating_sub(before);
    let slab_bytes = plan.shape.capacity::<K>() * size_of::<K>();
    InsertedList { state: list.occupancy(), slab_bytes, resident, reaps: list.probe().reap_totals() }
}

/// Bytes of this process in memory.
fn read_resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = pages.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// The figures of the whole run, those of single insertions read back from the trace.
fn summarize_insertions(
    path: &Path,
    plan: &InsertionPlan,
    list: &InsertedList,
) -> Result<serde_json::Value, optrace::OptraceError> {
    let mut times = Vec::with_capacity(plan.elements);
    let summary = TraceFile::open(path)?.read_operations(|operation| times.push(operation.on_cpu_ns()))?;
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
        "lost": summary.lost,
    }))
}

/// The kind of operation.
const INSERT: u8 = 0;

/// Names of the spans, in the order of their numbers.
const SPANS: [&str; 5] = ["allocate", "spill", "shift", "reap", "reap-index"];

const ALLOCATE: u8 = 0;

const SPILL: u8 = 1;

const SHIFT: u8 = 2;

const REAP: u8 = 3;

const REAP_INDEX: u8 = 4;

/// Names of the numbers, in the order of theirs.
const NUMBERS: [&str; 8] = [
    "elements",
    "slabs",
    "index nodes",
    "index levels",
    "examined",
    "saved",
    "nodes examined",
    "nodes saved",
];

const ELEMENTS: u8 = 0;

const SLABS: u8 = 1;

const NODES: u8 = 2;

const LEVELS: u8 = 3;

const EXAMINED: u8 = 4;

const SAVED: u8 = 5;

const NODES_EXAMINED: u8 = 6;

const NODES_SAVED: u8 = 7;

/// A probe that passes everything on to a recorder.
struct RecordingProbe<'a> {
    recorder: &'a Recorder<'a>,
    reaps: u64,
    saved: u64,
    /// inside a reap: the state is not reported during it
    reaping: bool,
    /// slabs, nodes and levels after a reap, for the next operation: this one's are those before it
    after: [Option<i64>; 3],
}

impl<'a> RecordingProbe<'a> {
    pub(crate) fn new(recorder: &'a Recorder<'a>) -> Self {
        RecordingProbe { recorder, reaps: 0, saved: 0, reaping: false, after: [None; 3] }
    }

    /// Reaps of either level, and slabs and nodes that they saved.
    fn reap_totals(&self) -> (u64, u64) {
        (self.reaps, self.saved)
    }

    /// At the beginning of an operation: reports what the last one's reap left.
    #[inline]
    fn record_pending_state(&mut self) {
        if self.after != [None; 3] {
            for (kind, value) in [SLABS, NODES, LEVELS].into_iter().zip(std::mem::take(&mut self.after)) {
                value.into_iter().for_each(|value| self.recorder.number(kind, value));
            }
        }
    }

    fn record_state(&mut self, kind: u8, value: i64) {
        match kind {
            _ if !self.reaping => self.recorder.number(kind, value),
            SLABS => self.after[0] = Some(value),
            NODES => self.after[1] = Some(value),
            _ => self.after[2] = Some(value),
        }
    }

    fn record_reap(&mut self, level: u8, examined: usize, saved: usize) {
        self.reaping = false;
        (self.reaps, self.saved) = (self.reaps + 1, self.saved + saved as u64);
        self.recorder.leave();
        let numbers = if level == 0 { (EXAMINED, SAVED) } else { (NODES_EXAMINED, NODES_SAVED) };
        self.recorder.number(numbers.0, examined as i64);
        self.recorder.number(numbers.1, saved as i64);
    }
}

impl SlabProbe for RecordingProbe<'_> {
    #[inline]
    fn begin(&mut self, work: SlabWork) {
        self.reaping |= matches!(work, SlabWork::Reap { .. });
        self.recorder.enter(match work {
            SlabWork::MakeSlab => ALLOCATE,
            SlabWork::Spill => SPILL,
            SlabWork::Shift => SHIFT,
            SlabWork::Reap { level: 0 } => REAP,
            _ => REAP_INDEX,
        });
    }

    #[inline]
    fn event(&mut self, event: SlabEvent) {
        match event {
            SlabEvent::SlabMade { slabs } => {
                self.recorder.leave();
                self.record_state(SLABS, slabs as i64);
            }
            SlabEvent::Spilled { .. } | SlabEvent::Shifted { .. } => self.recorder.leave(),
            SlabEvent::SlabFreed { slabs } => self.record_state(SLABS, slabs as i64),
            SlabEvent::NodeMade { nodes } | SlabEvent::NodeFreed { nodes } => {
                self.record_state(NODES, nodes as i64)
            }
            SlabEvent::IndexGrown { levels } | SlabEvent::IndexShrunk { levels } => {
                self.record_state(LEVELS, levels.into());
            }
            SlabEvent::Reaped { level, examined, saved, .. } => self.record_reap(level, examined, saved),
            _ => {}
        }
    }
}

fn random_integers(plan: &InsertionPlan) -> Vec<u64> {
    let mut random = Xorshift64::new(plan.seed);
    std::iter::repeat_with(|| random.next()).take(plan.elements).collect()
}

/// Eight printable letters each, six random bits a letter.
fn random_texts(plan: &InsertionPlan) -> Vec<[u8; 8]> {
    let letters = |number: u64| std::array::from_fn(|at| b'0' + (number >> (at * 8) & 63) as u8);
    random_integers(plan).into_iter().map(letters).collect()
}
