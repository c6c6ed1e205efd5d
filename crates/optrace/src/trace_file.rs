//! Reading a trace file: blocks, damage, operation by operation.
//!
//! A file that was cut short, or is damaged somewhere, is read up to there, and [`TraceFileSummary`] says so.
//! Operations are not held: each is shown once and forgotten.

use std::collections::HashMap;
use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::clock::{ClockKind, ClockLine, ClockPair};
use crate::error::OptraceError;
use crate::layout::{
    BLOCK_WORDS, HEAD, MAGIC, OLDEST, RecordingCost, RecordingKindCosts, ThreadEventKind, TraceBlockKind,
    TraceHeader, VERSION,
};
use crate::living_trace::read_remnants;
use crate::operation::{Operation, ThreadEvents, ThreadReader, TraceFileSummary};
use crate::record_builder::{EntryCounts, StampDecoder};
use crate::vocabulary::Vocabulary;

/// The longest header that is believed.
const MOST_HEAD: usize = 1 << 20;

/// The longest block that is believed: a chunk is at most this long.
const MOST_BLOCK: u64 = 1 << 30;

/// The highest count that is believed: one a nanosecond for three days.
const MAX_PLAUSIBLE_COUNT: u128 = 1 << 48;

/// Nanoseconds of a tick that are believed: of clocks of a kilohertz to a terahertz.
const TICKS: RangeInclusive<f64> = 1e-3..=1e6;

/// Ticks that recording an operation or a span is believed to cost.
const COSTS: RangeInclusive<f64> = 0.0..=1e9;

/// A trace file, its header read and its blocks found.
#[derive(Debug)]
pub struct TraceFile {
    path: PathBuf,
    file: fs::File,
    header: TraceHeader,
    words: Vocabulary,
    blocks: Vec<TraceBlock>,
    /// why reading ended before an `end` block
    cut: Option<String>,
}

/// Where a block lies.
#[derive(Debug, Clone, Copy)]
struct TraceBlock {
    kind: TraceBlockKind,
    lane: u32,
    records: u32,
    at: u64,
    bytes: u64,
    closed: ClockPair,
}

impl TraceFile {
    /// Opens a trace and finds its blocks.
    ///
    /// # Errors
    /// It cannot be read, is not a trace, or of another version.
    pub fn open(path: &Path) -> Result<Self, OptraceError> {
        let file = fs::File::open(path).map_err(OptraceError::from_io("read", path))?;
        let (header, begin) = read_header(&file, path)?;
        let words =
            Vocabulary::parse(&header.words).map_err(|error| not_a_trace_error(path, error.to_string()))?;
        let (mut blocks, mut at) = (Vec::new(), begin);
        let cut = loop {
            match find_block(&file, at) {
                Ok(Some(block)) if block.kind == TraceBlockKind::End => {
                    blocks.push(block);
                    break None;
                }
                Ok(Some(block)) => blocks.push(block),
                Ok(None) => {
                    break Some(format!(
                        "it ends at byte {at} without its last block: the program died (killed, aborted, or by _exit) or still \
                         runs"
                    ));
                }
                Err(reason) => break Some(format!("at byte {at}: {reason}")),
            }
            at = blocks.last().map_or(at, |block| block.at + block.bytes);
        };
        Ok(Self { path: path.into(), file, header, words, blocks, cut })
    }

