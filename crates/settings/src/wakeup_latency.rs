//! `idle = "20us"`: how long a CPU may take to wake up, held as a request of the kernel's power management.
//!
//! The request lives as long as /dev/cpu_dma_latency is open, so a kill undoes it. Reading the file gives what is in force: the
//! shortest of all requests.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use perflab_model::{Nanos, Refusal};
use perflab_observe::Root;

use crate::error::SettingError;
use crate::setting_file::PresetFileState;

/// What takes requests.
pub(crate) const FILE: &str = "/dev/cpu_dma_latency";

/// The level at which nothing is asked for.
pub(crate) const ANY: &str = "any";

/// A request that is in force until it is dropped.
#[derive(Debug)]
pub(crate) struct LatencyRequest {
    file: File,
    path: PathBuf,
}

/// Whether a level can be asked for.
///
/// # Errors
/// It is none, or there is no such file.
pub(crate) fn check_latency_level(level: &str, root: &Root) -> Result<(), SettingError> {
    parse_level(level)?;
    let path = root.path(FILE);
    if path.exists() {
        return Ok(());
    }
    let what = format!("idle: {} is not there", path.display());
    let hint = "this kernel is built without CONFIG_CPU_IDLE, or a container hides it: leave it out".into();
    Err(SettingError::Refused(Refusal { what, hint }))
}

/// Microseconds; none where nothing is asked for.
fn parse_level(level: &str) -> Result<Option<i32>, SettingError> {
    if level == ANY {
        return Ok(None);
    }
    let micros = Nanos::parse(level).ok().filter(|time| time.0.is_multiple_of(1_000));
    let micros = micros.and_then(|time| i32::try_from(time.0 / 1_000).ok());
    micros.map(Some).ok_or_else(|| {
        let what = format!("idle: `{level}` is no time in whole microseconds");
        let hint = "write `any`, or a time such as 20us; 0us keeps CPUs awake".into();
        SettingError::Refused(Refusal { what, hint })
    })
}

impl LatencyRequest {
    /// Asks for a level; nothing where it is `any`.
    ///
    /// # Errors
    /// The file cannot be opened or written.
    pub(crate) fn open(level: &str, root: &Root) -> Result<Option<Self>, SettingError> {
        let Some(micros) = parse_level(level)? else { return Ok(None) };
        let path = root.path(FILE);
        let failed = |action| {
            let path = path.clone();
            move |source| SettingError::File { action, path, source }
        };
        let mut file = File::options().read(true).write(true).open(&path).map_err(failed("open"))?;
        file.write_all(&micros.to_ne_bytes()).map_err(failed("write"))?;
        Ok(Some(LatencyRequest { file, path }))
    }

    /// Asks for another level in place of the one held, in one step: a request that is dropped lives on in a child that another
    /// thread is just starting. `any` changes nothing; drop the request.
    ///
    /// # Errors
    /// It is no level that can be asked for, or the file cannot be written.
    pub(crate) fn change(&mut self, level: &str) -> Result<(), SettingError> {
        let Some(micros) = parse_level(level)? else { return Ok(()) };
        self.file.write_all(&micros.to_ne_bytes()).map_err(|source| SettingError::File {
            action: "write",
            path: self.path.clone(),
            source,
        })
    }

    /// What is in force, of all that is asked for, in microseconds.
    pub(crate) fn in_force(&self) -> Result<i32, SettingError> {
        read_micros(&self.file).map_err(|source| SettingError::File {
            action: "read",
            path: self.path.clone(),
            source,
        })
    }
}

fn read_micros(file: &File) -> std::io::Result<i32> {
    let mut bytes = [0; 4];
    // Its position cannot be set back.
    file.read_exact_at(&mut bytes, 0)?;
    Ok(i32::from_ne_bytes(bytes))
}

/// What is in force without a request of ours.
pub(crate) fn read_state(root: &Root) -> Result<Vec<PresetFileState>, SettingError> {
    let path = root.path(FILE);
    let read = File::open(&path).and_then(|file| read_micros(&file));
    let micros = read.map_err(|source| SettingError::File { action: "read", path: path.clone(), source })?;
    let (value, level) = (micros.to_string(), level_of_micros(micros));
    Ok(vec![PresetFileState { path, value: Some(value), level: Some(level), offered: Vec::new() }])
}

/// What the kernel answers where nobody asks.
const NO_REQUEST: i32 = 2_000 * 1_000_000;

/// Microseconds as a level.
pub(crate) fn level_of_micros(micros: i32) -> String {
    if micros >= NO_REQUEST { ANY.into() } else { format!("{micros}us") }
}
