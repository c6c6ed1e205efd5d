//! Colours: the palette, families of colours, sRGB from OKLCH.
//!
//! Boxes have the colours of the viewer (`web/src/flame/colour.ts`): a family for each category, and within it a little
//! difference for each name, so that neighbours can be told apart. No meaning is by colour alone: every series has its
//! name in the legend too.

/// Hue in degrees, how far names move it, and chroma.
type HueFamily = (f64, f64, f64);

const NUMBERED: [HueFamily; 8] = [
    (255.0, 8.0, 0.15),
    (150.0, 8.0, 0.14),
    (330.0, 8.0, 0.16),
    (295.0, 8.0, 0.15),
    (18.0, 6.0, 0.18),
    (122.0, 8.0, 0.15),
    (230.0, 6.0, 0.10),
    (275.0, 6.0, 0.12),
];

fn hue_family(hue: &str) -> HueFamily {
    match hue {
        "command" => (250.0, 0.0, 0.012),
        "kernel" => (58.0, 22.0, 0.13),
        "user" => (195.0, 24.0, 0.085),
        "unknown" => (85.0, 26.0, 0.12),
        "nothing" => (250.0, 0.0, 0.004),
        number => {
            let at = number.parse::<usize>().unwrap_or(0) % NUMBERED.len();
            NUMBERED.get(at).copied().unwrap_or((255.0, 8.0, 0.15))
        }
    }
}

/// The colour of a box on paper.
pub(crate) fn box_colour(hue: &str, name: &str) -> RgbColour {
    let (hue, spread, chroma) = hue_family(hue);
    let (turn, shade) = name_shade(name);
    oklch_to_srgb(0.77 + shade * 0.1, chroma, hue + (turn - 0.5) * 2.0 * spread)
}

/// The colour of a difference of shares on paper: orange for more, blue for less, stronger where it is a larger part of the larger
/// share; grey for noise.
pub(crate) fn difference_colour(changed: bool, before: f64, after: f64) -> RgbColour {
    if !changed {
        return oklch_to_srgb(0.89, 0.004, 250.0);
    }
    let largest = before.max(after);
    let part = if largest > 0.0 { ((after - before).abs() / largest).min(1.0) } else { 0.0 };
    let strength = 0.35 + 0.65 * part.sqrt();
    oklch_to_srgb(0.9 - 0.22 * strength, 0.17 * strength, if after > before { 38.0 } else { 255.0 })
}

/// Two bytes that belong to a name: FNV-1a over its UTF-16 units, as scripts see them, then mixed.
fn name_bytes(name: &str) -> [u8; 2] {
    let step = |hash: u32, unit: u16| (hash ^ u32::from(unit)).wrapping_mul(0x0100_0193);
    let hash = name.encode_utf16().fold(0x811c_9dc5, step);
    let [_, high, low, _] = (hash ^ (hash >> 15)).wrapping_mul(0x85eb_ca6b).to_be_bytes();
    [high, low]
}

/// Two numbers from 0 to 1 that belong to a name.
fn name_shade(name: &str) -> (f64, f64) {
    let [turn, shade] = name_bytes(name);
    (f64::from(turn) / 255.0, f64::from(shade) / 255.0)
}

