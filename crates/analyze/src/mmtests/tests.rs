use perflab_stats::Better;

use super::report::{Kind, Report, decides, is_unknown};
use super::table::change;
use crate::statistic::Statistic;

#[test]
fn the_longest_beginning_of_a_name_decides() {
    assert_eq!(Report::of("redis-memtier").kind, Kind::Multiops);
    assert_eq!(Report::of("redis").kind, Kind::Singleops);
    assert_eq!(Report::of("sysbenchcpu").direction, Some(Better::Lower));
    assert_eq!(Report::of("netperf-tcp-rr").direction, Some(Better::Higher));
    assert_eq!(Report::of("my-own").direction, None);
    assert_eq!(Report::of("pgbench-time").direction, Some(Better::Lower), "as `-a exectime`");
    assert_eq!(Report::of("fio-randread-latency").decimals, Some(4), "as `-a latency`");
    assert!(decides("redis", "GET-RPS") && !decides("redis", "GET-lat99") && !decides("stream", "Copy"));
    assert!(is_unknown("sysbenchcpu", "latency") && !is_unknown("sysbenchmutex", "latency"));
}

#[test]
fn a_total_loss_is_no_lack_of_change() {
    let of = |value, base, better| change(value, base, Statistic::Mean, better);
    assert_eq!(of(0.0, Some(100.0), Better::Higher), Some(-100.0));
    assert_eq!(of(5.0, Some(0.0), Better::Lower), None);
    assert_eq!(of(0.0, Some(0.0), Better::Lower), Some(0.0));
    assert_eq!(of(5.0, None, Better::Lower), None);
    assert_eq!(change(2.0, Some(1.0), Statistic::HarmonicSd, Better::Higher), Some(-100.0));
}
