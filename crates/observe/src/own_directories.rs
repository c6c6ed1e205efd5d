//! Where perflab keeps what it will believe later (state, caches, sockets), and whether nobody else could have
//! written it.
//!
//! An undo journal holds commands that are carried out, and a cache names the kernel that is booted: both are taken
//! only from a folder that belongs to the effective user, reached through folders that nobody else may write, and
//! only from files of that user. Owner and mode are asked of opened descriptors, so that nothing can change between
//! the check and the use.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat, readlinkat, statat};
use rustix::io::Errno;

/// As many symbolic links as the kernel follows.
const MOST_LINKS: u32 = 40;

/// How a folder is opened: nothing but to reach what lies in it.
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Root's state, whatever its variables say: what it changes is the machine's, so that each perflab of root's has to find it.
const OF_ROOT: &str = "/var/lib/perflab";

/// Where the journals of settings lie: `$PERFLAB_STATE`, else for root `/var/lib/perflab`, for others `$XDG_STATE_HOME/perflab`,
/// else `~/.local/state/perflab`.
pub fn state_directory() -> PathBuf {
    if let Some(place) = read_path_variable("PERFLAB_STATE") {
        return place;
    }
    if rustix::process::geteuid().is_root() && !is_in_user_namespace() {
        return OF_ROOT.into();
    }
    state_directory_by_variables()
}

/// Where journals of settings may lie that this user's perflabs wrote: [`state_directory`], and unless that was named, the folders of the
/// user's alone in which others of them would write, with other variables or of an older version.
pub fn state_directories() -> Vec<PathBuf> {
    let mut all = vec![state_directory()];
    if read_path_variable("PERFLAB_STATE").is_some() {
        return all;
    }
    let below = [read_path_variable("HOME").filter(|home| is_usable_home(home)), read_passwd_home()];
    let others = below.into_iter().flatten().map(|home| home.join(OWN_STATE));
    let nowhere = (!rustix::process::geteuid().is_root()).then(|| homeless_directory().join(OWN_STATE));
    for place in std::iter::once(state_directory_by_variables()).chain(others).chain(nowhere) {
        // What another user put there is no more believed than what is not there.
        if !all.contains(&place) && matches!(open_own_directory(&place), Ok(Some(_))) {
            all.push(place);
        }
    }
    all
}

const OWN_STATE: &str = ".local/state/perflab";

fn state_directory_by_variables() -> PathBuf {
    read_trusted_variable("XDG_STATE_HOME")
        .map_or_else(|| directory_in_home(OWN_STATE, OF_ROOT), |base| base.join("perflab"))
}

/// The home that `/etc/passwd` names, where it is this user's.
fn read_passwd_home() -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw().to_string();
    let text = std::fs::read_to_string("/etc/passwd").ok()?;
    let home = text
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|words| words.get(2).is_some_and(|number| *number == user));
    home?.get(5).map(PathBuf::from).filter(|home| is_usable_home(home))
}

/// Where kernels are kept: `$PERFLAB_CACHE`, else `$XDG_CACHE_HOME/perflab`, else `~/.cache/perflab`; for root whose home is not
/// its own, `/var/cache/perflab`.
pub fn cache_directory() -> PathBuf {
    read_path_variable("PERFLAB_CACHE")
        .or_else(|| read_trusted_variable("XDG_CACHE_HOME").map(|base| base.join("perflab")))
        .unwrap_or_else(|| directory_in_home(".cache/perflab", "/var/cache/perflab"))
}

/// Where a user says what all studies take (`hosts.toml`): `$XDG_CONFIG_HOME/perflab`, else `~/.config/perflab`; for root whose home is
/// not its own, `/etc/perflab`.
pub fn configuration_directory() -> PathBuf {
    read_trusted_variable("XDG_CONFIG_HOME")
        .map_or_else(|| directory_in_home(".config/perflab", "/etc/perflab"), |base| base.join("perflab"))
}

