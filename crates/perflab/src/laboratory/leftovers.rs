//! What killed perflabs left behind on this machine and in the archive.

use std::path::PathBuf;

use perflab_disk::remove_dead_emulated_disks;
use perflab_observe::own_directories;
use perflab_settings::{RecoveredRun, list_killed_runs, recover_killed_runs};

use crate::app::App;

/// What killed runs left behind, put back: what their journals tell, then disks of which no journal tells any more.
pub fn put_back_leftovers(context: &App) -> Vec<RecoveredRun> {
    let boot = perflab_observe::read_boot_id(&context.root);
    let places = own_directories::state_directories();
    let reported = places.iter().flat_map(|place| recover_killed_runs(place, &boot));
    reported.chain(remove_dead_emulated_disks()).collect()
}

/// What killed runs left behind, by their journals; nothing is put back.
pub fn list_leftovers(context: &App) -> Vec<(String, Vec<String>)> {
    let boot = perflab_observe::read_boot_id(&context.root);
    let places = own_directories::state_directories();
    places.iter().flat_map(|place| list_killed_runs(place, &boot)).collect()
}

/// What killed imports left in the archive, removed.
pub fn remove_unfinished_imports(context: &App) -> Vec<PathBuf> {
    context.archive().map(|archive| archive.remove_abandoned_runs()).unwrap_or_default()
}
