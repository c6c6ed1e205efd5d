use perflab_model::series::SeriesSchema;

use super::*;

/// One tick each 100 ms over runs of half a second each: a counter of 10 a tick and a gauge, by device.
fn make_series(ticks: u64) -> Series {
    let columns = vec![
        ColumnSpec::key("device"),
        ColumnSpec::counter("reads", "requests"),
        ColumnSpec::gauge("queue", "requests"),
    ];
    let schema =
        SeriesSchema { monitor: "m".into(), source: "s".into(), interval: Nanos(100_000_000), columns };
    let at = (0..ticks).flat_map(|tick| [Nanos(1_000_000_000 + tick * 100_000_000); 2]).collect();
    let each = |make: fn(u64) -> [i64; 2]| ColumnData::Int((0..ticks).flat_map(make).map(Some).collect());
    let names = ColumnData::Text((0..ticks).flat_map(|_| ["sda", "sdb"]).map(|n| Some(n.into())).collect());
    Series { schema, at, columns: vec![names, each(|t| [10 * t as i64, 0]), each(|_| [4, 2])] }
}

#[test]
fn counters_become_rates_and_gauges_means_of_each_key() {
    let record =
        crate::build::RunBuilder::new("01JD").with(|lab| lab.iterations = 3).build_run(|_| Some(1.0));
    let found = summarise_monitor(&record, &make_series(25));
    let of = |name: &str| -> Vec<f64> {
        found.record.samples.iter().filter(|s| s.metric == name).map(|s| s.value).collect()
    };
    assert_eq!(of("reads device=sda"), [100.0; 3]);
    assert_eq!(of("reads device=sdb"), [0.0; 3]);
    assert_eq!(of("queue device=sdb"), [2.0; 3]);
    assert_eq!(found.record.samples[0].unit, Unit::new("requests/s"));
    assert_eq!(found.left_out, 0);
}

#[test]
fn iterations_without_a_reading_are_counted() {
    let record =
        crate::build::RunBuilder::new("01JD").with(|lab| lab.iterations = 3).build_run(|_| Some(1.0));
    assert_eq!(summarise_monitor(&record, &make_series(8)).left_out, 2);
}

/// Readings at the edge of a long iteration are the end of what another was watched with.
#[test]
fn iterations_that_were_hardly_watched_are_left_out() {
    let mut record =
        crate::build::RunBuilder::new("01JD").with(|lab| lab.iterations = 1).build_run(|_| Some(1.0));
    record.iterations[0].end = Nanos(record.iterations[0].start.0 + 10_000_000_000);
    assert_eq!(summarise_monitor(&record, &make_series(25)).left_out, 1);
    record.iterations[0].end = Nanos(record.iterations[0].start.0 + 4_000_000_000);
    assert_eq!(summarise_monitor(&record, &make_series(25)).left_out, 0);
}

/// What the kernel averages over ten seconds says nothing of an iteration of half a second.
#[test]
fn averages_of_the_kernel_are_no_samples_of_shorter_iterations() {
    let mut record =
        crate::build::RunBuilder::new("01JD").with(|lab| lab.iterations = 1).build_run(|_| Some(1.0));
    let mut pressure = make_series(25);
    pressure.schema.monitor = "pressure".into();
    pressure.schema.columns[2].name = "avg10".into();
    let names = |record: &RunRecord| -> Vec<String> {
        let found = summarise_monitor(record, &pressure).record.samples;
        found.iter().map(|sample| String::from(&sample.metric)).collect()
    };
    assert_eq!(names(&record), ["reads device=sda", "reads device=sdb"]);
    let mut long = pressure.clone();
    long.at = long.at.iter().map(|at| Nanos(at.0 * 10)).collect();
    long.schema.interval = Nanos(1_000_000_000);
    (record.iterations[0].start, record.iterations[0].end) = (Nanos(10_000_000_000), Nanos(21_000_000_000));
    assert_eq!(summarise_monitor(&record, &long).record.samples.len(), 4);
}

#[test]
fn readings_are_single_values_of_the_workload() {
    let record =
        crate::build::RunBuilder::new("01JD").with(|lab| lab.iterations = 1).build_run(|_| Some(1.0));
    let found = monitor_readings(&record, &make_series(25));
    let of = |name: &str| -> Vec<f64> {
        found.samples.iter().filter(|s| s.metric == name).map(|s| s.value).collect()
    };
    let queue = of("sda-queue");
    assert!(queue.len() > 1 && queue.iter().all(|value| *value == 4.0), "{queue:?}");
    assert_eq!(of("sda-reads"), vec![10.0; queue.len() - 1], "the first growth is not known");
}

/// Without its times a benchmark has those of the whole run, and the readings may be another's.
#[test]
fn benchmarks_of_unknown_time_have_no_readings() {
    let mut record =
        crate::build::RunBuilder::new("01JD").with(|lab| lab.iterations = 2).build_run(|_| Some(1.0));
    let mut other = record.manifest.plan.cases[0].clone();
    other.workload = "unrelated".into();
    record.manifest.plan.cases.push(other);
    let (first, last) = (record.iterations[0].start, record.iterations[1].end);
    record.manifest.plan.slots[1].case = record.manifest.plan.cases.len() as u32 - 1;
    for iteration in &mut record.iterations {
        (iteration.start, iteration.end) = (first, last);
    }
    assert_eq!(
        summarise_monitor(&record, &make_series(25)).left_out,
        0,
        "of our own runs the times are known"
    );
    record.manifest.facts.add("import.kind", "mmtests", "perflab");
    assert_eq!(summarise_monitor(&record, &make_series(25)).left_out, 2);
    assert!(monitor_readings(&record, &make_series(25)).samples.is_empty());
}
