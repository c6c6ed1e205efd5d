//! `/proc/stat`: CPU time by state, a row a CPU and one for all of them (`cpu`), which alone carries the system-wide
//! columns. Ticks are recorded as nanoseconds, so their grain is 10 ms. Time in `guest` is part of `user`, and
//! `guest_nice` of `nice` (Documentation/filesystems/proc.rst, section 1.7); `iowait` may go backwards.

use perflab_model::{CellRow, ColumnRef, DeclaredColumn, RowSchema, TableCell};

use crate::column::{describe_mismatch, fill_row, parse_integer_cell};
use crate::kernel::derived_column::{DerivedColumn, Divisor};
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, ReadingStart, RowLayout};
use crate::reading_parser::{LineOutcome, LineRole};

/// The file.
pub const STAT: KernelFile = KernelFile {
    name: StatRow::NAME,
    source: "/proc/stat",
    about: "CPU time by state and CPU; interrupts, context switches, forks, runnable and blocked tasks",
    needs: "",
    without: "",
    provided_by: "",
    columns: StatRow::COLUMNS,
    layout: KernelFileLayout::Rows(RowLayout {
        parts: &[],
        start: ReadingStart::Head { expected: "`cpu`", role: stat_role },
        parse_row: parse_stat_line,
    }),
};

/// USER_HZ is 100 in the binary interface of every architecture but alpha, whatever CONFIG_HZ is.
pub const NANOS_A_TICK: u64 = 10_000_000;

const fn ticks_column(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::counter(name, "ns").scaled(NANOS_A_TICK)
}

/// A row a CPU, and one for all of them.
#[derive(Debug, Clone, Copy)]
pub struct StatRow;

impl RowSchema for StatRow {
    const NAME: &'static str = "stat";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("cpu"),
        ticks_column("user"),
        ticks_column("nice"),
        ticks_column("system"),
        ticks_column("idle"),
        ticks_column("iowait"),
        ticks_column("irq"),
        ticks_column("softirq"),
        ticks_column("steal"),
        ticks_column("guest"),
        ticks_column("guest_nice"),
        DeclaredColumn::counter("intr", "1"),
        DeclaredColumn::counter("ctxt", "1"),
        DeclaredColumn::counter("processes", "1"),
        DeclaredColumn::gauge("procs_running", "1"),
        DeclaredColumn::gauge("procs_blocked", "1"),
    ];
}

/// The times that add up to all time: `guest` is in `user`, and `guest_nice` in `nice`.
const ALL_TIME: &[&str] = &["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

const fn time_share(
    name: &'static str,
    meaning: &'static str,
    plus: &'static [&'static str],
) -> DerivedColumn {
    DerivedColumn::share(name, meaning, plus, ALL_TIME)
}

/// What is worked out of it: shares of CPU time as mpstat(1) of sysstat prints them.
pub const DERIVED: &[DerivedColumn] = &[
    DerivedColumn {
        name: "user_share",
        unit: "%",
        meaning: "programs, guests left out (mpstat's %usr)",
        plus: &["user"],
        minus: &["guest"],
        divisor: Divisor::Growth(ALL_TIME),
        scale: 100.0,
    },
    DerivedColumn {
        name: "nice_share",
        unit: "%",
        meaning: "programs of low priority, guests left out (%nice)",
        plus: &["nice"],
        minus: &["guest_nice"],
        divisor: Divisor::Growth(ALL_TIME),
        scale: 100.0,
    },
    time_share("system_share", "the kernel, interrupts left out (%sys)", &["system"]),
    time_share("iowait_share", "idle while a task waited for a disk (%iowait)", &["iowait"]),
    time_share("irq_share", "interrupts (%irq)", &["irq"]),
    time_share("softirq_share", "soft interrupts (%soft)", &["softirq"]),
    time_share("steal_share", "taken by the hypervisor for others (%steal)", &["steal"]),
    time_share("guest_share", "guests, of any priority (%guest + %gnice)", &["guest", "guest_nice"]),
    time_share("idle_share", "idle, and nothing waited for a disk (%idle)", &["idle"]),
];

impl StatRow {
    /// `cpu3`; `cpu` for all of them.
    pub const CPU: ColumnRef<Self, str> = ColumnRef::named("cpu");

    /// Interrupts: the first column that only the row of all CPUs has.
    pub const INTR: ColumnRef<Self, i64> = ColumnRef::named("intr");
}

/// `cpu  1 2 3`, the first line, is of all CPUs.
fn stat_role(line: &str) -> Result<LineRole, String> {
    let mut words = line.split_ascii_whitespace();
    // Its four oldest states; the line `cpu` of /proc/cgroups has three numbers.
    let is_total = words.next() == Some("cpu")
        && words.clone().count() >= 4
        && words.take(4).all(|word| word.parse::<u64>().is_ok());
    Ok(if is_total { LineRole::HeadRow } else { LineRole::Row })
}

fn parse_stat_line(line: &str, rows: &mut Vec<CellRow>) -> LineOutcome {
    let mut words = line.split_ascii_whitespace();
    let parsed = match words.next() {
        Some(cpu) if cpu.starts_with("cpu") => parse_cpu_line(cpu, words).map(|row| {
            rows.push(row);
            LineOutcome::Used
        }),
        Some(name) => set_system_wide_number(rows.first_mut(), name, words.next().unwrap_or_default()),
        None => Ok(LineOutcome::Nothing),
    };
    parsed.unwrap_or_else(LineOutcome::Unusable)
}

