//! Owns an image as it is written: one byte a pixel where it has few colours, as pictures of dots, lines and letters have,
//! else three. It refuses to approximate a colour.

/// Colours that a byte tells apart.
const MOST: usize = 256;
/// Bits of a place in the table of colours, which is four times as long as it has entries.
const BITS: u32 = 10;
/// Bytes of a pixel.
const PIXEL: usize = 4;
/// So many pixels of ground are skipped at once.
const STRETCH: usize = 32;
const GROUND: [u8; STRETCH * PIXEL] = [255; STRETCH * PIXEL];

/// What the bytes of an image say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PixelFormat {
    /// three of them are a pixel's colour
    Many,
    /// each is one of these colours
    Few {
        /// three bytes each
        palette: Vec<u8>,
        /// whether the first one lets the ground through
        first_is_clear: bool,
    },
}

/// An image on white that grows from above.
pub(super) struct RasterImage {
    bytes: Vec<u8>,
    /// none where the colours are too many
    palette: Option<ColourIndex>,
}

impl RasterImage {
    /// An empty one that will have so many pixels.
    pub(super) fn new(pixels: usize) -> Self {
        RasterImage { bytes: Vec::with_capacity(pixels), palette: Some(ColourIndex::new()) }
    }

    /// Adds opaque pixels of four bytes each.
    pub(super) fn push_pixels(&mut self, pixels: &[u8]) {
        let before = self.bytes.len();
        if let Some(palette) = &mut self.palette {
            if palette.push_indices(&mut self.bytes, pixels).is_some() {
                return;
            }
            let so_far = self.bytes.iter().take(before);
            self.bytes = so_far.flat_map(|index| palette.rgb_at(usize::from(*index))).collect();
            self.palette = None;
        }
        let (pixels, _) = pixels.as_chunks::<PIXEL>();
        self.bytes.extend(pixels.iter().flat_map(|[red, green, blue, _]| [red, green, blue]));
    }

    /// Its bytes, and what they say.
    pub(super) fn finish(self) -> (Vec<u8>, PixelFormat) {
        let few = |palette: ColourIndex| PixelFormat::Few {
            palette: (0..palette.colours.len()).flat_map(|index| palette.rgb_at(index)).collect(),
            first_is_clear: false,
        };
        (self.bytes, self.palette.map_or(PixelFormat::Many, few))
    }
}

/// The colours seen so far, white first, each found by a table with open addresses.
struct ColourIndex {
    colours: Vec<u32>,
    /// one more than the index; 0 where nothing is
    table: [u16; 1 << BITS],
}

impl ColourIndex {
    fn new() -> Self {
        let mut palette = ColourIndex { colours: Vec::with_capacity(MOST), table: [0; 1 << BITS] };
        palette.index_of(u32::MAX);
        palette
    }

    /// Adds the index of each pixel; none where the colours are too many.
    fn push_indices(&mut self, indices: &mut Vec<u8>, pixels: &[u8]) -> Option<()> {
        let before = indices.len();
        indices.resize(before + pixels.len() / PIXEL, 0);
        let new = indices.get_mut(before..)?;
        for (to, from) in
            new.chunks_mut(STRETCH).zip(pixels.chunks(GROUND.len())).filter(|(_, from)| *from != GROUND)
        {
            for (index, pixel) in to.iter_mut().zip(from.as_chunks().0) {
                *index = self.index_of(u32::from_le_bytes(*pixel))?;
            }
        }
        Some(())
    }

    /// The colour's index: a new one where it was not seen, none where there is none left.
    #[inline]
    fn index_of(&mut self, colour: u32) -> Option<u8> {
        let mut at = colour.wrapping_mul(0x9e37_79b1) >> (u32::BITS - BITS);
        loop {
            let place = self.table.get_mut(at as usize)?;
            match usize::from(*place).checked_sub(1) {
                Some(index) if self.colours.get(index) == Some(&colour) => return Some(index as u8),
                Some(_) => at = (at + 1) % (1 << BITS),
                None if self.colours.len() == MOST => return None,
                None => {
                    self.colours.push(colour);
                    *place = self.colours.len() as u16;
                }
            }
        }
    }

    fn rgb_at(&self, index: usize) -> [u8; 3] {
        let [red, green, blue, _] = self.colours.get(index).copied().unwrap_or(u32::MAX).to_le_bytes();
        [red, green, blue]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample_image(colours: &[u32]) -> (Vec<u8>, PixelFormat) {
        let pixels: Vec<u8> =
            colours.iter().flat_map(|colour| (colour | 0xff00_0000).to_le_bytes()).collect();
        let mut image = RasterImage::new(colours.len());
        pixels.chunks(128 * PIXEL).for_each(|strip| image.push_pixels(strip));
        image.finish()
    }

    proptest! {
        #[test]
        fn every_pixel_keeps_its_colour(
            runs in proptest::collection::vec((0_u32..1 << 24, 1_usize..50, 0_usize..100), 0..400)
        ) {
            let run = |(colour, n, white)| [vec![colour; n], vec![0x00ff_ffff; white]].concat();
            let wanted: Vec<u32> = runs.into_iter().flat_map(run).collect();
            let (bytes, colours) = sample_image(&wanted);
            let told: Vec<&[u8]> = match &colours {
                PixelFormat::Many => bytes.chunks(3).collect(),
                PixelFormat::Few { palette, .. } => {
                    prop_assert_eq!(&palette[..3], &[255; 3]);
                    bytes.iter().map(|index| &palette[usize::from(*index) * 3..][..3]).collect()
                }
            };
            prop_assert_eq!(told.len(), wanted.len());
            for (told, wanted) in told.iter().zip(wanted) {
                prop_assert_eq!(*told, &wanted.to_le_bytes()[..3]);
            }
        }
    }

    #[test]
    fn the_257th_colour_is_one_too_many() {
        let colours = |n: u32| sample_image(&(0..n).map(|n| n * 65_537).collect::<Vec<_>>());
        // White is one, too.
        assert!(matches!(colours(255), (bytes, PixelFormat::Few { .. }) if bytes.len() == 255));
        assert!(matches!(colours(256), (bytes, PixelFormat::Many) if bytes.len() == 256 * 3));
    }
}
