//! `stacks/`: the run's frames, its tree of stacks, and the samples of each case, which point into the tree.
//!
//! Numbers instead of texts, as a stack of thirty frames is met by thousands of samples; a recursive query, or perflab,
//! makes folded text of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::profile::{Profile, StackBatch, check_stack_tree};
use perflab_model::{
    CommId, FrameId, FrameKind, NodeId, RunEvent, RunEventKind, RunPlan, StackFrame, StackNode, StackSample,
};

use crate::error::ArchiveError;
use crate::journal::{JournalReader, kind};
use crate::parquet_reader::ParquetReader;
use crate::parquet_writer::{ParquetWriter, StorageType, StoredCell, StoredColumn};
use crate::run_layout::{FRAMES, STACKS, TREE, stacks_path};
use crate::tables::samples::{from_stored_nanos, to_index, to_stored_nanos};

fn stack_column(name: &str, stored: StorageType, unit: &str, kind: &str, meaning: &str) -> StoredColumn {
    StoredColumn::new(name, stored, unit, kind, meaning)
}

/// The columns of `stacks/frames.parquet`.
pub(crate) fn frame_columns() -> Vec<StoredColumn> {
    use StorageType::{Boolean, Int32, Int64, Text};
    vec![
        stack_column("frame", Int32, "1", "key", "number of the frame, counting up from 0"),
        stack_column("name", Text, "1", "key", "the function without what compilers and kernel versions add"),
        stack_column("raw", Text, "1", "key", "its name in the symbol table, where that differs").optional(),
        stack_column("module", Text, "1", "key", "the file that it is in, where it is known").optional(),
        stack_column("kind", Text, "1", "key", "kernel, user or unknown"),
        stack_column("inlined", Boolean, "1", "value", "whether its code is part of its caller's"),
        stack_column("start", Int64, "bytes", "value", "kernel: where it begins, from the symbol `_stext`")
            .optional(),
    ]
}

/// The columns of `stacks/tree.parquet`.
pub(crate) fn tree_columns() -> Vec<StoredColumn> {
    vec![
        stack_column("node", StorageType::Int32, "1", "key", "number of the stack, counting up from 0"),
        stack_column(
            "parent",
            StorageType::Int32,
            "1",
            "key",
            "the stack that called it, always lower; missing for an outermost frame",
        )
        .optional(),
        stack_column("frame", StorageType::Int32, "1", "key", "its innermost frame"),
    ]
}

/// The columns of `stacks/CASE.parquet`.
pub(crate) fn stack_sample_columns() -> Vec<StoredColumn> {
    use StorageType::{Int32, Int64, Text};
    vec![
        stack_column("slot", Int32, "1", "key", "index into plan.slots of run.json"),
        stack_column(
            "time_ns",
            Int64,
            "ns",
            "key",
            "when, CLOCK_MONOTONIC of the target; missing where the source has no times",
        )
        .optional(),
        stack_column("cpu", Int32, "1", "key", "on which CPU").optional(),
        stack_column("pid", Int32, "1", "key", "the process; -1 for one that was just dying").optional(),
        stack_column("tid", Int32, "1", "key", "the thread").optional(),
        stack_column("comm", Text, "1", "key", "what the thread called itself; empty where nobody knows"),
        stack_column("node", Int32, "1", "key", "the stack; missing for a sample without one").optional(),
        stack_column("count", Int64, "1", "value", "samples that the row stands for: 1, but in folded text"),
        stack_column(
            "weight",
            Int64,
            "see unit",
            "value",
            "their periods' sum, in `unit` of the `profiled` event of the slot",
        ),
    ]
}

/// The tables of stacks being written; none where nothing was profiled.
pub(crate) struct StackTablesWriter {
    directory: PathBuf,
    cases: Vec<u32>,
    shared: Option<SharedStackTables>,
    samples: BTreeMap<u32, ParquetWriter>,
    comms: Vec<String>,
}

/// What all cases share.
struct SharedStackTables {
    frames: ParquetWriter,
    tree: ParquetWriter,
    counts: (i64, i64),
}

impl StackTablesWriter {
    /// `directory` is the run's; the tables go to `stacks/` in it.
    pub(crate) fn create(directory: &Path, plan: &RunPlan) -> Result<Self, ArchiveError> {
        let stacks = directory.join(STACKS);
        fs::create_dir_all(&stacks).map_err(ArchiveError::io("create", &stacks))?;
        let cases = plan.slots.iter().map(|slot| slot.case).collect();
        let (samples, comms) = (BTreeMap::new(), Vec::new());
        Ok(StackTablesWriter { directory: directory.into(), cases, shared: None, samples, comms })
    }

