//! Waiting, as the first process must: for its own child, and for every orphan that becomes one.

use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use super::GuestMessage;

/// Waits until `child` has ended; others that end meanwhile are buried.
pub(super) fn reap_until_exit(child: u32) -> GuestMessage {
    let child = i32::try_from(child).ok().and_then(Pid::from_raw);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == child => return exit_message(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return GuestMessage::Failed(format!("cannot wait for the work: {error}")),
        }
    }
}

fn exit_message(status: WaitStatus) -> GuestMessage {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => GuestMessage::Exited(code),
        (None, signal) => GuestMessage::Killed(signal.unwrap_or_default()),
    }
}
