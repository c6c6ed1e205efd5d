//! A whole result folder, parts of it, packed or not.

use std::collections::BTreeMap;
use std::fs;

use perflab_import::ImportOptions;
use perflab_model::fact_table;
use perflab_model::{Bytes, Nanos, Outcome, RunStatus, Scalar};

use super::bench::{
    ImportTestArchive, MEMBERS, find_report, int_cells, read_unpacked_text, record_import, recording_path,
    text_cells, warning_messages,
};

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_result_folder_is_an_ordinary_run() {
    let bench = ImportTestArchive::new();
    let options = ImportOptions { label: Some("old".into()), ..ImportOptions::default() };
    let imported = record_import(&bench.archive(), &recording_path(), &options).unwrap();
    assert_eq!(imported.kind, "lkp");
    let record = imported.run.read_record().unwrap();
    let manifest = &record.manifest;
    assert_eq!((manifest.status, manifest.label.as_deref()), (RunStatus::Finished, Some("old")));
    assert_eq!(manifest.study.title, "lkp fsmark 1HDD-9B-ext4-1x-4d-64fpd-4t-fsyncBeforeClose");
    assert_eq!(manifest.target, "perflab-vm");
    assert_eq!(manifest.anchor.realtime, Nanos(1_795_279_157 * SECOND));
    let fact = |key| manifest.facts.value(key).map(Scalar::to_string);
    assert_eq!(fact(&fact_table::KERNEL_RELEASE).as_deref(), Some("6.18.44-fc-v445"));
    assert_eq!(fact(&fact_table::MEMORY_PAGE_SIZE).as_deref(), Some("4096"));
    assert_eq!(fact(&fact_table::CPU_ONLINE).as_deref(), Some("2"));
    assert!(manifest.facts.integer(&fact_table::MEMORY_TOTAL).unwrap() > 20 << 30);
    let listed = bench.archive().list_runs().unwrap();
    let summary = listed[0].summary.as_ref().unwrap();
    assert_eq!((summary.iterations, summary.planned), (1, 1));
    assert_eq!(
        imported.run.list_monitors().unwrap(),
        ["meminfo", "slab-caches", "slabinfo", "slabinfo-tool"]
    );
    assert!(imported.run.read_output(Some(0), "fsmark").unwrap().unwrap().contains("Files/sec"));
}

/// Against a count that knows nothing of the importer.
#[test]
fn every_row_of_the_logs_is_there() {
    let bench = ImportTestArchive::new();
    let imported = bench.import(&recording_path());
    let log = read_unpacked_text(&recording_path().join("slabinfo.gz"));
    let lines: Vec<&str> =
        log.lines().filter(|line| line.contains(": slabdata") && !line.starts_with('#')).collect();
    assert_eq!(find_report(&imported, "slabinfo.gz").rows_read, lines.len() as u64);
    assert_eq!(find_report(&imported, "slabinfo.gz").ticks, log.matches("time:").count() as u64);
    let tool = read_unpacked_text(&recording_path().join("slabinfo_tool.gz"));
    let tool = tool.lines().filter(|line| !line.starts_with("time:") && !line.starts_with("Name ")).count();
    assert_eq!(find_report(&imported, "slabinfo_tool.gz").rows_used, tool as u64);
    let names: Vec<&str> = lines.iter().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(text_cells(&imported.run, "slabinfo", "cache"), names);
    let word = |at: usize| -> Vec<Option<i64>> {
        lines.iter().map(|line| line.split_whitespace().nth(at).unwrap().parse().ok()).collect()
    };
    for (column, at) in
        [("active_objs", 1), ("num_objs", 2), ("objsize", 3), ("active_slabs", 13), ("num_slabs", 14)]
    {
        assert_eq!(int_cells(&imported.run, "slabinfo", column), word(at), "{column}");
    }
    assert_eq!(warning_messages(&imported), ["not read of lkp-fsmark: PROVENANCE"]);
    let counts = imported.run.read_record().unwrap().manifest.facts;
    let told = format!("{0} rows read, {0} used, 0 flagged, 0 unusable", lines.len());
    assert_eq!(
        counts.value(&fact_table::IMPORT_ROWS_OF_FILE.key("slabinfo.gz")),
        Some(&Scalar::from(told.as_str()))
    );
}

