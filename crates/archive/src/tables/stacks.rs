//! `stacks/`: the run's frames, its tree of stacks, and the samples of each case, which point into the tree.
//!
//! Numbers instead of texts, as a stack of thirty frames is met by thousands of samples; a recursive query, or perflab,
//! makes folded text of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::column::ColumnType::{Boolean, Int, Int32, Text};
use perflab_model::column::{ColumnKind, ColumnType, stored_columns};
use perflab_model::profile::{Profile, StackBatch, check_stack_tree};
use perflab_model::{
    ColumnRef, CommId, DeclaredColumn, FrameId, FrameKind, NodeId, RowSchema, RunEvent, RunEventKind,
    RunPlan, StackFrame, StackNode, StackSample, TypedTable,
};

use crate::error::ArchiveError;
use crate::journal::{JournalReader, kind};
use crate::parquet::{ParquetReader, ParquetWriter};
use crate::run_layout::{FRAMES, STACKS, TREE, stacks_path};
use crate::tables::samples::{from_stored_nanos, to_index, to_stored_index, to_stored_nanos};

const fn key(name: &'static str, stored: ColumnType, meaning: &'static str) -> DeclaredColumn {
    DeclaredColumn::required(name, stored, "1", ColumnKind::Key, meaning)
}

const fn optional_key(name: &'static str, stored: ColumnType, meaning: &'static str) -> DeclaredColumn {
    DeclaredColumn::optional(name, stored, "1", ColumnKind::Key, meaning)
}

/// A row of `stacks/frames.parquet`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameRow;

impl RowSchema for FrameRow {
    const NAME: &'static str = "frames";
    const COLUMNS: &'static [DeclaredColumn] = &[
        key("frame", Int32, "number of the frame, counting up from 0"),
        key("name", Text, "the function without what compilers and kernel versions add"),
        optional_key("raw", Text, "its name in the symbol table, where that differs"),
        optional_key("module", Text, "the file that it is in, where it is known"),
        key("kind", Text, "kernel, user or unknown"),
        DeclaredColumn::required(
            "inlined",
            Boolean,
            "1",
            ColumnKind::Value,
            "whether its code is part of its caller's",
        ),
        DeclaredColumn::optional(
            "start",
            Int,
            "bytes",
            ColumnKind::Value,
            "kernel: where it begins, from the symbol `_stext`",
        ),
    ];
}

impl FrameRow {
    const FRAME: ColumnRef<Self, i32> = ColumnRef::named("frame");
    const FUNCTION: ColumnRef<Self, str> = ColumnRef::named("name");
    const RAW: ColumnRef<Self, str> = ColumnRef::named("raw");
    const MODULE: ColumnRef<Self, str> = ColumnRef::named("module");
    const KIND: ColumnRef<Self, str> = ColumnRef::named("kind");
    const INLINED: ColumnRef<Self, bool> = ColumnRef::named("inlined");
    const START: ColumnRef<Self, i64> = ColumnRef::named("start");

    /// The columns that are read.
    const READ: [&str; 6] = [
        Self::FUNCTION.name(),
        Self::RAW.name(),
        Self::MODULE.name(),
        Self::KIND.name(),
        Self::INLINED.name(),
        Self::START.name(),
    ];
}

/// A row of `stacks/tree.parquet`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StackNodeRow;

impl RowSchema for StackNodeRow {
    const NAME: &'static str = "tree";
    const COLUMNS: &'static [DeclaredColumn] = &[
        key("node", Int32, "number of the stack, counting up from 0"),
        optional_key(
            "parent",
            Int32,
            "the stack that called it, always lower; missing for an outermost frame",
        ),
        key("frame", Int32, "its innermost frame"),
    ];
}

impl StackNodeRow {
    const NODE: ColumnRef<Self, i32> = ColumnRef::named("node");
    const PARENT: ColumnRef<Self, i32> = ColumnRef::named("parent");
    const FRAME: ColumnRef<Self, i32> = ColumnRef::named("frame");

    /// The columns that are read.
    const READ: [&str; 2] = [Self::PARENT.name(), Self::FRAME.name()];
}

/// A row of `stacks/CASE.parquet`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StackSampleRow;

