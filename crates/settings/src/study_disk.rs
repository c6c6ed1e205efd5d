//! The disk that a study's scratch directory lies on, as presets of disks mean it.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::Refusal;
use perflab_observe::disk_below;
use perflab_observe::io::MountTable;
use perflab_observe::mounts::read_ahead_file;

use crate::error::SettingError;

/// A disk, and the one under it where it is a loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyDisk {
    /// Its name in /sys/block: `loop3`, `vda`.
    pub name: String,
    /// The disk that the loop device's image lies on.
    pub under: Option<String>,
    /// The file of its file system's read-ahead, which is not the disk's where the file system has one of its own.
    pub read_ahead: Option<PathBuf>,
}

impl StudyDisk {
    /// The disk that a folder lies on; none where that is no disk: memory, a network.
    pub fn of_folder(folder: &Path) -> Option<Self> {
        let mounts = MountTable::read();
        let mount = mounts.find_by_path(folder)?;
        let name = whole_disk_name(&disk_below(mount)?.to_string())?;
        let image = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).ok();
        let under = image.and_then(|image| {
            let below = mounts.find_by_path(Path::new(image.trim()))?;
            whole_disk_name(&disk_below(below)?.to_string())
        });
        Some(StudyDisk { name, under, read_ahead: read_ahead_file(mount) })
    }
}

/// The disk that a preset's part means, which is one of the study's own.
///
/// # Errors
/// The study has none, or none under it.
pub(crate) fn disk_part(part: Option<&str>, disk: Option<&StudyDisk>) -> Result<String, SettingError> {
    let refuse =
        |what: &str, hint: &str| SettingError::Refused(Refusal { what: what.into(), hint: hint.into() });
    let Some(disk) = disk else {
        return Err(refuse(
            "the study has no disk of its own here",
            "name a disk of /sys/block: `io-scheduler:vda`; or add `[disk]` to the study",
        ));
    };
    if part != Some("under") {
        return Ok(disk.name.clone());
    }
    disk.under.clone().ok_or_else(|| {
        refuse(
            "there is no disk under the study's own",
            "leave `under` out, or use `kind = \"image\"` in `[disk]`",
        )
    })
}

/// The name of a disk, which of a partition is its disk's.
fn whole_disk_name(device: &str) -> Option<String> {
    let own = fs::canonicalize(format!("/sys/dev/block/{device}")).ok()?;
    let whole = if own.join("partition").exists() { own.parent()?.to_owned() } else { own };
    whole.file_name()?.to_str().map(str::to_owned)
}
