//! Log directories of MMTests, in both layouts, as recorded with the real benchmarks.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_import::FileReport;
use perflab_model::fact_table;
use perflab_model::{Direction, RunRecord, Sample};

use super::bench::{
    ImportOutcome, ImportTestArchive, find_report, int_cells, read_unpacked_text, text_cells,
};

/// A log in STREAM's format (version 5.10), written by hand: no package holds the benchmark.
const STREAM: &str = "-------------------------------------------------------------\n\
    STREAM version $Revision: 5.10 $\nNumber of Threads counted = 4\n\
    Function    Best Rate MB/s  Avg time     Min time     Max time\n\
    Copy:           10123.5     0.016000     0.015000     0.017000\nScale:           9000.0     0.016 0.015 0.017\n\
    Add:            11000.0     0.016000     0.015000     0.017000\nTriad:          12000.0     0.016 0.015 0.017\n\
    Solution Validates: avg error less than 1.000000e-13 on all three arrays\n";
/// Logs in netperf's format (2.7), written by hand for the same reason.
const TCP_STREAM: &str = "MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 127.0.0.1 : demo\n\
    Interim result: 1190.20 10^6bits/s over 1.000 seconds ending at 1700000001.000\n\
    Recv   Send    Send\nSocket Socket  Message  Elapsed\nSize   Size    Size     Time     Throughput\n\
    bytes  bytes   bytes    secs.    10^6bits/sec\n\n131072  16384      64    10.00    1200.10\n";
const UDP_STREAM: &str = "MIGRATED UDP STREAM TEST from 0.0.0.0 to 127.0.0.1 : demo\nSocket  Message  Elapsed      Messages\n\
    Size    Size     Time         Okay Errors   Throughput\nbytes   bytes    secs            #      #   10^6bits/sec\n\n\
    212992    1024   10.00     5000000      0    4096.00\n212992           10.00     4000000           3276.80\n\n";
const TCP_RR: &str = "MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 to 127.0.0.1 : demo : first burst 0\n\
    Local /Remote\nSocket Size   Request  Resp.   Elapsed  Trans.\nSend   Recv   Size     Size    Time     Rate\n\
    bytes  Bytes  bytes    bytes   secs.    per sec\n\n16384  131072 1        1       10.00    45123.45\n16384  131072\n";

pub fn recorded_mmtests(layout: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/mmtests").join(layout)
}

pub fn read_record(imported: &ImportOutcome) -> RunRecord {
    imported.run.read_record().unwrap()
}

/// The samples of a metric in a case, by the case's label.
fn find_samples<'a>(record: &'a RunRecord, case: &str, metric: &str) -> Vec<&'a Sample> {
    let plan = &record.manifest.plan;
    let of = |sample: &&Sample| plan.case(sample.case).unwrap().label() == case && sample.metric == metric;
    record.samples.iter().filter(of).collect()
}

fn sample_values(record: &RunRecord, case: &str, metric: &str) -> Vec<f64> {
    find_samples(record, case, metric).into_iter().map(|sample| sample.value).collect()
}

/// What stands in some word of the lines that contain `mark`, in the logs of both iterations: a reader of its own.
fn words_of_logs(layout: &str, logs: &[&str], mark: &str, word: usize) -> Vec<f64> {
    let mut found = Vec::new();
    for iteration in ["iter-0", "iter-1"] {
        for log in logs {
            let text = read_unpacked_text(&recorded_mmtests(layout).join(iteration).join(log));
            let lines = text.lines().filter(|line| line.contains(mark));
            found.extend(lines.map(|line| {
                line.split_whitespace().nth(word).unwrap().trim_matches('"').parse::<f64>().unwrap()
            }));
        }
    }
    found
}

