//! A run as a single file, `NAME.perflab`: a tar of its directory, zstd-compressed, with the run's id as the top
//! folder.
//!
//! Whoever made the file, nothing in it can reach outside of the directory it is unpacked to.

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use perflab_model::RunStatus;
use tar::{EntryType, Header};
use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use crate::archive_dir::Archive;
use crate::checksums;
use crate::error::ArchiveError;
use crate::manifest;
use crate::run_dir::RunDir;
use crate::run_id::is_run_id;
use crate::run_layout::list_run_files;
use crate::unpack_folder::UnpackFolderMaker;
use perflab_files::{BoundedUnpacker, open_finite_file};

const LEVEL: i32 = 3;

/// Bytes that any file may unpack to, and how many a packed byte may beyond that.
const ALWAYS: u64 = 1 << 30;

const RATIO: u64 = 400;

/// Files that a run can have: its own few, a table for each monitor of each target, one for each case that was profiled.
const MOST_FILES: usize = 10_000;

const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Writes `run` as a portable file; gives the file's size in bytes.
///
/// # Errors
/// [`ArchiveError::Live`] while it is recorded, [`ArchiveError::Exists`] if there is such a file already.
pub fn write_portable_file(run: &RunDir, file: &Path) -> Result<u64, ArchiveError> {
    if run.status()? == RunStatus::Running {
        return Err(ArchiveError::Live { id: run.id().into() });
    }
    if file.exists() {
        return Err(ArchiveError::Exists { path: file.into() });
    }
    let beside = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = tempfile::NamedTempFile::new_in(beside).map_err(ArchiveError::io("create", file))?;
    pack_run(run, temporary.as_file())
        .and_then(|()| temporary.as_file().sync_all())
        .map_err(ArchiveError::io("write", file))?;
    temporary.persist_noclobber(file).map_err(|error| ArchiveError::io("create", file)(error.error))?;
    fs::metadata(file).map(|written| written.len()).map_err(ArchiveError::io("read", file))
}

/// Writes `run` as a portable file to wherever it goes.
///
/// # Errors
/// [`ArchiveError::Live`] while it is recorded; what reading the run and writing fail with.
pub fn write_portable_run(run: &RunDir, out: impl io::Write) -> Result<(), ArchiveError> {
    if run.status()? == RunStatus::Running {
        return Err(ArchiveError::Live { id: run.id().into() });
    }
    pack_run(run, out).map_err(ArchiveError::io("pack", run.path()))
}

fn pack_run(run: &RunDir, out: impl io::Write) -> io::Result<()> {
    let files = list_run_files(run.path())?;
    if files.len() > MOST_FILES {
        let reason = format!("it has {} files, and a portable file holds {MOST_FILES} at most", files.len());
        return Err(io::Error::other(reason));
    }
    let mut packed = Encoder::new(out, LEVEL)?;
    // A run that was never closed has no hashes of its own.
    packed.include_checksum(true)?;
    let mut tar = tar::Builder::new(packed);
    for path in files {
        let inner = path.strip_prefix(run.path()).map_err(io::Error::other)?;
        let content = open_finite_file(&path)?;
        let mut header = Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.metadata()?.len());
        // A file that grows in the meantime would break the tar: take no more than was announced.
        let content = io::Read::take(content, header.size()?);
        tar.append_data(&mut header, Path::new(run.id()).join(inner), content)?;
    }
    tar.into_inner()?.finish()?.flush()
}

/// Whether `file` is packed as portable files are; what is in it, only reading it can tell.
pub fn is_portable_run(file: &Path) -> bool {
    let mut head = [0; 4];
    let read = open_finite_file(file).and_then(|mut file| io::Read::read_exact(&mut file, &mut head));
    let named = file.extension().is_some_and(|ending| ending == "perflab");
    named || (read.is_ok() && head == ZSTD && !file.to_string_lossy().ends_with(".zst"))
}

/// Takes the run of a portable file into `archive`.
///
/// # Errors
/// [`ArchiveError::Refused`] for what does not belong into such a file, [`ArchiveError::Newer`],
/// [`ArchiveError::Exists`] if the archive has that run; [`ArchiveError::Damaged`] where a file is not as it was when the run ended; nothing stays of a failed import.
pub fn import_portable_run(archive: &Archive, file: &Path) -> Result<RunDir, ArchiveError> {
    let incoming = archive.receive_run()?;
    let id = unpack_run(file, incoming.folder())?;
    checksums::verify_all(&incoming.folder().join(&id)).map_err(|error| match error {
        ArchiveError::Altered { path, .. } => {
            let inner = path.strip_prefix(incoming.folder()).unwrap_or(&path).display().to_string();
            ArchiveError::damaged(file)(format!("{inner} is not as it was when the run ended"))
        }
        other => other,
    })?;
    incoming.keep(&id)
}

