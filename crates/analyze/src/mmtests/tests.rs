use perflab_stats::BetterDirection;

use super::report::{MmtestsReport, MmtestsTableKind, is_deciding_metric, is_unread_metric};
use super::table::signed_change;
use crate::statistic::SampleStatistic;

#[test]
fn the_longest_beginning_of_a_name_decides() {
    assert_eq!(MmtestsReport::for_benchmark("redis-memtier").kind, MmtestsTableKind::Multiops);
    assert_eq!(MmtestsReport::for_benchmark("redis").kind, MmtestsTableKind::Singleops);
    assert_eq!(MmtestsReport::for_benchmark("sysbenchcpu").direction, Some(BetterDirection::Lower));
    assert_eq!(MmtestsReport::for_benchmark("netperf-tcp-rr").direction, Some(BetterDirection::Higher));
    assert_eq!(MmtestsReport::for_benchmark("my-own").direction, None);
    assert_eq!(
        MmtestsReport::for_benchmark("pgbench-time").direction,
        Some(BetterDirection::Lower),
        "as `-a exectime`"
    );
    assert_eq!(MmtestsReport::for_benchmark("fio-randread-latency").decimals, Some(4), "as `-a latency`");
    assert!(
        is_deciding_metric("redis", "GET-RPS")
            && !is_deciding_metric("redis", "GET-lat99")
            && !is_deciding_metric("stream", "Copy")
    );
    assert!(is_unread_metric("sysbenchcpu", "latency") && !is_unread_metric("sysbenchmutex", "latency"));
}

#[test]
fn a_total_loss_is_no_lack_of_change() {
    let of = |value, base, better| signed_change(value, base, SampleStatistic::Mean, better);
    assert_eq!(of(0.0, Some(100.0), BetterDirection::Higher), Some(-100.0));
    assert_eq!(of(5.0, Some(0.0), BetterDirection::Lower), None);
    assert_eq!(of(0.0, Some(0.0), BetterDirection::Lower), Some(0.0));
    assert_eq!(of(5.0, None, BetterDirection::Lower), None);
    assert_eq!(
        signed_change(2.0, Some(1.0), SampleStatistic::HarmonicSd, BetterDirection::Higher),
        Some(-100.0)
    );
}
