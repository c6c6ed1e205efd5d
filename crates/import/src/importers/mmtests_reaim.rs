//! reaim (AIM7): jobs per minute by work file and users.
//!
//! Each work file has a folder, `workfile.NAME`, with `reaim.csv`: a head that names columns, then a row for each number of users.

use std::path::Path;

use perflab_formats::finite_number::require_finite_number;
use perflab_formats::reading_parser::{LineOutcome, TextLine};
use perflab_model::Direction;

use crate::error::ImportError;
use crate::importers::mmtests_log_reader::{BenchmarkLogReader, DeclaredMetric, outcome_of};
use crate::packed_folder::PackedFolder;

const RATE: DeclaredMetric = ("jpm", "jobs/min", Direction::Higher);

/// The column that counts.
const COLUMN: &str = "JPM";

pub(crate) fn read_reaim(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    for (name, path) in folder.iter() {
        let Some(work_file) = name.strip_prefix("workfile.") else { continue };
        let logs = PackedFolder::open(path, bench.report);
        if let Some(file) = logs.file("reaim.csv") {
            read_reaim_table(file, work_file, bench)?;
        }
    }
    Ok(())
}

fn read_reaim_table(
    file: &Path,
    work_file: &str,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    let mut column = None;
    let report = bench.read_lines(file, |bench, line| {
        let cells: Vec<&str> = line.text.split(',').map(str::trim).collect();
        if line.number == 1 {
            column = cells.iter().position(|cell| *cell == COLUMN);
            return column.is_none().then(|| {
                LineOutcome::Unusable(format!("it names no column {COLUMN}, so that no row can be read"))
            });
        }
        let (users, value) = parse_reaim_row(line, &cells, column?);
        Some(outcome_of(value, |value| {
            let case = bench.case_at(&[("workfile", work_file), ("users", users)]);
            let execution = bench.next_execution(case);
            let metric = bench.primary_metric(case, RATE);
            bench.add_sample(execution, metric, value);
        }))
    })?;
    bench.keep_report(report);
    Ok(())
}

/// Users, and the cell of the column.
fn parse_reaim_row<'a>(
    line: TextLine<'_>,
    cells: &[&'a str],
    column: usize,
) -> (&'a str, Result<f64, String>) {
    let users = cells.first().copied().unwrap_or("");
    if users.parse::<u32>().is_err() {
        return (users, Err(format!("`{users}` is no number of users")));
    }
    let value = match cells.get(column) {
        Some(_) if !line.whole && column + 1 == cells.len() => {
            Err("the line is cut off in the number that counts".into())
        }
        Some(cell) => require_finite_number(cell),
        None => Err(format!("it has {} cells and lacks that of {COLUMN}", cells.len())),
    };
    (users, value)
}
