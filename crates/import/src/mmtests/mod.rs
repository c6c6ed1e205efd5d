//! The log directory of an MMTests run (`work/log/NAME`), as written in 2020 and as written now.
//!
//! Each benchmark's values are samples under the names that MMTests gives them today, `iter-N` is the level above
//! executions (a boot), and each monitor's logs are one series. Unlike in MMTests, what is not there is missing and not
//! 0, and each metric has a direction of its own.

pub(crate) mod computed_logs;
pub(crate) mod log_folder;
pub(crate) mod plain_logs;
#[cfg(test)]
mod tests;
