//! From a path to a profile, whatever its format.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::OFlags;

use crate::{Imported, StacksError, folded, perf_data, pprof, script};

/// A format that profiles come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// what `perf record` writes, to a file or a pipe
    PerfData,
    /// the text of `perf script`
    Script,
    /// a protobuf, mostly gzipped
    Pprof,
    /// `comm;outer;inner 42`, a line a stack
    Folded,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 4] = [Format::PerfData, Format::Script, Format::Pprof, Format::Folded];

    /// Its name on the command line and in a run.
    pub fn name(self) -> &'static str {
        match self {
            Format::PerfData => "perf.data",
            Format::Script => "perf-script",
            Format::Pprof => "pprof",
            Format::Folded => "folded",
        }
    }

    /// What a file's beginning looks like.
    fn guess(bytes: &[u8]) -> Format {
        match () {
            () if perf_data::looks(bytes) => Format::PerfData,
            () if pprof::looks(bytes) => Format::Pprof,
            () if script::looks(bytes) => Format::Script,
            () => Format::Folded,
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Format::ALL.map(Format::name).join(", ");
        let found = Format::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| format!("`{text}` is no format of profiles: {}", names()))
    }
}

/// What the user says about the file.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What it is; guessed where left out.
    pub format: Option<Format>,
    /// Which event of a perf.data with several is read; all together where left out.
    pub event: Option<String>,
    /// A copy of the recorded machine's /proc/kallsyms; this machine's where left out and the same kernel.
    pub kallsyms: Option<PathBuf>,
    /// The recorded kernel with debug information, for inlined functions; an installed one where left out.
    pub vmlinux: Option<PathBuf>,
    /// Kernel symbols to look up whether or not a sample hit them; normalised names.
    pub anchors: Vec<String>,
}

/// Reads the profile at `path`.
///
/// # Errors
/// A file that cannot be read, that holds no samples, or no sample that can be understood.
pub fn read(path: &Path, options: &Options) -> Result<Imported, StacksError> {
    let bytes = read_finite(path).map_err(StacksError::io(path))?;
    if bytes.is_empty() {
        return Err(StacksError::format(path, None, "it is empty: there is no profile in it"));
    }
    let format = options.format.unwrap_or_else(|| Format::guess(&bytes));
    if options.event.is_some() && format != Format::PerfData {
        let reason =
            format!("it is taken for {}, and only of a perf.data an event can be chosen", format.name());
        return Err(StacksError::format(path, None, reason));
    }
    let reading = match format {
        Format::PerfData => {
            let read = perf_data::read(&bytes, options);
            read.map_err(|(place, reason)| StacksError::format(path, place, reason))?
        }
        Format::Script => script::read(&bytes),
        Format::Pprof => {
            let read = pprof::read(&bytes);
            read.map_err(|(place, reason)| StacksError::format(path, place, reason))?
        }
        Format::Folded => folded::read(&bytes),
    };
    if reading.samples.is_empty() {
        let first = reading.remarks().first();
        let why = first.map(|first| format!("; {}: {}", first.place, first.reason)).unwrap_or_default();
        let reason = format!("there is no sample in it (taken for {}){why}", format.name());
        return Err(StacksError::format(path, None, reason));
    }
    Ok(reading.finish())
}

/// Reads a file whole; what may be waited for or read for ever is none.
fn read_finite(path: &Path) -> io::Result<Vec<u8>> {
    let mut file =
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        let reason =
            "it is a folder, a pipe, a socket or a device: write what it gives to a file, and import that";
        return Err(io::Error::other(reason));
    }
    let mut bytes = Vec::new();
    file.by_ref().take(about.len()).read_to_end(&mut bytes)?;
    Ok(bytes)
}
