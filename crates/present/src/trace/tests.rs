//! No outlier is hidden: neither by the grid nor by what is drawn over it.

use perflab_analyze::trace::{Options, analyze};
use perflab_model::trace::{Operations, SpanColumn};

use super::{Picture, Spread, picture};
use crate::chart::{Mark, Surface};

/// 300,000 operations with spikes at all heights.
fn operations() -> Operations {
    let n = 300_000;
    let spike = |at: i64| if at % 997 == 0 { (at * 7919) % 1_000_000 } else { 0 };
    let wall: Vec<i64> = (0..n).map(|at| 200 + (at * 31) % 157 + spike(at)).collect();
    let time = (0..n as u32).step_by(997).map(|at| (at, spike(i64::from(at)))).collect();
    Operations {
        kinds: vec!["insert".into()],
        kind: vec![0; wall.len()],
        thread: vec![1; wall.len()],
        start: (0..n).collect(),
        wall,
        spans: vec![SpanColumn { name: "reap".into(), time, ..SpanColumn::default() }],
        ..Operations::default()
    }
}

#[test]
fn the_highest_dot_of_each_column_is_the_true_maximum() {
    let operations = operations();
    let report = analyze(&operations, &Options::default()).unwrap();
    for spread in [Spread::Linear, Spread::Log] {
        let scene = picture(&operations, &report, &Picture { spread, causes: true, ..Picture::default() });
        let pixels = scene.marks.iter().find_map(|mark| match mark {
            Mark::Dots { pixels, .. } => Some(pixels),
            _ => None,
        });
        let pixels = pixels.unwrap();
        assert!(pixels.width() == 1980 && pixels.height() == 1640);
        let scale = super::scale::Scale::new(
            spread,
            report.shortest as f64 * 0.8,
            report.longest as f64 * 1.05,
            1640,
        );
        let mut highest = vec![usize::MAX; pixels.width()];
        let mut count = vec![0_u32; pixels.width()];
        for (row, time) in report.dots() {
            let column = (row as usize * (pixels.width() - 1)) / operations.len();
            highest[column] = highest[column].min(scale.row(time));
            count[column] += 1;
        }
        for column in 0..pixels.width() {
            let drawn = (0..pixels.height()).find(|row| pixels.count(column, *row) > 0);
            assert_eq!(drawn.unwrap_or(usize::MAX), highest[column], "{spread:?} {column}");
            let all: u32 = (0..pixels.height()).map(|row| pixels.count(column, row)).sum();
            assert_eq!(all, count[column], "every operation is a dot");
        }
    }
}

#[test]
fn the_longest_are_marks_above_the_dots_and_pixels_of_the_image() {
    let operations = operations();
    let report = analyze(&operations, &Options::default()).unwrap();
    let scene = picture(&operations, &report, &Picture { causes: true, ..Picture::default() });
    let dots = scene.marks.iter().position(|mark| matches!(mark, Mark::Dots { .. })).unwrap();
    let marks: Vec<&str> = scene.marks[dots..]
        .iter()
        .filter_map(|mark| match mark {
            Mark::Rect { title, .. } => Some(title.as_str()),
            _ => None,
        })
        .collect();
    let mut times: Vec<(i64, u32)> = report.dots().map(|(row, time)| (time, row)).collect();
    times.sort_unstable();
    // The true top k, found without the analysis.
    for (time, row) in times.iter().rev().take(100) {
        let wanted = format!("operation {row}: ");
        assert!(marks.iter().any(|title| title.starts_with(&wanted)), "{row} of {time} ns");
    }
    let image = tiny_skia::Pixmap::decode_png(&scene.png().unwrap()).unwrap();
    assert_eq!((image.width(), image.height()), (2160, 1920));
    for mark in &scene.marks[dots..] {
        if let Mark::Rect { at, width, .. } = mark {
            let (x, y) = ((at.x + width / 2.0) * 2.0, (at.y + width / 2.0) * 2.0);
            let pixel = image.pixel(x as u32, y as u32).unwrap();
            assert!(pixel.red() < 250 || pixel.green() < 250, "nothing at {x} {y}");
        }
    }
    let svg = scene.svg(Surface::Paper);
    assert!(
        svg.contains("<image ") && svg.contains("data:image/png;base64,iVBOR") && svg.len() < 1_000_000,
        "{}",
        svg.len()
    );
}
