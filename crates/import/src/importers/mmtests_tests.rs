//! Whatever is in a log, reading it ends, and its rows are used or unusable.

use std::fs;

use proptest::prelude::*;

use crate::benchmark_results::BenchmarkResults;
use crate::import_report::FileReport;
use crate::importers::mmtests::BENCHMARKS;
use crate::importers::mmtests_declared::DeclaredBenchmark;
use crate::importers::mmtests_log_reader::BenchmarkLogReader;
use crate::packed_folder::PackedFolder;

/// A log of each benchmark: its name, and text to damage.
const LOGS: &[(&str, &str)] = &[
    ("hackbench-4", "# Running 'sched/messaging' benchmark:\n     Total time: 0.100 [sec]\nTime: 0.25\n"),
    (
        "benchlog-4-_-1",
        "Number of Threads counted = 4\nFunction Best Rate MB/s\nCopy: 10000.0 0.016 0.015\n events per second: 12.5\n 6.1 usecs/op\n",
    ),
    ("sysbench-raw-2-1", "transactions: 100 (12.50 per sec.)\n         95th percentile:         7.17\n"),
    ("TCP_STREAM-64.1", "10^6bits/sec\n131072  16384      64    10.00    1200.10\n"),
    ("UDP_STREAM-64.1", "10^6bits/sec\n212992 1024 10.00 500 0 4096.00\n212992 10.00 400 3276.80\n"),
    ("redis-1-1.log", "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"25316.46\",\"0.039\"\n"),
    (
        "dbench-2.log",
        "   1   15222    98.83 MB/sec  execute   1 sec  latency 20.358 ms\n0 completed in 612 ms\n Close 6572 0.001 0.023\n",
    ),
    ("pgbench-1.log", "tps = 123.4 (including connections establishing)\n"),
    ("pgbench-transactions-1.log", "1700000000 159 97 8\n1700000001 160 97 8\n"),
    ("fio.log", "3;fio-3.33;job;0;0;640;160000\n"),
    ("fio_lat.1.log", "0, 420136, 0, 65536, 0\n1, 99, 1, 4096\n"),
    (
        "benchlog-4-1",
        "Type Ops/sec Hits/sec Misses/sec Avg. Latency KB/sec\nTotals 52011.41 --- 47278.84 3.84 2089.4\n",
    ),
    (
        "aim9-1",
        "     1 page_test          15.01       4949   329.71352         560512.99 System Allocations\n",
    ),
    (
        "bonnie",
        "1.98,2.00a,host,1,1795591314,32M,,8192,5,57,1,+++++,+++,+++++,+++,933,20,+++++,+++,12,+++,1,\n",
    ),
    (
        "iozone-1.log",
        "  kB  reclen    write\n  1024       4  3521177  4785924  7758706   536155  4008421  7934186   715520\n",
    ),
    ("pft-1.log", "   1    1   1     0.10s     1.10s     0.52s  218707.727 504640.737\n"),
    ("pgioperf.log", "read[4000]: avg: 0.5 msec; max: 9.1 msec time: 1795604971.000000001\n"),
    (
        "schbench-1.log",
        "Wakeup Latencies percentiles (usec) runtime 2 (s) (185 total samples)\n\t* 99.0th: 40 (17 samples)\ncurrent rps: 91.99\n",
    ),
    ("tcp-64-max-1.stdout", "sockperf: Summary: BandWidth is 2.303 MBps (18.423 Mbps)\n"),
    ("tcp-64-100-1.log", "packet, txTime(sec), rxTime(sec)\n0, 38608.108392657, 38608.108414694, 11.019\n"),
    ("threads-1.log", "fault 0 base          851 1795604971.920527 1\nfault 0 huge 99 1795604971.9 0\n"),
    ("x-log.1", "8 MiB, 2048 ops; 0.0127 sec (627.549 MiB/sec and 160652.6514 ops/sec)\n"),
    ("pipe-1-1.log", "Pipe Throughput                              703396.9 lps   (10.1 s, 1 samples)\n"),
    ("time-4-1", "0.05user 0.12system 0:01.50elapsed 11%CPU\n"),
];

fn check_mmtests_import(logs: &[(&str, Vec<u8>)]) {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in logs {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let folder = PackedFolder::open(directory.path(), &mut Vec::new());
    let check = |name: &str, read: &dyn Fn(&mut BenchmarkLogReader<'_>)| {
        let (mut results, mut report) = (BenchmarkResults::default(), Vec::new());
        read(&mut BenchmarkLogReader {
            name,
            boot: 0,
            span: None,
            results: &mut results,
            report: &mut report,
        });
        let is_sound = |report: &FileReport| report.rows_read == report.rows_used + report.rows_unusable;
        assert!(report.iter().all(is_sound), "{name}");
    };
    let declared = ["hackbench", "perfpipe", "sysbenchcpu", "sysbenchmutex", "stream", "dbench4", "tbench"];
    let corpus = ["aim9", "bonnie", "iozone", "pft", "pgioperf", "unixbench", "usemem", "xfsio"];
    for name in declared.into_iter().chain(["redis", "redis-memtier"]).chain(corpus) {
        let benchmark = DeclaredBenchmark::find(name).unwrap().unwrap();
        check(name, &|bench| benchmark.read_logs(&folder, bench, true).unwrap());
    }
    for (name, read) in BENCHMARKS {
        check(name, &|bench| read(&folder, bench).unwrap());
    }
    for beside in DeclaredBenchmark::beside_others().unwrap() {
        check("any", &|bench| beside.read_logs(&folder, bench, true).unwrap());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn damaged_logs_are_survived(changes in proptest::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 12)) {
        let damaged = |((name, text), (place, what, byte)): (&(&'static str, &str), (usize, u8, u8))| {
            let mut bytes = text.as_bytes().to_vec();
            let place = place % bytes.len();
            match what % 5 {
                0 => bytes[place] = byte,
                1 => bytes.truncate(place),
                2 => drop(bytes.remove(place)),
                3 => bytes.insert(place, b' '),
                _ => bytes.extend_from_within(place..),
            }
            (*name, bytes)
        };
        check_mmtests_import(&LOGS.iter().zip(changes).map(damaged).collect::<Vec<_>>());
    }
}
