//! The built-in loads by name; running one, and printing its JSON object.

use std::ffi::OsString;
use std::io::Write as _;

use perflab_model::error_class::{Classify as _, ErrorClass};

use crate::load::args::{BuiltinLoadArgs, LoadError};
use crate::load::{
    context_switches, drv_rand_ops, huge_faults, map_churn, memory_bandwidth, memory_sweep, memory_use, net,
    page_faults, processes, reclaim_latency, scaling, semaphores, small_files, unmap, uring_nops, wakeups,
};

type LoadFunction = fn(&mut BuiltinLoadArgs) -> Result<serde_json::Value, LoadError>;

const LOADS: &[(&str, LoadFunction)] = &[
    ("context-switches", context_switches::measure_context_switches),
    ("drv_rand_ops", drv_rand_ops::measure_drv_rand_ops),
    ("huge-faults", huge_faults::measure_huge_faults),
    ("map-churn", map_churn::measure_map_churn),
    ("memory-bandwidth", memory_bandwidth::measure_memory_bandwidth),
    ("memory-sweep", memory_sweep::measure_memory_sweep),
    ("memory-use", memory_use::measure_memory_use),
    ("net", net::measure_net),
    ("page-faults", page_faults::measure_page_faults),
    ("processes", processes::measure_processes),
    ("reclaim-latency", reclaim_latency::measure_reclaim_latency),
    ("scaling", scaling::measure_scaling),
    ("semaphores", semaphores::measure_semaphores),
    ("small-files", small_files::measure_small_files),
    ("truncate", unmap::measure_truncate),
    ("unmap", unmap::measure_unmap),
    ("uring-nops", uring_nops::measure_uring_nops),
    ("wakeups", wakeups::measure_wakeups),
];

/// Runs the load that `arguments` name (`NAME --key value …`), prints its JSON object on stdout, and
/// says how the process should exit: 0, also where `--help` asked for its keys, 2 for wrong arguments, 1 where it failed.
pub fn run_load(arguments: &[OsString]) -> u8 {
    match measure_load(arguments) {
        // A reader that went away is not a reason to panic.
        Ok(result) => match writeln!(std::io::stdout(), "{result}") {
            Ok(()) => 0,
            Err(_) => 1,
        },
        Err(LoadError::Help(text)) => match writeln!(std::io::stdout(), "{text}") {
            Ok(()) => 0,
            Err(_) => 1,
        },
        Err(error) => {
            // The exit code says it too.
            let _ =
                std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("perflab load: {error}\n"));
            if error.class() == ErrorClass::Usage { 2 } else { 1 }
        }
    }
}

