//! Control groups of perflab's own that go: removed with those below them, and controllers that were turned on for them.

use std::fs;
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::error::SettingError;

/// Between two attempts to remove a group: who ended may not be gone.
const PAUSE: Duration = Duration::from_millis(20);

/// Removes a group and those below it, if it is there. Whoever is in them moves to `home`.
///
/// # Errors
/// Somebody cannot be moved, or comes again and again.
pub(crate) fn remove_control_group(path: &Path, home: &Path) -> Result<(), SettingError> {
    let failed = |source| SettingError::Folder { path: path.into(), source };
    let below = match fs::read_dir(path) {
        Ok(entries) => entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    for group in below {
        remove_control_group(&group.path(), home)?;
    }
    let mut last = Ok(());
    for _ in 0..100 {
        let members = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        for pid in members.lines() {
            // One that has ended meanwhile is none.
            let _ = fs::write(home.join("cgroup.procs"), pid);
        }
        last = fs::remove_dir(path);
        match &last {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) => sleep(PAUSE),
        }
    }
    last.map_err(failed)
}

/// Takes a controller from the groups below one, unless somebody uses it by now.
pub(crate) fn disable_controller(group: &Path, controller: &str) {
    // EBUSY: another group gives it to those below it.
    let _ = fs::write(group.join("cgroup.subtree_control"), format!("-{controller}"));
}
