//! A target: whatever carries out a plan and tells what happens as a stream of events.

use std::path::PathBuf;
use std::sync::mpsc::Sender;

use perflab_model::{Manifest, RunEvent, RunStatus};

use crate::{ConductError, StopRequest};

/// What the user allowed on the command line, beyond what the study says.
#[derive(Debug, Clone, Default)]
pub struct RunPermissions {
    /// `--apply`: a partition may be formatted.
    pub apply: bool,
    /// `--install`: missing workloads may be installed.
    pub install: bool,
    /// `--scratch DIR`: where scratch directories and images are made, instead of the temporary directory.
    pub scratch: Option<PathBuf>,
}

/// Carries out a plan.
///
/// The stream: `Phase(Check)` (and `Phase(Install)`), then `Began` — a consumer opens its run there —,
/// phases, iterations and rows, and `Ended` as the last. Whatever goes wrong after `Began`, settings
/// are undone and `Ended` is sent, unless nobody listens.
pub trait RunTarget {
    /// Runs the manifest's plan. A refused environment is an error before `Began`: nothing was changed.
    fn run(
        &self,
        manifest: &Manifest,
        permissions: &RunPermissions,
        sink: &Sender<RunEvent>,
        stop: &StopRequest,
    ) -> Result<RunStatus, ConductError>;
}
