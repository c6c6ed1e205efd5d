//! Our entrant: points from a file, or from anywhere, through the grid to a picture with its axis.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use perflab_present::chart::{DotGrid, MarkInk, RgbColour, Scene, SceneMark, ScenePoint, TextAnchor};
use perflab_present::operations::{ScaleKind, TimeScale};

/// Bytes of a point in a file.
const POINT: usize = 8;
const WIDTH: usize = 1980;
const HEIGHT: usize = 1640;
const LEFT: f64 = 74.0;
const TOP: f64 = 84.0;

/// From a file of points to a file of a picture, as a process of its own, which tells its CPU time in nanoseconds and its peak of
/// memory in KiB. The file is read twice, for the range and for the dots: a point is nowhere kept.
pub(crate) fn draw_points_file(points: &Path, picture: &Path) {
    let file = File::open(points).expect("the points that were written");
    let count = file.metadata().map_or(0, |file| file.len() as usize / POINT);
    let (mut last, mut low, mut high) = (1, u32::MAX, 1);
    for_each_point(&file, 0..count, |x, y| (last, low, high) = (last.max(x), low.min(y), high.max(y)));
    let file = draw_dots_png(count, last, (low, high), |part, pen| {
        for_each_point(&file, part, |x, y| pen.dot(x, y))
    });
    std::fs::write(picture, file).expect("a picture that can be written");
    eprintln!("{}\n{}", crate::spent::process_cpu_time().as_nanos(), crate::spent::peak_kib());
}

/// The picture of so many points from anywhere: `points` tells those of a part.
pub(crate) fn draw_dots_png(
    count: usize,
    last: u32,
    (low, high): (u32, u32),
    points: impl Fn(Range<usize>, &mut DotPen<'_>) + Sync,
) -> Vec<u8> {
    let scale = TimeScale::new(ScaleKind::Log, f64::from(low) * 0.8, f64::from(high) * 1.05, HEIGHT);
    let mut pixels = DotGrid::new(WIDTH, HEIGHT, &[RgbColour(0x8f, 0x1d, 0x1d)]);
    let slope = (WIDTH - 1) as f64 / f64::from(last);
    pixels.draw_parallel(count, |part, pixels| points(part, &mut DotPen { scale: &scale, slope, pixels }));
    let mut marks: Vec<SceneMark> = scale.ticks().into_iter().flat_map(tick_marks).collect();
    marks.push(SceneMark::Dots { at: ScenePoint { x: LEFT, y: TOP }, scale: 2.0, pixels });
    let scene = Scene { width: 1080.0, height: 960.0, description: String::new(), marks };
    scene.to_png().expect("a picture of that size")
}

/// What a part of the points is drawn with.
pub(crate) struct DotPen<'a> {
    scale: &'a TimeScale,
    slope: f64,
    pixels: &'a mut DotGrid,
}

impl DotPen<'_> {
    #[inline]
    pub(crate) fn dot(&mut self, x: u32, y: u32) {
        self.pixels.add_dot((f64::from(x) * self.slope) as usize, self.scale.row(i64::from(y)), 0);
    }
}

fn for_each_point(file: &File, part: Range<usize>, mut tell: impl FnMut(u32, u32)) {
    let mut buffer = vec![0; POINT << 13];
    let number = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
    for at in part.clone().step_by(1 << 13) {
        let buffer = &mut buffer[..POINT * (part.end - at).min(1 << 13)];
        file.read_exact_at(buffer, (at * POINT) as u64).expect("a readable file");
        let (numbers, _) = buffer.as_chunks();
        numbers.as_chunks().0.iter().for_each(|[x, y]| tell(number(x), number(y)));
    }
}

fn tick_marks((value, row): (f64, usize)) -> [SceneMark; 2] {
    let y = TOP + row as f64 / 2.0;
    let points = [LEFT, LEFT + 990.0].map(|x| ScenePoint { x, y }).to_vec();
    let title = String::new();
    [
        SceneMark::Line { points, ink: MarkInk::Grid, width: 1.0, dashed: false, title },
        SceneMark::Text {
            at: ScenePoint { x: LEFT - 8.0, y: y + 4.0 },
            anchor: TextAnchor::End,
            size: 12.0,
            ink: MarkInk::Faint,
            text: format!("{value} ns"),
        },
    ]
}
