//! An ordered set, and an ordered list, of fixed-size elements in page-sized slabs.
//!
//! A [`SlabSet`] holds keys that are `Copy + Ord` (integers, byte arrays, floats as [`F64`], or any in the order of a
//! [`Comparator`]) in *slabs*: sorted
//! arrays of about a kilobyte and a half, with an index above them. A full slab first spills to its neighbours, so
//! slabs stay some 85 % full; a fold over all keys runs at the speed of memory. [`SlabList`] is its sibling for
//! elements by position. Up to 64 elements either is one growing vector.
//!
//! When removals leave slabs thin, a [`ReapPolicy`] decides when they are given back: [`MinCapacity`] and
//! [`ReapThresholds`] are those of the library this one follows (libslablist, 2012), [`NeverReap`] leaves them, and
//! [`BoundedReap`], the default, does a small step per operation, so that no single operation is ever long. What
//! happens inside is reported to a [`SlabProbe`], which costs nothing when unused; with feature `usdt` one of them
//! is `Usdt`, which fires USDT probes.
//!
//! ```
//! use slablist::{BoundedReap, EventCounts, ListShape, SlabSet};
//!
//! let mut set = SlabSet::with_shape(ListShape::DEFAULT, BoundedReap::default(), EventCounts::default());
//! for key in 0..10_000_u64 {
//!     set.insert(key * 7919 % 10_007);
//! }
//! assert_eq!(set.len(), 10_000);
//! assert_eq!(set.get(0), set.iter().next());
//! assert_eq!(set.range(100..200).count(), set.remove_range(100..200, |_| {}));
//! assert_eq!(set.occupancy().slabs as u64, set.probe().made - set.probe().freed);
//! ```
//!
//! | module | what a reader finds |
//! |---|---|
//! | `set`, `list`, `cursor`, `iter` | the two collections, cursors in them, iterators over them |
//! | `set_operations` | what is done to many keys at once: merging, extracting, comparing |
//! | `tree`, `list_core`, `node` | what both share: the tree, its counters, its nodes |
//! | `route`, `search` | the way down by key or position; searches in sorted arrays |
//! | `insert`, `spill`, `remove`, `reap` | changes of the tree, each with a bound on its work |
//! | `policy`, `shape` | when slabs are given back; how big things are |
//! | `probe`, `usdt` | what happens inside, reported while it happens |
//! | `invariants`, `error` | what must hold of a tree; what can go wrong |
//! | `ordered_float`, `cache_prefetch` | floats as keys; asking for memory before it is needed |

#![deny(unsafe_code)]

mod cache_prefetch;
mod comparator;
mod cursor;
mod error;
mod insert;
mod invariants;
mod iter;
mod list;
mod list_core;
mod node;
mod ordered_float;
mod policy;
mod probe;
mod reap;
mod remove;
mod route;
mod search;
mod set;
mod set_operations;
mod shape;
mod spill;
mod tree;
#[cfg(feature = "usdt")]
mod usdt;

pub use comparator::{Comparator, NaturalOrder};
pub use cursor::{ListCursor, SetCursor};
pub use error::{InvariantViolation, NotSorted, OutOfBounds, StaleCursor};
pub use iter::{ElementIntoIter, ElementIter, SlabIter};
pub use list::SlabList;
pub use ordered_float::{F32, F64};
pub use policy::{
    AnyReapPolicy, BoundedReap, MinCapacity, NeverReap, Occupancy, ReapDecision, ReapPolicy, ReapThresholds,
    UnknownPolicy,
};
pub use probe::{EventCounts, NoProbe, SlabEvent, SlabProbe, SlabWork};
pub use set::SlabSet;
pub use shape::ListShape;
#[cfg(feature = "usdt")]
pub use usdt::Usdt;

/// The README's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct SlablistReadmeExamples;
