//! What a place costs each time a thread comes by: measured on two tiny functions of perflab itself, one that begins with
//! what the kernel emulates (as USDT probes and most functions do), one with what it has to step over.
#![expect(
    unsafe_code,
    reason = "the places are functions of assembly, so that their first instruction is known"
)]

use std::path::PathBuf;
use std::time::Instant;

use super::record::What;
use super::{Attached, ProbeError, ProbedPlace, Site};
use crate::Root;

/// Calls of a round, and rounds: the quietest counts.
const CALLS: u32 = 500;
const ROUNDS: usize = 12;

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".globl perflab_place_emulated",
    ".type perflab_place_emulated, @function",
    "perflab_place_emulated:",
    "nop",
    "ret",
    ".globl perflab_place_stepped",
    ".type perflab_place_stepped, @function",
    "perflab_place_stepped:",
    "lea rax, [rdi + 1]",
    "ret",
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".globl perflab_place_emulated",
    "perflab_place_emulated:",
    "nop",
    "ret",
    ".globl perflab_place_stepped",
    "perflab_place_stepped:",
    "add x0, x0, 1",
    "ret",
);

/// Bytes from the emulated place to the return behind it.
const RETURN: u64 = if cfg!(target_arch = "aarch64") { 4 } else { 1 };

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
unsafe extern "C" {
    fn perflab_place_emulated(value: u64) -> u64;
    fn perflab_place_stepped(value: u64) -> u64;
}

/// What one event costs here, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// At a USDT probe, or a function that begins with a push or a no-operation.
    pub emulated: f64,
    /// At any other instruction.
    pub stepped: f64,
    /// At a function's return instruction.
    pub returned: f64,
    /// Between the times that a begin and an end tell, with nothing between.
    pub between: f64,
}

impl Cost {
    /// At one of these sites, the dearest.
    pub fn begin(&self, sites: &[Site]) -> f64 {
        if sites.iter().any(|site| site.stepped) { self.stepped.max(self.emulated) } else { self.emulated }
    }

    /// At one of these sites where something ends, the dearest: what is stepped over there is a return.
    pub fn end(&self, sites: &[Site]) -> f64 {
        if sites.iter().any(|site| site.stepped) { self.returned.max(self.emulated) } else { self.emulated }
    }
}

/// Measures it. Takes some tens of milliseconds.
///
/// # Errors
/// [`ProbeError`] with what to change.
pub fn cost(root: &Root) -> Result<Cost, ProbeError> {
    let [emulated, stepped] =
        [perflab_place_emulated, perflab_place_stepped].map(|call| call as unsafe extern "C" fn(u64) -> u64);
    let bare = least(emulated);
    let (both, between) = probed(root, emulated, true)?;
    let entry = probed(root, emulated, false)?.0 - bare;
    let step = probed(root, stepped, false)?.0 - bare;
    Ok(Cost { emulated: entry, stepped: step, returned: both - bare - entry, between })
}

/// Nanoseconds a call with an event on its begin, and on its end too if wanted, and between the two.
fn probed(root: &Root, call: unsafe extern "C" fn(u64) -> u64, ends: bool) -> Result<(f64, f64), ProbeError> {
    let begin = offset(root, call as usize as u64);
    let place = |offset| ProbedPlace {
        path: PathBuf::from("/proc/self/exe"),
        sites: vec![Site { offset, semaphore: None, stepped: true }],
        condition: None,
    };
    let mut places = vec![place(begin)];
    if ends {
        places.push(place(begin + RETURN));
    }
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let attached = Attached::to(root, own, &places)?;
    attached.start();
    let each = least(call);
    let (mut begun, mut between) = (0, Vec::new());
    attached.stop(|seen| match seen.what {
        What::Place(0) if seen.thread == thread => begun = seen.time,
        What::Place(1) if seen.thread == thread => between.push(seen.time.saturating_sub(begun)),
        _ => {}
    });
    between.sort_unstable();
    Ok((each, between.get(between.len() / 2).map_or(0.0, |median| *median as f64)))
}

fn least(call: unsafe extern "C" fn(u64) -> u64) -> f64 {
    let round = |_| {
        let since = Instant::now();
        for n in 0..u64::from(CALLS) {
            // SAFETY: the function is one of the two above: it takes a number, gives one, and touches nothing else.
            std::hint::black_box(unsafe { call(n) });
        }
        since.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// The offset in its file of an address of this process.
fn offset(root: &Root, address: u64) -> u64 {
    let maps = root.read("/proc/self/maps").unwrap_or_default();
    let stretch = |line: &str| {
        let mut parts = line.split_whitespace();
        let (begin, end) = parts.next()?.split_once('-')?;
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (begin, end, offset) = (hex(begin)?, hex(end)?, hex(parts.nth(1)?)?);
        (begin..end).contains(&address).then(|| address - begin + offset)
    };
    maps.lines().find_map(stretch).unwrap_or(0)
}
