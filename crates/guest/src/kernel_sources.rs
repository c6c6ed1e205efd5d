//! Sources of a kernel, ready to be built: unpacked once, checked out, patched; the user's own tree is only read.
//!
//! A git repository, or any folder, has a repository of perflab's own in the cache that borrows its objects: checking out a
//! revision there touches only the files that differ, so that the next build compiles only those. A folder as it is becomes a
//! tree of that repository first, so that what changes while it is built does not matter.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use perflab_files::read_finite_file;
use sha2::{Digest, Sha256};

use crate::git::git_command;
use crate::kernel::{KernelError, SourceIdentity};
use crate::kernel_cache::{CacheLock, kernels_directory, open_work_folder};
use crate::kernel_package::{download_package, find_file_beginning, format_hash, hash_file, unpack_package};
use crate::kernel_recipe::{SourceOrigin, is_address};
use crate::kernel_step::{KernelListener, KernelProgress, run_command, run_step};

/// More is no patch.
const LARGEST_PATCH: u64 = 64 << 20;

/// A patch: its name and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelPatch {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl KernelPatch {
    pub(crate) fn read(path: &Path) -> Result<KernelPatch, KernelError> {
        let refuse = |reason: &str| KernelError::Patch { patch: path.into(), reason: reason.into() };
        let bytes = read_finite_file(path, LARGEST_PATCH).map_err(KernelError::file_error(path))?;
        // As `patch` finds its own file again, wherever it runs.
        let path = path.canonicalize().map_err(KernelError::file_error(path))?;
        let patch = KernelPatch { path, text: String::from_utf8_lossy(&bytes).into_owned() };
        let is_patch = patch.files().next().is_some();
        if is_patch { Ok(patch) } else { Err(refuse("it changes no file of the tree")) }
    }

    /// The files that it changes, below the tree.
    fn files(&self) -> impl Iterator<Item = PathBuf> {
        let names = self.text.lines().filter_map(|line| {
            let name = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- "))?;
            let name = name.split('\t').next()?.trim();
            name.split_once('/').map(|(_, below)| PathBuf::from(below)).filter(|_| name != "/dev/null")
        });
        names.filter(|path| path.components().all(|part| matches!(part, std::path::Component::Normal(_))))
    }
}

/// A tree that is ready.
#[derive(Debug)]
pub(crate) struct KernelSources {
    pub(crate) tree: PathBuf,
    pub(crate) identity: SourceIdentity,
    /// Changes whenever files that define options may have changed.
    pub(crate) options_id: String,
    /// Held while the tree has to stay as it is.
    _lock: Option<CacheLock>,
}

/// What the sources are, without getting them; nothing where only getting them tells.
pub(crate) fn identify_sources(
    origin: &SourceOrigin,
    tell: &mut KernelListener<'_>,
) -> Result<Option<SourceIdentity>, KernelError> {
    match origin {
        SourceOrigin::Package(package) => Ok(find_unpacked_package(package)),
        SourceOrigin::Archive { place, sha256 } => {
            let id = match sha256 {
                Some(known) => known.to_ascii_lowercase(),
                None => hash_file(Path::new(place))?,
            };
            Ok(Some(plain_identity(id, place)))
        }
        SourceOrigin::Folder(folder) => {
            Ok(Some(BorrowedRepository::open(folder, tell)?.snapshot(folder)?.identity))
        }
        SourceOrigin::Git { repository, revision } => resolve_revision(repository, revision).map(Some),
    }
}

/// Gets the sources; they stay as they are for as long as the result lives.
pub(crate) fn prepare_sources(
    origin: &SourceOrigin,
    recipe: &str,
    patches: &[KernelPatch],
    tell: &mut KernelListener<'_>,
) -> Result<KernelSources, KernelError> {
    match origin {
        SourceOrigin::Package(_) | SourceOrigin::Archive { .. } => {
            let (folder, identity) = unpack_sources(origin, tell)?;
            if patches.is_empty() {
                let options_id = identity.id.clone();
                return Ok(KernelSources { tree: folder.join("tree"), identity, options_id, _lock: None });
            }
            patch_copy(&folder, recipe, identity, patches, tell)
        }
        SourceOrigin::Folder(folder) => {
            let repository = BorrowedRepository::open(folder, tell)?;
            let snapshot = repository.snapshot(folder)?;
            repository.check_out(&snapshot.commit, snapshot.identity, patches)
        }
        SourceOrigin::Git { repository: place, revision } => {
            let identity = resolve_revision(place, revision)?;
            let commit = identity.commit.clone().unwrap_or_default();
            BorrowedRepository::open(place, tell)?.check_out(&commit, identity, patches)
        }
    }
}

