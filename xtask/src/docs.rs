//! Reference pages that are generated from the code, so that they cannot disagree with it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::steps::FEATURES;

/// Pages: file under docs/reference/, title, and the command whose output it holds.
const PAGES: &[(&str, &str, &[&str])] = &[
    ("workloads.md", "Workloads", &["workload", "list", "--format", "markdown"]),
    ("monitors.md", "Monitors", &["monitor", "list", "--format", "markdown"]),
    ("settings.md", "Settings", &["setting", "list", "--format", "markdown"]),
    ("facts.md", "Facts", &["reference", "--facts", "--format", "markdown"]),
    ("study.schema.json", "", &["study", "schema"]),
    ("export.schema.json", "", &["export", "--schema"]),
    ("compare.schema.json", "", &["compare", "--schema"]),
    ("why.schema.json", "", &["why", "--schema"]),
    ("price.schema.json", "", &["price", "--schema"]),
    ("api.md", "", &["reference", "--api"]),
    ("commands.md", "", &["reference"]),
];

/// Writes all pages with the perflab that cargo builds.
pub fn write_reference() -> Result<()> {
    let home = Path::new("docs/reference");
    std::fs::create_dir_all(home)?;
    for (file, title, arguments) in PAGES {
        let text = capture_perflab_output(arguments)?;
        let is_partly_local = ["workloads.md", "settings.md", "monitors.md"].contains(file);
        let text = if is_partly_local { drop_last_column(&text) } else { text };
        let text = if title.is_empty() { text } else { format!("# {title}\n\n{text}") };
        std::fs::write(home.join(file), text)?;
    }
    Ok(())
}

/// The last column of these tables says what is ready or in force on this very machine, which is nobody else's business.
fn drop_last_column(table: &str) -> String {
    let cut = |line: &str| match line.trim_end().trim_end_matches('|').rsplit_once('|') {
        Some((kept, _)) => format!("{kept}|\n"),
        None => format!("{line}\n"),
    };
    table.lines().map(cut).collect()
}

fn capture_perflab_output(arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--package", "perflab", "--features", FEATURES, "--"]).args(arguments);
    let output = command.output().context("cannot run perflab")?;
    if !output.status.success() {
        bail!("perflab {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
