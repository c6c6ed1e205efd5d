//! What single tools report of themselves: recorded outputs of the tools, guessed and read.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_import::detect_importer;
use perflab_model::fact_table;
use perflab_model::{Direction, RunRecord, Sample};

use super::bench::{ImportOutcome, ImportTestArchive, text_cells, warning_messages};

fn recorded_output(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/tools").join(name)
}

fn read_recorded_json(name: &str) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(recorded_output(name)).unwrap()).unwrap()
}

/// The import of a recording, which is taken for that kind.
fn import_recorded(bench: &ImportTestArchive, name: &str, kind: &str) -> (ImportOutcome, RunRecord) {
    assert_eq!(detect_importer(&recorded_output(name)).unwrap().name, kind, "{name}");
    let imported = bench.import(&recorded_output(name));
    let record = imported.run.read_record().unwrap();
    (imported, record)
}

fn find_samples<'a>(record: &'a RunRecord, case: &str, metric: &str) -> Vec<&'a Sample> {
    let plan = &record.manifest.plan;
    let of = |sample: &&Sample| plan.case(sample.case).unwrap().label() == case && sample.metric == metric;
    record.samples.iter().filter(of).collect()
}

fn sample_values(record: &RunRecord, case: &str, metric: &str) -> Vec<f64> {
    find_samples(record, case, metric).into_iter().map(|sample| sample.value).collect()
}

fn unit_and_direction(sample: &Sample) -> (&str, Direction) {
    (&sample.unit.0, sample.direction)
}

#[test]
fn fio() {
    let (_, record) = import_recorded(&ImportTestArchive::new(), "fio.json", "fio");
    let theirs = read_recorded_json("fio.json");
    let job = &theirs["jobs"][0]["read"];
    let case = "fio job=randread direction=read";
    assert_eq!(sample_values(&record, case, "iops"), [job["iops"].as_f64().unwrap()]);
    assert_eq!(sample_values(&record, case, "bandwidth"), [job["bw_bytes"].as_f64().unwrap()]);
    let p99 = job["clat_ns"]["percentile"]["99.000000"].as_f64().unwrap() / 1000.0;
    assert_eq!(sample_values(&record, case, "latency-p99"), [p99]);
    assert_eq!(
        unit_and_direction(find_samples(&record, case, "bandwidth")[0]),
        ("bytes/s", Direction::Higher)
    );
    assert_eq!(unit_and_direction(find_samples(&record, case, "latency-p99")[0]), ("us", Direction::Lower));
    assert!(find_samples(&record, "fio job=randread direction=write", "iops").is_empty(), "it wrote nothing");
}

#[test]
fn perf_stat_of_a_command() {
    let bench = ImportTestArchive::new();
    for name in ["perf-stat.json", "perf-stat.csv"] {
        let (imported, record) = import_recorded(&bench, name, "perf-stat");
        assert_eq!(
            unit_and_direction(find_samples(&record, "perf-stat", "task-clock")[0]),
            ("ms", Direction::Neither)
        );
        assert!(sample_values(&record, "perf-stat", "page-faults")[0] > 70.0);
        assert!(find_samples(&record, "perf-stat", "cycles").is_empty(), "not supported is no 0");
        insta::assert_snapshot!(format!("not_counted_{name}"), warning_messages(&imported)[0]);
        assert_eq!(record.iterations.len(), 1);
    }
    let (_, record) = import_recorded(&bench, "perf-stat-repeat.csv", "perf-stat");
    assert_eq!(sample_values(&record, "perf-stat", "task-clock"), [0.61]);
}

