//! Rates by simulation with fixed seeds, for series: change points, warm-up.

use perflab_stats::*;

use crate::noise::{NormalNoise, share_of_hits};

/// A flat history; E-divisive keeps its level.
#[test]
fn steps_are_rarely_imagined_by_e_divisive() {
    let mut noise = NormalNoise::from_seed(1);
    let mut seed = 0;
    let alarms = share_of_hits(300, || {
        seed += 1;
        let how = EDivisive { permutations: 39, seed, ..EDivisive::default() };
        !how.find(&noise.normals(20)).unwrap().is_empty()
    });
    assert!((0.02..=0.085).contains(&alarms), "{alarms}");
}

/// Values of variance 1 with this lag-one correlation.
fn autoregressive_values(noise: &mut NormalNoise, n: usize, correlation: f64) -> Vec<f64> {
    let innovation = (1.0 - correlation * correlation).sqrt();
    let mut value = noise.normal();
    (0..n)
        .map(|_| {
            value = correlation * value + innovation * noise.normal();
            value
        })
        .collect()
}

/// Shuffling calls 82 % of such series stepped (100 values); 99 permutations and 60 values are for the test's time.
#[test]
fn steps_are_rarely_imagined_in_dependent_series() {
    let rate = |autocorrelated: bool| {
        let mut noise = NormalNoise::from_seed(5);
        let mut seed = 0;
        share_of_hits(80, || {
            seed += 1;
            let how =
                EDivisive { permutations: 99, shortest: 3, seed, autocorrelated, ..EDivisive::default() };
            !how.find(&autoregressive_values(&mut noise, 60, 0.5)).unwrap().is_empty()
        })
    };
    let (shuffled, filtered) = (rate(false), rate(true));
    assert!(shuffled > 0.5 && filtered <= 0.08, "{shuffled} {filtered}");
}

/// Dependence is paid for only where it is there.
#[test]
fn steps_of_independent_series_are_found_though_dependence_is_allowed() {
    let mut noise = NormalNoise::from_seed(6);
    let found = share_of_hits(60, || {
        let mut series = noise.normals(60);
        series.iter_mut().skip(30).for_each(|value| *value += 2.0);
        let how = EDivisive { permutations: 99, shortest: 3, autocorrelated: true, ..EDivisive::default() };
        how.find(&series).unwrap().iter().any(|step| step.index.abs_diff(30) <= 5)
    });
    assert!(found >= 0.9, "{found}");
}

/// A level that came and went, as a regression that was repaired, is no dependence of the values: it has two steps.
#[test]
fn a_level_that_came_and_went_is_found() {
    let mut noise = NormalNoise::from_seed(8);
    for (length, found_at_least) in [(5, 0.8), (10, 0.9), (20, 0.9)] {
        let found = share_of_hits(60, || {
            let mut series = noise.normals(60);
            series.iter_mut().skip(25).take(length).for_each(|value| *value += 4.0);
            let how =
                EDivisive { permutations: 99, shortest: 3, autocorrelated: true, ..EDivisive::default() };
            let steps = how.find(&series).unwrap();
            let near = |at: usize| steps.iter().any(|step| step.index.abs_diff(at) <= 1);
            near(25) && near(25 + length)
        });
        eprintln!("{length} of 60 values at another level: {found}");
        assert!(found >= found_at_least, "{length}: {found}");
    }
}

/// Steps beside the one that is looked at are no dependence of the values either.
#[test]
fn several_steps_do_not_hide_each_other() {
    let mut noise = NormalNoise::from_seed(9);
    let courses: [(usize, &[(usize, f64)]); 3] = [
        (40, &[(13, 4.0), (26, -8.0)]),
        (60, &[(15, 3.0), (30, 3.0), (45, 3.0)]),
        (60, &[(12, 4.0), (24, -4.0), (36, 4.0), (48, -4.0)]),
    ];
    for (values, steps) in courses {
        let found = share_of_hits(60, || {
            let mut series = noise.normals(values);
            for (at, by) in steps {
                series.iter_mut().skip(*at).for_each(|value| *value += by);
            }
            let how =
                EDivisive { permutations: 99, shortest: 3, autocorrelated: true, ..EDivisive::default() };
            let found = how.find(&series).unwrap();
            steps.iter().all(|(at, _)| found.iter().any(|step| step.index.abs_diff(*at) <= 2))
        });
        assert!(found >= 0.8, "{steps:?}: {found}");
    }
}

