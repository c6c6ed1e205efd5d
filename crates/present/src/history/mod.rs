//! How histories are seen: the table of steps, the runs of one series, the figure, the guard's answer, and the section of the
//! report. It refuses to find steps: `perflab-analyze` did.

mod figure;
mod guard;
mod section;
mod table;

pub use figure::history_chart;
pub use guard::guard_grid;
pub use section::HistorySection;
pub use table::{history_runs_grid, step_change_text, steps_grid};
