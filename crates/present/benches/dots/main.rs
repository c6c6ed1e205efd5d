//! From dots to a picture of 2160 x 1920 pixels: the study's 1,416,100 operations with their outliers to the bytes of a PNG and
//! of an SVG, 100 million dots through the same grid, and a race over one file of points with gnuplot and datashader.
//!
//! `cargo bench -p perflab-present --bench dots -- [ROUNDS [POINTS OF A RACE]...]`
//!
//! Peers: gnuplot (Debian's gnuplot-nox), which `$PERFLAB_GNUPLOT` names or PATH has, by both of its ways to PNG (`png` is libgd's,
//! `pngcairo` smooths); and datashader, in a Python that `$PERFLAB_DATASHADER` names (`python3 -m venv V &&
//! V/bin/pip install datashader pillow`). One that is missing is named and left out. The points are in `$TMPDIR`, 8 bytes each.

mod draw;
mod race;
mod spent;

use std::ops::Range;

use perflab_analyze::operations::{OutlierOptions, analyze_operations};
use perflab_model::operation::OperationColumns;
use perflab_present::chart::SceneSurface;
use perflab_present::operations::{OperationSceneOptions, operation_scene};

use spent::least_spent_of;

/// 300 ns with a tail, and spikes of up to a millisecond from 800,000 on.
fn operation_time(at: u64) -> i64 {
    let hash = (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) & 0xfffff;
    let tail = 300 + (hash & 255) as i64 + if hash.is_multiple_of(97) { 2_000 } else { 0 };
    tail + if at > 800_000 && hash.is_multiple_of(500) { (hash as i64) + 20_000 } else { 0 }
}

fn sample_operations(n: usize) -> OperationColumns {
    OperationColumns {
        kinds: vec!["insert".into()],
        kind: vec![0; n],
        thread: vec![1; n],
        start: vec![0; n],
        wall: (0..n as u64).map(operation_time).collect(),
        ..OperationColumns::default()
    }
}

fn measure_pictures(rounds: usize, n: usize) {
    let operations = sample_operations(n);
    let report =
        analyze_operations(&operations, &OutlierOptions::default()).expect("a trace with operations");
    let wanted = OperationSceneOptions { colour_by_cause: true, ..OperationSceneOptions::default() };
    let draw = || operation_scene(&operations, &report, &wanted);
    let (spent, bytes) = least_spent_of(rounds, || draw().to_png().map_or(0, |png| png.len()));
    println!("{n} operations, {} outliers, to PNG: {spent}, {bytes} bytes", report.outlier_count);
    let (spent, bytes) = least_spent_of(rounds, || draw().to_svg(SceneSurface::Paper).len());
    println!("the same to SVG: {spent}, {bytes} bytes");
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [draw, points, picture] = args.as_slice()
        && draw == "--draw"
    {
        return draw::draw_points_file(points.as_ref(), picture.as_ref());
    }
    let quick = args.iter().any(|arg| arg == "--test") || cfg!(debug_assertions);
    let mut given = args.iter().filter_map(|arg| arg.parse().ok());
    let rounds = given.next().unwrap_or(if quick { 1 } else { 7 });
    let mut races: Vec<usize> = given.collect();
    if races.is_empty() {
        races = if quick { vec![10_000] } else { vec![1_416_100, 10_000_000] };
    }
    println!("load {}", spent::read_load_average());
    measure_pictures(rounds, if quick { 10_000 } else { 1_416_100 });
    let large = if quick { 100_000 } else { 100_000_000 };
    let (spent, bytes) = least_spent_of(rounds.min(3), || {
        let point = |at| (at as u32, operation_time(at as u64) as u32);
        let draw =
            |part: Range<usize>, pen: &mut draw::DotPen<'_>| part.map(point).for_each(|(x, y)| pen.dot(x, y));
        draw::draw_dots_png(large, large as u32, (300, 1_100_000), draw).len()
    });
    println!("{large} dots, made on the way, to PNG: {spent}, {bytes} bytes");
    races.into_iter().for_each(|points| race::run_race(points, rounds));
    println!("load {}", spent::read_load_average());
}
