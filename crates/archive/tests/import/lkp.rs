//! A whole result folder, parts of it, packed or not.

use std::collections::BTreeMap;
use std::fs;

use perflab_archive::{Kind, Options, import_foreign};
use perflab_model::{Bytes, Nanos, Outcome, Status, Value};

use super::bench::{Bench, MEMBERS, ints, messages, recording, text, texts, took};

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_result_folder_is_an_ordinary_run() {
    let bench = Bench::new();
    let options = Options { label: Some("old".into()), ..Options::default() };
    let imported = import_foreign(&bench.archive(), &recording(), &options).unwrap();
    assert_eq!(imported.kind, Kind::Lkp);
    let record = imported.run.record().unwrap();
    let manifest = &record.manifest;
    assert_eq!((manifest.status, manifest.label.as_deref()), (Status::Finished, Some("old")));
    assert_eq!(manifest.study.title, "lkp fsmark 1HDD-9B-ext4-1x-4d-64fpd-4t-fsyncBeforeClose");
    assert_eq!(manifest.target, "perflab-vm");
    assert_eq!(manifest.anchor.realtime, Nanos(1_795_279_157 * SECOND));
    let fact = |key: &str| manifest.facts.get(key).map(Value::to_string);
    assert_eq!(fact("kernel.release").as_deref(), Some("6.18.44-fc-v445"));
    assert_eq!(fact("memory.page_size").as_deref(), Some("4096"));
    assert_eq!(fact("cpu.online").as_deref(), Some("2"));
    assert!(manifest.facts.integer("memory.total").unwrap() > 20 << 30);
    let listed = bench.archive().list().unwrap();
    let summary = listed[0].summary.as_ref().unwrap();
    assert_eq!((summary.iterations, summary.planned), (1, 1));
    assert_eq!(imported.run.monitors().unwrap(), ["meminfo", "slab-caches", "slabinfo", "slabinfo-tool"]);
    assert!(imported.run.output(Some(0), "fsmark").unwrap().unwrap().contains("Files/sec"));
}

/// Against a count that knows nothing of the importer.
#[test]
fn every_row_of_the_logs_is_there() {
    let bench = Bench::new();
    let imported = bench.import(&recording());
    let log = text(&recording().join("slabinfo.gz"));
    let lines: Vec<&str> =
        log.lines().filter(|line| line.contains(": slabdata") && !line.starts_with('#')).collect();
    assert_eq!(took(&imported, "slabinfo.gz").rows_read, lines.len() as u64);
    assert_eq!(took(&imported, "slabinfo.gz").ticks, log.matches("time:").count() as u64);
    let tool = text(&recording().join("slabinfo_tool.gz"));
    let tool = tool.lines().filter(|line| !line.starts_with("time:") && !line.starts_with("Name ")).count();
    assert_eq!(took(&imported, "slabinfo_tool.gz").rows_used, tool as u64);
    let names: Vec<&str> = lines.iter().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(texts(&imported.run, "slabinfo", "cache"), names);
    let word = |at: usize| -> Vec<Option<i64>> {
        lines.iter().map(|line| line.split_whitespace().nth(at).unwrap().parse().ok()).collect()
    };
    for (column, at) in
        [("active_objs", 1), ("num_objs", 2), ("objsize", 3), ("active_slabs", 13), ("num_slabs", 14)]
    {
        assert_eq!(ints(&imported.run, "slabinfo", column), word(at), "{column}");
    }
    assert_eq!(messages(&imported), ["not read of lkp-fsmark: PROVENANCE"]);
    let counts = imported.run.record().unwrap().manifest.facts;
    let told = format!("{0} rows read, {0} used, 0 flagged, 0 unusable", lines.len());
    assert_eq!(counts.get("import.rows.slabinfo.gz"), Some(&Value::from(told.as_str())));
}

/// The sum of all caches is what meminfo calls Slab, up to large allocations that have no cache.
#[test]
fn slabs_and_meminfo_agree() {
    let bench = Bench::new();
    let run = bench.import(&recording()).run;
    let (slabs, pages) = (ints(&run, "slabinfo", "num_slabs"), ints(&run, "slabinfo", "pagesperslab"));
    let mut sums: BTreeMap<Nanos, i64> = BTreeMap::new();
    for (at, (slabs, pages)) in run.series("slabinfo").unwrap().at.iter().zip(slabs.iter().zip(pages)) {
        *sums.entry(*at).or_default() += slabs.unwrap() * pages.unwrap() * 4096;
    }
    let memory = run.series("meminfo").unwrap().at.into_iter().zip(ints(&run, "meminfo", "Slab"));
    let mut compared = 0;
    for (at, slab) in memory {
        let Some(sum) = sums.get(&at) else { continue };
        let residual = slab.unwrap() - sum;
        assert!((-4 << 20..32 << 20).contains(&residual), "{at}: {residual}");
        compared += 1;
    }
    assert!(compared >= 5);
}

