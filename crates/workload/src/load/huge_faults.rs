//! The first touch of memory for which huge pages are asked: how long it takes, and whether a huge page came.
//!
//! The question is that of MMTests' `thpscale` and `thpchallenge` (M. Gorman): what a huge page costs its reader, where memory
//! is fragmented and somebody else uses it, and how often there is none.

use std::fs;
use std::io;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use perflab_model::Bytes;
use serde_json::json;

use crate::load::args::{BuiltinLoadArgs, LoadError, invalid_value_error};
use crate::load::latency::LatencyHistogram;
use crate::load::page_buffer::system_page_size;
use crate::load::tasks::{Task, TaskPlan};
use crate::system_calls::PageMapping;

/// Where the kernel says how large a huge page is, in bytes.
const HUGE_PAGE_SIZE: &str = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";

const ADVICE: &[(&str, rustix::mm::Advice)] = &[
    ("huge", rustix::mm::Advice::LinuxHugepage),
    ("ordinary", rustix::mm::Advice::LinuxNoHugepage),
    ("none", rustix::mm::Advice::Normal),
];

#[derive(Debug, Clone, Copy)]
struct HugeFaultPlan {
    /// bytes of a mapping
    size: usize,
    huge: usize,
    advice: rustix::mm::Advice,
}

/// What a task saw while it was measured.
struct HugeFaultRecord {
    huge: LatencyHistogram,
    ordinary: LatencyHistogram,
}

impl HugeFaultRecord {
    fn new() -> Result<Self, LoadError> {
        Ok(HugeFaultRecord { huge: LatencyHistogram::new()?, ordinary: LatencyHistogram::new()? })
    }

    /// The length of the first part, and both parts.
    fn to_bytes(&self) -> Vec<u8> {
        let huge = self.huge.to_bytes();
        [&(huge.len() as u64).to_ne_bytes()[..], &huge, &self.ordinary.to_bytes()].concat()
    }

    fn merge_bytes(&mut self, bytes: &[u8]) {
        let Some((length, parts)) = bytes.split_first_chunk() else { return };
        if let Some((huge, ordinary)) = parts.split_at_checked(u64::from_ne_bytes(*length) as usize) {
            self.huge.merge_bytes(huge);
            self.ordinary.merge_bytes(ordinary);
        }
    }
}

pub(crate) fn measure_huge_faults(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    let size = options.size("size", 64 << 20)?;
    let advice = options.choice("advice", ADVICE)?;
    let tasks = TaskPlan::take(options)?;
    options.require_all_used()?;
    let huge = fs::read_to_string(HUGE_PAGE_SIZE).ok().and_then(|text| text.trim().parse().ok());
    let huge: usize = huge.ok_or_else(|| {
        let none =
            io::Error::new(io::ErrorKind::Unsupported, "this kernel has none (CONFIG_TRANSPARENT_HUGEPAGE)");
        LoadError::system_error(format!("read the size of huge pages from {HUGE_PAGE_SIZE}"))(none)
    })?;
    if size < huge {
        let reason = format!("{} is less than a huge page of {}", Bytes(size as u64), Bytes(huge as u64));
        return Err(invalid_value_error("size", &reason));
    }
    let plan = HugeFaultPlan { size, huge, advice };
    let counted = tasks.measure(&|task| plan.fault(task))?;
    let mut record = HugeFaultRecord::new()?;
    counted.reports.iter().for_each(|report| record.merge_bytes(report));
    let mut all = LatencyHistogram::new()?;
    all.merge(&record.huge);
    all.merge(&record.ordinary);
    let (got, blocks) = (record.huge.count(), all.count());
    if blocks == 0 {
        return Err(invalid_value_error("time", "nothing was touched in it; give it more"));
    }
    Ok(json!({
        "tasks": tasks.tasks,
        "seconds": counted.seconds,
        "huge_page_bytes": huge,
        "huge_share_percent": 100.0 * got as f64 / blocks as f64,
        "bytes_per_second": counted.rate() * huge as f64,
        "all": all.to_json(),
        "huge": record.huge.to_json(),
        "ordinary": record.ordinary.to_json(),
    }))
}