/// The revisions that a range names, oldest first: `A..B` are those of B that A has not.
///
/// # Errors
/// It is no repository, or has no such revisions.
pub fn list_revisions(repository: &Path, range: &str) -> Result<Vec<String>, KernelError> {
    let mut command = git_command(repository);
    command.args(["rev-list", "--reverse", "--first-parent", "--end-of-options", range]);
    let output = run_command(command, None)
        .map_err(|_| KernelError::NoRevision { repository: repository.into(), revision: range.into() })?;
    Ok(output.lines().map(str::to_owned).collect())
}

/// The commit that a revision names, and the tree of it.
fn resolve_revision(repository: &Path, revision: &str) -> Result<SourceIdentity, KernelError> {
    let missing = |_| KernelError::NoRevision { repository: repository.into(), revision: revision.into() };
    let mut command = git_command(repository);
    command.args(["show", "--no-patch", "--format=%H%n%T%n%s", "--end-of-options"]);
    command.arg(format!("{revision}^{{commit}}"));
    let output = run_command(command, None).map_err(missing)?;
    let mut prefix = git_command(repository);
    prefix.args(["rev-parse", "--show-prefix"]);
    if run_command(prefix, None).is_ok_and(|prefix| !prefix.trim().is_empty()) {
        return Err(KernelError::Subfolder { path: repository.into() });
    }
    let mut lines = output.lines().map(str::to_owned);
    let (commit, id) = (lines.next(), lines.next().unwrap_or_default());
    Ok(SourceIdentity {
        commit,
        subject: lines.next(),
        ..plain_identity(id, &repository.display().to_string())
    })
}

fn plain_identity(id: String, place: &str) -> SourceIdentity {
    SourceIdentity { id, place: place.into(), commit: None, subject: None, changed: false }
}

/// A folder as it was.
#[derive(Debug, Clone)]
struct TreeSnapshot {
    /// In perflab's own repository.
    commit: String,
    identity: SourceIdentity,
}

/// A repository in the cache whose objects are another's as well.
struct BorrowedRepository {
    /// What is checked out. The repository is not in it: a patch cannot reach it.
    tree: PathBuf,
    /// The repository.
    directory: PathBuf,
    lock: CacheLock,
}

impl BorrowedRepository {
    /// That of a folder: made where it is not there yet.
    fn open(folder: &Path, tell: &mut KernelListener<'_>) -> Result<BorrowedRepository, KernelError> {
        let whole = folder.canonicalize().map_err(KernelError::file_error(folder))?;
        if !whole.join("Kbuild").is_file() && git_objects(&whole).is_none() {
            return Err(KernelError::NoSources { path: folder.into() });
        }
        let name = format!("git-{}", &format_hash(&Sha256::digest(whole.as_os_str().as_bytes()))[..12]);
        let lock = CacheLock::wait("sources", &name, tell)?;
        let home = open_work_folder("sources", &name)?;
        let (tree, directory) = (home.join("tree"), home.join("repository"));
        fs::create_dir_all(&tree).map_err(KernelError::file_error(&tree))?;
        let repository = BorrowedRepository { tree, directory, lock };
        if !repository.directory.join("HEAD").is_file() {
            run_command(with_arguments(repository.git_command(), &["init", "-q"]), None)?;
        }
        if let Some(objects) = git_objects(&whole) {
            let path = repository.directory.join("objects/info/alternates");
            fs::write(&path, format!("{}\n", objects.display())).map_err(KernelError::file_error(&path))?;
        }
        // Whoever held these was killed: the lock is ours.
        for left in ["index.lock", "snapshot-index.lock", "HEAD.lock"] {
            let _ = fs::remove_file(repository.directory.join(left));
        }
        Ok(repository)
    }

    /// Git in what is checked out.
    fn git_command(&self) -> Command {
        let mut command = git_command(&self.tree);
        command.env("GIT_DIR", &self.directory).env("GIT_WORK_TREE", &self.tree);
        command
    }

