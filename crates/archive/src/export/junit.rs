//! JUnit's XML: a suite a workload, a test an iteration. One that gave no result failed; what was measured is in the
//! properties of the suite, as the format has no place for numbers of a test.

use std::io::{self, Write};

use indexmap::IndexMap;
use perflab_model::{Case, Iteration, Outcome};

use super::Sheet;
use super::document::reason;
use super::names::xml;

/// An iteration with its case and number.
type Tried<'a> = (&'a Iteration, &'a Case, u32);

pub(super) fn write(sheet: &Sheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    let plan = &sheet.record.manifest.plan;
    let mut suites: IndexMap<&str, Vec<Tried<'_>>> = IndexMap::new();
    for iteration in &sheet.record.iterations {
        let Some(slot) = plan.slots.get(iteration.slot as usize).filter(|slot| !slot.warmup) else {
            continue;
        };
        let Some(case) = plan.case(slot.case) else { continue };
        suites.entry(&case.workload).or_default().push((iteration, case, slot.iteration));
    }
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    let all: usize = suites.values().map(Vec::len).sum();
    let name = xml(&sheet.record.manifest.study.title);
    let failed: usize = suites.values().map(|tried| failures(tried)).sum();
    writeln!(out, "<testsuites name=\"{name}\" tests=\"{all}\" failures=\"{failed}\">")?;
    suites.iter().try_for_each(|(workload, tried)| suite(workload, tried, sheet, out))?;
    writeln!(out, "</testsuites>")
}

fn failures(tried: &[Tried<'_>]) -> usize {
    tried.iter().filter(|(iteration, ..)| iteration.outcome != Outcome::Ok).count()
}

fn seconds(iteration: &Iteration) -> f64 {
    iteration.end.since(iteration.start).seconds()
}

fn suite(workload: &str, tried: &[Tried<'_>], sheet: &Sheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    let time: f64 = tried.iter().map(|(iteration, ..)| seconds(iteration)).sum();
    let (count, failed) = (tried.len(), failures(tried));
    writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{count}\" failures=\"{failed}\" errors=\"0\" skipped=\"0\" time=\"{time:.6}\">",
        xml(workload)
    )?;
    writeln!(out, "    <properties>")?;
    for summary in sheet.summaries.iter().filter(|summary| summary.case.workload == workload) {
        let name = xml(&format!(
            "{} {} [{}] median of {}",
            summary.case.label(),
            summary.of.metric,
            summary.of.unit,
            summary.count
        ));
        writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", summary.median)?;
    }
    writeln!(out, "    </properties>")?;
    tried.iter().try_for_each(|tried| test(tried, out))?;
    writeln!(out, "  </testsuite>")
}

fn test((iteration, case, number): &Tried<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (class, name) = (xml(&case.workload), xml(&format!("{} iteration {number}", case.label())));
    write!(out, "    <testcase classname=\"{class}\" name=\"{name}\" time=\"{:.6}\"", seconds(iteration))?;
    match reason(&iteration.outcome) {
        None => writeln!(out, "/>"),
        Some(reason) => writeln!(out, "><failure message=\"{}\"/></testcase>", xml(&reason)),
    }
}
