//! One perf event that counts on a CPU, and is read.

use std::fs::File;
use std::io::{self, Read as _};
#[cfg(test)]
use std::os::fd::AsRawFd as _;

use perf_event_open_sys::bindings as sys;
use perflab_formats::kernel::cpu_state::parse_event_config;

use crate::profiler::open_perf_event;
use crate::root::Root;

/// An event of a PMU, as sysfs names it: its type and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PmuEvent {
    kind: u32,
    config: u64,
}

impl PmuEvent {
    /// The event of that name; nothing where the machine lacks it.
    pub(crate) fn find(root: &Root, pmu: &str, event: &str) -> Option<Self> {
        let folder = format!("/sys/bus/event_source/devices/{pmu}");
        let kind = root.read(&format!("{folder}/type")).ok()?.trim().parse().ok()?;
        let config = parse_event_config(&root.read(&format!("{folder}/events/{event}")).ok()?)?;
        Some(PmuEvent { kind, config })
    }
}

/// A counter on one CPU, of all tasks. Closed when dropped.
#[derive(Debug)]
pub(crate) struct PerfCounter(File);

impl PerfCounter {
    /// Begins to count.
    ///
    /// # Errors
    /// The processor or hypervisor lacks the event, or one may not count on a CPU (`kernel.perf_event_paranoid`).
    pub(crate) fn open(event: PmuEvent, cpu: u32) -> io::Result<Self> {
        let attr = sys::perf_event_attr {
            type_: event.kind,
            size: size_of::<sys::perf_event_attr>() as u32,
            config: event.config,
            ..Default::default()
        };
        Ok(PerfCounter(open_perf_event(&attr, -1, cpu)?.into()))
    }

    /// What it counted since it was opened; nothing of a CPU that went offline.
    pub(crate) fn read(&self) -> Option<u64> {
        let mut number = [0; 8];
        (&self.0).read_exact(&mut number).ok()?;
        Some(u64::from_ne_bytes(number))
    }

    /// Its descriptor's number, for tests of leaks.
    #[cfg(test)]
    fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_of_this_machine_grows_and_is_closed() {
        let Some(event) = PmuEvent::find(&Root::host(), "msr", "tsc") else {
            return eprintln!("SKIP a_counter_of_this_machine_grows_and_is_closed: no PMU msr");
        };
        let counter = match PerfCounter::open(event, 0) {
            Ok(counter) => counter,
            Err(error) => return eprintln!("SKIP a_counter_of_this_machine_grows_and_is_closed: {error}"),
        };
        let first = counter.read();
        assert!(first < counter.read(), "{first:?}");
        let path = format!("/proc/self/fd/{}", counter.descriptor());
        let target = std::fs::read_link(&path);
        drop(counter);
        // Another test may have got the number meanwhile, but not of a counter.
        assert!(std::fs::read_link(&path).ok() != target.ok() || std::fs::read_link(&path).is_err());
    }
}
