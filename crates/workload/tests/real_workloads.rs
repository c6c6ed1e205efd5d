//! Runs every workload for real, with the parameters of its `[brief]`. One that is not installed is
//! skipped visibly, or fails where PERFLAB_REQUIRE_ALL=1 says that all are.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod host;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fixtures::skip_test;
use perflab_model::Nanos;
use perflab_workload::{
    Catalogue, ExecutionEnd, HostPaths, TrialError, WorkloadDefinition, WorkloadError, WorkloadExecution,
    try_workload,
};

/// Generous: a busy CI machine is slow, and a hang is what it is for.
const LIMIT: Nanos = Nanos(120_000_000_000);

fn try_briefly(definition: &WorkloadDefinition, scratch: &Path, kept: &Path) -> WorkloadExecution {
    let scope = host::host_scope();
    let parameters =
        definition.resolve_parameters(&definition.brief, &scope).expect("brief parameters are checked");
    let paths = HostPaths {
        perflab: host::find_load_binary(),
        scratch: Some(scratch.into()),
        kept: Some(kept.into()),
        case: None,
        free_port: perflab_workload::find_free_port(),
    };
    try_workload(definition, &parameters, &scope, &paths, LIMIT).unwrap_or_else(|error| panic!("{error}"))
}

/// Most of them last for as long as they are told, and nobody reads their figures here.
const AT_ONCE: usize = 4;

/// What the tests do not ask for: packages that take long to install, for what their recordings hold. Those that are here are run.
const NOT_ASKED_FOR: &[&str] = &[
    "aom",
    "bonnie",
    "compress",
    "hpcc",
    "john",
    "memcached",
    "postmark",
    "sockperf",
    "stockfish",
    "web",
    "x264",
];

fn run_workload_twice(definition: &WorkloadDefinition) {
    match definition.check_requirements() {
        Ok(()) => {}
        Err(WorkloadError::NotInstalled { .. }) if NOT_ASKED_FOR.contains(&definition.name.as_str()) => {
            return;
        }
        Err(missing @ (WorkloadError::NotInstalled { .. } | WorkloadError::NeedsRoot { .. })) => {
            return skip_test(&definition.name, &missing.to_string());
        }
        Err(error) => panic!("{error}"),
    }
    let [scratch, kept] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    // Twice in the same directory, as two iterations are.
    for _ in 0..2 {
        let finished = try_briefly(definition, scratch.path(), kept.path());
        let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
        assert_eq!(
            finished.outcome,
            ExecutionEnd::Exit { code: 0 },
            "{}\n{stdout}\n{stderr}",
            definition.name
        );
        let measured = definition.parse_metrics(&stdout, &stderr, finished.wall_time());
        let measured =
            measured.unwrap_or_else(|error| panic!("{}: {error}\n{stdout}\n{stderr}", definition.name));
        for one in measured.iter().filter(|one| one.metric.primary) {
            assert!(one.value > 0.0, "{}: {one:?}\n{stdout}", definition.name);
        }
    }
    let installed =
        definition.is_built_in() || definition.version.is_empty() || definition.read_version().is_some();
    assert!(installed, "{} says no version", definition.name);
}

#[test]
fn all_workloads_run_and_are_understood() {
    if !host::find_load_binary().is_file() {
        return skip_test("all_workloads_run_and_are_understood", "the example `load` is not built");
    }
    // A start is measured by the whole of perflab, whose own tests run it: `load` has the loads alone. They also build a source
    // that is smaller than a kernel's. The sources of libraries come over the network, and take minutes.
    let apart = ["application-start", "build", "library-build"];
    let loads = |definition: &&WorkloadDefinition| !apart.contains(&definition.name.as_str());
    let catalogue = Catalogue::embedded();
    let all: Vec<&WorkloadDefinition> = catalogue.iter().filter(loads).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(definition) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            run_workload_twice(definition);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

#[test]
fn a_port_in_use_is_a_clear_failure() {
    // It listens and never answers, as a server of somebody else's might.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let catalogue = Catalogue::embedded();
    let paths = HostPaths {
        perflab: host::find_load_binary(),
        scratch: None,
        kept: None,
        case: None,
        free_port: perflab_workload::find_free_port(),
    };
    let scope = host::host_scope();
    for name in ["iperf3", "redis-benchmark"] {
        let definition = catalogue.get(name).unwrap();
        if let Err(missing) = definition.check_requirements() {
            skip_test(name, &missing.to_string());
            continue;
        }
        let given = [("port".to_owned(), i64::from(port).into())].into();
        let parameters = definition.resolve_parameters(&given, &scope).unwrap();
        let tried = try_workload(definition, &parameters, &scope, &paths, LIMIT);
        let found = match tried {
            Err(TrialError::Workload(WorkloadError::PortTaken { port: taken })) => taken == port,
            Ok(finished) => {
                let said = finished.failure().unwrap();
                finished.outcome == ExecutionEnd::Exit { code: 1 }
                    && said.ends_with(&format!("no server on port {port}: is the port in use?"))
            }
            Err(error) => panic!("{name}: {error}"),
        };
        assert!(found, "{name}");
    }
}
