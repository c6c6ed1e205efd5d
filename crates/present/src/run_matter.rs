//! Pages of one matter: what a report says of one thing alone, by the same sections.

use crate::section::Section;
use crate::{fairness, flame, io, kernels, operations, run_viewer, slab, startup};

/// One matter of a run.
#[derive(Debug)]
pub struct RunMatter {
    /// Its name in addresses.
    pub name: &'static str,
    /// What it is called.
    pub title: &'static str,
    /// The sections of a report that are about it.
    pub(crate) sections: &'static [&'static Section],
    /// What a page says where a run has nothing of it: which command records it.
    pub(crate) recorded_by: &'static str,
}

/// Every matter, in the order of links.
pub const RUN_MATTERS: &[RunMatter] = &[
    RunMatter {
        name: "slab",
        title: "Slab memory",
        sections: &[&slab::section::SECTION],
        recorded_by: "This run did not watch the slab caches: `sudo perflab run STUDY --monitor slabinfo` does, as the study `slab-efficiency`.",
    },
    RunMatter {
        name: "operations",
        title: "Single operations",
        sections: &[&operations::section::SECTION],
        recorded_by: "This run has no traced operations: `perflab run slablist-insertion` has, and `perflab trace attach` records those of another program.",
    },
    RunMatter {
        name: "flame",
        title: "Flame graph",
        sections: &[&flame::section::SECTION],
        recorded_by: "This run has no call stacks: `perflab run STUDY --profile 999` samples them.",
    },
    RunMatter {
        name: "io",
        title: "Disk I/O",
        sections: &[&io::SECTION],
        recorded_by: "This run has no traced I/O: `sudo perflab io record -- COMMAND` records it.",
    },
    RunMatter {
        name: "guests",
        title: "Between targets",
        sections: &[&fairness::SECTION],
        recorded_by: "This run had fewer than two targets at work: `perflab run vm-fairness` has several guests, in step.",
    },
    RunMatter {
        name: "startups",
        title: "Startups",
        sections: &[&startup::SECTION],
        recorded_by: "This run started no application in several prefetch modes: `sudo perflab startup --prefetch none,staged -- COMMAND` does.",
    },
    RunMatter {
        name: "timelines",
        title: "Timelines",
        sections: &[&run_viewer::TIMELINES],
        recorded_by: "This run has no monitors: `perflab run STUDY --monitor vmstat` adds one.",
    },
    RunMatter {
        name: "kernels",
        title: "Kernels",
        sections: &[&kernels::SECTION],
        recorded_by: "This run says nothing of its kernel, as the tool that measured it did not: every `perflab run` does.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_matter_has_an_address_and_a_command() {
        let names: std::collections::BTreeSet<&str> = RUN_MATTERS.iter().map(|matter| matter.name).collect();
        assert_eq!(names.len(), RUN_MATTERS.len());
        for matter in RUN_MATTERS {
            assert!(
                !matter.sections.is_empty() && matter.recorded_by.contains("perflab "),
                "{}",
                matter.name
            );
            assert!(matter.name.bytes().all(|byte| byte.is_ascii_lowercase()) && matter.name != "notes");
        }
    }
}
