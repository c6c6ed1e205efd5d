use perflab_model::Direction;

use super::{AlarmReason, check_newest_run, metric_histories};
use crate::comparison::Verdict;
use crate::{AnalysisOptions, AnalyzeError};

use crate::build::{RunBuilder, SplitMixNoise, primary_metric};

/// A run a value, an hour apart; four iterations around each.
fn runs_of_values(values: &[f64], seed: u64) -> Vec<perflab_model::RunRecord> {
    let mut noise = SplitMixNoise(seed);
    let run = |(at, value): (usize, &f64)| {
        let lab = RunBuilder::new(&format!("01JD{at:04}")).with(|lab| {
            lab.boot_id = format!("boot-{at}");
            lab.iterations = 4;
        });
        let mut run = lab.build_run(|_| Some(noise.lognormal_around(*value, 0.001)));
        run.manifest.anchor.realtime.0 += 3_600_000_000_000 * at as u64;
        run.manifest.facts.add("kernel.release", format!("6.{}", usize::from(at >= 12)).as_str(), "uname");
        run
    };
    values.iter().enumerate().map(run).collect()
}

fn noisy_values(seed: u64, n: usize, level: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut noise = SplitMixNoise(seed);
    (0..n).map(|at| noise.lognormal_around(level(at), 0.01)).collect()
}

#[test]
fn a_step_has_its_size_its_range_of_runs_and_the_facts_that_changed() {
    let values = noisy_values(7, 20, |at| if at < 12 { 1.0 } else { 1.1 });
    let mut all = runs_of_values(&values, 1);
    all.reverse();
    all[8].samples.clear(); // the first run after the step has no value
    let found = metric_histories(&all, &AnalysisOptions::default()).unwrap();
    let [series] = &found.series[..] else { panic!() };
    let [step] = &series.steps[..] else { panic!("{:?}", series.steps) };
    assert_eq!((step.last_good.as_str(), step.first_bad.as_str()), ("01JD0010", "01JD0012"));
    assert_eq!(step.between, ["01JD0011"]);
    let interval = step.change.interval.unwrap();
    assert!(interval.low < 0.1 && 0.1 < interval.high && interval.low > 0.08, "{interval:?}");
    assert_eq!((step.verdict, step.together), (Verdict::Worse, 0));
    assert_eq!(step.facts, ["kernel.release: 6.0 -> 6.1"]);
}

#[test]
fn the_newest_run_alarms_where_it_falls_out_and_only_there() {
    let judged = |newest: f64| {
        let mut values = noisy_values(3, 15, |_| 1.0);
        values.push(newest);
        let found = metric_histories(&runs_of_values(&values, 2), &AnalysisOptions::default()).unwrap();
        check_newest_run(&found, &AnalysisOptions::default()).unwrap()
    };
    let worse = judged(1.1);
    let [row] = &worse.alarms()[..] else { panic!("{worse:?}") };
    let alarm = row.alarm.as_ref().unwrap();
    assert_eq!((alarm.reason, alarm.first_bad.as_str()), (AlarmReason::Outside, "01JD0015"));
    assert_eq!(judged(1.0).rows[0].verdict, Verdict::Same);
    assert_eq!(judged(0.9).rows[0].verdict, Verdict::Better);
    // Beyond its noise, but of no interest: the margin is 3 %.
    assert!(judged(1.028).alarms().is_empty());
}

#[test]
fn a_small_step_alarms_although_no_single_run_does() {
    let values = noisy_values(11, 24, |at| if at < 16 { 1.0 } else { 1.04 });
    let found = metric_histories(
        &runs_of_values(&values, 3),
        &AnalysisOptions { default_margin: 0.02, ..AnalysisOptions::default() },
    )
    .unwrap();
    let options = AnalysisOptions { default_margin: 0.02, ..AnalysisOptions::default() };
    let judged = check_newest_run(&found, &options).unwrap();
    let [row] = &judged.alarms()[..] else { panic!("{judged:?}") };
    let alarm = row.alarm.as_ref().unwrap();
    assert_eq!(alarm.reason, AlarmReason::Step);
    assert!((14..=17).any(|at| alarm.first_bad == format!("01JD{at:04}")), "{alarm:?}");
}

/// Flat histories of 12 runs, every change counting: 5 % by the prediction interval, and less by steps.
#[test]
fn a_flat_history_alarms_rarely() {
    let options = AnalysisOptions { default_margin: 0.0, ..AnalysisOptions::default() };
    let alarm = |seed: u64| {
        let values = noisy_values(seed * 7919, 12, |_| 1.0);
        let found = metric_histories(&runs_of_values(&values, seed), &options).unwrap();
        usize::from(!check_newest_run(&found, &options).unwrap().alarms().is_empty())
    };
    let alarms: usize = (1..=200).map(alarm).sum();
    assert!(
        (2..=14).contains(&alarms),
        "{alarms} of 200; only changes for the worse alarm, so 2.5 % and some steps"
    );
}

