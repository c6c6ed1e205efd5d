//! Virtual processors on the host CPUs where they belong.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::qmp::QmpConnection;
use super::{GuestError, GuestMachine};

/// Pins each virtual processor's thread to its CPU, by turns where there are fewer CPUs than processors.
pub(super) fn pin_processors(machine: &GuestMachine, monitor: &mut QmpConnection) -> Result<(), GuestError> {
    let Some(last) = machine.pin.len().checked_sub(1) else { return Ok(()) };
    let refused = |reason: String| GuestError::Monitor { name: machine.name.clone(), reason };
    for (index, thread) in monitor.processor_threads()?.into_iter().enumerate() {
        let Some(cpu) = machine.pin.get(index % (last + 1)) else { continue };
        let mut set = CpuSet::new();
        if *cpu as usize >= CpuSet::MAX_CPU {
            return Err(refused(format!("there is no CPU {cpu}")));
        }
        set.set(*cpu as usize);
        sched_setaffinity(Pid::from_raw(thread), &set)
            .map_err(|error| refused(format!("cannot pin processor {index} to CPU {cpu}: {error}")))?;
    }
    Ok(())
}
