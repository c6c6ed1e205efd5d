//! Machines as a level: what differs from one to the next, and how a change differs between them.

use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{
    AnalysisOptions, ComparisonSide, EffectRow, RepetitionLevel, Verdict, VerdictRow, compare_sides,
    estimate_interactions,
};
use perflab_model::{RunRecord, fact_table};

const STUDIES: usize = 400;

/// Three standard errors of a share of 5 % above it.
const LIMIT: f64 = 0.05 + 3.0 * 0.0109;

/// A boot of a machine, whose luck is 0.5 %.
fn run_on_machine(
    name: &str,
    machine: usize,
    boot: usize,
    centre: f64,
    noise: &mut SplitMixNoise,
) -> RunRecord {
    let luck = noise.lognormal_around(centre, 0.005);
    let lab = RunBuilder::new(&format!("{name}{machine}{boot}")).with(|lab| {
        lab.iterations = 6;
        lab.boot_id = format!("{name}-{machine}-{boot}");
    });
    let mut run = lab.build_run(|_| Some(noise.lognormal_around(luck, 0.01)));
    run.manifest.facts.add(fact_table::MACHINE_ID, format!("machine {machine}").as_str(), "/etc/machine-id");
    run
}

/// Three boots a side on each of some machines, of which each is another 30 % faster or slower, and minds the change more or
/// less than the others by 2 %.
fn sides_on_machines(machines: usize, change: f64, noise: &mut SplitMixNoise) -> [ComparisonSide; 2] {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for machine in 0..machines {
        let speed = noise.lognormal_around(1.0, 0.3);
        let own = speed * noise.lognormal_around(1.0 + change, 0.02);
        for boot in 0..3 {
            before.push(run_on_machine("a", machine, boot, speed, noise));
            after.push(run_on_machine("b", machine, boot, own, noise));
        }
    }
    [("before", before), ("after", after)].map(|(name, runs)| ComparisonSide { name: name.into(), runs })
}

fn compare_on(machines: usize, change: f64, noise: &mut SplitMixNoise) -> VerdictRow {
    let [before, after] = sides_on_machines(machines, change, noise);
    let options = AnalysisOptions { default_margin: 0.0, ..AnalysisOptions::default() };
    compare_sides(&before, &[after], &options).unwrap().rows.remove(0)
}

#[test]
fn the_luck_of_machines_is_no_change() {
    for machines in [2, 3, 5, 8] {
        let mut noise = SplitMixNoise(machines as u64);
        let (mut alarms, mut covering, mut intervals) = (0, 0, 0);
        for _ in 0..STUDIES {
            let row = compare_on(machines, 0.0, &mut noise);
            let method = row.method.unwrap();
            assert_eq!((method.level, method.paired), (RepetitionLevel::Machine, true));
            assert_eq!((method.baseline, method.by_means), (machines, machines < 6));
            alarms += usize::from(matches!(row.verdict, Verdict::Better | Verdict::Worse));
            if let Some(interval) = row.change.and_then(|change| change.interval) {
                intervals += 1;
                covering += usize::from(interval.low <= 0.0 && interval.high >= 0.0);
            }
        }
        let share = |count: usize, of: usize| count as f64 / of as f64;
        let (alarms, coverage) = (share(alarms, STUDIES), share(covering, intervals));
        eprintln!("{machines} machines: {:.1} % alarms, coverage {:.1} %", 100.0 * alarms, 100.0 * coverage);
        assert!(alarms <= LIMIT && coverage >= 1.0 - LIMIT, "{machines}: {alarms} {coverage}");
    }
}

#[test]
fn a_change_on_five_machines_is_found_though_they_differ_by_far_more() {
    let mut noise = SplitMixNoise(1);
    let found = (0..100).filter(|_| compare_on(5, 0.06, &mut noise).verdict == Verdict::Worse).count();
    eprintln!("6 % found in {found} of 100");
    assert!(found >= 90, "{found}");
}

#[test]
fn machines_count_once_however_often_they_boot() {
    let mut noise = SplitMixNoise(2);
    let [before, after] = sides_on_machines(4, 0.0, &mut noise);
    let row = |before: &ComparisonSide, after: &ComparisonSide| {
        compare_sides(before, std::slice::from_ref(after), &AnalysisOptions::default())
            .unwrap()
            .rows
            .remove(0)
    };
    assert_eq!(row(&before, &after).method.unwrap().baseline, 4);
    // One run of an unknown machine may be of any of them: boots are compared.
    let mut unknown = after.clone();
    unknown.runs[0].manifest.facts = Default::default();
    assert_eq!(row(&before, &unknown).method.unwrap().level, RepetitionLevel::Boot);
    // Machines that measured one side only are no pair; one machine on a side is no repetition.
    let mut fewer = after.clone();
    fewer.runs.retain(|run| run.manifest.id.contains("b0") || run.manifest.id.contains("b1"));
    let method = row(&before, &fewer).method.unwrap();
    assert_eq!((method.baseline, method.left_out), (2, 2));
    fewer.runs.retain(|run| run.manifest.id.contains("b0"));
    assert_eq!(row(&before, &fewer).method.unwrap().level, RepetitionLevel::Boot);
}

/// Two boots of a two by two study on each of some machines: the same differences between machines, `both` is what the factors do
/// together on the average machine.
fn interaction_on(machines: usize, both: f64, noise: &mut SplitMixNoise) -> EffectRow {
    let mut runs = Vec::new();
    for machine in 0..machines {
        let speed = noise.lognormal_around(1.0, 0.3);
        let own = noise.lognormal_around(1.0 + both, 0.02);
        for boot in 0..2 {
            let lab = RunBuilder::new(&format!("r{machine}{boot}")).with(|lab| {
                lab.iterations = 6;
                lab.boot_id = format!("{machine}-{boot}");
                lab.factors = vec![("host", vec!["old", "new"]), ("guest", vec!["old", "new"])];
            });
            let mut run = lab.build_run(|at| {
                let effect = if at.level("host") == "new" && at.level("guest") == "new" { own } else { 1.0 };
                Some(noise.lognormal_around(speed * effect, 0.01))
            });
            let name = format!("machine {machine}");
            run.manifest.facts.add(fact_table::MACHINE_ID, name.as_str(), "/etc/machine-id");
            runs.push(run);
        }
    }
    let side = ComparisonSide { name: "matrix".into(), runs };
    let options = AnalysisOptions { default_margin: 0.0, ..AnalysisOptions::default() };
    let found = estimate_interactions(&side, ["host", "guest"], &options).unwrap();
    found.rows.into_iter().find(|row| row.is_interaction).unwrap()
}

#[test]
fn an_interaction_counts_machines_not_boots() {
    for machines in [2, 4, 7] {
        let mut noise = SplitMixNoise(10 + machines as u64);
        let mut covering = 0;
        for _ in 0..STUDIES {
            let row = interaction_on(machines, 0.0, &mut noise);
            assert_eq!((row.level, row.blocks), (RepetitionLevel::Machine, Some(machines)));
            let interval = row.change.unwrap().interval.unwrap();
            covering += usize::from(interval.low <= 0.0 && interval.high >= 0.0);
        }
        let coverage = covering as f64 / STUDIES as f64;
        eprintln!("{machines} machines: coverage {:.1} %", 100.0 * coverage);
        assert!(coverage >= 1.0 - LIMIT, "{machines}: {coverage}");
    }
    let mut noise = SplitMixNoise(3);
    let found = (0..100).filter(|_| interaction_on(5, 0.06, &mut noise).differs).count();
    assert!(found >= 90, "{found}");
}
