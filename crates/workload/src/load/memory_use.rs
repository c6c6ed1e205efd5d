//! More memory than fits, or less: threads that write all pages of their part, pass after pass, until they are done.
//!
//! The load is `usemem` of vm-scalability and MMTests, from what it is described as: what reclaim and swapping cost whoever needs
//! the memory.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Barrier;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use perflab_formats::kernel::small_values::find_field;
use serde_json::json;

use crate::load::args::{BuiltinLoadArgs, LoadError, invalid_value_error};
use crate::load::page_buffer::system_page_size;
use crate::load::tasks::MOST_TASKS;
use crate::system_calls::{MappingKind, PageMapping};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemoryKind {
    Anonymous,
    File,
}

const KINDS: &[(&str, MemoryKind)] = &[("anonymous", MemoryKind::Anonymous), ("file", MemoryKind::File)];

pub(crate) fn measure_memory_use(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    let size = options.size("size", 256 << 20)?;
    let threads = options.count_within("threads", 1, 1..=MOST_TASKS)?;
    let passes = options.count("passes", 2, 1)?;
    let kind = options.choice("kind", KINDS)?;
    let default = std::env::temp_dir().display().to_string();
    let directory: String = options.value("directory", default)?;
    options.require_all_used()?;
    if kind == MemoryKind::File && !Path::new(&directory).is_dir() {
        return Err(invalid_value_error("directory", &format!("{directory} is not a folder that exists")));
    }
    let part = (size / threads).max(system_page_size());
    let map = || match kind {
        MemoryKind::Anonymous => PageMapping::map_anonymous(part),
        MemoryKind::File => {
            let file = tempfile::tempfile_in(&directory)?;
            file.set_len(part as u64)?;
            PageMapping::map_file(&file, part, MappingKind::Shared)
        }
    };
    let mappings = (0..threads).map(|_| map()).collect::<io::Result<Vec<_>>>();
    let mappings = mappings.map_err(LoadError::system_error(format!("map {size} bytes")))?;
    let before = UsedSoFar::read()?;
    let start = Instant::now();
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        for mut mapping in mappings {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                for pass in 0..passes {
                    for offset in (0..part).step_by(system_page_size()) {
                        mapping.write_byte(offset, pass as u8);
                    }
                }
            });
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let after = UsedSoFar::read()?;
    let touched = (part.div_ceil(system_page_size()) * threads * passes) as f64;
    let mut result = json!({
        "size": part * threads,
        "threads": threads,
        "passes": passes,
        "seconds": seconds,
        "system_seconds": after.system_seconds - before.system_seconds,
        "pages_per_second": touched / seconds,
        "major_faults": after.major_faults - before.major_faults,
    });
    if let (Some(before), Some(after), Some(object)) = (before.swapped, after.swapped, result.as_object_mut())
    {
        object.insert("swapped_in_per_second".into(), json!((after.0 - before.0) as f64 / seconds));
        object.insert("swapped_out_per_second".into(), json!((after.1 - before.1) as f64 / seconds));
    }
    Ok(result)
}

/// What this process has used, and what the machine has swapped.
struct UsedSoFar {
    system_seconds: f64,
    major_faults: i64,
    /// pages in and out; none where the kernel does not count them
    swapped: Option<(u64, u64)>,
}

impl UsedSoFar {
    fn read() -> Result<Self, LoadError> {
        let usage = getrusage(UsageWho::RUSAGE_SELF)
            .map_err(|error| LoadError::system_error("read what was used")(error.into()))?;
        let system = usage.system_time();
        let system_seconds = system.tv_sec() as f64 + system.tv_usec() as f64 / 1e6;
        let swapped = fs::read_to_string("/proc/vmstat").ok().and_then(|text| {
            let count = |key| find_field(&text, ' ', key)?.parse().ok();
            Some((count("pswpin")?, count("pswpout")?))
        });
        Ok(UsedSoFar { system_seconds, major_faults: usage.major_page_faults(), swapped })
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn memory_of_both_kinds_is_written() {
        for (kind, _) in KINDS {
            let arguments =
                ["memory-use", "--size", "2MiB", "--threads", "3", "--passes", "2", "--kind", kind];
            let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
            let result = measure_memory_use(&mut BuiltinLoadArgs::parse(&arguments).unwrap()).unwrap();
            assert!(result["pages_per_second"].as_f64().unwrap() > 0.0, "{result}");
            assert!(result["system_seconds"].as_f64().unwrap() >= 0.0, "{result}");
        }
    }
}
