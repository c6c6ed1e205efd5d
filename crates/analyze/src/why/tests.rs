//! Runs with a cause that is known, and runs without.

use fixtures::run_builder::{MeasuredMetric, RunBuilder, SplitMixNoise, explanatory_metric, primary_metric};
use perflab_formats::kernel::kernel_log::KernelTrouble;
use perflab_model::{Direction, Outcome, RunRecord};

use super::*;
use crate::compare::comparison::Comparison;
use crate::kernel_log::{KernelLogPart, compare_kernel_logs_of_levels};
use crate::{AnalysisOptions, ComparisonSide, compare_levels};

/// What an iteration measured, by metric.
type Measure<'a> = &'a mut dyn FnMut(&str, bool) -> f64;

/// Levels `a` and `b` in blocks of one run: metrics beside `time`, and their values, asked for in the order of the metrics, `time` first.
fn explain(iterations: u32, names: &[&'static str], measure: Measure<'_>) -> Explanation {
    explain_metric(primary_metric("time", "s", Direction::Lower), iterations, names, measure)
}

fn explain_metric(
    metric: MeasuredMetric,
    iterations: u32,
    names: &[&'static str],
    measure: Measure<'_>,
) -> Explanation {
    let lower = |name: &&'static str| -> MeasuredMetric {
        explanatory_metric(name, if matches!(*name, "user" | "system") { "s" } else { "1" }, Direction::Lower)
    };
    let builder = RunBuilder::new("01A").with(|run| {
        run.factors = vec![("how", vec!["a", "b"])];
        run.iterations = iterations;
        run.metrics = vec![metric];
        run.metrics.extend(names.iter().map(lower));
    });
    let mut record = builder.build_run(|point| Some(measure(point.metric, point.level("how") == "b")));
    set_durations(&mut record);
    add_durations(&mut record);
    let side = ComparisonSide { name: "01A".into(), runs: vec![record] };
    let options = AnalysisOptions::default();
    let comparison = compare_levels(&side, "how", &options).unwrap();
    explain_only_row(&comparison, &[side], &options)
}

fn explain_only_row(
    comparison: &Comparison,
    sides: &[ComparisonSide],
    options: &AnalysisOptions,
) -> Explanation {
    let row = comparison.deciding_rows()[0];
    explain_row(comparison, row, sides, options, &[]).unwrap()
}

/// Iterations last as long as their `time` says.
fn set_durations(record: &mut RunRecord) {
    // Of work a second, all iterations last half of one.
    let times: Vec<f64> =
        record.samples.iter().filter(|sample| sample.metric == *"time").map(|sample| sample.value).collect();
    for (iteration, seconds) in record.iterations.iter_mut().zip(times) {
        iteration.end.0 = iteration.start.0 + (seconds * 1e9) as u64;
    }
}

const PARTS: &[&str] = &["user", "system"];

/// An iteration takes 0.4 s of user time; `b` has page faults beside, 100 us each.
fn faulting(iterations: u32, seed: u64, faults_of_b: f64) -> Explanation {
    faulting_sides(iterations, seed, [100.0, 100.0 + faults_of_b])
}

fn faulting_sides(iterations: u32, seed: u64, [of_a, of_b]: [f64; 2]) -> Explanation {
    let mut noise = SplitMixNoise(seed);
    let (mut faults, mut system, mut user) = (0.0, 0.0, 0.0);
    let names =
        [PARTS, &["minor-faults", "vmstat pgfault", "vmstat numa_hit", "vmstat pgmigrate_success"]].concat();
    explain(iterations, &names, &mut |metric, is_b| match metric {
        "time" => {
            faults = (if is_b { of_b } else { of_a }) * (1.0 + 0.2 * noise.normal());
            system = 1e-5 * faults;
            user = 0.4 + 0.002 * noise.normal();
            user + system + 0.001
        }
        "user" => user,
        "system" => system,
        "minor-faults" => faults,
        "vmstat pgfault" => faults + 50.0 + noise.uniform(),
        // What the machine does all the time, and so more of in a longer iteration.
        "vmstat numa_hit" => 9e4 * (user + system) * (1.0 + 0.01 * noise.normal()),
        _ => 1e3 * noise.uniform(),
    })
}

#[test]
fn page_faults_are_suspected_with_all_three_kinds_of_evidence() {
    let found = faulting(12, 1, 5000.0);
    let [first, rest @ ..] = &found.suspects[..] else { panic!("{found:#?}") };
    assert!(first.known && rest.is_empty(), "{found:#?}");
    assert_eq!((first.cause.as_str(), first.series.as_str()), ("page faults", "minor-faults"));
    assert!(first.twins.contains(&"vmstat pgfault".to_owned()), "{:?}", first.twins);
    assert!(first.difference.adjusted_p < 0.01 && first.difference.excess.is_none());
    assert_eq!(first.dose.word, DoseWord::Agrees);
    let (carries, remains) = (first.account.carries.unwrap(), first.account.remains.unwrap());
    // 5,000 faults of 10 us.
    assert!(carries.low < 0.05 && 0.05 < carries.high && carries.high < 0.08, "{carries:?}");
    assert!(!remains.excludes_zero() && remains.value.abs() < 0.015, "{remains:?}");
    let system = found.places.iter().find(|place| place.part == TimePart::System).unwrap();
    assert!((system.change.value / found.change.unwrap().value - 1.0).abs() < 0.1);
    assert!(first.test.starts_with("perflab run test.toml "));
    assert!(first.account.at_most.unwrap() <= found.change.unwrap().value.abs());
}

#[test]
fn fewer_faults_are_why_it_is_better() {
    let found = faulting_sides(12, 2, [5100.0, 100.0]);
    assert!(found.verdict == "better" && found.change.unwrap().value < 0.0);
    let [first] = &found.suspects[..] else { panic!("{found:#?}") };
    assert_eq!((first.cause.as_str(), first.dose.word), ("page faults", DoseWord::Agrees));
    let carries = first.account.carries.unwrap();
    assert!(carries.value < 0.0 && carries.low < -0.05 && -0.05 < carries.high, "{carries:?}");
}

/// Page faults take system time: they carry what that grew by, and the waiting for a CPU that came with it, although 60,000 of them may
/// take longer and other work takes turns with them.
#[test]
fn page_faults_carry_no_more_than_the_time_that_grew() {
    let mut noise = SplitMixNoise(8);
    let (mut faults, mut system, mut user, mut off) = (0.0, 0.0, 0.0, 0.0);
    let found = explain(12, &[PARTS, &["minor-faults"]].concat(), &mut |metric, is_b| match metric {
        "time" => {
            let wobble = 1.0 + 0.002 * noise.normal();
            faults = if is_b { 60_000.0 } else { 100.0 } + noise.uniform();
            system = if is_b { 0.25 } else { 0.01 } * wobble;
            user = if is_b { 0.4 } else { 0.2 } * wobble;
            off = if is_b { 0.32 } else { 0.3 } * wobble;
            user + system + off
        }
        "user" => user,
        "system" => system,
        _ => faults,
    });
    let [first] = &found.suspects[..] else { panic!("{found:#?}") };
    assert_eq!(first.cause, "page faults");
    let (most, waiting) = (first.account.at_most.unwrap(), first.account.waiting.unwrap());
    // 240 ms of system time, and 20 ms of waiting, of 460 ms.
    assert!((0.25..0.28).contains(&most) && (0.01..0.03).contains(&waiting), "{:?}", first.account);
}

/// More system time that nothing recorded goes with: what counts system calls is among the first commands.
#[test]
fn more_system_time_is_told_apart_by_functions_and_system_calls() {
    let mut noise = SplitMixNoise(9);
    let (mut system, mut user) = (0.0, 0.0);
    let found = explain(12, PARTS, &mut |metric, is_b| match metric {
        "time" => {
            system = if is_b { 0.3 } else { 0.1 } + 0.002 * noise.normal();
            user = 0.2 + 0.002 * noise.normal();
            user + system + 0.001
        }
        "user" => user,
        _ => system,
    });
    let commands: Vec<&str> = found.to_record.iter().take(2).map(|advice| advice.command.as_str()).collect();
    let run = "perflab run test.toml";
    assert_eq!(
        commands,
        [format!("{run} --profile 999"), format!("{run} --counters raw_syscalls:sys_enter")]
    );
}

/// Iterations of one second do less work the more each operation faults: amounts are told for as much work, not by iteration.
#[test]
fn work_a_second_is_explained_as_time_for_as_much_work() {
    let mut noise = SplitMixNoise(6);
    let (mut operations, mut each) = (0.0, 0.0);
    let metric = primary_metric("rate", "operations/s", Direction::Higher);
    let found =
        explain_metric(metric, 12, &[PARTS, &["minor-faults"]].concat(), &mut |metric, is_b| match metric {
            "rate" => {
                each = (if is_b { 20.0 } else { 1.0 }) * (1.0 + 0.05 * noise.normal());
                // An operation takes 1 ms, and 10 us more for each fault.
                operations = 1.0 / (1e-3 + 1e-5 * each);
                operations
            }
            "user" => 0.5 * operations * 1e-3,
            "system" => 0.5 * operations * 1e-5 * each,
            _ => 0.5 * operations * each,
        });
    assert!(found.by_work && found.unit.0.as_str() == "s");
    // 495 operations, in half a second, of 0.19 ms more.
    assert!((found.change.unwrap().value - 0.094).abs() < 0.01, "{:?}", found.change);
    let [first] = &found.suspects[..] else { panic!("{found:#?}") };
    assert_eq!(first.cause, "page faults");
    assert!((first.after / first.before - 20.0).abs() < 1.5, "{first:?}");
}

/// A program that faults 8,700 times at its start, whatever it does in the second that follows, does not do less for that.
#[test]
fn what_is_the_same_in_every_iteration_is_no_cause_of_less_work() {
    let mut noise = SplitMixNoise(11);
    let mut operations = 0.0;
    let metric = primary_metric("rate", "operations/s", Direction::Higher);
    let found =
        explain_metric(metric, 12, &[PARTS, &["minor-faults"]].concat(), &mut |metric, is_b| match metric {
            "rate" => {
                operations = (if is_b { 60.0 } else { 1000.0 }) * (1.0 + 0.01 * noise.normal());
                operations
            }
            "user" => 0.49,
            "system" => 0.01,
            _ => 8_700.0 + 10.0 * noise.normal(),
        });
    assert!(
        found.by_work && found.suspects.iter().all(|suspect| suspect.cause != "page faults"),
        "{found:#?}"
    );
}

/// The time is in user mode and nothing that was counted goes with it but what comes with any time that passes.
#[test]
fn what_comes_with_time_that_passes_is_no_cause() {
    let mut noise = SplitMixNoise(3);
    let mut user = 0.0;
    let names = [PARTS, &["vmstat numa_hit", "interrupts count interrupt=LOC", "minor-faults"]].concat();
    let found = explain(14, &names, &mut |metric, is_b| match metric {
        "time" => {
            user = (if is_b { 0.5 } else { 0.4 }) + 0.003 * noise.normal();
            user + 0.002
        }
        "user" => user,
        "system" => 0.001,
        "vmstat numa_hit" => 1e5 * user * (1.0 + 0.005 * noise.normal()),
        "interrupts count interrupt=LOC" => 1000.0 * user,
        // Three faults more, always: beyond chance, and not worth 100 ms.
        _ => {
            if is_b {
                1003.0
            } else {
                1000.0
            }
        }
    });
    assert!(found.suspects.is_empty(), "{:#?}", found.suspects);
    let [faults] = &found.ruled_out[..] else { panic!("{:#?}", found.ruled_out) };
    assert!(matches!(faults.reason, RuledOutReason::TooSmall { at_most } if at_most < 0.01), "{faults:?}");
    let commands: Vec<&str> = found.to_record.iter().map(|advice| advice.command.as_str()).collect();
    insta::assert_snapshot!(commands.join("\n"), @"
    perflab run test.toml --counters instructions,cycles,cache-misses
    perflab run test.toml --profile 999
    perflab run test.toml --monitor stat
    ");
}

#[test]
fn three_iterations_a_side_cannot_tell_a_cause_from_chance() {
    let found = faulting(3, 4, 5000.0);
    assert!(found.suspects.is_empty());
    assert_eq!(found.left_out, [LeftOut::TooFewUnits { needed: 4 }]);
}

/// The dose goes the other way: more of it goes with less time, within the sides.
#[test]
fn what_goes_the_other_way_within_the_sides_is_ruled_out() {
    let mut noise = SplitMixNoise(5);
    let (mut waits, mut is_candidate) = (0.0, false);
    let names = [PARTS, &["voluntary-switches"]].concat();
    let found = explain(20, &names, &mut |metric, is_b| match metric {
        "time" => {
            is_candidate = is_b;
            waits = (if is_b { 900.0 } else { 300.0 }) + 100.0 * noise.normal();
            (if is_b { 0.6 } else { 0.4 }) - 1e-4 * (waits - if is_b { 900.0 } else { 300.0 })
                + 0.001 * noise.normal()
        }
        "user" => 0.3,
        "system" => 0.01,
        _ => waits,
    });
    assert!(is_candidate && found.suspects.is_empty(), "{:#?}", found.suspects);
    assert_eq!(found.ruled_out[0].reason, RuledOutReason::OtherWay);
}

/// A slope over a fortieth of the difference says nothing of the difference: sixteen thousand faults that were never there before stay
/// suspects, though the few more or less within the sides go with less time.
#[test]
fn a_slope_over_a_small_part_of_the_difference_rules_nothing_out() {
    let mut noise = SplitMixNoise(5);
    let mut faults = 0.0;
    let names = [PARTS, &["minor-faults"]].concat();
    let found = explain(20, &names, &mut |metric, is_b| match metric {
        "time" => {
            let more = noise.normal();
            faults = (if is_b { 16_000.0 } else { 280.0 }) + 400.0 * more;
            (if is_b { 0.11 } else { 0.01 }) - 1e-3 * more + 1e-4 * noise.normal()
        }
        "user" => 0.005,
        "system" => {
            if is_b {
                0.1
            } else {
                0.001
            }
        }
        _ => faults,
    });
    assert_eq!(found.suspects[0].series, "minor-faults", "{:#?}", found.ruled_out);
    assert_eq!(found.suspects[0].dose.word, DoseWord::Undecided);
}

/// A workload that may not run leaves its CPU to others: they use more, and it is not preempted more often.
#[test]
fn what_a_workload_leaves_to_others_is_no_competition() {
    let mut noise = SplitMixNoise(7);
    let mut quota = |has_preemptions: bool| {
        let (mut time, mut of_b) = (0.0, false);
        let names = [PARTS, &["others-cpu-time", "involuntary-switches"]].concat();
        explain(12, &names, &mut |metric, is_b| match metric {
            "time" => {
                of_b = is_b;
                time = (if is_b { 0.8 } else { 0.4 }) + 0.01 * noise.normal();
                time
            }
            "user" => 0.3 + 0.001 * noise.normal(),
            "system" => 0.01,
            "others-cpu-time" => time * (if of_b { 1.5 } else { 1.0 }) + 0.01 * noise.normal(),
            _ => 20.0 + 2.0 * noise.normal() + if of_b && has_preemptions { 40.0 } else { 0.0 },
        })
    };
    assert!(quota(false).suspects.is_empty());
    let found = quota(true);
    let [only] = &found.suspects[..] else { panic!("{found:#?}") };
    assert_eq!((only.cause.as_str(), only.known), ("competition for CPUs", true));
}

/// Eight pairs whose `b` is slower, and has a line of the kernel's log in each iteration; its iterations fail where they are said to.
fn explain_with_log(line: &str, fails: bool) -> Explanation {
    let mut noise = SplitMixNoise(8);
    let builder = RunBuilder::new("01A").with(|run| {
        run.factors = vec![("how", vec!["a", "b"])];
        run.iterations = 8;
        run.metrics = vec![primary_metric("time", "s", Direction::Lower)];
    });
    let mut record = builder.build_run(|point| {
        let is_b = point.level("how") == "b";
        (!(is_b && fails)).then(|| (if is_b { 0.6 } else { 0.4 }) + 0.01 * noise.normal())
    });
    let plan = record.manifest.plan.clone();
    let is_b = |slot: u32| plan.slot_level(slot, "how") == Some("b");
    if fails {
        for iteration in record.iterations.iter_mut().filter(|one| is_b(one.slot)) {
            iteration.outcome = Outcome::Failed { reason: "signal 9".into() };
        }
    }
    let slots = 0..u32::try_from(plan.slots.len()).unwrap();
    let parts = slots.filter(|slot| is_b(*slot)).map(|slot| KernelLogPart {
        slot: Some(slot),
        target: None,
        text: line.into(),
        is_console: false,
    });
    let logs = [("01A".to_owned(), parts.collect())].into();
    record.manifest.study.kernel_log = true;
    add_durations(&mut record);
    let side = ComparisonSide { name: "01A".into(), runs: vec![record] };
    let options = AnalysisOptions::default();
    let mut comparison = compare_levels(&side, "how", &options).unwrap();
    let levels = ["a", "b"].map(str::to_owned);
    comparison.kernel_log = compare_kernel_logs_of_levels(&side, "how", &levels, &logs);
    explain_only_row(&comparison, &[side], &options)
}

const KILL: &str = "<3>[    1.000000] Out of memory: Killed process 17 (load) total-vm:100kB\n";

#[test]
fn trouble_in_the_slower_iterations_explains_and_other_lines_do_not() {
    let found = explain_with_log(KILL, false);
    let [kill] = &found.kernel_log[..] else { panic!("{:#?}", found.kernel_log) };
    assert_eq!((kill.trouble, kill.explains), (Some(KernelTrouble::OutOfMemory), true));
    assert_eq!((kill.baseline.iterations, kill.candidate.iterations, kill.candidate.of), (0, 8, 8));
    assert!(kill.adjusted_p < 0.001 && kill.failure_p.is_none());
    assert!(found.has_suspects() && found.is_mostly_carried() && found.to_record.is_empty());
    let found = explain_with_log("<6>[    1.000000] eth0: link is up\n", false);
    let [line] = &found.kernel_log[..] else { panic!("{:#?}", found.kernel_log) };
    assert!(!line.explains && line.trouble.is_none() && !found.has_suspects());
}

#[test]
fn iterations_that_fail_are_explained_by_what_the_kernel_printed_in_them() {
    let found = explain_with_log(KILL, true);
    assert_eq!((found.verdict.as_str(), found.change), ("worse", None));
    let failures = found.failures.as_ref().unwrap();
    assert!(failures.decides && failures.counts.candidate.failed == 8);
    assert_eq!(failures.candidate_reason.as_deref(), Some("signal 9"));
    let [kill] = &found.kernel_log[..] else { panic!("{:#?}", found.kernel_log) };
    assert!(kill.explains && kill.failure_p.unwrap() < 0.001);
}

/// Half of the iterations' time off the CPUs is waiting for one: less remains of it under its own name.
#[test]
fn waiting_for_a_cpu_is_told_apart_from_other_waiting() {
    let mut noise = SplitMixNoise(9);
    let (mut wait, mut sleep) = (0.0, 0.0);
    let names = [PARTS, &["delays run_delay_ns", "voluntary-switches"]].concat();
    let found = explain(12, &names, &mut |metric, is_b| match metric {
        "time" => {
            wait = (if is_b { 0.3 } else { 0.02 }) * (1.0 + 0.05 * noise.normal());
            sleep = 0.1 + 0.002 * noise.normal();
            0.31 + wait + sleep
        }
        "user" => 0.3,
        "system" => 0.01,
        "delays run_delay_ns" => 1e9 * wait,
        _ => 20.0 + noise.normal(),
    });
    let [only] = &found.suspects[..] else { panic!("{found:#?}") };
    assert_eq!((only.cause.as_str(), only.dose.word), ("competition for CPUs", DoseWord::Agrees));
    let change = |part: TimePart| found.places.iter().find(|one| one.part == part).unwrap().change.value;
    assert!((change(TimePart::CpuWait) - 0.28).abs() < 0.02);
    assert!(change(TimePart::Blocked).abs() < 0.01);
    let sum = change(TimePart::CpuWait) + change(TimePart::Blocked);
    assert!((sum - change(TimePart::OffCpu)).abs() < 1e-9);
}
