//! From dots to a picture: the study's 1,416,100 operations with their outliers to the bytes of a PNG and of an SVG, and
//! 100 million dots through the same grid, whose memory is that of the picture. Peers: gnuplot and datashader, with the
//! same points, where they are installed (field notes have their figures on this machine).
//!
//! `cargo bench -p perflab-present --bench dots -- [ROUNDS]`

use std::time::Instant;

use perflab_analyze::trace::{Options, analyze};
use perflab_model::trace::Operations;
use perflab_present::chart::{Mark, Pixels, Point, Rgb, Scene, Surface};
use perflab_present::trace::{Picture, Scale, Spread, picture};

/// 300 ns with a tail, and spikes of up to a millisecond from 800,000 on.
fn time(at: u64) -> i64 {
    let hash = (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) & 0xfffff;
    let tail = 300 + (hash & 255) as i64 + if hash.is_multiple_of(97) { 2_000 } else { 0 };
    tail + if at > 800_000 && hash.is_multiple_of(500) { (hash as i64) + 20_000 } else { 0 }
}

fn operations(n: usize) -> Operations {
    Operations {
        kinds: vec!["insert".into()],
        kind: vec![0; n],
        thread: vec![1; n],
        start: vec![0; n],
        wall: (0..n as u64).map(time).collect(),
        ..Operations::default()
    }
}

fn least(rounds: usize, mut work: impl FnMut() -> usize) -> (f64, usize) {
    let once = |_| {
        let since = Instant::now();
        let size = work();
        (since.elapsed().as_secs_f64() * 1e3, size)
    };
    (0..rounds).map(once).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0))
}

fn main() {
    let quick = std::env::args().any(|arg| arg == "--test") || cfg!(debug_assertions);
    let given = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    let rounds: usize = given.unwrap_or(if quick { 1 } else { 7 });
    let (small, large) = if quick { (10_000, 100_000) } else { (1_416_100, 100_000_000_u64) };
    let operations = operations(small);
    let report = analyze(&operations, &Options::default()).expect("a trace with operations");
    let wanted = Picture { causes: true, ..Picture::default() };
    let draw = || picture(&operations, &report, &wanted);
    let (ms, bytes) = least(rounds, || draw().png().map_or(0, |png| png.len()));
    println!("{small} operations, {} outliers, to PNG: {ms:.1} ms, {bytes} bytes", report.outlier_count);
    let (ms, bytes) = least(rounds, || draw().svg(Surface::Paper).len());
    println!("the same to SVG: {ms:.1} ms, {bytes} bytes");
    let (ms, bytes) = least(rounds.min(3), || {
        let mut pixels = Pixels::new(1980, 1640, &[Rgb(0x8f, 0x1d, 0x1d)]);
        let scale = Scale::new(Spread::Log, 300.0, 1.1e6, 1640);
        for at in 0..large {
            pixels.dot((at * 1979 / large) as usize, scale.row(time(at)), 0);
        }
        let marks = vec![Mark::Dots { at: Point { x: 74.0, y: 84.0 }, scale: 2.0, pixels }];
        Scene { width: 1080.0, height: 960.0, description: String::new(), marks }
            .png()
            .map_or(0, |png| png.len())
    });
    println!("{large} dots, made on the way, to PNG: {ms:.0} ms, {bytes} bytes");
}
