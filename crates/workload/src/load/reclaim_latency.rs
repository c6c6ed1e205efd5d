//! How long it takes to get a little memory while others use a lot of it: mapped, touched and unmapped, beside tasks that keep
//! touching their memory and tasks that write files.
//!
//! The question is that of MMTests' `stutter` and `stutterp` (M. Gorman): whether a desktop stutters while a file is copied.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;

use crate::load::args::{BuiltinLoadArgs, LoadError, invalid_value_error};
use crate::load::latency::LatencyHistogram;
use crate::load::page_buffer::system_page_size;
use crate::load::tasks::{MOST_TASKS, Task, TaskPlan};
use crate::system_calls::PageMapping;

#[derive(Debug)]
struct ReclaimPlan {
    /// bytes that are got and given back
    size: usize,
    hogs: usize,
    /// bytes of all hogs
    hog_size: usize,
    /// bytes after which a writer begins its file again
    write_size: usize,
    directory: PathBuf,
}

/// Bytes of one write.
const WRITE: usize = 64 << 10;

pub(crate) fn measure_reclaim_latency(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    let size = options.size("size", 4 << 20)?.max(system_page_size());
    let hogs = options.count_within("hogs", 2, 0..=MOST_TASKS / 2)?;
    let hog_size = options.size("hog-size", 256 << 20)?;
    let writers = options.count_within("writers", 1, 0..=MOST_TASKS / 2 - 1)?;
    let write_size = options.size("write-size", 256 << 20)?.max(WRITE);
    let default = std::env::temp_dir().display().to_string();
    let directory: String = options.value("directory", default)?;
    let tasks = TaskPlan { awaited: 1, ..TaskPlan::take_with_tasks(options, 1 + hogs + writers)? };
    options.require_all_used()?;
    if !Path::new(&directory).is_dir() {
        return Err(invalid_value_error("directory", &format!("{directory} is not a folder that exists")));
    }
    let plan = ReclaimPlan { size, hogs, hog_size, write_size, directory: directory.into() };
    let counted = tasks.measure(&|task| match task.index {
        0 => plan.map_and_touch(task),
        index if index <= plan.hogs => plan.keep_touching(task),
        _ => plan.keep_writing(task),
    })?;
    let mut latencies = LatencyHistogram::new()?;
    latencies.merge_bytes(&counted.reports[0]);
    if latencies.is_empty() {
        return Err(invalid_value_error("time", "no memory was got in it; give it more"));
    }
    let pages: u64 = counted.operations[1..=hogs].iter().sum();
    let written: u64 = counted.operations[1 + hogs..].iter().sum();
    Ok(json!({
        "seconds": counted.seconds,
        "latency": latencies.to_json(),
        "mappings_per_second": counted.operations[0] as f64 / counted.seconds,
        "hog_pages_per_second": pages as f64 / counted.seconds,
        "written_bytes_per_second": written as f64 / counted.seconds,
    }))
}

impl ReclaimPlan {
    fn map_and_touch(&self, task: &Task<'_>) -> Result<Vec<u8>, LoadError> {
        let mut latencies = LatencyHistogram::new()?;
        task.begin();
        while !task.is_stopped() {
            let start = Instant::now();
            let mapping = PageMapping::map_anonymous(self.size);
            let mut mapping = mapping.map_err(LoadError::system_error(format!("map {} bytes", self.size)))?;
            for offset in (0..self.size).step_by(system_page_size()) {
                mapping.write_byte(offset, 1);
            }
            drop(mapping);
            if task.is_measured() {
                latencies.record(start.elapsed());
            }
            task.count(1);
        }
        Ok(latencies.to_bytes())
    }

    /// A hog has touched all of its memory before it begins.
    fn keep_touching(&self, task: &Task<'_>) -> Result<Vec<u8>, LoadError> {
        let size = (self.hog_size / self.hogs).max(system_page_size());
        let mapping = PageMapping::map_anonymous(size);
        let mut mapping = mapping.map_err(LoadError::system_error(format!("map {size} bytes")))?;
        let pages = (0..size).step_by(system_page_size());
        pages.clone().for_each(|offset| mapping.write_byte(offset, 1));
        task.begin();
        loop {
            for offset in pages.clone() {
                mapping.write_byte(offset, 1);
                if !task.count(1) {
                    return Ok(Vec::new());
                }
            }
        }
    }

    /// What was written counts in bytes.
    fn keep_writing(&self, task: &Task<'_>) -> Result<Vec<u8>, LoadError> {
        let write = || -> io::Result<()> {
            let mut file: File = tempfile::tempfile_in(&self.directory)?;
            let block = vec![0xA5; WRITE];
            let mut written = 0;
            task.begin();
            loop {
                file.write_all(&block)?;
                written += WRITE;
                if written >= self.write_size {
                    file.rewind()?;
                    written = 0;
                }
                if !task.count(WRITE as u64) {
                    return Ok(());
                }
            }
        };
        let failed = LoadError::system_error(format!("write in {}", self.directory.display()));
        write().map_err(failed).map(|()| Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn measure(arguments: &[&str]) -> Result<serde_json::Value, LoadError> {
        let fixed = [
            "reclaim-latency",
            "--model",
            "threads",
            "--time",
            "20ms",
            "--size",
            "64KiB",
            "--hog-size",
            "1MiB",
        ];
        let all: Vec<OsString> = fixed.iter().chain(arguments).map(Into::into).collect();
        measure_reclaim_latency(&mut BuiltinLoadArgs::parse(&all)?)
    }

    #[test]
    fn memory_is_got_beside_hogs_and_writers_and_without() {
        let crowded = measure(&["--hogs", "2", "--writers", "1", "--write-size", "1MiB"]).unwrap();
        assert!(crowded["latency"]["p99_us"].as_f64().unwrap() > 0.0, "{crowded}");
        let alone = measure(&["--hogs", "0", "--writers", "0"]).unwrap();
        assert_eq!(
            (&alone["hog_pages_per_second"], &alone["written_bytes_per_second"]),
            (&0.0.into(), &0.0.into())
        );
        let nowhere = measure(&["--directory", "/nowhere"]).unwrap_err().to_string();
        assert_eq!(nowhere, "--directory: /nowhere is not a folder that exists");
    }
}
