//! Where fetched and built kernels lie.

use std::ffi::OsStr;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use perflab_observe::own_directories::{self, Access};

use super::{Kernel, KernelError};

pub use perflab_observe::own_directories::cache as cache_directory;

/// The folder of one recipe's kernel.
pub(super) fn home(name: &str) -> PathBuf {
    cache_directory().join("kernels").join(name)
}

/// What the cache has of a recipe: its kernel.json, written last, so that half a kernel is none.
pub(super) fn kept(name: &str) -> Option<Kernel> {
    // A kernel that somebody else may have put there is not booted: it is fetched anew, or that is refused.
    let folder = own_directories::open(&home(name)).ok()??;
    let file = own_directories::open_file(&folder, OsStr::new("kernel.json"), Access::Read).ok()?;
    serde_json::from_reader(BufReader::new(file)).ok().filter(|kernel: &Kernel| kernel.image.is_file())
}

/// Puts a whole kernel in place of whatever was there. `fill` gets an empty folder beside its final place and
/// says where in it the image lies.
pub(super) fn put(
    name: &str,
    fill: impl FnOnce(&Path) -> Result<PathBuf, KernelError>,
) -> Result<Kernel, KernelError> {
    let home = home(name);
    let parent = home.parent().unwrap_or(Path::new("."));
    own_directories::make(parent).map_err(KernelError::file(parent))?;
    let new =
        tempfile::Builder::new().prefix(".new-").tempdir_in(parent).map_err(KernelError::file(parent))?;
    let image = fill(new.path())?;
    let inside = image.strip_prefix(new.path()).unwrap_or(&image).to_owned();
    if home.exists() {
        fs::remove_dir_all(&home).map_err(KernelError::file(&home))?;
    }
    let new = new.keep();
    fs::rename(&new, &home).map_err(KernelError::file(&home))?;
    let kernel = Kernel { name: name.into(), ..Kernel::open(&home.join(inside), None)? };
    let note = home.join("kernel.json");
    let text = serde_json::to_vec_pretty(&kernel).map_err(|error| KernelError::file(&note)(error.into()))?;
    fs::write(&note, text).map_err(KernelError::file(&note))?;
    Ok(kernel)
}
