//! Where on this machine an execution runs: a placement of the study as CPUs and nodes.

use std::io;

use perflab_model::placement::{MemoryPlacement, Placement};
use perflab_observe::{CpuTopology, ObserveError};
use perflab_workload::{PlacedStart, list_allowed_cpus};

/// A placement on this machine.
#[derive(Debug)]
pub(crate) struct ExecutionPlace {
    cpus: Option<Vec<u32>>,
    memory: MemoryPlacement,
    memory_nodes: Vec<u32>,
}

impl ExecutionPlace {
    /// Finds the CPUs that it means here.
    ///
    /// # Errors
    /// This machine has no such CPUs or nodes, or this process may not use them.
    pub(crate) fn find(placement: &Placement, topology: &CpuTopology) -> Result<Self, ObserveError> {
        topology.check_memory(&placement.memory)?;
        Ok(ExecutionPlace {
            cpus: topology.choose_cpus(&placement.cpus, &list_allowed_cpus())?,
            memory: placement.memory.clone(),
            memory_nodes: topology.memory_nodes().to_vec(),
        })
    }

    /// Some CPUs of this machine, with memory from wherever the kernel takes it.
    pub(crate) fn on_cpus(cpus: Vec<u32>) -> Self {
        ExecutionPlace { cpus: Some(cpus), memory: MemoryPlacement::Default, memory_nodes: Vec::new() }
    }

    /// Places what this thread starts next.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn request(&self) -> Result<PlacedStart, io::Error> {
        PlacedStart::request(self.cpus.as_deref(), &self.memory, &self.memory_nodes)
    }
}
