//! What `go test -bench` prints, for benchstat: a line an iteration, values with their units, and which way is good. Units
//! of time are told in seconds, as benchstat scales them itself.

use std::collections::BTreeMap;
use std::io::{self, Write};

use perflab_model::{Direction, Sample};

use super::Sheet;
use super::names::{coordinates, word};

/// Units of time, and what makes seconds of them.
const TIMES: &[(&str, f64)] = &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)];

pub(super) fn write(sheet: &Sheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "run: {}", sheet.record.manifest.id)?;
    let mut units: BTreeMap<String, Direction> = BTreeMap::new();
    for summary in &sheet.summaries {
        units.insert(unit(summary.of), summary.of.direction);
    }
    for (unit, direction) in units {
        match direction {
            Direction::Higher => writeln!(out, "Unit {unit} better=higher")?,
            Direction::Lower => writeln!(out, "Unit {unit} better=lower")?,
            Direction::Neither => {}
        }
    }
    lines(sheet, out)
}

/// Samples that follow one another in one iteration are one line, unless a metric repeats.
fn lines(sheet: &Sheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut rest = sheet.record.samples.as_slice();
    while let Some(first) = rest.first() {
        let same = |sample: &Sample| {
            (sample.boot, sample.target, sample.case, sample.iteration)
                == (first.boot, first.target, first.case, first.iteration)
        };
        let mut seen = Vec::new();
        let fits = |sample: &&Sample| {
            let new = !seen.contains(&unit(sample));
            seen.push(unit(sample));
            same(sample) && new
        };
        let length = rest.iter().take_while(fits).count().max(1);
        let (line, after) = rest.split_at(length);
        rest = after;
        write!(out, "Benchmark{} 1", name(sheet, first))?;
        for sample in line {
            write!(out, " {} {}", sample.value * factor(sample), unit(sample))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// `Hackbench/groups=4`: Go wants a capital letter.
fn name(sheet: &Sheet<'_>, sample: &Sample) -> String {
    let Some(case) = sheet.case(sample) else { return "Unknown".into() };
    let mut letters = case.workload.chars();
    let head: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    let parts =
        coordinates(case).into_iter().map(|(name, value)| format!("{name}={value}").replace('/', "|"));
    word(&std::iter::once(head).chain(parts).collect::<Vec<_>>().join("/"))
}

fn time(sample: &Sample) -> Option<f64> {
    TIMES.iter().find(|(name, _)| sample.unit.0 == **name).map(|(_, factor)| *factor)
}

fn factor(sample: &Sample) -> f64 {
    time(sample).unwrap_or(1.0)
}

/// `time-sec`: metrics of one unit are different columns.
fn unit(sample: &Sample) -> String {
    let unit = if time(sample).is_some() { "sec" } else { &sample.unit.0 };
    word(&format!("{}-{unit}", sample.metric))
}
