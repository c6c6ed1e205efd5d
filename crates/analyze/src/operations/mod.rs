//! Why single operations were slow: which ones stand out, what dominates each, and what the whole of it says.
//!
//! Outliers are found against a local baseline and attributed to dominant causes (a span of the program, a page fault,
//! another process on the CPU). What no cause explains is counted as *unexplained*, never hidden. Correlation proves
//! nothing here: Pearson's is decided by the most extreme class of points, so causes are weighed by the time they took.
//!
//! | module | the user's question |
//! |---|---|
//! | `operation_times` | how long was each operation, and how long are its neighbours usually? |
//! | `causes` | what happened in it, and how much of its time was that? |
//! | `probe_cost` | are these its times, or those of the probes that recorded it? |
//! | `outliers` | which ones stand out, what dominates them, and what does each cause explain? |
//! | `cause_patterns` | where does a cause set in, and has it modes, a period, a cost per unit saved? |
//! | `report` | the whole answer about one trace, or two compared |

pub(crate) mod cause_patterns;
pub(crate) mod causes;
pub(crate) mod operation_times;
pub(crate) mod outliers;
pub(crate) mod probe_cost;
pub(crate) mod report;

pub use cause_patterns::{CauseMode, CauseOnset, CausePeriod, MaintenanceCost, StateCrossing};
pub use causes::{OperationCause, PAGE_FAULT, PREEMPTED, WAITING};
pub use operation_times::OperationClock;
pub use outliers::{OperationCauseRow, OutlierExplanation, OutlierOperation, OutlierOptions, OutlierShare};
pub use probe_cost::{OperationProbeCost, SpanProbeCost};
pub use report::{
    CauseChange, OperationComparison, OperationError, OperationReport, QuantileChange, analyze_operations,
    choose_clock, compare_operations,
};

#[cfg(test)]
mod tests {
    use perflab_model::operation::{
        NumberColumn, OperationColumns, SpanColumn, SparseColumn, TracedProbeCost,
    };

    use super::*;

    // Made-up traces whose causes are known.

    /// `n` operations of 300 to 400 ns, in an order that nobody would call a pattern.
    fn quiet_operations(n: usize) -> OperationColumns {
        let wall = (0..n).map(|at| 300 + (at as i64 * 7919) % 101).collect();
        OperationColumns {
            kinds: vec!["insert".into()],
            kind: vec![0; n],
            thread: vec![1; n],
            start: (0..n as i64).map(|at| at * 1000).collect(),
            wall,
            ..OperationColumns::default()
        }
    }

    /// Lengthens operations by the time of a span.
    fn add_span(operations: &mut OperationColumns, name: &str, found: &[(u32, i64)]) {
        for (row, time) in found {
            operations.wall[*row as usize] += time;
        }
        let time: SparseColumn = found.iter().copied().collect();
        let count = found.iter().map(|(row, _)| (*row, 1)).collect();
        operations.spans.push(SpanColumn { name: name.into(), time, count });
    }

    fn add_state_number(
        operations: &mut OperationColumns,
        name: &str,
        values: impl Iterator<Item = (u32, i64)>,
    ) {
        operations.numbers.push(NumberColumn { name: name.into(), values: values.collect() });
    }

