//! Owns the colours. It refuses meaning by colour alone: every series has its name in the legend too.

/// A colour of the sRGB space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RgbColour(pub u8, pub u8, pub u8);

impl RgbColour {
    /// `#0072b2`
    #[must_use]
    pub fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// Colours that people with any colour vision tell apart, without black (text has it) and with a darker yellow
/// (the original is hard to see on white). Okabe and Ito, "Color Universal Design", 2008.
pub const PALETTE: [RgbColour; 7] = [
    RgbColour(0x00, 0x72, 0xb2),
    RgbColour(0xe6, 0x9f, 0x00),
    RgbColour(0x00, 0x9e, 0x73),
    RgbColour(0xcc, 0x79, 0xa7),
    RgbColour(0x56, 0xb4, 0xe9),
    RgbColour(0xd5, 0x5e, 0x00),
    RgbColour(0xd9, 0xcb, 0x1f),
];

/// Everything that has no colour of its own.
pub const OTHERS_COLOUR: RgbColour = RgbColour(0x9a, 0x9a, 0x9a);

/// The colour of the series with this index; later ones share the grey of the others.
pub(super) fn series_colour(index: usize) -> RgbColour {
    PALETTE.get(index).copied().unwrap_or(OTHERS_COLOUR)
}
