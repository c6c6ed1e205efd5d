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

    /// The colour of every pixel, row by row; none where nothing is. A dot that is nearly alone is drawn three pixels
    /// wide, over nothing but empty ones.
    pub(super) fn colours(&self) -> Vec<Option<Rgb>> {
        let shades = self.shades();
        let shade = |cell: u32| {
            let count = cell & COUNT;
            let ink = ((cell >> 24) as usize).checked_sub(1)?;
            shades.get(ink * SHADES + (count.ilog2() as usize).min(SHADES - 1)).copied()
        };
        let mut out = vec![None; self.cells.len()];
        for left in (0..self.width).step_by(TILE) {
            for top in (0..self.height).step_by(TILE) {
                for column in left..(left + TILE).min(self.width) {
                    for row in top..(top + TILE).min(self.height) {
                        let cell = self.cell(column, row);
                        let seen = if cell & COUNT == 0 { self.neighbour(column, row) } else { cell };
                        if let Some(pixel) =
                            out.get_mut(row * self.width + column).filter(|_| seen & COUNT > 0)
                        {
                            *pixel = shade(seen);
                        }
                    }
                }
            }
        }
        out
    }

    fn cell(&self, column: usize, row: usize) -> u32 {
        self.cells.get(column * self.height + row).copied().unwrap_or(0)
    }

    /// A lonely dot beside an empty pixel: above, below, left or right of it.
    fn neighbour(&self, column: usize, row: usize) -> u32 {
        let near = [
            (row > 0).then(|| self.cell(column, row - 1)),
            (row + 1 < self.height).then(|| self.cell(column, row + 1)),
            (column > 0).then(|| self.cell(column - 1, row)),
            (column + 1 < self.width).then(|| self.cell(column + 1, row)),
        ];
        near.into_iter().flatten().filter(|cell| cell & COUNT > 0 && cell & COUNT <= 2).max().unwrap_or(0)
    }

    /// Each ink from pale (one dot) to full.
    fn shades(&self) -> Vec<Rgb> {
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
        let place = |colour: &Option<Rgb>| {
            colour.map_or(0, |colour| {
                shades.iter().position(|shade| *shade == colour).map_or(0, |at| at as u8 + 1)
            })
        };
        let indices: Vec<u8> = self.colours().iter().map(place).collect();
        super::png::encode(self.width as u32, self.height as u32, &indices, Some((palette, vec![0])))
    }
}
