//! `perflab export`: a run as a portable file, or in another tool's format.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use perflab_archive::export::{ExportFormat, schema, write};
use perflab_archive::{RunDir, export as export_run};
use perflab_stats::median_with_interval;

use crate::arguments;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::sides;

/// Confidence of the intervals of medians.
const CONFIDENCE: f64 = 0.95;

/// `perflab export RUN [FILE] [--to FORMAT]`
pub fn run(context: &Context, wanted: &arguments::Export) -> anyhow::Result<Exit> {
    let Some(run) = wanted.run.as_ref().filter(|_| !wanted.schema) else {
        context.write(&serde_json::to_string_pretty(&schema())?)?;
        return Ok(Exit::Fine);
    };
    let run = sides::one(&context.archive()?, run)?;
    let file = wanted.file.as_ref().or(wanted.output.as_ref());
    match &wanted.to {
        None => portable(context, &run, file),
        Some(format) => {
            let format = format.parse().map_err(|error: String| Usage::new(error, "say one of these"))?;
            foreign(&run, format, file.map(PathBuf::as_path))
        }
    }
}

fn portable(context: &Context, run: &RunDir, file: Option<&PathBuf>) -> anyhow::Result<Exit> {
    let file = file.cloned().unwrap_or_else(|| PathBuf::from(format!("{}.perflab", run.id())));
    export_run(run, &file)?;
    context.write(&file.display().to_string())?;
    Ok(Exit::Fine)
}

fn foreign(run: &RunDir, format: ExportFormat, file: Option<&Path>) -> anyhow::Result<Exit> {
    let mut out: Box<dyn Write> = match file.filter(|file| *file != Path::new("-")) {
        Some(file) => {
            let made = File::create_new(file).with_context(|| format!("cannot create {}", file.display()))?;
            Box::new(BufWriter::new(made))
        }
        None => Box::new(BufWriter::new(io::stdout().lock())),
    };
    if format == ExportFormat::Parquet {
        io::copy(&mut File::open(run.samples_file()?)?, &mut out)?;
    } else {
        write(&run.record()?, &interval, format, &mut out)?;
    }
    out.flush()?;
    Ok(Exit::Fine)
}

/// The interval of a median, where there are values enough.
fn interval(values: &[f64]) -> Option<(f64, f64)> {
    let found = median_with_interval(values, CONFIDENCE).ok()?.interval?;
    Some((found.low, found.high))
}