/// Where sockets of guests lie: `$XDG_RUNTIME_DIR/perflab`, else for root `/run/perflab`, for others a folder of their own under
/// /tmp: its path has to be short.
pub fn runtime_directory() -> PathBuf {
    let user = rustix::process::geteuid();
    read_trusted_variable("XDG_RUNTIME_DIR").map_or_else(
        || match user.is_root() {
            true => "/run/perflab".into(),
            false => format!("/tmp/perflab-{}", user.as_raw()).into(),
        },
        |base| base.join("perflab"),
    )
}

/// Where what lasts only for a while lies: `$TMPDIR`, else /tmp; without links.
///
/// # Errors
/// It is not there, or another user could replace what lies there, and so say what is read, run and written over.
pub fn temporary_directory() -> io::Result<PathBuf> {
    let path = std::env::temp_dir();
    let folder = open_step_by_step(&path, false)?;
    require_trusted_directory(&fstat(&folder)?, &path)?;
    std::fs::canonicalize(&path)
}

fn read_path_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The folder that a variable names, unless we are root and another user may change what lies there: `sudo -E` and `su -m` keep
/// variables.
fn read_trusted_variable(name: &str) -> Option<PathBuf> {
    let is_root = rustix::process::geteuid().is_root();
    read_path_variable(name).filter(|path| path.is_absolute() && (!is_root || is_root_owned_path(path)))
}

/// Whether a folder, and all those above it, are root's alone: root's own folder in another user's is theirs to replace.
fn is_root_owned_path(path: &Path) -> bool {
    matches!(open_own_directory(path), Ok(Some(_)))
}

fn is_usable_home(path: &Path) -> bool {
    let user = rustix::process::geteuid();
    let is_owner = || statat(CWD, path, AtFlags::empty()).is_ok_and(|found| found.st_uid == user.as_raw());
    path.is_absolute() && if user.is_root() { is_root_owned_path(path) } else { is_owner() }
}

/// `below` the home of the user; for who has no home of its own, `system` for root, and for others a folder under /tmp, which is
/// taken only while it is theirs alone: `setpriv` and `su` leave another user's `HOME`, and that of `nobody` does not exist.
fn directory_in_home(below: &str, system: &str) -> PathBuf {
    match read_path_variable("HOME").filter(|path| is_usable_home(path)) {
        Some(home) => home.join(below),
        None if rustix::process::geteuid().is_root() => system.into(),
        None => homeless_directory().join(below),
    }
}

fn homeless_directory() -> PathBuf {
    format!("/tmp/perflab-{}", rustix::process::geteuid().as_raw()).into()
}

/// Opens a folder of the user's own; what is missing of its path is made, for this user only.
///
/// # Errors
/// It cannot be made, or another user could have written to it.
pub fn create_own_directory(path: &Path) -> io::Result<OwnedFd> {
    let folder = open_step_by_step(path, true)?;
    let found = fstat(&folder)?;
    require_own(&found)?;
    if found.st_mode & 0o077 != 0 {
        fchmod(&folder, Mode::RWXU)?;
    }
    Ok(folder)
}

/// Opens a folder of the user's own; `None` where there is none.
///
/// # Errors
/// Another user could have written to it.
pub fn open_own_directory(path: &Path) -> io::Result<Option<OwnedFd>> {
    let folder = match open_step_by_step(path, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    require_own(&fstat(&folder)?)?;
    Ok(Some(folder))
}

/// How a file of one's own is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnFileAccess {
    /// to read it
    Read,
    /// to read it, and to write at its end
    Append,
    /// to write at its end; it must not be there yet
    New,
}