#[test]
fn a_step_is_found_where_it_is() {
    let mut noise = NormalNoise::from_seed(3);
    let near = share_of_hits(40, || {
        let mut series = noise.normals(40);
        series.iter_mut().skip(25).for_each(|value| *value += 3.0);
        let found = EDivisive { permutations: 39, ..EDivisive::default() }.find(&series).unwrap();
        matches!(found[..], [step] if step.index.abs_diff(25) <= 1)
    });
    assert!(near >= 0.8, "{near}");
}

fn classify_series(seed: u64, tries: usize, shape: impl Fn(f64) -> f64) -> Vec<SteadyState> {
    let mut noise = NormalNoise::from_seed(seed);
    let mut one =
        || -> Vec<f64> { (0..300).map(|i| shape(f64::from(i)) * (0.02 * noise.normal()).exp()).collect() };
    (0..tries).map(|_| WarmupRules::default().classify(&one(), BetterDirection::Lower).unwrap()).collect()
}

fn share_of_pattern(found: &[SteadyState], course: WarmupPattern) -> f64 {
    found.iter().filter(|state| state.pattern == course).count() as f64 / found.len() as f64
}

#[test]
fn the_course_of_a_process_is_told() {
    let flat = classify_series(10, 25, |_| 100.0);
    assert!(
        share_of_pattern(&flat, WarmupPattern::Flat) >= 0.95,
        "{}",
        share_of_pattern(&flat, WarmupPattern::Flat)
    );
    let warming = classify_series(11, 25, |i| 100.0 + 80.0 * (-i / 8.0).exp());
    assert!(
        share_of_pattern(&warming, WarmupPattern::WarmUp) >= 0.95,
        "{}",
        share_of_pattern(&warming, WarmupPattern::WarmUp)
    );
    let from: Vec<f64> = warming.iter().filter_map(|state| state.from.map(|from| from as f64)).collect();
    assert!((10.0..=40.0).contains(&median(&from).unwrap()), "{from:?}");
    let slowing = classify_series(12, 25, |i| if i < 120.0 { 100.0 } else { 110.0 });
    assert!(share_of_pattern(&slowing, WarmupPattern::SlowDown) >= 0.95);
    assert!(
        slowing.iter().filter(|state| state.from.is_some_and(|from| from.abs_diff(120) <= 2)).count() >= 23
    );
    let restless = classify_series(13, 25, |i| if i % 100.0 < 50.0 { 100.0 } else { 130.0 });
    assert!(share_of_pattern(&restless, WarmupPattern::NoSteadyState) >= 0.95);
}

/// The rule of Georges et al. sees the end of a fast warm-up, and calls a slow drift steady: why it is not the default.
#[test]
fn the_variation_rule_does_not_see_a_slow_drift() {
    let mut noise = NormalNoise::from_seed(14);
    let mut series = |shape: &dyn Fn(f64) -> f64| -> Vec<f64> {
        (0..200).map(|i| shape(f64::from(i)) * (0.005 * noise.normal()).exp()).collect()
    };
    let warming = series(&|i| 100.0 + 80.0 * (-i / 8.0).exp());
    let from = first_steady_by_variation(&warming, 10, 0.02).unwrap().unwrap();
    assert!((10..=40).contains(&from), "{from}");
    let drifting = series(&|i| 100.0 + 0.2 * i);
    assert_eq!(first_steady_by_variation(&drifting, 10, 0.02), Ok(Some(0)));
    assert_eq!(
        WarmupRules::default().classify(&drifting, BetterDirection::Lower).unwrap().pattern,
        WarmupPattern::NoSteadyState
    );
}

/// A flat series of n values around 100 with 5 % of noise: normal, log-normal with a long tail, with one value in a hundred ten times
/// as large, or one in twenty three times, or dependent.
fn flat_series(shape: &str, n: usize, noise: &mut NormalNoise) -> Vec<f64> {
    let mut before = noise.normal();
    let mut next = || {
        let normal = noise.normal();
        match shape {
            "normal" => 100.0 + 5.0 * normal,
            "log-normal" => 100.0 * (0.3 * normal).exp(),
            // Quantiles of the normal distribution: one in a hundred is beyond 2.326, one in twenty beyond 1.645.
            "outliers" => (100.0 + 5.0 * normal) * if noise.normal() > 2.326 { 10.0 } else { 1.0 },
            "slow ones" => (100.0 + 5.0 * normal) * if noise.normal() > 1.645 { 3.0 } else { 1.0 },
            _ => {
                before = 0.5 * before + 0.75_f64.sqrt() * normal;
                100.0 + 5.0 * before
            }
        }
    };
    (0..n).map(|_| next()).collect()
}

