//! The host's root for a guest, read-only.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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

/// Starts virtiofsd on `socket`, which it gets as its standard input: it sees every file system read-only, as what the
/// guest's kernel asks it for is the guest's to say, so it could not make one.
pub(super) fn serve(
    machine: &Machine,
    perflab: &Path,
    socket: &Path,
    log: &Path,
    stays: bool,
) -> Result<Child, MachineError> {
    let hint = "it is part of qemu-system-common, or a package of its own";
    let server = server().ok_or(MachineError::NotInstalled { program: "virtiofsd", hint })?;
    let listener = UnixListener::bind(socket).map_err(MachineError::file(socket))?;
    let output = File::create(log).map_err(MachineError::file(log))?;
    let errors = output.try_clone().map_err(MachineError::file(log))?;
    let manner = Manner { read_only: rustix::process::geteuid().is_root(), stays };
    let mut command = launch::command(perflab, manner);
    command
        .arg(&server)
        .args(arguments(&server))
        .stdin(OwnedFd::from(listener))
        .stdout(output)
        .stderr(errors);
    let program = format!("{} for guest {}", server.display(), machine.name);
    launch::spawn(command).map_err(|source| MachineError::Start { program, source })
}

/// The two servers understand different words.
fn arguments(server: &Path) -> Vec<String> {
    let help = Command::new(server).arg("--help").stdin(Stdio::null()).output();
    let help = help.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let words = if help.contains("--shared-dir") {
        let sandbox = if rustix::process::geteuid().is_root() { "chroot" } else { "none" };
        format!("--fd=0 --shared-dir=/ --sandbox={sandbox} --cache=auto")
    } else {
        "--fd=0 -o source=/ -o sandbox=chroot -o cache=auto".into()
    };
    words.split(' ').map(str::to_owned).collect()
}
