//! First touches of fresh memory, over and over: what a page fault costs, and how many fewer there are with huge
//! pages.

use std::time::{Duration, Instant};

use perflab_formats::kernel::process::ProcessStat;
use serde_json::json;

use crate::load::args::{BuiltinLoadArgs, LoadError};
use crate::load::page_buffer::{self, PAGES};

pub(crate) fn measure_page_faults(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    let size = options.size("size", 64 << 20)?.max(page_buffer::system_page_size());
    let rounds = options.count("rounds", 8, 1)?;
    let pages = options.choice("pages", PAGES)?;
    options.require_all_used()?;
    let before = read_minor_faults();
    let mut spent = Duration::ZERO;
    for _ in 0..rounds {
        let mut map = page_buffer::map_buffer(size, pages)?;
        let start = Instant::now();
        for byte in map.iter_mut().step_by(page_buffer::system_page_size()) {
            *byte = 1;
        }
        spent += start.elapsed();
        std::hint::black_box(&map);
    }
    let seconds = spent.as_secs_f64();
    let touched = (size / page_buffer::system_page_size() * rounds) as f64;
    let mut result = json!({ "pages_per_second": touched / seconds, "page_ns": seconds * 1e9 / touched, "pages": touched });
    if let (Some(before), Some(after), Some(object)) = (before, read_minor_faults(), result.as_object_mut()) {
        object.insert("faults".into(), json!(after.saturating_sub(before)));
        object.insert("faults_per_second".into(), json!(after.saturating_sub(before) as f64 / seconds));
    }
    Ok(result)
}

/// Minor faults of this process so far.
fn read_minor_faults() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    Some(ProcessStat::parse(&stat)?.faults.0)
}
