//! One start of a program, measured: from right before its process is made until it counts as started.
//!
//! Owns what "started" means, and what a start cost in time, faults and reads of the disk. Refuses to read ahead (its caller
//! does, before and beside), to drop caches, and to believe that they are cold: [`resident`] says.

mod cost;
mod ended;
mod inside;
mod packages;
mod until;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use perflab_model::Nanos;
use perflab_model::io::Device;
use rustix::process::{Pid, Signal, kill_process_group};

pub use cost::{Cost, DiskReads, disk_of};
pub use inside::{Inside, InsideError};
pub use packages::PackagesError;
pub use until::{NotAnEnd, Until};

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
/// still runs of it then is ended. Reads are those of `disk`.
///
/// # Errors
/// A command that cannot be started, an end that cannot be watched for.
pub fn start(
    command: &[OsString],
    until: &Until,
    limit: Nanos,
    disk: Option<Device>,
    beside: impl FnOnce(),
) -> io::Result<Started> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut watch = ended::Watch::prepare(until)?;
    let mut child = Command::new(program);
    child.args(arguments).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    child.envs(watch.variables());
    let before = disk.and_then(DiskReads::of);
    let begin = perflab_observe::monotonic_now();
    let mut child = child.spawn()?;
    beside();
    watch.begin(&mut child);
    let seen = watch.wait(limit);
    let reads = before.zip(disk.and_then(DiskReads::of)).map(|(before, after)| after.since(before));
    let cost = Cost::of(&child, reads);
    let failure = seen.failure(until, limit, &mut child);
    finish(&mut child)?;
    let wall = failure.is_none().then(|| seen.at.since(begin));
    Ok(Started { wall, cost, failure, output: watch.output() })
}

/// Ends what is left of its process group, and reaps it.
fn finish(child: &mut Child) -> io::Result<()> {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait().map(drop)
}

/// Bytes of a file that are in memory: coldness is looked at, not believed.
pub fn resident(path: &Path) -> Option<u64> {
    let file = std::fs::File::open(path).ok()?;
    perflab_observe::io::residency::resident(&file, 0, 0).ok().map(|pages| pages * perflab_model::io::PAGE)
}
