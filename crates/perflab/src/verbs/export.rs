//! `perflab export`: a run as a portable file, or in another tool's format.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use perflab_archive::export::{Exporter, export_schema, write_export};
use perflab_archive::{RunDir, write_portable_file, write_portable_run};
use perflab_stats::median_with_interval;

use crate::arguments;
use crate::context::App;
use crate::exit::{Exit, UsageError};
use crate::output_path::OutputPath;
use crate::sides;

/// Confidence of the intervals of medians.
const CONFIDENCE: f64 = 0.95;

/// `perflab export RUN [FILE] [--to FORMAT]`
pub fn export_stored_run(context: &App, wanted: &arguments::ExportArgs) -> anyhow::Result<Exit> {
    if wanted.schema {
        context.print_text(&serde_json::to_string_pretty(&export_schema())?)?;
        return Ok(Exit::Fine);
    }
    let run = sides::select_run(&context.archive()?, &wanted.run)?;
    let file = wanted.file.as_ref().or(wanted.output.as_ref());
    match &wanted.to {
        None => export_as_portable(context, &run, file),
        Some(format) => {
            let format =
                format.parse().map_err(|error: String| UsageError::new(error, "say one of these"))?;
            export_for_tool(&run, format, file.unwrap_or(&OutputPath::Stdout))
        }
    }
}

fn export_as_portable(context: &App, run: &RunDir, file: Option<&OutputPath>) -> anyhow::Result<Exit> {
    let file = match file {
        Some(OutputPath::Stdout) => {
            OutputPath::Stdout.refuse_terminal("a portable file")?;
            OutputPath::Stdout.write_new(|out| Ok(write_portable_run(run, out)?))?;
            return Ok(Exit::Fine);
        }
        Some(OutputPath::File(file)) => file.clone(),
        None => PathBuf::from(format!("{}.perflab", run.id())),
    };
    write_portable_file(run, &file)?;
    context.print_value("file", &file.display().to_string())?;
    Ok(Exit::Fine)
}

fn export_for_tool(run: &RunDir, format: Exporter, file: &OutputPath) -> anyhow::Result<Exit> {
    if format == Exporter::Parquet {
        file.refuse_terminal("a table of Parquet")?;
        let mut samples = File::open(run.samples_path()?)?;
        file.write_new(|out| Ok(io::copy(&mut samples, out).map(drop)?))?;
    } else {
        let record = run.read_record()?;
        file.write_new(|mut out| Ok(write_export(&record, &median_interval, format, &mut out)?))?;
    }
    Ok(Exit::Fine)
}

/// The interval of a median, where there are values enough.
fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    let found = median_with_interval(values, CONFIDENCE).ok()?.interval?;
    Some((found.low, found.high))
}
