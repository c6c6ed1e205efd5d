//! This host as a target: checks, prepares, iterates, undoes.

pub(crate) mod check;
mod io;
mod iteration;
mod profile;
pub(crate) mod progress;
pub(crate) mod session;
pub(crate) mod station;
pub(crate) mod stream;
mod traces;

use std::path::PathBuf;
use std::sync::mpsc::Sender;

use perflab_model::event::RunPhase;
use perflab_model::{Manifest, RunEvent, RunStatus};
use perflab_observe::Root;
use perflab_workload::Catalogue;

use crate::leftovers::LazyTemporaryFolder;
use crate::{ConductError, RunPermissions, RunTarget, StopRequest};
use session::HostSession;
use stream::EventSender;

/// The machine that perflab runs on.
#[derive(Debug)]
pub struct LocalMachine {
    /// Root of /proc and /sys; `/` but in tests.
    pub root: Root,
    /// Where undo journals lie.
    pub state: PathBuf,
    /// The perflab binary, for built-in loads.
    pub perflab: PathBuf,
    /// Definitions of the plan's workloads.
    pub catalogue: Catalogue,
    /// Whether commands get perflab's own standard input and language: for who records one as it is, and compares nothing.
    pub runs_as_typed: bool,
    /// Where tracers write until the recorder takes it: there until the host is dropped.
    pub traces: LazyTemporaryFolder,
}

impl RunTarget for LocalMachine {
    fn run(
        &self,
        manifest: &Manifest,
        permissions: &RunPermissions,
        sink: &Sender<RunEvent>,
        stop: &StopRequest,
    ) -> Result<RunStatus, ConductError> {
        let stream = EventSender::new(sink.clone());
        stream.send_phase(RunPhase::Check)?;
        if permissions.install {
            stream.send_phase(RunPhase::Install)?;
            check::install_missing(manifest, &self.catalogue, &stream)?;
        }
        check::check_environment(manifest, self, permissions, None)?;
        let session = HostSession::begin(self, manifest, permissions, stream, stop)?;
        session.run()
    }
}