/// `-x :` and `-x ' '`: a name may hold the separator, and what was not counted holds a space.
#[test]
fn perf_stat_with_any_separator() {
    let bench = ImportTestArchive::new();
    let (imported, record) = import_recorded(&bench, "perf-stat-colon.csv", "perf-stat");
    let found = |metric: &str| sample_values(&record, "perf-stat", metric);
    let all = ["task-clock", "context-switches", "page-faults", "sched:sched_switch"].map(found);
    assert_eq!(all.concat(), [0.66, 1.0, 49.0, 1.0]);
    insta::assert_snapshot!(warning_messages(&imported)[0], @"perf-stat-colon.csv: 5 rows read, 5 used, 1 flagged, 0 unusable; the first at line 7: `cycles:u` was not counted");
    let (imported, record) = import_recorded(&bench, "perf-stat-space.csv", "perf-stat");
    let found = |metric: &str| sample_values(&record, "perf-stat", metric);
    assert_eq!(["task-clock", "context-switches", "page-faults"].map(found).concat(), [1.08, 1.0, 75.0]);
    assert_eq!(unit_and_direction(find_samples(&record, "perf-stat", "task-clock")[0]).0, "ms");
    insta::assert_snapshot!(warning_messages(&imported)[0], @"perf-stat-space.csv: 4 rows read, 4 used, 1 flagged, 0 unusable; the first at line 6: `cycles` was not counted");
    let cut = "# started on Sun Nov 22 04:50:39 2026\n\n1.08 msec task-clock 1.06% 1079901 100.00 0.074 CPUs utilized\n75  page-fau";
    let imported = bench.import(&bench.write_file("cut.csv", cut));
    assert_eq!(imported.file_reports[0].format_counts(), "2 rows read, 1 used, 0 flagged, 1 unusable");
}

#[test]
fn perf_stat_of_intervals() {
    let bench = ImportTestArchive::new();
    let (imported, record) = import_recorded(&bench, "perf-stat-interval.json", "perf-stat");
    let series = imported.run.read_series("perf-stat").unwrap();
    assert_eq!(text_cells(&imported.run, "perf-stat", "event").len(), 8);
    let values = series.named_column::<f64>("value");
    assert_eq!(values.get(1), Some(78.0));
    assert_eq!((series.at[2].0 - series.at[0].0) / 1_000_000, 100);
    assert!(record.samples.is_empty());
    let (imported, _) = import_recorded(&bench, "perf-stat-interval.csv", "perf-stat");
    assert_eq!(&text_cells(&imported.run, "perf-stat", "place")[..2], ["CPU0", "CPU1"]);
}

