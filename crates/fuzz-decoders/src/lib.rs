//! Every decoder of foreign bytes, one call each.
//!
//! [`DECODERS`] is the table: `fuzz/` runs one of them at a time under libFuzzer, and a test of this crate feeds each its
//! corpus, `fuzz/corpus/NAME`. A decoder takes any bytes and gives nothing: it may refuse them, and must not panic, run
//! for ever, or take more memory than its input asks for by its length.
//!
//! What reads files is given one in memory ([`MemoryFolder`]). Where a decoder reads files of several kinds, the first
//! byte says which.

mod decoder;
mod imports;
mod kernel_cells;
mod kernel_files;
mod memory_folder;
mod messages;
mod profiles;
mod registry;
mod stored;
mod studies;

pub use decoder::Decoder;
pub use imports::{DOCUMENT_IMPORTERS, LKP_FILES, MMTESTS_FILES};
pub use kernel_files::{kernel_texts, log_parsers};
pub use memory_folder::MemoryFolder;
pub use registry::{DECODERS, find_decoder};
