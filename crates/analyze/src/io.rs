//! What a program read, which of it it needed, and where that lies: by file, by directory, over time, over the disk; and how
//! much of it a prefetch trace would have brought. Refuses to look at the system: a recording says it all.

mod answers;
mod by_file;
mod coverage;
mod disk;
mod over;
mod published;
mod stacked;

pub use answers::Answers;
pub use by_file::{FileUse, Folder, by_directory, by_file};
pub use coverage::{Block, Coverage, Known, STATUSES, Status, coverage};
pub use over::{Place, Tick, over_disk, over_time};
pub use published::{NotPublished, PublishedCoverage, PublishedReason, published_coverage};
pub use stacked::count_once;

#[cfg(test)]
mod tests;
