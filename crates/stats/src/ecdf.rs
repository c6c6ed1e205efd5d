//! The distribution of a sample as it is: the share of values up to each of them, with a band that holds the whole
//! distribution function at once.
//!
//! Source: Dvoretzky, Kiefer and Wolfowitz, "Asymptotic minimax character of the sample distribution function", Annals of
//! Mathematical Statistics 27 (1956), with the sharp constant of Massart, Annals of Probability 18 (1990): the chance that the
//! empirical distribution is farther than ε from the true one anywhere is at most 2 exp(-2 n ε²). It holds for every distribution
//! of which the values are independent draws.

use crate::error::{StatsError, check_above_zero, check_open_fraction, sorted_sample};

/// Where an empirical distribution steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DistributionStep {
    /// A value that was observed, in the unit of the values.
    pub value: f64,
    /// The share of the values up to it and with it.
    pub share: f64,
}

/// An empirical distribution function with its band.
#[derive(Debug, Clone, PartialEq)]
pub struct EmpiricalDistribution {
    /// Its steps, ascending in both; the last has a share of 1.
    pub steps: Vec<DistributionStep>,
    /// The band reaches so far above and below, as a share; it is cut at 0 and 1.
    pub reach: f64,
}

/// The empirical distribution function. `effective` says how many independent values the sample is worth: no more than it has; fewer
/// where values share the luck of a boot.
///
/// # Errors
/// An empty sample, a value that is not finite, an effective size that is not above zero, a confidence outside (0, 1).
pub fn empirical_distribution(
    values: &[f64],
    effective: f64,
    confidence: f64,
) -> Result<EmpiricalDistribution, StatsError> {
    let sorted = sorted_sample(values)?;
    let count = sorted.len() as f64;
    let effective = check_above_zero("effective size", effective.min(count))?;
    let error = 1.0 - check_open_fraction("confidence", confidence)?;
    let mut steps: Vec<DistributionStep> = Vec::new();
    for (at, value) in sorted.into_iter().enumerate() {
        let share = (at + 1) as f64 / count;
        match steps.last_mut().filter(|step| step.value == value) {
            Some(step) => step.share = share,
            None => steps.push(DistributionStep { value, share }),
        }
    }
    Ok(EmpiricalDistribution { steps, reach: ((2.0 / error).ln() / (2.0 * effective)).sqrt() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wasserman, All of Statistics (2004), chapter 7: 799 waiting times of nerve pulses have a band of ± 0.048 at 95 %.
    #[test]
    fn the_band_is_that_of_the_nerve_data() {
        let values: Vec<f64> = (0..799).map(f64::from).collect();
        let found = empirical_distribution(&values, 799.0, 0.95).unwrap();
        assert!((found.reach - 0.048).abs() < 5e-4, "{}", found.reach);
    }

    #[test]
    fn equal_values_are_one_step() {
        let found = empirical_distribution(&[2.0, 1.0, 2.0, 3.0], 4.0, 0.95).unwrap();
        let steps: Vec<(f64, f64)> = found.steps.iter().map(|step| (step.value, step.share)).collect();
        assert_eq!(steps, [(1.0, 0.25), (2.0, 0.75), (3.0, 1.0)]);
    }

    #[test]
    fn fewer_boots_than_values_make_a_wider_band() {
        let reach = |effective| empirical_distribution(&[1.0; 40], effective, 0.95).unwrap().reach;
        assert!(reach(4.0) > reach(40.0) && reach(400.0) == reach(40.0));
    }

    #[test]
    fn bad_input_is_refused() {
        assert!(empirical_distribution(&[], 1.0, 0.95).is_err());
        assert!(empirical_distribution(&[f64::NAN], 1.0, 0.95).is_err());
        assert!(empirical_distribution(&[1.0], 0.0, 0.95).is_err());
        assert!(empirical_distribution(&[1.0], 1.0, 1.0).is_err());
    }
}
