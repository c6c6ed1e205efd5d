//! What work took: CPU time of the whole process, which a busy machine leaves alone, wall time, and memory.

use std::fmt;
use std::time::{Duration, Instant};

/// CPU and wall time, and the peak of memory where it was asked for.
#[derive(Clone, Copy, Default)]
pub(crate) struct SpentResources {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
    pub(crate) peak_kib: u64,
}

impl SpentResources {
    /// The least times of both, and the greater memory.
    pub(crate) fn least_of_both(self, other: Self) -> Self {
        SpentResources {
            cpu: self.cpu.min(other.cpu),
            wall: self.wall.min(other.wall),
            peak_kib: self.peak_kib.max(other.peak_kib),
        }
    }
}

impl fmt::Display for SpentResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        write!(f, "{:.1} ms of CPU, {:.1} ms wall", ms(self.cpu), ms(self.wall))?;
        if self.peak_kib > 0 { write!(f, ", {:.0} MiB", self.peak_kib as f64 / 1024.0) } else { Ok(()) }
    }
}

/// CPU time of this process, all threads.
pub(crate) fn process_cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// The most memory that this process ever had, in KiB.
pub(crate) fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// How busy the machine is, as /proc/loadavg says.
pub(crate) fn read_load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// The least times of some rounds, and what the work says of its result.
pub(crate) fn least_spent_of(rounds: usize, mut work: impl FnMut() -> usize) -> (SpentResources, usize) {
    let mut once = || {
        let (wall, busy) = (Instant::now(), process_cpu_time());
        let size = work();
        (SpentResources { cpu: process_cpu_time() - busy, wall: wall.elapsed(), peak_kib: 0 }, size)
    };
    let first = once();
    (1..rounds).map(|_| once()).fold(first, |best, (spent, size)| (best.0.least_of_both(spent), size))
}
