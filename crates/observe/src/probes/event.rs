//! The kernel's uprobe events, and what a refusal means.
#![expect(unsafe_code, reason = "there is no safe perf_event_open")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use perf_event_open_sys::{bindings as sys, ioctls};

use super::uprobe_events::DefinedProbe;
use super::{ProbeError, ProbeSite};
use crate::Root;
use crate::profile::event;

const DEVICE: &str = "/sys/bus/event_source/devices/uprobe";
/// What every record begins or ends with: the event it is of, the thread, the time.
const SAMPLE_FIELDS: u32 = sys::PERF_SAMPLE_IDENTIFIER | sys::PERF_SAMPLE_TID | sys::PERF_SAMPLE_TIME;

/// The stack pointer, and where Go has the goroutine: the registers that a record of a place ends with, in this order.
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 7 | 1 << 22;
#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = 1 << 31 | 1 << 28;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const REGISTERS: u64 = 1;

/// How this kernel wants its uprobes: bits of `config`, as sysfs says them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UprobeSupport {
    kind: u32,
    semaphore_shift: Option<u32>,
}

impl UprobeSupport {
    pub(super) fn find(root: &Root) -> Result<UprobeSupport, ProbeError> {
        let read = |name: &str| root.read(&format!("{DEVICE}/{name}")).ok();
        let kind = read("type").and_then(|text| text.trim().parse().ok()).ok_or(ProbeError::NoUprobes)?;
        let bit = |name: &str| {
            let text = read(&format!("format/{name}"))?;
            let bits = text.trim().strip_prefix("config:")?.to_owned();
            bits.split('-').next()?.parse::<u32>().ok()
        };
        Ok(UprobeSupport { kind, semaphore_shift: bit("ref_ctr_offset") })
    }

    /// Opens an event on a place of a file, for whoever comes there on a CPU, switched off.
    pub(super) fn open_uprobe(self, path: &Path, site: ProbeSite, cpu: u32) -> Result<OwnedFd, ProbeError> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|error| probe_refused_error(path, site.offset, error.into()))?;
        let mut attr = probe_event_attributes(self.kind);
        // Never the bit `retprobe`: the kernel would put its own return address on the program's stack, where Go, and
        // whoever throws through it, finds it.
        set_sample_fields(&mut attr);
        if let (Some(semaphore), Some(shift)) = (site.semaphore, self.semaphore_shift) {
            attr.config |= semaphore << shift;
        }
        attr.__bindgen_anon_3.uprobe_path = name.as_ptr() as u64;
        attr.__bindgen_anon_4.probe_offset = site.offset;
        event::open_perf_event(&attr, -1, cpu).map_err(|error| probe_refused_error(path, site.offset, error))
    }
}

/// Opens an event on a probe of the kernel's own list, for whoever comes there on a CPU and meets the condition.
pub(super) fn open_defined_probe(defined: &DefinedProbe, condition: &str, cpu: u32) -> io::Result<OwnedFd> {
    let mut attr = probe_event_attributes(sys::PERF_TYPE_TRACEPOINT);
    attr.config = defined.id;
    set_sample_fields(&mut attr);
    let fd = event::open_perf_event(&attr, -1, cpu)?;
    let condition = CString::new(condition)?;
    // SAFETY: the descriptor is an open perf event, and the text ends with a zero and lives until the call is over.
    let done = unsafe { ioctls::SET_FILTER(fd.as_raw_fd(), condition.as_ptr().cast_mut()) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(fd) }
}

/// What a record of a place holds besides what all hold.
fn set_sample_fields(attr: &mut sys::perf_event_attr) {
    attr.sample_type |= u64::from(sys::PERF_SAMPLE_REGS_USER);
    attr.sample_regs_user = REGISTERS;
    attr.__bindgen_anon_1.sample_period = 1;
}

/// Page faults, context switches and execs of the same thread.
pub(super) fn open_thread_events(task: i32, cpu: u32) -> io::Result<OwnedFd> {
    let mut attr = probe_event_attributes(sys::PERF_TYPE_SOFTWARE);
    attr.config = u64::from(sys::PERF_COUNT_SW_PAGE_FAULTS);
    attr.__bindgen_anon_1.sample_period = 1;
    attr.set_context_switch(1);
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr.set_inherit(1);
    event::open_perf_event(&attr, task, cpu)
}

fn probe_event_attributes(kind: u32) -> sys::perf_event_attr {
    let mut attr = sys::perf_event_attr {
        type_: kind,
        size: size_of::<sys::perf_event_attr>() as u32,
        sample_type: u64::from(SAMPLE_FIELDS),
        ..Default::default()
    };
    attr.set_disabled(1);
    attr.set_sample_id_all(1);
    attr.set_use_clockid(1);
    attr.clockid = libc::CLOCK_MONOTONIC;
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = 64 * 1024;
    attr
}

/// The number that records of an event carry.
pub(super) fn read_event_id(fd: &OwnedFd) -> io::Result<u64> {
    let mut number = 0;
    // SAFETY: the descriptor is an open perf event, and the number lives until the call is over.
    let done = unsafe { ioctls::ID(fd.as_raw_fd(), &raw mut number) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(number) }
}

/// How often an event came, whether or not it was told of.
pub(super) fn read_event_count(fd: &OwnedFd) -> io::Result<u64> {
    let mut count = [0; 8];
    match rustix::io::read(fd, &mut count)? {
        8 => Ok(u64::from_ne_bytes(count)),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

pub(super) fn probe_refused_error(path: &Path, offset: u64, source: io::Error) -> ProbeError {
    let advice = match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "uprobes need root, or CAP_PERFMON (kernel.perf_event_paranoid does not open them to others); in a container \
             its seccomp filter may forbid perf_event_open too"
        }
        Some(libc::EINVAL) => {
            "the place is no beginning of an instruction, or the file's system cannot be probed"
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "raise the number of open files (`ulimit -n`): each place needs one a CPU"
        }
        _ => "the kernel's log may say more",
    };
    ProbeError::Refused { place: format!("{}+{offset:#x}", path.display()), source, advice: advice.into() }
}
