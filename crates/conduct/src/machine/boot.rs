//! The way from a description to a guest that is ready.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use perflab_model::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

use super::command_line::{self, Places, Sharing};
use super::console::{ConsoleBound, read_end};
use super::launch::{self, Manner};
use super::memory::Need;
use super::qmp::Monitor;
use super::running::{self, Note};
use super::vsock::Vsock;
use super::{Accelerator, Chosen, Guest, Machine, MachineError, RootKind, pin, share};
use crate::Stop;
use crate::inert::inert;
use crate::init::{Control, Orders, Root, Said, Work};
use crate::initramfs::Initramfs;

/// What a boot needs besides the machine.
#[derive(Debug, Clone)]
pub struct Surroundings<'a> {
    /// The perflab binary, which goes into the guest.
    pub perflab: &'a Path,
    /// Where the console's log and QEMU's own words are kept.
    pub logs: &'a Path,
    /// What the guest is booted for.
    pub work: Work,
    /// Whether it stays when this process ends.
    pub stays: bool,
    /// The wish to stop, looked at while it boots.
    pub stop: &'a Stop,
}

/// Boots the machine and waits until its work begins. A guest that does not come in time is tried once more.
///
/// # Errors
/// Something is missing, the guest died or failed, or it was late twice; the console's last words are in the error.
pub fn boot(machine: &Machine, around: &Surroundings<'_>) -> Result<Guest, MachineError> {
    // Where guests were killed together with their perflab, their folders go now.
    running::list()?;
    let chosen = machine.accelerator.choose()?;
    match attempt(machine, around, &chosen) {
        Err(MachineError::Late { console, .. }) => {
            // The first console stays beside the second.
            let _ = fs::rename(&console, console.with_extension("first.log"));
            attempt(machine, around, &chosen)
        }
        other => other,
    }
}

fn attempt(machine: &Machine, around: &Surroundings<'_>, chosen: &Chosen) -> Result<Guest, MachineError> {
    let deadline = Deadline::new(chosen.accelerator, machine.boot_within);
    let (mut guest, need) = start(machine, around, chosen, &deadline)?;
    let console = guest.console().to_owned();
    let starved = || need.told(machine, &console);
    match ready(&mut guest, around.stop, &deadline, &starved) {
        Ok(()) => Ok(guest),
        Err(error) => Err(starved().unwrap_or(error)),
    }
}

/// How long a boot may take: long on a host that is busy with other things.
struct Deadline {
    begun: Instant,
    allowed: Duration,
}

impl Deadline {
    fn new(accelerator: Accelerator, wanted: Option<Nanos>) -> Self {
        let allowed = wanted.map_or_else(|| suggested(accelerator), Duration::from);
        Deadline { begun: Instant::now(), allowed }
    }

    fn over(&self) -> bool {
        self.begun.elapsed() > self.allowed
    }

    /// The guest did not come.
    fn missed(&self, name: &str, console: &Path) -> MachineError {
        let (seconds, words) = (self.allowed.as_secs(), words(console, 12));
        MachineError::Late { name: name.into(), seconds, console: console.into(), words }
    }
}

fn suggested(accelerator: Accelerator) -> Duration {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0);
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    allowed(accelerator, load / cpus as f64)
}

/// A boot takes 3 s under TCG and less than one under KVM on an idle host: twenty times that, and as much again for
/// every task that waits for a CPU; measured, loads of 100 tasks a CPU make it 40 times slower.
pub(super) fn allowed(accelerator: Accelerator, load: f64) -> Duration {
    let idle = match accelerator {
        Accelerator::Kvm => 20.0,
        Accelerator::Tcg => 60.0,
    };
    Duration::from_secs_f64(idle * (1.0 + load.clamp(0.0, 9.0)))
}

