//! What is to be read, in which order. Decided before anything is read, from the trace alone, so that it can be shown and
//! tested.

mod stretch;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashSet;

use perflab_model::io::{PAGE, Runs};

pub(crate) use self::stretch::NEAR;
use crate::trace::{Mark, Start, TracedFile};

/// In which order files are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// as the program needed them, in stretches of the disk: each in one sweep, the one with what is needed first first
    #[default]
    Need,
    /// as they lie on the disk: one sweep of a rotating one
    Block,
    /// by number, which is about where ext4 puts them
    Inode,
    /// as the program asked for them, wherever they lie
    Access,
}

/// A gap that is cheaper to read than to skip, where the disk has it between what is read: a disk reads 32 KiB in less time
/// than it seeks, and each request has its price.
const BRIDGE: u64 = 8;
/// The same where what is read is only going to be brought together: no more than a single page comes along.
const PACKED: u64 = 1;

/// Pages of a file to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step<'a> {
    /// the file
    pub file: &'a TracedFile,
    /// its pages, with small gaps filled
    pub pages: Runs,
}

/// What is to be read: first the metadata, then these pages of files; a file may come more than once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<'a> {
    /// the start it is made from
    pub start: &'a Start,
    /// in order
    pub steps: Vec<Step<'a>>,
    /// files of which the memory budget had no room for everything
    pub left_out: usize,
}

/// Pages of a file that lie in one, and were read at one time.
#[derive(Debug, Clone, Copy)]
struct Piece<'a> {
    file: &'a TracedFile,
    mark: Mark,
    count: u64,
}

/// Makes a plan; `memory` is the most bytes that may be read.
pub fn plan(start: &Start, order: Order, memory: u64) -> Plan<'_> {
    planned(start, order, memory, BRIDGE)
}

/// What is to be brought together, in the order in which it was asked for.
pub(crate) fn to_pack(start: &Start) -> Plan<'_> {
    planned(start, Order::Access, u64::MAX, PACKED)
}

fn planned(start: &Start, order: Order, memory: u64, bridge: u64) -> Plan<'_> {
    let mut wanted: Vec<Piece<'_>> = start.files.iter().flat_map(|file| pieces(file, bridge)).collect();
    // What does not fit is what the program asks for last.
    wanted.sort_by_key(|piece| piece.mark.turn);
    let mut room = (memory / PAGE).saturating_sub(start.metadata());
    let fits = |piece: &Piece<'_>| room.checked_sub(piece.count).inspect(|rest| room = *rest).is_some();
    let (mut kept, lost): (Vec<Piece<'_>>, Vec<Piece<'_>>) = wanted.into_iter().partition(fits);
    let left_out = lost.iter().map(|piece| piece.file.turn).collect::<HashSet<_>>().len();
    match order {
        Order::Need => kept = stretch::by_need(kept),
        Order::Block => kept.sort_by_key(Piece::place),
        Order::Inode => {
            kept.sort_by_key(|piece| (piece.file.system, piece.file.inode, piece.mark.page));
        }
        Order::Access => {}
    }
    Plan { start, steps: steps(&kept), left_out }
}

impl Plan<'_> {
    /// Pages of files.
    pub fn pages(&self) -> u64 {
        self.steps.iter().map(|step| step.pages.pages()).sum()
    }
}

impl Piece<'_> {
    /// File systems one after the other; what has no known place by the number of its file.
    fn place(&self) -> (usize, bool, u64, u64) {
        let place = self.mark.place;
        (self.file.system, place.is_none(), place.unwrap_or(self.file.inode), self.mark.page)
    }
}

fn pieces(file: &TracedFile, bridge: u64) -> impl Iterator<Item = Piece<'_>> {
    file.pieces(&bridged(file, bridge)).into_iter().map(move |(mark, count)| Piece { file, mark, count })
}

/// What is read of a file, with gaps of so many pages at most that the disk has there, too. Of what was brought together, gaps
/// lie elsewhere.
fn bridged(file: &TracedFile, most: u64) -> Runs {
    let pages = file.pages.below(file.size.div_ceil(PAGE));
    pages.joined(|end, next| next - end <= most && file.lies_in_one(end - 1, next))
}

/// Pieces of one file that follow one another upwards are one step.
fn steps<'a>(pieces: &[Piece<'a>]) -> Vec<Step<'a>> {
    let same = |one: &Piece<'_>, next: &Piece<'_>| {
        std::ptr::eq(one.file, next.file) && one.mark.page < next.mark.page
    };
    let step = |pieces: &[Piece<'a>]| {
        let file = pieces.first()?.file;
        Some(Step { file, pages: pieces.iter().map(|piece| (piece.mark.page, piece.count)).collect() })
    };
    pieces.chunk_by(same).filter_map(step).collect()
}
