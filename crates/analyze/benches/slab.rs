//! How long slab efficiency takes to analyse, for as many rows as the logs of 2019 have: 29,295 of /proc/slabinfo (155
//! caches, 189 ticks) and 18,128 of the slabinfo tool (103 caches, 176 ticks).
//!
//! `cargo bench -p perflab-analyze --bench slab` prints milliseconds, the median of nine. The goal is well under 50 for
//! everything together: the table, the timeline, both histograms, the stack, growth and the notebook's figures.

use std::error::Error;
use std::time::Instant;

use perflab_analyze::slab::{
    CacheTableOptions, SlabFacts, SlabGrowthOptions, SlabInput, SlabRecording, cache_stack, cache_table,
    efficiency_histogram, notebook, slab_growth, usage_timeline,
};
use perflab_model::series::{RowRuns, Series};

#[path = "../tests/it/slab/table.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "made for tests, of which this uses a part")]
mod table;

use table::{keyed_columns, make_series, make_slabinfo};

fn main() -> Result<(), Box<dyn Error>> {
    let (proc, tool) = (make_system_slabinfo(), make_tool_series());
    let system = SlabFacts { page_size: Some(4096), cpus: Some(4), nodes: Some(1) };
    let input = SlabInput { slabinfo: Some(&proc), tool: Some(&tool), system, ..SlabInput::default() };
    let mut times = Vec::new();
    for _ in 0..9 {
        times.push(measure_steps(&input)?);
    }
    times.sort_by(|a, b| a.iter().sum::<f64>().total_cmp(&b.iter().sum::<f64>()));
    let Some([read, show, lines, growth, notebook]) = times.get(4) else { return Ok(()) };
    let rows = proc.row_count() + tool.at.len();
    println!(
        "{rows} rows: read {read:.1} ms, show {show:.1} ms, timeline, histogram and stack {lines:.1} ms, growth \
         {growth:.1} ms, notebook {notebook:.1} ms, together {:.1} ms",
        read + show + lines + growth + notebook
    );
    Ok(())
}

/// Milliseconds of each step.
fn measure_steps(input: &SlabInput) -> Result<[f64; 5], Box<dyn Error>> {
    let mut begin = Instant::now();
    let mut lap = || std::mem::replace(&mut begin, Instant::now()).elapsed().as_secs_f64() * 1e3;
    let recording = SlabRecording::read(input)?;
    let read = lap();
    let all = cache_table(&recording, &CacheTableOptions::default());
    let shown = lap();
    let drawn = (
        usage_timeline(&recording, None)?,
        efficiency_histogram(&recording, 100),
        cache_stack(&recording, 10),
    );
    let lines = lap();
    let grown = slab_growth(&recording, &SlabGrowthOptions::default())?;
    let growth = lap();
    let table = (
        notebook::notebook_table(input, 30)?,
        notebook::notebook_timeline(input)?,
        notebook::notebook_cache(input, "cache-7")?,
    );
    let bins = (notebook::notebook_tool_histogram(input)?, notebook::notebook_proc_histogram(input)?);
    let notebook = lap();
    std::hint::black_box((all, drawn, grown, table, bins));
    Ok([read, shown, lines, growth, notebook])
}

fn make_system_slabinfo() -> RowRuns {
    let names: Vec<String> = (0..155).map(|number| format!("cache-{number}")).collect();
    let line = |tick: u64, number: usize| {
        let (size, objs) = (64 + 8 * number as i64, 4096 / (64 + 8 * number as i64));
        let slabs = (number as i64 * 7919 + tick as i64 * 13) % 5000;
        (
            tick,
            names.get(number).map_or("", String::as_str),
            slabs * objs * 9 / 10,
            slabs * objs,
            size,
            objs,
            1,
            slabs,
        )
    };
    let lines: Vec<_> = (0..189).flat_map(|tick| (0..155).map(move |number| line(tick, number))).collect();
    make_slabinfo(&lines)
}

fn make_tool_series() -> Series {
    use perflab_model::{ColumnSpec, Nanos, TableCell};
    let mut columns =
        keyed_columns(&["objects", "object_size", "slabs", "cpu", "order", "efficiency_percent"]);
    columns.push(ColumnSpec::key("space"));
    let row = |tick: u64, number: i64| {
        let slabs = (number * 7919 + tick as i64 * 13) % 5000 + 1;
        let numbers = [slabs * 57, 64, slabs, 2, 0, 89].map(TableCell::Int);
        let mut row = vec![TableCell::Text(format!("cache-{number}"))];
        row.extend(numbers);
        row.push(TableCell::Text(format!("{}.{}K", slabs * 4096 / 1000, slabs % 10)));
        (Nanos(tick * 1_000_000_000), row)
    };
    let rows = (0..176).flat_map(|tick| (0..103).map(move |number| row(tick, number))).collect();
    make_series("slabinfo-tool", columns, rows)
}