fn warm_up_values(series: &[f64]) -> Option<usize> {
    WarmupRules::default().find_warm_up(series, BetterDirection::Lower).unwrap().map(|found| found.values)
}

/// On flat series, also where values depend on the one before: less than 2 %. Where one value in twenty is slow, so is the first
/// of one series in twenty, which looks like any warm-up of one value.
#[test]
fn warm_up_is_rarely_imagined() {
    let mut noise = NormalNoise::from_seed(23);
    for (shape, most) in [
        ("normal", 0.02),
        ("log-normal", 0.02),
        ("dependent", 0.02),
        ("outliers", 0.02),
        ("slow ones", 0.065),
    ] {
        for n in [30, 100] {
            let alarms = share_of_hits(1000, || warm_up_values(&flat_series(shape, n, &mut noise)).is_some());
            assert!(alarms < most, "{shape}, {n} values: {alarms}");
        }
    }
}

/// The first iterations are a half slower, or the first alone is twice as slow; and a step in the last half is no warm-up.
#[test]
fn warm_up_is_found_where_it_is() {
    let mut noise = NormalNoise::from_seed(24);
    for (slow, factor, up_to) in [(3, 1.5, 4), (8, 1.5, 9), (1, 2.0, 3)] {
        let found = share_of_hits(200, || {
            let mut series = flat_series("normal", 30, &mut noise);
            series.iter_mut().take(slow).for_each(|value| *value *= factor);
            warm_up_values(&series).is_some_and(|values| (slow..=up_to).contains(&values))
        });
        assert!(found >= 0.9, "{slow} values: {found}");
    }
    let late = share_of_hits(100, || {
        let mut series = flat_series("normal", 100, &mut noise);
        series.iter_mut().take(60).for_each(|value| *value *= 1.5);
        warm_up_values(&series).is_some()
    });
    assert!(late < 0.02, "{late}");
}

/// The whole table: `cargo run --release -p perflab-stats --example guard_table`, in docs/statistics.md.
#[test]
fn a_monitor_hardly_ever_alarms_in_a_life_without_steps() {
    let monitor = StepMonitor::new(0.05, 500).unwrap();
    let rate = |seed: u64, correlation: f64| {
        let mut noise = NormalNoise::from_seed(seed);
        share_of_hits(60, || {
            let life = autoregressive_values(&mut noise, 120, correlation);
            !monitor.watch(&life, &[]).unwrap().alarms.is_empty()
        })
    };
    let (independent, dependent) = (rate(21, 0.0), rate(22, 0.5));
    assert!(independent <= 0.05 && dependent <= 0.085, "{independent} {dependent}");
}

/// A step of two standard deviations, up and down, within ten runs in the median.
#[test]
fn a_monitor_sees_a_step_within_ten_values() {
    let monitor = StepMonitor::new(0.05, 500).unwrap();
    for (seed, baseline) in [(31, 25), (32, 100)] {
        let mut noise = NormalNoise::from_seed(seed);
        let mut number = 0;
        let delays: Vec<f64> = (0..40)
            .map(|_| {
                number += 1;
                let mut values = noise.normals(baseline + 40);
                let step = if number % 2 == 0 { 2.0 } else { -2.0 };
                values.iter_mut().skip(baseline).for_each(|value| *value += step);
                let alarms = monitor.watch(&values, &[]).unwrap().alarms;
                let seen = alarms.iter().find(|alarm| alarm.seen >= baseline);
                seen.map_or(f64::from(u16::MAX), |alarm| (alarm.seen - baseline + 1) as f64)
            })
            .collect();
        let typical = median(&delays).unwrap();
        assert!(typical <= 10.0, "{typical} after {baseline}");
    }
}