#[test]
fn a_log_directory_is_an_ordinary_run() {
    let bench = ImportTestArchive::new();
    let imported = bench.import(&recorded_mmtests("current"));
    assert_eq!((imported.kind, imported.label.as_deref()), ("mmtests", Some("current")));
    let record = read_record(&imported);
    assert_eq!(record.manifest.study.title, "MMTests current");
    assert_eq!(
        record.manifest.facts.value(&fact_table::KERNEL_RELEASE).unwrap().to_string(),
        "6.18.44-fc-v445"
    );
    assert_eq!(record.manifest.facts.integer(&fact_table::CPU_ONLINE), Some(2));
    let hackbench = find_samples(&record, "hackbench-process-pipes groups=1", "time");
    let places: Vec<(u32, u32)> = hackbench.iter().map(|sample| (sample.boot, sample.iteration)).collect();
    assert_eq!(places, [(0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (1, 5)]);
    let sample = hackbench[0];
    assert_eq!((sample.unit.0.as_str(), sample.direction, sample.primary), ("s", Direction::Lower, true));
    let stamps = read_unpacked_text(&recorded_mmtests("current").join("iter-0/tests-timestamp"));
    let begun: u64 = stamps.lines().nth(1).unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert_eq!(record.manifest.anchor.realtime.0, begun * 1_000_000_000);
    assert!(record.iterations.iter().all(|iteration| iteration.end >= iteration.start));
}

/// Against values that another reader finds.
#[test]
fn every_value_of_the_logs_is_there() {
    let bench = ImportTestArchive::new();
    let record = read_record(&bench.import(&recorded_mmtests("current")));
    let found = |case, metric| sample_values(&record, case, metric);
    let theirs = |logs: &[&str], mark, word| words_of_logs("current", logs, mark, word);
    assert_eq!(
        found("hackbench-process-pipes groups=2", "time"),
        theirs(&["hackbench-process-pipes/logs/hackbench-2"], "Total time:", 2)
    );
    let pipes = [1, 2, 3].map(|n| format!("perfpipe/logs/benchlog-_-_-{n}"));
    let pipes: Vec<&str> = pipes.iter().map(String::as_str).collect();
    assert_eq!(found("perfpipe", "usecs-op"), theirs(&pipes, "usecs/op", 0));
    let cpus = ["sysbenchcpu/logs/benchlog-2-_-1", "sysbenchcpu/logs/benchlog-2-_-2"];
    assert_eq!(found("sysbenchcpu threads=2", "events/sec"), theirs(&cpus, "events per second", 3));
    assert_eq!(find_samples(&record, "sysbenchcpu threads=2", "events/sec")[0].direction, Direction::Higher);
    let redis = ["redis/logs/redis-8-1.log", "redis/logs/redis-8-2.log"];
    let rates: Vec<f64> = found("redis clients=8", "GET-RPS").iter().map(|rate| rate * 1000.0).collect();
    let lines = redis.map(|log| {
        ["iter-0", "iter-1"].map(|n| read_unpacked_text(&recorded_mmtests("current").join(n).join(log)))
    });
    let [[a, c], [b, d]] = lines;
    let get = |text: String| -> f64 {
        let line = text.lines().find(|line| line.starts_with("\"GET\"")).unwrap();
        line.split("\",\"").nth(1).unwrap().parse().unwrap()
    };
    let wanted = [a, b, c, d].map(get);
    assert!(
        rates.iter().zip(wanted).all(|(rate, wanted)| (rate - wanted).abs() < 1e-6),
        "{rates:?} {wanted:?}"
    );
    assert_eq!(find_samples(&record, "redis clients=8", "GET-latAvg")[0].direction, Direction::Lower);
    assert!(found("redis clients=8", "LPUSH-prepare-RPS").len() == 4);
}

/// dbench and fio are packed; pgbench's intervals become values of four seconds each.
#[test]
fn packed_logs_and_values_within_an_execution_are_read() {
    let bench = ImportTestArchive::new();
    let record = read_record(&bench.import(&recorded_mmtests("current")));
    let throughput = find_samples(&record, "dbench4 clients=2", "tput");
    assert!(throughput.len() >= 4 && throughput[0].direction == Direction::Higher);
    assert!(throughput.iter().all(|sample| sample.iteration == sample.boot), "one execution a boot");
    assert_eq!(sample_values(&record, "dbench4 clients=1", "op-Close").len(), 2);
    let rate = find_samples(&record, "fio-randread job=seqwrite direction=write", "kb/sec");
    assert_eq!((rate.len(), rate[0].unit.0.as_str()), (2, "KiB/s"));
    let fields = read_unpacked_text(&recorded_mmtests("current").join("iter-0/fio-randread/logs/fio.log.gz"));
    let line = fields.lines().find(|line| line.contains(";seqwrite;")).unwrap();
    // The job was shorter than half a second: fio took no sample of its bandwidth, and MMTests prints 0.
    assert_eq!(line.split(';').nth(85), Some("0.000000"));
    assert_eq!(rate[0].value, line.split(';').nth(47).unwrap().parse::<f64>().unwrap());
    assert!(rate[0].value > 0.0);
    let latencies =
        read_unpacked_text(&recorded_mmtests("current").join("iter-0/fio-randread/logs/fio_lat.1.log.gz"));
    let reads = latencies.lines().filter(|line| line.split(", ").nth(2) == Some("0")).count();
    let ours = find_samples(&record, "fio-randread-latency", "latency-read");
    assert_eq!(ours.iter().filter(|sample| sample.boot == 0).count(), reads);
    assert_eq!(ours[0].unit.0, "ns");
    let log = read_unpacked_text(
        &recorded_mmtests("current").join("iter-0/pgbench/logs/pgbench-transactions-1.log.gz"),
    );
    let counts: Vec<f64> = log.lines().map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
    let wanted: Vec<f64> =
        counts[7..].chunks_exact(4).skip(1).map(|four| four.iter().sum::<f64>() / 4.0).collect();
    assert_eq!(sample_values(&record, "pgbench clients=1", "txn"), wanted);
    assert!(!wanted.is_empty());
}

#[test]
fn monitors_are_series_over_all_iterations() {
    let bench = ImportTestArchive::new();
    let imported = bench.import(&recorded_mmtests("current"));
    let run = &imported.run;
    assert_eq!(run.list_monitors().unwrap(), ["iostat", "mpstat", "perf-time-stat", "vmstat", "vmstat-tool"]);
    let log = |n: u32, monitor: &str| {
        read_unpacked_text(&recorded_mmtests("current").join(format!("iter-{n}/{monitor}-sysbenchcpu.gz")))
    };
    let (first, second) = (log(0, "vmstat"), log(1, "vmstat"));
    let rows = |text: &str| -> Vec<Option<i64>> {
        // Its third line is of the time since the machine was started.
        text.lines()
            .skip(3)
            .map(|line| line.split_whitespace().nth(7).unwrap().parse::<i64>().ok().map(|kib| kib * 1024))
            .collect()
    };
    assert_eq!(int_cells(run, "vmstat-tool", "free"), [rows(&first), rows(&second)].concat());
    let series = run.read_series("vmstat-tool").unwrap();
    assert!(series.at.is_sorted());
    assert!(
        read_record(&imported).gaps.iter().any(|gap| gap.monitor == "vmstat-tool"),
        "nothing between the iterations"
    );
    let cpus = text_cells(run, "mpstat", "cpu");
    assert_eq!(&cpus[..3], ["all", "0", "1"]);
    let blocks = |n| log(n, "mpstat").lines().filter(|line| line.contains(" all ")).count();
    assert_eq!(cpus.len(), 3 * (blocks(0) + blocks(1)));
    let faults = int_cells(run, "vmstat", "pgfault");
    assert!(faults.len() > 8 && faults.iter().all(Option::is_some) && faults.is_sorted());
    assert!(text_cells(run, "iostat", "device").contains(&"vda".to_owned()));
    let column = run
        .read_series("iostat")
        .unwrap()
        .schema
        .columns
        .iter()
        .find(|c| c.name == "w_await")
        .cloned()
        .unwrap();
    assert_eq!(column.unit.0, "ms");
    assert!(text_cells(run, "perf-time-stat", "flags").contains(&"not counted".to_owned()));
}

/// Some keep vmstat's rows alone: they are read by their place, and rows of another width are named with their line.
#[test]
fn a_vmstat_log_without_a_head_is_read_by_place() {
    let stamps = "test begin :: sysbenchcpu 1700000001\ntest end :: sysbenchcpu 1700000009 0\n";
    let row = "1 0 0 100000 1000 50000 0 0 1 2 100 200 1 2 97 0 0";
    let bench = ImportTestArchive::new();
    let log = bench.write_file("run/iter-0/vmstat-sysbenchcpu", format!("{row}\n{row}\n{row} 0 0\n{row}\n"));
    bench.write_file("run/iter-0/tests-timestamp", stamps);
    let imported = bench.import(log.ancestors().nth(2).unwrap());
    assert_eq!(int_cells(&imported.run, "vmstat-tool", "free"), [Some(100_000 << 10); 2]);
    let report = find_report(&imported, "vmstat-sysbenchcpu");
    assert_eq!(report.unusable.iter().map(|remark| remark.line).collect::<Vec<_>>(), [3]);
    assert_eq!(report.notes.len(), 2, "the columns are assumed, and so are the times: {:?}", report.notes);
}

/// The layout of 2020 gives the same cases and metrics, so that old logs are compared with new ones.
#[test]
fn the_layout_of_2020_has_the_names_of_today() {
    let bench = ImportTestArchive::new();
    let (new, old) = (
        read_record(&bench.import(&recorded_mmtests("current"))),
        read_record(&bench.import(&recorded_mmtests("2020"))),
    );
    let found = |case, metric| sample_values(&old, case, metric);
    let theirs = |logs: &[&str], mark, word| words_of_logs("2020", logs, mark, word);
    let logs = [1, 2, 3].map(|n| format!("hackbench-process-pipes/logs/hackbench-1-{n}"));
    let logs: Vec<&str> = logs.iter().map(String::as_str).collect();
    assert_eq!(found("hackbench-process-pipes groups=1", "time"), theirs(&logs, "Total time:", 2));
    assert_eq!(found("perfpipe", "usecs-op").len(), 6);
    assert_eq!(found("redis clients=1", "SET-RPS").len(), 4);
    assert_eq!(found("redis clients=1", "SET-latAvg"), [0.0; 0]);
    for (case, metric) in [
        ("dbench4 clients=2", "tput"),
        ("dbench4 clients=2", "op-Find"),
        ("sysbenchcpu threads=1", "events/sec"),
    ] {
        assert_eq!(
            find_samples(&old, case, metric)[0].unit,
            find_samples(&new, case, metric)[0].unit,
            "{case} {metric}"
        );
    }
    assert_eq!(found("hackbench-process-pipes-time of=2", "Elapsed").len(), 6);
}

fn import_logs(bench: &ImportTestArchive, files: &[(&str, &str)]) -> ImportOutcome {
    let stamps = "start :: 1700000000\ntest begin :: b 1700000001\ntest end :: b 1700000009 0\n";
    let root = bench.write_file(
        "run/iter-0/tests-timestamp",
        stamps.replace("b ", &format!("{} ", files[0].0.split('/').next().unwrap())),
    );
    for (name, text) in files {
        fs::create_dir_all(root.with_file_name(name).parent().unwrap()).unwrap();
        fs::write(root.with_file_name(name), text).unwrap();
    }
    bench.import(root.parent().unwrap().parent().unwrap())
}

#[test]
fn stream_is_read_in_both_layouts() {
    let bench = ImportTestArchive::new();
    let logs = [("stream/logs/benchlog-4-_-1", STREAM), ("stream/logs/stream-2.log", STREAM)];
    let record = read_record(&import_logs(&bench, &logs));
    assert_eq!(sample_values(&record, "stream threads=4", "Copy"), [10123.5, 10123.5]);
    assert_eq!(sample_values(&record, "stream threads=4", "Triad"), [12000.0, 12000.0]);
    let sample = find_samples(&record, "stream threads=4", "Add")[0];
    assert_eq!((sample.unit.0.as_str(), sample.direction), ("MB/s", Direction::Higher));
}

/// The unit is the head's, what was received is not what was sent, and sample 10 comes after 9.
#[test]
fn netperf_is_read_with_its_own_units() {
    let bench = ImportTestArchive::new();
    let tenth = TCP_STREAM.replace("1200.10", "1210.00");
    let logs = [
        ("netperf-tcp/logs/TCP_STREAM-64.10", tenth.as_str()),
        ("netperf-tcp/logs/TCP_STREAM-64.9", TCP_STREAM),
        ("netperf-tcp/logs/UDP_STREAM-1024.1", UDP_STREAM),
        ("netperf-tcp/logs/TCP_RR-1.1", TCP_RR),
        ("netperf-tcp/logs/protocols", "TCP_STREAM\n"),
    ];
    let imported = import_logs(&bench, &logs);
    let record = read_record(&imported);
    assert_eq!(sample_values(&record, "netperf-tcp size=64", "tcpstream-send"), [1200.1, 1210.0]);
    assert_eq!(sample_values(&record, "netperf-tcp size=1024", "udpstream-send"), [4096.0]);
    assert_eq!(sample_values(&record, "netperf-tcp size=1024", "udpstream-recv"), [3276.8]);
    let loss = find_samples(&record, "netperf-tcp size=1024", "udpstream-loss")[0];
    assert!((loss.value - 819.2).abs() < 1e-9 && loss.direction == Direction::Lower);
    let rate = find_samples(&record, "netperf-tcp size=1", "tcprr-send")[0];
    assert_eq!((rate.value, rate.unit.0.as_str()), (45123.45, "trans/s"));
    let note = |took: &&FileReport| took.notes.iter().any(|note| note.starts_with("units differ"));
    assert!(imported.file_reports.iter().any(|took| note(&took)));
}

/// netperf and STREAM as they print themselves: warnings and interim results are no results.
#[test]
fn what_netperf_and_stream_print_is_read() {
    let bench = ImportTestArchive::new();
    let record = read_record(&bench.import(&recorded_mmtests("streams-current")));
    let last = |log: &str, numbers: usize| -> Vec<f64> {
        let text =
            |iteration| read_unpacked_text(&recorded_mmtests("streams-current").join(iteration).join(log));
        let result = |line: &&str| {
            line.split_whitespace().count() == numbers && !line.contains(|c: char| c.is_ascii_alphabetic())
        };
        let value = |text: String| {
            text.lines().rfind(result).unwrap().split_whitespace().last().unwrap().parse().unwrap()
        };
        ["iter-0", "iter-1"].map(|iteration| value(text(iteration))).to_vec()
    };
    for (case, metric, log, numbers) in [
        ("netperf-tcp size=64", "tcpstream-send", "netperf-tcp/logs/TCP_STREAM-64", 5),
        ("netperf-tcp size=1024", "tcpstream-send", "netperf-tcp/logs/TCP_STREAM-1024", 5),
        ("netperf-udp size=1024", "udpstream-send", "netperf-udp/logs/UDP_STREAM-1024", 6),
        ("netperf-udp size=1024", "udpstream-recv", "netperf-udp/logs/UDP_STREAM-1024", 4),
        ("netperf-rr size=1", "tcprr-send", "netperf-rr/logs/TCP_RR-1", 6),
    ] {
        let theirs = [1, 2, 3].map(|n| last(&format!("{log}.{n}"), numbers));
        let theirs: Vec<f64> = (0..2).flat_map(|boot| theirs.iter().map(move |one| one[boot])).collect();
        assert_eq!(sample_values(&record, case, metric), theirs, "{case} {metric}");
    }
    assert_eq!(find_samples(&record, "netperf-rr size=1", "tcprr-send")[0].unit.0, "kbit/s");
    let old = self::read_record(&bench.import(&recorded_mmtests("streams-2020")));
    for (record, layout, log) in
        [(&record, "streams-current", "benchlog-2-_-"), (&old, "streams-2020", "stream-")]
    {
        let ending = if log == "stream-" { ".log" } else { "" };
        let logs = [1, 2, 3].map(|n| format!("stream/logs/{log}{n}{ending}"));
        let logs: Vec<&str> = logs.iter().map(String::as_str).collect();
        assert_eq!(
            sample_values(record, "stream threads=2", "Triad"),
            words_of_logs(layout, &logs, "Triad:", 1)
        );
    }
}

/// Times of loadfiles as MMTests' own dbench prints them, after `benchlog-loadfile-CLIENTS` of its parser.
#[test]
fn times_of_loadfiles_are_values_of_one_execution() {
    let bench = ImportTestArchive::new();
    let log = "0 completed in 612 ms finished at 1234 ms\n1 completed in 4294967295 ms finished at 1250 ms\n0 completed in 540 ms finished at 1900 ms\n";
    let imported = import_logs(&bench, &[("dbench4/logs/benchlog-loadfile-1", log)]);
    let record = read_record(&imported);
    assert_eq!(sample_values(&record, "dbench4 clients=1", "loadfile"), [612.0, 540.0]);
    assert_eq!(record.iterations.len(), 1);
    let took = imported.file_reports.iter().find(|took| took.file_name() == "benchlog-loadfile-1").unwrap();
    assert_eq!(took.format_counts(), "3 rows read, 2 used, 0 flagged, 1 unusable");
}