    /// What the program calls things.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.words
    }

    /// Shows every operation, thread by thread, each thread's in the order of time.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn read_operations(
        &self,
        mut show: impl FnMut(&Operation),
    ) -> Result<TraceFileSummary, OptraceError> {
        let (mut reported, is_closed) = self.summary();
        let mut blocks = self.blocks_by_recorder();
        // Memory of threads that overlaps is not read: what is read twice would be counted twice.
        let mut unread = self.file.metadata().map_or(0, |about| about.len());
        for opened in self.blocks_of_kind(TraceBlockKind::ThreadStart) {
            // A lane that is opened twice has its blocks once.
            let own = blocks.remove(&opened.lane).unwrap_or_default();
            let about = self.read_block_words(opened)?;
            let thread = about.first().map_or(0, |thread| *thread as i32);
            let kernel = self.read_thread_events(&own, &mut reported)?;
            let mut lane =
                ThreadReader::new(thread, opened.lane, RecordingKindCosts::from_header(&self.header), kernel);
            let mut from = self.header.start;
            for block in own.iter().filter(|block| block.kind == TraceBlockKind::Operations) {
                let line = ClockLine::through(from, block.closed, self.header.ns_per_tick);
                let words = self.read_block_words(block)?;
                if let Err(reason) =
                    lane.read_block(&words, block.records, line, &self.words, &mut reported, &mut show)
                {
                    reported.cut = Some(format!("at byte {}: {reason}", block.at));
                    break;
                }
                from = block.closed;
            }
            if let (Some(_), [_, at, bytes]) = (&self.cut, about.as_slice())
                && *bytes <= unread
            {
                unread -= *bytes;
                self.recover_chunks(&mut lane, (*at, *bytes), from, &mut reported, &mut show);
            }
        }
        let EntryCounts { entered, ended, abandoned, nested, open, .. } = reported.entries;
        if !is_closed {
            // Of what was written before its end the file holds operations only.
            let missing = reported.operations.saturating_sub(ended);
            (reported.entries.entered, reported.entries.ended) = (entered + missing, ended + missing);
        } else {
            let others = [abandoned, nested, open, reported.entries.lost];
            reported.entries.ended = others.into_iter().fold(entered, u64::saturating_sub);
        }
        Ok(reported)
    }

    /// Shows what is left in the memory of a thread whose process ended: all that came after `from`.
    fn recover_chunks(
        &self,
        lane: &mut ThreadReader,
        (at, bytes): (u64, u64),
        mut from: ClockPair,
        reported: &mut TraceFileSummary,
        show: &mut impl FnMut(&Operation),
    ) {
        let length = self.file.metadata().map_or(0, |about| about.len());
        let is_there = bytes <= MOST_BLOCK && at.checked_add(bytes).is_some_and(|end| end <= length);
        let left = if is_there { read_remnants(&self.file, at, bytes) } else { None };
        let Some((opened, left)) = left else { return };
        let mut replay = StampDecoder::new(opened);
        for remnant in &left {
            let closed = match remnant.closed {
                Some(closed) => {
                    replay.decode_chunk(&remnant.words);
                    closed
                }
                None => {
                    let last = replay.decode_last_chunk(&remnant.words);
                    let line = ClockLine::through(from, from, self.header.ns_per_tick);
                    ClockPair { ticks: last, ns: line.nanos_at(last) }
                }
            };
            // What was written as a block is shown already; it was read for what it left open.
            if closed.ticks > from.ticks && replay.builder.records > 0 {
                let line = ClockLine::through(from, closed, self.header.ns_per_tick);
                let before = reported.operations;
                let (words, records) = (&replay.builder.words, replay.builder.records);
                if let Err(reason) = lane.read_block(words, records, line, &self.words, reported, show) {
                    reported.cut = Some(format!("in the memory of thread {}: {reason}", lane.thread()));
                    return;
                }
                reported.rescued += reported.operations - before;
                from = closed;
            }
            replay.builder.clear();
        }
        replay.count_unended();
        let found = replay.entries;
        reported.entries.entered += found.entered;
        reported.entries.ended += found.ended;
        reported.entries.abandoned += found.abandoned;
        reported.entries.nested += found.nested;
        reported.entries.open += u64::from(replay.builder.open);
    }

    fn blocks_of_kind(&self, kind: TraceBlockKind) -> impl Iterator<Item = &TraceBlock> {
        self.blocks.iter().filter(move |block| block.kind == kind)
    }

    /// What was recorded in each lane, in the file's order.
    fn blocks_by_recorder(&self) -> HashMap<u32, Vec<&TraceBlock>> {
        let mut lanes: HashMap<u32, Vec<&TraceBlock>> = HashMap::new();
        let recorded =
            |block: &&TraceBlock| matches!(block.kind, TraceBlockKind::Operations | TraceBlockKind::Events);
        for block in self.blocks.iter().filter(recorded) {
            lanes.entry(block.lane).or_default().push(block);
        }
        lanes
    }

    /// The figures of the last block, none where there is none; why they cannot be, where they contradict what is in the file.
    fn read_last_figures(&self) -> Result<Option<Vec<u64>>, String> {
        let Some(end) = self.blocks_of_kind(TraceBlockKind::End).next() else { return Ok(None) };
        let figures = self.read_block_words(end).map_err(|error| error.to_string())?;
        let figure = |at: usize| u128::from(figures.get(at).copied().unwrap_or(0));
        let written: u128 =
            self.blocks_of_kind(TraceBlockKind::Operations).map(|block| u128::from(block.records)).sum();
        if figure(0) != written {
            return Err(format!(
                "at byte {}: {} operations are declared, and {written} are there",
                end.at,
                figure(0)
            ));
        }
        let (entered, lost) = (figure(6), figure(1));
        let sum = written + lost + figure(7) + figure(8) + figure(9);
        if entered > 0 && entered != sum {
            let what = format!("{entered} operations began, and {sum} were ended, left or lost");
            return Err(format!("at byte {}: {what}", end.at));
        }
        match [1, 2, 4, 5, 6].into_iter().find(|at| figure(*at) > MAX_PLAUSIBLE_COUNT) {
            Some(at) => {
                Err(format!("at byte {}: its last block counts to {}, which cannot be", end.at, figure(at)))
            }
            None => Ok(Some(figures)),
        }
    }

    /// What the file says of itself, and whether it was closed with figures that can be.
    fn summary(&self) -> (TraceFileSummary, bool) {
        let RecordingCost { operation, around, span } = self.header.cost;
        let costs = RecordingKindCosts::from_header(&self.header);
        let (figures, contradiction) = match self.read_last_figures() {
            Ok(figures) => (figures, None),
            Err(reason) => (None, Some(reason)),
        };
        let is_closed = figures.is_some();
        let end = figures.unwrap_or_default();
        let figure = |at: usize| end.get(at).copied().unwrap_or(0);
        let reported = TraceFileSummary {
            lost: figure(1),
            cut: self.cut.clone().or(contradiction),
            waits: figure(2),
            waited: figure(3),
            events_lost: figure(4),
            threads: self.blocks_of_kind(TraceBlockKind::ThreadStart).count() as u32,
            refused: (self.header.refused != 0).then_some(self.header.refused as i32),
            operation_cost: operation * self.header.ns_per_tick,
            span_cost: (around + span) * self.header.ns_per_tick,
            process: self.header.process as u32,
            forks: figure(5),
            entries: EntryCounts {
                entered: figure(6),
                abandoned: figure(7),
                nested: figure(8),
                open: figure(9),
                lost: figure(1),
                ..EntryCounts::default()
            },
            operation_costs: costs.operations,
            span_costs: costs.spans,
            ..TraceFileSummary::default()
        };
        (reported, is_closed)
    }

    fn read_thread_events(
        &self,
        own: &[&TraceBlock],
        reported: &mut TraceFileSummary,
    ) -> Result<ThreadEvents, OptraceError> {
        let mut kernel = ThreadEvents::default();
        for block in own.iter().filter(|block| block.kind == TraceBlockKind::Events) {
            for event in self.read_block_words(block)?.chunks_exact(2) {
                if let [ns, kind] = *event
                    && let Some(kind) = ThreadEventKind::from_word(kind)
                {
                    kernel.add_event(ns, kind);
                    reported.events += 1;
                }
            }
        }
        Ok(kernel)
    }

    fn read_block_words(&self, block: &TraceBlock) -> Result<Vec<u64>, OptraceError> {
        let mut bytes = vec![0; block.bytes as usize];
        self.file.read_exact_at(&mut bytes, block.at).map_err(OptraceError::from_io("read", &self.path))?;
        Ok(words_from_bytes(&bytes))
    }
}