    /// The folder as it is when this perflab first asks, as a commit of this repository: what is changed while kernels are built or
    /// booted is the next perflab's.
    fn snapshot(&self, folder: &Path) -> Result<TreeSnapshot, KernelError> {
        static TAKEN: Mutex<BTreeMap<PathBuf, TreeSnapshot>> = Mutex::new(BTreeMap::new());
        let whole = folder.canonicalize().map_err(KernelError::file_error(folder))?;
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(snapshot) = taken.get(&whole) {
            return Ok(snapshot.clone());
        }
        let snapshot = self.take_snapshot(folder, &whole)?;
        taken.insert(whole, snapshot.clone());
        Ok(snapshot)
    }

    /// Makes a commit of what lies in a folder, which is only read.
    fn take_snapshot(&self, folder: &Path, whole: &Path) -> Result<TreeSnapshot, KernelError> {
        let git = || {
            let mut command = git_command(whole);
            command.env("GIT_DIR", &self.directory).env("GIT_WORK_TREE", whole);
            command.env("GIT_INDEX_FILE", self.directory.join("snapshot-index"));
            for who in ["AUTHOR", "COMMITTER"] {
                command.env(format!("GIT_{who}_NAME"), "perflab");
                command.env(format!("GIT_{who}_EMAIL"), "perflab@localhost");
                command.env(format!("GIT_{who}_DATE"), "@0 +0000");
            }
            command
        };
        // A folder inside of a repository is taken as it is.
        let head = git_objects(whole).and_then(|_| resolve_revision(whole, "HEAD").ok());
        match &head {
            // What is tracked counts, ignored or not; what is not tracked counts unless it is ignored.
            Some(head) => {
                run_command(with_arguments(git(), &["read-tree", "-m", "-i", &head.id]), None)?;
                run_command(with_arguments(git(), &["add", "-A", "."]), None)?;
            }
            // Distributions ship sources whose list of what to ignore is everything.
            None => {
                let all = ["add", "-A", "-f", "--", ".", ":!*.o", ":!*.a", ":!*.ko", ":!*.cmd", ":!vmlinux*"];
                run_command(with_arguments(git(), &all), None)?;
            }
        }
        let tree = run_command(with_arguments(git(), &["write-tree"]), None)?.trim().to_owned();
        let commit = run_command(with_arguments(git(), &["commit-tree", "-m", "as it is", &tree]), None)?;
        let place = folder.display().to_string();
        let identity = match head {
            Some(head) => SourceIdentity { changed: head.id != tree, id: tree, place, ..head },
            None => plain_identity(tree, &place),
        };
        Ok(TreeSnapshot { commit: commit.trim().to_owned(), identity })
    }

    /// The sources of a commit.
    fn check_out(
        self,
        commit: &str,
        identity: SourceIdentity,
        patches: &[KernelPatch],
    ) -> Result<KernelSources, KernelError> {
        let git = |arguments: &[&str]| run_command(with_arguments(self.git_command(), arguments), None);
        git(&["reset", "-q", "--hard", commit])?;
        git(&["clean", "-ffdqx"])?;
        if !self.tree.join("Kbuild").is_file() {
            return Err(KernelError::NoSources { path: identity.place.into() });
        }
        let defining = ["*Kconfig*", "scripts/kconfig", "kernel/configs", "arch/x86/configs", "Makefile"];
        let listed = git(&[&["ls-files", "-s", "--"][..], &defining].concat())?;
        for patch in patches {
            apply_patch(&self.tree, patch)?;
        }
        let texts: String = patches.iter().map(|patch| patch.text.as_str()).collect();
        let options_id = format_hash(&Sha256::digest(format!("{listed}{texts}")));
        Ok(KernelSources { tree: self.tree, identity, options_id, _lock: Some(self.lock) })
    }
}

fn with_arguments(mut command: Command, arguments: &[&str]) -> Command {
    command.args(arguments);
    command
}

/// Where a folder's repository has its objects; none where it has none.
fn git_objects(folder: &Path) -> Option<PathBuf> {
    let arguments = ["rev-parse", "--path-format=absolute", "--git-path", "objects"];
    let output = run_command(with_arguments(git_command(folder), &arguments), None).ok()?;
    Some(PathBuf::from(output.trim())).filter(|path| path.is_dir())
}

