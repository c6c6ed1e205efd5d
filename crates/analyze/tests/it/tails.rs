//! The bad tail is part of "same": simulated where a few iterations become slow, and where nothing changes.

use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{
    AnalysisOptions, ComparedPart, Comparison, ComparisonSide, RowFlag, Verdict, VerdictBasis, compare_levels,
};

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
                row.middle == Some(Verdict::Same)
            });
            // Five points, and twice the simulation's own error.
            let error = 2.0 * (5.0 * 95.0 / REPETITIONS as f64).sqrt();
            assert!(lost <= 5.0 + error, "{name}, n = {n}: {lost} % lose their word");
        }
    }
}

/// Three in ten take 60 % longer; then almost half: the middle stays among the fast ones, the mean does not.
#[test]
fn a_mean_that_moves_alone_is_not_the_same() {
    let modes = |noise: &mut SplitMixNoise, is_new: bool| {
        let slow = noise.uniform() < if is_new { 0.42 } else { 0.3 };
        noise.lognormal_around(if slow { 16.0 } else { 10.0 }, 0.005)
    };
    let (mut same, mut found) = (0, Vec::new());
    for seed in 0..100 {
        let row = compare_shape(200, 300 + seed, modes).rows.remove(0);
        same += usize::from(row.verdict == Verdict::Same);
        found.push(row);
    }
    assert!(same <= 10, "{same} of 100 are the same");
    let by_mean = found.iter().find(|row| row.basis == VerdictBasis::Mean && row.verdict == Verdict::Worse);
    let part = by_mean.unwrap().deciding_part().unwrap();
    assert!(part.part == ComparedPart::Mean && part.change.value > 0.03 && part.q <= 0.05, "{part:?}");
}

/// 1,000 values a side, of which one in thirty of the candidate takes 25 % longer, within the outer fence: p99 moves.
#[test]
fn tail_quantiles_are_judged_where_the_values_carry_them() {
    let latency = |noise: &mut SplitMixNoise, is_new: bool| {
        let value = noise.lognormal_around(10.0, 0.05);
        if is_new && noise.uniform() < 0.03 { value * 1.2 } else { value }
    };
    let words = |seed| {
        let row = compare_shape(1_000, seed, latency).rows.remove(0);
        let parts: Vec<ComparedPart> = row.parts.iter().map(|part| part.part).collect();
        assert_eq!(parts, [ComparedPart::Mean, ComparedPart::P95, ComparedPart::P99]);
        (row.verdict, row.basis)
    };
    let found: Vec<_> = (0..20).map(|seed| words(40 + seed)).collect();
    let worse = [VerdictBasis::P99, VerdictBasis::P95, VerdictBasis::Tail];
    let is_worse =
        |(verdict, basis): &&(Verdict, VerdictBasis)| *verdict == Verdict::Worse && worse.contains(basis);
    assert!(found.iter().filter(is_worse).count() >= 12, "{found:?}");
    assert!(found.iter().all(|(verdict, _)| *verdict != Verdict::Same), "{found:?}");
    let few = compare_shape(199, 1, latency).rows.remove(0);
    assert_eq!(few.parts.len(), 1);
}

/// A clean baseline, a candidate with one far iteration, and earlier runs of which one iteration in thirty was far, too.
#[test]
fn earlier_runs_show_how_many_far_iterations_are_usual() {
    let mut noise = SplitMixNoise(5);
    let mut run = |id: &str, far: &dyn Fn(&str, u32) -> bool| {
        let lab = RunBuilder::new(id).with(|lab| {
            lab.factors = vec![("build", vec!["old", "new"])];
            lab.iterations = 30;
        });
        lab.build_run(|at| {
            let value = noise.lognormal_around(10.0, 0.01);
            Some(if far(at.level("build"), at.iteration) { value * 10.0 } else { value })
        })
    };
    let now = run("r", &|build, iteration| build == "new" && iteration == 7);
    let earlier: Vec<_> = (0..8).map(|i| run(&format!("e{i}"), &|_, iteration| iteration == 3 + i)).collect();
    let clean: Vec<_> = (0..8).map(|i| run(&format!("c{i}"), &|_, _| false)).collect();
    let side = ComparisonSide { name: "r".into(), runs: vec![now] };
    let verdict = |earlier| {
        let options = AnalysisOptions { earlier, ..AnalysisOptions::default() };
        let row = compare_levels(&side, "build", &options).unwrap().rows.remove(0);
        (row.verdict, row.tail.unwrap().earlier.map(|count| (count.beyond, count.of)))
    };
    assert_eq!(verdict(Vec::new()), (Verdict::Unclear, None));
    assert_eq!(verdict(clean), (Verdict::Unclear, Some((0, 480))));
    assert_eq!(verdict(earlier), (Verdict::Same, Some((16, 480))));
}

#[test]
fn what_is_the_same_says_what_it_could_not_have_seen() {
    let found = compare_shape(100, 3, |noise, _| noise.lognormal_around(10.0, 0.005));
    let row = &found.rows[0];
    assert_eq!(row.verdict, Verdict::Same);
    assert!((row.unseen_share.unwrap() - 0.0295).abs() < 5e-4);
}

/// On a clock that counts in steps of a tenth, one step more is next to the middle and not far from it; three times as much is.
#[test]
fn a_step_of_a_coarse_clock_is_no_tail() {
    let slow = |times: f64| {
        let mut noise = SplitMixNoise(3);
        let run = RunBuilder::new("r")
            .with(|lab| {
                lab.factors = vec![("build", vec!["old", "new"])];
                lab.iterations = 40;
            })
            .build_run(|spot| {
                let is_slow = spot.level("build") == "new" && spot.iteration % 10 == 7;
                let jitter = if noise.uniform() < 0.05 { 1.0 } else { 0.0 };
                Some(if is_slow { 10.0 * times } else { 10.0 + jitter })
            });
        let side = ComparisonSide { name: "r".into(), runs: vec![run] };
        compare_levels(&side, "build", &AnalysisOptions::default()).unwrap().rows.remove(0)
    };
    let (step, far) = (slow(1.1), slow(3.0));
    assert!(
        step.tail.is_none() && !step.flags.contains(&RowFlag::Outliers),
        "{:?} {:?}",
        step.tail,
        step.flags
    );
    assert_eq!(far.tail.map(|tail| tail.candidate.beyond), Some(4));
    assert!(far.flags.contains(&RowFlag::Outliers), "{:?}", far.flags);
}
