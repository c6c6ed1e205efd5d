//! What `perflab bisect` works with: the line of commits, their builds, their runs, the journal, and the result.

pub mod bisection_journal;
pub mod bisection_result;
pub mod commit_builds;
pub mod commit_line;
pub mod commit_runs;
pub mod metric_scale;
