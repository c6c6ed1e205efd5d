//! An agent over ssh, with the bundle that is copied there.
//!
//! The bundle is perflab, its loader and its libraries, as `tar -x` takes them (ustar): regular files and folders
//! only. It is copied to a temporary folder, run over ssh's standard input and output, and removed. The user's own
//! ssh is used, with its configuration, keys and known hosts; it never asks anything.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use perflab_guest::pack_portable_perflab;
use perflab_model::{StopRequest, remove_control_characters};
use perflab_settings::run_stoppable_command;
use tar::{Builder, EntryType, Header};

use crate::connection::Connection;
use crate::launcher::agent_handle::LaunchedAgent;
use crate::launcher::process::{AgentProcess, StderrTail};
use crate::run_context::LocalMachine;

/// Where it is put there: so short that a loader's path within fits where a program names the system's.
const PREFIX: &str = "/tmp/perflab.";

/// Copies perflab to `address` and starts its agent there.
pub(crate) fn launch_over_ssh(
    name: &str,
    address: &str,
    host: &LocalMachine,
    stop: &StopRequest,
) -> io::Result<LaunchedAgent> {
    let folder = copy_bundle(address, host, stop)?;
    let folder = folder.display();
    let mut command = ssh_command(address, &[]);
    command.arg(format!("{folder}/perflab agent; rm -rf {folder}"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stderr = StderrTail::of_child(&mut child);
    let lost = || io::Error::other("a requested pipe is missing");
    let (stdout, stdin) = (child.stdout.take().ok_or_else(lost)?, child.stdin.take().ok_or_else(lost)?);
    Ok(LaunchedAgent {
        connection: Connection::new(name, stdout, stdin),
        handle: Box::new(AgentProcess::new(child, stderr)),
    })
}

/// A private folder that was not there before, with perflab in it.
fn copy_bundle(address: &str, host: &LocalMachine, stop: &StopRequest) -> io::Result<PathBuf> {
    let folder = format!("{PREFIX}{}", random_suffix());
    let bundle = agent_bundle(&host.perflab, Path::new(&folder))?;
    let take = format!(
        "umask 077; mkdir {folder} && {{ tar -xf - -C {folder} || {{ rm -rf {folder}; exit 1; }}; }}"
    );
    let output = run_stoppable_command(ssh_command(address, &[]).arg(take).stdin(bundle), stop)?;
    if output.status.success() {
        return Ok(folder.into());
    }
    let output = remove_control_characters(&String::from_utf8_lossy(&output.stderr));
    Err(io::Error::other(format!("perflab could not be copied there: {}", output.trim())))
}

/// Six letters that cannot be guessed; where the name is taken all the same, the folder is not made.
fn random_suffix() -> String {
    let mut random = RandomState::new().build_hasher().finish();
    let mut letter = || {
        let letter = b'a' + (random % 26) as u8;
        random /= 26;
        char::from(letter)
    };
    (0..6).map(|_| letter()).collect()
}

/// The user's ssh to an address, with further options of its configuration.
pub(crate) fn ssh_command(address: &str, options: &[&str]) -> Command {
    let mut command = Command::new("ssh");
    // What it would ask could not be seen, let alone answered.
    command.args(["-o", "BatchMode=yes"]);
    for option in options {
        command.args(["-o", option]);
    }
    command.args(["-T", "--", address]);
    command
}

/// The archive, from its beginning. Unpacked in `folder`, its perflab starts there and nowhere else.
fn agent_bundle(perflab: &Path, folder: &Path) -> io::Result<File> {
    let files = pack_portable_perflab(perflab, folder).map_err(io::Error::other)?;
    let mut archive = Builder::new(BufWriter::new(tempfile::tempfile()?));
    add_bundle_file(&mut archive, EntryType::Directory, "lib/", &[])?;
    for (name, content) in &files {
        add_bundle_file(&mut archive, EntryType::Regular, name, content)?;
    }
    let mut file = archive.into_inner()?.into_inner()?;
    file.rewind()?;
    Ok(file)
}

/// Readable only by the user who unpacks it.
fn add_bundle_file(
    archive: &mut Builder<impl Write>,
    kind: EntryType,
    name: &str,
    content: &[u8],
) -> io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(0o700);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(content.len() as u64);
    archive.append_data(&mut header, name, content)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_program_in_its_parcel_starts_with_its_own_loader() {
        // A short path, as a machine of another user has it.
        let home = tempfile::Builder::new().prefix("p").rand_bytes(4).tempdir_in("/tmp").unwrap();
        let program = std::fs::canonicalize("/bin/cat").unwrap();
        let archive = agent_bundle(&program, home.path()).unwrap();
        let unpacked = Command::new("tar").args(["-xf", "-", "-C"]).arg(home.path()).stdin(archive).status();
        assert!(unpacked.unwrap().success());
        let cat = home.path().join("perflab");
        let maps = Command::new(&cat).arg("/proc/self/maps").output().unwrap();
        let maps = String::from_utf8_lossy(&maps.stdout);
        assert!(maps.contains(&home.path().join("ld.so").display().to_string()), "{maps}");
    }
}
