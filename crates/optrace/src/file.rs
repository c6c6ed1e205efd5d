//! Reading a trace file. Owns what is sound in it: a file that was cut short, or is damaged somewhere, is read up to
//! there, and [`Told`] says so. Refuses to hold operations: each is shown once and forgotten.

use std::collections::HashMap;
use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::clock::{ClockKind, Line, Pair};
use crate::format::{
    BLOCK_WORDS, BlockKind, Cost, EventKind, HEAD, Header, KindCosts, MAGIC, OLDEST, VERSION,
};
use crate::join::{Kernel, Lane, Operation};
use crate::live::remnants;
use crate::replay::Replay;
use crate::{Entries, Error, StampCost, Words};

/// The longest header that is believed.
const MOST_HEAD: usize = 1 << 20;
/// The longest block that is believed: a chunk is at most this long.
const MOST_BLOCK: u64 = 1 << 30;
/// The highest count that is believed: one a nanosecond for three days.
const MOST_TOLD: u128 = 1 << 48;
/// Nanoseconds of a tick that are believed: of clocks of a kilohertz to a terahertz.
const TICKS: RangeInclusive<f64> = 1e-3..=1e6;
/// Ticks that recording an operation or a span is believed to cost.
const COSTS: RangeInclusive<f64> = 0.0..=1e9;

/// A trace file, its header read and its blocks found.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    file: fs::File,
    header: Header,
    words: Words,
    blocks: Vec<Block>,
    /// why reading ended before an `end` block
    cut: Option<String>,
}

/// Where a block lies.
#[derive(Debug, Clone, Copy)]
struct Block {
    kind: BlockKind,
    lane: u32,
    records: u32,
    at: u64,
    bytes: u64,
    closed: Pair,
}

/// What a file says about itself.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Told {
    /// Operations that were read.
    pub operations: u64,
    /// Operations that the recorder lost (the disk was full); missing in a file that was cut short.
    pub lost: u64,
    /// Why the file ends where it does, where it was cut short or is damaged: all before that was read.
    pub cut: Option<String>,
    /// Operations with a time stamp below an earlier one: their times mean nothing.
    pub backwards: u64,
    /// Operations with more spans or numbers than the limits: some of their time is in the span around.
    pub beyond: u64,
    /// Operations in which `enter` and `leave` did not match.
    pub unbalanced: u64,
    /// How often recorders waited for the writer between operations, and for how many nanoseconds.
    pub waits: u64,
    /// Nanoseconds of those.
    pub waited: u64,
    /// Threads that recorded.
    pub threads: u32,
    /// Events of the kernel, and how many it had no room for.
    pub events: u64,
    /// Those it had no room for.
    pub events_lost: u64,
    /// The errno with which the kernel refused its events, where it did.
    pub refused: Option<i32>,
    /// Nanoseconds that an empty operation measures; subtracted from all.
    pub operation_cost: f64,
    /// Nanoseconds that a span adds to its operation; subtracted for each.
    pub span_cost: f64,
    /// Of each kind of operation, where each has a cost of its own: that is subtracted.
    pub operation_costs: Vec<StampCost>,
    /// The same of spans.
    pub span_costs: Vec<StampCost>,
    /// Of each kind of operation that was read, how many there were and how many nanoseconds the stamps of operations inside
    /// them cost: that is subtracted too.
    pub inside: Vec<(u64, u64)>,
    /// Process that wrote it.
    pub process: u32,
    /// How often it forked meanwhile: what its children did is not in the trace.
    pub forks: u64,
    /// What became of the begins of all operations; nothing in a file of before, or of an attached program.
    pub entries: Entries,
    /// Operations that were found in the memory of a process that ended without closing its trace.
    pub rescued: u64,
}

impl Told {
    pub(crate) fn add_inside(&mut self, kind: u8, ns: u64) {
        let kind = usize::from(kind);
        if self.inside.len() <= kind {
            self.inside.resize(kind + 1, (0, 0));
        }
        if let Some((operations, all)) = self.inside.get_mut(kind) {
            *operations += 1;
            *all += ns;
        }
    }
}

