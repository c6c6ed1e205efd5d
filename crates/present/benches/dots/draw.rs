//! Our entrant: points from a file, or from anywhere, through the grid to a picture with its axis.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use perflab_present::chart::{Anchor, Ink, Mark, Pixels, Point, Rgb, Scene};
use perflab_present::trace::{Scale, Spread};

const WIDTH: usize = 1980;
const HEIGHT: usize = 1640;
const LEFT: f64 = 74.0;
const TOP: f64 = 84.0;

/// From a file of points to a file of a picture, as a process of its own, which tells its CPU time in nanoseconds and its peak of
/// memory in KiB. The file is read twice, for the range and for the dots: a point is nowhere kept.
pub(crate) fn entrant(points: &Path, picture: &Path) {
    let (mut last, mut low, mut high) = (1, u32::MAX, 1);
    each(points, |x, y| (last, low, high) = (last.max(x), low.min(y), high.max(y)));
    let mut grid = Grid::new(last, (low, high));
    each(points, |x, y| grid.dot(x, y));
    std::fs::write(picture, grid.png()).expect("a picture that can be written");
    eprintln!("{}\n{}", crate::spent::cpu().as_nanos(), crate::spent::peak_kib());
}

/// The picture of points from anywhere.
pub(crate) fn png(points: impl Iterator<Item = (u32, u32)>, last: u32, range: (u32, u32)) -> Vec<u8> {
    let mut grid = Grid::new(last, range);
    points.for_each(|(x, y)| grid.dot(x, y));
    grid.png()
}

fn each(points: &Path, mut tell: impl FnMut(u32, u32)) {
    let mut file = File::open(points).expect("the points that were written");
    let mut buffer = vec![0; 1 << 16];
    let number = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
    while let read @ 1.. = file.read(&mut buffer).expect("a readable file") {
        let (numbers, _) = buffer[..read].as_chunks();
        numbers.as_chunks().0.iter().for_each(|[x, y]| tell(number(x), number(y)));
    }
}

struct Grid {
    pixels: Pixels,
    scale: Scale,
    slope: f64,
}

impl Grid {
    fn new(last: u32, (low, high): (u32, u32)) -> Self {
        let scale = Scale::new(Spread::Log, f64::from(low) * 0.8, f64::from(high) * 1.05, HEIGHT);
        let pixels = Pixels::new(WIDTH, HEIGHT, &[Rgb(0x8f, 0x1d, 0x1d)]);
        Grid { pixels, scale, slope: (WIDTH - 1) as f64 / f64::from(last) }
    }

    #[inline]
    fn dot(&mut self, x: u32, y: u32) {
        self.pixels.dot((f64::from(x) * self.slope) as usize, self.scale.row(i64::from(y)), 0);
    }

    fn png(self) -> Vec<u8> {
        let mut marks: Vec<Mark> = self.scale.ticks().into_iter().flat_map(tick).collect();
        marks.push(Mark::Dots { at: Point { x: LEFT, y: TOP }, scale: 2.0, pixels: self.pixels });
        let scene = Scene { width: 1080.0, height: 960.0, description: String::new(), marks };
        scene.png().expect("a picture of that size")
    }
}

fn tick((value, row): (f64, usize)) -> [Mark; 2] {
    let y = TOP + row as f64 / 2.0;
    let points = [LEFT, LEFT + 990.0].map(|x| Point { x, y }).to_vec();
    let title = String::new();
    [
        Mark::Line { points, ink: Ink::Grid, width: 1.0, dashed: false, title },
        Mark::Text {
            at: Point { x: LEFT - 8.0, y: y + 4.0 },
            anchor: Anchor::End,
            size: 12.0,
            ink: Ink::Faint,
            text: format!("{value} ns"),
        },
    ]
}
