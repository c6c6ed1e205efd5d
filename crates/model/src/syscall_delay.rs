//! A delay in a system call of a workload, and the metrics that say what became of it.

use serde::{Deserialize, Serialize};

use crate::metric::{Direction, Metric, Unit};
use crate::quantity::Nanos;

/// A delay in each execution of a system call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyscallDelay {
    /// The system call's name: `fsync`.
    pub call: String,
    /// How much later the kernel begins with it.
    pub delay: Nanos,
}

/// The longest delay: who waits longer, waits for something else.
const LONGEST: Nanos = Nanos(10_000_000_000);

impl SyscallDelay {
    /// The delay that a level means; 0 needs no unit.
    #[must_use]
    pub fn parse_delay(text: &str) -> Option<Nanos> {
        let delay = if text.trim() == "0" { Some(Nanos(0)) } else { Nanos::parse(text).ok() };
        delay.filter(|delay| *delay <= LONGEST)
    }

    /// What a level of a factor of kind `syscall` means.
    #[must_use]
    pub fn of_level(call: &str, value: &str) -> Option<Self> {
        let delay = SyscallDelay::parse_delay(value)?;
        Some(SyscallDelay { call: call.to_owned(), delay })
    }

    /// The metric that says how often an iteration called it: it explains, and decides nothing.
    #[must_use]
    pub fn count_metric(call: &str) -> Metric {
        explanatory_metric(format!("{call}-calls"), Unit::new("calls"))
    }

    /// The metric that says by how much all of these calls of an iteration were delayed, as measured.
    #[must_use]
    pub fn added_metric(call: &str) -> Metric {
        explanatory_metric(format!("{call}-delay"), Unit::new("s"))
    }
}

fn explanatory_metric(name: String, unit: Unit) -> Metric {
    Metric { name, unit, direction: Direction::Lower, primary: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_a_time() {
        let delay = |value| SyscallDelay::of_level("fsync", value).map(|found| found.delay);
        assert_eq!(delay("0"), Some(Nanos(0)));
        assert_eq!(delay("20us"), Some(Nanos(20_000)));
        assert_eq!((delay("20"), delay("11s")), (None, None));
    }
}