/// The newest version of a package's sources that is here.
fn find_unpacked_package(package: &str) -> Option<SourceIdentity> {
    let entries = fs::read_dir(kernels_directory().join("sources")).ok()?;
    let of_package = entries.flatten().filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with(&format!("{package}_")) && entry.path().join("tree/Kbuild").is_file()
    });
    let newest = of_package.max_by_key(|entry| entry.metadata().and_then(|data| data.modified()).ok())?;
    let name = newest.file_name().to_string_lossy().into_owned();
    Some(plain_identity(name.clone(), &name))
}

/// The folder with the `tree` of a package or an archive: what is here already is taken.
fn unpack_sources(
    origin: &SourceOrigin,
    tell: &mut KernelListener<'_>,
) -> Result<(PathBuf, SourceIdentity), KernelError> {
    let name = match origin {
        SourceOrigin::Package(package) => package.clone(),
        _ => "archives".into(),
    };
    let _lock = CacheLock::wait("sources", &name, tell)?;
    if let Some(identity) = identify_sources(origin, tell)? {
        let folder = open_work_folder("sources", &archive_folder(&identity))?;
        if folder.join("tree/Kbuild").is_file() {
            return Ok((folder, identity));
        }
    }
    let parent = open_work_folder("sources", "")?;
    let work = tempfile::Builder::new().prefix(".new-").tempdir_in(&parent);
    let work = work.map_err(KernelError::file_error(&parent))?;
    let (archive, identity) = match origin {
        SourceOrigin::Package(package) => {
            let file = download_package(package, work.path(), tell)?;
            unpack_package(&file, work.path(), tell)?;
            let version =
                file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            // `linux-source-6.1_6.1.192-2_all`
            let id = version.strip_suffix("_all").unwrap_or(&version).replace("%3a", ":");
            let archive = find_file_beginning(&work.path().join("usr/src"), package)?;
            (archive, plain_identity(id.clone(), &id))
        }
        SourceOrigin::Archive { place, sha256 } => {
            let file = match is_address(place) {
                true => {
                    let file = work.path().join("archive");
                    let to = file.display().to_string();
                    run_step(work.path(), &["curl", "-fsSL", "--output", &to, place], None, tell)?;
                    file
                }
                false => PathBuf::from(place),
            };
            let found = hash_file(&file)?;
            if let Some(wanted) = sha256.as_ref().filter(|wanted| !wanted.eq_ignore_ascii_case(&found)) {
                return Err(KernelError::WrongArchive {
                    place: place.clone(),
                    found,
                    wanted: wanted.clone(),
                });
            }
            (file, plain_identity(found, place))
        }
        SourceOrigin::Folder(_) | SourceOrigin::Git { .. } => {
            return Err(KernelError::NoSources { path: name.into() });
        }
    };
    let new = work.path().join("unpacked");
    fs::create_dir_all(new.join("tree")).map_err(KernelError::file_error(&new))?;
    let from = archive.canonicalize().map_err(KernelError::file_error(&archive))?.display().to_string();
    run_step(&new.join("tree"), &["tar", "-xf", &from, "--strip-components=1"], None, tell)?;
    if !new.join("tree/Kbuild").is_file() {
        return Err(KernelError::NoSources { path: archive });
    }
    let folder = parent.join(archive_folder(&identity));
    // An empty one may be there.
    let _ = fs::remove_dir(&folder);
    fs::rename(&new, &folder).map_err(KernelError::file_error(&folder))?;
    Ok((folder, identity))
}

/// What the folder of an archive's sources is called.
fn archive_folder(identity: &SourceIdentity) -> String {
    match identity.id.len() == 64 {
        true => format!("archive-{}", &identity.id[..12]),
        false => identity.id.clone(),
    }
}

