//! CSV: a row a sample, as RFC 4180 has it.

use std::io::{self, Write};

use super::ExportSheet;

const BEFORE: [&str; 6] = ["run", "label", "target", "boot", "workload", "point"];
const AFTER: [&str; 8] =
    ["iteration", "metric", "value", "unit", "direction", "primary", "start_ns", "end_ns"];

pub(super) fn write_csv_export(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    let manifest = &sheet.record.manifest;
    let factors = || manifest.plan.factors.keys();
    let head = BEFORE.map(String::from).into_iter().chain(factors().map(|name| format!("factor.{name}")));
    write_separated_row(head.chain(AFTER.map(String::from)), out)?;
    let label = manifest.label.clone().unwrap_or_default();
    for sample in &sheet.record.samples {
        let Some(case) = sheet.case_of_sample(sample) else { continue };
        let target = sample.target.and_then(|index| manifest.targets.get(index as usize));
        let target = target.map_or(&manifest.target, |target| &target.name);
        let point: Vec<String> = case.point.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let before = [
            manifest.id.clone(),
            label.clone(),
            target.clone(),
            sample.boot.to_string(),
            case.workload.clone(),
            point.join(" "),
        ];
        let levels = factors().map(|factor| case.levels.get(factor).cloned().unwrap_or_default());
        let after = [
            sample.iteration.to_string(),
            String::from(&sample.metric),
            sample.value.to_string(),
            String::from(&sample.unit.0),
            sample.direction.name().to_owned(),
            sample.primary.to_string(),
            sample.start.0.to_string(),
            sample.end.0.to_string(),
        ];
        write_separated_row(before.into_iter().chain(levels).chain(after), out)?;
    }
    Ok(())
}

fn write_separated_row(cells: impl Iterator<Item = String>, out: &mut dyn Write) -> io::Result<()> {
    let quoted = |cell: String| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    };
    let cells: Vec<String> = cells.map(quoted).collect();
    write!(out, "{}\r\n", cells.join(","))
}
