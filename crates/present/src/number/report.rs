//! Numbers as people read them: four significant digits, with the unit scaled where that is custom.
//!
//! `web/src/number.ts` follows the same rules; `web/test/numbers.json` holds both to them.

/// How a unit is scaled.
struct UnitLadder {
    /// Smallest size (in the unit as given) from which a step is used, what to multiply by, and its name.
    steps: Vec<(f64, f64, String)>,
}

const TIMES: &[(&str, f64)] = &[("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)];

const BINARY: &[&str] = &["B", "KiB", "MiB", "GiB", "TiB"];

const DECIMAL: &[&str] = &["", "k", "M", "G", "T"];

/// A number with its unit: `1.5 MiB`, `12.3 k faults/s`, `37.2 ms`.
pub(crate) fn format_quantity(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let (factor, name) = scale_for_unit(value, unit);
    let digits = format_digits(value * factor);
    if name.is_empty() { digits } else { format!("{digits}\u{a0}{name}") }
}

/// What to multiply a number of this size by, and the unit it then has.
fn scale_for_unit(value: f64, unit: &str) -> (f64, String) {
    let ladder = UnitLadder::for_unit(unit);
    let size = value.abs();
    let fits = ladder.steps.iter().rev().find(|(from, ..)| size >= *from);
    let (_, factor, name) = fits.or(ladder.steps.first()).cloned().unwrap_or((0.0, 1.0, unit.into()));
    (factor, name)
}

impl UnitLadder {
    fn for_unit(unit: &str) -> Self {
        let (base, rate) = match unit.strip_suffix("/s") {
            Some(base) => (base, "/s"),
            None => (unit, ""),
        };
        let time = TIMES.iter().find(|(name, _)| *name == base).map(|(_, seconds)| *seconds);
        match (time, base) {
            (Some(seconds), _) if rate.is_empty() => Self::time_steps(seconds),
            (Some(seconds), _) => UnitLadder { steps: vec![(0.0, seconds * 100.0, "%".into())] },
            (_, "percent") => UnitLadder { steps: vec![(0.0, 1.0, format!("%{rate}"))] },
            (_, "bytes" | "byte" | "B") => Self::byte_steps(rate),
            (_, base) if base.contains(|c: char| c.is_ascii_uppercase() || "%kµ".contains(c)) => {
                UnitLadder { steps: vec![(0.0, 1.0, unit.into())] }
            }
            (_, base) => Self::count_steps(base, rate),
        }
    }

    fn time_steps(seconds: f64) -> Self {
        let step = |(name, size): &(&str, f64)| (size / seconds, seconds / size, (*name).to_owned());
        let mut steps: Vec<_> = TIMES.iter().filter(|(name, _)| *name != "us").map(step).collect();
        steps.insert(
            0,
            (0.0, 1.0, TIMES.iter().find(|t| t.1 == seconds).map_or("s", |t| t.0).replace("us", "µs")),
        );
        if let Some(smallest) = steps.get_mut(1) {
            smallest.0 = f64::MIN_POSITIVE;
        }
        UnitLadder { steps }
    }

    fn byte_steps(rate: &str) -> Self {
        let step = |(power, name): (i32, &&str)| {
            (1024_f64.powi(power), 1024_f64.powi(-power), format!("{name}{rate}"))
        };
        UnitLadder { steps: (0..).zip(BINARY).map(step).collect() }
    }

    fn count_steps(base: &str, rate: &str) -> Self {
        let word = if base == "1" { "" } else { base };
        let name = |prefix: &str| match (prefix, word, rate) {
            (prefix, "", rate) => format!("{prefix}{rate}"),
            ("", word, rate) => format!("{word}{rate}"),
            (prefix, word, rate) => format!("{prefix}\u{a0}{word}{rate}"),
        };
        let step = |(power, prefix): (i32, &&str)| {
            let from = if power == 1 { 1e4 } else { 1000_f64.powi(power) };
            (from, 1000_f64.powi(-power), name(prefix))
        };
        let mut steps: Vec<_> = (0..).zip(DECIMAL).map(step).collect();
        if let Some(first) = steps.first_mut() {
            first.0 = 0.0;
        }
        UnitLadder { steps }
    }
}

/// Four significant digits without trailing zeros; thousands apart by a thin space.
fn format_digits(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".into();
    }
    let decimals = (3 - size.log10().floor() as i32).clamp(0, 6);
    let text = format!("{value:.*}", usize::try_from(decimals).unwrap_or(0));
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    group_thousands(&text.replacen('-', "−", 1))
}

fn group_thousands(text: &str) -> String {
    let (whole, rest) = text.find('.').map_or((text, ""), |at| text.split_at(at));
    let count = whole.chars().filter(char::is_ascii_digit).count();
    if count < 5 {
        return text.into();
    }
    let mut out = String::new();
    let mut left = count;
    for digit in whole.chars() {
        if digit.is_ascii_digit() {
            if left < count && left.is_multiple_of(3) {
                out.push('\u{202f}');
            }
            left -= 1;
        }
        out.push(digit);
    }
    out + rest
}

/// A fraction as a signed percentage: `+12.3 %`, `−0.4 %`.
pub(crate) fn format_percent_change(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let decimals = if percent.abs() >= 100.0 {
        0
    } else if percent.abs() >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{percent:+.decimals$}");
    let zero = text.trim_start_matches(['+', '-']).chars().all(|c| c == '0' || c == '.');
    let text = if zero { "0".to_owned() } else { text.replacen('-', "−", 1) };
    format!("{text}\u{a0}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct SharedQuantityCases {
        quantities: Vec<(f64, String, String)>,
        percents: Vec<(f64, String)>,
    }

    #[test]
    fn the_front_end_and_this_side_print_the_same() {
        let text = include_str!("../../../../web/test/numbers.json");
        let shared: SharedQuantityCases = serde_json::from_str(text).unwrap();
        for (value, unit, printed) in shared.quantities {
            assert_eq!(format_quantity(value, &unit).replace(['\u{a0}', '\u{202f}'], " "), printed);
        }
        for (value, printed) in shared.percents {
            assert_eq!(format_percent_change(value).replace('\u{a0}', " "), printed);
        }
    }
}
