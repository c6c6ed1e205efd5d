//! The table of families, and the one call that collects them.

use perflab_model::Facts;

use crate::error::ObserveError;
use crate::facts::collector::FactCollector;
use crate::facts::{cgroup, cpu, disk, firmware, kernel, memory, services};
use crate::root::Root;

/// One family of facts that a study may ask for.
#[derive(Debug, Clone, Copy)]
pub struct FactFamily {
    /// What studies call it; most of its keys begin so: `cpu`.
    pub name: &'static str,
    /// One line for people: what it holds.
    pub about: &'static str,
    pub(crate) collect: fn(&mut FactCollector<'_>),
}

const FAMILIES: &[FactFamily] = &[
    FactFamily {
        name: "cpu",
        about: "model, topology, caches, flags, frequency governor, boost, SMT, idle states",
        collect: cpu::collect_cpu_facts,
    },
    FactFamily {
        name: "numa",
        about: "nodes, with memory, CPUs and distances of each",
        collect: memory::collect_numa_facts,
    },
    FactFamily {
        name: "memory",
        about: "total and available memory, page size, swap, huge pages",
        collect: memory::collect_memory_facts,
    },
    FactFamily {
        name: "kernel",
        about: "release, command line, taint, configuration",
        collect: kernel::collect_kernel_facts,
    },
    FactFamily {
        name: "mitigations",
        about: "what the kernel does about each CPU vulnerability",
        collect: cpu::collect_mitigation_facts,
    },
    FactFamily { name: "thp", about: "transparent huge pages", collect: memory::collect_thp_facts },
    FactFamily {
        name: "reclaim",
        about: "what takes pages out of memory though nobody is short of it: DAMON",
        collect: memory::collect_reclaim_facts,
    },
    FactFamily {
        name: "sysctl",
        about: "knobs that move benchmarks: memory, scheduler, network",
        collect: kernel::collect_sysctl_facts,
    },
    FactFamily {
        name: "disk",
        about: "block devices with their queues; mounted file systems with their options",
        collect: disk::collect_disk_facts,
    },
    FactFamily {
        name: "hypervisor",
        about: "whether this is a virtual machine, and of whom",
        collect: cpu::collect_hypervisor_facts,
    },
    FactFamily {
        name: "cgroup",
        about: "version, our group, its controllers, and what is set from the root down to it",
        collect: cgroup::collect_cgroup_facts,
    },
    FactFamily {
        name: "firmware",
        about: "vendor, version and date of the firmware",
        collect: firmware::collect_firmware_facts,
    },
    FactFamily {
        name: "services",
        about: "what systemd runs, and the profile of tuned",
        collect: services::collect_services_facts,
    },
    FactFamily {
        name: "distribution",
        about: "the Linux distribution and its version, and which machine has it installed",
        collect: kernel::collect_distribution_facts,
    },
    FactFamily {
        name: "clocksource",
        about: "what the kernel tells the time by",
        collect: cpu::collect_clocksource_facts,
    },
    FactFamily {
        name: "load",
        about: "how busy the machine is: load, stolen time, uptime",
        collect: cpu::collect_load_facts,
    },
];

/// All families, in the order in which they are shown.
pub fn all_fact_families() -> &'static [FactFamily] {
    FAMILIES
}

/// Collects the facts of `families`, or of all.
///
/// # Errors
/// [`ObserveError::Unknown`] with the nearest name, where a family is none of ours.
pub fn collect_facts(root: &Root, families: Option<&[String]>) -> Result<Facts, ObserveError> {
    let mut notes = FactCollector::new(root);
    match families {
        None => FAMILIES.iter().for_each(|family| (family.collect)(&mut notes)),
        Some(names) => {
            for name in names {
                (find_fact_family(name)?.collect)(&mut notes);
            }
        }
    }
    Ok(notes.facts)
}

pub(crate) fn find_fact_family(name: &str) -> Result<&'static FactFamily, ObserveError> {
    let found = FAMILIES.iter().find(|family| family.name == name);
    let names = FAMILIES.iter().map(|family| family.name);
    found.ok_or_else(|| ObserveError::unknown_name(name, "family of facts", names))
}
