//! Cursors: places in a list that are kept while the list changes.
//!
//! A [`SetCursor`] is at a key. It survives every insertion, and every removal but that of its own key. A
//! [`ListCursor`] is at a position. It survives no insertion, removal, sort or reap, since its position may then
//! mean another element; replacing elements in place leaves it valid. Both say so with a [`StaleCursor`].

use crate::comparator::Comparator;
use crate::error::StaleCursor;
use crate::list::SlabList;
use crate::policy::ReapPolicy;
use crate::probe::SlabProbe;
use crate::set::SlabSet;

/// A position in a set, at a key. Each step is O(log n); an iterator is the faster way to walk a set that rests.
///
/// It borrows nothing, and survives all changes but the removal of its key:
///
/// ```
/// use slablist::{SlabSet, StaleCursor};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut set: SlabSet<u32> = (0..10).collect();
/// let five = set.cursor(&5).ok_or("5 is a key")?;
/// set.remove(&6);
/// let seven = five.next(&set)?.ok_or("7 follows")?;
/// assert_eq!(seven.key(), 7);
/// set.remove(&7);
/// assert_eq!(seven.next(&set), Err(StaleCursor::Removed));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetCursor<K> {
    list: u64,
    key: K,
}

impl<K: Copy> SetCursor<K> {
    /// The key that it was put on. O(1), and also of a stale one.
    #[must_use]
    pub fn key(&self) -> K {
        self.key
    }

    /// The position of its key now.
    ///
    /// # Errors
    /// [`StaleCursor`] if the key was removed, or the cursor is of another set.
    pub fn position<R: ReapPolicy, P: SlabProbe, C: Comparator<K>>(
        &self,
        set: &SlabSet<K, R, P, C>,
    ) -> Result<usize, StaleCursor> {
        if self.list != set.tree.id {
            return Err(StaleCursor::OtherList);
        }
        set.position(&self.key).map_err(|_| StaleCursor::Removed)
    }

    /// A cursor on the next key; `None` at the end.
    ///
    /// # Errors
    /// As [`position`](Self::position). [`SlabSet::first_above`] goes on from a removed key.
    pub fn next<R: ReapPolicy, P: SlabProbe, C: Comparator<K>>(
        &self,
        set: &SlabSet<K, R, P, C>,
    ) -> Result<Option<Self>, StaleCursor> {
        let at = self.position(set)?;
        Ok(set.cursor_at(at + 1))
    }

    /// A cursor on the key before; `None` at the beginning.
    ///
    /// # Errors
    /// As [`position`](Self::position).
    pub fn previous<R: ReapPolicy, P: SlabProbe, C: Comparator<K>>(
        &self,
        set: &SlabSet<K, R, P, C>,
    ) -> Result<Option<Self>, StaleCursor> {
        let at = self.position(set)?;
        Ok(at.checked_sub(1).and_then(|at| set.cursor_at(at)))
    }
}

impl<K: Copy, R: ReapPolicy, P: SlabProbe, C: Comparator<K>> SlabSet<K, R, P, C> {
    /// A cursor on `key`, if it is there. O(log n).
    #[must_use]
    pub fn cursor(&self, key: &K) -> Option<SetCursor<K>> {
        self.find(key).map(|key| SetCursor { list: self.tree.id, key: *key })
    }

    /// A cursor on the key at a position. O(log n).
    #[must_use]
    pub fn cursor_at(&self, position: usize) -> Option<SetCursor<K>> {
        self.get(position).map(|key| SetCursor { list: self.tree.id, key: *key })
    }
}

/// A position in a positional list. Each step is O(log n).
///
/// ```
/// use slablist::{SlabList, StaleCursor};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut list: SlabList<u32> = (0..10).collect();
/// let three = list.cursor(3).ok_or("3 is a position")?;
/// assert_eq!(three.get(&list), Ok(3));
/// list.push_front(7);
/// assert_eq!(three.get(&list), Err(StaleCursor::Changed));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListCursor {
    list: u64,
    changes: u64,
    position: usize,
}

impl ListCursor {
    /// The position that it was put on. O(1), and also of a stale one.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// The element that it is at.
    ///
    /// # Errors
    /// [`StaleCursor`] if the list was changed since, or is another one.
    pub fn get<T: Copy, R: ReapPolicy, P: SlabProbe>(
        &self,
        list: &SlabList<T, R, P>,
    ) -> Result<T, StaleCursor> {
        if self.list != list.tree.id {
            return Err(StaleCursor::OtherList);
        }
        if self.changes != list.tree.changes {
            return Err(StaleCursor::Changed);
        }
        list.get(self.position).copied().ok_or(StaleCursor::Changed)
    }

    /// A cursor on the next element; `None` at the end.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn next<T: Copy, R: ReapPolicy, P: SlabProbe>(
        &self,
        list: &SlabList<T, R, P>,
    ) -> Result<Option<Self>, StaleCursor> {
        self.get(list)?;
        Ok(list.cursor(self.position + 1))
    }

    /// A cursor on the element before; `None` at the beginning.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn previous<T: Copy, R: ReapPolicy, P: SlabProbe>(
        &self,
        list: &SlabList<T, R, P>,
    ) -> Result<Option<Self>, StaleCursor> {
        self.get(list)?;
        Ok(self.position.checked_sub(1).and_then(|at| list.cursor(at)))
    }
}

impl<T: Copy, R: ReapPolicy, P: SlabProbe> SlabList<T, R, P> {
    /// A cursor on the element at a position. O(log n).
    #[must_use]
    pub fn cursor(&self, position: usize) -> Option<ListCursor> {
        let cursor = ListCursor { list: self.tree.id, changes: self.tree.changes, position };
        (position < self.len()).then_some(cursor)
    }
}