/// The sum of all caches is what meminfo calls Slab, up to large allocations that have no cache.
#[test]
fn slabs_and_meminfo_agree() {
    let bench = ImportTestArchive::new();
    let run = bench.import(&recording_path()).run;
    let (slabs, pages) =
        (int_cells(&run, "slabinfo", "num_slabs"), int_cells(&run, "slabinfo", "pagesperslab"));
    let mut sums: BTreeMap<Nanos, i64> = BTreeMap::new();
    for (at, (slabs, pages)) in run.read_series("slabinfo").unwrap().at.iter().zip(slabs.iter().zip(pages)) {
        *sums.entry(*at).or_default() += slabs.unwrap() * pages.unwrap() * 4096;
    }
    let memory = run.read_series("meminfo").unwrap().at.into_iter().zip(int_cells(&run, "meminfo", "Slab"));
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
    let bench = ImportTestArchive::new();
    let record = bench.import(&recording_path()).run.read_record().unwrap();
    let samples: BTreeMap<&str, f64> =
        record.samples.iter().map(|sample| (sample.metric.as_str(), sample.value)).collect();
    assert_eq!(samples["files"], 2010.0);
    assert_eq!((samples["time"], samples["user_time"]), (3.10, 0.10));
    let case = &record.manifest.plan.cases[0];
    assert_eq!((case.workload.as_str(), case.parameters.get("files")), ("fs_mark", Some(&Scalar::Int(1500))));
    let iteration = &record.iterations[0];
    assert_eq!(iteration.outcome, Outcome::Ok);
    // fs_mark began at 16:39:19, the logs at 1795279157 = 16:39:17; 6000 files at 2010 files/s.
    assert_eq!(iteration.start, Nanos(2 * SECOND));
    assert!((iteration.end.since(iteration.start).seconds() - 6000.0 / 2010.0).abs() < 1e-6);
}

#[test]
fn any_file_may_be_missing_or_alone() {
    for member in MEMBERS {
        let bench = ImportTestArchive::new();
        let others: Vec<&str> = MEMBERS.into_iter().filter(|other| *other != member).collect();
        let imported = bench.import(&bench.copy_members("without", &others));
        let series = imported.run.list_monitors().unwrap().len();
        let logs = ["slabinfo.gz", "slabinfo_tool.gz", "orders", "meminfo.gz"];
        assert_eq!(series, if logs.contains(&member) { 3 } else { 4 }, "without {member}");
        let alone = bench.try_import(&bench.copy_members("alone", &[member]));
        match alone {
            Ok(imported) => assert!(!member.starts_with("job"), "{:?}", imported.file_reports),
            Err(error) => assert!(member.starts_with("job"), "{member}: {error}"),
        }
    }
}

#[test]
fn what_is_missing_is_said() {
    let bench = ImportTestArchive::new();
    let folder = bench.copy_members("result", &["slabinfo.gz"]);
    let imported = bench.import(&folder);
    insta::assert_snapshot!(warning_messages(&imported).join("\n"), @"there is no file `orders`: orders are those of slabinfo's column pagesperslab (2 to the order)");
    let record = imported.run.read_record().unwrap();
    let page = record.manifest.facts.stored("memory.page_size").unwrap();
    assert_eq!(
        (&page.value, page.source.as_str()),
        (&Scalar::Int(4096), "how many objects fill a slab in slabinfo.gz")
    );
    assert_eq!(record.iterations, []);
    assert_eq!(record.warnings.len(), imported.warnings.len(), "the run carries them");
    assert_eq!(bench.archive().list_runs().unwrap()[0].summary.as_ref().unwrap().planned, 0);
}

#[test]
fn packed_or_not_makes_no_difference() {
    let bench = ImportTestArchive::new();
    let folder = bench.copy_members("plain", &["orders", "fsmark", "fsmark.time", "job", "job.yaml"]);
    for name in ["slabinfo", "slabinfo_tool", "meminfo"] {
        fs::write(folder.join(name), read_unpacked_text(&recording_path().join(format!("{name}.gz"))))
            .unwrap();
    }
    let (plain, packed) = (bench.import(&folder).run, bench.import(&recording_path()).run);
    for monitor in packed.list_monitors().unwrap() {
        assert_eq!(plain.read_series(&monitor).unwrap(), packed.read_series(&monitor).unwrap(), "{monitor}");
    }
    let again = bench.import(&recording_path().join("slabinfo.gz"));
    assert_eq!(again.kind, "dump");
    assert_eq!(again.run.read_series("slabinfo").unwrap(), packed.read_series("slabinfo").unwrap());
}

#[test]
fn orders_are_rows_of_slab_caches() {
    let bench = ImportTestArchive::new();
    let run = bench.import(&recording_path()).run;
    let orders: BTreeMap<String, Option<i64>> = text_cells(&run, "slab-caches", "cache")
        .into_iter()
        .zip(int_cells(&run, "slab-caches", "order"))
        .collect();
    assert_eq!((orders["task_struct"], orders["dentry"]), (Some(3), Some(0)));
    assert!(int_cells(&run, "slab-caches", "page_size").iter().all(|size| *size == Some(4096)));
    assert!(int_cells(&run, "slab-caches", "object_size").iter().all(Option::is_none), "missing, not zero");
    // What the notebook looked up by name stands in slabinfo itself.
    let pages =
        text_cells(&run, "slabinfo", "cache").into_iter().zip(int_cells(&run, "slabinfo", "pagesperslab"));
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
    let bench = ImportTestArchive::new();
    let options = ImportOptions { page_size: Some(Bytes(65_536)), ..ImportOptions::default() };
    let error = record_import(&bench.archive(), &recording_path(), &options).unwrap_err().to_string();
    let error = error.replace(&format!("{}/", recording_path().display()), "");
    insta::assert_snapshot!(error, @"slabinfo.gz:1: the slabs of this dump fit pages of 4096 bytes and not 65536 (--page-size): import logs of different machines one by one, each with its --page-size");
    assert_eq!(bench.archive().list_runs().unwrap(), []);
}
