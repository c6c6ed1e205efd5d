//! `stacks/`: sampled call stacks. Owns three kinds of table: the run's frames, its tree of stacks, and the
//! samples of each case, which point into the tree. Numbers instead of texts, as a stack of thirty frames
//! is met by thousands of samples; a recursive query, or perflab, makes folded text of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::profile::{
    CommId, Frame, FrameId, FrameKind, Node, NodeId, Profile, StackBatch, StackSample, check_tree,
};
use perflab_model::{Event, Plan, What};

use crate::ArchiveError;
use crate::events::{Events, kind};
use crate::layout::{FRAMES, STACKS, TREE, stacks_file};
use crate::samples::{index, signed, unsigned};
use crate::table::{Declaration, Item, Stored, TableReader, TableWriter};

fn declared(name: &str, stored: Stored, unit: &str, kind: &str, meaning: &str) -> Declaration {
    Declaration::new(name, stored, unit, kind, meaning)
}

/// The columns of `stacks/frames.parquet`.
pub(crate) fn frame_columns() -> Vec<Declaration> {
    use Stored::{Boolean, Int32, Int64, Text};
    vec![
        declared("frame", Int32, "1", "key", "number of the frame, counting up from 0"),
        declared("name", Text, "1", "key", "the function without what compilers and kernel versions add"),
        declared("raw", Text, "1", "key", "its name in the symbol table, where that differs").optional(),
        declared("module", Text, "1", "key", "the file that it is in, where it is known").optional(),
        declared("kind", Text, "1", "key", "kernel, user or unknown"),
        declared("inlined", Boolean, "1", "value", "whether its code is part of its caller's"),
        declared("start", Int64, "bytes", "value", "kernel: where it begins, from the symbol `_stext`")
            .optional(),
    ]
}

/// The columns of `stacks/tree.parquet`.
pub(crate) fn tree_columns() -> Vec<Declaration> {
    vec![
        declared("node", Stored::Int32, "1", "key", "number of the stack, counting up from 0"),
        declared(
            "parent",
            Stored::Int32,
            "1",
            "key",
            "the stack that called it, always lower; missing for an outermost frame",
        )
        .optional(),
        declared("frame", Stored::Int32, "1", "key", "its innermost frame"),
    ]
}

/// The columns of `stacks/CASE.parquet`.
pub(crate) fn sample_columns() -> Vec<Declaration> {
    use Stored::{Int32, Int64, Text};
    vec![
        declared("slot", Int32, "1", "key", "index into plan.slots of run.json"),
        declared(
            "time_ns",
            Int64,
            "ns",
            "key",
            "when, CLOCK_MONOTONIC of the target; missing where the source has no times",
        )
        .optional(),
        declared("cpu", Int32, "1", "key", "on which CPU").optional(),
        declared("pid", Int32, "1", "key", "the process; -1 for one that was just dying").optional(),
        declared("tid", Int32, "1", "key", "the thread").optional(),
        declared("comm", Text, "1", "key", "what the thread called itself; empty where nobody knows"),
        declared("node", Int32, "1", "key", "the stack; missing for a sample without one").optional(),
        declared("count", Int64, "1", "value", "samples that the row stands for: 1, but in folded text"),
        declared(
            "weight",
            Int64,
            "see unit",
            "value",
            "their periods' sum, in `unit` of the `profiled` event of the slot",
        ),
    ]
}

/// The tables of stacks being written; none where nothing was profiled.
pub(crate) struct StackWriter {
    directory: PathBuf,
    cases: Vec<u32>,
    shared: Option<Shared>,
    samples: BTreeMap<u32, TableWriter>,
    comms: Vec<String>,
}

/// What all cases share.
struct Shared {
    frames: TableWriter,
    tree: TableWriter,
    counts: (i64, i64),
}

impl StackWriter {
    /// `directory` is the run's; the tables go to `stacks/` in it.
    pub(crate) fn create(directory: &Path, plan: &Plan) -> Result<Self, ArchiveError> {
        let stacks = directory.join(STACKS);
        fs::create_dir_all(&stacks).map_err(ArchiveError::io("create", &stacks))?;
        let cases = plan.slots.iter().map(|slot| slot.case).collect();
        let (samples, comms) = (BTreeMap::new(), Vec::new());
        Ok(StackWriter { directory: directory.into(), cases, shared: None, samples, comms })
    }