    #[test]
    fn causes_are_told_apart_and_nothing_is_hidden() {
        let mut operations = quiet_operations(100_000);
        add_span(&mut operations, "reap", &(0..60).map(|n| (50_000 + n * 700, 20_000)).collect::<Vec<_>>());
        add_span(&mut operations, "allocate", &(0..30).map(|n| (n * 3001 + 11, 9_000)).collect::<Vec<_>>());
        // Two halves, neither of which is half of the excess: mixed; and one that nothing explains.
        add_span(&mut operations, "a", &[(77, 4_000)]);
        add_span(&mut operations, "b", &[(77, 4_500)]);
        add_span(&mut operations, "c", &[(77, 4_500)]);
        operations.wall[99_000] += 50_000;
        let report = analyze_operations(&operations, &OutlierOptions::default()).unwrap();
        assert_eq!(report.outlier_count, 60 + 30 + 1 + 1);
        let (reap, allocate) = (report.find_cause("reap").unwrap(), report.find_cause("allocate").unwrap());
        assert_eq!((reap.share.outliers, allocate.share.outliers), (60, 30));
        assert_eq!((report.mixed.outliers, report.unexplained.outliers), (1, 1));
        assert_eq!((reap.precision, allocate.precision), (1.0, 1.0));
        assert!((reap.recall - 60.0 / 92.0).abs() < 1e-12 && (reap.lift - 100_000.0 / 92.0).abs() < 1e-6);
        let shares: f64 = report.causes.iter().map(|cause| cause.share.coverage).sum();
        assert!((shares + report.mixed.coverage + report.unexplained.coverage - 1.0).abs() < 1e-12);
        // Excess of a reap is its time plus what its operation was above the median: 20,000 of 20,050 and less.
        let excess: i64 = report.outliers.iter().map(|outlier| outlier.excess).sum();
        assert!((reap.share.excess - 60.0 * 20_000.0 / excess as f64).abs() < 0.01);
        assert!(reap.quantiles_without[3] < report.quantiles[3]);
    }

    #[test]
    fn an_onset_names_what_crossed_its_threshold() {
        let mut operations = quiet_operations(200_000);
        let reaps: Vec<(u32, i64)> = (0..400).map(|n| (120_345 + n * 199, 15_000)).collect();
        add_span(&mut operations, "reap", &reaps);
        add_state_number(&mut operations, "elements", (0..200_000).map(|row| (row, i64::from(row))));
        add_state_number(&mut operations, "slabs", (0..200_000 / 90).map(|n| (n * 90 + 5, i64::from(n) + 1)));
        // A hundredth node at the onset.
        add_state_number(&mut operations, "nodes", (0..160).map(|n| (n * 1_200 + 1_545, i64::from(n) + 1)));
        add_state_number(&mut operations, "saved", reaps.iter().map(|(row, _)| (*row, i64::from(row % 2))));
        let report = analyze_operations(&operations, &OutlierOptions::default()).unwrap();
        let onset = report.onsets.iter().find(|onset| onset.cause == "reap").unwrap();
        assert_eq!((onset.row, onset.rate_before), (120_345, 0.0));
        let crossing = onset.crossed.as_ref().unwrap();
        assert_eq!(
            (crossing.number.as_str(), crossing.from, crossing.to, crossing.holds),
            ("nodes", 99, 100, 1.0)
        );
        assert!(onset.state.contains(&("elements".into(), 120_345)));
        let efficiency = &report.efficiencies[0];
        assert_eq!((efficiency.cause.as_str(), efficiency.operations, efficiency.saved), ("reap", 400, 200));
        assert_eq!((efficiency.in_vain, efficiency.time), (200, 400 * 15_000));
    }

    #[test]
    fn a_steady_cause_has_no_onset_but_a_period_and_modes() {
        let mut operations = quiet_operations(100_000);
        let mut found = Vec::new();
        for n in 0..1000_u32 {
            // Every fourth touches a new page, every 100th grows the heap.
            let time = if n % 100 == 99 {
                16_000
            } else if n % 4 == 3 {
                2_400
            } else {
                70
            };
            found.push((n * 100 + n * 37 % 50, time + i64::from(n * 31 % 17)));
        }
        add_span(&mut operations, "allocate", &found);
        let report = analyze_operations(&operations, &OutlierOptions::default()).unwrap();
        assert!(report.onsets.is_empty(), "{:?}", report.onsets);
        let modes: Vec<(usize, i64)> = report.modes.iter().map(|mode| (mode.count, mode.time / 10)).collect();
        assert!(matches!(modes.as_slice(), [(750, 7), (240, 240), (10, 1601)]), "{:?}", report.modes);
    }

