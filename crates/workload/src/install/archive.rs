//! A source archive: fetched with curl, checked, unpacked with tar, built, and its program kept.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::{InstallError, run_command};
use crate::definition::SourceArchive;

pub(super) fn install_archive(
    archive: &SourceArchive,
    into: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<(), InstallError> {
    let source = into.join("source");
    // A build that failed half-way must not leak into the next.
    if source.exists() {
        fs::remove_dir_all(&source).map_err(|error| file_error(&source, error))?;
    }
    for folder in [&source, &into.join("bin")] {
        fs::create_dir_all(folder).map_err(|error| file_error(folder, error))?;
    }
    let mut commands = archive_commands(archive, into).into_iter();
    if let Some(fetch) = commands.next() {
        run_command(&fetch, None, say)?;
    }
    verify_checksum(archive, &into.join("archive"))?;
    if let Some(unpack) = commands.next() {
        run_command(&unpack, None, say)?;
    }
    commands.try_for_each(|build| run_command(&build, Some(&source), say))?;
    copy_built_program(archive, into)
}

/// Fetch, unpack, then the builds.
pub(super) fn archive_commands(archive: &SourceArchive, into: &Path) -> Vec<Vec<String>> {
    let file = into.join("archive").display().to_string();
    let source = into.join("source").display().to_string();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let fetch =
        words(&["curl", "--fail", "--silent", "--show-error", "--location", "--output", &file, &archive.url]);
    let unpack =
        words(&["tar", "--extract", "--file", &file, "--directory", &source, "--strip-components=1"]);
    [fetch, unpack].into_iter().chain(archive.build.iter().cloned()).collect()
}

fn verify_checksum(archive: &SourceArchive, path: &Path) -> Result<(), InstallError> {
    let mut hash = Sha256::new();
    let copied = File::open(path).and_then(|mut opened| io::copy(&mut opened, &mut HashWriter(&mut hash)));
    copied.map_err(|error| file_error(path, error))?;
    let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if found.eq_ignore_ascii_case(&archive.sha256) {
        return Ok(());
    }
    Err(InstallError::Checksum { url: archive.url.clone(), wanted: archive.sha256.clone(), found })
}

fn copy_built_program(archive: &SourceArchive, into: &Path) -> Result<(), InstallError> {
    let built = into.join("source").join(&archive.installs);
    let name = built.file_name().unwrap_or_default().to_owned();
    fs::copy(&built, into.join("bin").join(name)).map(drop).map_err(|error| file_error(&built, error))
}

fn file_error(path: &Path, source: io::Error) -> InstallError {
    InstallError::File { path: path.into(), source }
}

/// A hash as something to write to.
struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
