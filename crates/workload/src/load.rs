//! The built-in loads: what `perflab load NAME --key value …` does, with nothing to install.
//!
//! Each load owns its measurement and prints one JSON object; its parameters, ranges and metrics are
//! declared in its definition under `workloads/`, as for any other workload. Only safe code: the one
//! thing that needs the kernel's help, the kind of pages, is asked of memmap2.

mod context_switches;
mod drv_rand_ops;
mod memory_bandwidth;
mod memory_sweep;
mod options;
mod order;
mod page_faults;
mod pages;
mod small_files;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use perflab_model::nearest;

use options::BuiltinLoadArgs;

type LoadFunction = fn(&mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError>;

const LOADS: &[(&str, LoadFunction)] = &[
    ("context-switches", context_switches::measure_context_switches),
    ("drv_rand_ops", drv_rand_ops::measure_drv_rand_ops),
    ("memory-bandwidth", memory_bandwidth::measure_memory_bandwidth),
    ("memory-sweep", memory_sweep::measure_memory_sweep),
    ("page-faults", page_faults::measure_page_faults),
    ("small-files", small_files::measure_small_files),
];

/// Why a load did not measure.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Nothing went wrong: what it can be told was asked for.
    #[error("{0}")]
    Help(String),
    /// No such load.
    #[error("there is no load `{name}`; {hint}")]
    Unknown {
        /// what was asked for
        name: String,
        /// the nearest name, or all
        hint: String,
    },
    /// An argument is not what it should be.
    #[error("--{key}: {reason}")]
    Argument {
        /// its key
        key: String,
        /// what is wrong with it
        reason: String,
    },
    /// The system refused.
    #[error("cannot {action}: {source}")]
    Refused {
        /// what was tried, with its object
        action: String,
        /// the system's reason
        source: std::io::Error,
    },
    /// The result of the computation is not what arithmetic says: the machine or this code is broken.
    #[error("{what}: expected {expected}, found {found}; this machine computes wrongly")]
    WrongResult {
        /// what was computed
        what: String,
        /// by arithmetic
        expected: f64,
        /// in memory
        found: f64,
    },
}

impl LoadError {
    fn system_error(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> LoadError {
        let action = action.into();
        move |source| LoadError::Refused { action, source }
    }
}

/// Runs the load that `arguments` name (`NAME --key value …`), prints its JSON object on stdout, and
/// says how the process should exit: 0, also where `--help` asked for its keys, 2 for wrong arguments, 1 where it failed.
pub fn run_load(arguments: &[OsString]) -> ExitCode {
    match measure_load(arguments) {
        // A reader that went away is no reason to panic.
        Ok(result) => match writeln!(std::io::stdout(), "{result}") {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(LoadError::Help(text)) => match writeln!(std::io::stdout(), "{text}") {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => {
            // The exit code says it too.
            let _ =
                std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("perflab load: {error}\n"));
            ExitCode::from(if matches!(error, LoadError::Refused { .. } | LoadError::WrongResult { .. }) {
                1
            } else {
                2
            })
        }
    }
}

/// The same without printing: the load's JSON object.
pub fn measure_load(arguments: &[OsString]) -> Result<serde_json::Value, LoadError> {
    let mut options = BuiltinLoadArgs::parse(arguments)?;
    let names = LOADS.iter().map(|(name, _)| *name);
    let Some((_, measure)) = LOADS.iter().find(|(name, _)| *name == options.load) else {
        let hint = nearest::suggest_name(&options.load, names);
        return Err(LoadError::Unknown { name: options.load, hint });
    };
    measure(&mut options)
}

#[cfg(test)]
mod tests;
