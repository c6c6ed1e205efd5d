//! A thread's memory policy: what a placement asks for, as the kernel takes and gives it.

use std::io;

use perflab_model::placement::MemoryPlacement;

use crate::system_calls::{NODE_WORDS, get_memory_policy, set_memory_policy};

/// Bits of a word of the mask.
const WORD: usize = libc::c_ulong::BITS as usize;

/// A policy: its mode, with its flags, and the nodes that it is about, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryPolicy {
    mode: libc::c_int,
    nodes: [libc::c_ulong; NODE_WORDS],
}

impl MemoryPolicy {
    /// What a placement asks for; none where it leaves the choice to the kernel. `memory_nodes` are all that have memory.
    pub(crate) fn for_placement(memory: &MemoryPlacement, memory_nodes: &[u32]) -> Option<Self> {
        let policy = |mode: libc::c_int, nodes: &[u32]| {
            let mut policy = MemoryPolicy { mode, nodes: [0; NODE_WORDS] };
            for node in nodes.iter().filter_map(|node| usize::try_from(*node).ok()) {
                if let Some(word) = policy.nodes.get_mut(node / WORD) {
                    *word |= 1 << (node % WORD);
                }
            }
            policy
        };
        match memory {
            MemoryPlacement::Default => None,
            MemoryPlacement::Local => Some(policy(libc::MPOL_LOCAL, &[])),
            MemoryPlacement::Interleave => Some(policy(libc::MPOL_INTERLEAVE, memory_nodes)),
            MemoryPlacement::Bind(nodes) => Some(policy(libc::MPOL_BIND, nodes)),
            MemoryPlacement::Preferred(node) => Some(policy(libc::MPOL_PREFERRED, &[*node])),
        }
    }

    /// That of this thread.
    ///
    /// # Errors
    /// The kernel has no such system call, or a filter refuses it.
    pub(crate) fn read() -> io::Result<Self> {
        let (mode, nodes) = get_memory_policy()?;
        Ok(MemoryPolicy { mode, nodes })
    }

    /// Makes it that of this thread.
    ///
    /// # Errors
    /// A node is not there, or a filter refuses the system call.
    pub(crate) fn set(&self) -> io::Result<()> {
        set_memory_policy(self.mode, &self.nodes)
    }
}
