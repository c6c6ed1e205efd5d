//! From a machine to a guest that is ready: deadline, one retry, and whether its memory is enough.
//!
//! Too little memory is reported before the boot where it is certain, and afterwards where the console says so.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io};

use perflab_model::{Bytes, Nanos, StopRequest, remove_control_characters};
use perflab_observe::ChildOptions;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

use crate::console_log::{ConsoleLogLimiter, read_log_end};
use crate::crash_dump::CrashWatch;
use crate::error::GuestError;
use crate::guest_network::GuestAddresses;
use crate::init_protocol::{ControlFrame, GuestMessage, GuestRoot, GuestWork, InitConfig};
use crate::initramfs::Initramfs;
use crate::machine::{Accelerator, ChosenAccelerator, GuestDebug, GuestMachine, GuestRootSource};
use crate::qemu_command_line::{self, GuestPaths, RootShare};
use crate::qmp::{self, QmpConnection};
use crate::root_share;
use crate::running_guest::{self, Guest, GuestRecord};
use crate::vsock::GuestVsock;

/// What a boot needs besides the machine.
#[derive(Debug, Clone)]
pub struct BootOptions<'a> {
    /// The perflab binary, which goes into the guest.
    pub perflab: &'a Path,
    /// Where the console's log and QEMU's own output are kept.
    pub logs: &'a Path,
    /// What the guest is booted for.
    pub work: GuestWork,
    /// Whether it stays when this process ends.
    pub stays: bool,
    /// The wish to stop, looked at while it boots.
    pub stop: &'a StopRequest,
}

/// Boots the machine and waits until its work begins. A guest that does not come in time is tried once more.
///
/// # Errors
/// Something is missing, the guest died or failed, or it was late twice; the end of the console is in the error.
pub fn boot_guest(machine: &GuestMachine, around: &BootOptions<'_>) -> Result<Guest, GuestError> {
    // Where guests were killed together with their perflab, their folders go now.
    running_guest::list_guests()?;
    let chosen = machine.accelerator.choose()?;
    match attempt_boot(machine, around, &chosen) {
        Err(GuestError::Late { console, .. }) => {
            // The first console stays beside the second.
            let _ = fs::rename(&console, console.with_extension("first.log"));
            attempt_boot(machine, around, &chosen)
        }
        other => other,
    }
}

fn attempt_boot(
    machine: &GuestMachine,
    around: &BootOptions<'_>,
    chosen: &ChosenAccelerator,
) -> Result<Guest, GuestError> {
    // Whoever debugs stops it for as long as they like.
    let patience = machine.debug.as_ref().map(|_| DEBUGGED_BOOT);
    let deadline = BootDeadline::new(chosen.accelerator, machine.boot_within.or(patience));
    let (mut guest, need) = start_qemu(machine, around, chosen, &deadline)?;
    let console = guest.console_log().to_owned();
    let starved = || need.out_of_memory_error(machine, &console);
    match wait_until_ready(&mut guest, around.stop, &deadline, &starved) {
        Ok(()) => Ok(guest),
        Err(error) => Err(starved().unwrap_or(error)),
    }
}

/// How long the boot of a guest that is debugged may take, where nobody says: a day.
const DEBUGGED_BOOT: Nanos = Nanos(86_400_000_000_000);

/// How long a boot may take: long on a host that is busy with other things.
struct BootDeadline {
    begun: Instant,
    allowed: Duration,
}

impl BootDeadline {
    fn new(accelerator: Accelerator, wanted: Option<Nanos>) -> Self {
        let allowed = wanted.map_or_else(|| suggested_limit(accelerator), Duration::from);
        BootDeadline { begun: Instant::now(), allowed }
    }

    fn is_over(&self) -> bool {
        self.begun.elapsed() > self.allowed
    }

    /// The guest did not come.
    fn missed_error(&self, name: &str, console: &Path) -> GuestError {
        let (seconds, words) = (self.allowed.as_secs(), log_tail(console, 12));
        GuestError::Late { name: name.into(), seconds, console: console.into(), words }
    }
}

fn suggested_limit(accelerator: Accelerator) -> Duration {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0);
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    boot_time_limit(accelerator, load / cpus as f64)
}

