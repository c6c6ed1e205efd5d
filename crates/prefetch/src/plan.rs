//! What is to be read, in which order. Decided before anything is read, from the trace alone, so that it can be shown and
//! tested.

use perflab_model::io::{PAGE, Runs};

use crate::trace::{Start, TracedFile};

/// In which order files are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// as they lie on the disk: one sweep of a rotating one
    #[default]
    Block,
    /// by number, which is about where ext4 puts them
    Inode,
    /// as the program asked for them
    Access,
}

/// A stretch of gaps that is cheaper to read than to skip: a disk reads 32 KiB in less time than it seeks, and each request
/// has its price.
const BRIDGE: u64 = 8;

/// A file to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step<'a> {
    /// the file
    pub file: &'a TracedFile,
    /// its pages, with small gaps filled
    pub pages: Runs,
}

/// What is to be read: first the metadata, then these files; the first `early` of them before the program starts, where
/// reading is staged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<'a> {
    /// the start it is made from
    pub start: &'a Start,
    /// in order
    pub steps: Vec<Step<'a>>,
    /// how many of the steps are what the program needs first
    pub early: usize,
    /// files that the memory budget had no room for
    pub left_out: usize,
}

/// Makes a plan; `memory` is the most bytes that may be read.
pub fn plan(start: &Start, order: Order, memory: u64) -> Plan<'_> {
    let mut wanted: Vec<Step<'_>> = start.files.iter().map(step).collect();
    // What does not fit is what the program asks for last.
    wanted.sort_by_key(|step| step.file.turn);
    let mut room = (memory / PAGE).saturating_sub(start.metadata());
    let fits = |step: &&Step<'_>| {
        let pages = step.pages.pages();
        room.checked_sub(pages).inspect(|rest| room = *rest).is_some()
    };
    let mut steps: Vec<Step<'_>> = wanted.iter().filter(fits).cloned().collect();
    let left_out = wanted.len() - steps.len();
    let early = first_part(&steps);
    let (first, rest) = steps.split_at_mut(early);
    [first, rest].into_iter().for_each(|part| arrange(part, order));
    Plan { start, steps, early, left_out }
}

impl Plan<'_> {
    /// The same in one sweep: nothing comes first.
    #[must_use]
    pub fn swept(mut self, order: Order) -> Self {
        self.early = self.steps.len();
        arrange(&mut self.steps, order);
        self
    }

    /// Pages of files.
    pub fn pages(&self) -> u64 {
        self.steps.iter().map(|step| step.pages.pages()).sum()
    }
}

fn step(file: &TracedFile) -> Step<'_> {
    Step { file, pages: file.pages.bridged(BRIDGE).below(file.size.div_ceil(PAGE)) }
}

/// The files with the first quarter of all pages, in the order in which the program asked for them.
fn first_part(steps: &[Step<'_>]) -> usize {
    let quarter = steps.iter().map(|step| step.pages.pages()).sum::<u64>() / 4;
    let mut sum = 0;
    let within = |step: &&Step<'_>| {
        sum += step.pages.pages();
        sum <= quarter
    };
    steps.iter().take_while(within).count()
}

fn arrange(steps: &mut [Step<'_>], order: Order) {
    match order {
        // File systems one after the other; a file without a known place by its number.
        Order::Block => steps.sort_by_key(|step| {
            (step.file.system, step.file.place.is_none(), step.file.place.unwrap_or(step.file.inode))
        }),
        Order::Inode => steps.sort_by_key(|step| (step.file.system, step.file.inode)),
        Order::Access => steps.sort_by_key(|step| step.file.turn),
    }
}
