//! Other tools' results.

use std::path::Path;

use perflab_import::{
    BlockMapFile, ImportOptions, ImportSource as _, detect_importer, find_importer, open_import,
};
use perflab_model::Bytes;

use crate::decoder::choose;
use crate::memory_folder::MemoryFolder;

/// Importers of one document each.
pub const DOCUMENT_IMPORTERS: &[&str] = &[
    "lkp-stats",
    "fio",
    "perf-stat",
    "hyperfine",
    "google-benchmark",
    "pyperf",
    "go-bench",
    "phoronix",
    "sar",
];

/// Files of an iteration of MMTests, each with the others' times beside it.
pub const MMTESTS_FILES: &[&str] = &[
    "tests-timestamp",
    "dbench4/logs/dbench-1.log",
    "fio-randread/logs/fio.log",
    "fio-randread/logs/fio_lat.1.log",
    "hackbench-process-pipes/logs/hackbench-1-1",
    "hackbench-process-pipes/logs/time-1-1",
    "perfpipe/logs/pipe-1.log",
    "pgbench/logs/pgbench-1.log",
    "pgbench/logs/pgbench-transactions-1.log",
    "redis/logs/redis-1-1.log",
    "sysbenchcpu/logs/sysbench-raw-1-1",
    "iostat-sysbenchcpu",
    "iostat-sysbenchcpu.start",
    "mpstat-sysbenchcpu",
    "perf-time-stat-sysbenchcpu",
    "proc-vmstat-sysbenchcpu",
    "vmstat-sysbenchcpu",
    "vmstat-sysbenchcpu.start",
    "kernel.version",
    "lscpu.txt",
    "tests-sysstate",
];

/// When the benchmarks of [`MMTESTS_FILES`] ran.
const TIMESTAMPS: &str = include_str!("../../import/tests/recorded/mmtests/2020/iter-0/tests-timestamp");

/// Files of a run of lkp-tests.
pub const LKP_FILES: &[&str] = &[
    "slabinfo",
    "slabinfo_tool",
    "orders",
    "job",
    "job.yaml",
    "meminfo",
    "fsmark",
    "fsmark.time",
    "stats.json",
];

/// Takes every event that an importer makes of a path; `true` where it is read to its end.
fn read_to_end(importer: &str, path: &Path, options: &ImportOptions) -> bool {
    let options = ImportOptions { kind: find_importer(importer), ..options.clone() };
    let Ok((_, mut source)) = open_import(path, &options) else { return false };
    let is_whole = source.by_ref().all(|event| event.is_ok());
    let _ = source.file_reports();
    is_whole
}

/// Looks at a file as `perflab import` does, and reads it as what it is said to be.
fn decode_file(importer: &str, name: &str, bytes: &[u8]) {
    let folder = MemoryFolder::new(importer);
    let path = folder.write(name, bytes);
    let _ = detect_importer(&path);
    read_to_end(importer, &path, &ImportOptions::default());
}

/// One file of blktrace; what lies behind a line of nothing but `map` is a map from blocks to files.
pub(crate) fn decode_blktrace(bytes: &[u8]) {
    const MAP: &[u8] = b"\nmap\n";
    let folder = MemoryFolder::new("blktrace");
    let map = bytes.windows(MAP.len()).position(|window| window == MAP);
    let (trace, map) = bytes.split_at(map.unwrap_or(bytes.len()));
    let path = folder.write("sda.blktrace.0", trace);
    let _ = detect_importer(&path);
    let map = map.get(MAP.len()..).map(|text| folder.write("partition.map", text));
    let block_map =
        map.map(|path| BlockMapFile { path, partition_start: None, block_size: Some(Bytes(4096)) });
    read_to_end("blktrace", &path, &ImportOptions { block_map, ..ImportOptions::default() });
}

/// Text of blkparse.
pub(crate) fn decode_blkparse(bytes: &[u8]) {
    decode_file("blkparse", "trace.txt", bytes);
}

/// A document; the first byte says which of [`DOCUMENT_IMPORTERS`] reads it.
pub(crate) fn decode_document(bytes: &[u8]) {
    if let Some((importer, text)) = choose(DOCUMENT_IMPORTERS, bytes) {
        decode_file(importer, "document", text);
    }
}

/// Dumps of slabinfo or meminfo, or the slabinfo tool's output.
pub(crate) fn decode_kernel_dump(bytes: &[u8]) {
    decode_file("dump", "slabinfo", bytes);
}

/// A file of an iteration of MMTests; the first byte says which of [`MMTESTS_FILES`] it is.
pub(crate) fn decode_mmtests_log(bytes: &[u8]) {
    let Some((name, text)) = choose(MMTESTS_FILES, bytes) else { return };
    let folder = MemoryFolder::new("mmtests");
    folder.write("iter-0/tests-timestamp", TIMESTAMPS.as_bytes());
    folder.write(Path::new("iter-0").join(name), text);
    read_to_end("mmtests", folder.path(), &ImportOptions::default());
}

/// A file of a run of lkp-tests; the first byte says which of [`LKP_FILES`] it is.
pub(crate) fn decode_lkp_file(bytes: &[u8]) {
    let Some((name, text)) = choose(LKP_FILES, bytes) else { return };
    let folder = MemoryFolder::new("lkp");
    folder.write(name, text);
    read_to_end("lkp", folder.path(), &ImportOptions::default());
}
