//! Waiting, as the first process must: for its own child, and for every orphan that becomes one.

use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use super::Said;

/// Waits until `child` has ended; others that end meanwhile are buried.
pub(super) fn until_gone(child: u32) -> Said {
    let child = i32::try_from(child).ok().and_then(Pid::from_raw);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == child => return ended(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Said::Failed(format!("cannot wait for the work: {error}")),
        }
    }
}

fn ended(status: WaitStatus) -> Said {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Said::Exited(code),
        (None, signal) => Said::Killed(signal.unwrap_or_default()),
    }
}
