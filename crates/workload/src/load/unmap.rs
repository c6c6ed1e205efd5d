//! How long it takes to give memory back: mappings that were touched, unmapped, and files in the page cache, truncated.
//!
//! The loads are MMTests' `time_unmap` and `trunc`, from what they are described as (<https://github.com/gormanm/mmtests>).

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use perflab_formats::metric_extraction::median;
use serde_json::json;

use crate::load::args::{BuiltinLoadArgs, LoadError, invalid_value_error};
use crate::load::page_buffer::{PAGES, map_buffer, system_page_size};
use crate::system_calls::{MappingKind, PageMapping};

/// Bytes of a GiB.
const GIB: f64 = (1_u64 << 30) as f64;

pub(crate) fn measure_unmap(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    let size = options.size("size", 256 << 20)?.max(system_page_size());
    let rounds = options.count("rounds", 5, 1)?;
    let pages = options.choice("pages", PAGES)?;
    options.require_all_used()?;
    let (mut touching, mut unmapping) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let mut map = map_buffer(size, pages)?;
        let start = Instant::now();
        map.iter_mut().step_by(system_page_size()).for_each(|byte| *byte = 1);
        std::hint::black_box(&map);
        touching.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        drop(map);
        unmapping.push(start.elapsed().as_secs_f64());
    }
    let per_gib = |seconds: &[f64]| median(seconds).map(|median| median / (size as f64 / GIB));
    Ok(json!({
        "size": size,
        "rounds": rounds,
        "unmap_seconds_per_gib": per_gib(&unmapping),
        "touch_seconds_per_gib": per_gib(&touching),
    }))
}

pub(crate) fn measure_truncate(options: &mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError> {
    let size = options.size("size", 256 << 20)?.max(system_page_size());
    let rounds = options.count("rounds", 5, 1)?;
    let default = std::env::temp_dir().display().to_string();
    let directory: String = options.value("directory", default)?;
    options.require_all_used()?;
    if !Path::new(&directory).is_dir() {
        return Err(invalid_value_error("directory", &format!("{directory} is not a folder that exists")));
    }
    let file = tempfile::tempfile_in(&directory)
        .map_err(LoadError::system_error(format!("make a file in {directory}")))?;
    let (mut faulting, mut truncating) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (fault, truncate) = time_truncation(&file, size)
            .map_err(LoadError::system_error(format!("use a file in {directory}")))?;
        faulting.push(fault);
        truncating.push(truncate);
    }
    let per_gib = |seconds: &[f64]| median(seconds).map(|median| median / (size as f64 / GIB));
    Ok(json!({
        "size": size,
        "rounds": rounds,
        "truncate_seconds_per_gib": per_gib(&truncating),
        "fault_seconds_per_gib": per_gib(&faulting),
    }))
}

/// Seconds of faulting a sparse file into the page cache, and of throwing it away.
fn time_truncation(file: &File, size: usize) -> std::io::Result<(f64, f64)> {
    file.set_len(size as u64)?;
    let mapping = PageMapping::map_file(file, size, MappingKind::Shared)?;
    let start = Instant::now();
    (0..size).step_by(system_page_size()).for_each(|offset| {
        std::hint::black_box(mapping.read_byte(offset));
    });
    let fault = start.elapsed().as_secs_f64();
    drop(mapping);
    let start = Instant::now();
    file.set_len(0)?;
    Ok((fault, start.elapsed().as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn take(arguments: &[&str]) -> BuiltinLoadArgs {
        let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
        BuiltinLoadArgs::parse(&arguments).unwrap()
    }

    #[test]
    fn what_is_given_back_takes_time() {
        let unmapped = measure_unmap(&mut take(&["unmap", "--size", "1MiB", "--rounds", "2"])).unwrap();
        assert!(unmapped["unmap_seconds_per_gib"].as_f64().unwrap() > 0.0, "{unmapped}");
        let truncated =
            measure_truncate(&mut take(&["truncate", "--size", "1MiB", "--rounds", "2"])).unwrap();
        assert!(truncated["truncate_seconds_per_gib"].as_f64().unwrap() > 0.0, "{truncated}");
        let nowhere = measure_truncate(&mut take(&["truncate", "--directory", "/nowhere"])).unwrap_err();
        assert_eq!(nowhere.to_string(), "--directory: /nowhere is not a folder that exists");
    }
}
