//! Where kernels are kept: one folder a kernel, put in place whole, and locks for what several might make at once.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use perflab_model::StopRequest;
use perflab_observe::own_directories::{self, OwnFileAccess, cache_directory};
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, fstat, renameat_with};
use rustix::io::Errno;

use crate::kernel::{KernelError, KernelImage};
use crate::kernel_step::{KernelListener, KernelProgress};

/// The folder of one recipe's kernel.
fn kernel_cache_folder(name: &str) -> PathBuf {
    kernels_directory().join(name)
}

/// Where kernels, their sources and their object files are kept.
pub(crate) fn kernels_directory() -> PathBuf {
    cache_directory().join("kernels")
}

/// What the cache has of a recipe: its kernel.json, written last, so that half a kernel is none.
pub(crate) fn cached_kernel(name: &str) -> Option<KernelImage> {
    cached_kernel_in(&kernel_cache_folder(name))
}

fn cached_kernel_in(home: &Path) -> Option<KernelImage> {
    loop {
        // A kernel that another user may have put there is not booted: it is fetched anew, or that is refused.
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
    let (Ok(opened), Ok(at_path)) = (fstat(folder), fs::symlink_metadata(path)) else { return true };
    (opened.st_dev, opened.st_ino) == (at_path.dev(), at_path.ino())
}

/// Puts a whole kernel in place of whatever was there: a reader in the meantime finds the one or the other. `fill` gets an empty
/// folder beside its final one, and returns the kernel in it.
pub(crate) fn replace_cached_kernel(
    name: &str,
    fill: impl FnOnce(&Path) -> Result<KernelImage, KernelError>,
) -> Result<KernelImage, KernelError> {
    replace_kernel_in(&kernel_cache_folder(name), name, fill)
}

fn replace_kernel_in(
    home: &Path,
    name: &str,
    fill: impl FnOnce(&Path) -> Result<KernelImage, KernelError>,
) -> Result<KernelImage, KernelError> {
    let parent = home.parent().unwrap_or(Path::new("."));
    own_directories::create_own_directory(parent).map_err(KernelError::file_error(parent))?;
    let new = tempfile::Builder::new()
        .prefix(".new-")
        .tempdir_in(parent)
        .map_err(KernelError::file_error(parent))?;
    let found = fill(new.path())?;
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

/// All kernels whose folders begin with `prefix`, newest first.
pub(crate) fn list_cached_kernels(prefix: &str) -> Vec<KernelImage> {
    let entries = fs::read_dir(kernels_directory()).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    let mut kernels: Vec<_> = named
        .filter_map(|entry| {
            let made = entry.metadata().and_then(|data| data.modified()).ok()?;
            Some((made, cached_kernel_in(&entry.path())?))
        })
        .collect();
    kernels.sort_by(|(a, _), (b, _)| b.cmp(a));
    kernels.into_iter().map(|(_, kernel)| kernel).collect()
}

/// The kernels that were built here, newest first.
pub fn list_built_kernels() -> Vec<KernelImage> {
    let mut kernels = list_cached_kernels("");
    kernels.retain(|kernel| kernel.build.is_some());
    kernels
}

/// A folder below that of the kernels, made where it is not there.
pub(crate) fn open_work_folder(kind: &str, name: &str) -> Result<PathBuf, KernelError> {
    let path = kernels_directory().join(kind).join(name);
    own_directories::create_own_directory(&path).map_err(KernelError::file_error(&path))?;
    Ok(path)
}

/// Between two looks at a lock that another holds.
const LOCK_LOOK: Duration = Duration::from_millis(100);

/// Held while something of the cache is made or used: whoever wants it as well waits. The kernel lets go of it when its holder ends,
/// however that ends.
#[derive(Debug)]
pub(crate) struct CacheLock(#[expect(dead_code, reason = "it holds the lock")] File);

impl CacheLock {
    /// Waits for it; whoever holds it is named.
    pub(crate) fn wait(
        kind: &str,
        name: &str,
        tell: &mut KernelListener<'_>,
    ) -> Result<CacheLock, KernelError> {
        let (mut file, path) = open_lock(kind, name)?;
        if !try_lock(&file, &path)? {
            tell(KernelProgress::Step(&describe_holder(&mut file)));
            let locked = flock(&file, FlockOperation::LockExclusive).map_err(std::io::Error::from);
            locked.map_err(KernelError::file_error(&path))?;
        }
        CacheLock::sign(file, &path)
    }

    /// Waits for it until somebody asks to stop: none then.
    pub(crate) fn wait_until(
        kind: &str,
        name: &str,
        stop: &StopRequest,
        tell: &mut KernelListener<'_>,
    ) -> Result<Option<CacheLock>, KernelError> {
        let (mut file, path) = open_lock(kind, name)?;
        let mut is_told = false;
        while !try_lock(&file, &path)? {
            if !is_told {
                tell(KernelProgress::Step(&describe_holder(&mut file)));
                is_told = true;
            }
            stop.wait_for(LOCK_LOOK);
            if stop.is_requested() {
                return Ok(None);
            }
        }
        CacheLock::sign(file, &path).map(Some)
    }

    /// Takes it where nobody has it.
    pub(crate) fn take(kind: &str, name: &str) -> Result<Option<CacheLock>, KernelError> {
        let (file, path) = open_lock(kind, name)?;
        let is_free = try_lock(&file, &path)?;
        is_free.then(|| CacheLock::sign(file, &path)).transpose()
    }

    /// Has whoever waits know who holds it.
    fn sign(mut file: File, path: &Path) -> Result<CacheLock, KernelError> {
        let noted = file
            .set_len(0)
            .and_then(|()| std::io::Seek::rewind(&mut file))
            .and_then(|()| write!(file, "{}", std::process::id()));
        noted.map_err(KernelError::file_error(path))?;
        Ok(CacheLock(file))
    }
}

fn open_lock(kind: &str, name: &str) -> Result<(File, PathBuf), KernelError> {
    let folder = open_work_folder("locks", "")?;
    let path = folder.join(format!("{kind}-{name}"));
    let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    Ok((opened.map_err(KernelError::file_error(&path))?, path))
}

/// Whether it is taken now; not where another holds it. A file system without locks is an error, lest somebody wait for ever.
fn try_lock(file: &File, path: &Path) -> Result<bool, KernelError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(error) => Err(KernelError::file_error(path)(error.into())),
    }
}

/// What is said while another holds a lock. What cannot be read is not named.
fn describe_holder(file: &mut File) -> String {
    let mut holder = String::new();
    let _ = file.read_to_string(&mut holder);
    format!("waiting for process {}, which makes it as well", holder.trim())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// An image with its modules, as a package unpacks them; the image.
    fn unpack_example_kernel(folder: &Path) -> PathBuf {
        let image = folder.join("boot/vmlinuz");
        std::fs::create_dir(folder.join("boot")).unwrap();
        let mut head = vec![0_u8; 0x1000];
        head[0x202..0x206].copy_from_slice(b"HdrS");
        head[0x20e..0x210].copy_from_slice(&0x600_u16.to_le_bytes());
        head[0x800..0x80c].copy_from_slice(b"6.1.0-test (");
        std::fs::write(&image, &head).unwrap();
        std::fs::create_dir_all(folder.join("lib/modules/6.1.0-test/kernel")).unwrap();
        image
    }

    #[test]
    fn the_release_is_read_from_the_boot_header() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = KernelImage::open(&unpack_example_kernel(folder.path()), None).unwrap();
        let modules = folder.path().join("lib/modules/6.1.0-test");
        assert_eq!((kernel.release.as_str(), kernel.modules), ("6.1.0-test", Some(modules)));
    }

    #[test]
    fn a_kernel_that_is_fetched_again_is_there_all_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("kernels/own");
        let put = || {
            replace_kernel_in(&home, "own", |new| KernelImage::open(&unpack_example_kernel(new), None))
                .unwrap()
        };
        let first = put();
        assert_eq!(first.image, home.join("boot/vmlinuz"));
        assert_eq!(first.modules, Some(home.join("lib/modules/6.1.0-test")));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..300).for_each(|_| assert_eq!(put(), first));
                done.store(true, Ordering::Release);
            });
            while !done.load(Ordering::Acquire) {
                assert_eq!(cached_kernel_in(&home).as_ref(), Some(&first));
            }
        });
        let left: Vec<_> = std::fs::read_dir(folder.path().join("kernels")).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}
