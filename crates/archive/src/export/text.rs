//! CSV, Go benchmark text, Markdown, LaTeX.
//!
//! - CSV: a row per sample, as RFC 4180 has it.
//! - What `go test -bench` prints, for benchstat: a line per iteration, values with their units, and which
//!   direction is good. Times are in seconds, as benchstat scales them itself.
//! - Tables of medians for people: Markdown and LaTeX (with booktabs).

use std::collections::BTreeMap;
use std::io::{self, Write};

use perflab_model::untrusted_text::escape_controls_in_line;
use perflab_model::{BlockLayouts, Direction, Sample};

use crate::export::exporter::{
    ExportSheet, MetricSummary, case_coordinates, direction_arrow, to_blankless_word,
};

const BEFORE: [&str; 6] = ["run", "label", "target", "boot", "workload", "point"];

const AFTER: [&str; 8] =
    ["iteration", "metric", "value", "unit", "direction", "primary", "start_ns", "end_ns"];

pub(crate) fn write_csv_export(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    let manifest = &sheet.record.manifest;
    let factors = || manifest.plan.factors.keys();
    let head = BEFORE.map(String::from).into_iter().chain(factors().map(|name| format!("factor.{name}")));
    let has_layouts = !manifest.plan.layouts.is_empty();
    let layouts = BlockLayouts::from_plan(&manifest.plan);
    let head = head.chain(AFTER.map(String::from)).chain(has_layouts.then(|| "layout".into()));
    write_separated_row(head, out)?;
    let label = manifest.label.clone().unwrap_or_default();
    for (sample, run) in sheet.record.samples.iter().zip(sheet.record.sample_run_ids()) {
        let Some(case) = sheet.case_of_sample(sample) else { continue };
        let target = sample.target.and_then(|index| manifest.targets.get(index as usize));
        let target = target.map_or(&manifest.target, |target| &target.name);
        let point: Vec<String> = case.point.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let before = [
            run.to_owned(),
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
        let layout = layouts.of_iteration(sample.boot, sample.iteration);
        let layout = has_layouts.then(|| layout.map_or_else(String::new, |layout| layout.to_string()));
        write_separated_row(before.into_iter().chain(levels).chain(after).chain(layout), out)?;
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

/// Units of time, and what makes seconds of them.
const TIMES: &[(&str, f64)] = &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)];

pub(crate) fn write_go_bench(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "run: {}", sheet.record.manifest.id)?;
    let mut units: BTreeMap<String, (Direction, bool)> = BTreeMap::new();
    for MetricSummary { of, .. } in &sheet.summaries {
        let exact = sheet.record.manifest.plan.exact.iter().any(|name| *name == of.metric.as_str());
        units.insert(go_unit_name(of), (of.direction, exact));
    }
    for (unit, (direction, exact)) in units {
        let better = match direction {
            Direction::Higher => " better=higher",
            Direction::Lower => " better=lower",
            Direction::Neither => "",
        };
        let assume = if exact { " assume=exact" } else { "" };
        if !better.is_empty() || exact {
            writeln!(out, "Unit {unit}{better}{assume}")?;
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

const HEAD: [&str; 8] = ["case", "metric", "unit", "good", "n", "median", "95 % interval", "min to max"];

pub(crate) fn write_markdown_export(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    writeln!(out, "{}", line(HEAD.map(String::from).to_vec()))?;
    writeln!(out, "|:--|:--|:--|:--|--:|--:|--:|--:|")?;
    let escaped =
        |cell: String| escape_controls_in_line(&cell.replace('|', "\\|").replace('\n', " ")).into_owned();
    sheet.summaries.iter().try_for_each(|summary| {
        writeln!(out, "{}", line(summary_cells(summary).into_iter().map(escaped).collect()))
    })
}

pub(crate) fn write_latex_export(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "% \\usepackage{{booktabs}}\n\\begin{{tabular}}{{llllrrrr}}\n\\toprule")?;
    let line = |cells: Vec<String>| {
        format!("{} \\\\", cells.into_iter().map(|cell| escape_latex(&cell)).collect::<Vec<_>>().join(" & "))
    };
    writeln!(out, "{}\n\\midrule", line(HEAD.map(String::from).to_vec()))?;
    sheet.summaries.iter().try_for_each(|summary| writeln!(out, "{}", line(summary_cells(summary))))?;
    writeln!(out, "\\bottomrule\n\\end{{tabular}}")
}

fn summary_cells(summary: &MetricSummary<'_>) -> Vec<String> {
    let interval = summary.interval.map_or("-".into(), |(low, high)| format_limits(low, high));
    vec![
        summary.case.label(),
        String::from(&summary.of.metric),
        String::from(&summary.of.unit.0),
        direction_arrow(summary.of.direction).into(),
        summary.count.to_string(),
        format_short_number(summary.median),
        interval,
        format_limits(summary.least, summary.greatest),
    ]
}

fn format_limits(low: f64, high: f64) -> String {
    format!("{} to {}", format_short_number(low), format_short_number(high))
}

/// Five significant digits; whole numbers below a million as they are.
fn format_short_number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e6 {
        return format!("{value}");
    }
    let magnitude = value.abs().log10().floor();
    match magnitude {
        m if !(-4.0..9.0).contains(&m) => format!("{value:.4e}"),
        m => format!("{value:.*}", (4.0 - m).max(0.0) as usize),
    }
}

fn escape_latex(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', c]),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '\\' => out.push_str("\\textbackslash{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            _ if c.is_control() => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}
