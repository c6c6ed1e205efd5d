//! What a workload works on, made once and restored before each iteration.
//!
//! A set is a folder below `{{ kept }}`, named after what makes it: `content`, and beside it `made`, which is written last and lists
//! every file with its checksum. A set without it was interrupted and is made anew; so is one that is not as it was made, and that is said.

use std::collections::BTreeSet;
use std::fs::{self, File, FileTimes};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use indexmap::IndexMap;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::expression::ExpressionScope;
use perflab_model::study::DataLifetime;
use perflab_model::{Nanos, Scalar};
use sha2::{Digest as _, Sha256};

use crate::data_spec::DATA_COMMAND;
use crate::definition::WorkloadDefinition;
use crate::error::WorkloadError;
use crate::execution::execute_invocation;
use crate::invocation::{HostPaths, Invocation};

/// The data of an iteration: where they are, and what makes them.
#[derive(Debug, Clone)]
pub struct DataSet {
    /// Holds [`CONTENT`] and [`MADE`].
    folder: PathBuf,
    invocation: Invocation,
    restore: Option<Vec<PathBuf>>,
}

/// How the names of the folders of sets begin.
pub const DATA_SET_PREFIX: &str = "data-";

/// What is made.
const CONTENT: &str = "content";

/// The list of what was made, with its own checksum in the last line.
const MADE: &str = "made";

/// What was found when a data set was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataSetState {
    /// it was made before and is unchanged
    Kept,
    /// it was made now
    Made,
    /// it was made anew, because this file is not as it was made
    Remade {
        /// the file, relative to the set
        changed: String,
    },
}

/// Why a data set cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum DataSetError {
    /// The command that makes it cannot be run.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// It failed.
    #[error("`data` {0}")]
    Command(String),
    /// Processes that it left behind were ended, and may have been writing.
    #[error(
        "`data` left processes behind ({0}), which may have been writing: end them in its command, and wait for them"
    )]
    LeftBehind(usize),
    /// It made nothing.
    #[error("`data` made nothing in {}: its command is to fill that folder", .0.display())]
    Empty(PathBuf),
    /// It made what cannot be kept.
    #[error("`data` made {}, which is neither a file, a folder nor a link: end what made it, or remove it, in the command", .0.display())]
    Odd(PathBuf),
    /// What is to be restored is not part of it.
    #[error("`data.restore`: its command made no {} in {}", part.display(), content.display())]
    NoPart {
        /// what is to be restored
        part: PathBuf,
        /// where it is looked for
        content: PathBuf,
    },
    /// The system refused something.
    #[error("data of the workload: cannot {action} {}: {source}", path.display())]
    File {
        /// the file or folder
        path: PathBuf,
        /// what was tried
        action: &'static str,
        /// the system's reason
        source: io::Error,
    },
}

impl Classify for DataSetError {
    fn class(&self) -> ErrorClass {
        match self {
            DataSetError::Workload(error) => error.class(),
            DataSetError::Command(_)
            | DataSetError::LeftBehind(_)
            | DataSetError::Empty(_)
            | DataSetError::Odd(_)
            | DataSetError::NoPart { .. } => ErrorClass::WorkloadFailed,
            DataSetError::File { .. } => ErrorClass::Environment,
        }
    }
}

/// The data sets whose every byte this process has made or compared: of these, only sizes and times are looked at again.
#[derive(Debug, Default)]
pub struct KnownDataSets(BTreeSet<PathBuf>);

impl WorkloadDefinition {
    /// The data of an iteration, if the workload has any and there is a directory that keeps them.
    ///
    /// # Errors
    /// Those of [`WorkloadDefinition::build_invocation`].
    pub fn build_data_set(
        &self,
        parameters: &IndexMap<String, Scalar>,
        scope: &ExpressionScope,
        host: &HostPaths,
    ) -> Result<Option<DataSet>, WorkloadError> {
        let Some(spec) = &self.data else { return Ok(None) };
        let scope = self.build_scope(parameters, scope, host)?;
        let Some(folder) = self.data_folder(&scope, host)? else {
            return Err(WorkloadError::NeedsScratch { workload: self.name.clone() });
        };
        let command = self.build_command(DATA_COMMAND, &spec.argv, &scope, host)?;
        let invocation = Invocation { directory: Some(folder.join(CONTENT)), ..command };
        Ok(Some(DataSet { folder, invocation, restore: spec.restore.clone() }))
    }

