//! How a picture is to look, as options say it: title, size, ranges with units, logarithmic axes.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use perflab_model::{Bytes, Nanos, Unit};
use perflab_present::chart::AxisLook;

use crate::failure::UsageError;
use crate::output_path::OutputPath;

/// Options of every picture.
#[derive(Debug, Args)]
pub struct PictureArgs {
    /// Draw it into FILE.svg or FILE.png, or as SVG on standard output (-)
    #[arg(short, long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: OutputPath,
    /// The title (default: what is shown)
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Pixels of the picture; a PNG has twice as many (default: 900 wide, as high as needed)
    #[arg(long, value_name = "WIDTHxHEIGHT")]
    pub size: Option<PictureSize>,
}

impl PictureArgs {
    /// Pixels to the right, where they are said.
    pub fn width(&self) -> Option<f64> {
        self.size.map(|size| size.width)
    }

    /// Pixels down, where they are said.
    pub fn height(&self) -> Option<f64> {
        self.size.map(|size| size.height)
    }
}

/// `900x440`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PictureSize {
    width: f64,
    height: f64,
}

/// Pixels of the smallest picture in which texts have room, and of the largest.
const SIZES: [std::ops::RangeInclusive<u32>; 2] = [300..=8000, 200..=16_000];

impl FromStr for PictureSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("`{text}` is no size: write WIDTHxHEIGHT in pixels, such as 900x440");
        let (width, height) = text.split_once(['x', '×']).ok_or_else(refused)?;
        let pixels = |text: &str| text.trim().parse::<u32>().map_err(|_| refused());
        let (width, height) = (pixels(width)?, pixels(height)?);
        let [widths, heights] = &SIZES;
        if widths.contains(&width) && heights.contains(&height) {
            return Ok(PictureSize { width: f64::from(width), height: f64::from(height) });
        }
        let ends = |range: &std::ops::RangeInclusive<u32>| format!("{} to {}", range.start(), range.end());
        Err(format!("a picture is {} pixels wide and {} high", ends(widths), ends(heights)))
    }
}

/// An axis of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PictureAxis {
    /// the horizontal one
    X,
    /// the vertical one
    Y,
}

/// `10ms:20ms`, `0:`, `:64MiB`, `-5%:10%`: the ends of an axis, either of which may be left to the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxisRange {
    low: Option<String>,
    high: Option<String>,
}

impl FromStr for AxisRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("`{text}` is no range: write LOW:HIGH, such as 10ms:20ms, 0: or :64MiB");
        let (low, high) = text.split_once(':').ok_or_else(refused)?;
        let end = |end: &str| Some(end.trim().to_owned()).filter(|end| !end.is_empty());
        let range = AxisRange { low: end(low), high: end(high) };
        if range.low.is_none() && range.high.is_none() { Err(refused()) } else { Ok(range) }
    }
}

/// What numbers along an axis are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AxisValues<'a> {
    /// values of that unit
    OfUnit(&'a Unit),
    /// parts of a whole, or of a baseline
    Shares,
    /// lengths of time, in seconds
    Seconds,
    /// bare numbers, such as threads
    Numbers,
}

/// An axis as it is asked for.
///
/// # Errors
/// An end without its unit or that is no quantity of the axis; a high end that is not above the low one; a logarithmic axis that
/// begins at or below zero.
pub fn axis_look(
    option: &str,
    range: Option<&AxisRange>,
    logarithmic: bool,
    values: AxisValues<'_>,
) -> Result<AxisLook, UsageError> {
    let end = |text: Option<&String>| text.map(|text| read_end(option, text, values)).transpose();
    let low = end(range.and_then(|range| range.low.as_ref()))?;
    let high = end(range.and_then(|range| range.high.as_ref()))?;
    if low.zip(high).is_some_and(|(low, high)| high <= low) {
        return Err(UsageError::new(
            format!("{option}: the high end is not above the low one"),
            "write LOW:HIGH",
        ));
    }
    if logarithmic && low.or(high).is_some_and(|end| end <= 0.0) {
        return Err(UsageError::new(
            format!("{option}: a logarithmic axis has only what is above zero"),
            "begin the range above zero, or leave --log out",
        ));
    }
    Ok(AxisLook { low, high, logarithmic })
}

