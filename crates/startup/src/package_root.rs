//! A root directory whose packages lie on a disk of one's choice, so that a startup can be measured on a disk that
//! the machine does not run from.
//!
//! The files of packages (of Debian and its like, as dpkg lists them) are copied there; whatever belongs to none of
//! them (settings, caches that installing makes) is this machine's, seen through an overlay, and so are devices,
//! processes and temporary files. Nothing is installed.
//!
//! It mounts, and so needs a mount namespace of its own (`unshare --mount`), which takes everything away with its
//! end.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use perflab_model::error_class::{Classify, ErrorClass};
use rustix::mount::{MountFlags, mount, mount_bind_recursive};

/// What programs want from the machine itself.
const SHARED: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/tmp"];

/// Compiled Python, which no package owns and every startup reads.
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
    /// The namespace is the host's.
    #[error("mounts would be seen by everybody: run it in `unshare --mount --propagation slave`")]
    Shared,
}

impl Classify for PackageRootError {
    fn class(&self) -> ErrorClass {
        match self {
            PackageRootError::Packages(error) => error.class(),
            PackageRootError::Copy { .. } | PackageRootError::Mount { .. } | PackageRootError::Shared => {
                ErrorClass::Environment
            }
        }
    }
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
    /// makes its settings, and may end for another to follow. It is not a startup as users know them.
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

    /// Gives every directory its modification time on this machine, once all is in it: caches of what lies in a directory (fonts) are
    /// taken for old ones otherwise, and made anew at each startup.
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
        // What was removed after installing is not part of a startup.
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
        let is_folder = |place: &&&str| Path::new(place).is_dir();
        for place in SHARED.iter().filter(is_folder) {
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

/// What programs read at no start: documentation, and translations.
const UNREAD: [&str; 5] =
    ["/usr/share/doc/", "/usr/share/man/", "/usr/share/info/", "/usr/share/locale/", "/usr/share/lintian/"];

/// One line a package, also for those that were removed and left settings, and for those of other architectures: whether it
/// is there, for what, its name, the name that no other architecture's has, whether everybody needs it, what it needs, what
/// it stands for.
const FORMAT: &str = "${db:Status-Status}\t${Architecture}\t${Package}\t${binary:Package}\t${Essential}\t${Pre-Depends}, \
                      ${Depends}\t${Provides}\n";

/// Why the files of packages are not known.
#[derive(Debug, thiserror::Error)]
pub enum PackageListError {
    /// Not a system of dpkg's, or dpkg failed.
    #[error("dpkg lists no files of packages: {0}; --package works on Debian and its derivatives")]
    Dpkg(String),
    /// Not installed.
    #[error("the package `{0}` is not installed; `apt install {0}` does it")]
    Missing(String),
}

impl Classify for PackageListError {
    fn class(&self) -> ErrorClass {
        match self {
            PackageListError::Dpkg(_) | PackageListError::Missing(_) => ErrorClass::Environment,
        }
    }
}

/// The files of packages, of everything that they need, and of what every system needs: names of files, links and
/// directories, each directory before what is in it.
///
/// # Errors
/// No dpkg, or a package that is not installed.
pub fn package_files(names: &[String]) -> Result<Vec<PathBuf>, PackageListError> {
    let (told, own) = (
        query_packages("dpkg-query", &["-W", "-f", FORMAT])?,
        query_packages("dpkg", &["--print-architecture"])?,
    );
    let all = InstalledPackages::parse(&told, own.trim()).dependency_closure(names)?;
    let listed = query_packages("dpkg-query", &[&["-L"], &all[..]].concat())?;
    let is_listed =
        |line: &&str| line.starts_with('/') && !UNREAD.iter().any(|place| line.starts_with(place));
    let files: BTreeSet<PathBuf> =
        listed.lines().filter(is_listed).filter(|line| *line != "/.").map(PathBuf::from).collect();
    Ok(files.into_iter().collect())
}

fn query_packages<T: AsRef<std::ffi::OsStr>>(
    program: &str,
    arguments: &[T],
) -> Result<String, PackageListError> {
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").output();
    let failed = |why: &str| PackageListError::Dpkg(format!("{program}: {why}"));
    let output = output.map_err(|error| failed(&error.to_string()))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(failed(stderr.lines().next().unwrap_or("it failed")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What is installed, by name.
struct InstalledPackages<'a> {
    packages: BTreeMap<&'a str, InstalledPackage<'a>>,
    essential: Vec<&'a str>,
    /// who stands for a name that no package has
    stands: BTreeMap<&'a str, &'a str>,
}

struct InstalledPackage<'a> {
    /// with its architecture, where there may be several
    full_name: &'a str,
    /// the alternatives of each need
    needs: Vec<Vec<&'a str>>,
}

impl<'a> InstalledPackages<'a> {
    /// Those of one architecture, and of all.
    fn parse(text: &'a str, own: &str) -> Self {
        let mut all =
            InstalledPackages { packages: BTreeMap::new(), essential: Vec::new(), stands: BTreeMap::new() };
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let ["installed", architecture, name, full_name, essential, needs, stands] = fields[..] else {
                continue;
            };
            if ![own, "all"].contains(&architecture) {
                continue;
            }
            let needs = needs.split(',').map(parse_alternatives).collect();
            all.packages.insert(name, InstalledPackage { full_name, needs });
            all.essential.extend((essential == "yes").then_some(name));
            all.stands.extend(stands.split(',').flat_map(parse_alternatives).map(|stands| (stands, name)));
        }
        all
    }

    fn find_provider(&self, name: &str) -> Option<&'a str> {
        let own = self.packages.get_key_value(name).map(|(name, _)| *name);
        own.or_else(|| self.stands.get(name).copied())
    }

    /// The full names of packages, of what they need, and of essential ones.
    fn dependency_closure(&self, names: &[String]) -> Result<Vec<&'a str>, PackageListError> {
        let mut found: BTreeMap<&str, &'a str> = BTreeMap::new();
        let mut open: Vec<&str> = self.essential.clone();
        for name in names {
            open.push(self.find_provider(name).ok_or_else(|| PackageListError::Missing(name.clone()))?);
        }
        while let Some((name, package)) = open.pop().and_then(|name| self.packages.get_key_value(name)) {
            if found.insert(name, package.full_name).is_none() {
                open.extend(
                    package
                        .needs
                        .iter()
                        .filter_map(|need| need.iter().find_map(|one| self.find_provider(one))),
                );
            }
        }
        Ok(found.into_values().collect())
    }
}

