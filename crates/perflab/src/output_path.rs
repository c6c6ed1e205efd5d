//! Where a file for people goes: to a path, or to standard output where that is called `-`.
//!
//! The one place that writes one: beside and renamed, so that a full disk or a kill leaves the whole file, the one
//! before, or none. A folder that is not there is refused while arguments are read, before any work is done.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::{self, IsTerminal as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::{OsStringValueParser, TypedValueParser};
use perflab_model::untrusted_text::escape_controls;

use crate::failure::{Failure, FailureContext as _, UsageError};

/// Whether a file was asked for on standard output: tables go to stderr then, beside the other talk.
static FILE_ON_STDOUT: AtomicBool = AtomicBool::new(false);

/// Whether standard output is a file that was asked for by the name `-`.
pub fn is_file_on_stdout() -> bool {
    FILE_ON_STDOUT.load(Ordering::Relaxed)
}

/// Where a file goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputPath {
    /// standard output, called `-`
    Stdout,
    /// a path whose folder was there when it was named
    File(PathBuf),
}

impl OutputPath {
    /// For clap's `value_parser`.
    pub fn parser() -> impl TypedValueParser<Value = OutputPath> {
        OsStringValueParser::new().try_map(|text| OutputPath::parse(text).map_err(|error| error.to_string()))
    }

    fn parse(text: OsString) -> Result<Self, UsageError> {
        if text == "-" {
            FILE_ON_STDOUT.store(true, Ordering::Relaxed);
            return Ok(OutputPath::Stdout);
        }
        let path = PathBuf::from(text);
        let folder = parent_folder(&path);
        if path.is_dir() || path.file_name().is_none() {
            let what = format!("{} is a folder", path.display());
            return Err(UsageError::new(what, "name a file in it"));
        }
        if !folder.is_dir() {
            let what = format!("there is no folder {}", folder.display());
            return Err(UsageError::new(what, format!("make it first: mkdir -p {}", folder.display())));
        }
        Ok(OutputPath::File(path))
    }

    /// The ending of its name; none of standard output.
    pub fn extension(&self) -> Option<&str> {
        match self {
            OutputPath::Stdout => None,
            OutputPath::File(path) => {
                Some(path.extension().and_then(|ending| ending.to_str()).unwrap_or_default())
            }
        }
    }

    /// Writes it, in the place of what is there.
    ///
    /// # Errors
    /// What writing fails with; the file that was there is as it was then.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            OutputPath::Stdout => self.write_new(|out| Ok(out.write_all(bytes)?)),
            OutputPath::File(path) => {
                replace_file(path, bytes).with_context(|| format!("cannot write {}", path.display()))
            }
        }
    }

    /// Writes it where nothing is yet, with what `fill` gives.
    ///
    /// # Errors
    /// The file is there already; what writing fails with.
    pub fn write_new(&self, fill: impl FnOnce(&mut dyn Write) -> Result<(), Failure>) -> Result<(), Failure> {
        let path = match self {
            OutputPath::Stdout => {
                if io::stdout().is_terminal() {
                    // Names in the file must not command the terminal that it is looked at on.
                    let mut bytes = Vec::new();
                    fill(&mut bytes)?;
                    let text = String::from_utf8_lossy(&bytes);
                    return write_to_stdout(escape_controls(&text).as_bytes());
                }
                let mut out =
                    io::BufWriter::new(ReaderWatch { out: io::stdout().lock(), is_reader_gone: false });
                let filled = fill(&mut out).and_then(|()| out.flush().map_err(Failure::of_stdout));
                // Whatever the error is called by whoever met it.
                return match out.get_ref().is_reader_gone {
                    true => Err(Failure::of_stdout(io::ErrorKind::BrokenPipe.into())),
                    false => filled,
                };
            }
            OutputPath::File(path) => path,
        };
        let failed = || format!("cannot create {}", path.display());
        if path.symlink_metadata().is_ok() {
            let what = format!("{} exists already and is not overwritten", path.display());
            return Err(UsageError::new(what, "name another file, or remove this one").into());
        }
        let mut made = create_beside(path).with_context(failed)?;
        let mut out = io::BufWriter::new(made.as_file_mut());
        fill(&mut out)?;
        out.flush().with_context(failed)?;
        drop(out);
        made.as_file().sync_all().with_context(failed)?;
        made.persist_noclobber(path).map_err(|error| error.error).with_context(failed)?;
        Ok(())
    }

    /// Refuses to print bytes that are no text on a terminal.
    pub fn refuse_terminal(&self, what: &str) -> Result<(), UsageError> {
        match *self == OutputPath::Stdout && io::stdout().is_terminal() {
            true => Err(UsageError::new(
                format!("{what} is not text for a terminal"),
                "write it to a file or a pipe",
            )),
            false => Ok(()),
        }
    }
}

impl std::fmt::Display for OutputPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OutputPath::Stdout => f.write_str("standard output"),
            OutputPath::File(path) => path.display().fmt(f),
        }
    }
}

/// Writes it whole. A reader that has gone is no failure.
pub fn write_to_stdout(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(Failure::of_stdout)
}

/// Passes everything on, and notes whether nobody reads it any more.
struct ReaderWatch<W> {
    out: W,
    is_reader_gone: bool,
}

impl<W: Write> ReaderWatch<W> {
    fn note<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        self.is_reader_gone |= done.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        done
    }
}

impl<W: Write> Write for ReaderWatch<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.out.write(bytes);
        self.note(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.out.flush();
        self.note(done)
    }
}

/// The folder that a path lies in.
fn parent_folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file beside `path`, readable by whom the user lets read new files.
fn create_beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".perflab-").suffix(".tmp").permissions(Permissions::from_mode(0o666));
    builder.tempfile_in(parent_folder(path)).map_err(strip_temporary_name)
}

/// What the system reported of a file whose name nobody chose, without that name. The crate hands out the system's error only as a
/// text: `Read-only file system (os error 30) at path "..."`.
fn strip_temporary_name(error: io::Error) -> io::Error {
    let text = error.to_string();
    let code = text.split_once("(os error ").and_then(|(_, rest)| rest.split_once(')')?.0.parse().ok());
    code.map_or(error, io::Error::from_raw_os_error)
}

/// Puts a file with these bytes in the place of `path`. What is no file, such as `/dev/stdout`, is written as it is.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link stays, and what it points to is replaced.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let old = place.metadata().ok();
    if old.as_ref().is_some_and(|found| !found.is_file()) {
        return fs::write(&place, bytes);
    }
    let mut made = create_beside(&place)?;
    made.write_all(bytes)?;
    made.as_file().sync_all()?;
    if let Some(old) = old {
        made.as_file().set_permissions(old.permissions())?;
    }
    made.persist(&place).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::UnexpectedError;

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_mode_and_links() {
        let home = tempfile::tempdir().unwrap();
        let (file, link) = (home.path().join("file"), home.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        OutputPath::File(link.clone()).write(b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(link.is_symlink());
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert!(OutputPath::File(file).write_new(|_| Ok(())).is_err());
        let failed = OutputPath::File(home.path().join("none"))
            .write_new(|_| Err(UnexpectedError("no".into()).into()));
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_folder_that_is_not_there_is_told_at_once() {
        let home = tempfile::tempdir().unwrap();
        let read = |name: &str| OutputPath::parse(home.path().join(name).into());
        assert!(read("nowhere/file").is_err());
        assert!(OutputPath::parse(home.path().into()).is_err());
        assert_eq!(read("file"), Ok(OutputPath::File(home.path().join("file"))));
        assert_eq!(OutputPath::parse("file".into()), Ok(OutputPath::File("file".into())));
    }
}
