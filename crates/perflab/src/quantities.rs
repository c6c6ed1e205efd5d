//! Quantities that an option takes within bounds, as clap reads them.

use std::ops::Bound::Excluded;

use perflab_model::quantity::QuantityError;
use perflab_model::{Bytes, Ratio};

/// A confidence: above 50 % and below 100 %.
pub fn parse_confidence(text: &str) -> Result<Ratio, QuantityError> {
    Ratio::parse_within(text, (Excluded(0.5), Excluded(1.0)))
}

/// A margin: below 100 %.
pub fn parse_margin(text: &str) -> Result<Ratio, QuantityError> {
    Ratio::parse_within(text, 0.0..1.0)
}

/// The error of a whole search: above 0 % and below 50 %.
pub fn parse_error(text: &str) -> Result<Ratio, QuantityError> {
    Ratio::parse_within(text, (Excluded(0.0), Excluded(0.5)))
}

/// How many iterations: at least one.
pub fn parse_iterations(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("nothing would be measured: name 1 or more".into()),
        Ok(iterations) => Ok(iterations),
        Err(error) => Err(format!("{error}: name a number such as 10")),
    }
}

/// A change that is to be seen: above 0 %, which needs infinitely many repetitions, and below 100 %.
pub fn parse_goal(text: &str) -> Result<Ratio, QuantityError> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        // Whatever its unit, nothing is nothing.
        Ok(0.0) => {
            Err(QuantityError::OutOfRange { text: text.into(), allowed: "above 0% and below 100%".into() })
        }
        _ => Ratio::parse_within(text, (Excluded(0.0), Excluded(1.0))),
    }
}

/// How much slower something may become: above 0 %.
pub fn parse_slowdown(text: &str) -> Result<Ratio, QuantityError> {
    Ratio::parse_within(text, (Excluded(0.0), std::ops::Bound::Unbounded))
}

/// The share of values below a quantile: from 50 %, below 100 %.
pub fn parse_quantile_share(text: &str) -> Result<Ratio, QuantityError> {
    Ratio::parse_within(text, 0.5..1.0)
}

/// The size of a file system's blocks: a power of two from 512 B to 64 KiB.
pub fn parse_block_size(text: &str) -> Result<Bytes, QuantityError> {
    let size = Bytes::parse(text)?;
    match size.0.is_power_of_two() && (512..=65_536).contains(&size.0) {
        true => Ok(size),
        false => {
            let allowed = "a power of two from 512B to 64KiB".into();
            Err(QuantityError::OutOfRange { text: text.into(), allowed })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_has_its_sign_and_its_bounds_everywhere() {
        for parse in [parse_confidence, parse_margin, parse_goal, parse_slowdown, parse_quantile_share] {
            assert!(parse("60%").is_ok());
            assert!(matches!(parse("0.6"), Err(QuantityError::NoUnit { .. })));
        }
        assert!(parse_confidence("50%").is_err() && parse_confidence("100%").is_err());
        assert!(parse_error("5%").is_ok() && parse_error("0%").is_err() && parse_error("50%").is_err());
        assert!(parse_margin("0%").is_ok() && parse_goal("0%").is_err() && parse_slowdown("0%").is_err());
        assert_eq!(parse_block_size("4KiB").ok(), Some(Bytes(4096)));
        assert!(parse_block_size("3KiB").is_err() && parse_block_size("4096").is_err());
    }
}
