//! What one iteration's processes used of the machine: CPU time, memory, faults, switches, block I/O, as wait4(2) counts them.
//!
//! These are explanatory metrics of every workload, without a line in its definition. They count the process that was
//! started and all descendants that were waited for; a daemon that is left behind is not among them.

use crate::metric::{Direction, Metric, Unit};
use crate::quantity::{Bytes, Nanos};

/// What an execution used. Source: getrusage(2), `struct rusage` of wait4(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceUse {
    /// CPU time in user mode, of all its processes together.
    pub user: Nanos,
    /// CPU time in the kernel.
    pub system: Nanos,
    /// Resident memory of its largest process, at its highest; unknown where that is no more than who started it had, which
    /// the kernel counts as the first process's own before it becomes another program.
    pub max_rss: Option<Bytes>,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults that had to read.
    pub major_faults: u64,
    /// Times it gave the CPU up, to wait.
    pub voluntary_switches: u64,
    /// Times it was taken off the CPU.
    pub involuntary_switches: u64,
    /// Read from block devices for it: what the page cache held does not count.
    pub bytes_read: Bytes,
    /// Written to the page cache by it, for block devices.
    pub bytes_written: Bytes,
}

/// One of them as a metric.
#[derive(Debug)]
pub struct ResourceMetric {
    /// The metric's name.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// Its value, in that unit; absent where it is not known.
    pub value: fn(&ResourceUse) -> Option<f64>,
}

impl ResourceMetric {
    /// All of them: of each, less is better.
    pub const ALL: &[ResourceMetric] = &[
        ResourceMetric { name: "user", unit: "s", value: |used| Some(used.user.seconds()) },
        ResourceMetric { name: "system", unit: "s", value: |used| Some(used.system.seconds()) },
        ResourceMetric {
            name: "max-rss",
            unit: "bytes",
            value: |used| used.max_rss.map(|bytes| bytes.0 as f64),
        },
        ResourceMetric { name: "minor-faults", unit: "1", value: |used| Some(used.minor_faults as f64) },
        ResourceMetric { name: "major-faults", unit: "1", value: |used| Some(used.major_faults as f64) },
        ResourceMetric {
            name: "voluntary-switches",
            unit: "1",
            value: |used| Some(used.voluntary_switches as f64),
        },
        ResourceMetric {
            name: "involuntary-switches",
            unit: "1",
            value: |used| Some(used.involuntary_switches as f64),
        },
        ResourceMetric { name: "bytes-read", unit: "bytes", value: |used| Some(used.bytes_read.0 as f64) },
        ResourceMetric {
            name: "bytes-written",
            unit: "bytes",
            value: |used| Some(used.bytes_written.0 as f64),
        },
    ];

    /// Whether a metric of that name, of any run, is one of them.
    pub fn is_name(name: &str) -> bool {
        ResourceMetric::ALL.iter().any(|one| one.name == name)
    }

    /// As a workload declares its own.
    pub fn declare(&self) -> Metric {
        Metric {
            name: self.name.to_owned(),
            unit: Unit::new(self.unit),
            direction: Direction::Lower,
            primary: false,
        }
    }
}
