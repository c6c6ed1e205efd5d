//! From records and other tools' files to named call stacks: one converter for live and imported profiles.
//!
//! Owns the formats that profiles come in and the way from addresses to names. Refuses to drop a sample in
//! silence: what has no stack is a sample without one, what cannot be read is counted and its place is said,
//! and what the file says was lost is passed on. Writes nothing; opens no perf event (`observe` does).
//!
//! | module | owns |
//! |---|---|
//! | [`read`] | from a path to a profile, whatever its format |
//! | `folded` | `a;b;c 42`: what the collapse scripts of flame graphs write |
//! | [`imported`] | what every format gives |
//! | [`error`] | what can go wrong, with line or offset |

pub mod error;
pub mod imported;
pub mod read;

mod folded;

pub use error::StacksError;
pub use imported::{Imported, Note, Place, Remark};
pub use read::{Format, Options, read};