/// Opens a portable file for reading, unpacked to a folder that lives as long as the run.
pub(crate) fn open_portable_run(file: &Path, make: UnpackFolderMaker) -> Result<RunDir, ArchiveError> {
    let folder = make().map_err(ArchiveError::io("unpack", file))?;
    let id = unpack_run(file, folder.path())?;
    RunDir::from_unpacked(&folder.path().join(id), folder)
}

/// Unpacks `file` under `directory`, which is fresh; gives the run's id.
fn unpack_run(file: &Path, directory: &Path) -> Result<String, ArchiveError> {
    let damaged = |error: io::Error| {
        ArchiveError::damaged(file)(format!("it is no portable file of perflab, or cut short ({error})"))
    };
    let opened = open_finite_file(file).map_err(ArchiveError::io("read", file))?;
    let most = ALWAYS.max(opened.metadata().map_or(0, |found| found.len()).saturating_mul(RATIO));
    let mut tar = tar::Archive::new(BoundedUnpacker::new(Decoder::new(opened).map_err(damaged)?, most));
    let mut id: Option<String> = None;
    for (count, entry) in tar.entries().map_err(damaged)?.enumerate() {
        let mut entry = entry.map_err(damaged)?;
        if count == MOST_FILES {
            return Err(portable_error(
                file,
                format!("it has more than the {MOST_FILES} files that a run can have"),
            ));
        }
        let path = checked_entry_path(file, &entry).map_err(|reason| portable_error(file, reason))?;
        let top = path.iter().next().map(|top| top.to_string_lossy().into_owned()).unwrap_or_default();
        if !is_run_id(&top) || id.as_ref().is_some_and(|id| *id != top) {
            return Err(portable_error(
                file,
                format!("`{}` does not lie under the id of one run", path.display()),
            ));
        }
        id = Some(top);
        if entry.header().entry_type() == EntryType::Regular {
            write_entry(&mut entry, &directory.join(&path))?;
        }
    }
    check_nothing_follows(tar.into_inner()).map_err(damaged)?;
    let id = id.ok_or_else(|| portable_error(file, "it is empty".into()))?;
    verify_unpacked_run(file, &directory.join(&id), &id)?;
    Ok(id)
}

/// Reads to the end, where the sum over all files is checked: behind the last file there are zeros only.
fn check_nothing_follows(mut rest: impl io::Read) -> io::Result<()> {
    let mut piece = [0; 8192];
    loop {
        match rest.read(&mut piece)? {
            0 => return Ok(()),
            read if piece.iter().take(read).any(|byte| *byte != 0) => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "something follows the run"));
            }
            _ => {}
        }
    }
}

/// The path of an entry, if nothing about it could reach outside.
fn checked_entry_path<R: io::Read>(file: &Path, entry: &tar::Entry<R>) -> Result<PathBuf, String> {
    let path = entry.path().map_err(|error| error.to_string())?;
    let shown = path.display();
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(format!("`{shown}` leads out of the run's directory"));
    }
    match entry.header().entry_type() {
        EntryType::Regular | EntryType::Directory => Ok(path.into_owned()),
        _ => Err(format!("`{shown}` in {} is neither a file nor a directory", file.display())),
    }
}

fn write_entry(entry: &mut impl io::Read, path: &Path) -> Result<(), ArchiveError> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).map_err(ArchiveError::io("create", parent))?;
    let copied = File::create_new(path).and_then(|mut file| io::copy(entry, &mut file).map(drop));
    copied.map_err(ArchiveError::io("unpack", path))
}

/// Reads the manifest; errors speak of the portable file and not of where it was unpacked to.
fn verify_unpacked_run(file: &Path, run: &Path, id: &str) -> Result<(), ArchiveError> {
    let head = manifest::read_manifest_head(run).map_err(|error| match error {
        ArchiveError::Newer { found, known, writer, .. } => {
            ArchiveError::Newer { path: file.into(), found, known, writer }
        }
        other => portable_error(file, format!("its run.json cannot be read: {other}")),
    })?;
    if head.id == id {
        Ok(())
    } else {
        Err(portable_error(file, format!("folder {id} holds the run {}", head.id)))
    }
}

fn portable_error(file: &Path, reason: String) -> ArchiveError {
    ArchiveError::Refused { path: file.into(), reason }
}
