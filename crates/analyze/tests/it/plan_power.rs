//! What `perflab plan` promises is reached: experiments of the size that it recommends, learnt from runs with the same noise.

use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::sample_size::{SampleSizeAim, SampleSizeOptions};
use perflab_analyze::{
    AnalysisOptions, ComparisonSide, RepetitionLevel, VerdictRow, compare_levels, compare_sides,
    plan_sample_sizes,
};
use perflab_model::{Nanos, RunRecord};

const PLANS: usize = 500;

/// 80 %, three standard errors of so many experiments below, and what whole numbers of boots add above.
const REACHED: std::ops::RangeInclusive<f64> = 0.75..=0.88;

/// How iterations scatter around a centre, by 2 %.
type Scatter = fn(&mut SplitMixNoise, f64) -> f64;

const SCATTERS: [(&str, Scatter); 2] = [
    ("normal", |noise, centre| centre * (1.0 + 0.02 * noise.normal())),
    ("log-normal", |noise, centre| noise.lognormal_around(centre, 0.02)),
];

fn boots_of(name: &str, boots: u32, iterations: u32, mut value: impl FnMut(u32) -> f64) -> RunRecord {
    let lab = RunBuilder::new(name).with(|lab| {
        (lab.boots, lab.iterations, lab.boot_id) = (boots, iterations, name.into());
    });
    lab.build_run(|at| Some(value(at.boot)))
}

/// Boots and iterations that find a change.
fn plan(pilot: RunRecord, size: f64, iterations: Option<usize>) -> (usize, usize) {
    let side = ComparisonSide { name: "pilot".into(), runs: vec![pilot] };
    let goal =
        SampleSizeOptions { size, aim: SampleSizeAim::Detect, boot_cost: Nanos(60_000_000_000), iterations };
    let (found, _) = plan_sample_sizes(&side, &goal, &AnalysisOptions::default()).unwrap();
    (found[0].repetitions.unwrap(), found[0].iterations)
}

/// A margin of zero: what is found is what the interval excludes.
fn strict_options() -> AnalysisOptions {
    AnalysisOptions { default_margin: 0.0, ..AnalysisOptions::default() }
}

fn share_found(mut row: impl FnMut() -> VerdictRow) -> f64 {
    let found = |row: VerdictRow| row.verdict == perflab_analyze::Verdict::Worse;
    (0..PLANS).filter(|_| found(row())).count() as f64 / PLANS as f64
}

#[test]
fn a_planned_number_of_boots_finds_the_change() {
    for (name, scatter) in SCATTERS {
        for pilot_boots in [3, 5, 10] {
            let mut noise = SplitMixNoise(u64::from(pilot_boots) * 17);
            let mut sizes = 0;
            let share = share_found(|| {
                let mut side = |name: &str, boots: u32, iterations: u32, centre: f64| {
                    let luck: Vec<f64> = (0..boots).map(|_| noise.lognormal_around(centre, 0.01)).collect();
                    boots_of(name, boots, iterations, |boot| scatter(&mut noise, luck[boot as usize]))
                };
                let (boots, iterations) = plan(side("p", pilot_boots, 10, 1.0), 0.02, Some(10));
                let (boots, iterations) =
                    (u32::try_from(boots.min(150)).unwrap(), u32::try_from(iterations).unwrap());
                sizes += boots;
                let ours = ComparisonSide { name: "a".into(), runs: vec![side("a", boots, iterations, 1.0)] };
                let theirs =
                    ComparisonSide { name: "b".into(), runs: vec![side("b", boots, iterations, 1.02)] };
                compare_sides(&ours, &[theirs], &strict_options()).unwrap().rows.remove(0)
            });
            eprintln!(
                "{name}, {pilot_boots} boots: {:.1} boots on average, {share:.3} found",
                f64::from(sizes) / PLANS as f64
            );
            assert!(REACHED.contains(&share), "{name}, learnt from {pilot_boots} boots: {share}");
        }
    }
}

#[test]
fn a_planned_number_of_interleaved_iterations_finds_the_change() {
    for (name, scatter) in SCATTERS {
        for pilot in [5, 10, 30] {
            let mut noise = SplitMixNoise(u64::from(pilot) * 31);
            let mut sizes = 0;
            let share = share_found(|| {
                let seen = boots_of("p", 1, pilot, |_| scatter(&mut noise, 1.0));
                let iterations = u32::try_from(plan(seen, 0.015, None).1.min(190)).unwrap();
                sizes += iterations;
                let lab = RunBuilder::new("r").with(|lab| {
                    lab.factors = vec![("build", vec!["old", "new"])];
                    lab.iterations = iterations;
                });
                let run = lab.build_run(|at| {
                    Some(scatter(&mut noise, if at.level("build") == "new" { 1.015 } else { 1.0 }))
                });
                let side = ComparisonSide { name: "r".into(), runs: vec![run] };
                compare_levels(&side, "build", &strict_options()).unwrap().rows.remove(0)
            });
            eprintln!(
                "{name}, {pilot} iterations: {:.1} on average, {share:.3} found",
                f64::from(sizes) / PLANS as f64
            );
            assert!(REACHED.contains(&share), "{name}, learnt from {pilot} iterations: {share}");
        }
    }
}

