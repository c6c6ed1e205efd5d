//! Where traces lie, one a program and user: `--store`, else `$PERFLAB_PREFETCH`, else for root `/var/lib/perflab/prefetch`, for others
//! `$XDG_STATE_HOME/perflab/prefetch`. What the daemon learns from another user's starts lies in a folder `user-UID` below.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use perflab_observe::own_directories;
use sha2::{Digest as _, Sha256};

use crate::trace::{Known, Start};
use crate::{PrefetchError, file};

const ENDING: &str = "prefetch";

/// A folder of traces.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    /// the user whose starts are remembered there
    user: u32,
}

/// What the name of another user's folder begins with.
const OF_USER: &str = "user-";

impl Store {
    /// The folder that is wanted, or the usual one. Nothing is made yet.
    pub fn locate(explicit: Option<&Path>) -> Self {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let usual = || match rustix::process::geteuid().is_root() {
            true => PathBuf::from("/var/lib/perflab/prefetch"),
            false => own_directories::state().join("prefetch"),
        };
        let folder =
            explicit.map(PathBuf::from).or_else(|| variable("PERFLAB_PREFETCH")).unwrap_or_else(usual);
        let named = folder.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_prefix(OF_USER));
        let user = named.and_then(|user| user.parse().ok());
        Store { folder, user: user.unwrap_or_else(|| rustix::process::geteuid().as_raw()) }
    }

    /// Where starts of this user are remembered: here, or in a folder of theirs below.
    pub fn of_user(&self, user: u32) -> Store {
        match user == self.user {
            true => self.clone(),
            false => Store { folder: self.folder.join(format!("{OF_USER}{user}")), user },
        }
    }

    /// The file of a program: readable by its name, told apart by its path.
    pub fn path(&self, program: &Path) -> PathBuf {
        let name = program.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let plain: String = name
            .chars()
            .filter(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(*letter))
            .take(40)
            .collect();
        let digest = Sha256::digest(program.as_os_str().as_encoded_bytes());
        let hash: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{plain}-{hash}.{ENDING}"))
    }

    /// What is known of a program.
    ///
    /// # Errors
    /// [`PrefetchError::Unknown`] where that is nothing; a trace that cannot be read, or that may be of another user's starts.
    pub fn get(&self, program: &Path) -> Result<Known, PrefetchError> {
        let path = self.path(program);
        if !path.exists() {
            return Err(PrefetchError::Unknown { program: program.display().to_string(), path });
        }
        let known = file::read(&path)?;
        // Before users were told apart, anybody's start taught root's.
        if known.user.map_or(self.user != 0, |user| user == self.user) {
            Ok(known)
        } else {
            Err(PrefetchError::OfAnother { path })
        }
    }

    /// Adds a start to what is known of a program; a trace that is damaged is replaced.
    ///
    /// # Errors
    /// A folder that cannot be made or written.
    pub fn add(&self, program: &Path, start: Start) -> Result<PathBuf, PrefetchError> {
        let fresh = || Known::new(program.display().to_string(), self.user);
        let mut known = match self.get(program) {
            Ok(known) => known,
            Err(newer @ PrefetchError::Newer { .. }) => return Err(newer),
            Err(_) => fresh(),
        };
        known.user = Some(self.user);
        known.remember(start);
        self.make()?;
        let path = self.path(program);
        file::write(&path, &known)?;
        Ok(path)
    }

    /// Puts something else in the place of what is known of a program.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn replace(&self, program: &Path, known: &Known) -> Result<(), PrefetchError> {
        file::write(&self.path(program), known)
    }

    /// What is known of every program but this one; what cannot be read is left out.
    pub fn others(&self, program: &Path) -> Vec<Known> {
        let all = self.all().into_iter().filter_map(|path| file::read(&path).ok());
        all.filter(|known| Path::new(&known.program) != program).collect()
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the folder where there is none.
    ///
    /// # Errors
    /// A folder that cannot be made.
    pub fn make(&self) -> Result<(), PrefetchError> {
        // What somebody starts, and when, is nobody else's business; nor may others say what is read ahead.
        own_directories::make(&self.folder).map(drop).map_err(PrefetchError::io("create", &self.folder))
    }

    /// Forgets a program. Whether there was something to forget.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn forget(&self, program: &Path) -> Result<bool, PrefetchError> {
        let path = self.path(program);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(PrefetchError::io("remove", &path)(error)),
        }
    }

    /// The files of all programs.
    pub fn all(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut all: Vec<PathBuf> =
            entries.filter(|path| path.extension().is_some_and(|ending| ending == ENDING)).collect();
        all.sort();
        all
    }
}

/// The program that a word of a command means, as the shell would find it, without symbolic links.
///
/// # Errors
/// [`PrefetchError::NoProgram`].
pub fn program(word: &OsStr) -> Result<PathBuf, PrefetchError> {
    let path = Path::new(word);
    let found = if word.as_encoded_bytes().contains(&b'/') {
        path.is_file().then(|| path.to_path_buf())
    } else {
        let all = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&all).map(|folder| folder.join(path)).find(|path| path.is_file())
    };
    let found = found.and_then(|path| fs::canonicalize(path).ok());
    found.ok_or_else(|| PrefetchError::NoProgram(path.display().to_string()))
}
