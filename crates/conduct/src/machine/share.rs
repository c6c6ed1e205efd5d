//! The host's root for a guest, read-only.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::command_line::Sharing;
use super::launch::{self, Manner};
use super::{Machine, MachineError};
use crate::kernel::Modules;

/// Where distributions put virtiofsd: Debian's of C, and the later one of Rust.
const SERVERS: &[&str] = &["/usr/libexec/virtiofsd", "/usr/lib/virtiofsd", "/usr/lib/qemu/virtiofsd"];

/// How this kernel gets at the host's root: 9p where it can, as no server is needed then, else virtiofs.
pub(super) fn sharing(machine: &Machine, modules: &Modules) -> Result<Sharing, MachineError> {
    let no = |reason: &str| MachineError::NoShare { name: machine.name.clone(), reason: reason.into() };
    if !modules.has("overlay") {
        return Err(no("its kernel has no overlayfs"));
    }
    if modules.has("9p") && modules.has("9pnet_virtio") {
        return Ok(Sharing::NineP);
    }
    match (modules.has("virtiofs"), server()) {
        (true, Some(_)) => Ok(Sharing::VirtioFs),
        (true, None) => Err(no("its kernel needs virtiofs, and virtiofsd is not installed")),
        (false, _) => Err(no("its kernel has neither 9p nor virtiofs")),
    }
}

/// Modules and file system type of a way of sharing.
pub(super) fn needs(sharing: Sharing) -> (&'static [&'static str], &'static str) {
    match sharing {
        Sharing::NineP => (&["9pnet_virtio", "9p", "overlay"], "9p"),
        Sharing::VirtioFs => (&["virtiofs", "overlay"], "virtiofs"),
    }
}

fn server() -> Option<PathBuf> {
    SERVERS.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// Starts virtiofsd on `socket`. It sees every file system read-only: what the guest's kernel asks it for is the
/// guest's to say.
pub(super) fn serve(
    machine: &Machine,
    perflab: &Path,
    socket: &Path,
    log: &Path,
    stays: bool,
) -> Result<Child, MachineError> {
    let missing = MachineError::NotInstalled { program: "virtiofsd", hint: "it is part of qemu-system-common, or a package of its own" };
    let server = server().ok_or(missing)?;
    let manner = Manner { read_only: rustix::process::geteuid().is_root(), stays };
    let mut command = launch::command(perflab, manner);
    command.arg(&server).args(arguments(&server, socket));
    let log = std::fs::File::create(log).map_err(MachineError::file(log))?;
    let errors = log.try_clone().map_err(MachineError::file(&server))?;
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    let started = |source| MachineError::Start { program: server.display().to_string(), source };
    let mut child = launch::spawn(command).map_err(started)?;
    let begun = Instant::now();
    while !socket.exists() {
        let ended = child.try_wait().map_err(started)?;
        if ended.is_some() || begun.elapsed() > Duration::from_secs(20) {
            let _ = child.kill();
            let _ = child.wait();
            let reason = format!("{} did not start", server.display());
            return Err(MachineError::NoShare { name: machine.name.clone(), reason });
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(child)
}

/// The two servers understand different words.
fn arguments(server: &Path, socket: &Path) -> Vec<String> {
    let socket = socket.display();
    let help = Command::new(server).arg("--help").stdin(Stdio::null()).output();
    let help = help.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let words = if help.contains("--shared-dir") {
        let sandbox = if rustix::process::geteuid().is_root() { "chroot" } else { "none" };
        format!("--socket-path={socket} --shared-dir=/ --sandbox={sandbox} --cache=auto")
    } else {
        format!("--socket-path={socket} -o source=/ -o sandbox=chroot -o cache=auto")
    };
    words.split(' ').map(str::to_owned).collect()
}
