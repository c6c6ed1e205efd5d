//! Operations on a set, each carried out on a `BTreeSet` too; made by proptest, by chance, or of a fuzzer's bytes.
//! Needs nothing but the crate, so that the fuzz targets (`fuzz/` at the root) share it.

use std::collections::BTreeSet;

use slablist::{AnyReapPolicy, EventCounts, ListShape, SetCursor, SlabSet, StaleCursor};

use crate::fuzz::FuzzBytes;

#[derive(Debug, Clone)]
pub enum SetOp {
    Insert(u16),
    Run(u16, u16, bool),
    Replace(u16),
    Remove(u16),
    RemoveRange(u16, u16),
    Extract(u16, u16),
    Merge(Vec<u16>),
    PopFirst,
    PopLast,
    Reap,
    Copy,
    Clear,
    /// Puts the cursor on the first key from this one.
    Cursor(u16),
    /// Moves it: to the next, or to the one before.
    Step(bool),
    Policy(usize),
}

/// As texts, with limits that small sets reach.
pub const POLICIES: [&str; 8] =
    ["never", "old", "old:90:99", "new", "new:2:10", "bounded", "bounded:90:8", "bounded:75:2"];

pub type TestedSet = SlabSet<u16, AnyReapPolicy, EventCounts>;

/// A set, what it should hold, and a cursor.
pub struct SetSubject {
    set: TestedSet,
    model: BTreeSet<u16>,
    cursor: Option<SetCursor<u16>>,
}

fn key_run(from: u16, n: u16, up: bool) -> Vec<u16> {
    let keys = from..from.saturating_add(n);
    if up { keys.collect() } else { keys.rev().collect() }
}

impl SetOp {
    /// The operation that bytes say, on keys below `keys`; none where they are at their end.
    pub fn from_bytes(bytes: &mut FuzzBytes<'_>, keys: u16) -> Option<Self> {
        let which = bytes.next_byte()?;
        let mut key = || Some(bytes.next_word()? % keys);
        Some(match which % 64 {
            0..=19 => Self::Insert(key()?),
            20..=25 => Self::Run(key()?, key()? % 300, which >= 128),
            26..=28 => Self::Replace(key()?),
            29..=44 => Self::Remove(key()?),
            45..=47 => Self::RemoveRange(key()?, key()?),
            48..=49 => Self::Extract(key()?, key()?),
            50..=51 => Self::Merge((0..key()? % 200).map_while(|_| key()).collect()),
            52..=53 => Self::PopFirst,
            54..=55 => Self::PopLast,
            56 => Self::Reap,
            57 => Self::Copy,
            58 if which >= 192 => Self::Clear,
            58..=60 => Self::Cursor(key()?),
            61..=62 => Self::Step(which >= 128),
            _ => Self::Policy(usize::from(key()?)),
        })
    }
}

impl SetSubject {
    pub fn new(shape: ListShape, policy: AnyReapPolicy) -> Self {
        Self {
            set: TestedSet::with_shape(shape, policy, EventCounts::default()),
            model: BTreeSet::new(),
            cursor: None,
        }
    }