/// The same without printing: the load's JSON object.
pub fn measure_load(arguments: &[OsString]) -> Result<serde_json::Value, LoadError> {
    let mut options = BuiltinLoadArgs::parse(arguments)?;
    let names = LOADS.iter().map(|(name, _)| *name);
    let Some((_, measure)) = LOADS.iter().find(|(name, _)| *name == options.load) else {
        let hint = perflab_model::suggest_name(&options.load, names);
        return Err(LoadError::Unknown { name: options.load, hint });
    };
    measure(&mut options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::page_buffer;

    fn measure_from_texts(arguments: &[&str]) -> Result<serde_json::Value, String> {
        let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
        measure_load(&arguments).map_err(|error| error.to_string())
    }

    fn assert_positive_result(arguments: &[&str], pointer: &str) {
        let result = measure_from_texts(arguments).unwrap();
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
                assert_positive_result(&arguments, "/access_ns");
            }
            assert_positive_result(
                &["page-faults", "--size", "256KiB", "--rounds", "2", "--pages", pages],
                "/pages_per_second",
            );
        }
        assert_positive_result(
            &["memory-bandwidth", "--size", "100000", "--threads", "3", "--passes", "1"],
            "/add/median",
        );
        assert_positive_result(&["context-switches", "--rounds", "10"], "/round_trip_us");
        assert_positive_result(
            &["context-switches", "--rounds", "10", "--placement", "together"],
            "/switches_per_second",
        );
    }

    #[test]
    fn random_insertions_reap_by_their_policy() {
        for mode in ["intsrt", "intord", "strsrt", "strord"] {
            let result = measure_from_texts(&["drv_rand_ops", "5000", mode, "--seed", "3"]).unwrap();
            assert_eq!((&result["insertions"], &result["lost"]), (&5000.into(), &0.into()), "{result}");
            assert!(result["p50_ns"].as_u64() <= result["p999_ns"].as_u64(), "{result}");
        }
        // The index is first reaped when it has a hundred nodes of 119 slabs; slabs of the old policy far earlier.
        let old = measure_from_texts(&["drv_rand_ops", "20000", "intsrt", "--reap", "old:90:0"]).unwrap();
        let new = measure_from_texts(&["drv_rand_ops", "20000", "intsrt", "--reap", "new:40:30"]).unwrap();
        assert!(old["reaps"].as_u64().unwrap() > 0 && new["reaps"] == 0, "{old} {new}");
        let wrong: [&[&str]; 2] = [&["--reap", "sometimes"], &["more"]];
        let errors = wrong.map(|arguments| {
            measure_from_texts(&[&["drv_rand_ops", "10", "intsrt"], arguments].concat()).unwrap_err()
        });
        insta::assert_snapshot!(errors.join("\n"), @r#"
        --reap: `sometimes`: no reap policy "sometimes": never, old[:SLABS%:INDEX%], new[:SLABS:PERCENT], bounded[:TARGET%:SLABS]
        `more`: what a load is told is `--key value`
        "#);
    }

    #[test]
    fn ordinary_pages_fault_once_each() {
        let result =
            measure_from_texts(&["page-faults", "--size", "4MiB", "--rounds", "1", "--pages", "ordinary"])
                .unwrap();
        // Other threads of this test fault, too.
        assert!(
            result["faults"].as_u64().unwrap() >= (4 << 20) / page_buffer::system_page_size() as u64,
            "{result}"
        );
    }

    #[test]
    fn small_files_leave_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        assert_positive_result(
            &["small-files", "--directory", path, "--files", "7", "--folders", "3", "--fsync", "true"],
            "/total",
        );
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let error =
            measure_from_texts(&["small-files", "--directory", "/proc/nowhere", "--files", "1"]).unwrap_err();
        assert!(error.starts_with("cannot make /proc/nowhere/small-files-"), "{error}");
    }

    #[test]
    fn wrong_arguments_are_named() {
        assert_eq!(
            measure_from_texts(&["memory-sweeep"]).unwrap_err(),
            "there is no load `memory-sweeep`; did you mean `memory-sweep`?"
        );
        assert_eq!(
            measure_from_texts(&["page-faults", "--round", "1"]).unwrap_err(),
            "--round: is not known here; did you mean `rounds`?"
        );
        assert_eq!(
            measure_from_texts(&["page-faults", "--rounds", "0"]).unwrap_err(),
            "--rounds: 0 is too few; at least 1"
        );
        assert_eq!(
            measure_from_texts(&["page-faults", "--pages", "hug"]).unwrap_err(),
            "--pages: `hug`: did you mean `huge`?"
        );
        assert_eq!(
            measure_from_texts(&["page-faults", "--pages"]).unwrap_err(),
            "--pages: its value is missing"
        );
        assert!(
            measure_from_texts(&["page-faults", "--size", "big"])
                .unwrap_err()
                .starts_with("--size: `big` is not a size")
        );
        assert!(
            measure_from_texts(&["memory-sweep", "--size", "1", "--step", "4096"])
                .unwrap_err()
                .starts_with("--step: must be")
        );
    }

    #[test]
    fn every_load_says_what_it_can_be_told() {
        for (name, _) in LOADS {
            for help in ["--help", "-h"] {
                let error = measure_from_texts(&[name, help]).unwrap_err();
                assert!(error.starts_with(&format!("Usage: perflab load {name} ")), "{error}");
            }
        }
        let error = measure_from_texts(&["page-faults", "--rounds", "3", "--help"]).unwrap_err();
        let lines: Vec<&str> = error.lines().skip(2).collect();
        assert_eq!(lines[..2], ["  --size <BYTES>  [default: 64 MiB]", "  --rounds <VALUE>  [default: 8]"]);
        assert!(lines[2].starts_with("  --pages <default|"), "{error}");
        // A load that is none.
        insta::assert_snapshot!(measure_from_texts(&["page-fault", "--help"]).unwrap_err(), @"there is no load `page-fault`; did you mean `page-faults`?");
    }
}
