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

use perflab_model::event::Phase;
use perflab_model::{Event, Manifest, Status};
use perflab_observe::Root;
use perflab_workload::Catalogue;

use crate::leftovers::FolderWhenWanted;
use crate::{ConductError, Permissions, Stop, Target};
use session::Session;
use stream::Stream;

/// The machine that perflab runs on.
#[derive(Debug)]
pub struct Host {
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
    pub traces: FolderWhenWanted,
}

impl Target for Host {
    fn run(
        &self,
        manifest: &Manifest,
        permissions: &Permissions,
        sink: &Sender<Event>,
        stop: &Stop,
    ) -> Result<Status, ConductError> {
        let stream = Stream::new(sink.clone());
        stream.phase(Phase::Check)?;
        if permissions.install {
            stream.phase(Phase::Install)?;
            check::install(manifest, &self.catalogue, &stream)?;
        }
        check::all(manifest, self, permissions, None)?;
        let session = Session::begin(self, manifest, permissions, stream, stop)?;
        session.run()
    }
}
