//! One program launched, and ended once it was ready.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use perflab_model::Nanos;
use perflab_model::io_trace::DeviceNumber;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::cost::{DiskTraffic, StartupCgroup, StartupCost};
use crate::readiness::{ReadinessCondition, ReadinessWatch, StartupError};

/// How a startup came out.
#[derive(Debug, Clone, PartialEq)]
pub struct StartupResult {
    /// from right before the process was made until it counted as started; none where it never did
    pub wall: Option<Nanos>,
    /// what it cost
    pub cost: StartupCost,
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
pub fn measure_startup(
    command: &[OsString],
    condition: &ReadinessCondition,
    limit: Nanos,
    disk: Option<DeviceNumber>,
    beside: impl FnOnce(),
) -> Result<StartupResult, StartupError> {
    let cannot = |program: &OsString, source: io::Error| StartupError::Command {
        program: program.to_string_lossy().into(),
        source,
    };
    let none = || cannot(&OsString::new(), io::ErrorKind::InvalidInput.into());
    let (program, arguments) = command.split_first().ok_or_else(none)?;
    let mut watch = ReadinessWatch::prepare(condition)?;
    let mut child = Command::new(program);
    child.args(arguments).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    child.envs(watch.environment_variable());
    let ((before, begin, child), group) = StartupCgroup::run_in_cgroup(|| {
        (disk.and_then(DiskTraffic::of_disk), perflab_observe::monotonic_now(), child.spawn())
    });
    let mut child = child.map_err(|source| cannot(program, source))?;
    beside();
    watch.watch_process(&mut child);
    let outcome = watch.wait(limit);
    let reads = before.zip(disk.and_then(DiskTraffic::of_disk)).map(|(before, after)| after.since(before));
    let cost = StartupCost::of_child(&child, reads, group.as_ref().and_then(StartupCgroup::cpu_time));
    let failure = outcome.failure(condition, limit, &mut child);
    kill_rest(&mut child).map_err(StartupError::watch_error("cannot end what still runs of it"))?;
    let wall = failure.is_none().then(|| outcome.at.since(begin));
    Ok(StartupResult { wall, cost, failure, output: watch.output() })
}

/// Ends what is left of its process group, and reaps it.
fn kill_rest(child: &mut Child) -> io::Result<()> {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    child.wait().map(drop)
}
