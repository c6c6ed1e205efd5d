//! A root directory whose packages lie on a disk of one's choice, so that a start can be measured on a disk that the machine does
//! not run from. The files of packages are copied there; whatever belongs to none of them (settings, caches that
//! installing makes) is this machine's, seen through an overlay, and so are devices, processes and temporary files.
//!
//! It mounts, and so wants a mount namespace of its own (`unshare --mount`), which takes everything away with its end.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount, mount_bind_recursive};

use super::packages::{PackageListError, package_files};

/// What programs want from the machine itself.
const SHARED: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/tmp"];
/// Compiled Python, which no package owns and every start reads.
const COMPILED: &str = "__pycache__";

/// Why there is no such root.
#[derive(Debug, thiserror::Error)]
pub enum PackageRootError {
    /// The packages are not known.
    #[error(transparent)]
    Packages(#[from] PackageListError),
    /// A file cannot be copied: no room, mostly.
    #[error("cannot copy {} to {}: {source}", from.display(), to.display())]
    Copy {
        /// the file
        from: PathBuf,
        /// its copy
        to: PathBuf,
        /// why
        source: io::Error,
    },
    /// Refused by the kernel.
    #[error("cannot mount {}: {source}; it needs root, and a kernel with overlay", at.display())]
    Mount {
        /// where
        at: PathBuf,
        /// why
        source: io::Error,
    },
    /// The namespace is everybody's.
    #[error("mounts would be seen by everybody: run it in `unshare --mount --propagation slave`")]
    Shared,
}

/// A root directory over a disk.
#[derive(Debug)]
pub struct PackageRoot {
    disk: PathBuf,
    root: PathBuf,
}

impl PackageRoot {
    /// Copies what packages have to `disk`, unless that was done, and mounts the root.
    ///
    /// # Errors
    /// Packages that are not installed, a full disk, no root, a mount namespace that others are in.
    pub fn prepare(disk: &Path, packages: &[String]) -> Result<Self, PackageRootError> {
        if !has_own_mount_namespace() {
            return Err(PackageRootError::Shared);
        }
        let inside = PackageRoot { disk: disk.into(), root: disk.join("seen") };
        let done = disk.join(format!("copied-{}", packages.join("-")));
        if !done.exists() {
            fs::create_dir_all(inside.upper_folder()).map_err(copy_error(disk, &inside.upper_folder()))?;
            inside.copy_files(&package_files(packages)?)?;
            fs::write(&done, "").map_err(copy_error(&done, &done))?;
            rustix::fs::sync();
        }
        inside.mount_root()?;
        Ok(inside)
    }

    /// The command, as it is started in this root.
    pub fn command_in_root(&self, command: &[OsString]) -> Vec<OsString> {
        let chroot = [OsString::from("chroot"), self.root.clone().into_os_string()];
        chroot.into_iter().chain(command.iter().cloned()).collect()
    }

    /// Where a file of this machine's root lies on the disk.
    pub fn copy_path(&self, path: &Path) -> PathBuf {
        self.upper_folder().join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Does `start` if no program of this file was started here before, and remembers that it was: an application's first start
    /// makes its settings, and may end for another to follow. It is no start as users know them.
    ///
    /// # Errors
    /// What `start` says, or a disk on which nothing can be remembered.
    pub fn run_first_startup<E: From<PackageRootError>>(
        &self,
        program: &Path,
        start: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let name = program.to_string_lossy().replace('/', "-");
        let started = self.disk.join(format!("started{name}"));
        if started.exists() {
            return Ok(());
        }
        start()?;
        Ok(fs::write(&started, "").map_err(copy_error(&started, &started))?)
    }

    fn upper_folder(&self) -> PathBuf {
        self.disk.join("files")
    }

    fn copy_files(&self, files: &[PathBuf]) -> Result<(), PackageRootError> {
        let mut compiled = BTreeSet::new();
        for file in files {
            self.copy_file(file)?;
            if file.extension().is_some_and(|ending| ending == "py") {
                compiled.extend(file.parent().map(|folder| folder.join(COMPILED)));
            }
        }
        let folders = compiled.iter().filter_map(|folder| fs::read_dir(folder).ok());
        folders.flatten().flatten().try_for_each(|entry| self.copy_file(&entry.path()))?;
        self.copy_folder_times(Path::new("/")).map_err(copy_error(Path::new("/"), &self.upper_folder()))
    }

    /// Gives every directory the age that it has here, once all is in it: caches of what lies in a directory (fonts) are
    /// taken for old ones otherwise, and made anew at each start.
    fn copy_folder_times(&self, folder: &Path) -> io::Result<()> {
        // What a program made on the disk (its settings) has no original.
        let Ok(original) = fs::metadata(folder) else { return Ok(()) };
        let to = self.copy_path(folder);
        for entry in fs::read_dir(&to)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                self.copy_folder_times(&folder.join(entry.file_name()))?;
            }
        }
        copy_mtime(&to, &original)
    }

