//! Processes that end with their parent, however it ends.
//!
//! The kernel kills a child when the *thread* that started it ends, so all are started by one thread that lives as
//! long as this process. Between fork and exec perflab runs itself (`perflab launch`), because only the child can
//! do what must be done there.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::{io, thread};

use crate::mounts::MountTable;
use rustix::fs::{Mode, StatVfsMountFlags, statvfs};
use rustix::mount::{MountFlags, MountPropagationFlags, mount_change, mount_remount};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// What the launched process is to be, besides mortal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildOptions {
    /// Whether it sees all file systems read-only, in a mount namespace of its own.
    pub read_only: bool,
    /// Whether it stays when its parent ends.
    pub stays: bool,
}

/// `perflab launch …` as a command, to which the program's argv is added.
pub fn child_command(perflab: &std::path::Path, options: ChildOptions) -> Command {
    let mut command = Command::new(perflab);
    command.args(["launch", "--parent", &std::process::id().to_string()]);
    if options.read_only {
        command.arg("--read-only");
    }
    if options.stays {
        command.arg("--stays");
    }
    command.arg("--");
    command
}

type SpawnRequest = (Command, Sender<io::Result<Child>>);

/// Starts it on the thread that never ends.
pub fn spawn_child(command: Command) -> io::Result<Child> {
    static LAUNCHER: OnceLock<Sender<SpawnRequest>> = OnceLock::new();
    let launcher = LAUNCHER.get_or_init(|| {
        let (wishes, heard) = channel::<SpawnRequest>();
        thread::spawn(move || {
            for (mut command, answer) in heard {
                // A caller that no longer waits gets no child: dropped, it would have no owner.
                if let Err(unheard) = answer.send(command.spawn())
                    && let Ok(mut child) = unheard.0
                {
                    let _ = child.kill();
                    let _ = child.wait();
                }
            }
        });
        wishes
    });
    let (answer, heard) = channel();
    let gone = |_| io::Error::other("the launching thread is gone");
    launcher.send((command, answer)).map_err(|_| io::Error::other("the launching thread is gone"))?;
    heard.recv().map_err(gone)?
}

/// `perflab launch`: becomes `argv`. Comes back only with the reason why it could not.
pub fn exec_child(parent: u32, options: ChildOptions, argv: &[OsString]) -> io::Error {
    match prepare_child(parent, options) {
        Err(error) => error,
        Ok(()) => match argv.split_first() {
            Some((program, arguments)) => Command::new(program).args(arguments).exec(),
            None => io::ErrorKind::InvalidInput.into(),
        },
    }
}

fn prepare_child(parent: u32, options: ChildOptions) -> io::Result<()> {
    // Sockets and logs are the user's alone, wherever they are.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    if !options.stays {
        end_with_parent(parent)?;
    }
    if options.read_only { make_mounts_read_only() } else { Ok(()) }
}

/// From here on this process ends with the thread of `parent` that started it: see `spawn_child`.
///
/// # Errors
/// The parent is gone already, or the kernel refuses.
pub fn end_with_parent(parent: u32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before we asked to be signalled.
    if getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs()) != Some(parent) {
        return Err(io::Error::other("its parent is gone"));
    }
    Ok(())
}

/// Every mount read-only, in a namespace of our own: a server of files that is deceived cannot write then.
fn make_mounts_read_only() -> io::Result<()> {
    #[expect(deprecated, reason = "only its use with FILES is unsafe")]
    rustix::thread::unshare(rustix::thread::UnshareFlags::NEWNS)?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let mounts = MountTable::read();
    if mounts.iter().next().is_none() {
        return Err(io::Error::other("/proc/self/mountinfo cannot be read"));
    }
    for place in mounts.iter().map(|mount| &mount.mount_point) {
        let refused = mount_remount(place, MountFlags::BIND | MountFlags::RDONLY, c"").err();
        // A mount below another one cannot be reached: what counts is what is found at its path.
        let writable = statvfs(place).is_ok_and(|found| !found.f_flag.contains(StatVfsMountFlags::RDONLY));
        if writable {
            let why = refused.map_or_else(String::new, |errno| format!(": {errno}"));
            return Err(io::Error::other(format!(
                "{} cannot be made read-only for the guest{why}",
                place.display()
            )));
        }
    }
    Ok(())
}
