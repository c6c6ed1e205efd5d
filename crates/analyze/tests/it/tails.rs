//! The bad tail is part of "same": simulated where a few iterations become slow, and where nothing changes.

use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{AnalysisOptions, Comparison, ComparisonSide, Verdict, VerdictBasis, compare_levels};

/// Two interleaved levels; `draw` gives a value of the baseline or the candidate.
fn compare_shape(iterations: u32, seed: u64, draw: impl Fn(&mut SplitMixNoise, bool) -> f64) -> Comparison {
    let mut noise = SplitMixNoise(seed);
    let run = RunBuilder::new("r")
        .with(|lab| {
            lab.factors = vec![("build", vec!["old", "new"])];
            lab.iterations = iterations;
        })
        .build_run(|spot| Some(draw(&mut noise, spot.level("build") == "new")));
    let side = ComparisonSide { name: "r".into(), runs: vec![run] };
    compare_levels(&side, "build", &AnalysisOptions::default()).unwrap()
}

/// Per cent of comparisons for which something holds.
fn share(repetitions: u64, mut holds: impl FnMut(u64) -> bool) -> f64 {
    100.0 * (0..repetitions).filter(|seed| holds(7_000 + seed)).count() as f64 / repetitions as f64
}

/// Log-normal values, of which the candidate has this share so many times as slow.
fn with_slow(noise: &mut SplitMixNoise, is_new: bool, share: f64, times: f64) -> f64 {
    let value = noise.lognormal_around(10.0, 0.02);
    if is_new && noise.uniform() < share { value * times } else { value }
}

const REPETITIONS: u64 = 300;

#[test]
fn same_needs_a_sample_without_a_slow_iteration() {
    for (slow, times) in [(0.05, 3.0), (0.10, 2.0), (0.01, 20.0)] {
        for n in [30, 100, 300] {
            let same = share(REPETITIONS, |seed| {
                let found = compare_shape(n, seed, |noise, is_new| with_slow(noise, is_new, slow, times));
                found.rows[0].verdict == Verdict::Same
            });
            let without_any = 100.0 * (1.0 - slow).powf(f64::from(n));
            // Five points, and twice the simulation's own error.
            let error = 2.0 * (without_any * (100.0 - without_any) / REPETITIONS as f64).sqrt();
            assert!(
                same <= without_any + 5.0 + error,
                "{slow} x {times}, n = {n}: {same} against {without_any}"
            );
        }
    }
}

#[test]
fn a_tail_that_is_clearly_worse_is_found() {
    let found = compare_shape(300, 11, |noise, is_new| with_slow(noise, is_new, 0.05, 3.0));
    let row = &found.rows[0];
    assert_eq!((row.verdict, row.basis, row.verdict_word()), (Verdict::Worse, VerdictBasis::Tail, "worse"));
    let tail = row.tail.unwrap();
    assert!(
        tail.middle == Verdict::Same && tail.candidate.beyond > 5 && tail.baseline.beyond == 0,
        "{tail:?}"
    );
    assert!(tail.fence > 10.0 && tail.fence < 12.0 && row.unseen_share.is_none());
}

#[test]
fn clean_samples_stay_the_same() {
    type Shape = (&'static str, fn(&mut SplitMixNoise) -> f64);
    let shapes: [Shape; 4] = [
        ("normal", |noise| 10.0 + 0.2 * noise.normal()),
        ("log-normal", |noise| noise.lognormal_around(10.0, 0.02)),
        ("bimodal", |noise| {
            let centre = if noise.uniform() < 0.3 { 10.6 } else { 10.0 };
            noise.lognormal_around(centre, 0.005)
        }),
        ("quantised", |noise| (10.0 + 0.2 * noise.normal()).mul_add(5.0, 0.5).floor() / 5.0),
    ];
    for (name, draw) in shapes {
        for n in [10, 30, 100] {
            let lost = share(REPETITIONS, |seed| {
                let found = compare_shape(n, seed, |noise, _| draw(noise));
                let row = &found.rows[0];
                row.basis == VerdictBasis::Tail && row.tail.unwrap().middle == Verdict::Same
            });
            assert!(lost <= 5.0, "{name}, n = {n}: {lost} % lose their word");
        }
    }
}

#[test]
fn what_is_the_same_says_what_it_could_not_have_seen() {
    let found = compare_shape(100, 3, |noise, _| noise.lognormal_around(10.0, 0.005));
    let row = &found.rows[0];
    assert_eq!(row.verdict, Verdict::Same);
    assert!((row.unseen_share.unwrap() - 0.0295).abs() < 5e-4);
}