/// From the description to a QEMU that runs.
fn start(
    machine: &Machine,
    around: &Surroundings<'_>,
    chosen: &Chosen,
    deadline: &Deadline,
) -> Result<(Guest, Need), MachineError> {
    let home = running::home()?;
    let prefix = format!("{}-", machine.name);
    let private = fs::Permissions::from_mode(0o700);
    let folder =
        tempfile::Builder::new().prefix(&prefix).rand_bytes(4).permissions(private).tempdir_in(&home);
    let folder = folder.map_err(MachineError::file(&home))?;
    let lock = running::claim(folder.path()).map_err(MachineError::file(folder.path()))?;
    fs::create_dir_all(around.logs).map_err(MachineError::file(around.logs))?;
    let vsock = machine.vsock.then(|| Vsock::listen(&machine.name)).transpose()?;
    let sharing = initramfs(machine, around, folder.path(), vsock.as_ref())?;
    let need = Need::of(machine, &folder.path().join("initramfs"))?;
    need.met(machine)?;
    let log = |kind: &str| around.logs.join(format!("{}.{kind}", machine.name));
    let mut server = match sharing {
        Some(Sharing::VirtioFs) => {
            let socket = folder.path().join("share");
            Some(share::serve(machine, around.perflab, &socket, &log("virtiofsd.log"), around.stays)?)
        }
        _ => None,
    };
    let console = log("console.log");
    let bound = ConsoleBound::watch(console.clone());
    let cid = vsock.as_ref().map(|vsock| vsock.cid);
    let places = Places { private: folder.path(), console: &console, cid };
    let arguments = command_line::arguments(machine, chosen.accelerator, sharing, &places);
    let begun = qemu(machine, around, &arguments, &log("qemu.log")).and_then(|qemu| {
        connected(qemu, machine, around.stop, folder.path(), deadline, &console, &log("qemu.log"))
    });
    let (qemu, control) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            let gave_up = |server: &mut Child| matches!(server.try_wait(), Ok(Some(_)));
            let share = server.as_mut().is_some_and(gave_up).then(|| MachineError::NoShare {
                name: machine.name.clone(),
                reason: format!("virtiofsd ended: {}", words(&log("virtiofsd.log"), 3).trim()),
            });
            if let Some(server) = &mut server {
                let _ = server.kill();
                let _ = server.wait();
            }
            return Err(share.unwrap_or(error));
        }
    };
    let note = note(machine, chosen, &folder, qemu.id(), &console, around.stays);
    let guest = Guest {
        note,
        chosen: chosen.clone(),
        qemu,
        server,
        lock,
        folder: Some(folder),
        control,
        vsock,
        bound,
    };
    Ok((guest.noted()?, need))
}

fn note(machine: &Machine, chosen: &Chosen, folder: &TempDir, pid: u32, console: &Path, stays: bool) -> Note {
    let id = folder.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Note {
        id,
        name: machine.name.clone(),
        pid,
        kernel: machine.kernel.release.clone(),
        accelerator: chosen.accelerator,
        cpus: machine.cpus,
        memory: machine.memory,
        console: console.into(),
        stays,
        logs: None,
    }
}

/// Packs the guest's first file system; says how it gets at the host's root.
fn initramfs(
    machine: &Machine,
    around: &Surroundings<'_>,
    folder: &Path,
    vsock: Option<&Vsock>,
) -> Result<Option<Sharing>, MachineError> {
    let modules = machine.kernel.modules()?;
    let mut wanted = vec!["virtio_pci", "virtio_console"];
    let mut programs: &[String] = &[];
    let mut sharing = None;
    let root = match &machine.root {
        RootKind::Bare { programs: wanted } => {
            programs = wanted;
            Root::Bare
        }
        RootKind::Host => {
            let way = share::sharing(machine, &modules)?;
            sharing = Some(way);
            let (needed, filesystem) = share::needs(way);
            wanted.extend(needed);
            Root::Shared { filesystem: filesystem.into(), tag: command_line::TAG.into() }
        }
        RootKind::Image { partition, .. } => {
            let number = if *partition == 0 { String::new() } else { partition.to_string() };
            Root::Disk { device: PathBuf::from(format!("/dev/vda{number}")) }
        }
    };
    if !machine.disks.is_empty() || matches!(machine.root, RootKind::Image { .. }) {
        wanted.extend(["virtio_blk", "ext4"]);
    }
    if vsock.is_some() {
        wanted.push("vmw_vsock_virtio_transport");
    }
    wanted.extend(machine.load.iter().map(String::as_str));
    let modules = modules.in_order(&wanted)?;
    let orders = Orders {
        name: machine.name.clone(),
        modules: modules.iter().map(|module| module.name.clone()).collect(),
        root,
        work: around.work.clone(),
        vsock: vsock.map(|vsock| vsock.port),
    };
    let packed = Initramfs { perflab: around.perflab, modules: &modules, orders: &orders, programs };
    packed.write(&folder.join("initramfs"))?;
    Ok(sharing)
}