    /// `{{ data }}`: where the data of an iteration are.
    pub(crate) fn data_content(
        &self,
        scope: &ExpressionScope,
        host: &HostPaths,
    ) -> Result<Option<PathBuf>, WorkloadError> {
        Ok(self.data_folder(scope, host)?.map(|folder| folder.join(CONTENT)))
    }

    /// Named after what makes the data, so that other parameters are other data.
    fn data_folder(
        &self,
        scope: &ExpressionScope,
        host: &HostPaths,
    ) -> Result<Option<PathBuf>, WorkloadError> {
        let (Some(spec), Some(kept)) = (&self.data, &host.kept) else { return Ok(None) };
        let mut scope = scope.clone();
        scope.set("data", Scalar::Text(String::new()));
        let command = self.build_command(DATA_COMMAND, &spec.argv, &scope, host)?;
        let mut sha = Sha256::new();
        sha.update(format!("{:?} {:?} ", command.argv, command.environment));
        let case = host.case.filter(|_| spec.once == DataLifetime::Case);
        sha.update(format!("{case:?}"));
        let key: String = sha.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Ok(Some(kept.join(format!("{DATA_SET_PREFIX}{key}"))))
    }
}

impl DataSet {
    /// The command that makes it.
    #[must_use]
    pub fn into_invocation(self) -> Invocation {
        self.invocation
    }

    /// Makes it, unless it is there and as it was made.
    ///
    /// # Errors
    /// Its command fails, or makes what cannot be kept. Then nothing of it is left.
    pub fn ensure(
        &self,
        extra_env: &[(String, String)],
        limit: Nanos,
        stop: &AtomicBool,
        known: &mut KnownDataSets,
    ) -> Result<DataSetState, DataSetError> {
        let changed = match self.find_change(known.0.contains(&self.folder))? {
            Some(change) => change,
            None => {
                known.0.insert(self.folder.clone());
                return Ok(DataSetState::Kept);
            }
        };
        known.0.remove(&self.folder);
        let made = self.make(extra_env, limit, stop);
        if made.is_err() {
            // The next start makes it anew in any case: it has no list.
            let _ = fs::remove_dir_all(&self.folder);
        }
        made?;
        known.0.insert(self.folder.clone());
        Ok(match changed {
            DataChange::NotMade => DataSetState::Made,
            DataChange::File(changed) => DataSetState::Remade { changed },
        })
    }

    /// Copies it into a directory, in place of what has its names there, as extents that are shared where the file system can do that, and waits until that is on the disk: what
    /// is written later is not part of an iteration.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn restore_to(&self, scratch: &Path) -> Result<(), DataSetError> {
        let content = self.folder.join(CONTENT);
        let parts = match &self.restore {
            Some(parts) => parts.clone(),
            None => list_names(&content)?,
        };
        for part in &parts {
            if fs::symlink_metadata(content.join(part)).is_err() {
                return Err(DataSetError::NoPart { part: part.clone(), content });
            }
            if let Some(parent) = part.parent() {
                fs::create_dir_all(scratch.join(parent))
                    .map_err(file_error("make", &scratch.join(parent)))?;
            }
            remove_tree(&scratch.join(part))?;
            copy_tree(&content.join(part), &scratch.join(part))?;
        }
        if parts.is_empty() { Ok(()) } else { sync_file_system(scratch) }
    }

    fn make(
        &self,
        extra_env: &[(String, String)],
        limit: Nanos,
        stop: &AtomicBool,
    ) -> Result<(), DataSetError> {
        let content = self.folder.join(CONTENT);
        remove_tree(&self.folder)?;
        fs::create_dir_all(&content).map_err(file_error("make", &content))?;
        let finished = execute_invocation(&self.invocation, extra_env, limit, stop)?;
        if let Some(failure) = finished.failure() {
            return Err(DataSetError::Command(failure));
        }
        if finished.left_behind > 0 {
            return Err(DataSetError::LeftBehind(finished.left_behind));
        }
        let mut files = Vec::new();
        list_files(&content, Path::new(""), &mut files)?;
        if files.is_empty() {
            return Err(DataSetError::Empty(content));
        }
        let mut list = String::new();
        for file in &files {
            list += &format!("{}\t{}\n", hash_file(&content, file)?, file.line);
        }
        list += &format!("{}\n", hash_text(&list));
        sync_file_system(&content)?;
        let (part, made) = (self.folder.join("made.part"), self.folder.join(MADE));
        let write = || {
            let mut file = File::create(&part)?;
            file.write_all(list.as_bytes())?;
            file.sync_all()?;
            fs::rename(&part, &made)
        };
        write().map_err(file_error("write", &made))
    }

    /// Why it is to be made, if it is. Bytes are compared unless they are known.
    fn find_change(&self, is_known: bool) -> Result<Option<DataChange>, DataSetError> {
        let made = self.folder.join(MADE);
        let text = match fs::read_to_string(&made) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(DataChange::NotMade)),
            // A list that is no text is damaged, too.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => String::new(),
            Err(error) => return Err(file_error("read", &made)(error)),
        };
        let Some(list) = check_list(&text) else { return Ok(Some(DataChange::File(MADE.to_owned()))) };
        let content = self.folder.join(CONTENT);
        let mut files = Vec::new();
        if let Err(error) = list_files(&content, Path::new(""), &mut files) {
            return match error {
                DataSetError::Odd(path) => Ok(Some(DataChange::File(describe_name(&path)))),
                DataSetError::File { source, path, .. } if source.kind() == io::ErrorKind::NotFound => {
                    Ok(Some(DataChange::File(describe_name(&path))))
                }
                other => Err(other),
            };
        }
        let mut recorded = list.lines();
        for file in &files {
            let same =
                recorded.next().and_then(|line| line.split_once('\t')).filter(|(_, line)| *line == file.line);
            let is_same = match same {
                None => false,
                Some(_) if is_known => true,
                Some((hash, _)) => hash_file(&content, file)? == hash,
            };
            if !is_same {
                return Ok(Some(DataChange::File(describe_name(&file.path))));
            }
        }
        // What is listed and gone.
        let missing = recorded.next().map(|line| line.rsplit('\t').next().unwrap_or_default().to_owned());
        Ok(missing.map(DataChange::File))
    }
}