/// Units of time and bytes, in nanoseconds and bytes.
const UNITS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("bytes", 1.0),
    ("B", 1.0),
    ("kB", 1e3),
    ("KiB", 1024.0),
    ("MB", 1e6),
    ("MiB", 1_048_576.0),
    ("GB", 1e9),
    ("GiB", 1_073_741_824.0),
];

/// One end in the unit of the axis: a quantity where there is a grammar for it, else a number.
fn read_end(option: &str, text: &str, values: AxisValues<'_>) -> Result<f64, UsageError> {
    let (sign, size) = text.strip_prefix('-').map_or((1.0, text), |size| (-1.0, size));
    let unit = match values {
        AxisValues::OfUnit(unit) => &*unit.0,
        AxisValues::Shares => "%",
        AxisValues::Seconds => "s",
        AxisValues::Numbers => "1",
    };
    let zero = size.parse() == Ok(0.0);
    let known = UNITS.iter().find(|(name, _)| *name == unit);
    let read = match (known, unit) {
        _ if zero => Ok(0.0),
        (Some((name, one)), _) if name.ends_with('s') && *name != "bytes" => {
            Nanos::parse(size).map(|time| time.0 as f64 / one).map_err(|error| error.to_string())
        }
        (Some((_, one)), _) => {
            Bytes::parse(size).map(|size| size.0 as f64 / one).map_err(|error| error.to_string())
        }
        (None, "%") if values == AxisValues::Shares => {
            perflab_model::Ratio::parse(size).map(|ratio| ratio.0).map_err(|error| error.to_string())
        }
        (None, _) => {
            let number: Result<f64, _> = size.parse();
            let number = number.ok().filter(|number| number.is_finite());
            number.ok_or_else(|| format!("`{text}` is no number: values here are in {unit}"))
        }
    };
    read.map(|size| sign * size).map_err(|error| UsageError::new(format!("{option}: {error}"), RANGE_HINT))
}

const RANGE_HINT: &str = "write LOW:HIGH in the unit of the axis, such as 10ms:20ms, :64MiB or 0:1500";

#[cfg(test)]
mod tests {
    use super::*;

    fn look(range: &str, logarithmic: bool, values: AxisValues<'_>) -> Option<(Option<f64>, Option<f64>)> {
        let range = range.parse().ok()?;
        let found = axis_look("--x-range", Some(&range), logarithmic, values).ok()?;
        Some((found.low, found.high))
    }

    #[test]
    fn ends_are_in_the_unit_of_the_axis() {
        let (seconds, bytes, rate) = (Unit::new("s"), Unit::new("bytes"), Unit::new("MB/s"));
        let of = |unit| AxisValues::OfUnit(unit);
        assert_eq!(look("10ms:1s", false, of(&seconds)), Some((Some(0.01), Some(1.0))));
        assert_eq!(look(":64MiB", false, of(&bytes)), Some((None, Some(67_108_864.0))));
        assert_eq!(look("0:1500.5", false, of(&rate)), Some((Some(0.0), Some(1500.5))));
        assert_eq!(look("-5%:10%", false, AxisValues::Shares), Some((Some(-0.05), Some(0.1))));
        assert_eq!(look("2s:", true, AxisValues::Seconds), Some((Some(2.0), None)));
        assert_eq!(look("1:64", true, AxisValues::Numbers), Some((Some(1.0), Some(64.0))));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        let (seconds, rate) = (Unit::new("s"), Unit::new("MB/s"));
        for (range, logarithmic, unit) in [
            ("10", false, &rate),
            (":", false, &rate),
            ("1:2", false, &seconds),
            ("2:1", false, &rate),
            ("inf:", false, &rate),
            ("0:5", true, &rate),
            ("1GiB:", false, &seconds),
        ] {
            assert_eq!(look(range, logarithmic, AxisValues::OfUnit(unit)), None, "{range}");
        }
        for size in ["900", "0x0", "900x", "9000x900", "-1x5", "299x200"] {
            assert!(size.parse::<PictureSize>().is_err(), "{size}");
        }
        assert!("400x300".parse::<PictureSize>().is_ok());
    }
}
