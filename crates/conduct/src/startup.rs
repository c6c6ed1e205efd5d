//! One start of a program, measured: from right before its process is made until it counts as started.
//!
//! Owns what "started" means, and what a start cost in time, faults and reads of the disk. Refuses to read ahead (its caller
//! does, before and beside), to drop caches, and to believe that they are cold: [`Held`] says.

mod cost;
mod ended;
mod error;
mod group;
mod held;
mod inside;
mod packages;
mod readiness_condition;
mod window;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use group::Group;
use perflab_model::Nanos;
use perflab_model::io::Device;
use rustix::process::{Pid, Signal, kill_process_group};

pub use cost::{Cost, DiskReads, disk_of};
pub use error::StartError;
pub use group::remove_abandoned_groups;
pub use held::Held;
pub use inside::{Inside, InsideError};
pub use packages::PackagesError;
pub use readiness_condition::{NotAnEnd, ReadinessCondition};
pub use window::Window;

/// How a start came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Started {
    /// from right before the process was made until it counted as started; none where it never did
    pub wall: Option<Nanos>,
    /// what it cost
    pub cost: Cost,
    /// why it never counted as started, in one line
    pub failure: Option<String>,
    /// what it printed until then
    pub output: String,
}

/// Starts a command, calls `beside` right after, and waits until it counts as started, or ends, or `limit` has passed. What
/// still runs of it then is ended: its process group, and all that is in its control group, where it has one. Reads are those
/// of `disk`.
///
/// # Errors
/// A command that cannot be started, an end that cannot be watched for.
pub fn start(
    command: &[OsString],
    until: &ReadinessCondition,
    limit: Nanos,
    disk: Option<Device>,
    beside: impl FnOnce(),
) -> Result<Started, StartError> {
    let cannot = |program: &OsString, source: io::Error| StartError::Command {
        program: program.to_string_lossy().into(),
        source,
    };
    let none = || cannot(&OsString::new(), io::ErrorKind::InvalidInput.into());
    let (program, arguments) = command.split_first().ok_or_else(none)?;
    let mut watch = ended::Watch::prepare(until)?;
    let mut child = Command::new(program);
    child.args(arguments).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    child.envs(watch.variables());
    let ((before, begin, child), group) =
        Group::around(|| (disk.and_then(DiskReads::of), perflab_observe::monotonic_now(), child.spawn()));
    let mut child = child.map_err(|source| cannot(program, source))?;
    beside();
    watch.begin(&mut child);
    let seen = watch.wait(limit);
    let reads = before.zip(disk.and_then(DiskReads::of)).map(|(before, after)| after.since(before));
    let cost = Cost::of(&child, reads, group.as_ref().and_then(Group::cpu));
    let failure = seen.failure(until, limit, &mut child);
    finish(&mut child).map_err(StartError::watch("cannot end what still runs of it"))?;
    let wall = failure.is_none().then(|| seen.at.since(begin));
    Ok(Started { wall, cost, failure, output: watch.output() })
}

/// Ends what is left of its process group, and reaps it.
fn finish(child: &mut Child) -> io::Result<()> {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait().map(drop)
}
