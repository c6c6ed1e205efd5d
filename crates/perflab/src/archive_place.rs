//! Where the archive is that verbs work on: a folder, or an archive in object storage, of which this machine has a copy.

use std::path::{Path, PathBuf};

use perflab_archive::Archive;
use perflab_remote::RemoteUrl;

use crate::failure::{Failure, UsageError};

/// The archive of a command line.
#[derive(Debug, Clone)]
pub struct ArchivePlace {
    /// the folder: the archive itself, or the copy of it
    pub path: PathBuf,
    /// what it is a copy of
    pub remote: Option<RemoteUrl>,
}

impl ArchivePlace {
    /// What `--archive` names, `$PERFLAB_ARCHIVE`, or the folder that is used where neither is given.
    ///
    /// # Errors
    /// A URL that is no archive's; no folder for the copy of one.
    pub fn locate(explicit: Option<&Path>) -> Result<Self, Failure> {
        let path = Archive::locate(explicit);
        let Some(text) = path.to_str().filter(|text| RemoteUrl::is_meant(text)) else {
            return Ok(ArchivePlace { path, remote: None });
        };
        let url = RemoteUrl::parse(text)?;
        let data = data_folder().ok_or_else(|| {
            UsageError::new(
                format!("there is no folder for the copy of {url}"),
                "set HOME or XDG_DATA_HOME to an absolute path",
            )
        })?;
        Ok(ArchivePlace { path: url.copy_below(&data), remote: Some(url) })
    }
}

/// perflab's folder of the user's data.
fn data_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = variable("XDG_DATA_HOME").or_else(|| Some(variable("HOME")?.join(".local/share")))?;
    data.is_absolute().then(|| data.join("perflab"))
}