/// A boot takes 3 s under TCG and less than one under KVM on an idle host: twenty times that, and as much again for
/// every task that waits for a CPU; measured, loads of 100 tasks a CPU make it 40 times slower.
pub(crate) fn boot_time_limit(accelerator: Accelerator, load: f64) -> Duration {
    let idle = match accelerator {
        Accelerator::Kvm => 20.0,
        Accelerator::Tcg => 60.0,
    };
    Duration::from_secs_f64(idle * (1.0 + load.clamp(0.0, 9.0)))
}

/// From the description to a QEMU that runs.
fn start_qemu(
    machine: &GuestMachine,
    around: &BootOptions<'_>,
    chosen: &ChosenAccelerator,
    deadline: &BootDeadline,
) -> Result<(Guest, MemoryNeed), GuestError> {
    let home = running_guest::guests_folder()?;
    let prefix = format!("{}-", machine.name);
    let private = fs::Permissions::from_mode(0o700);
    let folder =
        tempfile::Builder::new().prefix(&prefix).rand_bytes(4).permissions(private).tempdir_in(&home);
    let folder = folder.map_err(GuestError::file_error(&home))?;
    let lock =
        running_guest::lock_guest_folder(folder.path()).map_err(GuestError::file_error(folder.path()))?;
    fs::create_dir_all(around.logs).map_err(GuestError::file_error(around.logs))?;
    let vsock = machine.vsock.then(|| GuestVsock::listen(&machine.name)).transpose()?;
    let sharing = pack_initramfs(machine, around, folder.path(), vsock.as_ref())?;
    let need = MemoryNeed::of_machine(machine, &folder.path().join("initramfs"))?;
    need.check_machine(machine)?;
    let log = |kind: &str| around.logs.join(format!("{}.{kind}", machine.name));
    let mut server = match sharing {
        Some(RootShare::VirtioFs) => {
            let socket = folder.path().join("share");
            Some(root_share::start_virtiofsd(
                machine,
                around.perflab,
                &socket,
                &log("virtiofsd.log"),
                around.stays,
            )?)
        }
        _ => None,
    };
    let console = log("console.log");
    let bound = ConsoleLogLimiter::watch(console.clone());
    let cid = vsock.as_ref().map(|vsock| vsock.cid);
    let paths = GuestPaths { private: folder.path(), console: &console, cid };
    let arguments = qemu_command_line::qemu_arguments(machine, chosen.accelerator, sharing, &paths);
    let begun = spawn_qemu(machine, around, &arguments, &log("qemu.log")).and_then(|qemu| {
        connect_control_port(qemu, machine, around.stop, folder.path(), deadline, &console, &log("qemu.log"))
    });
    let (qemu, control) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            let gave_up = |server: &mut Child| matches!(server.try_wait(), Ok(Some(_)));
            let share = server.as_mut().is_some_and(gave_up).then(|| GuestError::NoShare {
                name: machine.name.clone(),
                reason: format!("virtiofsd ended: {}", log_tail(&log("virtiofsd.log"), 3).trim()),
            });
            if let Some(server) = &mut server {
                let _ = server.kill();
                let _ = server.wait();
            }
            return Err(share.unwrap_or(error));
        }
    };
    let watch =
        |debug: &GuestDebug| CrashWatch::start(&machine.name, debug, &folder.path().join("watch"), &console);
    let crash_watch = machine.debug.as_ref().map(watch).transpose();
    let note = new_guest_record(machine, chosen, &folder, qemu.id(), &console, around.stays);
    let mut guest = Guest {
        record: note,
        accelerator: chosen.clone(),
        qemu,
        server,
        lock,
        folder: Some(folder),
        control,
        vsock,
        crash_watch: None,
        bound,
    };
    // A guest that cannot be watched ends here, as any.
    guest.crash_watch = crash_watch?;
    Ok((guest.with_record_written()?, need))
}

fn new_guest_record(
    machine: &GuestMachine,
    chosen: &ChosenAccelerator,
    folder: &TempDir,
    pid: u32,
    console: &Path,
    stays: bool,
) -> GuestRecord {
    let id = folder.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    GuestRecord {
        id,
        name: machine.name.clone(),
        pid,
        kernel: machine.kernel.release.clone(),
        image: machine.kernel.image.clone(),
        accelerator: chosen.accelerator,
        cpus: machine.cpus,
        memory: machine.memory,
        console: console.into(),
        stays,
        logs: None,
    }
}