    #[test]
    fn a_fault_is_taken_off_the_span_in_which_it_lies() {
        let mut operations = quiet_operations(100_000);
        let found: Vec<(u32, i64)> =
            (0..800).map(|n| (n * 120, if n % 4 == 0 { 5_070 } else { 70 })).collect();
        add_span(&mut operations, "allocate", &found);
        operations.faults = (0..200).map(|n| (n * 480, 1)).collect();
        let report =
            analyze_operations(&operations, &OutlierOptions { quantile: 0.99, ..OutlierOptions::default() })
                .unwrap();
        let (fault, allocate) =
            (report.find_cause("page fault in allocate").unwrap(), report.find_cause("allocate").unwrap());
        assert_eq!((fault.operations, fault.share.outliers, allocate.share.outliers), (200, 200, 0));
        assert!((4_900..5_150).contains(&(fault.time / 200)), "{fault:?}");
        assert!(allocate.longest < 300, "{allocate:?}");
    }

    #[test]
    fn time_off_the_cpu_counts_on_the_wall_only() {
        let mut operations = quiet_operations(50_000);
        operations.wall[10_000] += 4_000_000;
        operations.preempted.push(10_000, 4_000_000);
        operations.wall[20_000] += 200_000;
        operations.waited.push(20_000, 200_000);
        let cpu = analyze_operations(
            &operations,
            &OutlierOptions { clock: Some(OperationClock::OnCpu), ..OutlierOptions::default() },
        )
        .unwrap();
        assert_eq!((cpu.outlier_count, cpu.off_cpu), (0, (4_200_000, 2)));
        let wall = analyze_operations(
            &operations,
            &OutlierOptions { clock: Some(OperationClock::Wall), ..OutlierOptions::default() },
        )
        .unwrap();
        let names: Vec<&str> = wall.outliers.iter().map(|outlier| wall.outlier_cause(outlier)).collect();
        assert_eq!(names, [PREEMPTED, WAITING]);
    }

    #[test]
    fn growth_makes_no_outliers_and_broken_clocks_are_left_out() {
        let mut operations = quiet_operations(60_000);
        for (row, wall) in operations.wall.iter_mut().enumerate() {
            *wall += row as i64;
        }
        operations.wall[30_000] = i64::MAX / 2;
        operations.flags.push(30_000, OperationColumns::BACKWARDS);
        let report = analyze_operations(&operations, &OutlierOptions::default()).unwrap();
        assert_eq!((report.operations, report.outlier_count), (59_999, 0));
        let none = OutlierOptions { operation: Some("inser".into()), ..OutlierOptions::default() };
        insta::assert_snapshot!(analyze_operations(&operations, &none).unwrap_err(), @"no operation `inser` in the trace: did you mean `insert`?");
        assert!(matches!(
            analyze_operations(&OperationColumns::default(), &OutlierOptions::default()),
            Err(OperationError::Empty { .. })
        ));
    }

    #[test]
    fn a_change_is_seen_and_its_absence_too() {
        let before = {
            let mut operations = quiet_operations(100_000);
            add_span(&mut operations, "reap", &(0..500).map(|n| (n * 200, 20_000)).collect::<Vec<_>>());
            analyze_operations(&operations, &OutlierOptions::default()).unwrap()
        };
        let after = analyze_operations(&quiet_operations(100_000), &OutlierOptions::default()).unwrap();
        let found = compare_operations(("old", "new"), &before, &after);
        let [p50, _, p999, ..] = found.quantiles.as_slice() else { panic!("{found:?}") };
        assert!(!p50.is_clear() && p999.is_clear() && p999.ratio() < 0.05, "{found:?}");
        assert_eq!(
            (found.above.1, found.causes[0].name.as_str(), found.causes[0].operations),
            (0, "reap", (500, 0))
        );
    }

