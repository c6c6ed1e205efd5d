//! The table of all decoders.

use crate::decoder::Decoder;
use crate::{imports, kernel_cells, kernel_files, messages, profiles, stored, studies};

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
    declare("parquet_file", stored::decode_parquet_file),
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
    declare("foreign_study", studies::decode_foreign_study),
    declare("workload", studies::decode_workload),
    declare("metric_rules", studies::decode_benchmark_output),
    declare("kernel_files", kernel_files::decode_kernel_file),
    declare("kernel_cells", kernel_cells::decode_kernel_cells),
    declare("text_logs", kernel_files::decode_text_log),
    declare("mounts", kernel_files::decode_mounts),
];

/// The decoder of that name.
pub fn find_decoder(name: &str) -> Option<&'static Decoder> {
    DECODERS.iter().find(|decoder| decoder.name == name)
}
