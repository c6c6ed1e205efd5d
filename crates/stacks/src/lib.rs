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
//!
//! Profiles for other tools.
//!
//! Owns four formats: folded text, speedscope's JSON, the Firefox Profiler's JSON and pprof's protobuf. Refuses to
//! invent: folded text has no place for times and losses, so they are left out of it, and a sample without
//! a stack is written as one wherever the format can say so.

mod address_space;
mod firefox;
mod folded;
pub mod imported_profile;
mod kernel_symbols;
mod live_recording;
mod perf_data;
mod perf_file;
mod perf_records;
mod perf_script;
mod pprof;
pub mod profile_format;
mod profile_selection;
mod recorded_machine;
mod speedscope;
mod stack_converter;
#[cfg(test)]
mod tests;
mod unwind;
mod user_symbols;
mod watched_file;

pub use firefox::write_firefox;
pub use folded::write_folded;
pub use imported_profile::{ImportedProfile, ProfileNote, ProfilePosition, ProfileRemark, StacksError};
pub use kernel_symbols::{KernelSymbols, KernelSymbolsError};
pub use live_recording::{LiveProfile, MappedFile, PerfRecording, RecordedProcess};
pub use pprof::write_pprof;
pub use profile_format::{ProfileFormat, SymbolOptions, read_profile_file};
pub use profile_selection::ProfileSelection;
pub use speedscope::write_speedscope;
pub use stack_converter::{StackConverter, SymbolSources};
