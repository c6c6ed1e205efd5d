//! Owns very many dots: a grid of pixels that counts what falls on each, whatever there is of it. Its memory is that of
//! the picture; it refuses to keep dots, to average them, and to leave any out.

use super::colour::Rgb;
use super::png::ChartError;

/// Bits of a cell that count; the rest is the ink.
const COUNT: u32 = (1 << 24) - 1;
/// Shades of an ink, by the logarithm of the count.
const SHADES: usize = 8;
/// Edge of the squares in which the grid is turned, so that both sides stay in the cache.
const TILE: usize = 64;

/// A grid of dots. Columns lie one behind the other: dots come in order of x, and each column fits the first cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pixels {
    width: usize,
    height: usize,
    inks: Vec<Rgb>,
    cells: Vec<u32>,
}

impl Pixels {
    /// An empty grid; dots of later inks lie above those of earlier ones.
    #[must_use]
    pub fn new(width: usize, height: usize, inks: &[Rgb]) -> Self {
        Pixels { width, height, inks: inks.to_vec(), cells: vec![0; width * height] }
    }

    /// Columns.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    #[must_use]
    pub fn height(&self) -> usize {
        self.height
    }

    /// Adds a dot of the ink with this index; row 0 is the top. Dots outside of the grid stand at its edge.
    #[inline]
    pub fn dot(&mut self, column: usize, row: usize, ink: u8) {
        let at =
            column.min(self.width.saturating_sub(1)) * self.height + row.min(self.height.saturating_sub(1));
        if let Some(cell) = self.cells.get_mut(at) {
            let count = (*cell & COUNT) + u32::from(*cell & COUNT < COUNT);
            *cell = (*cell >> 24).max(u32::from(ink) + 1) << 24 | count;
        }
    }

    /// How many dots lie on a pixel.
    #[must_use]
    pub fn count(&self, column: usize, row: usize) -> u32 {
        self.cells.get(column * self.height + row).copied().unwrap_or(0) & COUNT
    }

    /// The shade of every pixel, row by row: one more than its place in [`Pixels::shades`]; 0 where nothing is. A dot that
    /// is nearly alone is drawn three pixels wide, over nothing but empty ones.
    pub(super) fn indices(&self) -> Vec<u8> {
        let mut out = vec![0; self.cells.len()];
        let nothing = vec![0; self.height];
        let column = |at: Option<usize>| {
            let begin = at.map(|at| at * self.height);
            begin.and_then(|begin| self.cells.get(begin..begin + self.height)).unwrap_or(&nothing)
        };
        for first in (0..self.width).step_by(TILE) {
            for at in first..(first + TILE).min(self.width) {
                let near = (column(at.checked_sub(1)), column(Some(at)), column(Some(at + 1)));
                let places = out.iter_mut().skip(at).step_by(self.width.max(1));
                places.zip(seen(near)).for_each(|(place, cell)| *place = shade(cell));
            }
        }
        out
    }

    /// Each ink from pale (one dot) to full.
    pub(super) fn shades(&self) -> Vec<Rgb> {
        let shade = |ink: Rgb, step: usize| {
            let part = 0.45 + 0.55 * step as f64 / (SHADES - 1) as f64;
            let mix = |channel: u8| (255.0 - (255.0 - f64::from(channel)) * part).round() as u8;
            Rgb(mix(ink.0), mix(ink.1), mix(ink.2))
        };
        self.inks.iter().flat_map(|ink| (0..SHADES).map(move |step| shade(*ink, step))).collect()
    }

    /// The grid as a PNG with a palette, transparent where nothing is: what an SVG embeds.
    pub(super) fn png(&self) -> Result<Vec<u8>, ChartError> {
        let shades = self.shades();
        let mut palette = vec![255, 255, 255];
        palette.extend(shades.iter().flat_map(|shade| [shade.0, shade.1, shade.2]));
        super::png::encode(self.width as u32, self.height as u32, &self.indices(), Some((palette, vec![0])))
    }
}

/// What is seen of each cell of a column, with the columns beside it: itself, or a lonely dot above, below, left or right.
fn seen<'a>((left, middle, right): (&'a [u32], &'a [u32], &'a [u32])) -> impl Iterator<Item = u32> + 'a {
    let (mut above, mut cells) = (0, middle.iter().copied().peekable());
    left.iter().zip(right).map_while(move |(left, right)| {
        let cell = cells.next()?;
        let below = cells.peek().copied().unwrap_or(0);
        let near = [std::mem::replace(&mut above, cell), below, *left, *right];
        let empty = cell == 0 && near != [0; 4];
        Some(if empty { near.into_iter().filter(|cell| cell & COUNT <= 2).max().unwrap_or(0) } else { cell })
    })
}

/// One more than the place of a cell's shade; 0 for an empty one.
fn shade(cell: u32) -> u8 {
    match (cell >> 24, cell & COUNT) {
        (0, _) | (_, 0) => 0,
        (ink, count) => ((ink as usize - 1) * SHADES + (count.ilog2() as usize).min(SHADES - 1) + 1) as u8,
    }
}
