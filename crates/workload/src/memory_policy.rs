//! A thread's memory policy: set_mempolicy(2) and get_mempolicy(2), which rustix lacks.

#![allow(unsafe_code, reason = "two system calls take and fill a mask of nodes")]

use std::io;

use perflab_model::placement::MemoryPlacement;

/// Bits of a word of the mask.
const WORD: usize = libc::c_ulong::BITS as usize;

/// Words of a mask: kernels have at most 1,024 nodes.
const WORDS: usize = 1024 / WORD;

/// A policy: its mode, with its flags, and the nodes that it is about, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryPolicy {
    mode: libc::c_int,
    nodes: [libc::c_ulong; WORDS],
}

impl MemoryPolicy {
    /// What a placement asks for; none where it leaves the choice to the kernel. `memory_nodes` are all that have memory.
    pub(crate) fn for_placement(memory: &MemoryPlacement, memory_nodes: &[u32]) -> Option<Self> {
        let policy = |mode: libc::c_int, nodes: &[u32]| {
            let mut policy = MemoryPolicy { mode, nodes: [0; WORDS] };
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
        let mut policy = MemoryPolicy { mode: 0, nodes: [0; WORDS] };
        // SAFETY: the kernel writes one integer and `WORDS * WORD` bits, which is what both pointers have room for.
        let status = unsafe {
            libc::syscall(
                libc::SYS_get_mempolicy,
                std::ptr::from_mut(&mut policy.mode),
                policy.nodes.as_mut_ptr(),
                WORDS * WORD,
                std::ptr::null_mut::<libc::c_void>(),
                0,
            )
        };
        if status == 0 { Ok(policy) } else { Err(io::Error::last_os_error()) }
    }

    /// Makes it that of this thread.
    ///
    /// # Errors
    /// A node is not there, or a filter refuses the system call.
    pub(crate) fn set(&self) -> io::Result<()> {
        let has_nodes = self.nodes.iter().any(|word| *word != 0);
        let (nodes, bits) =
            if has_nodes { (self.nodes.as_ptr(), WORDS * WORD) } else { (std::ptr::null(), 0) };
        // SAFETY: the kernel reads `bits` bits, which is none or as many as the array has.
        let status = unsafe { libc::syscall(libc::SYS_set_mempolicy, self.mode, nodes, bits) };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