impl RowSchema for StackSampleRow {
    const NAME: &'static str = "stacks";
    const COLUMNS: &'static [DeclaredColumn] = &[
        key("slot", Int32, "index into plan.slots of run.json"),
        DeclaredColumn::optional(
            "time_ns",
            Int,
            "ns",
            ColumnKind::Key,
            "when; missing where the source has no times",
        ),
        optional_key("cpu", Int32, "on which CPU"),
        optional_key("pid", Int32, "the process; -1 for one that was just dying"),
        optional_key("tid", Int32, "the thread"),
        key("comm", Text, "what the thread called itself; empty where nobody knows"),
        optional_key("node", Int32, "the stack; missing for a sample without one"),
        DeclaredColumn::required(
            "count",
            Int,
            "1",
            ColumnKind::Value,
            "samples that the row stands for: 1, but in folded text",
        ),
        DeclaredColumn::required(
            "weight",
            Int,
            "see unit",
            ColumnKind::Value,
            "their periods' sum, in `unit` of the `profiled` event of the slot",
        ),
    ];
}

impl StackSampleRow {
    const SLOT: ColumnRef<Self, i32> = ColumnRef::named("slot");
    const TIME: ColumnRef<Self, i64> = ColumnRef::named("time_ns");
    const CPU: ColumnRef<Self, i32> = ColumnRef::named("cpu");
    const PID: ColumnRef<Self, i32> = ColumnRef::named("pid");
    const TID: ColumnRef<Self, i32> = ColumnRef::named("tid");
    const COMM: ColumnRef<Self, str> = ColumnRef::named("comm");
    const NODE: ColumnRef<Self, i32> = ColumnRef::named("node");
    const COUNT: ColumnRef<Self, i64> = ColumnRef::named("count");
    const WEIGHT: ColumnRef<Self, i64> = ColumnRef::named("weight");

    /// The columns that are read.
    const READ: [&str; 9] = [
        Self::SLOT.name(),
        Self::TIME.name(),
        Self::CPU.name(),
        Self::PID.name(),
        Self::TID.name(),
        Self::COMM.name(),
        Self::NODE.name(),
        Self::COUNT.name(),
        Self::WEIGHT.name(),
    ];
}

/// The tables of stacks being written; none where nothing was profiled.
pub(crate) struct StackTablesWriter {
    directory: PathBuf,
    cases: Vec<u32>,
    shared: Option<SharedStackTables>,
    samples: BTreeMap<u32, ParquetWriter<StackSampleRow>>,
    comms: Vec<String>,
}

/// What all cases share.
struct SharedStackTables {
    frames: ParquetWriter<FrameRow>,
    tree: ParquetWriter<StackNodeRow>,
    counts: (u32, u32),
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
                new.insert(ParquetWriter::create(&path, stored_columns(StackSampleRow::COLUMNS), &[])?)
            }
        };
        batch.samples.iter().try_for_each(|sample| push_stack_sample(table, batch.slot, sample, &self.comms))
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
        let frames = ParquetWriter::create(&directory.join(FRAMES), stored_columns(FrameRow::COLUMNS), &[])?;
        let tree = ParquetWriter::create(&directory.join(TREE), stored_columns(StackNodeRow::COLUMNS), &[])?;
        Ok(SharedStackTables { frames, tree, counts: (0, 0) })
    }

    fn push(&mut self, batch: &StackBatch) -> Result<(), ArchiveError> {
        for frame in &batch.frames {
            let row = self.frames.row();
            row.set(FrameRow::FRAME, to_stored_index(self.counts.0));
            row.set(FrameRow::FUNCTION, frame.name.as_str());
            row.set(FrameRow::RAW, frame.raw.as_deref());
            row.set(FrameRow::MODULE, frame.module.as_deref());
            row.set(FrameRow::KIND, frame.kind.name());
            row.set(FrameRow::INLINED, frame.inlined);
            row.set(FrameRow::START, frame.start);
            self.frames.end_row()?;
            self.counts.0 += 1;
        }
        for node in &batch.nodes {
            let row = self.tree.row();
            row.set(StackNodeRow::NODE, to_stored_index(self.counts.1));
            row.set(StackNodeRow::PARENT, node.parent.map(|parent| to_stored_index(parent.0)));
            row.set(StackNodeRow::FRAME, to_stored_index(node.frame.0));
            self.tree.end_row()?;
            self.counts.1 += 1;
        }
        Ok(())
    }
}

