//! A grid of pixels that counts very many dots.
//!
//! Its memory is that of the picture; no dot is averaged or left out.

use std::ops::Range;
use std::thread;

use crate::chart::palette::RgbColour;

/// Bits of a cell that count, up to twice what the last shade needs; the rest is one more than the ink.
const COUNT: u16 = (1 << INK) - 1;

const INK: u32 = 8;

/// Shades of an ink, by the logarithm of the count.
const SHADES: usize = 8;

/// Dots that one processor draws as fast as several, each of which needs a grid of its own.
const ALONE: usize = 4_000_000;

/// Processors that draw: what is more would need more memory than the trace.
const MOST: usize = 8;

/// Cells of a column that are looked at together.
const STRIP: usize = 16;

/// A grid of dots. Columns lie one behind the other: dots come in order of x, and each column fits the first cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DotGrid {
    width: usize,
    height: usize,
    inks: Vec<RgbColour>,
    cells: Vec<u16>,
}

impl DotGrid {
    /// An empty grid; dots of later inks lie above those of earlier ones.
    #[must_use]
    pub fn new(width: usize, height: usize, inks: &[RgbColour]) -> Self {
        DotGrid { width, height, inks: inks.to_vec(), cells: vec![0; width * height] }
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
    pub fn add_dot(&mut self, column: usize, row: usize, ink: u8) {
        let at =
            column.min(self.width.saturating_sub(1)) * self.height + row.min(self.height.saturating_sub(1));
        if let Some(cell) = self.cells.get_mut(at) {
            let count = (*cell & COUNT) + u16::from(*cell & COUNT < COUNT);
            *cell = (*cell >> INK).max(u16::from(ink) + 1) << INK | count;
        }
    }

    /// Adds this many dots: `draw` gets which of them to add to which grid. Where they are many, every processor draws a part.
    pub fn draw_parallel(&mut self, dots: usize, draw: impl Fn(Range<usize>, &mut Self) + Sync) {
        let processors = thread::available_parallelism().map_or(1, usize::from).min(MOST);
        self.draw_parts(dots, if dots < ALONE { 1 } else { processors }, &draw);
    }

    fn draw_parts(&mut self, dots: usize, parts: usize, draw: &(impl Fn(Range<usize>, &mut Self) + Sync)) {
        let part = |at: usize| dots * at / parts..dots * (at + 1) / parts;
        let empty = |_| DotGrid::new(self.width, self.height, &self.inks);
        let grids: Vec<Self> = (1..parts).map(empty).collect();
        thread::scope(|scope| {
            let drawn = |(at, mut grid)| {
                draw(part(at), &mut grid);
                grid
            };
            let others = (1..).zip(grids).map(|other| scope.spawn(move || drawn(other)));
            let others: Vec<_> = others.collect();
            draw(part(0), self);
            for other in others {
                self.merge(&other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
        });
    }

    /// Adds the dots of a grid of the same size and inks.
    fn merge(&mut self, other: &Self) {
        for (cell, more) in self.cells.iter_mut().zip(&other.cells) {
            let count = ((*cell & COUNT) + (more & COUNT)).min(COUNT);
            *cell = (*cell >> INK).max(more >> INK) << INK | count;
        }
    }

    /// How many dots lie on a pixel; 255 for more.
    #[must_use]
    pub fn dots_at(&self, column: usize, row: usize) -> u32 {
        u32::from(self.cells.get(column * self.height + row).copied().unwrap_or(0) & COUNT)
    }

    /// The strips that hold a dot or lie beside one that does: what is not among them is empty.
    pub(crate) fn occupied_cells(&self) -> OccupiedCells {
        let strips = self.height.div_ceil(STRIP);
        let mut busy = vec![false; self.width * strips];
        for (at, column) in self.cells.chunks_exact(self.height.max(1)).enumerate() {
            let dots =
                column.chunks(STRIP).enumerate().filter(|(_, cells)| cells.iter().any(|cell| *cell > 0));
            for (strip, _) in dots {
                for near in at.saturating_sub(1)..(at + 2).min(self.width) {
                    let around =
                        near * strips + strip.saturating_sub(1)..near * strips + (strip + 2).min(strips);
                    busy.get_mut(around).unwrap_or_default().fill(true);
                }
            }
        }
        OccupiedCells(busy)
    }

    /// Calls with column, row and place in [`DotGrid::shade_colours`] of each pixel of some rows that is not empty. A dot that is nearly
    /// alone is drawn three pixels wide, over nothing but empty ones.
    pub(crate) fn for_each_shade(
        &self,
        busy: &OccupiedCells,
        rows: Range<usize>,
        mut tell: impl FnMut(usize, usize, usize),
    ) {
        let strips = self.height.div_ceil(STRIP);
        let nothing = vec![0; self.height];
        let column = |at: Option<usize>| {
            let begin = at.map(|at| at * self.height);
            begin.and_then(|begin| self.cells.get(begin..begin + self.height)).unwrap_or(&nothing)
        };
        let last = rows.end.min(self.height);
        for at in 0..self.width {
            let near = [column(at.checked_sub(1)), column(Some(at)), column(Some(at + 1))];
            for strip in rows.start / STRIP..last.div_ceil(STRIP) {
                if busy.0.get(at * strips + strip).is_some_and(|busy| *busy) {
                    for row in (strip * STRIP).max(rows.start)..((strip + 1) * STRIP).min(last) {
                        if let Some(shade) = shade_index(visible_cell(near, row)) {
                            tell(at, row, shade);
                        }
                    }
                }
            }
        }
    }

    /// Each ink from pale (one dot) to full.
    pub(crate) fn shade_colours(&self) -> Vec<RgbColour> {
        let shade = |ink: RgbColour, step: usize| {
            let part = 0.45 + 0.55 * step as f64 / (SHADES - 1) as f64;
            let mix = |channel: u8| (255.0 - (255.0 - f64::from(channel)) * part).round() as u8;
            RgbColour(mix(ink.0), mix(ink.1), mix(ink.2))
        };
        self.inks.iter().flat_map(|ink| (0..SHADES).map(move |step| shade(*ink, step))).collect()
    }
}

/// Which strips of the columns are to be looked at, column by column.
#[derive(Debug)]
pub(crate) struct OccupiedCells(Vec<bool>);

/// What is seen of a cell, with the columns beside it: itself, or a lonely dot above, below, left or right.
#[inline]
fn visible_cell([left, middle, right]: [&[u16]; 3], row: usize) -> u16 {
    let cell = |column: &[u16], at: usize| column.get(at).copied().unwrap_or(0);
    match cell(middle, row) {
        0 => {
            let near =
                [cell(middle, row.wrapping_sub(1)), cell(middle, row + 1), cell(left, row), cell(right, row)];
            near.into_iter().filter(|cell| cell & COUNT <= 2).max().unwrap_or(0)
        }
        cell => cell,
    }
}

/// The place of a cell's shade; none for an empty one.
#[inline]
fn shade_index(cell: u16) -> Option<usize> {
    let (ink, count) = (usize::from(cell >> INK).checked_sub(1)?, cell & COUNT);
    Some(ink * SHADES + (count.max(1).ilog2() as usize).min(SHADES - 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ALONE, DotGrid};
    use crate::chart::palette::RgbColour;

    const INKS: [RgbColour; 2] = [RgbColour(0, 0, 0), RgbColour(9, 9, 9)];

    fn add_test_dot(at: usize, grid: &mut DotGrid) {
        grid.add_dot(at / 97 % 40, at * at % 31, at.is_multiple_of(13).into());
    }

    proptest! {
        #[test]
        fn what_several_draw_is_what_one_does(dots in 0_usize..60_000, parts in 1_usize..9) {
            let (mut one, mut several) = (DotGrid::new(40, 30, &INKS), DotGrid::new(40, 30, &INKS));
            (0..dots).for_each(|at| add_test_dot(at, &mut one));
            several.draw_parts(dots, parts, &|part, grid| part.for_each(|at| add_test_dot(at, grid)));
            prop_assert!(one == several);
        }
    }

    #[test]
    fn many_dots_are_all_drawn_once() {
        let mut grid = DotGrid::new(ALONE / 100, 1, &INKS);
        grid.draw_parallel(ALONE, |part, grid| part.for_each(|at| grid.add_dot(at / 100, 0, 1)));
        assert!((0..ALONE / 100).all(|column| grid.dots_at(column, 0) == 100));
    }
}