impl File {
    /// Opens a trace and finds its blocks.
    ///
    /// # Errors
    /// It cannot be read, is no trace, or of another version.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = fs::File::open(path).map_err(Error::io("read", path))?;
        let (header, begin) = header(&file, path)?;
        let words = Words::parse(&header.words).map_err(|error| strange(path, error.to_string()))?;
        let (mut blocks, mut at) = (Vec::new(), begin);
        let cut = loop {
            match block(&file, at) {
                Ok(Some(block)) if block.kind == BlockKind::End => {
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
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Shows every operation, thread by thread, each thread's in the order of time.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn read(&self, mut show: impl FnMut(&Operation)) -> Result<Told, Error> {
        let (mut told, is_closed) = self.told();
        let mut blocks = self.blocks_by_lane();
        // Memory of threads that overlaps is nobody's: what is read twice would be counted twice.
        let mut unread = self.file.metadata().map_or(0, |about| about.len());
        for opened in self.of(BlockKind::Lane) {
            // A lane that is opened twice has its blocks once.
            let own = blocks.remove(&opened.lane).unwrap_or_default();
            let about = self.load(opened)?;
            let thread = about.first().map_or(0, |thread| *thread as i32);
            let kernel = self.kernel(&own, &mut told)?;
            let mut lane = Lane::new(thread, opened.lane, KindCosts::of(&self.header), kernel);
            let mut from = self.header.start;
            for block in own.iter().filter(|block| block.kind == BlockKind::Operations) {
                let line = Line::through(from, block.closed, self.header.ns_per_tick);
                let words = self.load(block)?;
                if let Err(reason) =
                    lane.block(&words, block.records, line, &self.words, &mut told, &mut show)
                {
                    told.cut = Some(format!("at byte {}: {reason}", block.at));
                    break;
                }
                from = block.closed;
            }
            if let (Some(_), [_, at, bytes]) = (&self.cut, about.as_slice())
                && *bytes <= unread
            {
                unread -= *bytes;
                self.rescue(&mut lane, (*at, *bytes), from, &mut told, &mut show);
            }
        }
        let Entries { entered, ended, abandoned, nested, open, .. } = told.entries;
        if !is_closed {
            // Of what was written before its end the file tells operations only.
            let missing = told.operations.saturating_sub(ended);
            (told.entries.entered, told.entries.ended) = (entered + missing, ended + missing);
        } else {
            let others = [abandoned, nested, open, told.entries.lost];
            told.entries.ended = others.into_iter().fold(entered, u64::saturating_sub);
        }
        Ok(told)
    }

    /// Shows what is left in the memory of a thread whose process ended: all that came after `from`.
    fn rescue(
        &self,
        lane: &mut Lane,
        (at, bytes): (u64, u64),
        mut from: Pair,
        told: &mut Told,
        show: &mut impl FnMut(&Operation),
    ) {
        let length = self.file.metadata().map_or(0, |about| about.len());
        let is_there = bytes <= MOST_BLOCK && at.checked_add(bytes).is_some_and(|end| end <= length);
        let left = if is_there { remnants(&self.file, at, bytes) } else { None };
        let Some((opened, left)) = left else { return };
        let mut replay = Replay::new(opened);
        for remnant in &left {
            let closed = match remnant.closed {
                Some(closed) => {
                    replay.chunk(&remnant.words);
                    closed
                }
                None => {
                    let last = replay.last_chunk(&remnant.words);
                    let line = Line::through(from, from, self.header.ns_per_tick);
                    Pair { ticks: last, ns: line.at(last) }
                }
            };
            // What was written as a block is shown already; it was read for what it left open.
            if closed.ticks > from.ticks && replay.state.records > 0 {
                let line = Line::through(from, closed, self.header.ns_per_tick);
                let before = told.operations;
                let (words, records) = (&replay.state.words, replay.state.records);
                if let Err(reason) = lane.block(words, records, line, &self.words, told, show) {
                    told.cut = Some(format!("in the memory of thread {}: {reason}", lane.thread()));
                    return;
                }
                told.rescued += told.operations - before;
                from = closed;
            }
            replay.state.clear();
        }
        replay.settle();
        let found = replay.entries;
        told.entries.entered += found.entered;
        told.entries.ended += found.ended;
        told.entries.abandoned += found.abandoned;
        told.entries.nested += found.nested;
        told.entries.open += u64::from(replay.state.open);
    }

    fn of(&self, kind: BlockKind) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(move |block| block.kind == kind)
    }

    /// What was recorded in each lane, in the file's order.
    fn blocks_by_lane(&self) -> HashMap<u32, Vec<&Block>> {
        let mut lanes: HashMap<u32, Vec<&Block>> = HashMap::new();
        let recorded = |block: &&Block| matches!(block.kind, BlockKind::Operations | BlockKind::Events);
        for block in self.blocks.iter().filter(recorded) {
            lanes.entry(block.lane).or_default().push(block);
        }
        lanes
    }

    /// The figures of the last block, none where there is none; why they cannot be, where they contradict what is in the file.
    fn last_figures(&self) -> Result<Option<Vec<u64>>, String> {
        let Some(end) = self.of(BlockKind::End).next() else { return Ok(None) };
        let figures = self.load(end).map_err(|error| error.to_string())?;
        let figure = |at: usize| u128::from(figures.get(at).copied().unwrap_or(0));
        let written: u128 = self.of(BlockKind::Operations).map(|block| u128::from(block.records)).sum();
        if figure(0) != written {
            return Err(format!(
                "at byte {}: {} operations are told of, and {written} are there",
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
        match [1, 2, 4, 5, 6].into_iter().find(|at| figure(*at) > MOST_TOLD) {
            Some(at) => {
                Err(format!("at byte {}: its last block counts to {}, which cannot be", end.at, figure(at)))
            }
            None => Ok(Some(figures)),
        }
    }

    /// What the file says of itself, and whether it was closed with figures that can be.
    fn told(&self) -> (Told, bool) {
        let Cost { operation, around, span } = self.header.cost;
        let costs = KindCosts::of(&self.header);
        let (figures, contradiction) = match self.last_figures() {
            Ok(figures) => (figures, None),
            Err(reason) => (None, Some(reason)),
        };
        let is_closed = figures.is_some();
        let end = figures.unwrap_or_default();
        let figure = |at: usize| end.get(at).copied().unwrap_or(0);
        let told = Told {
            lost: figure(1),
            cut: self.cut.clone().or(contradiction),
            waits: figure(2),
            waited: figure(3),
            events_lost: figure(4),
            threads: self.of(BlockKind::Lane).count() as u32,
            refused: (self.header.refused != 0).then_some(self.header.refused as i32),
            operation_cost: operation * self.header.ns_per_tick,
            span_cost: (around + span) * self.header.ns_per_tick,
            process: self.header.process as u32,
            forks: figure(5),
            entries: Entries {
                entered: figure(6),
                abandoned: figure(7),
                nested: figure(8),
                open: figure(9),
                lost: figure(1),
                ..Entries::default()
            },
            operation_costs: costs.operations,
            span_costs: costs.spans,
            ..Told::default()
        };
        (told, is_closed)
    }

    fn kernel(&self, own: &[&Block], told: &mut Told) -> Result<Kernel, Error> {
        let mut kernel = Kernel::default();
        for block in own.iter().filter(|block| block.kind == BlockKind::Events) {
            for event in self.load(block)?.chunks_exact(2) {
                if let [ns, kind] = *event
                    && let Some(kind) = EventKind::of(kind)
                {
                    kernel.take(ns, kind);
                    told.events += 1;
                }
            }
        }
        Ok(kernel)
    }

    fn load(&self, block: &Block) -> Result<Vec<u64>, Error> {
        let mut bytes = vec![0; block.bytes as usize];
        self.file.read_exact_at(&mut bytes, block.at).map_err(Error::io("read", &self.path))?;
        Ok(words(&bytes))
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks_exact(8)
        .map(|word| word.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
        .collect()
}

fn strange(path: &Path, reason: String) -> Error {
    Error::NotATrace { path: path.into(), reason }
}

/// The header, and where the blocks begin.
fn header(file: &fs::File, path: &Path) -> Result<(Header, u64), Error> {
    let mut head = vec![0; HEAD];
    let short = |_| strange(path, "it is shorter than a header".into());
    file.read_exact_at(&mut head, 0).map_err(short)?;
    if !head.starts_with(&MAGIC) {
        return Err(strange(path, "it does not begin with OPTRACE".into()));
    }
    let head = words(&head);
    let word = |at: usize| head.get(at).copied().unwrap_or(0);
    let (version, length) = (word(1) as u32, (word(1) >> 32) as usize);
    if !(OLDEST..=VERSION).contains(&version) {
        return Err(Error::Version { path: path.into(), found: version, known: VERSION });
    }
    if !(HEAD..MOST_HEAD).contains(&length) || word(11) as usize > length - HEAD {
        return Err(strange(path, format!("its header is {length} bytes long, which cannot be")));
    }
    let mut text = vec![0; word(11) as usize];
    file.read_exact_at(&mut text, HEAD as u64).map_err(short)?;
    let float = |at: usize| Some(f64::from_bits(word(at))).filter(|value| value.is_finite()).unwrap_or(0.0);
    let header = Header {
        clock: if word(2) == 0 { ClockKind::Tsc } else { ClockKind::Monotonic },
        process: word(3),
        start: Pair { ticks: word(4), ns: word(5) },
        ns_per_tick: float(6),
        cost: Cost { operation: float(7), around: float(8), span: float(9) },
        refused: word(10),
        words: String::from_utf8_lossy(&text).into_owned(),
    };
    if !TICKS.contains(&header.ns_per_tick) {
        return Err(strange(
            path,
            format!("its clock ticks every {} ns, which cannot be", header.ns_per_tick),
        ));
    }
    let Cost { operation, around, span } = header.cost;
    if let Some(cost) = [operation, around, span].into_iter().find(|cost| !COSTS.contains(cost)) {
        return Err(strange(path, format!("an operation or a span costs {cost} ticks, which cannot be")));
    }
    Ok((header, length as u64))
}

/// The block at a place; none at the end of the file.
fn block(file: &fs::File, at: u64) -> Result<Option<Block>, String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    if at == length {
        return Ok(None);
    }
    let mut head = [0; BLOCK_WORDS * 8];
    file.read_exact_at(&mut head, at).map_err(|_| "the file was cut inside a block".to_owned())?;
    let head = words(&head);
    let word = |at: usize| head.get(at).copied().unwrap_or(0);
    let kinds = [BlockKind::Operations, BlockKind::Events, BlockKind::Lane, BlockKind::End, BlockKind::Skip];
    // Behind the last block of a trace that was not closed there is only the memory of its threads.
    if head.iter().all(|word| *word == 0) {
        return Ok(None);
    }
    let kind = kinds.into_iter().find(|kind| *kind as u64 == word(0) & 0xff);
    let kind = kind.ok_or_else(|| format!("there is no block of kind {}", word(0) & 0xff))?;
    let (begin, bytes) = (at + head.len() as u64 * 8, word(1));
    // The memory of very many threads may be passed over.
    if (bytes > MOST_BLOCK && kind != BlockKind::Skip) || bytes % 8 != 0 {
        return Err(format!("a block of {bytes} bytes cannot be"));
    }
    if begin.checked_add(bytes).is_none_or(|end| end > length) {
        return Err("the file was cut inside a block".into());
    }
    let closed = Pair { ticks: word(2), ns: word(3) };
    let (lane, records) = ((word(0) >> 8) as u32 & 0xff_ffff, (word(0) >> 32) as u32);
    Ok(Some(Block { kind, lane, records, at: begin, bytes, closed }))
}
