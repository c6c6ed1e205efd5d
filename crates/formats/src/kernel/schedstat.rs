//! `/proc/schedstat`, versions 15 to 17: one row a CPU (Documentation/scheduler/sched-stats.rst). The lines of
//! scheduling domains, which is where these versions differ, are left out. The file exists only with
//! CONFIG_SCHEDSTATS or CONFIG_SCHED_INFO, and the first five counts stand still unless `kernel.sched_schedstats` is 1.

use perflab_model::{CellRow, DeclaredColumn, RowSchema, TableCell};

use crate::column::fill_row;
use crate::kernel::derived_column::DerivedColumn;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, ReadingStart, RowLayout};
use crate::reading_parser::{LineOutcome, LineRole};

/// The file.
pub const SCHEDSTAT: KernelFile = KernelFile {
    name: SchedstatRow::NAME,
    source: "/proc/schedstat",
    about: "the scheduler by CPU: time run, time waited for a CPU, wake-ups",
    needs: "",
    without: "",
    provided_by: "CONFIG_SCHEDSTATS; its first five counts need the sysctl kernel.sched_schedstats=1",
    columns: SchedstatRow::COLUMNS,
    layout: KernelFileLayout::Rows(RowLayout {
        parts: &[],
        start: ReadingStart::Head { expected: "`version 15`, 16 or 17", role: schedstat_role },
        parse_row: parse_schedstat_line,
    }),
};

/// A row a CPU.
#[derive(Debug, Clone, Copy)]
pub struct SchedstatRow;

impl RowSchema for SchedstatRow {
    const NAME: &'static str = "schedstat";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("cpu"),
        DeclaredColumn::counter("yld_count", "1"),
        DeclaredColumn::counter("array_exp", "1"),
        DeclaredColumn::counter("sched_count", "1"),
        DeclaredColumn::counter("sched_goidle", "1"),
        DeclaredColumn::counter("ttwu_count", "1"),
        DeclaredColumn::counter("ttwu_local", "1"),
        DeclaredColumn::counter("run_ns", "ns"),
        DeclaredColumn::counter("run_delay_ns", "ns"),
        DeclaredColumn::counter("timeslices", "1"),
    ];
}

fn schedstat_role(line: &str) -> Result<LineRole, String> {
    match line.trim().strip_prefix("version ") {
        Some("15" | "16" | "17") => Ok(LineRole::Head),
        Some(version) => Err(format!("version `{version}` of schedstat is not known: 15 to 17 are")),
        None if ["timestamp ", "domain"].iter().any(|word| line.starts_with(word)) => Ok(LineRole::Comment),
        None => Ok(LineRole::Row),
    }
}

fn parse_schedstat_line(line: &str, rows: &mut Vec<CellRow>) -> LineOutcome {
    if !line.starts_with("cpu") {
        return LineOutcome::Nothing;
    }
    let mut words = line.split_ascii_whitespace();
    let mut row = CellRow::with_capacity(SchedstatRow::COLUMNS.len());
    row.push(TableCell::Text(words.next().unwrap_or_default().into()));
    if let Err(reason) = fill_row(&mut row, SchedstatRow::COLUMNS.get(1..).unwrap_or_default(), words) {
        return LineOutcome::Unusable(reason);
    }
    rows.push(row);
    LineOutcome::Used
}

/// What is worked out of them.
pub(crate) const DERIVED: &[DerivedColumn] = &[
    DerivedColumn::each(
        "run_delay_per_timeslice",
        "ns",
        "how long a task waited for the CPU each time",
        &["run_delay_ns"],
        &["timeslices"],
    ),
    DerivedColumn::share(
        "local_wakeup_share",
        "wake-ups on the CPU of who woke",
        &["ttwu_local"],
        &["ttwu_count"],
    ),
];