/// Values of several runs a day, each day with a luck of its own; a step from some day on.
fn values_by_day(
    noise: &mut NormalNoise,
    (days, runs, luck): (usize, usize, f64),
    step: (usize, f64),
) -> (Vec<f64>, SeriesGroups) {
    let keys: Vec<usize> = (0..days * runs).map(|at| at / runs).collect();
    let lucks: Vec<f64> = (0..days).map(|_| luck * noise.normal()).collect();
    let value = |day: &usize| lucks[*day] + noise.normal() + if *day >= step.0 { step.1 } else { 0.0 };
    (keys.iter().map(value).collect(), SeriesGroups::from_keys(&keys))
}

const FLAT: (usize, f64) = (usize::MAX, 0.0);

/// The whole table: `guard_table`, in docs/statistics.md.
#[test]
fn the_luck_of_days_is_no_step() {
    for (days, runs) in [(10, 4), (3, 10)] {
        let mut noise = NormalNoise::from_seed(41);
        let mut seed = 0;
        let mut by_run = 0;
        let by_day = share_of_hits(100, || {
            seed += 1;
            let how = EDivisive {
                permutations: 99,
                shortest: 3,
                seed,
                autocorrelated: true,
                ..EDivisive::default()
            };
            let (values, groups) = values_by_day(&mut noise, (days, runs, 1.5), FLAT);
            by_run += usize::from(!how.find(&values).unwrap().is_empty());
            !how.find_in_groups(&values, &groups).unwrap().is_empty()
        });
        assert!(by_day <= 0.08 && by_run as f64 > 100.0 * by_day, "{days} days: {by_day}, by run {by_run} %");
    }
}

/// Between days where there are enough of them, and within one in any case; one run a day changes nothing.
#[test]
fn steps_are_found_where_days_have_a_luck() {
    let how = EDivisive { permutations: 99, shortest: 3, autocorrelated: true, ..EDivisive::default() };
    let mut noise = NormalNoise::from_seed(42);
    let between = share_of_hits(40, || {
        let (values, groups) = values_by_day(&mut noise, (20, 4, 1.0), (10, 4.0));
        how.find_in_groups(&values, &groups).unwrap().iter().any(|step| step.index.abs_diff(40) <= 4)
    });
    let within = share_of_hits(40, || {
        let (mut values, groups) = values_by_day(&mut noise, (2, 20, 1.0), FLAT);
        values[30..].iter_mut().for_each(|value| *value += 5.0);
        how.find_in_groups(&values, &groups).unwrap().iter().any(|step| step.index.abs_diff(30) <= 2)
    });
    assert!(between >= 0.9 && within >= 0.7, "{between} {within}");
    let (values, groups) = values_by_day(&mut noise, (40, 1, 1.0), (20, 4.0));
    assert_eq!(how.find_in_groups(&values, &groups), how.find(&values));
}

#[test]
fn a_monitor_takes_a_day_for_a_value_where_days_have_a_luck() {
    let monitor = StepMonitor::new(0.05, 500).unwrap();
    let mut noise = NormalNoise::from_seed(43);
    let mut by_run = 0;
    let by_day = share_of_hits(60, || {
        let (values, groups) = values_by_day(&mut noise, (30, 4, 2.0), FLAT);
        by_run += usize::from(!monitor.watch(&values, &[]).unwrap().alarms.is_empty());
        !monitor.watch_in_groups(&values, &[], &groups).unwrap().alarms.is_empty()
    });
    assert!(by_day <= 0.05 && by_run >= 6, "{by_day}, by run {by_run} of 60");
    let (values, groups) = values_by_day(&mut noise, (30, 4, 1.0), (20, 6.0));
    let watched = monitor.watch_in_groups(&values, &[], &groups).unwrap();
    let [alarm] = watched.alarms[..] else { panic!("{watched:?}") };
    assert!(alarm.step == 80 && (84..108).contains(&alarm.seen) && alarm.seen % 4 == 3, "{alarm:?}");
    // Somebody began a new baseline in the middle of a day.
    let restarted = monitor.watch_in_groups(&values, &[82], &groups).unwrap();
    assert!(restarted.alarms.iter().all(|alarm| alarm.step >= 82), "{restarted:?}");
    let (few, groups) = values_by_day(&mut noise, (4, 10, 3.0), FLAT);
    assert!(monitor.watch_in_groups(&few, &[], &groups).unwrap().alarms.is_empty());
}
