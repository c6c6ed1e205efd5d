//! Log directory of MMTests: iterations, times, machine, monitors.
//!
//! The log directory of an MMTests run (`work/log/NAME`), as written in 2020 and as written now. Each benchmark's values
//! are samples under the names that MMTests gives them today, `iter-N` is the level above executions (a boot), and each
//! monitor's logs are one series. Owns where things lie in such a directory; refuses MMTests' habits of reading what is
//! not there as 0 and of judging all metrics of a report by one direction.

pub(crate) mod computed_logs;
pub(crate) mod log_folder;
pub(crate) mod plain_logs;
#[cfg(test)]
mod tests;
