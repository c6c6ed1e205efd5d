//! What a trace would bring, for `perflab io coverage`.

use std::collections::HashMap;
use std::path::Path;

use perflab_model::PageSet;
use perflab_model::io_trace::{DeviceNumber, PAGE, SECTOR};
use perflab_observe::io::MountTable;
use perflab_prefetch::{CombinePolicy, PrefetchError, TraceStore, combine_traces, trace_store};

/// Pages and sectors of a trace: of a file, or of a program in the usual store.
pub fn read_known_pages(trace: &Path) -> anyhow::Result<perflab_analyze::TraceContents> {
    let found = match trace_store::read_trace_file(trace) {
        Ok(known) => known,
        Err(error) => {
            let store = TraceStore::locate(None);
            let program = store.resolve_name(trace.as_os_str());
            // A file that is no trace is named as such, unless it is a program.
            match store.read_trace(&program) {
                Err(PrefetchError::Unknown { .. })
                    if trace_store::find_program_path(trace.as_os_str()).is_err() =>
                {
                    return Err(error.into());
                }
                known => known?,
            }
        }
    };
    let start = combine_traces(&found, CombinePolicy::Last);
    let mut known = perflab_analyze::TraceContents::default();
    let Some(start) = start else { return Ok(known) };
    // Devices may have other numbers by now: they are those of where the file systems are mounted.
    let mounts = MountTable::read();
    let now = |place: &str| Some(mounts.find_by_path(Path::new(place))?.device);
    let devices: HashMap<usize, DeviceNumber> = start
        .systems
        .iter()
        .enumerate()
        .map(|(at, system)| (at, now(&system.place).unwrap_or(system.device)))
        .collect();
    for file in start.files {
        let device = devices.get(&file.system).copied().unwrap_or_default();
        known.files.insert((device, file.inode), file.pages);
    }
    for (at, system) in start.systems.iter().enumerate() {
        let device = devices.get(&at).copied().unwrap_or_default();
        let (disk, first) = perflab_observe::mounts::partition_of_device(device)
            .map_or((device, 0), |partition| (partition.disk, partition.start / SECTOR));
        let sectors = |(page, count)| (first + page * (PAGE / SECTOR), count * (PAGE / SECTOR));
        let sectors: PageSet = system.metadata.iter().map(sectors).collect();
        let all = known.sectors.entry(disk).or_default();
        *all = all.union(&sectors);
    }
    Ok(known)
}