/// `libblas3 (>= 3) | libblas.so.3` without versions and architectures.
fn parse_alternatives(need: &str) -> Vec<&str> {
    let bare = need.split('|').map(str::trim).filter(|one| !one.is_empty());
    bare.filter_map(|one| one.split([' ', '(', ':']).next()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

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

    #[test]
    fn needs_of_needs_are_there_by_whatever_name_they_have() {
        let text = "installed\tall\tapp\tapp\tno\t, lib (>= 2), blas3 | blas.so.3, gone | sh:any\t\n\
                    installed\tamd64\tlib\tlib:amd64\tno\t\t\ninstalled\ti386\tlib\tlib:i386\tno\talien\t\n\
                    config-files\tamd64\tblas3\tblas3\tno\t\t\nconfig-files\tamd64\tremoved\tremoved\tno\t\t\n\
                    installed\tamd64\topenblas\topenblas\tno\t, lib\tblas.so.3 (= 1), other\n\
                    installed\tamd64\tdash\tdash\tyes\t\tsh\ninstalled\tamd64\talien\talien\tno\t\t\n";
        let all = InstalledPackages::parse(text, "amd64");
        let found = all.dependency_closure(&["app".into()]).unwrap();
        assert_eq!(found, ["app", "dash", "lib:amd64", "openblas"]);
        for missing in ["no-such", "removed"] {
            let error = all.dependency_closure(&[missing.into()]).unwrap_err();
            assert!(error.to_string().contains(&format!("`apt install {missing}`")), "{error}");
        }
    }
}
