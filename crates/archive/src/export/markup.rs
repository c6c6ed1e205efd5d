//! Tables of medians for people: Markdown and LaTeX (with booktabs).

use std::io::{self, Write};

use perflab_model::untrusted_text::escape_controls_in_line;

use super::sheet::direction_arrow;
use super::{ExportSheet, MetricSummary};

const HEAD: [&str; 8] = ["case", "metric", "unit", "good", "n", "median", "95 % interval", "min to max"];

pub(super) fn write_markdown_export(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    writeln!(out, "{}", line(HEAD.map(String::from).to_vec()))?;
    writeln!(out, "|:--|:--|:--|:--|--:|--:|--:|--:|")?;
    let escaped =
        |cell: String| escape_controls_in_line(&cell.replace('|', "\\|").replace('\n', " ")).into_owned();
    sheet.summaries.iter().try_for_each(|summary| {
        writeln!(out, "{}", line(summary_cells(summary).into_iter().map(escaped).collect()))
    })
}

pub(super) fn write_latex_export(sheet: &ExportSheet<'_>, out: &mut dyn Write) -> io::Result<()> {
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