fn words_from_bytes(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks_exact(8)
        .map(|word| word.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
        .collect()
}

fn not_a_trace_error(path: &Path, reason: String) -> OptraceError {
    OptraceError::NotATrace { path: path.into(), reason }
}

/// The header, and where the blocks begin.
fn read_header(file: &fs::File, path: &Path) -> Result<(TraceHeader, u64), OptraceError> {
    let mut head = vec![0; HEAD];
    let short = |_| not_a_trace_error(path, "it is shorter than a header".into());
    file.read_exact_at(&mut head, 0).map_err(short)?;
    if !head.starts_with(&MAGIC) {
        return Err(not_a_trace_error(path, "it does not begin with OPTRACE".into()));
    }
    let head = words_from_bytes(&head);
    let word = |at: usize| head.get(at).copied().unwrap_or(0);
    let (version, length) = (word(1) as u32, (word(1) >> 32) as usize);
    if !(OLDEST..=VERSION).contains(&version) {
        return Err(OptraceError::Version { path: path.into(), found: version, known: VERSION });
    }
    if !(HEAD..MOST_HEAD).contains(&length) || word(11) as usize > length - HEAD {
        return Err(not_a_trace_error(path, format!("its header is {length} bytes long, which cannot be")));
    }
    let mut text = vec![0; word(11) as usize];
    file.read_exact_at(&mut text, HEAD as u64).map_err(short)?;
    let float = |at: usize| Some(f64::from_bits(word(at))).filter(|value| value.is_finite()).unwrap_or(0.0);
    let header = TraceHeader {
        clock: if word(2) == 0 { ClockKind::Tsc } else { ClockKind::Monotonic },
        process: word(3),
        start: ClockPair { ticks: word(4), ns: word(5) },
        ns_per_tick: float(6),
        cost: RecordingCost { operation: float(7), around: float(8), span: float(9) },
        refused: word(10),
        words: String::from_utf8_lossy(&text).into_owned(),
    };
    if !TICKS.contains(&header.ns_per_tick) {
        return Err(not_a_trace_error(
            path,
            format!("its clock ticks every {} ns, which cannot be", header.ns_per_tick),
        ));
    }
    let RecordingCost { operation, around, span } = header.cost;
    if let Some(cost) = [operation, around, span].into_iter().find(|cost| !COSTS.contains(cost)) {
        return Err(not_a_trace_error(
            path,
            format!("an operation or a span costs {cost} ticks, which cannot be"),
        ));
    }
    Ok((header, length as u64))
}

/// The block at an offset; none at the end of the file.
fn find_block(file: &fs::File, at: u64) -> Result<Option<TraceBlock>, String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    if at == length {
        return Ok(None);
    }
    let mut head = [0; BLOCK_WORDS * 8];
    file.read_exact_at(&mut head, at).map_err(|_| "the file was cut inside a block".to_owned())?;
    let head = words_from_bytes(&head);
    let word = |at: usize| head.get(at).copied().unwrap_or(0);
    let kinds = [
        TraceBlockKind::Operations,
        TraceBlockKind::Events,
        TraceBlockKind::ThreadStart,
        TraceBlockKind::End,
        TraceBlockKind::Skip,
    ];
    // Behind the last block of a trace that was not closed there is only the memory of its threads.
    if head.iter().all(|word| *word == 0) {
        return Ok(None);
    }
    let kind = kinds.into_iter().find(|kind| *kind as u64 == word(0) & 0xff);
    let kind = kind.ok_or_else(|| format!("there is no block of kind {}", word(0) & 0xff))?;
    let (begin, bytes) = (at + head.len() as u64 * 8, word(1));
    // The memory of very many threads may be passed over.
    if (bytes > MOST_BLOCK && kind != TraceBlockKind::Skip) || bytes % 8 != 0 {
        return Err(format!("a block of {bytes} bytes cannot be"));
    }
    if begin.checked_add(bytes).is_none_or(|end| end > length) {
        return Err("the file was cut inside a block".into());
    }
    let closed = ClockPair { ticks: word(2), ns: word(3) };
    let (lane, records) = ((word(0) >> 8) as u32 & 0xff_ffff, (word(0) >> 32) as u32);
    Ok(Some(TraceBlock { kind, lane, records, at: begin, bytes, closed }))
}