/// Opens a file in a folder that [`create_own_directory`] or [`open_own_directory`] gave.
///
/// # Errors
/// It cannot be opened, is not a regular file, or another user could have written it.
pub fn open_own_file(folder: &OwnedFd, name: &OsStr, access: OwnFileAccess) -> io::Result<File> {
    let flags = match access {
        OwnFileAccess::Read => OFlags::RDONLY,
        OwnFileAccess::Append => OFlags::RDWR | OFlags::APPEND,
        OwnFileAccess::New => OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL,
    };
    // A FIFO or a device in the file's place is looked at, not waited for.
    let careful = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, name, flags | careful, Mode::RUSR | Mode::WUSR)?;
    let found = fstat(&file)?;
    if found.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Err(io::Error::other("it is not a regular file; it is left alone"));
    }
    require_own(&found)?;
    Ok(File::from(file))
}

/// Refuses what the effective user does not own, or others may write.
fn require_own(found: &Stat) -> io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    if found.st_uid != user {
        let owner = found.st_uid;
        return Err(io::Error::other(format!(
            "it belongs to user {owner}, not to user {user}; it is left alone"
        )));
    }
    if is_writable_by_others(found) {
        let mode = found.st_mode & 0o7777;
        return Err(io::Error::other(format!(
            "others may write to it (mode {mode:04o}); it is left alone until `chmod go-w`"
        )));
    }
    Ok(())
}

/// Whether another user than the owner may write. A group that is the owner's alone (as on Debian and Fedora) counts as the owner.
fn is_writable_by_others(found: &Stat) -> bool {
    let by_group = found.st_mode & 0o020 != 0 && found.st_gid != found.st_uid;
    found.st_mode & 0o002 != 0 || by_group
}

/// Opens the folder at `path` from the root down, each part of it by itself.
fn open_step_by_step(path: &Path, make: bool) -> io::Result<OwnedFd> {
    let path = std::path::absolute(path)?;
    let mut left = split_path(&path);
    let mut current = openat(CWD, "/", FOLDER | OFlags::RDONLY, Mode::empty())?;
    let mut links = 0;
    while let Some(part) = left.pop_front() {
        require_trusted_directory(&fstat(&current)?, &path)?;
        current = match openat(&current, &part, FOLDER | OFlags::RDONLY, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::NOENT) if make => {
                match mkdirat(&current, &part, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                openat(&current, &part, FOLDER | OFlags::RDONLY, Mode::empty())?
            }
            // Linux returns this for a link where a folder is asked for.
            Err(Errno::LOOP | Errno::NOTDIR) => {
                links += 1;
                let target = follow_trusted_link(&current, &part, &path, links)?;
                let from_root = target.is_absolute();
                let mut all = split_path(&target);
                all.append(&mut left);
                left = all;
                if !from_root {
                    continue;
                }
                openat(CWD, "/", FOLDER | OFlags::RDONLY, Mode::empty())?
            }
            Err(Errno::ACCESS) => openat(&current, &part, FOLDER | OFlags::PATH, Mode::empty())?,
            Err(error) => return Err(error.into()),
        };
    }
    Ok(current)
}