#[test]
fn short_histories_lost_metrics_and_unknown_names_are_told() {
    let few = metric_histories(&runs_of_values(&[1.0, 1.0, 5.0], 4), &AnalysisOptions::default()).unwrap();
    assert!(few.notes[1].contains("too few"), "{:?}", few.notes);
    let judged = check_newest_run(&few, &AnalysisOptions::default()).unwrap();
    assert!(judged.rows[0].expected.is_none() && judged.alarms().is_empty());
    let one = metric_histories(&runs_of_values(&[1.0], 4), &AnalysisOptions::default()).unwrap();
    assert!(matches!(
        check_newest_run(&one, &AnalysisOptions::default()),
        Err(AnalyzeError::NoCandidate { .. })
    ));
    assert!(matches!(metric_histories(&[], &AnalysisOptions::default()), Err(AnalyzeError::NoRun { .. })));
    let options = AnalysisOptions { metrics: vec!["tmie".into()], ..AnalysisOptions::default() };
    let unknown = metric_histories(&runs_of_values(&[1.0], 4), &options);
    assert!(matches!(unknown, Err(AnalyzeError::NoSamples { known, .. }) if known == ["time"]));
    let mut lost = runs_of_values(&[1.0; 8], 5);
    let extra = RunBuilder::new("01JD0007")
        .with(|lab| lab.metrics = vec![primary_metric("other", "s", Direction::Lower)]);
    lost[7].samples = extra.build_run(|_| Some(1.0)).samples;
    let found = metric_histories(&lost, &AnalysisOptions::default()).unwrap();
    assert_eq!(check_newest_run(&found, &AnalysisOptions::default()).unwrap().lost, ["sweep, time"]);
}

#[test]
fn a_metric_that_changed_its_unit_is_another_series() {
    let mut all = runs_of_values(&[1.0; 8], 6);
    for sample in all.iter_mut().skip(4).flat_map(|run| &mut run.samples) {
        sample.unit = perflab_model::Unit::new("ms");
    }
    let found = metric_histories(&all, &AnalysisOptions::default()).unwrap();
    assert_eq!(found.series.iter().map(|one| one.points.len()).collect::<Vec<_>>(), [4, 4]);
}

#[test]
fn zeros_and_constants_have_steps_in_the_unit_of_the_metric() {
    let mut all = runs_of_values(&[1.0; 16], 7);
    for (at, run) in all.iter_mut().enumerate() {
        run.samples.iter_mut().for_each(|sample| sample.value = if at < 8 { 0.0 } else { 3.0 });
    }
    let found = metric_histories(&all, &AnalysisOptions::default()).unwrap();
    let [step] = &found.series[0].steps[..] else { panic!() };
    assert_eq!((step.change.scale, step.change.value), (crate::ChangeScale::Absolute, 3.0));
}

/// Review D2: `sleep 0.02` edited to `sleep 0.03` is no regression, and going back goes on with the first series.
#[test]
fn an_edited_case_is_a_series_of_its_own_and_leaves_the_guard_nothing_to_judge() {
    let values: Vec<f64> = (0..12).map(|at| if at < 11 { 1.0 } else { 1.5 }).collect();
    let mut all = runs_of_values(&values, 8);
    for (at, run) in all.iter_mut().enumerate() {
        let command = if at < 11 { "sleep 0.02" } else { "sleep 0.03" };
        run.manifest.plan.cases[0]
            .parameters
            .insert("command".into(), perflab_model::Scalar::Text(command.into()));
    }
    let found = metric_histories(&all, &AnalysisOptions::default()).unwrap();
    let shapes: Vec<(usize, &[String])> =
        found.series.iter().map(|one| (one.points.len(), &one.edited[..])).collect();
    assert_eq!(shapes, [(11, &[][..]), (1, &["sweep: command: sleep 0.02 -> sleep 0.03".to_owned()][..])]);
    let judged = check_newest_run(&found, &AnalysisOptions::default()).unwrap();
    assert!(judged.is_empty() && judged.alarms().is_empty(), "{judged:?}");
    all[11].manifest.plan.cases[0] = all[0].manifest.plan.cases[0].clone();
    let back = metric_histories(&all, &AnalysisOptions::default()).unwrap();
    assert!(!check_newest_run(&back, &AnalysisOptions::default()).unwrap().is_empty());
    assert_eq!(back.series.len(), 1);
}

/// Review D7: the newest value's own interval holds the old level.
#[test]
fn a_run_that_cannot_tell_its_value_from_the_old_level_does_not_alarm() {
    let judged = |spread: f64| {
        let mut all = runs_of_values(&noisy_values(3, 15, |_| 1.0), 2);
        let mut newest = runs_of_values(&[1.1], 9).remove(0);
        newest.manifest.anchor.realtime.0 += 3_600_000_000_000 * 100;
        for (at, sample) in newest.samples.iter_mut().enumerate() {
            sample.value = 1.1 + (at as f64 - 1.5) * spread;
        }
        // Four values have no interval at 95 %: eight do.
        let more: Vec<_> = newest
            .samples
            .iter()
            .cloned()
            .map(|mut sample| {
                sample.iteration += 4;
                sample
            })
            .collect();
        newest.samples.extend(more);
        all.push(newest);
        let found = metric_histories(&all, &AnalysisOptions::default()).unwrap();
        check_newest_run(&found, &AnalysisOptions::default()).unwrap()
    };
    let (wide, narrow) = (judged(0.2), judged(0.001));
    assert!(wide.rows[0].own.unwrap().low < 1.0, "{wide:?}");
    assert!(wide.alarms().is_empty() && !wide.is_empty());
    assert_eq!(narrow.alarms().len(), 1);
}
