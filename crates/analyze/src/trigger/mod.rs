//! What a flight recorder waits for: conditions, and whether an event of the stream meets one.
//!
//! | module | content |
//! |---|---|
//! | [`column_bound`] | `vmstat.pgscan_direct > 1000/s`: a column of a monitor beyond a bound in its unit |
//! | [`condition`] | the grammar of conditions: columns, the kernel's log, the command's end, a signal |
//! | [`trigger_watch`] | the conditions of a recorder, held against every event |

pub mod column_bound;
pub mod condition;
pub mod trigger_watch;

pub use column_bound::{BoundedColumn, ColumnBound, FurthestReading, TriggerError};
pub use condition::{ConditionKind, ExitCondition, KernelLogCondition, TriggerCondition};
pub use trigger_watch::TriggerWatch;