/// Why a data set is to be made.
enum DataChange {
    /// it was never made to its end
    NotMade,
    /// this file is not as it was made
    File(String),
}

/// One file, folder or link of a set.
struct ListedFile {
    /// relative to the set
    path: PathBuf,
    kind: ListedKind,
    /// all that is known of it but its bytes
    line: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListedKind {
    Folder,
    File,
    Link,
}

/// The list without its checksum, where that is right.
fn check_list(text: &str) -> Option<&str> {
    let (list, checksum) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    // With the end of its last line.
    let list = text.get(..=list.len())?;
    (hash_text(list) == checksum).then_some(list)
}

/// Everything below `folder`, each folder before what is in it, in order of names.
fn list_files(content: &Path, folder: &Path, found: &mut Vec<ListedFile>) -> Result<(), DataSetError> {
    for name in list_names(&content.join(folder))? {
        let path = folder.join(name);
        let place = content.join(&path);
        let metadata = fs::symlink_metadata(&place).map_err(file_error("read", &place))?;
        let (kind, size, time) = match metadata.file_type() {
            kind if kind.is_dir() => (ListedKind::Folder, 0, (0, 0)),
            kind if kind.is_symlink() => (ListedKind::Link, 0, (0, 0)),
            kind if kind.is_file() => {
                (ListedKind::File, metadata.len(), (metadata.mtime(), metadata.mtime_nsec()))
            }
            _ => return Err(DataSetError::Odd(place)),
        };
        let name = describe_name(&path);
        let (owner, mode) = ((metadata.uid(), metadata.gid()), metadata.mode());
        let line =
            format!("{kind:?}\t{mode:o}\t{}:{}\t{size}\t{}.{:09}\t{name}", owner.0, owner.1, time.0, time.1);
        found.push(ListedFile { path: path.clone(), kind, line });
        if kind == ListedKind::Folder {
            list_files(content, &path, found)?;
        }
    }
    Ok(())
}

/// A name on one line, whatever bytes are in it.
fn describe_name(path: &Path) -> String {
    path.as_os_str().as_encoded_bytes().escape_ascii().to_string()
}

fn list_names(folder: &Path) -> Result<Vec<PathBuf>, DataSetError> {
    let read = || -> io::Result<Vec<PathBuf>> {
        let names = fs::read_dir(folder)?.map(|entry| Ok(PathBuf::from(entry?.file_name())));
        names.collect()
    };
    let mut names = read().map_err(file_error("read", folder))?;
    names.sort();
    Ok(names)
}

/// SHA-256 of a file's bytes or of a link's target, in hex; `-` for a folder.
fn hash_file(content: &Path, file: &ListedFile) -> Result<String, DataSetError> {
    let place = content.join(&file.path);
    let hash = || -> io::Result<String> {
        match file.kind {
            ListedKind::Folder => Ok("-".to_owned()),
            ListedKind::Link => {
                let target = fs::read_link(&place)?;
                Ok(format_hash(Sha256::new().chain_update(target.as_os_str().as_encoded_bytes())))
            }
            ListedKind::File => {
                let mut sha = Sha256::new();
                let mut reader = File::open(&place)?;
                let mut buffer = vec![0; 1 << 16];
                loop {
                    match reader.read(&mut buffer)? {
                        0 => return Ok(format_hash(sha)),
                        length => sha.update(buffer.get(..length).unwrap_or_default()),
                    }
                }
            }
        }
    };
    hash().map_err(file_error("read", &place))
}

fn hash_text(text: &str) -> String {
    format_hash(Sha256::new().chain_update(text))
}

fn format_hash(sha: Sha256) -> String {
    sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Copies a file, a link or a folder with everything in it: bytes, owners, permissions, times.
fn copy_tree(from: &Path, to: &Path) -> Result<(), DataSetError> {
    let metadata = fs::symlink_metadata(from).map_err(file_error("read", from))?;
    let kind = metadata.file_type();
    if kind.is_dir() {
        fs::create_dir(to).map_err(file_error("make", to))?;
        for name in list_names(from)? {
            copy_tree(&from.join(&name), &to.join(&name))?;
        }
    } else if kind.is_symlink() {
        let target = fs::read_link(from).map_err(file_error("read", from))?;
        symlink(target, to).map_err(file_error("make", to))?;
    } else {
        // The kernel shares extents where it can (copy_file_range).
        fs::copy(from, to).map_err(file_error("copy", from))?;
    }
    let set = || -> io::Result<()> {
        let made = fs::symlink_metadata(to)?;
        if (made.uid(), made.gid()) != (metadata.uid(), metadata.gid()) {
            lchown(to, Some(metadata.uid()), Some(metadata.gid()))?;
        }
        if kind.is_symlink() {
            return Ok(());
        }
        // For writing only where it is a file: a folder is opened for reading, and read-only files belong to us.
        let times = FileTimes::new().set_modified(metadata.modified()?);
        File::open(to)?.set_times(times)?;
        // Last: chown takes the bits of set-user-ID away.
        fs::set_permissions(to, fs::Permissions::from_mode(metadata.mode() & 0o7777))
    };
    set().map_err(file_error("restore", to))
}

/// Removes what an iteration before left, or a making that was interrupted.
fn remove_tree(place: &Path) -> Result<(), DataSetError> {
    let removed = match fs::symlink_metadata(place) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(place),
        Ok(_) => fs::remove_file(place),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file_error("remove", place)(error)),
        _ => Ok(()),
    }
}