    /// A program that waits for its disk at every 97th operation, as `--clock wall` was needed to see (review-user D8).
    #[test]
    fn the_clock_that_explains_is_the_walls_where_threads_waited_for_longer_than_they_ran() {
        let mut operations = quiet_operations(97_000);
        let found: Vec<(u32, i64)> = (0..1000).map(|n| (n * 97 + 96, 2_000_000)).collect();
        add_span(&mut operations, "sync", &found);
        operations.waited = found.iter().map(|(row, _)| (*row, 1_990_000)).collect();
        let report = analyze_operations(&operations, &OutlierOptions::default()).unwrap();
        let waiting = report.find_cause("waiting in sync").unwrap();
        assert_eq!((report.clock, report.clock_chosen), (OperationClock::Wall, true));
        assert_eq!((waiting.share.outliers, report.unexplained.outliers), (report.outlier_count, 0));
        assert!(report.outlier_count > 0);
        // What other programs took is nobody's explanation.
        std::mem::swap(&mut operations.waited, &mut operations.preempted);
        assert_eq!(choose_clock(&operations, &OutlierOptions::default()).unwrap(), OperationClock::OnCpu);
    }

    /// What took 1.47 ms was reported as 489 ms, with "two mechanisms" that were one and two steps (review-instruments D6).
    #[test]
    fn what_costs_more_than_it_takes_is_judged_above_ten_times_its_cost_only() {
        let mut operations = quiet_operations(100_000);
        let cost = |name: &str, span, pair_ns| TracedProbeCost {
            name: name.into(),
            span,
            own_ns: 9_000.0,
            pair_ns,
            inside_ns: 0.0,
        };
        operations.summary.probe_costs =
            vec![cost("insert", false, 20_000.0), cost("allocate", true, 5_000.0)];
        // A span of 80 ns in every fourth, whose probes cost 5 µs; in ten it takes 30 µs, and in three 200 µs.
        let time = |n: u32| match n {
            100..110 => 30_000,
            200..203 => 200_000,
            _ => 80,
        };
        add_span(&mut operations, "allocate", &(0..25_000).map(|n| (n * 4, time(n))).collect::<Vec<_>>());
        let report = analyze_operations(&operations, &OutlierOptions::default()).unwrap();
        let reported = report.probe_cost.as_ref().unwrap();
        assert_eq!(
            (reported.operation, reported.middle_judged, reported.judged_above),
            (9_000, false, 90_000)
        );
        assert_eq!((reported.spans[0].cost, reported.spans[0].judged), (5_000, false));
        let allocate = report.find_cause("allocate").unwrap();
        assert_eq!((report.outlier_count, allocate.share.outliers, allocate.operations), (3, 3, 25_000));
        assert!(
            !report.is_cause_beyond_probe_cost("allocate") && report.is_cause_beyond_probe_cost("page fault")
        );
        assert!(
            report.modes.is_empty() && !report.is_beyond_probe_cost(report.quantiles[0]),
            "{:?}",
            report.modes
        );
        // Operations inside are dear, too.
        operations.summary.probe_costs =
            vec![TracedProbeCost { own_ns: 40.0, inside_ns: 8_960.0, ..cost("insert", false, 90.0) }];
        let reported =
            analyze_operations(&operations, &OutlierOptions::default()).unwrap().probe_cost.unwrap();
        assert_eq!((reported.operation, reported.inside, reported.judged_above), (9_000, 8_960, 90_000));
        // The same times where probes cost little.
        operations.summary.probe_costs =
            vec![TracedProbeCost { own_ns: 40.0, ..cost("insert", false, 90.0) }];
        let report = analyze_operations(&operations, &OutlierOptions::default()).unwrap();
        assert!(
            report.outlier_count >= 13 && report.probe_cost.unwrap().middle_judged,
            "{}",
            report.outlier_count
        );
    }
}