fn qemu(
    machine: &Machine,
    around: &Surroundings<'_>,
    arguments: &[String],
    log: &Path,
) -> Result<Child, MachineError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|folder| folder.join(command_line::PROGRAM).is_file()) {
        let hint = "install it (Debian: apt-get install qemu-system-x86)";
        return Err(MachineError::NotInstalled { program: command_line::PROGRAM, hint });
    }
    let manner = Manner { read_only: false, stays: around.stays };
    let mut command = launch::command(around.perflab, manner);
    command.arg(command_line::PROGRAM).args(arguments);
    let output = fs::File::create(log).map_err(MachineError::file(log))?;
    let errors = output.try_clone().map_err(MachineError::file(log))?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let program = format!("{} for guest {}", command_line::PROGRAM, machine.name);
    launch::spawn(command).map_err(|source| MachineError::Start { program, source })
}

/// Waits for QEMU's sockets, pins its processors, and connects to the guest's control port.
fn connected(
    mut qemu: Child,
    machine: &Machine,
    stop: &Stop,
    folder: &Path,
    deadline: &Deadline,
    console: &Path,
    log: &Path,
) -> Result<(Child, UnixStream), MachineError> {
    let connect = || {
        let control = UnixStream::connect(folder.join("control"))?;
        // Opened after the control port's socket: both are there now.
        folder.join("shell").exists().then_some(control).ok_or(io::ErrorKind::NotFound.into())
    };
    let done = loop {
        if let Ok(Some(status)) = qemu.try_wait() {
            let how = format!("{status}: {}", words(log, 3));
            let name = machine.name.clone();
            return Err(MachineError::Died { name, how, console: console.into(), words: words(console, 12) });
        }
        match connect() {
            Ok::<_, io::Error>(control) => break Ok(control),
            Err(_) if stop.asked() => break Err(MachineError::Stopped { name: machine.name.clone() }),
            Err(_) if !deadline.over() => std::thread::sleep(Duration::from_millis(2)),
            Err(_) => break Err(deadline.missed(&machine.name, console)),
        }
    };
    let pinned = done.and_then(|control| {
        if !machine.pin.is_empty() {
            pin::pin(machine, &mut Monitor::connect(&machine.name, &folder.join("qmp"), stop)?)?;
        }
        Ok(control)
    });
    match pinned {
        Ok(control) => Ok((qemu, control)),
        Err(error) => {
            let _ = qemu.kill();
            let _ = qemu.wait();
            Err(error)
        }
    }
}

/// How often a console is read while its guest boots.
const LOOK: Duration = Duration::from_secs(1);

