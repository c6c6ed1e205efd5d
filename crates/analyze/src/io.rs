//! What a program read, which of it it needed, and where that lies: by file, by directory, over time, over the disk; and how
//! much of it a prefetch trace would have brought. Refuses to look at the system: a recording says it all.

mod answers;
mod by_file;
mod coverage;
mod disk;
mod over;
mod published;
mod stacked;

pub use answers::DiskReadBytes;
pub use by_file::{DirectoryUse, FileIoUse, reads_by_directory, reads_by_file};
pub use coverage::{BLOCK_STATUSES, BlockRead, BlockStatus, TraceContents, TraceCoverage, trace_coverage};
pub use over::{DiskRegion, IoInterval, reads_over_disk, reads_over_time};
pub use published::{PublishedCoverage, PublishedCoverageError, PublishedDifference, published_coverage};
pub use stacked::remove_stacked_requests;

#[cfg(test)]
mod tests;