impl HugeFaultPlan {
    /// Maps and touches, over and over; each part of the size of a huge page counts.
    fn fault(&self, task: &Task<'_>) -> Result<Vec<u8>, LoadError> {
        let mut record = HugeFaultRecord::new()?;
        task.begin();
        while !task.is_stopped() {
            // One more than is touched, so that there is a place where huge pages can begin.
            let length = self.size + self.huge;
            let map = || {
                let mut mapping = PageMapping::map_anonymous(length)?;
                mapping.advise(0, length, self.advice)?;
                Ok(mapping)
            };
            let mut mapping = map().map_err(LoadError::system_error(format!("map {length} bytes")))?;
            let first = mapping.address().next_multiple_of(self.huge) - mapping.address();
            for block in (first..first + self.size - self.size % self.huge).step_by(self.huge) {
                self.touch_block(task, &mut mapping, block, &mut record)
                    .map_err(LoadError::system_error("count page faults"))?;
                if !task.count(1) {
                    break;
                }
            }
        }
        Ok(record.to_bytes())
    }

    /// Times the first touch of what may become a huge page; it became one where no other touch faults.
    fn touch_block(
        &self,
        task: &Task<'_>,
        mapping: &mut PageMapping,
        block: usize,
        record: &mut HugeFaultRecord,
    ) -> io::Result<()> {
        let start = Instant::now();
        mapping.write_byte(block, 1);
        let latency = start.elapsed();
        let before = count_own_faults()?;
        for offset in (0..self.huge).step_by(system_page_size()).skip(1) {
            mapping.write_byte(block + offset, 1);
        }
        let is_huge = count_own_faults()? == before;
        if task.is_measured() {
            if is_huge { &mut record.huge } else { &mut record.ordinary }.record(latency);
        }
        Ok(())
    }
}

/// Page faults of this thread that needed no disk.
fn count_own_faults() -> io::Result<i64> {
    Ok(getrusage(UsageWho::RUSAGE_THREAD)?.minor_page_faults())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn measure(arguments: &[&str]) -> Result<serde_json::Value, LoadError> {
        let fixed = ["huge-faults", "--model", "threads", "--warm-up", "0", "--time", "20ms"];
        let all: Vec<OsString> = fixed.iter().chain(arguments).map(Into::into).collect();
        measure_huge_faults(&mut BuiltinLoadArgs::parse(&all)?)
    }

    #[test]
    fn nothing_is_huge_where_nothing_huge_is_asked_for() {
        if !std::path::Path::new(HUGE_PAGE_SIZE).exists() {
            return;
        }
        let result = measure(&["--size", "8MiB", "--tasks", "2", "--advice", "ordinary"]).unwrap();
        assert_eq!(result["huge_share_percent"], 0.0, "{result}");
        assert!(result["huge"].is_null() && result["all"]["p95_us"].as_f64().unwrap() > 0.0, "{result}");
        let result = measure(&["--size", "8MiB", "--advice", "huge"]).unwrap();
        assert!(result["huge_share_percent"].as_f64().unwrap() <= 100.0, "{result}");
        let small = measure(&["--size", "4KiB"]).unwrap_err().to_string();
        assert!(small.starts_with("--size: 4 KiB is less than a huge page of "), "{small}");
    }

    #[test]
    fn both_parts_of_a_record_arrive() {
        let mut record = HugeFaultRecord::new().unwrap();
        record.huge.record(std::time::Duration::from_micros(3));
        record.ordinary.record(std::time::Duration::from_micros(5));
        record.ordinary.record(std::time::Duration::from_micros(7));
        let mut read = HugeFaultRecord::new().unwrap();
        read.merge_bytes(&record.to_bytes());
        assert_eq!((read.huge.count(), read.ordinary.count()), (1, 2));
    }
}