/// Waits until the guest says that its work begins; one that `starved` for memory may hang instead of dying.
fn ready(
    guest: &mut Guest,
    stop: &Stop,
    deadline: &Deadline,
    starved: &dyn Fn() -> Option<MachineError>,
) -> Result<(), MachineError> {
    let name = guest.name().to_owned();
    let console = guest.console().to_owned();
    let mut looked = Instant::now();
    let mut gave_up = None;
    let go_on = || {
        let mut starving = None;
        if looked.elapsed() > LOOK {
            starving = starved();
            looked = Instant::now();
        }
        if stop.asked() {
            gave_up = Some(MachineError::Stopped { name: name.clone() });
        } else if starving.is_some() {
            gave_up = starving;
        } else if deadline.over() {
            gave_up = Some(deadline.missed(&name, &console));
        }
        gave_up.is_none()
    };
    let said = Said::read(&mut Patient { stream: &guest.control, go_on });
    if let Some(reason) = gave_up {
        return Err(reason);
    }
    match said {
        Ok(Some(Said::Ready)) => Ok(()),
        Ok(Some(Said::Failed(reason))) => Err(MachineError::Failed { name, reason }),
        other => {
            let how: String = match other {
                Ok(None) => "QEMU closed its port".into(),
                Ok(Some(_)) => "it spoke before it was ready".into(),
                Err(error) => error.to_string(),
            };
            // Where QEMU itself gave up, it said why.
            let said = words(&console.with_file_name(format!("{name}.qemu.log")), 3);
            let how = if said == NOTHING { how } else { format!("{how}: {}", said.trim()) };
            Err(MachineError::Died { name, how, words: words(&console, 12), console })
        }
    }
}

/// A stream that is read for as long as somebody wants: what comes in parts, or not at all, is given up when asked.
struct Patient<'a, F> {
    stream: &'a UnixStream,
    /// Asked many times a second.
    go_on: F,
}

impl<F: FnMut() -> bool> io::Read for Patient<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while (self.go_on)() {
            // What can be read is read without waiting.
            if heard(self.stream) {
                return io::Read::read(&mut self.stream, buffer);
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

/// Whether there is something to read, or the end; waits a little.
fn heard(control: &UnixStream) -> bool {
    let mut polled = [PollFd::new(control, PollFlags::IN)];
    let wait = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    poll(&mut polled, Some(&wait)).is_ok_and(|ready| ready > 0)
}

/// The last lines of a log as inert text, what a guest prints must not steer the user's terminal; a panic's own line
/// first, where the trace that follows it is longer.
pub fn words(log: &Path, lines: usize) -> String {
    let tail = read_end(log, LAST_WORDS);
    let text = String::from_utf8_lossy(&tail);
    let shown = |line: &str| {
        let line = inert(line.trim_end_matches('\r'));
        format!("  {}", line.chars().take(WIDEST).collect::<String>())
    };
    let all: Vec<String> = text.lines().map(shown).filter(|line| !line.trim().is_empty()).collect();
    let first = all.len().saturating_sub(lines);
    let (before, last) = all.split_at(first);
    let panic = before.iter().rev().find(|line| line.contains("Kernel panic"));
    let shown: Vec<&str> = panic.into_iter().chain(last).map(String::as_str).collect();
    if shown.is_empty() { NOTHING.into() } else { shown.join("\n") }
}

/// What stands for an empty log.
const NOTHING: &str = "  (nothing)";
/// Characters of a line that are shown.
const WIDEST: usize = 300;
/// Bytes of a log that may hold its last words.
const LAST_WORDS: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_part_of_a_frame_is_not_waited_for_longer_than_wanted() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(&[0, 5]).unwrap();
        let mut left = 3;
        let go_on = || {
            left -= 1;
            left > 0
        };
        let given_up = Said::read(&mut Patient { stream: &ours, go_on }).unwrap_err();
        assert_eq!(given_up.kind(), io::ErrorKind::TimedOut);
        // Its rest makes it whole, however small its parts are.
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let writer = std::thread::spawn(move || {
            for byte in [0, 0, 0, 0, 0] {
                theirs.write_all(&[byte]).unwrap();
            }
        });
        let said = Said::read(&mut Patient { stream: &ours, go_on: || true }).unwrap();
        assert_eq!(said, Some(Said::Ready));
        writer.join().unwrap();
    }
}
