//! Idle states of the family `cpu`: what each costs to leave, what it asks for, and where it is disabled.
//!
//! Latency and residency are those of the first CPU that has a state of that name; which CPUs may not use it is looked at on
//! all of them.

use std::collections::BTreeMap;

use perflab_formats::kernel::small_values::{format_cpu_list, parse_cpu_list};
use perflab_model::fact_table;

use crate::facts::collector::FactCollector;

const CPUS: &str = "/sys/devices/system/cpu";

const NANOSECONDS: i64 = 1000;

/// A state as the CPUs have it.
struct IdleState {
    /// The folder of the first CPU that has it.
    directory: String,
    /// The CPUs on which it is disabled.
    disabled: Vec<u32>,
}

pub(crate) fn collect_idle_states(notes: &mut FactCollector<'_>) {
    notes.add_file(fact_table::CPU_IDLE_DRIVER, &format!("{CPUS}/cpuidle/current_driver"));
    let governor = ["current_governor", "current_governor_ro"].map(|file| format!("{CPUS}/cpuidle/{file}"));
    if let Some(path) = governor.iter().find(|path| notes.read(path).is_some()) {
        notes.add_file(fact_table::CPU_IDLE_GOVERNOR, path);
    }
    for (name, state) in list_idle_states(notes) {
        let file = |what| format!("{}/{what}", state.directory);
        notes.add_scaled(fact_table::CPU_IDLE_LATENCY.key(&name), &file("latency"), NANOSECONDS);
        notes.add_scaled(fact_table::CPU_IDLE_RESIDENCY.key(&name), &file("residency"), NANOSECONDS);
        if notes.read(&file("disable")).is_some() {
            let cpus =
                if state.disabled.is_empty() { "none".into() } else { format_cpu_list(&state.disabled) };
            let source = format!("{CPUS}/cpu*/cpuidle/*/disable");
            notes.add(fact_table::CPU_IDLE_DISABLED.key(&name), cpus.as_str(), &source);
        }
    }
}

/// The states of all CPUs that are online, by name.
fn list_idle_states(notes: &FactCollector<'_>) -> BTreeMap<String, IdleState> {
    let mut found: BTreeMap<String, IdleState> = BTreeMap::new();
    let online = notes.read(&format!("{CPUS}/online")).map(|list| parse_cpu_list(&list)).unwrap_or_default();
    for cpu in online {
        let states = format!("{CPUS}/cpu{cpu}/cpuidle");
        for state in notes.root.list(&states).iter().filter(|name| name.starts_with("state")) {
            let directory = format!("{states}/{state}");
            let Some(name) = notes.read(&format!("{directory}/name")) else { continue };
            let name = name.split_whitespace().collect::<Vec<_>>().join("_");
            let is_disabled = notes.read(&format!("{directory}/disable")).is_some_and(|text| text != "0");
            let known = found.entry(name).or_insert(IdleState { directory, disabled: Vec::new() });
            if is_disabled {
                known.disabled.push(cpu);
            }
        }
    }
    found
}