#[test]
fn the_benchmark_is_an_iteration_with_its_own_span() {
    let bench = Bench::new();
    let record = bench.import(&recording()).run.record().unwrap();
    let samples: BTreeMap<&str, f64> =
        record.samples.iter().map(|sample| (sample.metric.as_str(), sample.value)).collect();
    assert_eq!(samples["files"], 2010.0);
    assert_eq!((samples["time"], samples["user_time"]), (3.10, 0.10));
    let case = &record.manifest.plan.cases[0];
    assert_eq!((case.workload.as_str(), case.parameters.get("files")), ("fs_mark", Some(&Value::Int(1500))));
    let iteration = &record.iterations[0];
    assert_eq!(iteration.outcome, Outcome::Ok);
    // fs_mark began at 16:39:19, the logs at 1795279157 = 16:39:17; 6000 files at 2010 files/s.
    assert_eq!(iteration.start, Nanos(2 * SECOND));
    assert!((iteration.end.since(iteration.start).seconds() - 6000.0 / 2010.0).abs() < 1e-6);
}

#[test]
fn any_file_may_be_missing_or_alone() {
    for member in MEMBERS {
        let bench = Bench::new();
        let others: Vec<&str> = MEMBERS.into_iter().filter(|other| *other != member).collect();
        let imported = bench.import(&bench.folder("without", &others));
        let series = imported.run.monitors().unwrap().len();
        let logs = ["slabinfo.gz", "slabinfo_tool.gz", "orders", "meminfo.gz"];
        assert_eq!(series, if logs.contains(&member) { 3 } else { 4 }, "without {member}");
        let alone = bench.try_import(&bench.folder("alone", &[member]));
        match alone {
            Ok(imported) => assert!(!member.starts_with("job"), "{:?}", imported.took),
            Err(error) => assert!(member.starts_with("job"), "{member}: {error}"),
        }
    }
}

#[test]
fn what_is_missing_is_said() {
    let bench = Bench::new();
    let folder = bench.folder("result", &["slabinfo.gz"]);
    let imported = bench.import(&folder);
    assert!(messages(&imported).iter().any(|message| message.contains("no file `orders`")));
    let record = imported.run.record().unwrap();
    let page = &record.manifest.facts.0["memory.page_size"];
    assert_eq!(
        (&page.value, page.source.as_str()),
        (&Value::Int(4096), "how many objects fill a slab in slabinfo.gz")
    );
    assert_eq!(record.iterations, []);
    assert_eq!(record.warnings.len(), imported.warnings.len(), "the run carries them");
    assert_eq!(bench.archive().list().unwrap()[0].summary.as_ref().unwrap().planned, 0);
}

#[test]
fn packed_or_not_makes_no_difference() {
    let bench = Bench::new();
    let folder = bench.folder("plain", &["orders", "fsmark", "fsmark.time", "job", "job.yaml"]);
    for name in ["slabinfo", "slabinfo_tool", "meminfo"] {
        fs::write(folder.join(name), text(&recording().join(format!("{name}.gz")))).unwrap();
    }
    let (plain, packed) = (bench.import(&folder).run, bench.import(&recording()).run);
    for monitor in packed.monitors().unwrap() {
        assert_eq!(plain.series(&monitor).unwrap(), packed.series(&monitor).unwrap(), "{monitor}");
    }
    let again = bench.import(&recording().join("slabinfo.gz"));
    assert_eq!(again.kind, Kind::Dump);
    assert_eq!(again.run.series("slabinfo").unwrap(), packed.series("slabinfo").unwrap());
}

#[test]
fn orders_are_rows_of_slab_caches() {
    let bench = Bench::new();
    let run = bench.import(&recording()).run;
    let orders: BTreeMap<String, Option<i64>> =
        texts(&run, "slab-caches", "cache").into_iter().zip(ints(&run, "slab-caches", "order")).collect();
    assert_eq!((orders["task_struct"], orders["dentry"]), (Some(3), Some(0)));
    assert!(ints(&run, "slab-caches", "page_size").iter().all(|size| *size == Some(4096)));
    assert!(ints(&run, "slab-caches", "object_size").iter().all(Option::is_none), "missing, not zero");
    // What the notebook looked up by name stands in slabinfo itself.
    let pages = texts(&run, "slabinfo", "cache").into_iter().zip(ints(&run, "slabinfo", "pagesperslab"));
    let mut compared = 0;
    for (cache, pages) in pages {
        if let Some(order) = orders.get(&cache) {
            assert_eq!(pages, order.map(|order| 1 << order), "{cache}");
            compared += 1;
        }
    }
    assert!(compared > 1000);
}

#[test]
fn a_page_size_that_the_slabs_deny_is_refused() {
    let bench = Bench::new();
    let options = Options { page_size: Some(Bytes(65_536)), ..Options::default() };
    let error = import_foreign(&bench.archive(), &recording(), &options).unwrap_err().to_string();
    assert!(
        error.contains(
            "slabinfo.gz:1: the slabs of this dump fit pages of 4096 bytes and not 65536 (--page-size)"
        ),
        "{error}"
    );
    assert_eq!(bench.archive().list().unwrap(), []);
}
