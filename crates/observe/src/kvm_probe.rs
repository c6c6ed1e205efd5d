//! Whether `/dev/kvm` runs a guest's code at the processor's speed, answered by trying it: a guest of one page
//! counts down in a loop of two instructions, and is timed.
//!
//! That the device opens says nothing: measured on a host with KVM_PVM, everything up to the virtual processor
//! succeeds, and the loop then takes 2 µs an iteration, as each instruction is interpreted; a kernel needs minutes
//! to its first line there. The accelerator is chosen in `perflab-conduct`.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fmt, thread};

use kvm_bindings::kvm_userspace_memory_region;
use kvm_ioctls::{Kvm, VcpuExit, VcpuFd};
use memmap2::MmapMut;

/// What the probe found.
#[derive(Debug, Clone, PartialEq)]
pub enum KvmSpeed {
    /// Guests run at speed.
    Fast {
        /// Nanoseconds an iteration of the two-instruction loop; a processor takes about one.
        nanos: f64,
    },
    /// It works and is of no use: guests are interpreted.
    Slow {
        /// Nanoseconds an iteration.
        nanos: f64,
    },
    /// It does not work.
    Unusable {
        /// Why, as the system reports it.
        reason: String,
    },
}

impl KvmSpeed {
    /// Whether guests run at speed.
    pub fn is_fast(&self) -> bool {
        matches!(self, KvmSpeed::Fast { .. })
    }
}

impl fmt::Display for KvmSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KvmSpeed::Fast { nanos } => write!(f, "/dev/kvm runs a loop at {nanos:.1} ns an iteration"),
            KvmSpeed::Slow { nanos } => {
                write!(
                    f,
                    "/dev/kvm opens, but interprets guests: a loop takes {nanos:.0} ns an iteration, where a processor needs about 1 ns"
                )
            }
            KvmSpeed::Unusable { reason } => f.write_str(reason),
        }
    }
}

/// Slower than this is interpreted: a processor takes about 1 ns, with the exit at the end of the loop at most 5 ns;
/// interpreters take hundreds.
const LIMIT: f64 = 50.0;

/// Iterations between two looks at the clock, and how often.
const ITERATIONS: u16 = 10_000;

const CHUNKS: u32 = 3;

/// The probe's own limit: a guest that does not come back is left to its thread.
const PATIENCE: Duration = Duration::from_millis(800);

/// Times a loop in a guest of one page. Takes less than 1 ms where KVM is real, and never more than 0.8 s.
pub fn probe_kvm_speed() -> KvmSpeed {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(probe_kvm_device(Path::new("/dev/kvm"))));
    let late =
        || KvmSpeed::Unusable { reason: format!("/dev/kvm: a guest did not come back within {PATIENCE:?}") };
    receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| late())
}

fn probe_kvm_device(device: &Path) -> KvmSpeed {
    if !device.exists() {
        let reason =
            format!("there is no {}: no virtualisation, or its module is not loaded", device.display());
        return KvmSpeed::Unusable { reason };
    }
    match measure_iteration_nanos() {
        Ok(nanos) if nanos < LIMIT => KvmSpeed::Fast { nanos },
        Ok(nanos) => KvmSpeed::Slow { nanos },
        Err(error) => KvmSpeed::Unusable { reason: format!("{}: {error}", device.display()) },
    }
}

/// `dec cx; jnz .-1; hlt`, for a processor in real mode.
const LOOP: [u8; 4] = [0x49, 0x75, 0xfd, 0xf4];

/// The best of the chunks: the first one pays for the guest's page.
#[expect(unsafe_code, reason = "a guest's memory is memory of ours")]
fn measure_iteration_nanos() -> Result<f64, kvm_ioctls::Error> {
    let failed = |_| kvm_ioctls::Error::new(libc::ENOMEM);
    let mut page = MmapMut::map_anon(4096).map_err(failed)?;
    page[..LOOP.len()].copy_from_slice(&LOOP);
    let machine = Kvm::new()?.create_vm()?;
    let region = kvm_userspace_memory_region {
        slot: 0,
        flags: 0,
        guest_phys_addr: 0,
        memory_size: page.len() as u64,
        userspace_addr: page.as_ptr() as u64,
    };
    // SAFETY: the region is `page`, which is page-aligned, and outlives `machine`: it is declared before it.
    unsafe { machine.set_user_memory_region(region)? };
    let mut processor = machine.create_vcpu(0)?;
    let mut segments = processor.get_sregs()?;
    (segments.cs.base, segments.cs.selector) = (0, 0);
    processor.set_sregs(&segments)?;
    let begun = Instant::now();
    let mut best = Duration::MAX;
    for _ in 0..CHUNKS {
        best = best.min(time_loop_chunk(&mut processor)?);
        if begun.elapsed() > PATIENCE / 2 {
            break;
        }
    }
    Ok(best.as_nanos() as f64 / f64::from(ITERATIONS))
}

/// Counts down once, from the loop's begin to its `hlt`.
fn time_loop_chunk(processor: &mut VcpuFd) -> Result<Duration, kvm_ioctls::Error> {
    let mut registers = processor.get_regs()?;
    (registers.rip, registers.rcx, registers.rflags) = (0, u64::from(ITERATIONS), 2);
    processor.set_regs(&registers)?;
    let begun = Instant::now();
    match processor.run()? {
        VcpuExit::Hlt => Ok(begun.elapsed()),
        _ => Err(kvm_ioctls::Error::new(libc::ENOEXEC)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_answers_within_a_second_and_says_why() {
        let begun = Instant::now();
        let found = probe_kvm_speed();
        assert!(begun.elapsed() < Duration::from_secs(1));
        match &found {
            KvmSpeed::Fast { nanos } => assert!(*nanos > 0.05, "{nanos} ns: the loop did not run"),
            KvmSpeed::Slow { nanos } => assert!(*nanos >= LIMIT),
            KvmSpeed::Unusable { reason } => assert!(reason.contains("/dev/kvm"), "{reason}"),
        }
        eprintln!("{found}");
    }

    #[test]
    fn a_missing_device_is_said() {
        let found = probe_kvm_device(Path::new("/dev/no-such-device"));
        let KvmSpeed::Unusable { reason } = found else { panic!("{found}") };
        insta::assert_snapshot!(reason, @"there is no /dev/no-such-device: no virtualisation, or its module is not loaded");
    }

    #[test]
    fn the_verdict_names_the_measured_time() {
        let slow = KvmSpeed::Slow { nanos: 1_900.0 };
        assert!(!slow.is_fast());
        insta::assert_snapshot!(slow, @"/dev/kvm opens, but interprets guests: a loop takes 1900 ns an iteration, where a processor needs about 1 ns");
        assert!(KvmSpeed::Fast { nanos: 0.7 }.is_fast());
    }
}
