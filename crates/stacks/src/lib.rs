//! Named call stacks: from live recordings and other tools' files, and back into other tools' formats.
//!
//! There is one converter for live and imported profiles. No sample is dropped in silence: what has no stack is a
//! sample without one, what cannot be read is counted with its position, and what the file says was lost is passed on.
//! No perf event is opened here (`observe` does that).
//!
//! | module | content |
//! |---|---|
//! | [`profile_format`] | from a path to a profile, whatever its format |
//! | [`imported_profile`] | what every format gives; what events cannot see; errors with line or offset |
//! | `perf_data`, `perf_layout`, `perf_file`, `perf_records` | what `perf record` writes: whole or cut, every size checked |
//! | `perf_script`, `pprof`, `folded` | the text of `perf script`; protobufs; `a;b;c 42` |
//! | `stack_converter`, `address_space` | the converter: samples and chains of addresses to stacks |
//! | `unwind` | stacks from copies of memory (`--call-graph dwarf`) |
//! | `live_recording` | [`LiveProfile`]: recordings of `observe`, named |
//! | `sampled_kernel`, `kernel_unwind`, `orc_tables` | kernel stacks of stopped processors, from registers and memory |
//! | `processor_samples` | [`ProcessorProfile`]: samples of stopped processors, named |
//! | `kernel_symbols`, `user_symbols`, `recorded_machine` | names of addresses, and whose symbols fit |
//! | `watched_file` | files of watched programs, opened so that nobody can do harm by them |
//! | `profile_selection` | [`ProfileSelection`]: what of a profile is written |
//! | `folded`, `speedscope`, `firefox`, `pprof` | writers for other tools |
//!
//! A writer invents nothing: folded text has no place for times and losses, so they are left out of it, and a sample
//! without a stack is written as one wherever the format can say so.

mod address_space;
mod firefox;
mod folded;
pub mod imported_profile;
mod kernel_symbols;
mod kernel_unwind;
mod live_recording;
mod orc_tables;
mod perf_data;
mod perf_file;
mod perf_layout;
mod perf_records;
mod perf_script;
mod pprof;
mod processor_samples;
pub mod profile_format;
mod profile_selection;
mod recorded_files;
mod recorded_machine;
mod sampled_kernel;
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
pub use kernel_unwind::{KernelMemory, StackEnd, StoppedRegisters, UnwoundStack};
pub use live_recording::{LiveProfile, MappedFile, PerfRecording, RecordedProcess};
pub use pprof::write_pprof;
pub use processor_samples::{ProcessorProfile, ProcessorSample};
pub use profile_format::{ProfileFormat, read_profile_file};
pub use profile_selection::ProfileSelection;
pub use recorded_files::RecordedFiles;
pub use recorded_machine::{SymbolOptions, parse_build_id};
pub use sampled_kernel::{SampledKernel, SampledKernelError, SampledStack, select_kallsyms};
pub use speedscope::write_speedscope;
pub use stack_converter::{StackConverter, SymbolSources};
