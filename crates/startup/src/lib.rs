//! One startup of a program, measured: from right before its process is made until it is ready.
//!
//! What is measured is time, faults, waiting and reads of the disk. Reading ahead and dropping caches are the
//! caller's; whether the files were cold is asked with [`CachedFiles`], never assumed.
//!
//! | module | what a reader finds |
//! |---|---|
//! | `launch` | one program launched, and ended once it was ready |
//! | `readiness` | what ends a startup, parsed from text and watched for, windows too |
//! | `cost` | what a startup cost: faults, delay, disk traffic, CPU by control group |
//! | `cached_files` | which pages of its files were in memory |
//! | `package_root` | a root whose packages lie on another disk |

mod cached_files;
mod cost;
mod launch;
mod package_root;
mod readiness;

pub use cached_files::CachedFiles;
pub use cost::{DiskTraffic, StartupCost, disk_of_file, remove_abandoned_cgroups};
pub use launch::{StartupResult, measure_startup};
pub use package_root::{PackageListError, PackageRoot, PackageRootError};
pub use readiness::{ReadinessCondition, ReadinessConditionError, StartupError, WindowCondition};