    /// Does it to both, and looks at every invariant.
    pub fn apply(&mut self, op: SetOp) {
        let (set, model) = (&mut self.set, &mut self.model);
        match op {
            SetOp::Insert(key) => assert_eq!(set.insert(key), model.insert(key)),
            SetOp::Run(from, n, up) => {
                key_run(from, n, up)
                    .into_iter()
                    .for_each(|key| assert_eq!(set.insert(key), model.insert(key)));
            }
            SetOp::Replace(key) => assert_eq!(set.replace(key), model.replace(key)),
            SetOp::Remove(key) => assert_eq!(set.remove(&key), model.remove(&key)),
            SetOp::RemoveRange(a, b) => {
                let (a, b) = (a.min(b), a.max(b));
                let (mut seen, gone) = (Vec::new(), model.range(a..b).copied().collect::<Vec<_>>());
                assert_eq!(set.remove_range(a..b, |keys| seen.extend_from_slice(keys)), gone.len());
                assert_eq!(seen, gone);
                gone.iter().for_each(|key| assert!(model.remove(key)));
            }
            SetOp::Extract(a, b) => {
                let (a, b) = (a.min(b), a.max(b));
                let gone = model.range(a..=b).copied().collect::<Vec<_>>();
                let out = set.extract(a..=b);
                out.check().unwrap();
                assert!(out.iter().eq(&gone));
                gone.iter().for_each(|key| assert!(model.remove(key)));
            }
            SetOp::Merge(keys) => {
                let other: SlabSet<u16> = keys.iter().copied().collect();
                let before = model.len();
                model.extend(keys);
                assert_eq!(set.merge(&other), model.len() - before);
            }
            SetOp::PopFirst => assert_eq!(set.pop_first(), model.pop_first()),
            SetOp::PopLast => assert_eq!(set.pop_last(), model.pop_last()),
            SetOp::Reap => {
                set.reap();
                assert_eq!(set.occupancy().saveable_slabs(), 0);
            }
            SetOp::Copy => {
                let copy = set.clone();
                copy.check().unwrap();
                assert_eq!(&copy, set);
            }
            SetOp::Clear => {
                set.clear(|_| {});
                model.clear();
            }
            SetOp::Cursor(from) => {
                let key = model.range(from..).next();
                self.cursor = key.and_then(|key| set.cursor(key));
                assert_eq!(self.cursor.map(|cursor| cursor.key()), key.copied());
            }
            SetOp::Step(forth) => self.step_cursor(forth),
            SetOp::Policy(which) => set.set_policy(POLICIES[which % POLICIES.len()].parse().unwrap()),
        }
        self.set.check().unwrap();
        self.check_cursor();
    }

    /// A cursor stands on its key whatever happened, until that key is removed.
    fn check_cursor(&self) {
        if let Some(cursor) = &self.cursor {
            let at = self.model.range(..cursor.key()).count();
            let there = self.model.contains(&cursor.key());
            assert_eq!(cursor.position(&self.set), if there { Ok(at) } else { Err(StaleCursor::Removed) });
        }
    }

    fn step_cursor(&mut self, forth: bool) {
        let Some(cursor) = self.cursor else { return };
        let (key, model) = (cursor.key(), &self.model);
        let moved = if forth { cursor.next(&self.set) } else { cursor.previous(&self.set) };
        if !model.contains(&key) {
            return assert_eq!(moved.err(), Some(StaleCursor::Removed));
        }
        self.cursor = moved.unwrap();
        let wanted = if forth { model.range(key + 1..).next() } else { model.range(..key).next_back() };
        assert_eq!(self.cursor.map(|cursor| cursor.key()), wanted.copied());
    }

    /// Whether every reader says the same, around one key.
    pub fn check_readers(&self, probe: u16) {
        let (set, model) = (&self.set, &self.model);
        assert_eq!(set.len(), model.len());
        assert!(set.iter().eq(model.iter()));
        assert!(set.iter().rev().eq(model.iter().rev()));
        assert_eq!((set.first(), set.last()), (model.first(), model.last()));
        assert_eq!(set.contains(&probe), model.contains(&probe));
        assert_eq!(set.first_above(&probe), model.range(probe + 1..).next());
        assert_eq!(set.last_below(&probe), model.range(..probe).next_back());
        assert!(set.range(probe..).eq(model.range(probe..)));
        assert!(set.range(..=probe).rev().eq(model.range(..=probe).rev()));
        assert_eq!(set.position(&probe).unwrap_or_else(|at| at), model.range(..probe).count());
        assert_eq!(set.get(usize::from(probe)), model.iter().nth(usize::from(probe)));
    }

    /// The last look, also at what the probe counted.
    pub fn check_all_readers(self) {
        self.check_readers(1_000);
        let counts = *self.set.probe();
        assert_eq!(counts.made - counts.freed, self.set.occupancy().slabs as u64);
        assert_eq!(counts.nodes_made + 1 - counts.nodes_freed, self.set.occupancy().nodes as u64);
        assert!(self.set.into_iter().eq(self.model));
    }
}
