//! Where fetched and built kernels lie.

use std::ffi::OsStr;
use std::fs;
use std::io::BufReader;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use perflab_observe::own_directories::{self, Access};
use rustix::fs::{CWD, RenameFlags, fstat, renameat_with};

use super::{Kernel, KernelError};

pub use perflab_observe::own_directories::cache as cache_directory;

/// The folder of one recipe's kernel.
pub(super) fn home(name: &str) -> PathBuf {
    cache_directory().join("kernels").join(name)
}

/// What the cache has of a recipe: its kernel.json, written last, so that half a kernel is none.
pub(super) fn kept(name: &str) -> Option<Kernel> {
    kept_in(&home(name))
}

pub(super) fn kept_in(home: &Path) -> Option<Kernel> {
    loop {
        // A kernel that somebody else may have put there is not booted: it is fetched anew, or that is refused.
        let folder = own_directories::open(home).ok()??;
        let kernel = read_note(&folder);
        // What was exchanged for another while we looked is removed: the other is there.
        if kernel.is_some() || is_at(&folder, home) {
            return kernel;
        }
    }
}

fn read_note(folder: &OwnedFd) -> Option<Kernel> {
    let file = own_directories::open_file(folder, OsStr::new("kernel.json"), Access::Read).ok()?;
    serde_json::from_reader(BufReader::new(file)).ok().filter(|kernel: &Kernel| kernel.image.is_file())
}

/// Whether an open folder still has this path.
fn is_at(folder: &OwnedFd, path: &Path) -> bool {
    let (Ok(opened), Ok(there)) = (fstat(folder), fs::symlink_metadata(path)) else { return true };
    (opened.st_dev, opened.st_ino) == (there.dev(), there.ino())
}

/// Puts a whole kernel in place of whatever was there: who looks meanwhile finds the one or the other. `fill` gets an empty
/// folder beside its final place and says where in it the image lies.
pub(super) fn put(
    name: &str,
    fill: impl FnOnce(&Path) -> Result<PathBuf, KernelError>,
) -> Result<Kernel, KernelError> {
    put_in(&home(name), name, fill)
}

pub(super) fn put_in(
    home: &Path,
    name: &str,
    fill: impl FnOnce(&Path) -> Result<PathBuf, KernelError>,
) -> Result<Kernel, KernelError> {
    let parent = home.parent().unwrap_or(Path::new("."));
    own_directories::make(parent).map_err(KernelError::file(parent))?;
    let new =
        tempfile::Builder::new().prefix(".new-").tempdir_in(parent).map_err(KernelError::file(parent))?;
    let found = Kernel::open(&fill(new.path())?, None)?;
    let at_home = |path: &Path| path.strip_prefix(new.path()).map_or(path.into(), |inside| home.join(inside));
    let (image, modules) = (at_home(&found.image), found.modules.as_deref().map(at_home));
    let kernel = Kernel { name: name.into(), image, modules, ..found };
    let note = new.path().join("kernel.json");
    let text = serde_json::to_vec_pretty(&kernel).map_err(|error| KernelError::file(&note)(error.into()))?;
    fs::write(&note, text).map_err(KernelError::file(&note))?;
    // What was there goes with the temporary folder, into which it comes.
    if renameat_with(CWD, new.path(), CWD, home, RenameFlags::EXCHANGE).is_err() {
        // There was nothing, or the file system cannot exchange.
        if home.exists() {
            fs::remove_dir_all(home).map_err(KernelError::file(home))?;
        }
        fs::rename(new.keep(), home).map_err(KernelError::file(home))?;
    }
    Ok(kernel)
}
