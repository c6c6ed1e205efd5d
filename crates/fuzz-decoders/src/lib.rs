//! Every decoder of foreign bytes, one call each.
//!
//! [`DECODERS`] is the table: `fuzz/` runs one of them at a time under libFuzzer, and a test of this crate feeds each its
//! corpus, `fuzz/corpus/NAME`. A decoder takes any bytes and gives nothing: it may refuse them, and must not panic, run
//! for ever, or take more memory than its input asks for by its length.
//!
//! What reads files is given one in memory ([`MemoryFolder`]). Where a decoder reads files of several kinds, the first
//! byte says which.

mod imports;
mod kernel_files;
mod memory_folder;
mod messages;
mod profiles;
mod stored;
mod studies;

pub use imports::{DOCUMENT_IMPORTERS, LKP_FILES, MMTESTS_FILES};
pub use kernel_files::{kernel_texts, log_parsers};
pub use memory_folder::MemoryFolder;

/// A decoder under the name of its corpus.
#[derive(Debug, Clone, Copy)]
pub struct Decoder {
    /// What `fuzz/run` calls it.
    pub name: &'static str,
    /// Decodes any bytes.
    pub decode: fn(&[u8]),
}

const fn declare(name: &'static str, decode: fn(&[u8])) -> Decoder {
    Decoder { name, decode }
}

/// All decoders.
pub const DECODERS: &[Decoder] = &[
    declare("agent_frames", messages::decode_agent_frames),
    declare("control_frames", messages::decode_control_frames),
    declare("perf_data", profiles::decode_perf_data),
    declare("perf_script", profiles::decode_perf_script),
    declare("pprof", profiles::decode_pprof),
    declare("folded", profiles::decode_folded),
    declare("kallsyms", profiles::decode_kallsyms),
    declare("parquet_texts", stored::decode_parquet_texts),
    declare("journal", stored::decode_journal),
    declare("portable_run", stored::decode_portable_run),
    declare("startup_trace", stored::decode_startup_trace),
    declare("page_dump", stored::decode_page_dump),
    declare("blktrace", imports::decode_blktrace),
    declare("blkparse", imports::decode_blkparse),
    declare("documents", imports::decode_document),
    declare("kernel_dump", imports::decode_kernel_dump),
    declare("mmtests", imports::decode_mmtests_log),
    declare("lkp", imports::decode_lkp_file),
    declare("study", studies::decode_study),
    declare("workload", studies::decode_workload),
    declare("metric_rules", studies::decode_benchmark_output),
    declare("kernel_files", kernel_files::decode_kernel_file),
    declare("text_logs", kernel_files::decode_text_log),
    declare("mounts", kernel_files::decode_mounts),
];

/// The decoder of that name.
pub fn find_decoder(name: &str) -> Option<&'static Decoder> {
    DECODERS.iter().find(|decoder| decoder.name == name)
}

/// The first byte chooses one of `all`; the rest is what it is given.
pub(crate) fn choose<'a, T>(all: &'a [T], bytes: &'a [u8]) -> Option<(&'a T, &'a [u8])> {
    let (first, rest) = bytes.split_first()?;
    Some((all.get(usize::from(*first) % all.len().max(1))?, rest))
}
