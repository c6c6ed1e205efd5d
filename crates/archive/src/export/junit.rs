//! JUnit's XML: a suite a workload, a test an iteration. One that gave no result failed; what was measured is in the
//! properties of the suite, as the format has no place for numbers of a test.

use std::io::{self, Write};

use indexmap::IndexMap;
use perflab_model::{Case, IterationRecord, Outcome};

use super::ExportSheet;
use super::document::failure_reason;
use super::names::clean_xml_text;

/// An iteration with its case and number.
type JunitIteration<'a> = (&'a IterationRecord, &'a Case, u32);

pub(super) fn write_junit(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    let plan = &sheet.record.manifest.plan;
    let mut suites: IndexMap<&str, Vec<JunitIteration<'_>>> = IndexMap::new();
    for iteration in &sheet.record.iterations {
        let Some(slot) = plan.slots.get(iteration.slot as usize).filter(|slot| !slot.warmup) else {
            continue;
        };
        let Some(case) = plan.case(slot.case) else { continue };
        suites.entry(&case.workload).or_default().push((iteration, case, slot.iteration));
    }
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    let all: usize = suites.values().map(Vec::len).sum();
    let name = clean_xml_text(&sheet.record.manifest.study.title);
    let failed: usize = suites.values().map(|tried| count_junit_failures(tried)).sum();
    writeln!(out, "<testsuites name=\"{name}\" tests=\"{all}\" failures=\"{failed}\">")?;
    suites.iter().try_for_each(|(workload, tried)| write_junit_suite(workload, tried, sheet, out))?;
    writeln!(out, "</testsuites>")
}

fn count_junit_failures(tried: &[JunitIteration<'_>]) -> usize {
    tried.iter().filter(|(iteration, ..)| iteration.outcome != Outcome::Ok).count()
}

fn iteration_seconds(iteration: &IterationRecord) -> f64 {
    iteration.end.since(iteration.start).seconds()
}

fn write_junit_suite(
    workload: &str,
    tried: &[JunitIteration<'_>],
    sheet: &ExportSheet<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let time: f64 = tried.iter().map(|(iteration, ..)| iteration_seconds(iteration)).sum();
    let (count, failed) = (tried.len(), count_junit_failures(tried));
    writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{count}\" failures=\"{failed}\" errors=\"0\" skipped=\"0\" time=\"{time:.6}\">",
        clean_xml_text(workload)
    )?;
    writeln!(out, "    <properties>")?;
    for summary in sheet.summaries.iter().filter(|summary| summary.case.workload == workload) {
        let name = clean_xml_text(&format!(
            "{} {} [{}] median of {}",
            summary.case.label(),
            summary.of.metric,
            summary.of.unit,
            summary.count
        ));
        writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", summary.median)?;
    }
    writeln!(out, "    </properties>")?;
    tried.iter().try_for_each(|tried| write_junit_test(tried, out))?;
    writeln!(out, "  </testsuite>")
}

fn write_junit_test((iteration, case, number): &JunitIteration<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (class, name) =
        (clean_xml_text(&case.workload), clean_xml_text(&format!("{} iteration {number}", case.label())));
    write!(
        out,
        "    <testcase classname=\"{class}\" name=\"{name}\" time=\"{:.6}\"",
        iteration_seconds(iteration)
    )?;
    match failure_reason(&iteration.outcome) {
        None => writeln!(out, "/>"),
        Some(reason) => writeln!(out, "><failure message=\"{}\"/></testcase>", clean_xml_text(&reason)),
    }
}