    /// A file under the name that its directory really has: `/lib` may be a link to `/usr/lib`.
    fn copy_file(&self, file: &Path) -> Result<(), PackageRootError> {
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return Ok(()) };
        // What was removed after installing is no part of a start.
        let (Ok(folder), Ok(about)) = (fs::canonicalize(folder), fs::symlink_metadata(file)) else {
            return Ok(());
        };
        let to = self.copy_path(&folder.join(name));
        let done = self.make_folder(&folder).and_then(|()| match () {
            () if to.symlink_metadata().is_ok() => Ok(()),
            () if about.is_symlink() => {
                fs::read_link(file).and_then(|link| std::os::unix::fs::symlink(link, &to))
            }
            // Compiled Python is only good for a source of the age that it notes.
            () if about.is_file() => fs::copy(file, &to).and_then(|_| copy_mtime(&to, &about)),
            () if about.is_dir() => self.make_folder(&folder.join(name)),
            () => Ok(()),
        });
        done.map_err(copy_error(file, &to))
    }

    /// A directory, with those above it, as open or closed as here.
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        let to = self.copy_path(folder);
        if to.is_dir() {
            return Ok(());
        }
        if let Some(above) = folder.parent() {
            self.make_folder(above)?;
        }
        fs::create_dir(&to)?;
        fs::set_permissions(&to, fs::Permissions::from_mode(fs::metadata(folder)?.mode()))
    }

    fn mount_root(&self) -> Result<(), PackageRootError> {
        let work = self.disk.join("work");
        for folder in [&self.root, &work] {
            fs::create_dir_all(folder).map_err(copy_error(folder, folder))?;
        }
        let options =
            format!("lowerdir=/,upperdir={},workdir={}", self.upper_folder().display(), work.display());
        let options = std::ffi::CString::new(options).unwrap_or_default();
        let at = &self.root;
        let failed = |at: &Path, error: rustix::io::Errno| PackageRootError::Mount {
            at: at.into(),
            source: error.into(),
        };
        mount("overlay", at, "overlay", MountFlags::empty(), options.as_c_str())
            .map_err(|error| failed(at, error))?;
        let here = |place: &&&str| Path::new(place).is_dir();
        for place in SHARED.iter().filter(here) {
            let at = self.root.join(place.trim_start_matches('/'));
            mount_bind_recursive(*place, &at).map_err(|error| failed(&at, error))?;
        }
        Ok(())
    }
}

/// Gives a copy the age of what it was made from.
fn copy_mtime(copy: &Path, original: &fs::Metadata) -> io::Result<()> {
    fs::File::open(copy)?.set_modified(original.modified()?)
}

fn copy_error(from: &Path, to: &Path) -> impl FnOnce(io::Error) -> PackageRootError {
    let (from, to) = (from.into(), to.into());
    move |source| PackageRootError::Copy { from, to, source }
}

/// Whether this process has mounts of its own: in another namespace than the first process, or than its parent.
fn has_own_mount_namespace() -> bool {
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    let of = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let own = of("self");
    ["1", &parent.to_string()].iter().filter_map(|pid| of(pid)).any(|other| own.as_ref() != Some(&other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    #[test]
    fn what_a_program_made_on_the_disk_does_not_hinder_further_packages() {
        let (machine, disk) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = fs::canonicalize(machine.path()).unwrap();
        let files = ["first", "second"].map(|name| folder.join(name));
        files.iter().for_each(|file| fs::write(file, "").unwrap());
        let age = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        fs::File::open(&folder).unwrap().set_modified(age).unwrap();

        let inside = PackageRoot { disk: disk.path().into(), root: disk.path().join("seen") };
        let copy = inside.copy_path(&folder);
        inside.copy_files(&files[..1]).unwrap();
        fs::create_dir_all(copy.join("settings/own")).unwrap();
        assert!(copy.metadata().unwrap().modified().unwrap() > age, "the directory is young again");
        inside.copy_files(&files[1..]).unwrap();
        assert_eq!(copy.metadata().unwrap().modified().unwrap(), age);
        assert!(copy.join("second").is_file() && copy.join("settings/own").is_dir());
    }
}