    /// Takes a batch. Samples of a slot that the plan lacks have no case to go to and count as case 0.
    pub(crate) fn push(&mut self, batch: &StackBatch) -> Result<(), ArchiveError> {
        self.comms.extend(batch.comms.iter().cloned());
        let shared = match &mut self.shared {
            Some(shared) => shared,
            none => none.insert(SharedStackTables::create(&self.directory)?),
        };
        shared.push(batch)?;
        let case = self.cases.get(batch.slot as usize).copied().unwrap_or(0);
        let table = match self.samples.entry(case) {
            std::collections::btree_map::Entry::Occupied(there) => there.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => {
                let path = self.directory.join(stacks_path(case));
                new.insert(ParquetWriter::create(&path, &stack_sample_columns(), &[])?)
            }
        };
        let comms = &self.comms;
        batch
            .samples
            .iter()
            .try_for_each(|sample| table.push_row(stack_sample_cells(batch.slot, sample, comms)))
    }

    pub(crate) fn close(self) -> Result<(), ArchiveError> {
        if let Some(shared) = self.shared {
            shared.frames.close()?;
            shared.tree.close()?;
        }
        self.samples.into_values().try_for_each(ParquetWriter::close)
    }
}

impl SharedStackTables {
    fn create(directory: &Path) -> Result<Self, ArchiveError> {
        let frames = ParquetWriter::create(&directory.join(FRAMES), &frame_columns(), &[])?;
        let tree = ParquetWriter::create(&directory.join(TREE), &tree_columns(), &[])?;
        Ok(SharedStackTables { frames, tree, counts: (0, 0) })
    }

    fn push(&mut self, batch: &StackBatch) -> Result<(), ArchiveError> {
        for frame in &batch.frames {
            let cells = [
                StoredCell::Int(self.counts.0),
                StoredCell::Text(&frame.name),
                frame.raw.as_deref().map_or(StoredCell::Missing, StoredCell::Text),
                frame.module.as_deref().map_or(StoredCell::Missing, StoredCell::Text),
                StoredCell::Text(frame.kind.name()),
                StoredCell::Flag(frame.inlined),
                frame.start.map_or(StoredCell::Missing, StoredCell::Int),
            ];
            self.frames.push_row(cells)?;
            self.counts.0 += 1;
        }
        for node in &batch.nodes {
            let parent = node.parent.map_or(StoredCell::Missing, |parent| StoredCell::Int(parent.0.into()));
            self.tree.push_row([
                StoredCell::Int(self.counts.1),
                parent,
                StoredCell::Int(node.frame.0.into()),
            ])?;
            self.counts.1 += 1;
        }
        Ok(())
    }
}

fn stack_sample_cells<'a>(slot: u32, sample: &StackSample, comms: &'a [String]) -> [StoredCell<'a>; 9] {
    let optional = |number: Option<i64>| number.map_or(StoredCell::Missing, StoredCell::Int);
    let large = |number: u64| StoredCell::Int(i64::try_from(number).unwrap_or(i64::MAX));
    [
        StoredCell::Int(slot.into()),
        optional(sample.at.map(to_stored_nanos)),
        optional(sample.cpu.map(i64::from)),
        optional(sample.pid.map(i64::from)),
        optional(sample.tid.map(i64::from)),
        StoredCell::Text(comms.get(sample.comm.0 as usize).map_or("", String::as_str)),
        optional(sample.leaf.map(|leaf| leaf.0.into())),
        large(sample.count),
        large(sample.weight),
    ]
}

/// The cases that the closed run at `run` has samples of.
pub(crate) fn profiled_cases(run: &Path, plan: &RunPlan) -> Vec<u32> {
    let there = |case: &u32| run.join(stacks_path(*case)).exists();
    (0..u32::try_from(plan.cases.len()).unwrap_or(u32::MAX)).filter(there).collect()
}

/// The cases that a journal has samples of.
pub(crate) fn journal_profiled_cases(
    journal: JournalReader,
    plan: &RunPlan,
) -> Result<Vec<u32>, ArchiveError> {
    let mut cases = std::collections::BTreeSet::new();
    for event in journal.select_kinds(&[kind::PROFILED, kind::STACKS]) {
        let slot = match event?.what {
            RunEventKind::Stacks(batch) => batch.slot,
            RunEventKind::Profiled(about) => about.slot,
            _ => continue,
        };
        cases.extend(plan.slots.get(slot as usize).map(|slot| slot.case));
    }
    Ok(cases.into_iter().collect())
}