/// Until everything of the file system of `folder` is on its disk.
fn sync_file_system(folder: &Path) -> Result<(), DataSetError> {
    let sync = || -> io::Result<()> { Ok(rustix::fs::syncfs(File::open(folder)?)?) };
    sync().map_err(file_error("sync", folder))
}

fn file_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DataSetError {
    let path = path.to_owned();
    move |source| DataSetError::File { path, action, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invocation::invoke_script;

    const LONG: Nanos = Nanos(60_000_000_000);

    fn data_set(kept: &Path, script: &str) -> DataSet {
        let folder = kept.join("data-1");
        let invocation = Invocation { directory: Some(folder.join(CONTENT)), ..invoke_script(script) };
        DataSet { folder, invocation, restore: None }
    }

    fn ensure(set: &DataSet) -> Result<DataSetState, DataSetError> {
        // As another process, which knows none of its bytes.
        set.ensure(&[], LONG, &AtomicBool::new(false), &mut KnownDataSets::default())
    }

    const TREE: &str = "mkdir -p a/b && echo one > a/b/one && chmod 640 a/b/one && touch -d @1000 a/b/one && ln -s b/one a/link && \
                        echo x >> \"$PWD/../../count\"";

    #[test]
    fn it_is_made_once_and_restored_with_modes_and_times() {
        let place = tempfile::tempdir().unwrap();
        let set = data_set(place.path(), TREE);
        assert_eq!(ensure(&set).unwrap(), DataSetState::Made);
        assert_eq!(ensure(&set).unwrap(), DataSetState::Kept);
        assert_eq!(fs::read_to_string(place.path().join("count")).unwrap(), "x\n");
        let scratch = tempfile::tempdir().unwrap();
        set.restore_to(scratch.path()).unwrap();
        let one = fs::metadata(scratch.path().join("a/b/one")).unwrap();
        assert_eq!((one.mode() & 0o7777, one.mtime(), one.len()), (0o640, 1000, 4));
        assert_eq!(fs::read_link(scratch.path().join("a/link")).unwrap(), Path::new("b/one"));
        // What an iteration does to its copy is not done to the set.
        fs::write(scratch.path().join("a/b/one"), "two").unwrap();
        assert_eq!(ensure(&set).unwrap(), DataSetState::Kept);
    }

    #[test]
    fn what_is_not_as_it_was_made_is_made_anew_and_named() {
        let place = tempfile::tempdir().unwrap();
        let set = data_set(place.path(), TREE);
        ensure(&set).unwrap();
        let one = set.folder.join("content/a/b/one");
        let remade = |changed: &str| DataSetState::Remade { changed: changed.to_owned() };
        let keeping_time = |text: &str| {
            let time = fs::metadata(&one).unwrap().modified().unwrap();
            fs::write(&one, text).unwrap();
            File::open(&one).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
        };
        // The same size and time, other bytes.
        keeping_time("0ne\n");
        assert_eq!(ensure(&set).unwrap(), remade("a/b/one"));
        fs::write(&one, "one\n").unwrap();
        assert_eq!(ensure(&set).unwrap(), remade("a/b/one"));
        fs::write(set.folder.join("content/a/new"), "").unwrap();
        assert_eq!(ensure(&set).unwrap(), remade("a/new"));
        fs::remove_file(set.folder.join("content/a/link")).unwrap();
        assert_eq!(ensure(&set).unwrap(), remade("a/link"));
        let list = fs::read_to_string(set.folder.join(MADE)).unwrap();
        for damaged in [&list[..list.len() / 2], "", &list.replace("640", "644")] {
            fs::write(set.folder.join(MADE), damaged).unwrap();
            assert_eq!(ensure(&set).unwrap(), remade(MADE));
        }
        fs::remove_dir_all(set.folder.join(CONTENT)).unwrap();
        assert!(matches!(ensure(&set).unwrap(), DataSetState::Remade { .. }));
        assert_eq!(ensure(&set).unwrap(), DataSetState::Kept);
    }

    #[test]
    fn an_interrupted_making_counts_for_nothing() {
        let place = tempfile::tempdir().unwrap();
        let failed = |script: &str, limit, stop| {
            let set = data_set(place.path(), script);
            let error =
                set.ensure(&[], limit, &AtomicBool::new(stop), &mut KnownDataSets::default()).unwrap_err();
            assert!(!set.folder.exists());
            error
        };
        let part = "echo half > half; ";
        let error = failed(&format!("{part} echo no room >&2; exit 3"), LONG, false);
        assert!(
            matches!(error, DataSetError::Command(ref text) if text == "exited with code 3: no room"),
            "{error}"
        );
        assert!(matches!(
            failed(&format!("{part} sleep 100"), Nanos(100_000_000), false),
            DataSetError::Command(_)
        ));
        assert!(matches!(failed(&format!("{part} sleep 100"), LONG, true), DataSetError::Command(_)));
        assert!(matches!(failed("true", LONG, false), DataSetError::Empty(_)));
        let error = failed(&format!("{part} sleep 1000 &"), LONG, false);
        assert!(matches!(error, DataSetError::LeftBehind(1)), "{error}");
        assert!(matches!(failed("mkfifo pipe", LONG, false), DataSetError::Odd(_)));
        // One that was killed with perflab itself leaves what it had made.
        let set = data_set(place.path(), TREE);
        fs::create_dir_all(set.folder.join(CONTENT)).unwrap();
        fs::write(set.folder.join("content/half"), "half").unwrap();
        assert_eq!(ensure(&set).unwrap(), DataSetState::Made);
        assert!(!set.folder.join("content/half").exists());
    }

    #[test]
    fn only_the_named_parts_are_restored() {
        let place = tempfile::tempdir().unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let mut set = data_set(place.path(), TREE);
        ensure(&set).unwrap();
        set.restore = Some(vec!["a/b".into()]);
        set.restore_to(scratch.path()).unwrap();
        assert!(scratch.path().join("a/b/one").exists() && !scratch.path().join("a/link").exists());
        set.restore = Some(vec!["z".into()]);
        assert!(matches!(set.restore_to(scratch.path()), Err(DataSetError::NoPart { .. })));
    }
}
