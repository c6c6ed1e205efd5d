//! Packages of the distribution: an image that is unpacked, sources that are built; downloaded and checked, never installed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use perflab_files::sha256_hex;

use crate::kernel::{KernelError, KernelImage};
use crate::kernel_cache::replace_cached_kernel;
use crate::kernel_recipe::KernelPackage;
use crate::kernel_step::{KernelListener, run_step};

/// Fetches the newest image that the package index knows.
pub(crate) fn fetch_package(
    name: &str,
    package: &KernelPackage,
    tell: &mut KernelListener<'_>,
) -> Result<KernelImage, KernelError> {
    let image = newest_image_package(&package.apt, tell)?;
    replace_cached_kernel(name, |folder| {
        let archive = download_package(&image, folder, tell)?;
        unpack_package(&archive, folder, tell)?;
        fs::remove_file(&archive).map_err(KernelError::file_error(&archive))?;
        KernelImage::open(&find_file_beginning(&folder.join("boot"), "vmlinuz-")?, None)
    })
}

/// What the package names: itself, or the image that a package of the kind "the newest" depends on.
fn newest_image_package(package: &str, tell: &mut KernelListener<'_>) -> Result<String, KernelError> {
    let output = run_step(Path::new("/"), &["apt-cache", "depends", package], Some(NO_INDEX), tell)?;
    let dependencies = output.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let image = dependencies.map(str::trim).find(|name| name.starts_with("linux-image-"));
    Ok(image.unwrap_or(package).to_owned())
}

const NO_INDEX: &str = "is this Debian or Ubuntu, and was `apt-get update` run?";

/// Downloads a package into `folder`, and holds it to the index's checksum: a proxy may have another one.
pub(crate) fn download_package(
    package: &str,
    folder: &Path,
    tell: &mut KernelListener<'_>,
) -> Result<PathBuf, KernelError> {
    // In a folder that apt's own user cannot reach, root downloads itself; said on stderr, and harmless.
    run_step(folder, &["apt-get", "download", "-qq", package], Some(NO_INDEX), tell)?;
    let archive = find_file_beginning(folder, package)?;
    let version = archive.file_name().and_then(|name| name.to_str()).and_then(|name| name.split('_').nth(1));
    // In file names a colon is written %3a.
    let wanted = format!("{package}={}", version.unwrap_or_default().replace("%3a", ":"));
    let record = run_step(folder, &["apt-cache", "show", &wanted], Some(NO_INDEX), tell)?;
    let promised = record.lines().find_map(|line| line.strip_prefix("SHA256: ")).unwrap_or_default();
    check_sha256(&archive, promised.trim())?;
    Ok(archive)
}

fn check_sha256(archive: &Path, wanted: &str) -> Result<(), KernelError> {
    let found = hash_file(archive)?;
    if found == wanted {
        return Ok(());
    }
    fs::remove_file(archive).map_err(KernelError::file_error(archive))?;
    Err(KernelError::Checksum { path: archive.into(), found, wanted: wanted.into() })
}

/// Unpacks a Debian package.
pub(crate) fn unpack_package(
    archive: &Path,
    folder: &Path,
    tell: &mut KernelListener<'_>,
) -> Result<(), KernelError> {
    let argv = ["dpkg", "-x", &archive.display().to_string(), &folder.display().to_string()];
    run_step(folder, &argv, None, tell).map(drop)
}

/// The one file of `folder` whose name begins so.
pub(crate) fn find_file_beginning(folder: &Path, beginning: &str) -> Result<PathBuf, KernelError> {
    let entries = fs::read_dir(folder).map_err(KernelError::file_error(folder))?;
    let named = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(beginning))
    };
    let found = entries.flatten().map(|entry| entry.path()).find(named);
    found.ok_or_else(|| KernelError::file_error(folder.join(beginning))(std::io::ErrorKind::NotFound.into()))
}

/// SHA-256 of a file, in hexadecimal digits.
pub(crate) fn hash_file(path: &Path) -> Result<String, KernelError> {
    File::open(path).and_then(|mut file| sha256_hex(&mut file)).map_err(KernelError::file_error(path))
}

pub(crate) fn format_hash(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
