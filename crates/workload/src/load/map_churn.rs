//! Threads that copy a chunk of memory into a fresh mapping, search in it, and unmap it: page faults and unmapping in an address
//! space that all share.
//!
//! The load is that of ebizzy (V. Henson and R. Neuhauser), from what it is described as: a server that searches for records.

use std::io;

use memmap2::MmapMut;
use serde_json::json;

use crate::load::args::{BuiltinLoadArgs, LoadError, invalid_value_error};
use crate::load::random_order::Xorshift64;
use crate::load::tasks::{Task, TaskPlan};

/// Bytes of a record: its key.
const RECORD: usize = 8;

pub(crate) fn measure_map_churn(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    let chunks = options.count_within("chunks", 10, 1..=1_000_000)?;
    let chunk_size = options.size("chunk-size", 256 << 10)?;
    let plan = TaskPlan::take(options)?;
    options.require_all_used()?;
    if chunk_size < RECORD {
        return Err(invalid_value_error(
            "chunk-size",
            &format!("at least {RECORD} bytes, which is a record"),
        ));
    }
    // Keys are even, so that half of what is looked for is not there.
    let records = chunk_size / RECORD;
    let chunk: Vec<[u8; RECORD]> = (0..records as u64).map(|key| (2 * key).to_ne_bytes()).collect();
    let chunks = vec![chunk; chunks];
    let counted = plan.measure(&|task| {
        search_copies(task, &chunks).map_err(LoadError::system_error("map a copy")).map(|()| Vec::new())
    })?;
    Ok(json!({
        "tasks": plan.tasks,
        "seconds": counted.seconds,
        "records_per_second": counted.rate(),
        "records_per_second_per_task": counted.rate_per_task(),
        "fairness": counted.fairness(),
    }))
}

fn search_copies(task: &Task<'_>, chunks: &[Vec<[u8; RECORD]>]) -> io::Result<()> {
    let mut random = Xorshift64::new(task.index as u64 + 1);
    task.repeat(|| {
        let chunk = &chunks[(random.next() % chunks.len() as u64) as usize];
        let mut copy = MmapMut::map_anon(chunk.len() * RECORD)?;
        let (records, _) = copy.as_chunks_mut::<RECORD>();
        records.copy_from_slice(chunk);
        let key = random.next() % (2 * chunk.len() as u64);
        let found = records.binary_search_by_key(&key, |record| u64::from_ne_bytes(*record));
        // Half of the keys are in it.
        if found.is_ok() == key.is_multiple_of(2) { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn records_are_found_in_copies() {
        let measure = |size: &str| {
            let arguments =
                ["map-churn", "--chunk-size", size, "--tasks", "2", "--model", "threads", "--time", "10ms"];
            let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
            measure_map_churn(&mut BuiltinLoadArgs::parse(&arguments).unwrap())
        };
        let result = measure("8KiB").unwrap();
        assert!(result["records_per_second"].as_f64().unwrap() > 0.0, "{result}");
        assert_eq!(
            measure("4").unwrap_err().to_string(),
            "--chunk-size: at least 8 bytes, which is a record"
        );
    }
}
