//! On the machine that runs the tests: every monitor opens or says why not, and facts are there.

use perflab_model::{Nanos, Value};
use perflab_observe::{ObserveError, Root, boot_id, facts, find, monitors, open};

#[test]
fn every_monitor_reads_this_kernel_or_says_why_not() {
    for kind in monitors() {
        let mut rows = Vec::new();
        let sampled = open(kind, &Root::host(), Nanos(1_000_000_000)).and_then(|mut monitor| {
            monitor.sample(&mut rows)?;
            rows.clear();
            monitor.sample(&mut rows)?;
            Ok(monitor.schema().columns.len())
        });
        match sampled {
            Ok(columns) => assert!(rows.iter().all(|row| row.len() == columns), "{}", kind.name),
            Err(error @ ObserveError::Malformed { .. }) => panic!("{error}"),
            Err(error) => assert!(error.to_string().starts_with(kind.source), "{error}"),
        }
    }
}

#[test]
fn this_kernel_has_the_files_that_every_linux_has() {
    for name in ["vmstat", "meminfo", "stat", "loadavg"] {
        let mut rows = Vec::new();
        open(find(name).unwrap(), &Root::host(), Nanos(1)).unwrap().sample(&mut rows).unwrap();
        assert!(!rows.is_empty(), "{name}");
    }
}

#[test]
fn needs_root_slabinfo_is_refused_to_others_with_what_it_needs() {
    const NOBODY: u32 = 65_534;
    let name = "needs_root_slabinfo_is_refused_to_others_with_what_it_needs";
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{name}: not root");
        eprintln!("SKIP {name}: not root, who alone may become somebody else");
        return;
    }
    // Only this thread becomes nobody.
    let refused = std::thread::spawn(|| {
        let nobody = rustix::process::Uid::from_raw(NOBODY);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        open(find("slabinfo").unwrap(), &Root::host(), Nanos(1)).map(|_| ()).unwrap_err().to_string()
    });
    let message = refused.join().unwrap();
    if message.contains("no such file") {
        eprintln!("SKIP {name}: this kernel has no /proc/slabinfo");
        return;
    }
    assert_eq!(message, "/proc/slabinfo: permission denied; it needs root");
}

#[test]
fn expressions_get_their_variables() {
    let facts = facts(&Root::host(), None).unwrap();
    let variables = facts.variables();
    for name in ["cpus", "memory", "numa_nodes", "page_size"] {
        assert!(
            matches!(variables.get(name), Some(Value::Int(number)) if *number > 0),
            "{name}: {variables:?}"
        );
    }
    assert!(facts.0.values().all(|fact| !fact.source.is_empty()));
}

#[test]
fn facts_that_do_not_vary_are_the_same_twice() {
    let (first, second) = (facts(&Root::host(), None).unwrap(), facts(&Root::host(), None).unwrap());
    let differences = first.differences(&second);
    // Other tests on this machine may mount a disk meanwhile.
    let of_ours: Vec<_> =
        differences.iter().filter(|difference| !difference.key.starts_with("disk.")).collect();
    assert!(of_ours.is_empty(), "{of_ours:?}");
}

#[test]
fn a_boot_has_an_id() {
    assert_eq!(boot_id(&Root::host()), boot_id(&Root::host()));
    assert_eq!(boot_id(&Root("/nowhere".into())), "");
}