fn parse_cpu_line<'a>(cpu: &str, words: impl Iterator<Item = &'a str>) -> Result<CellRow, String> {
    let mut row = CellRow::with_capacity(StatRow::COLUMNS.len());
    row.push(TableCell::Text(cpu.into()));
    fill_row(&mut row, StatRow::COLUMNS.get(1..StatRow::INTR.index()).unwrap_or_default(), words)?;
    row.resize(StatRow::COLUMNS.len(), TableCell::Missing);
    Ok(row)
}

/// Puts `name`'s number into the total row; names that have no column (`btime`, `softirq`) are left out.
fn set_system_wide_number(
    total: Option<&mut CellRow>,
    name: &str,
    word: &str,
) -> Result<LineOutcome, String> {
    let is_total = |row: &&mut CellRow| StatRow::CPU.get(row) == Some("cpu");
    let mut numbered = StatRow::COLUMNS.iter().enumerate().skip(StatRow::INTR.index());
    let Some((index, _)) = numbered.find(|(_, column)| column.name == name) else {
        return Ok(LineOutcome::Nothing);
    };
    let Some(row) = total.filter(is_total) else {
        return Err(describe_mismatch("a line `cpu`", "the lines before it", name));
    };
    if let Some(cell) = row.get_mut(index) {
        *cell = parse_integer_cell(word, 1).ok_or_else(|| describe_mismatch("a number", name, word))?;
    }
    Ok(LineOutcome::Used)
}

/// Numbers of a line whose sum is all time: `guest` and `guest_nice` are parts of `user` and `nice`.
const STATES: usize = 8;

/// The place of `steal` among them.
const STEAL: usize = 7;

/// Times of all CPUs since the boot by state, in ticks of [`NANOS_A_TICK`] (proc_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTimes {
    ticks: [u64; STATES],
}

impl CpuTimes {
    /// Those of the first line of a `/proc/stat`; none where a kernel does not count steal time.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers = text.lines().next()?.strip_prefix("cpu ")?;
        let mut words = numbers.split_ascii_whitespace();
        let mut ticks = [0; STATES];
        for tick in &mut ticks {
            *tick = words.next()?.parse().ok()?;
        }
        Some(CpuTimes { ticks })
    }

    /// What the hypervisor gave to others, in ticks.
    pub fn steal(&self) -> u64 {
        self.ticks[STEAL]
    }

    /// What has passed since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &CpuTimes) -> CpuTimes {
        let mut ticks = self.ticks;
        for (tick, before) in ticks.iter_mut().zip(earlier.ticks) {
            *tick = tick.saturating_sub(before);
        }
        CpuTimes { ticks }
    }

    /// The same in per cent of all time; none where no time has passed.
    pub fn steal_percent(&self) -> Option<f64> {
        let all: f64 = self.ticks.iter().map(|ticks| *ticks as f64).sum();
        (all > 0.0).then(|| 100.0 * self.steal() as f64 / all)
    }
}

/// Context switches since the boot, from a whole `/proc/stat`; none where it does not say.
pub fn parse_context_switches(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("ctxt "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::kernel_file::KernelFileParser;

    #[test]
    fn what_has_passed_is_the_difference() {
        let times = |text| CpuTimes::parse(text).unwrap();
        let passed = times("cpu  20 0 10 60 0 0 0 20").since(&times("cpu  10 0 10 0 0 0 0 10"));
        assert_eq!(passed, times("cpu  10 0 0 60 0 0 0 10"));
        assert_eq!(passed.steal_percent(), Some(12.5));
    }

    #[test]
    fn stolen_time_is_a_share_of_the_first_eight() {
        let percent = |text| CpuTimes::parse(text).and_then(|times| times.steal_percent());
        assert_eq!(percent("cpu  10 0 10 60 0 0 0 20 9 9\n"), Some(20.0));
        assert_eq!(percent("cpu  1 2"), None);
        assert_eq!(percent("cpu  0 0 0 0 0 0 0 0"), None);
        assert_eq!(percent(""), None);
    }

    #[test]
    fn what_does_not_fit_is_missing_rather_than_wrong() {
        let mut rows = Vec::new();
        let text = format!("cpu  {} 1 2 3\nctxt 5\n", u64::MAX);
        KernelFileParser::new(&STAT, "").parse_text(&text, &mut rows).unwrap();
        let value = |column: ColumnRef<StatRow, i64>| column.get(&rows[0]);
        assert_eq!(
            [ColumnRef::named("user"), ColumnRef::named("nice"), ColumnRef::named("system")].map(value),
            [None, Some(10_000_000), Some(20_000_000)]
        );
        assert_eq!(value(ColumnRef::named("ctxt")), Some(5));
    }

    #[test]
    fn numbers_of_the_system_need_the_line_of_all_cpus() {
        let mut rows = Vec::new();
        let error =
            KernelFileParser::new(&STAT, "").parse_text("cpu0 1 2 3\nctxt 5\n", &mut rows).unwrap_err();
        assert_eq!((error.line, rows.len()), (1, 0));
    }
}
