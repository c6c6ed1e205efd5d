//! Time that the host of a virtual machine gave to others: the reason for a lost tick where nothing in the machine held
//! the thread up. It refuses to say that it *was* the reason: only how much was taken about then.

use perflab_model::Nanos;

use crate::Root;

/// What `/proc/stat` counts in (USER_HZ, 100 on every architecture that Linux runs virtual machines on).
const TICK: u64 = 10_000_000;

/// An account of a longer time says little about a moment in it.
const WINDOW: Nanos = Nanos(1_000_000_000);

/// The account since it was asked last.
#[derive(Debug)]
pub(super) struct StealTimeWindow {
    at: Nanos,
    /// `steal` of all CPUs; nothing where the kernel does not tell.
    ticks: Option<u64>,
}

impl StealTimeWindow {
    pub(super) fn new(root: &Root, now: Nanos) -> Self {
        StealTimeWindow { at: now, ticks: read_steal_ticks(root) }
    }

    /// Whether it is of more than a second.
    pub(super) fn is_old(&self, now: Nanos) -> bool {
        now.since(self.at) > WINDOW
    }

    /// Begins a new account at `now`; says what was taken in the old one, where anything was.
    pub(super) fn restart(&mut self, root: &Root, now: Nanos) -> Option<String> {
        let before = std::mem::replace(self, StealTimeWindow::new(root, now));
        let taken = self.ticks?.checked_sub(before.ticks?).filter(|ticks| *ticks > 0)?;
        let (taken, within) = (Nanos(taken.saturating_mul(TICK)), now.since(before.at));
        Some(format!(
            "its host took {:.2} s of its CPUs in the last {:.2} s",
            taken.seconds(),
            within.seconds()
        ))
    }
}

/// The eighth number of the line of all CPUs (proc_stat(5)).
fn read_steal_ticks(root: &Root) -> Option<u64> {
    let stat = root.read("/proc/stat").ok()?;
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    line.split_ascii_whitespace().nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_said_once_and_nothing_where_nothing_was() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root(directory.path().into());
        let stat = |text: &str| {
            std::fs::create_dir_all(root.path("/proc")).unwrap();
            std::fs::write(root.path("/proc/stat"), text).unwrap();
        };
        let mut stolen = StealTimeWindow::new(&root, Nanos(0));
        stat("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n");
        assert_eq!(stolen.restart(&root, Nanos(1)), None, "it was not known before");
        stat("cpu  1 2 3 4 5 6 7 11 9 10\n");
        let said = stolen.restart(&root, Nanos(500_000_001));
        assert_eq!(said.as_deref(), Some("its host took 0.03 s of its CPUs in the last 0.50 s"));
        assert_eq!(stolen.restart(&root, Nanos(600_000_000)), None);
    }
}
