//! Operations on a positional list, each carried out on a `Vec` too; made by proptest, by chance, or of a fuzzer's bytes.

use slablist::{AnyReapPolicy, EventCounts, ListCursor, ListShape, OutOfBounds, SlabList, StaleCursor};

use crate::fuzz::FuzzBytes;

#[derive(Debug, Clone)]
pub enum ListOp {
    Insert(usize, i32),
    PushBack(Vec<i32>),
    PushFront(i32),
    Remove(usize),
    Replace(usize, i32),
    RemoveRange(usize, usize),
    Extract(usize, usize),
    Merge(Vec<i32>),
    MapRange(usize, usize),
    Reverse,
    Sort,
    Reap,
    /// Puts the cursor there.
    Cursor(usize),
}

pub type TestedList = SlabList<i32, AnyReapPolicy, EventCounts>;

/// A list, what it should hold, and a cursor that stood on its element when it was put there.
pub struct ListSubject {
    list: TestedList,
    model: Vec<i32>,
    cursor: Option<ListCursor>,
}

fn clamp_range(a: usize, b: usize, len: usize) -> std::ops::Range<usize> {
    a.min(b).min(len)..a.max(b).min(len)
}

impl ListOp {
    /// The operation that bytes say; none where they are at their end.
    pub fn from_bytes(bytes: &mut FuzzBytes<'_>) -> Option<Self> {
        let which = bytes.next_byte()?;
        let mut word = || bytes.next_word();
        Some(match which % 64 {
            0..=19 => Self::Insert(word()?.into(), word()?.into()),
            20..=24 => Self::PushBack((0..word()? % 150).map_while(|_| word()).map(i32::from).collect()),
            25..=27 => Self::PushFront(word()?.into()),
            28..=43 => Self::Remove(word()?.into()),
            44..=47 => Self::Replace(word()?.into(), word()?.into()),
            48..=49 => Self::RemoveRange(word()?.into(), word()?.into()),
            50..=51 => Self::Extract(word()?.into(), word()?.into()),
            52..=53 => Self::Merge((0..word()? % 150).map_while(|_| word()).map(i32::from).collect()),
            54..=55 => Self::MapRange(word()?.into(), word()?.into()),
            56 => Self::Reverse,
            57 => Self::Sort,
            58..=59 => Self::Reap,
            _ => Self::Cursor(word()?.into()),
        })
    }
}

impl ListSubject {
    pub fn new(shape: ListShape, policy: AnyReapPolicy) -> Self {
        Self {
            list: TestedList::with_shape(shape, policy, EventCounts::default()),
            model: Vec::new(),
            cursor: None,
        }
    }

    /// Does it to both, and looks at every invariant.
    pub fn apply(&mut self, op: ListOp) {
        let (list, model) = (&mut self.list, &mut self.model);
        let len = model.len();
        match op {
            ListOp::Insert(at, value) if at <= len => {
                list.insert(at, value).unwrap();
                model.insert(at, value);
            }
            ListOp::Insert(position, value) => {
                assert_eq!(list.insert(position, value), Err(OutOfBounds { position, len }))
            }
            ListOp::PushBack(values) => {
                list.append_slice(&values);
                model.extend(values);
            }
            ListOp::PushFront(value) => {
                list.push_front(value);
                model.insert(0, value);
            }
            ListOp::Remove(at) if at < len => assert_eq!(list.remove(at), Ok(model.remove(at))),
            ListOp::Remove(position) => assert_eq!(list.remove(position), Err(OutOfBounds { position, len })),
            ListOp::Replace(at, value) if at < len => {
                assert_eq!(list.replace(at, value), Ok(std::mem::replace(&mut model[at], value)));
            }
            ListOp::Replace(position, value) => {
                assert_eq!(list.replace(position, value), Err(OutOfBounds { position, len }))
            }
            ListOp::RemoveRange(a, b) => {
                let (mut seen, gone) = (Vec::new(), model.drain(clamp_range(a, b, len)).collect::<Vec<_>>());
                assert_eq!(
                    list.remove_range(a.min(b)..a.max(b), |part| seen.extend_from_slice(part)),
                    gone.len()
                );
                assert_eq!(seen, gone);
            }
            other => self.apply_bulk(other),
        }
        self.list.check().unwrap();
        assert_eq!(self.list.len(), self.model.len());
        self.check_cursor();
    }

    /// What concerns many elements, or none.
    fn apply_bulk(&mut self, op: ListOp) {
        let (list, model) = (&mut self.list, &mut self.model);
        let len = model.len();
        match op {
            ListOp::Extract(a, b) => {
                let out = list.extract(a.min(b)..a.max(b));
                out.check().unwrap();
                assert!(out.into_iter().eq(model.drain(clamp_range(a, b, len))));
            }
            ListOp::Merge(mut values) => {
                let mut other: SlabList<i32> = values.iter().copied().collect();
                list.merge(&mut other);
                model.append(&mut values);
                assert!(other.is_empty());
            }
            ListOp::MapRange(a, b) => {
                let flip = |part: &mut [i32]| part.iter_mut().for_each(|value| *value ^= 1);
                list.map_range(a.min(b)..a.max(b), flip);
                flip(&mut model[clamp_range(a, b, len)]);
            }
            ListOp::Reverse => {
                list.reverse();
                model.reverse();
            }
            ListOp::Sort => {
                list.sort();
                model.sort();
            }
            ListOp::Cursor(at) => {
                self.cursor = list.cursor(at);
                assert_eq!(self.cursor.is_some(), at < len);
            }
            _ => _ = list.reap(),
        }
    }

    fn check_cursor(&self) {
        match self.cursor.map(|cursor| (cursor.position(), cursor.get(&self.list))) {
            Some((at, Ok(value))) => assert_eq!(self.model.get(at), Some(&value)),
            Some((_, Err(error))) => assert_eq!(error, StaleCursor::Changed),
            None => {}
        }
    }

    /// The last look, by every reader.
    pub fn check_all_readers(self) {
        let (list, model) = (self.list, self.model);
        assert!(list.iter().eq(model.iter()));
        assert!(list.iter().rev().eq(model.iter().rev()));
        for (at, value) in model.iter().enumerate().step_by(7) {
            assert_eq!(list.get(at), Some(value));
            assert_eq!(list.get_circular(at + 2 * model.len()), Some(value));
        }
        let middle = model.len() / 3..model.len() / 2;
        assert!(list.range(middle.clone()).eq(&model[middle]));
    }
}