/// The profile of `case` from the tables of the closed run at `run`; what the samplers reported is in its journal.
pub(crate) fn read_profile(run: &Path, case: u32, journal: JournalReader) -> Result<Profile, ArchiveError> {
    let frames = read_frames(run)?;
    let nodes = read_stack_tree(run, frames.len())?;
    let mut profile = Profile { frames, nodes, ..Profile::default() };
    read_stack_samples(run, case, &mut profile)?;
    let slots: Vec<u32> = profile.iterations.iter().map(|piece| piece.summary.slot).collect();
    for event in journal.select_kinds(&[kind::PROFILED]) {
        if let RunEventKind::Profiled(about) = event?.what
            && slots.contains(&about.slot)
        {
            profile.add_summary(*about);
        }
    }
    Ok(profile)
}

fn read_frames(run: &Path) -> Result<Vec<StackFrame>, ArchiveError> {
    let table = ParquetReader::open(run, FRAMES)?;
    let mut raws = table.optional_text("raw")?.into_iter();
    let mut modules = table.optional_text("module")?.into_iter();
    let mut kinds = table.text_column("kind", FrameKind::from_name)?.into_iter();
    let mut inlined = table.boolean("inlined")?.into_iter();
    let mut starts = table.optional_int64("start")?.into_iter();
    let frame = |name: String| {
        Some(StackFrame {
            name,
            raw: raws.next()?,
            module: modules.next()?,
            kind: kinds.next()?,
            inlined: inlined.next()?,
            start: starts.next()?,
        })
    };
    Ok(table.text_column("name", str::to_owned)?.into_iter().map_while(frame).collect())
}

/// Readers walk from a node to its callers: an edge that is not in the tree, or goes round, is refused here, and so is a stack
/// without end.
fn read_stack_tree(run: &Path, frames: usize) -> Result<Vec<StackNode>, ArchiveError> {
    let table = ParquetReader::open(run, TREE)?;
    let parents = table.optional_int32("parent")?;
    let node = |(frame, parent): (i32, Option<i32>)| StackNode {
        parent: parent.map(|parent| NodeId(to_index(parent))),
        frame: FrameId(to_index(frame)),
    };
    let nodes: Vec<StackNode> = table.int32("frame")?.into_iter().zip(parents).map(node).collect();
    check_stack_tree(&nodes, frames).map_err(ArchiveError::damaged(&run.join(TREE)))?;
    Ok(nodes)
}

fn read_stack_samples(run: &Path, case: u32, profile: &mut Profile) -> Result<(), ArchiveError> {
    let table = ParquetReader::open(run, stacks_path(case))?;
    let comms: RefCell<Vec<String>> = RefCell::default();
    let mut named = table.text_column("comm", |name| intern_comm(&mut comms.borrow_mut(), name))?.into_iter();
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
                at: times.next()?.map(from_stored_nanos),
                cpu: cpus.next()?.map(to_index),
                pid: pids.next()?,
                tid: tids.next()?,
                comm: named.next()?,
                leaf: leaves.next()?.map(|leaf| NodeId(to_index(leaf))),
                count: from_stored_nanos(counts.next()?).0,
                weight: from_stored_nanos(weights.next()?).0,
            })
        };
        let Some(sample) = sample() else { break };
        if sample.leaf.is_some_and(|leaf| leaf.0 as usize >= nodes) {
            let path = run.join(stacks_path(case));
            return Err(ArchiveError::damaged(&path)("a sample points at a stack that is not in the tree"));
        }
        profile.iteration_mut(to_index(slot)).samples.push(sample);
    }
    Ok(())
}

/// Samples of one task follow one another: the last name is looked at first.
fn intern_comm(comms: &mut Vec<String>, name: &str) -> CommId {
    let known = comms.iter().rposition(|known| known == name);
    let at = known.unwrap_or_else(|| {
        comms.push(name.into());
        comms.len() - 1
    });
    CommId(u32::try_from(at).unwrap_or(u32::MAX))
}

/// The profile of `case` from the journal of a run that has no tables.
pub(crate) fn read_journal_profile(
    path: &Path,
    journal: JournalReader,
    case: u32,
    plan: &RunPlan,
) -> Result<Profile, ArchiveError> {
    let of_case = |slot: u32| plan.slots.get(slot as usize).is_some_and(|slot| slot.case == case);
    let mut profile = Profile::default();
    for event in journal.select_kinds(&[kind::STACKS, kind::PROFILED]) {
        let RunEvent { what, .. } = event?;
        match what {
            RunEventKind::Stacks(batch) if of_case(batch.slot) => profile.add_batch(*batch),
            RunEventKind::Stacks(batch) => profile.add_names(*batch),
            RunEventKind::Profiled(about) if of_case(about.slot) => profile.add_summary(*about),
            _ => {}
        }
    }
    check_stack_tree(&profile.nodes, profile.frames.len()).map_err(ArchiveError::damaged(path))?;
    Ok(profile)
}
