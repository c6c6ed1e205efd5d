//! The host's root, or a folder of its own, as the root of a guest: read-only, by 9p or virtiofs.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use perflab_observe::ChildOptions;

use crate::error::GuestError;
use crate::kernel::KernelModules;
use crate::machine::GuestMachine;
use crate::qemu_command_line::RootShare;

/// Where distributions put virtiofsd: Debian's of C, and the later one of Rust.
const SERVERS: &[&str] = &["/usr/libexec/virtiofsd", "/usr/lib/virtiofsd", "/usr/lib/qemu/virtiofsd"];

/// How this kernel gets at the host's root: 9p where it can, as no server is needed then, else virtiofs.
pub(crate) fn choose_root_share(
    machine: &GuestMachine,
    modules: &KernelModules,
) -> Result<RootShare, GuestError> {
    let no = |reason: &str| GuestError::NoShare { name: machine.name.clone(), reason: reason.into() };
    if !modules.has("overlay") {
        return Err(no("its kernel has no overlayfs"));
    }
    if modules.has("9p") && modules.has("9pnet_virtio") {
        return Ok(RootShare::NineP);
    }
    match (modules.has("virtiofs"), find_virtiofsd()) {
        (true, Some(_)) => Ok(RootShare::VirtioFs),
        (true, None) => Err(no("its kernel needs virtiofs, and virtiofsd is not installed")),
        (false, _) => Err(no("its kernel has neither 9p nor virtiofs")),
    }
}

/// Modules and file system type of a way of sharing.
pub(crate) fn root_share_modules(sharing: RootShare) -> (&'static [&'static str], &'static str) {
    match sharing {
        RootShare::NineP => (&["9pnet_virtio", "9p", "overlay"], "9p"),
        RootShare::VirtioFs => (&["virtiofs", "overlay"], "virtiofs"),
    }
}

fn find_virtiofsd() -> Option<PathBuf> {
    SERVERS.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// Starts virtiofsd on `socket`, which it gets as its standard input: it sees every file system read-only, as what the
/// guest's kernel asks it for is the guest's to say, so it could not make one.
pub(crate) fn start_virtiofsd(
    machine: &GuestMachine,
    perflab: &Path,
    socket: &Path,
    log: &Path,
    stays: bool,
) -> Result<Child, GuestError> {
    let hint = "it is part of qemu-system-common, or a package of its own";
    let server = find_virtiofsd().ok_or(GuestError::NotInstalled { program: "virtiofsd", hint })?;
    let listener = UnixListener::bind(socket).map_err(GuestError::file_error(socket))?;
    let output = File::create(log).map_err(GuestError::file_error(log))?;
    let errors = output.try_clone().map_err(GuestError::file_error(log))?;
    let options = ChildOptions { read_only: rustix::process::geteuid().is_root(), stays };
    let mut command = perflab_observe::child_command(perflab, options);
    command
        .arg(&server)
        .args(virtiofsd_arguments(&server, machine.root.shared_folder().unwrap_or(Path::new("/"))))
        .stdin(OwnedFd::from(listener))
        .stdout(output)
        .stderr(errors);
    let program = format!("{} for guest {}", server.display(), machine.name);
    perflab_observe::spawn_child(command).map_err(|source| GuestError::Start { program, source })
}

/// The two servers take different options.
fn virtiofsd_arguments(server: &Path, shared: &Path) -> Vec<String> {
    let help = Command::new(server).arg("--help").stdin(Stdio::null()).output();
    let help = help.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let shared = shared.display();
    if help.contains("--shared-dir") {
        let sandbox = if rustix::process::geteuid().is_root() { "chroot" } else { "none" };
        let sandbox = format!("--sandbox={sandbox}");
        return vec!["--fd=0".into(), format!("--shared-dir={shared}"), sandbox, "--cache=auto".into()];
    }
    // FUSE's own way to write a comma in an option.
    let shared = shared.to_string().replace('\\', "\\\\").replace(',', "\\,");
    let options = [format!("source={shared}"), "sandbox=chroot".into(), "cache=auto".into()];
    let options = options.into_iter().flat_map(|option| ["-o".to_owned(), option]);
    [String::from("--fd=0")].into_iter().chain(options).collect()
}
