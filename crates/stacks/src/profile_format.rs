//! From a path to a profile, whatever its format.

use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

use perflab_files::open_finite_file;

use crate::imported_profile::{ImportedProfile, StacksError};
use crate::recorded_machine::SymbolOptions;
use crate::{folded, perf_data, perf_script, pprof};

/// A format that profiles come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProfileFormat {
    /// what `perf record` writes, to a file or a pipe
    PerfData,
    /// the text of `perf script`
    Script,
    /// a protobuf, mostly gzipped
    Pprof,
    /// `comm;outer;inner 42`, a line a stack
    Folded,
}

impl ProfileFormat {
    /// All formats.
    pub const ALL: [ProfileFormat; 4] =
        [ProfileFormat::PerfData, ProfileFormat::Script, ProfileFormat::Pprof, ProfileFormat::Folded];

    /// Its name on the command line and in a run.
    pub fn name(self) -> &'static str {
        match self {
            ProfileFormat::PerfData => "perf.data",
            ProfileFormat::Script => "perf-script",
            ProfileFormat::Pprof => "pprof",
            ProfileFormat::Folded => "folded",
        }
    }

    /// Whether a file that begins like this is one, whatever else it may be; of a packed file, what is packed.
    pub fn recognises(self, beginning: &[u8]) -> bool {
        match self {
            ProfileFormat::PerfData => perf_data::is_perf_data(beginning),
            ProfileFormat::Pprof => pprof::is_pprof(beginning),
            ProfileFormat::Script => perf_script::is_perf_script(beginning),
            ProfileFormat::Folded => folded::is_folded(beginning),
        }
    }

    /// What a file's beginning looks like.
    fn detect_profile_format(bytes: &[u8]) -> ProfileFormat {
        match () {
            () if perf_data::is_perf_data(bytes) => ProfileFormat::PerfData,
            () if pprof::is_pprof(bytes) => ProfileFormat::Pprof,
            () if perf_script::is_perf_script(bytes) => ProfileFormat::Script,
            () => ProfileFormat::Folded,
        }
    }
}

impl FromStr for ProfileFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || ProfileFormat::ALL.map(ProfileFormat::name).join(", ");
        let found = ProfileFormat::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| format!("`{text}` is no format of profiles: {}", names()))
    }
}

/// Reads the profile at `path`, which is of `format`; that is guessed where left out.
///
/// # Errors
/// A file that cannot be read, that holds no samples, or no sample that can be understood.
pub fn read_profile_file(
    path: &Path,
    format: Option<ProfileFormat>,
    options: &SymbolOptions,
) -> Result<ImportedProfile, StacksError> {
    let bytes = read_profile_bytes(path).map_err(StacksError::io(path))?;
    if bytes.is_empty() {
        return Err(StacksError::bad_format(path, None, "it is empty: there is no profile in it"));
    }
    let format = format.unwrap_or_else(|| ProfileFormat::detect_profile_format(&bytes));
    if options.event.is_some() && format != ProfileFormat::PerfData {
        let reason =
            format!("it is taken for {}, and only of a perf.data an event can be chosen", format.name());
        return Err(StacksError::bad_format(path, None, reason));
    }
    let reading = match format {
        ProfileFormat::PerfData => {
            let recorded = path.metadata().and_then(|about| about.modified()).ok();
            let read = perf_data::read_perf_data(&bytes, recorded, options);
            read.map_err(|(place, reason)| StacksError::bad_format(path, place, reason))?
        }
        ProfileFormat::Script => perf_script::read_perf_script(&bytes),
        ProfileFormat::Pprof => {
            let read = pprof::read_pprof(&bytes);
            read.map_err(|(place, reason)| StacksError::bad_format(path, place, reason))?
        }
        ProfileFormat::Folded => folded::read_folded(&bytes),
    };
    if reading.samples.is_empty() {
        let first = reading.remarks().first();
        let why = first.map(|first| format!("; {}: {}", first.place, first.reason)).unwrap_or_default();
        let reason = format!("there is no sample in it (taken for {}){why}", format.name());
        return Err(StacksError::bad_format(path, None, reason));
    }
    Ok(reading.finish())
}

/// What the file holds as it is opened: one that grows is not followed.
fn read_profile_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_finite_file(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}