    /// Takes a batch. Samples of a slot that the plan lacks have no case to go to and count as case 0.
    pub(crate) fn push(&mut self, batch: &StackBatch) -> Result<(), ArchiveError> {
        self.comms.extend(batch.comms.iter().cloned());
        let shared = match &mut self.shared {
            Some(shared) => shared,
            none => none.insert(Shared::create(&self.directory)?),
        };
        shared.push(batch)?;
        let case = self.cases.get(batch.slot as usize).copied().unwrap_or(0);
        let table = match self.samples.entry(case) {
            std::collections::btree_map::Entry::Occupied(there) => there.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => {
                let path = self.directory.join(stacks_file(case));
                new.insert(TableWriter::create(&path, &sample_columns(), &[])?)
            }
        };
        let comms = &self.comms;
        batch.samples.iter().try_for_each(|sample| table.push(cells(batch.slot, sample, comms)))
    }

    pub(crate) fn close(self) -> Result<(), ArchiveError> {
        if let Some(shared) = self.shared {
            shared.frames.close()?;
            shared.tree.close()?;
        }
        self.samples.into_values().try_for_each(TableWriter::close)
    }
}

impl Shared {
    fn create(directory: &Path) -> Result<Self, ArchiveError> {
        let frames = TableWriter::create(&directory.join(FRAMES), &frame_columns(), &[])?;
        let tree = TableWriter::create(&directory.join(TREE), &tree_columns(), &[])?;
        Ok(Shared { frames, tree, counts: (0, 0) })
    }

    fn push(&mut self, batch: &StackBatch) -> Result<(), ArchiveError> {
        for frame in &batch.frames {
            let cells = [
                Item::Int(self.counts.0),
                Item::Text(&frame.name),
                frame.raw.as_deref().map_or(Item::Missing, Item::Text),
                frame.module.as_deref().map_or(Item::Missing, Item::Text),
                Item::Text(frame.kind.name()),
                Item::Flag(frame.inlined),
                frame.start.map_or(Item::Missing, Item::Int),
            ];
            self.frames.push(cells)?;
            self.counts.0 += 1;
        }
        for node in &batch.nodes {
            let parent = node.parent.map_or(Item::Missing, |parent| Item::Int(parent.0.into()));
            self.tree.push([Item::Int(self.counts.1), parent, Item::Int(node.frame.0.into())])?;
            self.counts.1 += 1;
        }
        Ok(())
    }
}

fn cells<'a>(slot: u32, sample: &StackSample, comms: &'a [String]) -> [Item<'a>; 9] {
    let optional = |number: Option<i64>| number.map_or(Item::Missing, Item::Int);
    let large = |number: u64| Item::Int(i64::try_from(number).unwrap_or(i64::MAX));
    [
        Item::Int(slot.into()),
        optional(sample.at.map(signed)),
        optional(sample.cpu.map(i64::from)),
        optional(sample.pid.map(i64::from)),
        optional(sample.tid.map(i64::from)),
        Item::Text(comms.get(sample.comm.0 as usize).map_or("", String::as_str)),
        optional(sample.leaf.map(|leaf| leaf.0.into())),
        large(sample.count),
        large(sample.weight),
    ]
}

/// The cases that the closed run at `run` has samples of.
pub(crate) fn cases(run: &Path, plan: &Plan) -> Vec<u32> {
    let there = |case: &u32| run.join(stacks_file(*case)).exists();
    (0..u32::try_from(plan.cases.len()).unwrap_or(u32::MAX)).filter(there).collect()
}

/// The cases that a journal has samples of.
pub(crate) fn cases_of(journal: Events, plan: &Plan) -> Result<Vec<u32>, ArchiveError> {
    let mut cases = std::collections::BTreeSet::new();
    for event in journal.only(&[kind::PROFILED, kind::STACKS]) {
        let slot = match event?.what {
            What::Stacks(batch) => batch.slot,
            What::Profiled(about) => about.slot,
            _ => continue,
        };
        cases.extend(plan.slots.get(slot as usize).map(|slot| slot.case));
    }
    Ok(cases.into_iter().collect())
}

/// The profile of `case` from the tables of the closed run at `run`; what the samplers said is in its journal.
pub(crate) fn read(run: &Path, case: u32, journal: Events) -> Result<Profile, ArchiveError> {
    let frames = read_frames(run)?;
    let nodes = read_tree(run, frames.len())?;
    let mut profile = Profile { frames, nodes, ..Profile::default() };
    read_samples(run, case, &mut profile)?;
    let slots: Vec<u32> = profile.pieces.iter().map(|piece| piece.about.slot).collect();
    for event in journal.only(&[kind::PROFILED]) {
        if let What::Profiled(about) = event?.what
            && slots.contains(&about.slot)
        {
            profile.tell(*about);
        }
    }
    Ok(profile)
}

