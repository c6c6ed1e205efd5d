//! How long slab efficiency takes to analyse, for as many rows as the logs of 2019 have: 29,295 of /proc/slabinfo (155
//! caches, 189 ticks) and 18,128 of the slabinfo tool (103 caches, 176 ticks).
//!
//! `cargo bench -p perflab-analyze --bench slab` prints milliseconds, the median of nine. The goal is well under 50 for
//! everything together: the table, the timeline, both histograms, the stack, growth and the notebook's figures.

use std::error::Error;
use std::time::Instant;

use perflab_analyze::slab::{
    GrowthOptions, Input, Recording, ShowOptions, System, growth, histogram, notebook, show, stack, timeline,
};
use perflab_model::series::{Series, Spans};

#[path = "../tests/it/slab/table.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "made for tests, of which this uses a part")]
mod table;

use table::{keyed, series, slabinfo};

fn main() -> Result<(), Box<dyn Error>> {
    let (proc, tool) = (proc(), tool());
    let system = System { page_size: Some(4096), cpus: Some(4), nodes: Some(1) };
    let input = Input { slabinfo: Some(&proc), tool: Some(&tool), system, ..Input::default() };
    let mut times = Vec::new();
    for _ in 0..9 {
        times.push(measure(&input)?);
    }
    times.sort_by(|a, b| a.iter().sum::<f64>().total_cmp(&b.iter().sum::<f64>()));
    let Some([read, show, lines, growth, notebook]) = times.get(4) else { return Ok(()) };
    let rows = proc.rows() + tool.at.len();
    println!(
        "{rows} rows: read {read:.1} ms, show {show:.1} ms, timeline, histogram and stack {lines:.1} ms, growth \
         {growth:.1} ms, notebook {notebook:.1} ms, together {:.1} ms",
        read + show + lines + growth + notebook
    );
    Ok(())
}

/// Milliseconds of each step.
fn measure(input: &Input) -> Result<[f64; 5], Box<dyn Error>> {
    let mut begin = Instant::now();
    let mut lap = || std::mem::replace(&mut begin, Instant::now()).elapsed().as_secs_f64() * 1e3;
    let recording = Recording::read(input)?;
    let read = lap();
    let all = show(&recording, &ShowOptions::default());
    let shown = lap();
    let drawn = (timeline(&recording, None)?, histogram(&recording, 100), stack(&recording, 10));
    let lines = lap();
    let grown = growth(&recording, &GrowthOptions::default())?;
    let growth = lap();
    let table = (notebook::table(input, 30)?, notebook::timeline(input)?, notebook::cache(input, "cache-7")?);
    let bins = (notebook::histogram(input)?, notebook::proc_histogram(input)?);
    let notebook = lap();
    std::hint::black_box((all, drawn, grown, table, bins));
    Ok([read, shown, lines, growth, notebook])
}

fn proc() -> Spans {
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
    slabinfo(&lines)
}

fn tool() -> Series {
    use perflab_model::{Cell, Column, Nanos};
    let mut columns = keyed(&["objects", "object_size", "slabs", "cpu", "order", "efficiency_percent"]);
    columns.push(Column::key("space"));
    let row = |tick: u64, number: i64| {
        let slabs = (number * 7919 + tick as i64 * 13) % 5000 + 1;
        let numbers = [slabs * 57, 64, slabs, 2, 0, 89].map(Cell::Int);
        let mut row = vec![Cell::Text(format!("cache-{number}"))];
        row.extend(numbers);
        row.push(Cell::Text(format!("{}.{}K", slabs * 4096 / 1000, slabs % 10)));
        (Nanos(tick * 1_000_000_000), row)
    };
    let rows = (0..176).flat_map(|tick| (0..103).map(move |number| row(tick, number))).collect();
    series("slabinfo-tool", columns, rows)
}
