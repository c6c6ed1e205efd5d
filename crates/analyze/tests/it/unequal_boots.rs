//! Boots that hold unequally many iterations: a model of random effects, where it suits the values.

use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{
    AnalysisOptions, ComparisonSide, MethodDescription, Verdict, VerdictRow, compare_sides,
};
use perflab_model::RunRecord;

const STUDIES: usize = 150;

/// Boots of so many iterations each, with a luck of 1 % and iterations that scatter by 2 %, around a centre.
fn run_of_boots(name: &str, sizes: &[u32], centre: f64, noise: &mut SplitMixNoise) -> RunRecord {
    let luck: Vec<f64> = sizes.iter().map(|_| noise.lognormal_around(centre, 0.01)).collect();
    let lab = RunBuilder::new(name).with(|lab| {
        lab.boots = u32::try_from(sizes.len()).unwrap();
        lab.iterations = sizes.iter().copied().max().unwrap_or(1);
        lab.boot_id = name.into();
    });
    let per_boot = lab.iterations as usize;
    let mut run = lab.build_run(|at| Some(noise.lognormal_around(luck[at.boot as usize], 0.02)));
    let is_there = |boot: usize, iteration: u32| iteration < sizes[boot];
    run.samples.retain(|sample| is_there(sample.boot as usize, sample.iteration));
    let mut at = 0;
    run.iterations.retain(|one| {
        at += 1;
        is_there((at - 1) / per_boot, one.slot)
    });
    run
}

fn compare_pair(ours: RunRecord, theirs: RunRecord) -> (VerdictRow, Vec<MethodDescription>) {
    let side = |name: &str, run| ComparisonSide { name: name.into(), runs: vec![run] };
    let options = AnalysisOptions { default_margin: 0.0, ..AnalysisOptions::default() };
    let mut found = compare_sides(&side("a", ours), &[side("b", theirs)], &options).unwrap();
    (found.rows.remove(0), found.notes)
}

fn is_by_model(row: &VerdictRow) -> bool {
    row.method.unwrap().random_effects
}

/// Between 2 and 12 iterations in each of five boots. By medians and ranks, 40 of 100 intervals of such data exclude a change of 2 %
/// (docs/decisions/random-effects.md); larger simulations: the table of truth.
#[test]
fn boots_of_unequal_size_keep_their_coverage_and_find_more() {
    let mut noise = SplitMixNoise(5);
    let (mut covering, mut alarms, mut found) = (0, 0, 0);
    for _ in 0..STUDIES {
        let mut sizes = || (0..5).map(|_| 2 + (11.0 * noise.uniform()) as u32).collect::<Vec<_>>();
        let (ours, theirs) = (sizes(), sizes());
        let old = run_of_boots("a", &ours, 1.0, &mut noise);
        let new = run_of_boots("b", &theirs, 1.0, &mut noise);
        let changed = run_of_boots("c", &theirs, 1.02, &mut noise);
        let (row, _) = compare_pair(old.clone(), new);
        let interval = row.change.unwrap().interval.unwrap();
        covering += usize::from(interval.low <= 0.0 && 0.0 <= interval.high);
        alarms += usize::from(matches!(row.verdict, Verdict::Better | Verdict::Worse));
        let interval = compare_pair(old, changed).0.change.unwrap().interval.unwrap();
        found += usize::from(interval.low > 0.0);
    }
    let share = |count: usize| 100.0 * count as f64 / STUDIES as f64;
    let (coverage, alarms, found) = (share(covering), share(alarms), share(found));
    eprintln!("coverage {coverage:.1} %, {alarms:.1} % alarms, 2 % found in {found:.1} %");
    // Three standard errors of a share of 5 % are 5.3 points.
    assert!(coverage >= 89.7 && alarms <= 10.3 && found >= 42.0, "{coverage} {alarms} {found}");
}

/// Two or three boots of unequal size count alike: their medians, by Welch's t, which such noise makes careful rather than bold
/// (Bakirov and Székely, "Student's t-test for Gaussian scale mixtures", 2006). Weighing them was tried: docs/decisions/random-effects.md.
#[test]
fn two_or_three_boots_of_unequal_size_keep_their_coverage() {
    for boots in [2, 3] {
        let mut noise = SplitMixNoise(boots);
        let (mut covering, mut alarms) = (0, 0);
        for _ in 0..4 * STUDIES {
            let mut sizes = || (0..boots).map(|_| 2 + (11.0 * noise.uniform()) as u32).collect::<Vec<_>>();
            let (ours, theirs) = (sizes(), sizes());
            let old = run_of_boots("a", &ours, 1.0, &mut noise);
            let new = run_of_boots("b", &theirs, 1.0, &mut noise);
            let (row, _) = compare_pair(old, new);
            let interval = row.change.unwrap().interval.unwrap();
            covering += usize::from(interval.low <= 0.0 && 0.0 <= interval.high);
            alarms += usize::from(matches!(row.verdict, Verdict::Better | Verdict::Worse));
        }
        let share = |count: usize| 100.0 * count as f64 / (4 * STUDIES) as f64;
        let (coverage, alarms) = (share(covering), share(alarms));
        eprintln!("{boots} boots: coverage {coverage:.1} %, {alarms:.1} % alarms");
        // Three standard errors of a share of 5 % are 2.7 points.
        assert!(coverage >= 92.3 && alarms <= 7.7, "{boots}: {coverage} {alarms}");
    }
}

#[test]
fn boots_of_about_equal_size_and_few_boots_are_compared_as_before() {
    let mut noise = SplitMixNoise(6);
    let mut pair = |sizes: &[u32]| {
        let (ours, theirs) =
            (run_of_boots("a", sizes, 1.0, &mut noise), run_of_boots("b", sizes, 1.1, &mut noise));
        compare_pair(ours, theirs)
    };
    for sizes in [&[8, 8, 8, 8, 8][..], &[8, 9, 10, 11, 8], &[2, 12, 5]] {
        let (row, notes) = pair(sizes);
        assert!(!is_by_model(&row), "{sizes:?}");
        assert!(!notes.contains(&MethodDescription::RandomEffects));
    }
    let (row, notes) = pair(&[2, 12, 5, 8, 3]);
    assert!(is_by_model(&row) && notes.contains(&MethodDescription::RandomEffects), "{row:?}");
    assert_eq!(row.verdict, Verdict::Worse);
}

/// A value far from the rest, a failure and a clock that shows one number within boots are not what the model knows.
#[test]
fn values_that_do_not_suit_the_model_are_compared_by_ranks() {
    let mut noise = SplitMixNoise(4);
    let sizes = [2, 12, 5, 8, 3];
    let mut side = |name: &str| run_of_boots(name, &sizes, 1.0, &mut noise);
    let (ours, theirs) = (side("a"), side("b"));
    assert!(is_by_model(&compare_pair(ours.clone(), theirs.clone()).0));
    let mut far = theirs.clone();
    far.samples[4].value *= 10.0;
    assert!(!is_by_model(&compare_pair(ours.clone(), far).0));
    let mut failed = theirs.clone();
    let last = failed.samples.pop().unwrap();
    failed.iterations.last_mut().unwrap().outcome =
        perflab_model::Outcome::Failed { reason: "exit code 1".into() };
    assert_eq!(last.boot, 4);
    assert!(!is_by_model(&compare_pair(ours.clone(), failed).0));
    let mut coarse = theirs;
    coarse.samples.iter_mut().for_each(|sample| sample.value = 1.0 + 0.01 * f64::from(sample.boot));
    assert!(!is_by_model(&compare_pair(ours, coarse).0));
}
