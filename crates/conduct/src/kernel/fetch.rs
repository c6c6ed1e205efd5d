//! Kernels of the distribution: the package is downloaded, checked and unpacked, never installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use super::{KernelError, KernelImage, KernelPackage, cache};

/// Fetches the newest image that the package index knows.
pub(super) fn fetch_package(
    name: &str,
    package: &KernelPackage,
    say: &mut dyn FnMut(&str),
) -> Result<KernelImage, KernelError> {
    let image = newest_image_package(&package.apt, say)?;
    cache::replace_cached_kernel(name, |folder| {
        let archive = download_package(&image, folder, say)?;
        unpack_package(&archive, folder, say)?;
        fs::remove_file(&archive).map_err(KernelError::file_error(&archive))?;
        find_file_beginning(&folder.join("boot"), "vmlinuz-")
    })
}

/// What the package names: itself, or the image that a package of the kind "the newest" depends on.
fn newest_image_package(package: &str, say: &mut dyn FnMut(&str)) -> Result<String, KernelError> {
    let said = run_step(Path::new("/"), &["apt-cache", "depends", package], Some(NO_INDEX), say)?;
    let dependencies = said.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let image = dependencies.map(str::trim).find(|name| name.starts_with("linux-image-"));
    Ok(image.unwrap_or(package).to_owned())
}

const NO_INDEX: &str = "is this Debian or Ubuntu, and was `apt-get update` run?";

/// Downloads a package into `folder`, and holds it to the index's checksum: a proxy may have another one.
pub(super) fn download_package(
    package: &str,
    folder: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<PathBuf, KernelError> {
    // In a folder that apt's own user cannot reach, root downloads itself; said on stderr, and harmless.
    run_step(folder, &["apt-get", "download", "-qq", package], Some(NO_INDEX), say)?;
    let archive = find_file_beginning(folder, package)?;
    let version = archive.file_name().and_then(|name| name.to_str()).and_then(|name| name.split('_').nth(1));
    // In file names a colon is written %3a.
    let wanted = format!("{package}={}", version.unwrap_or_default().replace("%3a", ":"));
    let record = run_step(folder, &["apt-cache", "show", &wanted], Some(NO_INDEX), say)?;
    let promised = record.lines().find_map(|line| line.strip_prefix("SHA256: ")).unwrap_or_default();
    check_sha256(&archive, promised.trim())?;
    Ok(archive)
}

fn check_sha256(archive: &Path, wanted: &str) -> Result<(), KernelError> {
    let content = fs::read(archive).map_err(KernelError::file_error(archive))?;
    let found: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
    if found == wanted {
        return Ok(());
    }
    fs::remove_file(archive).map_err(KernelError::file_error(archive))?;
    Err(KernelError::Checksum { path: archive.into(), found, wanted: wanted.into() })
}

/// Unpacks a Debian package.
pub(super) fn unpack_package(
    archive: &Path,
    folder: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<(), KernelError> {
    let argv = ["dpkg", "-x", &archive.display().to_string(), &folder.display().to_string()];
    run_step(folder, &argv, None, say).map(drop)
}

/// The one file of `folder` whose name begins so.
pub(super) fn find_file_beginning(folder: &Path, beginning: &str) -> Result<PathBuf, KernelError> {
    let entries = fs::read_dir(folder).map_err(KernelError::file_error(folder))?;
    let named = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(beginning))
    };
    let found = entries.flatten().map(|entry| entry.path()).find(named);
    found.ok_or_else(|| KernelError::file_error(folder.join(beginning))(std::io::ErrorKind::NotFound.into()))
}

/// Runs one command in `folder` to its end; its standard output comes back.
pub(super) fn run_step(
    folder: &Path,
    argv: &[&str],
    hint: Option<&'static str>,
    say: &mut dyn FnMut(&str),
) -> Result<String, KernelError> {
    let line = argv.join(" ");
    say(&line);
    let failed = |reason: String| KernelError::Command { command: line.clone(), reason, hint };
    let (program, arguments) = argv.split_first().ok_or_else(|| failed("it is empty".into()))?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).env("LC_ALL", "C");
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last: Vec<&str> = said.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    Err(failed(format!("{}: {}", output.status, last.into_iter().rev().collect::<Vec<_>>().join(" | "))))
}
