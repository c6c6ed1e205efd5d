//! The ladder of events, best first, and what a refusal means.
#![expect(unsafe_code, reason = "there is no safe perf_event_open, and its buffer is a mapping")]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use perf_event_open_sys::bindings as sys;

use super::{ProfileError, SamplingScope};
use crate::Root;

/// An event that could be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplingEvent {
    /// `cycles:P`, `cycles`, `cpu-clock`.
    pub name: &'static str,
    /// The unit of its periods.
    pub unit: &'static str,
    kind: u32,
    config: u64,
    precise: u64,
}

const CYCLES: u64 = sys::PERF_COUNT_HW_CPU_CYCLES as u64;
const CLOCK: u64 = sys::PERF_COUNT_SW_CPU_CLOCK as u64;

/// Best first: the counter of cycles, as precise as the machine can; without it the clock.
const CANDIDATE_EVENTS: [SamplingEvent; 4] = [
    SamplingEvent {
        name: "cycles:P",
        unit: "cycles",
        kind: sys::PERF_TYPE_HARDWARE,
        config: CYCLES,
        precise: 2,
    },
    SamplingEvent {
        name: "cycles:p",
        unit: "cycles",
        kind: sys::PERF_TYPE_HARDWARE,
        config: CYCLES,
        precise: 1,
    },
    SamplingEvent {
        name: "cycles",
        unit: "cycles",
        kind: sys::PERF_TYPE_HARDWARE,
        config: CYCLES,
        precise: 0,
    },
    SamplingEvent { name: "cpu-clock", unit: "ns", kind: sys::PERF_TYPE_SOFTWARE, config: CLOCK, precise: 0 },
];

impl SamplingEvent {
    /// What it cannot see.
    pub fn blind_spot(&self) -> Option<String> {
        perflab_stacks::events::hidden_from_event(self.name, false)
    }

    /// The attributes of an event at `frequency` Hz. Kernel and user stacks, and what tells processes apart.
    pub(super) fn perf_attributes(&self, frequency: u64, inherit: bool) -> sys::perf_event_attr {
        let mut attr = sys::perf_event_attr {
            type_: self.kind,
            size: size_of::<sys::perf_event_attr>() as u32,
            config: self.config,
            ..Default::default()
        };
        attr.__bindgen_anon_1.sample_freq = frequency;
        attr.sample_type = u64::from(
            sys::PERF_SAMPLE_IP
                | sys::PERF_SAMPLE_TID
                | sys::PERF_SAMPLE_TIME
                | sys::PERF_SAMPLE_CPU
                | sys::PERF_SAMPLE_PERIOD
                | sys::PERF_SAMPLE_CALLCHAIN,
        );
        attr.set_freq(1);
        attr.set_disabled(1);
        attr.set_inherit(u64::from(inherit));
        attr.set_precise_ip(self.precise);
        attr.set_mmap(1);
        attr.set_mmap2(1);
        attr.set_comm(1);
        attr.set_comm_exec(1);
        attr.set_task(1);
        attr.set_sample_id_all(1);
        // The clock of everything else in a run.
        attr.set_use_clockid(1);
        attr.clockid = libc::CLOCK_MONOTONIC;
        attr.set_watermark(1);
        attr
    }
}

/// Opens an event for a task (-1: all) on a CPU.
pub(crate) fn open_perf_event(attr: &sys::perf_event_attr, task: i32, cpu: u32) -> io::Result<OwnedFd> {
    let mut attr = *attr;
    let cpu = i32::try_from(cpu).map_err(io::Error::other)?;
    let flags = u64::from(sys::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: the attributes are a valid structure of the size that they say, and live until the call is over.
    let fd = unsafe { perf_event_open_sys::perf_event_open(&mut attr, task, cpu, -1, flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call gave a fresh descriptor, which nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The best event that can be opened; tried on this thread or the system, and closed at once.
pub(super) fn choose_sampling_event(
    root: &Root,
    scope: SamplingScope,
    frequency: u64,
) -> Result<SamplingEvent, ProfileError> {
    let task = if scope == SamplingScope::System { -1 } else { 0 };
    let mut tried = Vec::new();
    for one in CANDIDATE_EVENTS {
        match open_perf_event(&one.perf_attributes(frequency, false), task, find_first_cpu(root)) {
            Ok(_) => return Ok(one),
            Err(error) if is_permission_refusal(&error) => {
                return Err(profile_refused_error(root, scope, error));
            }
            Err(error)
                if error.raw_os_error() == Some(libc::EINVAL) && one.config == CLOCK && one.unit == "ns" =>
            {
                tried.push(format!("{}: {error}; {}", one.name, frequency_limit_hint(root, frequency)));
            }
            Err(error) => tried.push(format!("{}: {error}", one.name)),
        }
    }
    Err(ProfileError::NoEvent { tried: tried.join("; ") })
}

fn find_first_cpu(root: &Root) -> u32 {
    online_cpus(root).first().copied().unwrap_or(0)
}

/// The CPUs that are online.
pub(crate) fn online_cpus(root: &Root) -> Vec<u32> {
    let text = root.read("/sys/devices/system/cpu/online").unwrap_or_else(|_| "0".into());
    text.split(',').filter_map(parse_cpu_range).flatten().collect()
}

fn parse_cpu_range(text: &str) -> Option<std::ops::RangeInclusive<u32>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
}

fn is_permission_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM | libc::ENOSYS))
}

fn frequency_limit_hint(root: &Root, frequency: u64) -> String {
    let most = root.read("/proc/sys/kernel/perf_event_max_sample_rate").unwrap_or_default();
    format!("{frequency} Hz may be too often: kernel.perf_event_max_sample_rate is {most}")
}

/// What to change: the setting if it forbids this, else whatever stands between us and the kernel.
fn profile_refused_error(root: &Root, scope: SamplingScope, source: io::Error) -> ProfileError {
    let (what, allowed) = match scope {
        SamplingScope::System => ("the whole system, kernel included", 0),
        _ => ("a process with its time in the kernel", 1),
    };
    let level =
        root.read("/proc/sys/kernel/perf_event_paranoid").ok().and_then(|text| text.parse::<i32>().ok());
    let advice = match level {
        None => "/proc/sys/kernel/perf_event_paranoid is not there: the kernel has no perf events".into(),
        Some(level) if level > allowed => format!(
            "kernel.perf_event_paranoid is {level} and may be {allowed} at most: `sysctl \
             kernel.perf_event_paranoid={}`, or run as root or with CAP_PERFMON",
            allowed - 1
        ),
        Some(level) => format!(
            "kernel.perf_event_paranoid is {level} and allows it, so something else forbids it: in a container \
             mostly its seccomp filter; give it CAP_PERFMON, or record on the host with `perf record -a -g` and \
             `perflab flame import perf.data`"
        ),
    };
    ProfileError::Refused { what, source, advice }
}

/// Whether a profile with the kernel's part and its names can be taken, and by which event.
///
/// # Errors
/// [`ProfileError`] with the setting to change.
pub fn check_stack_sampling(
    root: &Root,
    scope: SamplingScope,
    frequency: u64,
) -> Result<SamplingEvent, ProfileError> {
    let chosen = choose_sampling_event(root, scope, frequency)?;
    super::recorder::read_kernel_symbols(root)?;
    Ok(chosen)
}
