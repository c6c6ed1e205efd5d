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
//! | `perf_data`, `perf_file`, `perf_layout` | what `perf record` writes; its events, description and records, every size checked; where a cut file ends |
//! | `script`, `pprof` | the text of `perf script`; protobufs |
//! | `convert`, `records`, `space` | the one converter: records and chains of addresses to stacks |
//! | `unwind`, `registers` | stacks out of copies of memory (`--call-graph dwarf`) |
//! | `live` | [`LiveProfile`]: recordings of `observe`, named |
//! | `kernel`, `user`, `machine` | names of addresses, and whose symbols fit |
//! | `files` | files of watched programs: found while they live, and opened so that nobody else can do harm by them |
//! | [`events`] | what events cannot see |
//! | [`imported`] | what every format gives |
//! | [`export`] | profiles for other tools: folded, speedscope, Firefox Profiler, pprof |
//! | [`error`] | what can go wrong, with line or offset |

pub mod error;
pub mod events;
pub mod export;
pub mod imported;
pub mod read;

mod convert;
mod files;
mod folded;
mod kernel;
mod live;
mod machine;
mod perf_data;
mod perf_file;
mod perf_layout;
mod pprof;
mod records;
mod registers;
mod script;
mod space;
mod unwind;
mod user;

pub use convert::{StackConverter, SymbolSources};
pub use error::StacksError;
pub use imported::{ImportedProfile, ProfileNote, ProfilePosition, ProfileRemark};
pub use kernel::{KernelSymbols, KernelSymbolsError};
pub use live::{LiveProfile, MappedFile, PerfRecording, RecordedProcess};
pub use read::{ProfileFormat, SymbolOptions, read_profile_file};