fn push_stack_sample(
    table: &mut ParquetWriter<StackSampleRow>,
    slot: u32,
    sample: &StackSample,
    comms: &[String],
) -> Result<(), ArchiveError> {
    let large = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let row = table.row();
    row.set(StackSampleRow::SLOT, to_stored_index(slot));
    row.set(StackSampleRow::TIME, sample.at.map(to_stored_nanos));
    row.set(StackSampleRow::CPU, sample.cpu.map(to_stored_index));
    row.set(StackSampleRow::PID, sample.pid);
    row.set(StackSampleRow::TID, sample.tid);
    row.set(StackSampleRow::COMM, comms.get(sample.comm.0 as usize).map(String::as_str));
    row.set(StackSampleRow::NODE, sample.leaf.map(|leaf| to_stored_index(leaf.0)));
    row.set(StackSampleRow::COUNT, large(sample.count));
    row.set(StackSampleRow::WEIGHT, large(sample.weight));
    table.end_row()
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
    let mut frames = Vec::new();
    for rows in table.read_rows(table.row_groups(), &FrameRow::READ)? {
        let rows: TypedTable<FrameRow> = rows?;
        let text = |column, row| rows.column(column).get(row).map(str::to_owned);
        let mut kinds = rows.column(FrameRow::KIND).map_texts(FrameKind::from_name);
        let frame = |row: usize| {
            Some(StackFrame {
                name: text(FrameRow::FUNCTION, row)?,
                raw: text(FrameRow::RAW, row),
                module: text(FrameRow::MODULE, row),
                kind: kinds.next()??,
                inlined: rows.column(FrameRow::INLINED).get(row)?,
                start: rows.column(FrameRow::START).get(row),
            })
        };
        frames.extend((0..rows.row_count()).map_while(frame));
    }
    Ok(frames)
}

/// Readers walk from a node to its callers: an edge that is not in the tree, or goes round, is refused here, and so is a stack
/// without end.
fn read_stack_tree(run: &Path, frames: usize) -> Result<Vec<StackNode>, ArchiveError> {
    let table = ParquetReader::open(run, TREE)?;
    let mut nodes: Vec<StackNode> = Vec::new();
    for rows in table.read_rows(table.row_groups(), &StackNodeRow::READ)? {
        let rows: TypedTable<StackNodeRow> = rows?;
        let parents = rows.column(StackNodeRow::PARENT).iter();
        let node = |(frame, parent): (&i32, Option<i32>)| StackNode {
            parent: parent.map(|parent| NodeId(to_index(parent))),
            frame: FrameId(to_index(*frame)),
        };
        nodes.extend(rows.column(StackNodeRow::FRAME).values().iter().zip(parents).map(node));
    }
    check_stack_tree(&nodes, frames).map_err(ArchiveError::damaged(&run.join(TREE)))?;
    Ok(nodes)
}

fn read_stack_samples(run: &Path, case: u32, profile: &mut Profile) -> Result<(), ArchiveError> {
    let table = ParquetReader::open(run, stacks_path(case))?;
    let nodes = profile.nodes.len();
    for rows in table.read_rows(table.row_groups(), &StackSampleRow::READ)? {
        let rows: TypedTable<StackSampleRow> = rows?;
        let comms = &mut profile.comms;
        let named = rows.column(StackSampleRow::COMM).map_texts(|name| intern_comm(comms, name));
        let mut named = named.collect::<Vec<_>>().into_iter();
        let large = |column, row| rows.column(column).get(row).map(|number| from_stored_nanos(number).0);
        for (row, slot) in rows.column(StackSampleRow::SLOT).values().iter().enumerate() {
            let mut sample = || {
                Some(StackSample {
                    at: rows.column(StackSampleRow::TIME).get(row).map(from_stored_nanos),
                    cpu: rows.column(StackSampleRow::CPU).get(row).map(to_index),
                    pid: rows.column(StackSampleRow::PID).get(row),
                    tid: rows.column(StackSampleRow::TID).get(row),
                    comm: named.next()??,
                    leaf: rows.column(StackSampleRow::NODE).get(row).map(|leaf| NodeId(to_index(leaf))),
                    count: large(StackSampleRow::COUNT, row)?,
                    weight: large(StackSampleRow::WEIGHT, row)?,
                })
            };
            let Some(sample) = sample() else { break };
            if sample.leaf.is_some_and(|leaf| leaf.0 as usize >= nodes) {
                let path = run.join(stacks_path(case));
                return Err(ArchiveError::damaged(&path)(
                    "a sample points at a stack that is not in the tree",
                ));
            }
            profile.iteration_mut(to_index(*slot)).samples.push(sample);
        }
    }
    Ok(())
}

/// The number of a name, each of which occurs once a row group.
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
