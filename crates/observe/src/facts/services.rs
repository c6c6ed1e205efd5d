//! Family `services`: what runs beside the workload by the system's own will, and the profile of tuned.
//!
//! Services are those groups of systemd that hold a process, so neither systemctl nor D-Bus is asked.

use perflab_model::fact_table;

use crate::facts::collector::FactCollector;

/// There where systemd is the manager (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";

/// The folder of the system's services: version 2 of control groups, the hybrid of both, version 1.
const SLICES: &[&str] = &[
    "/sys/fs/cgroup/system.slice",
    "/sys/fs/cgroup/unified/system.slice",
    "/sys/fs/cgroup/systemd/system.slice",
];

/// Slices lie in one another no deeper than this.
const DEEPEST: usize = 4;

/// More services than any machine runs.
const MOST: usize = 1024;

const TUNED: &str = "/etc/tuned";

pub(crate) fn collect_services_facts(notes: &mut FactCollector<'_>) {
    collect_manager(notes);
    notes.add_text(fact_table::TUNED_PROFILE, &format!("{TUNED}/active_profile"));
    notes.add_text(fact_table::TUNED_MODE, &format!("{TUNED}/profile_mode"));
}

fn collect_manager(notes: &mut FactCollector<'_>) {
    if !notes.root.path(SYSTEMD).is_dir() {
        // Another one says nowhere what it runs.
        notes.add_text(fact_table::SERVICES_MANAGER, "/proc/1/comm");
        return;
    }
    notes.add(fact_table::SERVICES_MANAGER, "systemd", SYSTEMD);
    let Some(slice) = SLICES.iter().find(|path| !notes.root.list(path).is_empty()) else { return };
    let mut services = Vec::new();
    list_running_services(notes, slice, DEEPEST, &mut services);
    services.sort();
    for (name, directory) in services {
        notes.add(fact_table::SERVICE.key(name), "running", &directory);
    }
}

/// The services in a slice and the slices below it that hold a process, without `.service`.
fn list_running_services(
    notes: &FactCollector<'_>,
    slice: &str,
    deeper: usize,
    found: &mut Vec<(String, String)>,
) {
    for unit in notes.root.list(slice) {
        let directory = format!("{slice}/{unit}");
        if let Some(name) = unit.strip_suffix(".service") {
            if found.len() < MOST && has_process(notes, &directory) {
                found.push((name.to_owned(), directory));
            }
        } else if unit.ends_with(".slice") && deeper > 0 {
            list_running_services(notes, &directory, deeper - 1, found);
        }
    }
}

/// Whether a group or one below it holds a process; version 1 does not say so of those below.
fn has_process(notes: &FactCollector<'_>, group: &str) -> bool {
    match notes.read(&format!("{group}/cgroup.events")) {
        Some(events) => events.lines().any(|line| line == "populated 1"),
        None => notes.read(&format!("{group}/cgroup.procs")).is_some(),
    }
}
