//! Writes where somebody else may have been: a new file of one's own, never what a link of that name leads to.
//!
//! Root refuses an archive whose folders somebody else may replace, since they would decide where root writes.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::ArchiveError;

/// Makes a file that is new. What has its name goes first, be it a link or what a killed perflab left.
pub(crate) fn create_fresh_file(path: &Path) -> io::Result<File> {
    match File::create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            File::create_new(path)
        }
        created => created,
    }
}

/// Refuses, for root, an archive that another user may change: itself, its folder of runs, or the `run` that is to be written.
/// Those that are not there yet are fine. Who became root by `sudo` may.
pub(crate) fn check_folder_owners(runs: &Path, run: Option<&Path>) -> Result<(), ArchiveError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let archive = runs.parent().unwrap_or(runs);
    let caller = std::env::var("SUDO_UID").ok().and_then(|user| user.parse().ok());
    [archive, runs].into_iter().chain(run).try_for_each(|folder| match fs::metadata(folder) {
        Ok(found) if is_changeable_by_others(&found, caller) => Err(ArchiveError::OthersArchive {
            archive: archive.into(),
            folder: folder.into(),
            owner: found.uid(),
            mode: found.mode() & 0o7777,
        }),
        // What cannot be looked at cannot be written either, which says more.
        _ => Ok(()),
    })
}

fn is_changeable_by_others(found: &fs::Metadata, caller: Option<u32>) -> bool {
    let is_owned = found.uid() == 0 || Some(found.uid()) == caller;
    let is_sticky = found.mode() & 0o1000 != 0;
    let by_group = found.mode() & 0o020 != 0 && found.gid() != 0 && found.gid() != found.uid();
    let by_others = found.mode() & 0o002 != 0;
    !is_owned || (!is_sticky && (by_group || by_others))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn a_fresh_file_is_written_in_the_place_of_a_link_and_not_through_it() {
        let home = tempfile::tempdir().unwrap();
        let [victim, name] = ["victim", "name"].map(|name| home.path().join(name));
        fs::write(&victim, "theirs").unwrap();
        symlink(&victim, &name).unwrap();
        io::Write::write_all(&mut create_fresh_file(&name).unwrap(), b"ours").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(&name).unwrap(), "ours");
    }

    #[test]
    fn root_refuses_folders_that_others_may_change_root() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let check = || check_folder_owners(&home.path().join("runs"), None);
        check().unwrap();
        chown(home.path(), Some(65534), None).unwrap();
        assert!(matches!(check(), Err(ArchiveError::OthersArchive { owner: 65534, .. })));
        chown(home.path(), Some(0), Some(65534)).unwrap();
        for (mode, is_fine) in [(0o775, false), (0o777, false), (0o1777, true), (0o755, true)] {
            fs::set_permissions(home.path(), PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(check().is_ok(), is_fine, "{mode:o}");
        }
        assert!(!is_changeable_by_others(&fs::metadata(home.path()).unwrap(), None));
        chown(home.path(), Some(1000), Some(1000)).unwrap();
        assert!(!is_changeable_by_others(&fs::metadata(home.path()).unwrap(), Some(1000)), "who called sudo");
    }
}