/// Packs the guest's first file system; says how it gets at the host's root.
fn pack_initramfs(
    machine: &GuestMachine,
    around: &BootOptions<'_>,
    folder: &Path,
    vsock: Option<&GuestVsock>,
) -> Result<Option<RootShare>, GuestError> {
    let modules = machine.kernel.modules()?;
    let mut wanted = vec!["virtio_pci", "virtio_console"];
    let mut programs: &[String] = &[];
    let mut sharing = None;
    let root = match &machine.root {
        GuestRootSource::Bare { programs: wanted } => {
            programs = wanted;
            GuestRoot::Bare
        }
        GuestRootSource::Host | GuestRootSource::Folder { .. } => {
            let chosen_share = root_share::choose_root_share(machine, &modules)?;
            sharing = Some(chosen_share);
            let (needed, filesystem) = root_share::root_share_modules(chosen_share);
            wanted.extend(needed);
            GuestRoot::Shared { filesystem: filesystem.into(), tag: qemu_command_line::ROOT_SHARE_TAG.into() }
        }
        GuestRootSource::Image { partition, .. } => {
            let number = if *partition == 0 { String::new() } else { partition.to_string() };
            GuestRoot::Disk { device: PathBuf::from(format!("/dev/vda{number}")) }
        }
    };
    if !machine.disks.is_empty() || matches!(machine.root, GuestRootSource::Image { .. }) {
        wanted.extend(["virtio_blk", "ext4"]);
    }
    if vsock.is_some() {
        wanted.push("vmw_vsock_virtio_transport");
    }
    let network = GuestAddresses::of_network(&machine.network);
    if !network.interfaces.is_empty() {
        if !modules.has("virtio_net") {
            let reason = "its kernel has no driver for the card (CONFIG_VIRTIO_NET); use a kernel with it, or leave `network` out";
            return Err(GuestError::NoNetwork { name: machine.name.clone(), reason: reason.into() });
        }
        wanted.push("virtio_net");
    }
    wanted.extend(machine.load.iter().map(String::as_str));
    let modules = modules.loading_order(&wanted)?;
    let orders = InitConfig {
        name: machine.name.clone(),
        modules: modules.iter().map(|module| module.name.clone()).collect(),
        root,
        work: around.work.clone(),
        vsock: vsock.map(|vsock| vsock.port),
        network,
    };
    let packed = Initramfs { perflab: around.perflab, modules: &modules, orders: &orders, programs };
    packed.write(&folder.join("initramfs"))?;
    Ok(sharing)
}

fn spawn_qemu(
    machine: &GuestMachine,
    around: &BootOptions<'_>,
    arguments: &[String],
    log: &Path,
) -> Result<Child, GuestError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|folder| folder.join(qemu_command_line::QEMU_PROGRAM).is_file()) {
        let hint = "install it (Debian: apt-get install qemu-system-x86)";
        return Err(GuestError::NotInstalled { program: qemu_command_line::QEMU_PROGRAM, hint });
    }
    check_network_backends(machine)?;
    let options = ChildOptions { read_only: false, stays: around.stays };
    let mut command = perflab_observe::child_command(around.perflab, options);
    command.arg(qemu_command_line::QEMU_PROGRAM).args(arguments);
    let output = fs::File::create(log).map_err(GuestError::file_error(log))?;
    let errors = output.try_clone().map_err(GuestError::file_error(log))?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let program = format!("{} for guest {}", qemu_command_line::QEMU_PROGRAM, machine.name);
    perflab_observe::spawn_child(command).map_err(|source| GuestError::Start { program, source })
}

/// Refuses a network that this QEMU cannot give.
fn check_network_backends(machine: &GuestMachine) -> Result<(), GuestError> {
    let network = &machine.network;
    let wanted = [
        (network.switch.is_some(), "stream", "it comes with QEMU 7.2"),
        (network.host, "user", "QEMU was built without libslirp"),
    ];
    if wanted.iter().all(|(is_wanted, ..)| !is_wanted) {
        return Ok(());
    }
    let mut asked = Command::new(qemu_command_line::QEMU_PROGRAM);
    let asked = asked.args(["-netdev", "help"]).stdin(Stdio::null()).output();
    let said = asked.map_err(GuestError::file_error(qemu_command_line::QEMU_PROGRAM))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let missing = wanted
        .iter()
        .find(|(is_wanted, kind, _)| *is_wanted && !said.lines().any(|line| line.trim() == *kind));
    missing.map_or(Ok(()), |(_, kind, why)| {
        let reason = format!("this host's QEMU has no network backend `{kind}` ({why}); leave `network` out");
        Err(GuestError::NoNetwork { name: machine.name.clone(), reason })
    })
}

