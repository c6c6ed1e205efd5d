//! What a trace would bring, for `perflab io coverage`.

use std::collections::HashMap;
use std::path::Path;

use perflab_model::io::{Device, PAGE, Runs, SECTOR};
use perflab_observe::io::Mounts;
use perflab_prefetch::{Policy, PrefetchError, Store, combine, file, store};

/// Pages and sectors of a trace: of a file, or of a program in the usual store.
pub fn known(trace: &Path) -> anyhow::Result<perflab_analyze::io::Known> {
    let found = match file::read(trace) {
        Ok(known) => known,
        Err(error) => {
            let store = Store::locate(None);
            let program = store.named(trace.as_os_str());
            // A file that is no trace is named as such, unless it is a program.
            match store.get(&program) {
                Err(PrefetchError::Unknown { .. }) if store::program(trace.as_os_str()).is_err() => {
                    return Err(error.into());
                }
                known => known?,
            }
        }
    };
    let start = combine(&found, Policy::Last);
    let mut known = perflab_analyze::io::Known::default();
    let Some(start) = start else { return Ok(known) };
    // Devices may have other numbers by now: they are those of where the file systems are mounted.
    let mounts = Mounts::read();
    let now = |place: &str| Some(mounts.under(Path::new(place))?.device);
    let devices: HashMap<usize, Device> = start
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
        let (disk, first) = perflab_observe::io::mounts::partition(device)
            .map_or((device, 0), |partition| (partition.disk, partition.start / SECTOR));
        let sectors = |(page, count)| (first + page * (PAGE / SECTOR), count * (PAGE / SECTOR));
        let sectors: Runs = system.metadata.iter().map(sectors).collect();
        let all = known.sectors.entry(disk).or_default();
        *all = all.union(&sectors);
    }
    Ok(known)
}