/// What several runs of one boot show is planned by runs, and a pilot of one run by iterations of one run with both sides.
#[test]
fn what_repeats_is_what_is_planned() {
    let mut noise = SplitMixNoise(4);
    let mut run = |name: &str, luck: f64| {
        let lab = RunBuilder::new(name).with(|lab| lab.iterations = 20);
        lab.build_run(|_| Some(noise.lognormal_around(luck, 0.01)))
    };
    let runs: Vec<RunRecord> = [1.0, 1.03, 0.98, 1.01, 0.99]
        .iter()
        .zip(["a", "b", "c", "d", "e"])
        .map(|(luck, name)| run(name, *luck))
        .collect();
    let plan = |runs: &[RunRecord]| {
        let side = ComparisonSide { name: "pilot".into(), runs: runs.to_vec() };
        let goal = SampleSizeOptions {
            size: 0.05,
            aim: SampleSizeAim::Decide,
            boot_cost: Nanos(60_000_000_000),
            iterations: None,
        };
        plan_sample_sizes(&side, &goal, &AnalysisOptions::default()).unwrap().0.remove(0)
    };
    let one = plan(&runs[..1]);
    assert_eq!((one.level, one.repetitions, one.between), (RepetitionLevel::Iteration, Some(1), None));
    // Half a second each, and no boot.
    assert_eq!(one.time, Some(Nanos(one.iterations as u64 * 500_000_000)));
    let several = plan(&runs);
    assert_eq!((several.level, several.iterations, several.observed), (RepetitionLevel::Run, 20, (5, 100)));
    assert!(several.repetitions.unwrap() >= 2 && several.between.unwrap() > 0.005, "{several:?}");
    let each = 20 * 500_000_000;
    assert_eq!(several.time, Some(Nanos(several.repetitions.unwrap() as u64 * each)));
    // What a run takes besides its iterations is spent with each of them.
    let mut dear = runs.clone();
    for run in &mut dear {
        let iterations: u64 = run.iterations.iter().map(|one| one.end.since(one.start).0).sum();
        run.manifest.overhead.wall = Nanos(iterations + 3_000_000_000);
    }
    let dear = plan(&dear);
    assert_eq!(dear.time, Some(Nanos(dear.repetitions.unwrap() as u64 * (each + 3_000_000_000))));
}

/// Imports that do not tell when iterations ran: a duration is what they took, and of anything else nobody knows.
#[test]
fn time_is_that_of_iterations_or_unknown() {
    let time_of = |unit: &'static str| {
        let lab = RunBuilder::new("r").with(|lab| lab.metrics[0].unit = unit);
        let mut run = lab.build_run(|at| Some(f64::from(100 + at.iteration % 2)));
        run.samples.iter_mut().for_each(|sample| (sample.start, sample.end) = (Nanos(0), Nanos(0)));
        let side = ComparisonSide { name: "r".into(), runs: vec![run] };
        let goal = SampleSizeOptions {
            size: 0.01,
            aim: SampleSizeAim::Detect,
            boot_cost: Nanos(1),
            iterations: None,
        };
        let plan = plan_sample_sizes(&side, &goal, &AnalysisOptions::default()).unwrap().0.remove(0);
        plan.time.map(|time| time.0 / plan.iterations as u64)
    };
    assert_eq!(time_of("ms"), Some(100_500_000));
    assert_eq!(time_of("ns/op"), None);
}

/// Who has more iterations a boot could leave them out.
#[test]
fn more_iterations_never_need_more_boots() {
    for seed in 0..20 {
        for pilot_boots in [2, 5] {
            let mut noise = SplitMixNoise(seed);
            let luck: Vec<f64> = (0..pilot_boots).map(|_| noise.lognormal_around(1.0, 0.01)).collect();
            let pilot =
                boots_of("p", pilot_boots, 20, |boot| noise.lognormal_around(luck[boot as usize], 0.02));
            let needed = [1, 2, 4, 8, 16, 20, 32, 64, 128, 1_000]
                .map(|iterations| plan(pilot.clone(), 0.02, Some(iterations)).0);
            assert!(
                needed.is_sorted_by(|fewer, more| fewer >= more),
                "{seed}, {pilot_boots} boots: {needed:?}"
            );
        }
    }
}
