//! What a machine does in a run: whose settings it brings about, and whether workloads run on it.

use perflab_model::study::{FactorSide, Study};

/// The part of a machine in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetRole {
    /// This host, in a study without targets: all settings, all workloads.
    Everything,
    /// This host, in a study with targets: its own settings.
    HostSettings,
    /// A target: its own settings, and the workloads.
    Workload,
}

impl TargetRole {
    /// The part of this host in a study.
    pub(crate) fn of_host(study: &Study) -> Self {
        if study.target.is_empty() { TargetRole::Everything } else { TargetRole::HostSettings }
    }

    /// Whether workloads run there.
    pub(crate) fn runs_workloads(self) -> bool {
        self != TargetRole::HostSettings
    }

    /// The side whose settings are changed there; none for both.
    pub(crate) fn side(self) -> Option<FactorSide> {
        match self {
            TargetRole::Everything => None,
            TargetRole::HostSettings => Some(FactorSide::Host),
            TargetRole::Workload => Some(FactorSide::Guest),
        }
    }
}
