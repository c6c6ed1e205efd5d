//! The domain lines of `/proc/schedstat`, versions 15 to 17: how each CPU balanced its load in each of its scheduling domains
//! (Documentation/scheduler/sched-stats.rst).

use perflab_model::{CellRow, DeclaredColumn, RowSchema, TableCell};

use crate::column::{describe_mismatch, fill_row};
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};
use crate::reading_parser::MalformedLine;

/// The domains of all CPUs.
pub const SCHED_DOMAINS: KernelFile = KernelFile {
    name: SchedDomainRow::NAME,
    source: "/proc/schedstat",
    about: "load balancing by CPU and scheduling domain: tries, failures, tasks moved, by how idle the CPU was",
    needs: "",
    without: "",
    provided_by: "CONFIG_SCHEDSTATS and the sysctl kernel.sched_schedstats=1, on more than one CPU",
    columns: SchedDomainRow::COLUMNS,
    layout: KernelFileLayout::Tree,
};

/// A row a CPU and domain.
#[derive(Debug, Clone, Copy)]
pub struct SchedDomainRow;

const fn count(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::counter(name, "1")
}

impl RowSchema for SchedDomainRow {
    const NAME: &'static str = "sched-domains";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("cpu"),
        DeclaredColumn::key("domain"),
        DeclaredColumn::key("name"),
        count("busy_lb_count"),
        count("busy_lb_balanced"),
        count("busy_lb_failed"),
        count("busy_lb_imbalance"),
        count("busy_lb_gained"),
        count("busy_lb_hot_gained"),
        count("busy_lb_nobusyq"),
        count("busy_lb_nobusyg"),
        count("idle_lb_count"),
        count("idle_lb_balanced"),
        count("idle_lb_failed"),
        count("idle_lb_imbalance"),
        count("idle_lb_gained"),
        count("idle_lb_hot_gained"),
        count("idle_lb_nobusyq"),
        count("idle_lb_nobusyg"),
        count("newidle_lb_count"),
        count("newidle_lb_balanced"),
        count("newidle_lb_failed"),
        count("newidle_lb_imbalance"),
        count("newidle_lb_gained"),
        count("newidle_lb_hot_gained"),
        count("newidle_lb_nobusyq"),
        count("newidle_lb_nobusyg"),
        count("alb_count"),
        count("alb_failed"),
        count("alb_pushed"),
        count("sbe_count"),
        count("sbe_balanced"),
        count("sbe_pushed"),
        count("sbf_count"),
        count("sbf_balanced"),
        count("sbf_pushed"),
        count("ttwu_wake_remote"),
        count("ttwu_move_affine"),
        count("ttwu_move_balance"),
    ];
}

/// Keys, and numbers of each kind of idleness.
const KEYS: usize = 3;

const NUMBERS: usize = 8;

/// Those of version 17, which parts the imbalance by load, utilisation, tasks and misfit; it is their sum here.
const NUMBERS_OF_17: usize = 11;

/// Behind those of the three kinds.
const OTHERS: usize = 12;

/// The rows of a whole text.
///
/// # Errors
/// Another version, and the first line that is not understood.
pub fn parse_sched_domains(text: &str, rows: &mut Vec<CellRow>) -> Result<(), MalformedLine> {
    let first = text.lines().next().unwrap_or_default();
    let version = match first.trim().strip_prefix("version ") {
        Some("15") => 15,
        Some("16") => 16,
        Some("17") => 17,
        _ => return Err(MalformedLine::new(1, "`version 15`, 16 or 17", "the first line", first)),
    };
    let mut cpu = "";
    for (index, line) in text.lines().enumerate().skip(1) {
        let Some(rest) = line.strip_prefix("domain") else {
            cpu = line.split_ascii_whitespace().next().filter(|word| word.starts_with("cpu")).unwrap_or(cpu);
            continue;
        };
        let row = parse_domain_line(version, cpu, rest);
        rows.push(row.map_err(|description| MalformedLine { line: index + 1, description })?);
    }
    Ok(())
}