#[test]
fn hyperfine() {
    let (_, record) = import_recorded(&ImportTestArchive::new(), "hyperfine.json", "hyperfine");
    let theirs = read_recorded_json("hyperfine.json");
    let times: Vec<f64> =
        theirs["results"][0]["times"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
    let case = "hyperfine command=sleep 0.01 n=1";
    assert_eq!(sample_values(&record, case, "time"), times);
    assert_eq!(unit_and_direction(find_samples(&record, case, "time")[0]), ("s", Direction::Lower));
    let places: Vec<u32> =
        find_samples(&record, case, "time").iter().map(|sample| sample.iteration).collect();
    assert_eq!(places, [0, 1, 2, 3, 4]);
}

#[test]
fn google_benchmark() {
    let bench = ImportTestArchive::new();
    let (imported, record) = import_recorded(&bench, "gbench.json", "google-benchmark");
    let theirs = read_recorded_json("gbench.json");
    let times: Vec<f64> = theirs["benchmarks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["run_name"] == "Fill/64" && one["run_type"] == "iteration")
        .map(|one| one["real_time"].as_f64().unwrap())
        .collect();
    assert_eq!(sample_values(&record, "Fill arguments=64", "real_time"), times);
    assert_eq!(times.len(), 3);
    assert_eq!(
        unit_and_direction(find_samples(&record, "Fill arguments=64", "real_time")[0]),
        ("ns", Direction::Lower)
    );
    assert_eq!(
        unit_and_direction(find_samples(&record, "Fill arguments=64", "bytes_per_second")[0]),
        ("bytes/s", Direction::Higher)
    );
    assert_eq!(
        unit_and_direction(find_samples(&record, "Fill arguments=64", "allocations")[0]),
        ("1", Direction::Neither)
    );
    // The context has a date.
    assert_eq!(warning_messages(&imported), ["the benchmark library was a debug build"]);
    let (imported, record) = import_recorded(&bench, "gbench-aggregates.json", "google-benchmark");
    assert_eq!(sample_values(&record, "Fill arguments=4096", "real_time").len(), 1);
    insta::assert_snapshot!(warning_messages(&imported).join("\n"), @r#"
gbench-aggregates.json: it holds aggregates only: the mean of each benchmark is one value, and its scatter is lost
the benchmark library was a debug build
"#);
}

/// `Unit(benchmark::kMicrosecond)` changes how times are shown, not what they are.
#[test]
fn a_google_benchmark_is_the_same_metric_in_any_unit() {
    let bench = ImportTestArchive::new();
    let import_in = |unit: &str, scale: f64| {
        let benchmark = serde_json::json!({ "name": "f", "run_name": "f", "run_type": "iteration", "iterations": 5,
            "real_time": 1500.0 / scale, "cpu_time": 1250.0 / scale, "time_unit": unit });
        let document = serde_json::json!({ "context": { "executable": "x" }, "benchmarks": [benchmark] });
        let record =
            bench.import(&bench.write_file("u.json", document.to_string())).run.read_record().unwrap();
        let times: Vec<_> =
            record.samples.iter().map(|sample| (sample.metric.to_string(), sample.value)).collect();
        assert!(record.samples.iter().all(|sample| &*sample.unit.0 == "ns"), "{unit}");
        times
    };
    let expected = [("real_time".to_owned(), 1500.0), ("cpu_time".to_owned(), 1250.0)];
    for (unit, scale) in [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)] {
        assert_eq!(import_in(unit, scale), expected, "{unit}");
    }
}

/// A process is an iteration with several values; nothing tells whether another file is of the same boot.
#[test]
fn pyperf() {
    let (_, record) = import_recorded(&ImportTestArchive::new(), "pyperf.json", "pyperf");
    let places: Vec<(u32, u32)> =
        find_samples(&record, "list", "time").iter().map(|s| (s.boot, s.iteration)).collect();
    assert_eq!(places, [(0, 0), (0, 0), (0, 0), (0, 1), (0, 1), (0, 1)]);
    assert!(!record.manifest.has_known_boots());
    let first = read_recorded_json("pyperf.json")["benchmarks"][0]["runs"][0]["values"][0].as_f64().unwrap();
    assert_eq!(sample_values(&record, "list", "time")[0], first);
}

#[test]
fn criterion() {
    let (_, record) = import_recorded(&ImportTestArchive::new(), "criterion", "criterion");
    let theirs = read_recorded_json("criterion/sum/fold/64/new/sample.json");
    let [times, counts] = ["times", "iters"].map(|name| theirs[name].as_array().unwrap().clone());
    let wanted: Vec<f64> = times
        .iter()
        .zip(&counts)
        .map(|(time, count)| time.as_f64().unwrap() / count.as_f64().unwrap())
        .collect();
    assert_eq!(sample_values(&record, "sum function=fold value=64", "time"), wanted);
    assert_eq!(sample_values(&record, "sum function=fold value=4096", "time").len(), 10);
}

#[test]
fn go_benchmarks() {
    let (_, record) = import_recorded(&ImportTestArchive::new(), "go.txt", "go-bench");
    assert_eq!(sample_values(&record, "Ring n=16 procs=2", "time"), [6202.0, 6195.0, 7124.0]);
    assert_eq!(
        unit_and_direction(find_samples(&record, "Ring n=16 procs=2", "allocated")[0]),
        ("B/op", Direction::Lower)
    );
    assert_eq!(
        unit_and_direction(find_samples(&record, "Repeat procs=2", "throughput")[0]),
        ("MB/s", Direction::Higher)
    );
    assert_eq!(record.manifest.facts.value(&fact_table::GO_OS).unwrap().to_string(), "linux");
}

/// The same in JSON, as `go test -json ./...` wraps it: a line in pieces, two packages, names alone, a benchmark's own log.
#[test]
fn go_benchmarks_in_json() {
    let bench = ImportTestArchive::new();
    let (_, record) = import_recorded(&bench, "go.jsonl", "go-bench");
    let text = fs::read_to_string(recorded_output("go.jsonl")).unwrap();
    let theirs: Vec<f64> = text
        .lines()
        .filter_map(|line| line.split(" ns/op").next().filter(|before| before.len() < line.len()))
        .map(|before| before.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    let cases = [
        "Ring pkg=example.org/rings/rings n=16 procs=2",
        "Ring pkg=example.org/rings/rings n=256 procs=2",
        "Repeat pkg=example.org/rings/words procs=2",
    ];
    assert_eq!(cases.map(|case| sample_values(&record, case, "time")).concat(), theirs);
    assert_eq!(theirs.len(), 9);
    assert_eq!(sample_values(&record, cases[2], "throughput"), [583.48, 1111.93, 945.75]);
    // Packages that were tested beside each other take turns, line by line.
    let (rings, words): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.contains("/rings/rings"));
    let longest = rings.len().max(words.len());
    let turns: String = (0..longest)
        .flat_map(|at| [rings.get(at), words.get(at)])
        .flatten()
        .map(|line| format!("{line}\n"))
        .collect();
    let mixed = bench.import(&bench.write_file("mixed.jsonl", turns)).run.read_record().unwrap();
    assert_eq!(cases.map(|case| sample_values(&mixed, case, "time")).concat(), theirs);
    let cut = bench.import(&bench.write_file("cut.jsonl", &text[..text.find("1519 ns").unwrap()]));
    assert_eq!(sample_values(&cut.run.read_record().unwrap(), "Ring n=16 procs=2", "time"), theirs[..1]);
    insta::assert_snapshot!(warning_messages(&cut)[0], @"cut.jsonl: 2 rows read, 1 used, 0 flagged, 1 unusable; the first at line 15: it is no whole JSON");
}

/// Systems are levels; a result that is none is named and no 0.
#[test]
fn phoronix() {
    let (imported, record) = import_recorded(&ImportTestArchive::new(), "composite.xml", "phoronix");
    let case = "pts/compress-7zip-1.10.0 test=Test: Compression Rating system=linux-6.18";
    assert_eq!(sample_values(&record, case, "result"), [10500.0, 10521.0, 10512.0]);
    assert_eq!(unit_and_direction(find_samples(&record, case, "result")[0]), ("MIPS", Direction::Higher));
    let build = "pts/build-linux-kernel-1.15.0 test=Build: defconfig system=linux-6.1";
    assert_eq!(unit_and_direction(find_samples(&record, build, "result")[0]), ("Seconds", Direction::Lower));
    assert_eq!(record.manifest.plan.factors["system"], ["linux-6.1", "linux-6.18"]);
    insta::assert_snapshot!(warning_messages(&imported)[0], @"composite.xml: 10 rows read, 9 used, 0 flagged, 1 unusable; the first: pts/build-linux-kernel-1.15.0 on linux-6.18 has the result ``, which is no number");
}

/// Text behind the JSON, several reports of one execution, and counters that were written to a terminal.
#[test]
fn other_ways_to_write_the_same() {
    let bench = ImportTestArchive::new();
    let text = fs::read_to_string(recorded_output("fio.json")).unwrap();
    let file = |name: &str, text: String| bench.write_file(name, text);
    let plain = bench.import(&file("fio.json", text.clone())).run.read_record().unwrap();
    let later = text.replace("\"iops\" : ", "\"iops\" : 1");
    let after = bench.import(&file("both.json", format!("{text}\na: (groupid=0, jobs=1): err= 0\n")));
    let last = bench.import(&file("every.json", format!("{later}{later}{text}")));
    for imported in [&after, &last] {
        let values = |record: &RunRecord| record.samples.iter().map(|one| one.value).collect::<Vec<_>>();
        assert_eq!(values(&imported.run.read_record().unwrap()), values(&plain));
    }
    insta::assert_snapshot!(warning_messages(&last).join("\n"), @"every.json: it holds reports of one execution every few seconds: the last, which holds the others, is taken");
    let other = ImportTestArchive::new();
    let refused =
        other.refusal_of(&other.write_file("cut.json", format!("{text}{}", &text[..text.len() / 2])));
    insta::assert_snapshot!(refused, @"cut.json:774: it is no whole JSON: EOF while parsing a string at line 257 column 8");
    let counters = fs::read_to_string(recorded_output("perf-stat.csv")).unwrap();
    let headless: String =
        counters.lines().filter(|line| line.contains(',')).map(|line| format!("{line}\n")).collect();
    let imported = bench.import(&file("terminal.csv", headless));
    assert_eq!(imported.kind, "perf-stat");
    assert_eq!(imported.file_reports[0].rows_read, 4);
}

/// What the suite itself wrote: every run of each result, at the time that it names.
#[test]
fn phoronix_recorded() {
    let (imported, record) = import_recorded(&ImportTestArchive::new(), "phoronix.xml", "phoronix");
    let text = fs::read_to_string(recorded_output("phoronix.xml")).unwrap();
    let mut raws = text.lines().filter_map(|line| {
        line.trim().strip_prefix("<RawString>")?.strip_suffix("</RawString>").map(str::to_owned)
    });
    for system in ["before", "after"] {
        let case = format!("local/sysbench-cpu-1.0.0 test=Threads: 1 system={system}");
        let theirs: Vec<f64> = raws.next().unwrap().split(':').map(|word| word.parse().unwrap()).collect();
        assert_eq!(sample_values(&record, &case, "result"), theirs);
        let meant = ("Events Per Second", Direction::Higher);
        assert_eq!(unit_and_direction(find_samples(&record, &case, "result")[0]), meant);
    }
    // 2026-11-22 01:55:59
    assert_eq!(record.manifest.anchor.realtime.0, 1_795_312_559_000_000_000);
    insta::assert_snapshot!(warning_messages(&imported)[0], @"phoronix.xml: its times name no zone: taken as UTC");
}

#[test]
fn sar() {
    let bench = ImportTestArchive::new();
    let (imported, record) = import_recorded(&bench, "sar.json", "sar");
    assert_eq!(imported.run.list_monitors().unwrap(), ["sar-cpu", "sar-disk", "sar-memory", "sar-net"]);
    let series = imported.run.read_series("sar-cpu").unwrap();
    assert_eq!(series.at.len(), 3);
    let user = series.named_column::<f64>("user");
    let theirs = read_recorded_json("sar.json");
    let statistics = &theirs["sysstat"]["hosts"][0]["statistics"];
    assert_eq!(user.get(0), statistics[0]["cpu-load"][0]["user"].as_f64());
    assert!(text_cells(&imported.run, "sar-disk", "disk-device").contains(&"vda".into()));
    assert_eq!(record.manifest.target, "vm");
}

#[test]
fn lkp_statistics() {
    let bench = ImportTestArchive::new();
    let (_, record) = import_recorded(&bench, "stats.json", "lkp-stats");
    let throughput = find_samples(&record, "hackbench", "throughput")[0];
    assert_eq!(
        (throughput.value, throughput.direction, throughput.primary),
        (12345.6, Direction::Higher, true)
    );
    assert_eq!(
        unit_and_direction(find_samples(&record, "time", "elapsed_time")[0]),
        ("s", Direction::Neither)
    );
    let (imported, record) = import_recorded(&bench, "matrix.json", "lkp-stats");
    let boots: Vec<u32> =
        find_samples(&record, "hackbench", "throughput").iter().map(|sample| sample.boot).collect();
    assert_eq!(boots, [0, 1, 2]);
    assert_eq!(sample_values(&record, "perf-stat", "ps.cycles").len(), 2);
    insta::assert_snapshot!(warning_messages(&imported)[0], @"matrix.json: 9 rows read, 8 used, 0 flagged, 1 unusable; the first: `perf-stat.ps.cycles` is no number in run 2: null");
}

/// A result root: each numbered folder is a boot of one run.
#[test]
fn lkp_result_roots() {
    let bench = ImportTestArchive::new();
    for run in ["0", "2", "10"] {
        bench.write_file(&format!("root/{run}/stats.json"), fs::read(recorded_output("stats.json")).unwrap());
    }
    let root = bench.write_file("root/avg.json", "{}").parent().unwrap().to_owned();
    let imported = bench.import(&root);
    assert_eq!(imported.kind, "lkp");
    let record = imported.run.read_record().unwrap();
    let boots: Vec<u32> =
        find_samples(&record, "hackbench", "throughput").iter().map(|sample| sample.boot).collect();
    assert_eq!(boots, [0, 1, 2]);
}

/// A result root that lkp-tests made of hackbench's output, against that output: in its matrix, and in the statistics of
/// its runs where the matrix is lost.
#[test]
fn lkp_result_roots_recorded() {
    let bench = ImportTestArchive::new();
    let root = recorded_output("../lkp-hackbench");
    let kib = f64::from((40 * 200 * 100) >> 10);
    let best = |run: u32| {
        let text = fs::read_to_string(root.join(format!("{run}/hackbench"))).unwrap();
        let times = text.lines().filter_map(|line| line.strip_prefix("Time: ")?.trim().parse::<f64>().ok());
        kib / times.fold(f64::INFINITY, f64::min)
    };
    let theirs = [0, 1, 2].map(best);
    let check = |imported: &ImportOutcome| {
        assert_eq!(imported.kind, "lkp");
        let record = imported.run.read_record().unwrap();
        assert_eq!(sample_values(&record, "hackbench", "throughput"), theirs);
        let boots: Vec<u32> =
            find_samples(&record, "hackbench", "throughput").iter().map(|one| one.boot).collect();
        assert_eq!(boots, [0, 1, 2]);
        warning_messages(imported).join("\n")
    };
    insta::assert_snapshot!(check(&bench.import(&root)), @"
    not read of lkp-hackbench: 0, 1, 2 and 3 more
    the files give no time: the run is dated by the file's last change
    ");
    for (file, wanted) in [("0/stats.json", &theirs[..1]), ("matrix.json", &theirs[..])] {
        let alone = bench.import(&root.join(file));
        assert_eq!(alone.kind, "lkp-stats");
        assert_eq!(
            sample_values(&alone.run.read_record().unwrap(), "hackbench", "throughput"),
            wanted,
            "{file}"
        );
    }
    for run in ["0", "1", "2"] {
        bench.write_file(
            &format!("lost/{run}/stats.json"),
            fs::read(root.join(run).join("stats.json")).unwrap(),
        );
    }
    let lost = bench.import(bench.write_file("lost/avg.json", "{}").parent().unwrap());
    insta::assert_snapshot!(check(&lost), @"the files give no time: the run is dated by the file's last change");
}

/// Every recorded document, cut off anywhere, is refused with a line or gives no other number.
#[test]
fn documents_that_are_cut_off_are_named() {
    let bench = ImportTestArchive::new();
    let mut refusals = Vec::new();
    for name in [
        "fio.json",
        "hyperfine.json",
        "gbench.json",
        "pyperf.json",
        "sar.json",
        "composite.xml",
        "phoronix.xml",
        "stats.json",
    ] {
        let text = fs::read_to_string(recorded_output(name)).unwrap();
        let file = bench.write_file(&format!("cut/{name}"), &text[..text.len() * 2 / 3]);
        refusals.push(bench.refusal_of(&file));
    }
    insta::assert_snapshot!(refusals.join("\n"), @"
    cut/fio.json:341: it is no whole JSON: EOF while parsing an object at line 341 column 31
    cut/hyperfine.json:68: it is no whole JSON: EOF while parsing a list at line 68 column 25
    cut/gbench.json:185: it is no whole JSON: EOF while parsing a string at line 185 column 21
    cut/pyperf.json:1: it is no whole JSON: EOF while parsing a string at line 1 column 1050
    cut/sar.json:49: it is no whole JSON: EOF while parsing a string at line 49 column 103
    cut/composite.xml:39: it is no XML: syntax error: tag not closed: `>` not found before end of input
    cut/phoronix.xml:32: it ends inside of PhoronixTestSuite/System/JSON: it is cut off
    cut/stats.json:4: it is no whole JSON: EOF while parsing a value at line 4 column 28
    ");
    let go = fs::read_to_string(recorded_output("go.txt")).unwrap();
    let cut = bench.write_file(
        "cut/go.txt",
        go.split("\nBenchmarkRepeat").next().unwrap().trim_end_matches(" allocs/op"),
    );
    let imported = bench.import(&cut);
    assert_eq!(sample_values(&imported.run.read_record().unwrap(), "Ring n=256 procs=2", "time").len(), 2);
    assert_eq!(imported.file_reports[0].rows_unusable, 1);
}

/// hyperfine's parameters are filled into its commands: where they are words there, what is left of a command tells it apart.
#[test]
fn commands_and_parameters_of_hyperfine_are_factors() {
    let (_, record) = import_recorded(&ImportTestArchive::new(), "hyperfine.json", "hyperfine");
    let factors = &record.manifest.plan.factors;
    assert_eq!(factors["command"], ["sleep 0.01", "true", "sleep 0.02"]);
    assert_eq!(factors["n"], ["1", "2"]);
    let bench = ImportTestArchive::new();
    let of = |results: &[(&str, &[(&str, &str)])]| {
        let results: Vec<_> = results
            .iter()
            .map(|(command, parameters)| {
                let parameters: std::collections::BTreeMap<_, _> = parameters.iter().copied().collect();
                serde_json::json!({ "command": command, "times": [0.1, 0.2], "parameters": parameters })
            })
            .collect();
        let path = bench.write_file("h.json", serde_json::json!({ "results": results }).to_string());
        let plan = bench.import(&path).run.manifest().unwrap().plan;
        let labels: Vec<String> = plan.cases.iter().map(perflab_model::Case::label).collect();
        (plan.factors.into_iter().collect::<Vec<_>>(), labels)
    };
    let factor =
        |name: &str, levels: &[&str]| (name.to_owned(), levels.iter().map(|s| s.to_string()).collect());
    let (factors, _) = of(&[("only", &[])]);
    assert_eq!(factors, []);
    let (factors, labels) = of(&[("a", &[]), ("b", &[])]);
    assert_eq!(factors, [factor("command", &["a", "b"])]);
    assert_eq!(labels, ["hyperfine command=a", "hyperfine command=b"]);
    let (factors, labels) = of(&[("a 1", &[("n", "1")]), ("a 2", &[("n", "2")])]);
    assert_eq!(factors, [factor("n", &["1", "2"])]);
    assert_eq!(labels[0], "hyperfine command=a {n} n=1");
    let (factors, _) = of(&[("a 1", &[("n", "1")]), ("b 1", &[("n", "1")]), ("a 2", &[("n", "2")])]);
    assert_eq!(factors, [factor("command", &["a {n}", "b {n}"]), factor("n", &["1", "2"])]);
    let (factors, labels) = of(&[("x01", &[("n", "1")]), ("x02", &[("n", "2")])]);
    assert_eq!((factors, labels[1].as_str()), (vec![factor("n", &["1", "2"])], "hyperfine command=x0… n=2"));
}

#[test]
fn what_a_job_of_fio_does_is_its_case() {
    let bench = ImportTestArchive::new();
    let mut two = read_recorded_json("fio.json");
    let mut other = two["jobs"][0].clone();
    other["job options"]["bs"] = "16k".into();
    two["jobs"].as_array_mut().unwrap().push(other);
    let record = bench.import(&bench.write_file("two.json", two.to_string())).run.read_record().unwrap();
    let labels: Vec<String> = record.manifest.plan.cases.iter().map(perflab_model::Case::label).collect();
    let of = |bs: &str| format!("fio job=randread direction=read bs={bs}");
    assert!(labels.contains(&of("4k")) && labels.contains(&of("16k")), "{labels:?}");
    let (_, one) = import_recorded(&bench, "fio.json", "fio");
    let parameters = &one.manifest.plan.cases[0].parameters;
    assert_eq!(parameters["bs"].to_string(), "4k");
    assert!(!parameters.contains_key("filename"), "where is not what");
}

#[test]
fn deep_documents_are_refused_in_few_words() {
    let bench = ImportTestArchive::new();
    let name = "a".repeat(3000);
    let open = format!("<?xml version=\"1.0\"?><PhoronixTestSuite>{}", format!("<{name}>").repeat(300));
    let json = format!("{{\"fio version\": {}", "[".repeat(300_000));
    let html = format!("<?xml version=\"1.0\"?><PhoronixTestSuite></{}>", "b".repeat(600_000));
    for (file, text) in [("deep.xml", open), ("deep.json", json), ("wrong.xml", html)] {
        let told = bench.refusal_of(&bench.write_file(file, text));
        assert!(told.chars().count() < 4000, "{file}: {}", told.len());
    }
}

/// Found only by trying every file: a long line, and a file of the same kind without the figure that was looked for.
#[test]
fn a_long_line_is_guessed_and_an_unknown_file_is_told_of_kind() {
    let bench = ImportTestArchive::new();
    let times = vec!["0.5"; 100_000].join(",");
    let long =
        bench.write_file("long.json", format!("{{\"results\":[{{\"command\":\"x\",\"times\":[{times}]}}]}}"));
    assert_eq!(detect_importer(&long).unwrap().name, "hyperfine");
    let error = bench.refusal_of(&bench.write_file("odd.txt", "what is this\n"));
    let (begin, end) = (error.split(" (").next().unwrap(), error.rsplit("). ").next().unwrap());
    insta::assert_snapshot!(format!("{begin} ... {end}"), @"odd.txt: it looks like none of mmtests ... If you know which it is, say so with --kind");
}

/// Every interval of the recording stands there twice, without a tag and with one. What jHiccup wrote of each beside its histogram is
/// the largest value in milliseconds, with three digits behind the point.
#[test]
fn hdr_log_with_tags() {
    let bench = ImportTestArchive::new();
    let (imported, record) = import_recorded(&bench, "tagged.hlog", "hdr-log");
    let text = fs::read_to_string(recorded_output("tagged.hlog")).unwrap();
    let intervals: Vec<Vec<f64>> = text
        .lines()
        .filter(|line| line.starts_with("Tag=A,"))
        .map(|line| line.split(',').skip(1).take(3).map(|number| number.parse().unwrap()).collect())
        .collect();
    assert_eq!(intervals.len(), 21);
    let max = intervals.iter().map(|interval| interval[2]).fold(0.0, f64::max);
    for case in ["hdr-log", "hdr-log tag=A"] {
        let largest = sample_values(&record, case, "latency-max")[0] / 1e3;
        assert!((largest - max).abs() <= 0.0005, "{case}: {largest} {max}");
        let median = sample_values(&record, case, "latency-p50")[0] / 1e3;
        assert!(intervals.iter().all(|interval| median <= interval[2]), "{case}: {median}");
        // p99.99 needs 10,000 values.
        let names = ["p50", "p90", "p95", "p99", "p99.9", "p99.99", "mean"];
        let counts = names.map(|name| sample_values(&record, case, &format!("latency-{name}")).len());
        assert_eq!(counts, [1, 1, 1, 1, 1, 1, 1], "{case}");
    }
    let both = ["hdr-log", "hdr-log tag=A"].map(|case| {
        let of = |sample: &&Sample| record.manifest.plan.case(sample.case).unwrap().label() == case;
        record
            .samples
            .iter()
            .filter(of)
            .map(|sample| (sample.metric.clone(), sample.value))
            .collect::<Vec<_>>()
    });
    assert_eq!(both[0], both[1]);
    let length: f64 = intervals.iter().map(|interval| interval[1]).sum();
    let rate = sample_values(&record, "hdr-log", "values")[0];
    assert!((rate * length).round() > 10_000.0, "{rate}");
    let tags = text_cells(&imported.run, "hdr-log", "tag");
    assert_eq!((tags.len(), tags.iter().filter(|tag| *tag == "A").count()), (42, 21));
    assert_eq!(warning_messages(&imported), Vec::<String>::new());
}
