//! What a probe costs each time a thread hits it, measured on perflab itself.
//!
//! Measured are tiny functions, which begin with what the kernel emulates (as USDT probes and most functions do),
//! or with what it has to step over. The cost is not the same at all times: a virtual machine's host has a part in
//! it. So it can be measured again and again. CPU time is counted, not wall time, and the functions lie in memory
//! of which nobody else has a copy: neither a busy machine nor the probes of another perflab is taken for a cost.

#![expect(
    unsafe_code,
    reason = "the places are functions of assembly, so that their first instruction is known, copied to a mapping"
)]

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::time::{ClockId, clock_gettime};

use super::{ProbeError, ProbePoint, ProbeRecorder, ProbeSite};
use crate::Root;
use crate::probes::recorder::ProbeEventKind;

/// Calls of a round.
const CALLS: u32 = 20;

/// The functions, of which one begins with an instruction that has to be stepped over.
macro_rules! points {
    ($stepped:literal) => {
        std::arch::global_asm!(
            ".balign 16",
            ".globl perflab_places",
            "perflab_places:",
            "nop",
            "ret",
            ".balign 16",
            "nop",
            "ret",
            ".balign 16",
            $stepped,
            "ret",
            ".balign 16",
            "nop",
            "ret",
            ".balign 16",
        );
    };
}

#[cfg(target_arch = "x86_64")]
points!("lea rax, [rdi + 1]");

#[cfg(target_arch = "aarch64")]
points!("add x0, x0, 1");

/// Bytes of a function, and where each begins: one that is never probed, two that are where they begin, and one that is
/// where it ends as well.
const EACH: usize = 16;

const BARE: usize = 0;

const EMULATED: usize = EACH;

const STEPPED: usize = 2 * EACH;

const BOTH: usize = 3 * EACH;

/// Bytes of all.
const ALL: usize = 4 * EACH;

/// Bytes from an emulated instruction to the return behind it.
const RETURN: usize = if cfg!(target_arch = "aarch64") { 4 } else { 1 };

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
unsafe extern "C" {
    fn perflab_places(value: u64) -> u64;

}

/// What one event costs here, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbeCost {
    /// At a USDT probe, or a function that begins with a push or a no-operation.
    pub emulated: f64,
    /// At any other instruction.
    pub stepped: f64,
    /// At a function's return instruction.
    pub returned: f64,
    /// Between the times of a begin and an end with nothing between.
    pub between: f64,
}

impl ProbeCost {
    /// At one of these sites, the dearest.
    pub fn begin_cost(&self, sites: &[ProbeSite]) -> f64 {
        if sites.iter().any(|site| site.stepped) { self.stepped.max(self.emulated) } else { self.emulated }
    }

    /// At one of these sites where something ends, the dearest: what is stepped over there is a return.
    pub fn end_cost(&self, sites: &[ProbeSite]) -> f64 {
        if sites.iter().any(|site| site.stepped) { self.returned.max(self.emulated) } else { self.emulated }
    }

    /// Of each the larger one.
    #[must_use]
    pub fn larger_of_each(self, other: Self) -> Self {
        Self {
            emulated: self.emulated.max(other.emulated),
            stepped: self.stepped.max(other.stepped),
            returned: self.returned.max(other.returned),
            between: self.between.max(other.between),
        }
    }
}

/// Measures what probes cost, as often as needed.
#[derive(Debug)]
pub struct ProbeCostMeter {
    code: ProbedCode,
    attached: ProbeRecorder,
}

impl ProbeCostMeter {
    /// So many rounds take some tens of milliseconds where events are dear, and are sure.
    pub const FULL_ROUNDS: usize = 24;
    /// So many take a few, and will do in between.
    pub const QUICK_ROUNDS: usize = 4;

    /// Puts probes on functions of its own.
    ///
    /// # Errors
    /// [`ProbeError`] with what to change.
    pub fn new(root: &Root) -> Result<Self, ProbeError> {
        Self::with_code(root, ProbedCode::copy_to_memory().unwrap_or_else(|| ProbedCode::locate_own(root)))
    }

    /// The same where memory that was written must not be executed.
    #[cfg(test)]
    pub(crate) fn on_own_code(root: &Root) -> Result<Self, ProbeError> {
        Self::with_code(root, ProbedCode::locate_own(root))
    }

    fn with_code(root: &Root, code: ProbedCode) -> Result<Self, ProbeError> {
        let point = |at: usize| ProbePoint {
            path: code.path.clone(),
            sites: vec![ProbeSite { offset: code.offset + at as u64, semaphore: None, stepped: true }],
            condition: None,
        };
        let points = [EMULATED, STEPPED, BOTH, BOTH + RETURN].map(point);
        let attached = ProbeRecorder::attach_to_self(root, &points)?;
        attached.start();
        Ok(Self { code, attached })
    }

