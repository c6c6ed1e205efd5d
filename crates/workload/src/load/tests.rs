use super::*;

fn run(arguments: &[&str]) -> Result<serde_json::Value, String> {
    let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
    measure(&arguments).map_err(|error| error.to_string())
}

fn positive(arguments: &[&str], pointer: &str) {
    let result = run(arguments).unwrap();
    let number = result.pointer(pointer).and_then(serde_json::Value::as_f64);
    assert!(number.is_some_and(|number| number > 0.0 && number.is_finite()), "{arguments:?}: {result}");
}

#[test]
fn every_load_measures_under_every_choice() {
    for pages in ["default", "ordinary"] {
        for (order, buffer) in [("random", "warmed"), ("strided", "fresh")] {
            let arguments = [
                "memory-sweep",
                "--size",
                "1MiB",
                "--passes",
                "2",
                "--pages",
                pages,
                "--order",
                order,
                "--buffer",
                buffer,
            ];
            positive(&arguments, "/access_ns");
        }
        positive(
            &["page-faults", "--size", "256KiB", "--rounds", "2", "--pages", pages],
            "/pages_per_second",
        );
    }
    positive(&["memory-bandwidth", "--size", "100000", "--threads", "3", "--passes", "1"], "/add/median");
    positive(&["context-switches", "--rounds", "10"], "/round_trip_us");
    positive(&["context-switches", "--rounds", "10", "--placement", "together"], "/switches_per_second");
}

#[test]
fn random_insertions_reap_by_their_policy() {
    for mode in ["intsrt", "intord", "strsrt", "strord"] {
        let result = run(&["drv_rand_ops", "5000", mode, "--seed", "3"]).unwrap();
        assert_eq!((&result["insertions"], &result["lost"]), (&5000.into(), &0.into()), "{result}");
        assert!(result["p50_ns"].as_u64() <= result["p999_ns"].as_u64(), "{result}");
    }
    // The index is first reaped when it has a hundred nodes of 119 slabs; slabs of the old policy far earlier.
    let old = run(&["drv_rand_ops", "20000", "intsrt", "--reap", "old:90:0"]).unwrap();
    let new = run(&["drv_rand_ops", "20000", "intsrt", "--reap", "new:40:30"]).unwrap();
    assert!(old["reaps"].as_u64().unwrap() > 0 && new["reaps"] == 0, "{old} {new}");
    let error = run(&["drv_rand_ops", "10", "intsrt", "--reap", "sometimes"]).unwrap_err();
    assert!(error.contains("no reap policy"), "{error}");
    assert!(run(&["drv_rand_ops", "10", "intsrt", "more"]).unwrap_err().contains("arguments are"));
}

#[test]
fn ordinary_pages_fault_once_each() {
    let result = run(&["page-faults", "--size", "4MiB", "--rounds", "1", "--pages", "ordinary"]).unwrap();
    // Other threads of this test fault, too.
    assert!(result["faults"].as_u64().unwrap() >= (4 << 20) / pages::page_size() as u64, "{result}");
}

#[test]
fn small_files_leave_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    positive(
        &["small-files", "--directory", path, "--files", "7", "--folders", "3", "--fsync", "true"],
        "/total",
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    let error = run(&["small-files", "--directory", "/proc/nowhere", "--files", "1"]).unwrap_err();
    assert!(error.starts_with("cannot make /proc/nowhere/small-files-"), "{error}");
}

#[test]
fn wrong_arguments_are_named() {
    assert_eq!(
        run(&["memory-sweeep"]).unwrap_err(),
        "there is no load `memory-sweeep`; did you mean `memory-sweep`?"
    );
    assert_eq!(
        run(&["page-faults", "--round", "1"]).unwrap_err(),
        "--round: is not known here; did you mean `rounds`?"
    );
    assert_eq!(run(&["page-faults", "--rounds", "0"]).unwrap_err(), "--rounds: 0 is too few; at least 1");
    assert_eq!(run(&["page-faults", "--pages", "hug"]).unwrap_err(), "--pages: `hug`: did you mean `huge`?");
    assert_eq!(run(&["page-faults", "--pages"]).unwrap_err(), "--pages: its value is missing");
    assert!(run(&["page-faults", "--size", "big"]).unwrap_err().starts_with("--size: `big` is not a size"));
    assert!(
        run(&["memory-sweep", "--size", "1", "--step", "4096"]).unwrap_err().starts_with("--step: must be")
    );
}

#[test]
fn every_load_says_what_it_can_be_told() {
    for (name, _) in LOADS {
        for help in ["--help", "-h"] {
            let said = run(&[name, help]).unwrap_err();
            assert!(said.starts_with(&format!("Usage: perflab load {name} ")), "{said}");
        }
    }
    let said = run(&["page-faults", "--rounds", "3", "--help"]).unwrap_err();
    let lines: Vec<&str> = said.lines().skip(2).collect();
    assert_eq!(lines[..2], ["  --size <BYTES>  [default: 64.0 MiB]", "  --rounds <VALUE>  [default: 8]"]);
    assert!(lines[2].starts_with("  --pages <default|"), "{said}");
    assert!(run(&["page-fault", "--help"]).unwrap_err().contains("page-faults"), "a load that is none");
}
