//! What other tools' rules do, by simulation: the figures of the book (docs/statistics.md).

#![expect(clippy::unwrap_used, reason = "an answer that is missing fails the test")]

#[expect(dead_code, reason = "other simulations draw in other ways")]
mod noise;
#[path = "noise/rules.rs"]
mod rules;

use rules::*;

/// Bands of ± 1.96 standard deviations never narrow: a true change of 5 % is seen less with more samples.
#[test]
fn a_star_that_more_samples_cannot_earn() {
    let [few, many] = [5, 30].map(|n| reported_share(differ_by_bands, 1.05, n, 400));
    assert!(few < 0.3 && many < 0.02, "{few} {many}");
    assert!(reported_share(differ_by_ranks, 1.05, 30, 200) > 0.99);
}

/// Ranges that lie apart are chance with five values, and impossible with many.
#[test]
fn ranges_see_less_with_more_samples() {
    let [few, many] = [5, 30].map(|n| reported_share(differ_by_ranges, 1.02, n, 600));
    assert!(few > 0.15 && many < 0.05, "{few} {many}");
    let alarms = reported_share(differ_by_ranks, 1.0, 10, 1_000);
    assert!((0.025..=0.065).contains(&alarms), "{alarms}");
    assert!(reported_share(differ_by_minima, 1.0, 5, 400) > 0.15);
}

#[test]
fn iterations_of_a_boot_share_its_luck() {
    let (pooled, means) = boot_false_alarms(5, 10, 400);
    assert!(pooled > 0.3 && means < 0.075, "{pooled} {means}");
}

#[test]
fn drift_poses_as_a_change_unless_sides_are_interleaved() {
    let (in_turn, paired) = drift_false_alarms(0.03, 400);
    assert!(in_turn > 0.7 && paired < 0.08, "{in_turn} {paired}");
}

/// Stopping at significance triples false alarms; stopping at a precision keeps them.
#[test]
fn looking_again_and_again() {
    let (significant, precise) = peeking_false_alarms(600);
    assert!(significant > 0.13 && precise < 0.075, "{significant} {precise}");
}

#[test]
fn many_metrics_make_false_alarms_certain() {
    let (each, corrected) = many_metrics_false_alarms(50, 100);
    assert!(each > 0.8 && corrected < 0.13, "{each} {corrected}");
}

#[test]
fn wrong_middles() {
    assert_eq!(median_of_mmtests(&[1.0, 2.0, 3.0, 4.0, 5.0]), 1.5);
    assert_eq!(median_of_mmtests(&[1.0, 2.0, 3.0, 4.0]), 2.0);
    assert_eq!(perflab_stats::median(&[1.0, 2.0, 3.0, 4.0, 5.0]), Ok(3.0));
    let (harmonic, best) = means_with_one_loss();
    assert!(harmonic < 40.0 && best > 99.0, "{harmonic} {best}");
}