/// A copy of unpacked sources with a recipe's patches in it. Patches that went are taken out again file by file, so that a build
/// compiles only what changed.
fn patch_copy(
    unpacked: &Path,
    recipe: &str,
    identity: SourceIdentity,
    patches: &[KernelPatch],
    tell: &mut KernelListener<'_>,
) -> Result<KernelSources, KernelError> {
    let name = format!("{}+{recipe}", archive_folder(&identity));
    let lock = CacheLock::wait("sources", &name, tell)?;
    let folder = open_work_folder("sources", &name)?;
    let (tree, pristine, note) = (folder.join("tree"), unpacked.join("tree"), folder.join("applied.patch"));
    if !tree.join("Kbuild").is_file() {
        let _ = fs::remove_dir_all(&tree);
        let (from, to) = (pristine.display().to_string(), folder.join("copying").display().to_string());
        let _ = fs::remove_dir_all(&to);
        run_step(&folder, &["cp", "-a", "--reflink=auto", &from, &to], None, tell)?;
        fs::rename(&to, &tree).map_err(KernelError::file_error(&tree))?;
    }
    let wanted: String = patches.iter().map(|patch| patch.text.as_str()).collect();
    let applied = fs::read_to_string(&note).unwrap_or_default();
    if applied != wanted {
        restore_files(&tree, &pristine, &KernelPatch { path: note.clone(), text: applied })?;
        // First, so that whoever comes after a kill takes it out.
        fs::write(&note, &wanted).map_err(KernelError::file_error(&note))?;
        for patch in patches {
            if let Err(error) = apply_patch(&tree, patch) {
                restore_files(&tree, &pristine, &KernelPatch { path: note.clone(), text: wanted })?;
                fs::write(&note, "").map_err(KernelError::file_error(&note))?;
                return Err(error);
            }
        }
    }
    let options_id = format_hash(&Sha256::digest(format!(
        "{}{}",
        identity.id,
        fs::read_to_string(&note).unwrap_or_default()
    )));
    Ok(KernelSources { tree, identity, options_id, _lock: Some(lock) })
}

/// Makes what a patch touched as it was. The files get new times, so that they are compiled again.
fn restore_files(tree: &Path, pristine: &Path, patch: &KernelPatch) -> Result<(), KernelError> {
    for file in patch.files() {
        let (to, from) = (tree.join(&file), pristine.join(&file));
        let restored = match fs::read(&from) {
            Ok(bytes) => fs::write(&to, bytes),
            Err(_) => match fs::remove_file(&to) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        };
        restored.map_err(KernelError::file_error(&to))?;
    }
    Ok(())
}

/// Lays one patch over a tree: whole, or not at all.
fn apply_patch(tree: &Path, patch: &KernelPatch) -> Result<(), KernelError> {
    let attempt = |extra: &[&str]| {
        let mut command = Command::new("patch");
        command
            .args(["-p1", "--forward", "--batch", "--no-backup-if-mismatch", "--reject-file=-"])
            .args(extra);
        command.arg("-i").arg(&patch.path).current_dir(tree).env("LC_ALL", "C");
        command.stdin(std::process::Stdio::null()).output()
    };
    let failed = |reason: String| KernelError::Patch { patch: patch.path.clone(), reason };
    let tried = attempt(&["--dry-run"]).map_err(|error| failed(error.to_string()))?;
    if !tried.status.success() {
        return Err(failed(describe_rejects(&String::from_utf8_lossy(&tried.stdout))));
    }
    let applied = attempt(&[]).map_err(|error| failed(error.to_string()))?;
    if !applied.status.success() {
        return Err(failed(describe_rejects(&String::from_utf8_lossy(&applied.stdout))));
    }
    Ok(())
}

/// The hunks that found no place, of what `patch` says: `mm/slub.c: hunk 2 (line 130)`.
fn describe_rejects(output: &str) -> String {
    let mut file = "";
    let mut rejects = Vec::new();
    for line in output.lines() {
        if let Some(name) =
            line.strip_prefix("checking file ").or_else(|| line.strip_prefix("patching file "))
        {
            file = name;
        } else if let Some((hunk, rest)) =
            line.strip_prefix("Hunk #").and_then(|rest| rest.split_once(" FAILED at "))
        {
            let at = rest.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
            rejects.push(format!("{file}: hunk {hunk} (line {at})"));
        } else if line.contains("previously applied") {
            rejects.push(format!("{file}: it is in there already"));
        } else if line.contains("can't find file to patch") {
            rejects.push("a file that it changes is not there".into());
        }
    }
    match rejects.is_empty() {
        true => output.lines().next_back().unwrap_or("no reason given").to_owned(),
        false => rejects.join(", "),
    }
}

/// Says which sources are taken.
pub(crate) fn tell_sources(identity: &SourceIdentity, tell: &mut KernelListener<'_>) {
    let mut text = format!("sources: {}", identity.place);
    if let Some(commit) = &identity.commit {
        text.push_str(&format!(" at {}", commit.get(..12).unwrap_or(commit)));
    }
    if let Some(subject) = &identity.subject {
        text.push_str(&format!(" ({subject})"));
    }
    if identity.changed {
        text.push_str(", and what was changed since");
    }
    tell(KernelProgress::Step(&text));
}