/// Waits for QEMU's sockets, pins its processors, and connects to the guest's control port.
fn connect_control_port(
    mut qemu: Child,
    machine: &GuestMachine,
    stop: &StopRequest,
    folder: &Path,
    deadline: &BootDeadline,
    console: &Path,
    log: &Path,
) -> Result<(Child, UnixStream), GuestError> {
    let connect = || {
        let control = UnixStream::connect(folder.join("control"))?;
        // Opened after the control port's socket: both are there now.
        folder.join("shell").exists().then_some(control).ok_or(io::ErrorKind::NotFound.into())
    };
    let done = loop {
        if let Ok(Some(status)) = qemu.try_wait() {
            let how = format!("{status}: {}", log_tail(log, 3));
            let name = machine.name.clone();
            return Err(GuestError::Died {
                name,
                how,
                console: console.into(),
                words: log_tail(console, 12),
            });
        }
        match connect() {
            Ok::<_, io::Error>(control) => break Ok(control),
            Err(_) if stop.is_requested() => break Err(GuestError::Stopped { name: machine.name.clone() }),
            Err(_) if !deadline.is_over() => std::thread::sleep(Duration::from_millis(2)),
            Err(_) => break Err(deadline.missed_error(&machine.name, console)),
        }
    };
    let pinned = done.and_then(|control| {
        if !machine.pin.is_empty() {
            qmp::pin_processors(
                machine,
                &mut QmpConnection::connect(&machine.name, &folder.join("qmp"), stop)?,
            )?;
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
const READY_POLL: Duration = Duration::from_secs(1);

/// Waits until the guest says that its work begins; one that `starved` for memory may hang instead of dying.
fn wait_until_ready(
    guest: &mut Guest,
    stop: &StopRequest,
    deadline: &BootDeadline,
    starved: &dyn Fn() -> Option<GuestError>,
) -> Result<(), GuestError> {
    let name = guest.name().to_owned();
    let console = guest.console_log().to_owned();
    let mut looked = Instant::now();
    let mut gave_up = None;
    let go_on = || {
        let mut starving = None;
        if looked.elapsed() > READY_POLL {
            starving = starved();
            looked = Instant::now();
        }
        if stop.is_requested() {
            gave_up = Some(GuestError::Stopped { name: name.clone() });
        } else if starving.is_some() {
            gave_up = starving;
        } else if deadline.is_over() {
            gave_up = Some(deadline.missed_error(&name, &console));
        }
        gave_up.is_none()
    };
    let said = GuestMessage::read(&mut PatientReader { stream: &guest.control, go_on });
    if let Some(reason) = gave_up {
        return Err(reason);
    }
    match said {
        Ok(Some(GuestMessage::Ready)) => Ok(()),
        Ok(Some(GuestMessage::Failed(reason))) => Err(GuestError::Failed { name, reason }),
        other => {
            let how: String = match other {
                Ok(None) => "QEMU closed its port".into(),
                Ok(Some(_)) => "it spoke before it was ready".into(),
                Err(error) => error.to_string(),
            };
            // Where QEMU itself gave up, it said why.
            let said = log_tail(&console.with_file_name(format!("{name}.qemu.log")), 3);
            let how = if said == EMPTY_LOG_TEXT { how } else { format!("{how}: {}", said.trim()) };
            Err(GuestError::Died { name, how, words: log_tail(&console, 12), console })
        }
    }
}

/// A stream that is read until it is cancelled: what comes in parts, or not at all, is given up when asked.
struct PatientReader<'a, F> {
    stream: &'a UnixStream,
    /// Asked many times a second.
    go_on: F,
}

impl<F: FnMut() -> bool> io::Read for PatientReader<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while (self.go_on)() {
            // What can be read is read without waiting.
            if is_readable_soon(self.stream) {
                return io::Read::read(&mut self.stream, buffer);
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

/// Whether there is something to read, or the end; waits a little.
fn is_readable_soon(control: &UnixStream) -> bool {
    let mut polled = [PollFd::new(control, PollFlags::IN)];
    let wait = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    poll(&mut polled, Some(&wait)).is_ok_and(|ready| ready > 0)
}

/// The last lines of a log as inert text, what a guest prints must not steer the user's terminal; a panic's own line
/// first, where the trace that follows it is longer.
pub fn log_tail(log: &Path, lines: usize) -> String {
    let tail = read_log_end(log, LAST_WORDS);
    let text = String::from_utf8_lossy(&tail);
    let shown = |line: &str| {
        let line = remove_control_characters(line.trim_end_matches('\r'));
        format!("  {}", line.chars().take(MAX_LINE_CHARS).collect::<String>())
    };
    let all: Vec<String> = text.lines().map(shown).filter(|line| !line.trim().is_empty()).collect();
    let first = all.len().saturating_sub(lines);
    let (before, last) = all.split_at(first);
    let panic = before.iter().rev().find(|line| line.contains("Kernel panic"));
    let shown: Vec<&str> = panic.into_iter().chain(last).map(String::as_str).collect();
    if shown.is_empty() { EMPTY_LOG_TEXT.into() } else { shown.join("\n") }
}

/// Shown for an empty log.
const EMPTY_LOG_TEXT: &str = "  (nothing)";

/// Characters of a line that are shown.
const MAX_LINE_CHARS: usize = 300;

/// Bytes of a log's end that are read.
const LAST_WORDS: usize = 16 << 10;

/// What a kernel prints when its first file system, or its first process, finds no room.
const MARKS: &[&str] = &["Initramfs unpacking failed", "Out of memory", "deadlocked on memory"];

/// What a console holds of a boot, in bytes of its end.
const BOOT_LOG: usize = 1 << 20;

const MIB: u64 = 1 << 20;

/// What a guest needs to begin.
#[derive(Debug, Clone, Copy)]
struct MemoryNeed {
    kernel: u64,
    initramfs: u64,
}

impl MemoryNeed {
    /// Of this machine with this initramfs.
    fn of_machine(machine: &GuestMachine, initramfs: &Path) -> Result<Self, GuestError> {
        let size = fs::metadata(initramfs).map_err(GuestError::file_error(initramfs))?.len();
        Ok(MemoryNeed { kernel: machine.kernel.boot_memory()?.0, initramfs: size })
    }

    /// The kernel, and the initramfs as it is handed over and as it is unpacked: no guest begins with less.
    fn minimum(self) -> Bytes {
        Bytes(self.kernel + 2 * self.initramfs)
    }

    /// The file system that it is unpacked to takes half of the memory that is left; and something must be left to
    /// work with.
    fn recommended(self) -> Bytes {
        Bytes((self.kernel + 4 * self.initramfs).next_multiple_of(64 * MIB))
    }

    /// Refuses a machine that cannot begin.
    fn check_machine(self, machine: &GuestMachine) -> Result<(), GuestError> {
        if machine.memory.0 >= self.minimum().0 {
            return Ok(());
        }
        let why = format!(
            "its kernel takes {} and its first file system {}, twice while it is unpacked",
            round_to_mebibytes(self.kernel),
            round_to_mebibytes(self.initramfs)
        );
        Err(self.too_small_error(machine, why))
    }

    /// The error of a machine whose console says that its memory did not suffice; none where it does not say so.
    fn out_of_memory_error(self, machine: &GuestMachine, console: &Path) -> Option<GuestError> {
        let text = read_log_end(console, BOOT_LOG);
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().find(|line| MARKS.iter().any(|mark| line.contains(mark)))?;
        let line: String = remove_control_characters(line).chars().take(200).collect();
        Some(self.too_small_error(machine, format!("its kernel says `{}`", line.trim())))
    }

    fn too_small_error(self, machine: &GuestMachine, why: String) -> GuestError {
        let (name, memory) = (machine.name.clone(), machine.memory);
        GuestError::TooSmall { name, memory, why, good: self.recommended() }
    }
}

/// In whole mebibytes.
fn round_to_mebibytes(bytes: u64) -> Bytes {
    Bytes(bytes.next_multiple_of(MIB))
}

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
        let given_up = GuestMessage::read(&mut PatientReader { stream: &ours, go_on }).unwrap_err();
        assert_eq!(given_up.kind(), io::ErrorKind::TimedOut);
        // Its rest makes it whole, however small its parts are.
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let writer = std::thread::spawn(move || {
            for byte in [0, 0, 0, 0, 0] {
                theirs.write_all(&[byte]).unwrap();
            }
        });
        let said = GuestMessage::read(&mut PatientReader { stream: &ours, go_on: || true }).unwrap();
        assert_eq!(said, Some(GuestMessage::Ready));
        writer.join().unwrap();
    }
}
