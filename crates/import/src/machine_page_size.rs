//! The page size of an imported machine: what was stated, what the rows fit, or what is assumed.

use perflab_formats::kernel::slab_counts::MachinePageSize;

use crate::imported_run::RunMetadata;
use crate::log_stream::LogStream;
use perflab_model::fact_table;

/// In bytes, where nothing is known.
const ASSUMED: u64 = 4096;

/// Decides the page size of a run and writes it into its metadata: what was stated, else what the rows fit,
/// else 4096 with a warning.
pub(crate) fn settle_page_size(
    reported: Option<MachinePageSize>,
    streams: &[&LogStream],
    metadata: &mut RunMetadata,
) -> u64 {
    let of_rows = |stream: &&LogStream| {
        let source = format!("how many objects fill a slab in {}", stream.file_report().file_name());
        Some(MachinePageSize { bytes: stream.page_size()?, source })
    };
    let known = reported.or_else(|| streams.iter().find_map(of_rows));
    if known.is_none() {
        metadata.notes.push((
            "the page size is not known: 4096 bytes are assumed, and all bytes of slabs depend on it".into(),
            "say --page-size where the machine had another one".into(),
        ));
    }
    let assumed = || MachinePageSize { bytes: ASSUMED, source: "assumed".into() };
    let MachinePageSize { bytes, source } = known.unwrap_or_else(assumed);
    metadata.facts.add(fact_table::MEMORY_PAGE_SIZE, i64::try_from(bytes).unwrap_or(i64::MAX), &source);
    bytes
}
