//! One execution of a workload with everything around it: what `perflab workload try` does.

use std::sync::atomic::AtomicBool;

use indexmap::IndexMap;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::expression::ExpressionScope;
use perflab_model::{Nanos, Scalar};

use crate::data_set::{DataSetError, KnownDataSets};
use crate::definition::{UntimedPhase, WorkloadDefinition};
use crate::error::WorkloadError;
use crate::execution::{WorkloadExecution, execute_invocation};
use crate::invocation::HostPaths;

/// Why a workload could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// One of its commands could not be run.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// What it works on cannot be had.
    #[error(transparent)]
    Data(#[from] DataSetError),
    /// A command around it failed.
    #[error("`{phase}` {failure}")]
    Phase {
        /// which
        phase: &'static str,
        /// how, with the end of its output
        failure: String,
    },
}

impl Classify for TrialError {
    fn class(&self) -> ErrorClass {
        match self {
            TrialError::Workload(error) => error.class(),
            TrialError::Data(error) => error.class(),
            TrialError::Phase { .. } => ErrorClass::WorkloadFailed,
        }
    }
}

/// Sets the workload up, starts its server, runs it once, and puts everything away again, also where something failed.
///
/// # Errors
/// A command cannot be run, or one around the timed one fails. A timed one that fails is a [`WorkloadExecution`].
pub fn try_workload(
    definition: &WorkloadDefinition,
    parameters: &IndexMap<String, Scalar>,
    scope: &ExpressionScope,
    host: &HostPaths,
    limit: Nanos,
) -> Result<WorkloadExecution, TrialError> {
    let stop = AtomicBool::new(false);
    let run_phase = |phase: UntimedPhase| -> Result<(), TrialError> {
        if definition.phases.argv(phase).is_empty() {
            return Ok(());
        }
        let invocation = definition.build_phase_invocation(phase, parameters, scope, host)?;
        match execute_invocation(&invocation, &[], limit, &stop)?.failure() {
            None => Ok(()),
            Some(failure) => Err(TrialError::Phase { phase: phase.key(), failure }),
        }
    };
    let measure = || {
        run_phase(UntimedPhase::Setup)?;
        if let Some(data) = definition.build_data_set(parameters, scope, host)? {
            data.ensure(&[], limit, &stop, &mut KnownDataSets::default())?;
            host.scratch.as_deref().map_or(Ok(()), |scratch| data.restore_to(scratch))?;
        }
        let server = definition.build_server_invocation(parameters, scope, host)?;
        let server = server.map(|server| server.start(&[], &stop)).transpose()?;
        run_phase(UntimedPhase::Prepare)?;
        let invocation = definition.build_invocation(parameters, scope, host)?;
        let finished = execute_invocation(&invocation, &[], limit, &stop)?;
        let concluded = run_phase(UntimedPhase::Conclude);
        if let Some(end) = server.and_then(|server| server.stop().early_end) {
            return Err(TrialError::Phase { phase: "server", failure: end });
        }
        concluded.map(|()| finished)
    };
    let finished = measure();
    let cleaned = run_phase(UntimedPhase::Cleanup);
    let finished = finished?;
    cleaned.map(|()| finished)
}