/// From OKLCH to sRGB, clipped. Source: Björn Ottosson, "A perceptual color space for image processing", 2020.
fn oklch_to_srgb(light: f64, chroma: f64, hue: f64) -> RgbColour {
    let (a, b) = (chroma * hue.to_radians().cos(), chroma * hue.to_radians().sin());
    let l = (light + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (light - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (light - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    RgbColour(
        encode_srgb_channel(4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s),
        encode_srgb_channel(-1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s),
        encode_srgb_channel(-0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s),
    )
}

/// A channel as sRGB stores it (IEC 61966-2-1).
fn encode_srgb_channel(linear: f64) -> u8 {
    let linear = linear.clamp(0.0, 1.0);
    let value = if linear <= 0.003_130_8 { 12.92 * linear } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 };
    (value * 255.0).round() as u8
}

/// A colour of the sRGB space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RgbColour(pub u8, pub u8, pub u8);

impl RgbColour {
    /// `#0072b2`
    #[must_use]
    pub fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    /// The same hue, nearer to black.
    fn darker(self) -> Self {
        let darken = |channel: u8| (f64::from(channel) * 0.6).round() as u8;
        RgbColour(darken(self.0), darken(self.1), darken(self.2))
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

/// The colour of something without a name, by its index; later ones share the grey of the others.
pub(crate) fn series_colour(index: usize) -> RgbColour {
    PALETTE.get(index).copied().unwrap_or(OTHERS_COLOUR)
}

/// A colour of the scale from light (0) to dark (1), equal steps of lightness and of one hue, in OKLCH.
pub(crate) fn sequential_colour(share: f64) -> RgbColour {
    let share = share.clamp(0.0, 1.0);
    oklch_to_srgb(0.95 - 0.62 * share, 0.03 + 0.10 * share, 235.0 + 25.0 * share)
}

/// Colours that belong to names: a name has the same one in every picture and viewer (`web/src/colour.ts`), whatever its rank
/// there. Where two names of one picture meet at a colour, the later one in the alphabet moves on.
pub(crate) fn name_colours(names: &[&str]) -> Vec<RgbColour> {
    let colours: Vec<RgbColour> = PALETTE.into_iter().chain(PALETTE.map(RgbColour::darker)).collect();
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|at| names.get(*at));
    let (mut taken, mut found) = (vec![false; colours.len()], vec![OTHERS_COLOUR; names.len()]);
    for (at, name) in order.iter().filter_map(|at| Some((*at, names.get(*at)?))) {
        let first = usize::from(u16::from_be_bytes(name_bytes(name)));
        let slots = (0..colours.len()).map(|step| (first + step) % colours.len());
        let free = slots.into_iter().find(|slot| taken.get(*slot) == Some(&false));
        if let (Some(slot), Some(of)) = (free, found.get_mut(at)) {
            if let Some(is_taken) = taken.get_mut(slot) {
                *is_taken = true;
            }
            *of = colours.get(slot).copied().unwrap_or(OTHERS_COLOUR);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oklch_gives_the_colours_of_css_color_4() {
        // CSS Color Module Level 4, section 9.2: white, and the green of example 25, oklch(51.975% 0.17686 142.495).
        assert_eq!(oklch_to_srgb(1.0, 0.0, 0.0), RgbColour(255, 255, 255));
        assert_eq!(oklch_to_srgb(0.51975, 0.17686, 142.495), RgbColour(0, 128, 0));
        assert_eq!(oklch_to_srgb(0.62796, 0.25768, 29.234), RgbColour(255, 0, 0));
    }

    #[test]
    fn a_name_keeps_its_colour_whatever_its_rank() {
        let (one, other) =
            (name_colours(&["dentry", "inode_cache"]), name_colours(&["inode_cache", "dentry"]));
        assert_eq!((one[0], one[1]), (other[1], other[0]));
        let many: Vec<String> = (0..14).map(|n| format!("cache-{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let different: std::collections::BTreeSet<String> =
            name_colours(&many).iter().map(|colour| colour.hex()).collect();
        assert_eq!(different.len(), 14);
    }

    #[test]
    fn names_have_the_colours_of_the_viewers() {
        // The same colours as in web/test/colour.test.ts.
        let slot = |colour: &RgbColour| {
            let all: Vec<RgbColour> = PALETTE.into_iter().chain(PALETTE.map(RgbColour::darker)).collect();
            all.iter().position(|known| known == colour).unwrap()
        };
        let slots = |names: &[&str]| name_colours(names).iter().map(slot).collect::<Vec<_>>();
        assert_eq!(slots(&["none", "sync", "async", "staged", "relaid"]), [1, 9, 8, 10, 7]);
        assert_eq!(slots(&["guest1", "guest2", "guest3"]), [13, 2, 3]);
    }

    #[test]
    fn names_move_colours_as_in_the_viewer() {
        // The same numbers as in web/test/flame.test.ts.
        assert_eq!(name_shade("vfs_read"), (114.0 / 255.0, 19.0 / 255.0));
        assert_eq!(box_colour("kernel", "vfs_read"), box_colour("kernel", "vfs_read"));
        assert_ne!(box_colour("kernel", "vfs_read"), box_colour("kernel", "vfs_write"));
        assert_ne!(box_colour("0", "kfree"), box_colour("1", "kfree"));
    }
}
