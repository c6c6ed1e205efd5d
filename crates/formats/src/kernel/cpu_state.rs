//! What processors did and drew: cycles, idle states and throttling of each CPU, and the energy of each domain. Which source a
//! machine has for it is found where it is read.

use perflab_model::DeclaredColumn;

use crate::kernel::derived_column::DerivedColumn;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};

/// Cycles, idle states, frequency and throttling of each CPU.
pub const CPU_STATE: KernelFile = KernelFile {
    name: "cpu-state",
    source: "/sys/devices/system/cpu",
    about: "what each CPU did: busy share, frequency, cycles, residency in idle states, throttling",
    needs: "root for cycles",
    without: "",
    provided_by: "CONFIG_CPU_IDLE, CONFIG_CPU_FREQ, or CONFIG_PERF_EVENTS and a processor that counts",
    columns: &[],
    layout: KernelFileLayout::Tree,
};

/// Energy of packages, cores, memory: what the machine has.
pub const ENERGY: KernelFile = KernelFile {
    name: "energy",
    source: "/sys/class/powercap",
    about: "energy that packages, cores, memory and the like took, wraps counted",
    needs: "root",
    without: "",
    provided_by: "CONFIG_POWERCAP with CONFIG_INTEL_RAPL, or CONFIG_PERF_EVENTS_INTEL_RAPL, on a machine that counts energy",
    columns: ENERGY_COLUMNS,
    layout: KernelFileLayout::Tree,
};

/// A row a domain.
const ENERGY_COLUMNS: &[DeclaredColumn] =
    &[DeclaredColumn::key("domain"), DeclaredColumn::key("name"), DeclaredColumn::counter("energy", "uJ")];

/// The name of an idle state as part of a column's: `haltpoll idle` is `haltpoll_idle`.
pub fn idle_state_name(text: &str) -> String {
    text.trim().chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

/// A counter that starts again at 0 after `range`: what it counted since it was first read.
#[derive(Debug, Clone, Copy, Default)]
pub struct WrappingCounter {
    last: Option<u64>,
    total: u64,
}

impl WrappingCounter {
    /// Takes a reading, and returns the sum of all growth, from the first reading's value on. A counter that went back without
    /// a known range was reset: its growth since is what it says now.
    pub fn advance(&mut self, now: u64, range: Option<u64>) -> u64 {
        let grown = match self.last {
            None => now,
            Some(last) if now >= last => now - last,
            // It may have wrapped more than once between two readings; nobody can tell.
            Some(last) => range.map_or(now, |range| range.saturating_sub(last).saturating_add(now)),
        };
        self.last = Some(now);
        self.total = self.total.saturating_add(grown);
        self.total
    }
}

/// What is worked out of energy.
pub(crate) const DERIVED: &[DerivedColumn] = &[
    DerivedColumn::per_second("power", "W", "energy a second", &["energy"], 1e-6),
    DerivedColumn::per_operation(
        "energy_per_operation",
        "uJ",
        "energy an operation of the workload",
        &["energy"],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_wraps_goes_on() {
        let mut counter = WrappingCounter::default();
        let range = Some(1_000);
        assert_eq!([900, 990, 30, 30].map(|now| counter.advance(now, range)), [900, 990, 1_030, 1_030]);
        let mut reset = WrappingCounter::default();
        assert_eq!([900, 20].map(|now| reset.advance(now, None)), [900, 920]);
    }

    #[test]
    fn names_of_idle_states() {
        assert_eq!(idle_state_name("haltpoll idle\n"), "haltpoll_idle");
    }
}