/// Where a link leads: one of root's or of the user's own.
fn follow_trusted_link(folder: &OwnedFd, name: &OsStr, path: &Path, links: u32) -> io::Result<PathBuf> {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if found.st_mode & libc::S_IFMT != libc::S_IFLNK {
        return Err(Errno::NOTDIR.into());
    }
    if links > MOST_LINKS {
        return Err(Errno::LOOP.into());
    }
    if !has_trusted_owner(&found) {
        let (owner, name) = (found.st_uid, name.display());
        return Err(io::Error::other(format!(
            "`{name}` in {} is a link of user {owner}'s, which is not followed",
            path.display()
        )));
    }
    let target = readlinkat(folder, name, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

/// Refuses a folder of the path in which another user may replace what lies there.
fn require_trusted_directory(found: &Stat, path: &Path) -> io::Result<()> {
    let sticky = found.st_mode & 0o1000 != 0;
    if has_trusted_owner(found) && (sticky || !is_writable_by_others(found)) {
        return Ok(());
    }
    let (owner, mode) = (found.st_uid, found.st_mode & 0o7777);
    Err(io::Error::other(format!(
        "a folder on the way to {} (user {owner}, mode {mode:04o}) can be changed by another user; name another place",
        path.display()
    )))
}

fn has_trusted_owner(found: &Stat) -> bool {
    let user = rustix::process::geteuid().as_raw();
    found.st_uid == 0 || found.st_uid == user || (found.st_uid == OVERFLOW && is_in_user_namespace())
}

/// The owner, in a user namespace, of what has no owner in it: there, `/` is this user's.
const OVERFLOW: u32 = 65534;

fn is_in_user_namespace() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    !map.split_whitespace().eq(["0", "0", "4294967295"])
}

fn split_path(path: &Path) -> VecDeque<OsString> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn read_file_mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_folder_is_made_for_its_user_only() {
        let base = tempfile::tempdir().unwrap();
        let wanted = base.path().join("a/b");
        create_own_directory(&wanted).unwrap();
        assert_eq!((read_file_mode(&base.path().join("a")), read_file_mode(&wanted)), (0o700, 0o700));
        fs::set_permissions(&wanted, Permissions::from_mode(0o755)).unwrap();
        create_own_directory(&wanted).unwrap();
        assert_eq!(read_file_mode(&wanted), 0o700, "what older versions made is closed");
    }

    #[test]
    fn what_others_may_write_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let wanted = base.path().join("open/state");
        fs::create_dir_all(&wanted).unwrap();
        fs::set_permissions(&wanted, Permissions::from_mode(0o777)).unwrap();
        assert!(create_own_directory(&wanted).is_err() && open_own_directory(&wanted).is_err());
        fs::set_permissions(&wanted, Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(wanted.parent().unwrap(), Permissions::from_mode(0o777)).unwrap();
        assert!(create_own_directory(&wanted).is_err(), "somebody may put another folder in its place");
        fs::set_permissions(wanted.parent().unwrap(), Permissions::from_mode(0o1777)).unwrap();
        create_own_directory(&wanted).unwrap();
    }

    #[test]
    fn own_links_are_followed_and_files_of_other_kinds_are_not_waited_for() {
        let base = tempfile::tempdir().unwrap();
        let real = base.path().join("real");
        let folder = create_own_directory(&real).unwrap();
        symlink("real", base.path().join("link")).unwrap();
        open_own_directory(&base.path().join("link")).unwrap().unwrap();
        symlink("loop", base.path().join("loop")).unwrap();
        assert!(open_own_directory(&base.path().join("loop")).is_err());
        open_own_file(&folder, OsStr::new("file"), OwnFileAccess::New).unwrap();
        assert!(open_own_file(&folder, OsStr::new("file"), OwnFileAccess::New).is_err());
        symlink("file", real.join("alias")).unwrap();
        assert!(open_own_file(&folder, OsStr::new("alias"), OwnFileAccess::Append).is_err());
        rustix::fs::mknodat(CWD, real.join("fifo"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(open_own_file(&folder, OsStr::new("fifo"), OwnFileAccess::Read).is_err());
        assert!(open_own_directory(&base.path().join("nothing")).unwrap().is_none());
    }

    #[test]
    fn what_belongs_to_another_user_is_refused_root() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let base = tempfile::tempdir().unwrap();
        let theirs = base.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        chown(&theirs, Some(OVERFLOW - 1), None).unwrap();
        assert!(create_own_directory(&theirs).is_err(), "the folder");
        assert!(create_own_directory(&theirs.join("below")).is_err(), "a folder in it");
        let link = base.path().join("link");
        fs::create_dir(base.path().join("ours")).unwrap();
        symlink("ours", &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(OVERFLOW - 1), None).unwrap();
        assert!(create_own_directory(&link).is_err(), "a link");
        let ours = create_own_directory(&base.path().join("ours")).unwrap();
        fs::write(base.path().join("ours/file"), "x").unwrap();
        chown(base.path().join("ours/file"), Some(OVERFLOW - 1), None).unwrap();
        assert!(open_own_file(&ours, OsStr::new("file"), OwnFileAccess::Read).is_err(), "a file");
    }
}