    /// Measures in so many rounds, of which the middle counts.
    pub fn measure(&mut self, rounds: usize) -> ProbeCost {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let mut each: [Vec<f64>; 4] = Default::default();
        let (mut begun, mut between) = (None, Vec::new());
        for _ in 0..rounds {
            for (function, times) in [BARE, EMULATED, STEPPED, BOTH].into_iter().zip(&mut each) {
                times.push(self.code.time_call(function));
            }
            let mut take = |event: super::ProbeEvent| match event.kind {
                ProbeEventKind::Place(2) if event.thread == thread => begun = Some(event.time),
                ProbeEventKind::Place(3) if event.thread == thread => {
                    between.extend(begun.take().map(|begun| event.time.saturating_sub(begun) as f64));
                }
                _ => {}
            };
            self.attached.drain_events(&mut take);
        }
        let [bare, emulated, stepped, both] = each.map(median);
        ProbeCost {
            emulated: (emulated - bare).max(0.0),
            stepped: (stepped - bare).max(0.0),
            returned: (both - emulated).max(0.0),
            between: median(between),
        }
    }
}

/// Where the functions are, in a file and in memory.
#[derive(Debug)]
struct ProbedCode {
    path: PathBuf,
    offset: u64,
    begin: usize,
    _mapping: Option<(CodePage, OwnedFd)>,
}

impl ProbedCode {
    /// A copy in memory of its own; none where memory that was written must not be executed.
    fn copy_to_memory() -> Option<Self> {
        let flags = MemfdFlags::CLOEXEC;
        // Kernels before 6.3 do not know the flag, and allow it without.
        let fd = memfd_create(c"perflab-places", flags | MemfdFlags::EXEC)
            .or_else(|_| memfd_create(c"perflab-places", flags))
            .ok()?;
        // SAFETY: the functions are so many bytes of this program's code, which is never written to.
        let bytes = unsafe { std::slice::from_raw_parts(perflab_places as *const u8, ALL) };
        let mut file = File::from(fd);
        file.write_all(bytes).ok()?;
        let fd = OwnedFd::from(file);
        let mapping = CodePage::new(&fd)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        Some(Self { path, offset: 0, begin: mapping.0.as_ptr() as usize, _mapping: Some((mapping, fd)) })
    }

    /// Where they are in this very program.
    fn locate_own(root: &Root) -> Self {
        let begin = perflab_places as *const u8 as usize;
        let offset = file_offset_of_address(root, begin as u64);
        Self { path: PathBuf::from("/proc/self/exe"), offset, begin, _mapping: None }
    }

    /// Nanoseconds of the CPU that a call of one of them takes.
    fn time_call(&self, function: usize) -> f64 {
        let since = thread_cpu_nanos();
        // SAFETY: there is one of the functions above: it takes a number, gives one, and touches nothing else.
        let call =
            unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(u64) -> u64>(self.begin + function) };
        for n in 0..u64::from(CALLS) {
            // SAFETY: as above.
            std::hint::black_box(unsafe { call(n) });
        }
        (thread_cpu_nanos() - since) as f64 / f64::from(CALLS)
    }
}

/// A page of code. Unmapped when dropped.
#[derive(Debug)]
struct CodePage(NonNull<u8>);

// SAFETY: what is mapped there is only read and executed, and belongs to this value alone.
unsafe impl Send for CodePage {}

impl CodePage {
    fn new(fd: &OwnedFd) -> Option<Self> {
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: a new private mapping of a descriptor that we own, at an address that the kernel chooses.
        let begin = unsafe {
            libc::mmap(std::ptr::null_mut(), ALL, protection, libc::MAP_PRIVATE, fd.as_raw_fd(), 0)
        };
        NonNull::new(begin.cast()).filter(|_| begin != libc::MAP_FAILED).map(Self)
    }
}

impl Drop for CodePage {
    fn drop(&mut self) {
        // SAFETY: unmaps what `new` mapped, once.
        unsafe { libc::munmap(self.0.as_ptr().cast(), ALL) };
    }
}

/// Nanoseconds that this thread was on a CPU.
fn thread_cpu_nanos() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The offset in its file of an address of this process.
fn file_offset_of_address(root: &Root, address: u64) -> u64 {
    let maps = root.read("/proc/self/maps").unwrap_or_default();
    let offset_in_mapping = |line: &str| {
        let mut parts = line.split_whitespace();
        let (begin, end) = parts.next()?.split_once('-')?;
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (begin, end, offset) = (hex(begin)?, hex(end)?, hex(parts.nth(1)?)?);
        (begin..end).contains(&address).then(|| address - begin + offset)
    };
    maps.lines().find_map(offset_in_mapping).unwrap_or(0)
}
