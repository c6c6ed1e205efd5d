//! `perflab export RUN --to perfetto`: the parts of a run, read one at a time, into one trace.

use std::io::{BufWriter, Write};

use perflab_analyze::operations::{OutlierOptions, analyze_operations};
use perflab_archive::RunDir;
use perflab_model::operation::{OPERATION_TRACER, iterations_with_operations};
use perflab_present::perfetto::PerfettoWriter;

use crate::failure::Failure;

/// Writes iterations, what happened meanwhile, what monitors recorded, and every traced operation.
pub fn write_perfetto_trace(run: &RunDir, out: &mut dyn Write) -> Result<(), Failure> {
    let record = run.read_record()?;
    let mut trace = PerfettoWriter::new(BufWriter::new(out), &record)?;
    trace.write_iterations()?;
    for event in run.read_events()? {
        trace.write_event(&event?)?;
    }
    for monitor in run.list_monitors()? {
        trace.write_series(&run.read_series(&monitor)?)?;
    }
    if run.list_tracers()?.iter().any(|tracer| tracer == OPERATION_TRACER) {
        for iteration in iterations_with_operations(&run.read_trace_summaries(OPERATION_TRACER)?) {
            let operations = run.read_operations(OPERATION_TRACER, iteration)?;
            // Where no operation has a sound time, none is slow.
            let report = analyze_operations(&operations, &OutlierOptions::default()).ok();
            trace.write_operations(iteration, &operations, report.as_ref())?;
        }
    }
    trace.finish()?;
    Ok(())
}
