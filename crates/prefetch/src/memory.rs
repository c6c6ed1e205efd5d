//! Memory that may be used: reading ahead must not push out what others need.

use perflab_observe::Root;
use perflab_observe::facts::read_available_memory;

/// Half of the bytes that are available; none where the kernel does not say (before Linux 3.14).
pub fn replay_memory_limit(root: &Root) -> Option<u64> {
    read_available_memory(root).map(|bytes| bytes / 2)
}
