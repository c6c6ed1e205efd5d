//! Memory that may be used: reading ahead must not push out what others need.

use perflab_observe::Root;
use perflab_observe::facts::available_memory;

/// Half of the bytes that are available; none where the kernel does not say (before Linux 3.14).
pub fn half_of_free(root: &Root) -> Option<u64> {
    available_memory(root).map(|bytes| bytes / 2)
}
