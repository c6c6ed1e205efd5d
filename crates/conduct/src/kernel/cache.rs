//! Where fetched and built kernels lie.

use std::ffi::OsStr;
use std::fs;
use std::io::BufReader;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use perflab_observe::own_directories::{self, OwnFileAccess};
use rustix::fs::{CWD, RenameFlags, fstat, renameat_with};

use super::{KernelError, KernelImage};

pub use perflab_observe::own_directories::cache_directory;

/// The folder of one recipe's kernel.
pub(super) fn kernel_cache_folder(name: &str) -> PathBuf {
    cache_directory().join("kernels").join(name)
}

/// What the cache has of a recipe: its kernel.json, written last, so that half a kernel is none.
pub(super) fn cached_kernel(name: &str) -> Option<KernelImage> {
    cached_kernel_in(&kernel_cache_folder(name))
}

pub(super) fn cached_kernel_in(home: &Path) -> Option<KernelImage> {
    loop {
        // A kernel that somebody else may have put there is not booted: it is fetched anew, or that is refused.
        let folder = own_directories::open_own_directory(home).ok()??;
        let kernel = read_kernel_note(&folder);
        // What was exchanged for another while we looked is removed: the other is there.
        if kernel.is_some() || is_folder_at(&folder, home) {
            return kernel;
        }
    }
}

fn read_kernel_note(folder: &OwnedFd) -> Option<KernelImage> {
    let file = own_directories::open_own_file(folder, OsStr::new("kernel.json"), OwnFileAccess::Read).ok()?;
    serde_json::from_reader(BufReader::new(file)).ok().filter(|kernel: &KernelImage| kernel.image.is_file())
}

/// Whether an open folder still has this path.
fn is_folder_at(folder: &OwnedFd, path: &Path) -> bool {
    let (Ok(opened), Ok(there)) = (fstat(folder), fs::symlink_metadata(path)) else { return true };
    (opened.st_dev, opened.st_ino) == (there.dev(), there.ino())
}

/// Puts a whole kernel in place of whatever was there: who looks meanwhile finds the one or the other. `fill` gets an empty
/// folder beside its final place and says where in it the image lies.
pub(super) fn replace_cached_kernel(
    name: &str,
    fill: impl FnOnce(&Path) -> Result<PathBuf, KernelError>,
) -> Result<KernelImage, KernelError> {
    replace_kernel_in(&kernel_cache_folder(name), name, fill)
}

pub(super) fn replace_kernel_in(
    home: &Path,
    name: &str,
    fill: impl FnOnce(&Path) -> Result<PathBuf, KernelError>,
) -> Result<KernelImage, KernelError> {
    let parent = home.parent().unwrap_or(Path::new("."));
    own_directories::create_own_directory(parent).map_err(KernelError::file_error(parent))?;
    let new = tempfile::Builder::new()
        .prefix(".new-")
        .tempdir_in(parent)
        .map_err(KernelError::file_error(parent))?;
    let found = KernelImage::open(&fill(new.path())?, None)?;
    let at_home = |path: &Path| path.strip_prefix(new.path()).map_or(path.into(), |inside| home.join(inside));
    let (image, modules) = (at_home(&found.image), found.modules.as_deref().map(at_home));
    let kernel = KernelImage { name: name.into(), image, modules, ..found };
    let note = new.path().join("kernel.json");
    let text =
        serde_json::to_vec_pretty(&kernel).map_err(|error| KernelError::file_error(&note)(error.into()))?;
    fs::write(&note, text).map_err(KernelError::file_error(&note))?;
    // What was there goes with the temporary folder, into which it comes.
    if renameat_with(CWD, new.path(), CWD, home, RenameFlags::EXCHANGE).is_err() {
        // There was nothing, or the file system cannot exchange.
        if home.exists() {
            fs::remove_dir_all(home).map_err(KernelError::file_error(home))?;
        }
        fs::rename(new.keep(), home).map_err(KernelError::file_error(home))?;
    }
    Ok(kernel)
}
