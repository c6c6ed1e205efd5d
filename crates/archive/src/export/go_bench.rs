//! What `go test -bench` prints, for benchstat: a line an iteration, values with their units, and which way is good. Units
//! of time are told in seconds, as benchstat scales them itself.

use std::collections::BTreeMap;
use std::io::{self, Write};

use perflab_model::{Direction, Sample};

use super::ExportSheet;
use super::names::{case_coordinates, to_blankless_word};

/// Units of time, and what makes seconds of them.
const TIMES: &[(&str, f64)] = &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)];

pub(super) fn write_go_bench(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "run: {}", sheet.record.manifest.id)?;
    let mut units: BTreeMap<String, Direction> = BTreeMap::new();
    for summary in &sheet.summaries {
        units.insert(go_unit_name(summary.of), summary.of.direction);
    }
    for (unit, direction) in units {
        match direction {
            Direction::Higher => writeln!(out, "Unit {unit} better=higher")?,
            Direction::Lower => writeln!(out, "Unit {unit} better=lower")?,
            Direction::Neither => {}
        }
    }
    write_go_bench_lines(sheet, out)
}

/// Samples that follow one another in one iteration are one line, unless a metric repeats.
fn write_go_bench_lines(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut rest = sheet.record.samples.as_slice();
    while let Some(first) = rest.first() {
        let same = |sample: &Sample| {
            (sample.boot, sample.target, sample.case, sample.iteration)
                == (first.boot, first.target, first.case, first.iteration)
        };
        let mut seen = Vec::new();
        let fits = |sample: &&Sample| {
            let new = !seen.contains(&go_unit_name(sample));
            seen.push(go_unit_name(sample));
            same(sample) && new
        };
        let length = rest.iter().take_while(fits).count().max(1);
        let (line, after) = rest.split_at(length);
        rest = after;
        write!(out, "Benchmark{} 1", go_benchmark_name(sheet, first))?;
        for sample in line {
            write!(out, " {} {}", sample.value * go_unit_factor(sample), go_unit_name(sample))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// `Hackbench/groups=4`: Go wants a capital letter.
fn go_benchmark_name(sheet: &ExportSheet<'_>, sample: &Sample) -> String {
    let Some(case) = sheet.case_of_sample(sample) else { return "Unknown".into() };
    let mut letters = case.workload.chars();
    let head: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    let parts =
        case_coordinates(case).into_iter().map(|(name, value)| format!("{name}={value}").replace('/', "|"));
    to_blankless_word(&std::iter::once(head).chain(parts).collect::<Vec<_>>().join("/"))
}

fn nanos_per_unit(sample: &Sample) -> Option<f64> {
    TIMES.iter().find(|(name, _)| sample.unit.0 == **name).map(|(_, factor)| *factor)
}

fn go_unit_factor(sample: &Sample) -> f64 {
    nanos_per_unit(sample).unwrap_or(1.0)
}

/// `time-sec`: metrics of one unit are different columns.
fn go_unit_name(sample: &Sample) -> String {
    let unit = if nanos_per_unit(sample).is_some() { "sec" } else { &sample.unit.0 };
    to_blankless_word(&format!("{}-{unit}", sample.metric))
}
