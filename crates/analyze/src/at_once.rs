//! Owns how much of a long list one thread takes. It refuses to start threads.

use std::thread;

/// The length of the parts of a list, one for each processor; at least 1.
pub(crate) fn chunk_length(length: usize) -> usize {
    length.div_ceil(thread::available_parallelism().map_or(1, usize::from)).max(1)
}
