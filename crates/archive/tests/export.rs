//! Runs in other tools' formats: as they look, and read by readers that are not ours.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use perflab_archive::export::{Exporter, export_schema, write_export};
use perflab_archive::{Archive, RunDir, new_run_id};
use perflab_import::{ImportOptions, open_import};
use perflab_model::RunEventKind;

fn project_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn import_recorded(directory: &Path, recorded: &str) -> RunDir {
    let label = Some("a \"b\"".into());
    record_import(directory, &project_path("crates/import/tests/recorded").join(recorded), label)
}

fn record_import(directory: &Path, path: &Path, label: Option<String>) -> RunDir {
    let archive = Archive::open(directory).unwrap();
    let options = ImportOptions { label, id: new_run_id(), ..ImportOptions::default() };
    let (_, mut source) = open_import(path, &options).unwrap();
    let first = source.next().unwrap().unwrap();
    let RunEventKind::Began(manifest) = &first.what else { panic!("{first:?}") };
    let mut recorder = archive.begin_bulk_run(manifest).unwrap();
    recorder.record(&first).unwrap();
    source.for_each(|event| recorder.record(&event.unwrap()).unwrap());
    recorder.finish().unwrap()
}

/// Least and greatest, for want of statistics.
fn value_limits(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    Some((least, values.iter().copied().max_by(f64::total_cmp)?)).filter(|_| values.len() > 1)
}

fn export_text(run: &RunDir, format: Exporter) -> String {
    let mut out = Vec::new();
    write_export(&run.read_record().unwrap(), &value_limits, format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn each_format_says_what_was_measured() {
    let directory = tempfile::tempdir().unwrap();
    let run = import_recorded(directory.path(), "tools/go.txt");
    let csv = export_text(&run, Exporter::Csv);
    assert!(csv.starts_with("run,label,target,boot,workload,point,iteration,metric,value,unit,direction,primary,start_ns,end_ns\r\n"));
    assert!(
        csv.contains(",\"a \"\"b\"\"\",imported,0,Ring,n=16 procs=2,0,time,6202,ns/op,lower,true,"),
        "{csv}"
    );
    let markdown = export_text(&run, Exporter::Markdown);
    assert!(
        markdown
            .contains("| Ring n=16 procs=2 | time | ns/op | less | 3 | 6202 | 6195 to 7124 | 6195 to 7124 |"),
        "{markdown}"
    );
    let latex = export_text(&run, Exporter::Latex);
    assert!(
        latex.contains("Ring n=16 procs=2 & time & ns/op & less & 3 & 6202 & ")
            && latex.ends_with("\\end{tabular}\n")
    );
    let metrics = export_text(&run, Exporter::OpenMetrics);
    assert!(
        metrics.contains("# TYPE perflab_time_ns_per_op gauge\n# UNIT perflab_time_ns_per_op ns_per_op\n"),
        "{metrics}"
    );
    let go = export_text(&run, Exporter::GoBench);
    assert!(go.contains("Unit time-ns/op better=lower\n"), "{go}");
    assert!(go.contains(
        "BenchmarkRing/n=16/procs=2 1 6202 time-ns/op 6400 allocated-B/op 200 allocations-allocs/op\n"
    ));
}

/// What is exported for benchstat is imported again with the same values.
#[test]
fn go_benchmark_text_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let run = import_recorded(directory.path(), "mmtests/current");
    let file = directory.path().join("again.txt");
    fs::write(&file, export_text(&run, Exporter::GoBench)).unwrap();
    let again = record_import(directory.path(), &file, None);
    assert_eq!(again.read_record().unwrap().samples.len(), run.read_record().unwrap().samples.len());
}

#[test]
fn the_published_schema_is_that_of_the_code() {
    let published = fs::read_to_string(project_path("docs/reference/export.schema.json")).unwrap();
    let published: serde_json::Value = serde_json::from_str(&published).unwrap();
    assert_eq!(published, export_schema(), "run `cargo xtask docs`");
}

#[test]
fn failed_iterations_are_failures() {
    let directory = tempfile::tempdir().unwrap();
    let logs = directory.path().join("logs/iter-0");
    fs::create_dir_all(logs.join("hackbench/logs")).unwrap();
    fs::write(logs.join("hackbench/logs/hackbench-1"), "Total time: 0.5 [sec]\n").unwrap();
    let stamps = "test begin :: hackbench 1700000001\ntest end :: hackbench 1700000009 3\n";
    fs::write(logs.join("tests-timestamp"), stamps).unwrap();
    let run = record_import(&directory.path().join("archive"), logs.parent().unwrap(), None);
    let junit = export_text(&run, Exporter::Junit);
    assert!(junit.contains("<testsuites name=\"MMTests logs\" tests=\"2\" failures=\"1\">"), "{junit}");
    assert!(junit.contains("<failure message=\"hackbench ended with status 3\"/>"), "{junit}");
}

#[test]
fn other_readers_read_every_format() {
    let python = project_path("target/test-venv/bin/python");
    let check = "import jsonschema, pandas, pyarrow, junitparser, kcidb_io, prometheus_client";
    let ready = Command::new(&python).args(["-c", check]).output().is_ok_and(|found| found.status.success());
    if !ready {
        return fixtures::skip_test(
            "other_readers_read_every_format",
            "target/test-venv lacks its readers (cargo xtask test makes it)",
        );
    }
    for recorded in ["mmtests/current", "tools/composite.xml", "tools/gbench.json"] {
        let directory = tempfile::tempdir().unwrap();
        let run = import_recorded(directory.path(), recorded);
        for (name, format) in Exporter::ALL {
            let file = directory.path().join(name);
            match format {
                Exporter::Parquet => drop(fs::copy(run.samples_path().unwrap(), file).unwrap()),
                // Made of more than a record, by whoever reads all of a run; of the times of commands alone.
                Exporter::Perfetto | Exporter::Hyperfine => {}
                _ => fs::write(file, export_text(&run, format)).unwrap(),
            }
        }
        let script = project_path("crates/archive/tests/export_readers.py");
        let schema = project_path("docs/reference/export.schema.json");
        let said = Command::new(&python).arg(script).arg(directory.path()).arg(schema).output().unwrap();
        assert!(said.status.success(), "{recorded}: {}", String::from_utf8_lossy(&said.stderr));
    }
}