/// `0 3 188 171 …`, and since version 17 `0 PKG 3 188 …`.
fn parse_domain_line(version: u32, cpu: &str, rest: &str) -> Result<CellRow, String> {
    let mut words = rest.split_ascii_whitespace();
    let domain = words.next().unwrap_or_default();
    let name = if version >= 17 { words.next().unwrap_or_default() } else { "" };
    let _cpus = words.next();
    let numbers: Vec<u64> = words
        .map(|word| word.parse().map_err(|_| describe_mismatch("a number", "a domain", word)))
        .collect::<Result<_, _>>()?;
    let of_kind = if version >= 17 { NUMBERS_OF_17 } else { NUMBERS };
    if numbers.len() < 3 * of_kind + OTHERS {
        return Err(describe_mismatch("the numbers of its version", "a domain", rest));
    }
    let mut row: CellRow = [cpu, domain, name].map(|text| TableCell::Text(text.into())).into();
    let cell = |number: u64| i64::try_from(number).map_or(TableCell::Missing, TableCell::Int);
    // Before version 16 the idle CPU's numbers came first.
    let kinds = if version == 15 { [1, 0, 2] } else { [0, 1, 2] };
    for kind in kinds {
        let numbers = numbers.get(kind * of_kind..(kind + 1) * of_kind).unwrap_or_default();
        let (before, after) = numbers.split_at(3);
        let (imbalance, after) = after.split_at(of_kind - NUMBERS + 1);
        row.extend(before.iter().copied().map(cell));
        row.push(cell(imbalance.iter().fold(0, |sum: u64, part| sum.saturating_add(*part))));
        row.extend(after.iter().copied().map(cell));
    }
    let others: Vec<String> = numbers.iter().skip(3 * of_kind).map(u64::to_string).collect();
    let columns = SchedDomainRow::COLUMNS.get(KEYS + 3 * NUMBERS..).unwrap_or_default();
    fill_row(&mut row, columns, others.iter().map(String::as_str))?;
    Ok(row)
}

#[cfg(test)]
mod tests {
    use perflab_model::ColumnRef;

    use super::*;

    /// Numbers from `first` on, blanks between them.
    fn numbers(first: usize, count: usize) -> String {
        (first..first + count).map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
    }

    fn number(row: &CellRow, name: &str) -> Option<i64> {
        let index = SchedDomainRow::COLUMNS.iter().position(|column| column.name == name)?;
        if let TableCell::Int(number) = row[index] { Some(number) } else { None }
    }

    #[test]
    fn the_kinds_of_idleness_changed_places_with_version_16() {
        for (version, busy, idle) in [(15, 9, 1), (16, 1, 9)] {
            let text = format!("version {version}\ntimestamp 1\ncpu0 0 0\ndomain0 3 {}\n", numbers(1, 36));
            let mut rows = Vec::new();
            parse_sched_domains(&text, &mut rows).unwrap();
            assert_eq!(number(&rows[0], "busy_lb_count"), Some(busy));
            assert_eq!(number(&rows[0], "idle_lb_count"), Some(idle));
            assert_eq!(number(&rows[0], "newidle_lb_nobusyg"), Some(24));
            assert_eq!(number(&rows[0], "alb_count"), Some(25));
            assert_eq!(number(&rows[0], "ttwu_move_balance"), Some(36));
        }
    }

    #[test]
    fn version_17_names_its_domains_and_parts_the_imbalance() {
        let text = format!("version 17\ncpu1 0\ndomain0 MC 00,03 {}\n", numbers(1, 45));
        let mut rows = Vec::new();
        parse_sched_domains(&text, &mut rows).unwrap();
        let text = |column: ColumnRef<SchedDomainRow, str>| column.get(&rows[0]).map(str::to_owned);
        assert_eq!(text(ColumnRef::named("cpu")).as_deref(), Some("cpu1"));
        assert_eq!(text(ColumnRef::named("name")).as_deref(), Some("MC"));
        assert_eq!(number(&rows[0], "busy_lb_imbalance"), Some(4 + 5 + 6 + 7));
        assert_eq!(number(&rows[0], "busy_lb_gained"), Some(8));
        assert_eq!(number(&rows[0], "idle_lb_count"), Some(12));
        assert_eq!(number(&rows[0], "alb_count"), Some(34));
    }

    #[test]
    fn what_is_too_short_names_its_line() {
        let mut rows = Vec::new();
        assert_eq!(parse_sched_domains("version 14\n", &mut rows).unwrap_err().line, 1);
        assert_eq!(
            parse_sched_domains("version 15\ncpu0 1\ndomain0 3 1 2\n", &mut rows).unwrap_err().line,
            3
        );
    }
}