fn read_frames(run: &Path) -> Result<Vec<Frame>, ArchiveError> {
    let table = TableReader::open(run, FRAMES)?;
    let mut raws = table.optional_text("raw")?.into_iter();
    let mut modules = table.optional_text("module")?.into_iter();
    let mut kinds = table.text("kind", FrameKind::named)?.into_iter();
    let mut inlined = table.flag("inlined")?.into_iter();
    let mut starts = table.optional_int64("start")?.into_iter();
    let frame = |name: String| {
        Some(Frame {
            name,
            raw: raws.next()?,
            module: modules.next()?,
            kind: kinds.next()?,
            inlined: inlined.next()?,
            start: starts.next()?,
        })
    };
    Ok(table.text("name", str::to_owned)?.into_iter().map_while(frame).collect())
}

/// Readers walk from a node to its callers: an edge that is not in the tree, or goes round, is refused here, and so is a stack
/// without end.
fn read_tree(run: &Path, frames: usize) -> Result<Vec<Node>, ArchiveError> {
    let table = TableReader::open(run, TREE)?;
    let parents = table.optional_int32("parent")?;
    let node = |(frame, parent): (i32, Option<i32>)| Node {
        parent: parent.map(|parent| NodeId(index(parent))),
        frame: FrameId(index(frame)),
    };
    let nodes: Vec<Node> = table.int32("frame")?.into_iter().zip(parents).map(node).collect();
    check_tree(&nodes, frames).map_err(ArchiveError::damaged(&run.join(TREE)))?;
    Ok(nodes)
}

fn read_samples(run: &Path, case: u32, profile: &mut Profile) -> Result<(), ArchiveError> {
    let table = TableReader::open(run, stacks_file(case))?;
    let comms: RefCell<Vec<String>> = RefCell::default();
    let mut named = table.text("comm", |name| interned(&mut comms.borrow_mut(), name))?.into_iter();
    profile.comms = comms.into_inner();
    let mut times = table.optional_int64("time_ns")?.into_iter();
    let mut cpus = table.optional_int32("cpu")?.into_iter();
    let mut pids = table.optional_int32("pid")?.into_iter();
    let mut tids = table.optional_int32("tid")?.into_iter();
    let mut leaves = table.optional_int32("node")?.into_iter();
    let mut counts = table.int64("count")?.into_iter();
    let mut weights = table.int64("weight")?.into_iter();
    let nodes = profile.nodes.len();
    for slot in table.int32("slot")? {
        let mut sample = || {
            Some(StackSample {
                at: times.next()?.map(unsigned),
                cpu: cpus.next()?.map(index),
                pid: pids.next()?,
                tid: tids.next()?,
                comm: named.next()?,
                leaf: leaves.next()?.map(|leaf| NodeId(index(leaf))),
                count: unsigned(counts.next()?).0,
                weight: unsigned(weights.next()?).0,
            })
        };
        let Some(sample) = sample() else { break };
        if sample.leaf.is_some_and(|leaf| leaf.0 as usize >= nodes) {
            let path = run.join(stacks_file(case));
            return Err(ArchiveError::damaged(&path)("a sample points at a stack that is not in the tree"));
        }
        profile.piece(index(slot)).samples.push(sample);
    }
    Ok(())
}

/// Samples of one task follow one another: the last name is looked at first.
fn interned(comms: &mut Vec<String>, name: &str) -> CommId {
    let known = comms.iter().rposition(|known| known == name);
    let at = known.unwrap_or_else(|| {
        comms.push(name.into());
        comms.len() - 1
    });
    CommId(u32::try_from(at).unwrap_or(u32::MAX))
}

/// The profile of `case` from the journal of a run that has no tables.
pub(crate) fn read_of(path: &Path, journal: Events, case: u32, plan: &Plan) -> Result<Profile, ArchiveError> {
    let of_case = |slot: u32| plan.slots.get(slot as usize).is_some_and(|slot| slot.case == case);
    let mut profile = Profile::default();
    for event in journal.only(&[kind::STACKS, kind::PROFILED]) {
        let Event { what, .. } = event?;
        match what {
            What::Stacks(batch) if of_case(batch.slot) => profile.take(*batch),
            What::Stacks(batch) => profile.take_names(*batch),
            What::Profiled(about) if of_case(about.slot) => profile.tell(*about),
            _ => {}
        }
    }
    check_tree(&profile.nodes, profile.frames.len()).map_err(ArchiveError::damaged(path))?;
    Ok(profile)
}
