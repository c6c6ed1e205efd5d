//! What differs in the environment of two runs: tunables and kernel options by name, likely causes first.

use fixtures::run_events::{make_manifest, run_events};
use perflab_archive::Archive;
use perflab_model::{FactDocument, Manifest, RunEvent, RunEventKind};

use crate::laboratory::Sandbox;

/// Stores a run of made-up values with the documents of its machine.
fn record_run(laboratory: &Sandbox, label: &str, tunables: &str, options: &str) {
    let manifest = Manifest { label: Some(label.into()), ..make_manifest(2, 4) };
    let archive = Archive::open(&Archive::locate(Some(&laboratory.path("archive")))).unwrap();
    let mut recorder = archive.begin_run(&manifest).unwrap();
    for event in run_events(&manifest) {
        let at = event.at;
        let is_document = matches!(event.what, RunEventKind::Document(_));
        if !is_document {
            recorder.record(&event).unwrap();
            continue;
        }
        for (name, text) in [(FactDocument::SYSCTL, tunables), (FactDocument::KERNEL_CONFIG, options)] {
            let document = FactDocument { name: name.into(), source: "a test".into(), text: text.into() };
            recorder.record(&RunEvent::new(at, RunEventKind::Document(document))).unwrap();
        }
    }
    recorder.finish().unwrap();
}

/// Two machines: one has another swappiness, the other a debug kernel without a driver; counters and ids differ always.
fn record_two_machines() -> Sandbox {
    let laboratory = Sandbox::new();
    record_run(
        &laboratory,
        "plain",
        "fs.dentry-state = 1 2 3\nkernel.core_pattern = core\nkernel.random.uuid = a\nvm.swappiness = 60\n",
        "CONFIG_HZ=250\nCONFIG_E1000=m\n# CONFIG_PROVE_LOCKING is not set\n",
    );
    record_run(
        &laboratory,
        "debug",
        "fs.dentry-state = 4 5 6\nkernel.core_pattern = dump\nkernel.random.uuid = b\nvm.swappiness = 10\n",
        "CONFIG_HZ=1000\n# CONFIG_E1000 is not set\nCONFIG_PROVE_LOCKING=y\nCONFIG_DEBUG_LOCK_ALLOC=y\n",
    );
    laboratory
}

/// Rows of `diff` about tunables and options, their cells with bars between.
fn list_differing_tunables(laboratory: &Sandbox, runs: [&str; 2]) -> Vec<String> {
    let said = laboratory.run_successfully(&["diff", runs[0], runs[1], "--format", "csv"]).out;
    let facts = said.lines().filter_map(|line| line.strip_prefix("fact "));
    let is_listed = |line: &&str| line.starts_with("sysctl.") || line.starts_with("kernel.config.");
    facts.filter(is_listed).map(|line| line.replace(',', " | ")).collect()
}

#[test]
fn diff_names_tunables_and_options_that_differ_the_likely_causes_first() {
    assert_eq!(
        list_differing_tunables(&record_two_machines(), ["plain", "debug"]),
        [
            "kernel.config.DEBUG_LOCK_ALLOC | n | y | often",
            "kernel.config.PROVE_LOCKING | n | y | often",
            "kernel.config.HZ | 250 | 1000 | often",
            "sysctl.vm.swappiness | 60 | 10 | often",
            "kernel.config.E1000 | m | n | hardly",
            "sysctl.kernel.core_pattern | core | dump | hardly",
        ]
    );
}

#[test]
fn compare_ranks_them_with_reasons() {
    let laboratory = record_two_machines();
    let found = laboratory.run_json(&["compare", "plain", "debug", "--across"]);
    let facts = found["facts"].as_array().unwrap();
    let keys: Vec<(&str, bool)> = facts
        .iter()
        .map(|fact| (fact["key"].as_str().unwrap(), fact["important"].as_bool().unwrap()))
        .filter(|(key, _)| key.starts_with("sysctl.") || key.starts_with("kernel.config."))
        .collect();
    let expected = [
        ("kernel.config.DEBUG_LOCK_ALLOC", true),
        ("kernel.config.PROVE_LOCKING", true),
        ("kernel.config.HZ", true),
        ("sysctl.vm.swappiness", true),
        ("kernel.config.E1000", false),
        ("sysctl.kernel.core_pattern", false),
    ];
    assert_eq!(keys, expected);
    assert!(facts.iter().all(|fact| !fact["reason"].as_str().unwrap().is_empty()), "{facts:?}");
}

/// Copies of /proc of a machine, before and after somebody changed a tunable.
#[test]
fn copied_trees_are_told_apart_by_their_tunables() {
    let laboratory = Sandbox::new();
    for (label, swappiness, pid) in [("before", "60", "100"), ("after", "10", "200")] {
        let tunables = laboratory.path(&format!("{label}/proc/sys"));
        for folder in ["vm", "kernel"] {
            std::fs::create_dir_all(tunables.join(folder)).unwrap();
        }
        std::fs::write(tunables.join("vm/swappiness"), swappiness).unwrap();
        std::fs::write(tunables.join("kernel/ns_last_pid"), pid).unwrap();
        std::fs::write(tunables.join("kernel/hostname"), label).unwrap();
        std::fs::write(
            laboratory.path(&format!("{label}/proc/meminfo")),
            "MemTotal: 1000 kB\nMemFree: 500 kB\n",
        )
        .unwrap();
        let tree = laboratory.path(label).display().to_string();
        laboratory.run_successfully(&["import", &tree, "--label", label]);
    }
    let found = list_differing_tunables(&laboratory, ["before", "after"]);
    assert_eq!(found, ["sysctl.vm.swappiness | 60 | 10 | often"]);
}

#[test]
fn a_run_keeps_the_tunables_of_its_machine_without_what_is_private() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("a", 100);
    laboratory.run_echo("b", 100);
    let archive = Archive::open(&Archive::locate(Some(&laboratory.path("archive")))).unwrap();
    let documents = archive.find_runs("a").unwrap()[0].read_documents().unwrap();
    let tunables = documents.iter().find(|one| one.document.name == FactDocument::SYSCTL).unwrap();
    let names: Vec<&str> =
        tunables.document.text.lines().filter_map(|line| Some(line.split_once(" = ")?.0)).collect();
    assert!(names.contains(&"vm.swappiness") && names.contains(&"kernel.pid_max"), "{names:?}");
    let private = ["kernel.hostname", "kernel.random.boot_id", "net.ipv4.tcp_fastopen_key"];
    assert!(private.iter().all(|name| !names.contains(name)), "{names:?}");
    // Other tests on this machine set tunables meanwhile, but nobody sets these.
    let volatile = ["fs.dentry-state", "fs.file-nr", "fs.inode-nr", "fs.inode-state", "kernel.ns_last_pid"];
    assert!(volatile.iter().any(|name| names.contains(name)), "{names:?}");
    let found = list_differing_tunables(&laboratory, ["a", "b"]);
    let is_volatile =
        |line: &String| volatile.iter().any(|name| line.starts_with(&format!("sysctl.{name} ")));
    assert!(!found.iter().any(is_volatile), "{found:?}");
}
