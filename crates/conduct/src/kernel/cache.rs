//! Where fetched and built kernels lie.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Kernel, KernelError};

/// `$PERFLAB_CACHE`, else `$XDG_CACHE_HOME/perflab`, else `~/.cache/perflab`.
pub fn cache_directory() -> PathBuf {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    from("PERFLAB_CACHE")
        .or_else(|| from("XDG_CACHE_HOME").map(|base| base.join("perflab")))
        .or_else(|| from("HOME").map(|home| home.join(".cache/perflab")))
        .unwrap_or_else(|| std::env::temp_dir().join("perflab-cache"))
}

/// The folder of one recipe's kernel.
pub(super) fn home(name: &str) -> PathBuf {
    cache_directory().join("kernels").join(name)
}

/// What the cache has of a recipe: its kernel.json, written last, so that half a kernel is none.
pub(super) fn kept(name: &str) -> Option<Kernel> {
    let text = fs::read(home(name).join("kernel.json")).ok()?;
    serde_json::from_slice(&text).ok().filter(|kernel: &Kernel| kernel.image.is_file())
}

/// Puts a whole kernel in place of whatever was there. `fill` gets an empty folder beside its final place and
/// says where in it the image lies.
pub(super) fn put(
    name: &str,
    fill: impl FnOnce(&Path) -> Result<PathBuf, KernelError>,
) -> Result<Kernel, KernelError> {
    let home = home(name);
    let parent = home.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(KernelError::file(parent))?;
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
