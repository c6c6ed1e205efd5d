//! `perflab export`: a run as a portable file, or in another tool's format.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use perflab_archive::export::{ExportFormat, schema, write};
use perflab_archive::{RunDir, export as export_run, export_to as export_run_to};
use perflab_stats::median_with_interval;

use crate::arguments;
use crate::context::Context;
use crate::exit::{Exit, Usage};
use crate::output_path::OutputPath;
use crate::sides;

/// Confidence of the intervals of medians.
const CONFIDENCE: f64 = 0.95;

/// `perflab export RUN [FILE] [--to FORMAT]`
pub fn run(context: &Context, wanted: &arguments::Export) -> anyhow::Result<Exit> {
    if wanted.schema {
        context.write(&serde_json::to_string_pretty(&schema())?)?;
        return Ok(Exit::Fine);
    }
    let run = sides::one(&context.archive()?, &wanted.run)?;
    let file = wanted.file.as_ref().or(wanted.output.as_ref());
    match &wanted.to {
        None => portable(context, &run, file),
        Some(format) => {
            let format = format.parse().map_err(|error: String| Usage::new(error, "say one of these"))?;
            foreign(&run, format, file.unwrap_or(&OutputPath::Stdout))
        }
    }
}

fn portable(context: &Context, run: &RunDir, file: Option<&OutputPath>) -> anyhow::Result<Exit> {
    let file = match file {
        Some(OutputPath::Stdout) => {
            OutputPath::Stdout.refuse_terminal("a portable file")?;
            OutputPath::Stdout.write_new(|out| Ok(export_run_to(run, out)?))?;
            return Ok(Exit::Fine);
        }
        Some(OutputPath::File(file)) => file.clone(),
        None => PathBuf::from(format!("{}.perflab", run.id())),
    };
    export_run(run, &file)?;
    context.answer("file", &file.display().to_string())?;
    Ok(Exit::Fine)
}

fn foreign(run: &RunDir, format: ExportFormat, file: &OutputPath) -> anyhow::Result<Exit> {
    if format == ExportFormat::Parquet {
        file.refuse_terminal("a table of Parquet")?;
        let mut samples = File::open(run.samples_file()?)?;
        file.write_new(|out| Ok(io::copy(&mut samples, out).map(drop)?))?;
    } else {
        let record = run.record()?;
        file.write_new(|mut out| Ok(write(&record, &interval, format, &mut out)?))?;
    }
    Ok(Exit::Fine)
}

/// The interval of a median, where there are values enough.
fn interval(values: &[f64]) -> Option<(f64, f64)> {
    let found = median_with_interval(values, CONFIDENCE).ok()?.interval?;
    Some((found.low, found.high))
}
