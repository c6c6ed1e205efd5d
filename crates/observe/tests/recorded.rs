//! Monitors and facts on recorded trees, against golden files.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use std::fmt::Write;
use std::path::PathBuf;

use perflab_model::fact_table;
use perflab_model::{CellRow, Nanos, TableCell};
use perflab_observe::{Root, collect_fact_documents, collect_facts, find_monitor, open_monitor};

fn recorded_root(name: &str) -> Root {
    Root(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name))
}

/// Columns with unit and kind, each with its cells of the first rows; then what an error said.
fn render_monitor(root: &Root, monitor: &str) -> String {
    let mut text = String::new();
    let mut monitor = match open_monitor(find_monitor(monitor).unwrap(), root, Nanos(1_000_000_000)) {
        Ok(monitor) => monitor,
        Err(error) => return error.to_string(),
    };
    let mut rows: Vec<CellRow> = Vec::new();
    let sampled = monitor.read_rows(&mut rows);
    for (index, column) in monitor.schema().columns.iter().enumerate() {
        let kind = column.kind.name();
        let cells: Vec<String> = rows.iter().take(4).map(|row| format_cell(&row[index])).collect();
        writeln!(text, "{} [{}] {kind}: {}", column.name, column.unit, cells.join(" | ")).unwrap();
    }
    writeln!(text, "{} rows; {sampled:?}", rows.len()).unwrap();
    text
}

fn format_cell(cell: &TableCell) -> String {
    match cell {
        TableCell::Int(number) => number.to_string(),
        TableCell::Float(number) => format!("{number:.2}"),
        TableCell::Text(text) => text.clone(),
        TableCell::Missing => "-".into(),
    }
}

macro_rules! golden {
    ($($name:ident: $monitor:literal on $tree:literal;)*) => {
        $(#[test] fn $name() { insta::assert_snapshot!(render_monitor(&recorded_root($tree), $monitor)); })*
    };
}

golden! {
    slabinfo: "slabinfo" on "vm-6.18";
    kvm: "kvm" on "written";
    kvm_where_there_is_none: "kvm" on "ubuntu-5.0";
    slabinfo_of_2019: "slabinfo" on "ubuntu-5.0";
    slabinfo_with_odd_names: "slabinfo" on "written";
    slab_caches: "slab-caches" on "vm-6.18";
    slab_caches_that_are_not_there: "slab-caches" on "ubuntu-5.0";
    slab_exact: "slab-exact" on "vm-6.18";
    vmstat: "vmstat" on "vm-6.18";
    meminfo: "meminfo" on "vm-6.18";
    meminfo_of_2019: "meminfo" on "ubuntu-5.0";
    stat: "stat" on "vm-6.18";
    stat_of_an_old_kernel: "stat" on "written";
    diskstats: "diskstats" on "vm-6.18";
    diskstats_without_discards: "diskstats" on "written";
    pressure: "pressure" on "vm-6.18";
    pressure_of_cpu_alone: "pressure" on "written";
    pressure_that_is_not_there: "pressure" on "ubuntu-5.0";
    loadavg: "loadavg" on "vm-6.18";
    net_dev: "net-dev" on "vm-6.18";
    net_dev_with_an_alias: "net-dev" on "written";
    schedstat_that_is_not_there: "schedstat" on "vm-6.18";
    schedstat_15: "schedstat" on "written";
    schedstat_17: "schedstat" on "written-6.15";
    schedstat_of_two_nodes: "schedstat" on "debian-6.1";
    pressure_of_6_1: "pressure" on "debian-6.1";
    buddy: "buddy" on "vm-6.18";
    buddy_of_two_nodes: "buddy" on "debian-6.1";
    zones: "zones" on "vm-6.18";
    zones_of_two_nodes: "zones" on "debian-6.1";
    page_types: "page-types" on "vm-6.18";
    page_types_of_two_nodes: "page-types" on "debian-6.1";
    node: "node" on "vm-6.18";
    nodes: "node" on "debian-6.1";
    node_that_is_not_there: "node" on "ubuntu-5.0";
    node_vmstat: "node-vmstat" on "debian-6.1";
    softnet: "softnet" on "vm-6.18";
    softnet_of_6_1: "softnet" on "debian-6.1";
    net_statistics: "net-statistics" on "vm-6.18";
    swaps: "swaps" on "vm-6.18";
    swaps_in_use: "swaps" on "written";
    zram: "zram" on "vm-6.18";
    zswap: "zswap" on "written";
    zswap_that_is_not_there: "zswap" on "vm-6.18";
    ksm: "ksm" on "vm-6.18";
    khugepaged: "khugepaged" on "vm-6.18";
    thp_sizes: "thp-sizes" on "vm-6.18";
    huge_pages: "huge-pages" on "vm-6.18";
    damon: "damon" on "written";
    ext4: "ext4" on "vm-6.18";
    xfs: "xfs" on "written";
    btrfs: "btrfs" on "written";
    thermal: "thermal" on "written";
    sensors: "sensors" on "written";
    energy: "energy" on "written";
    energy_that_is_not_counted: "energy" on "vm-6.18";
    interrupts: "interrupts" on "vm-6.18";
    interrupts_of_6_1: "interrupts" on "debian-6.1";
    softirqs: "softirqs" on "vm-6.18";
    sched_domains: "sched-domains" on "debian-6.1";
    sched_domains_of_6_15: "sched-domains" on "written-6.15";
    sched_domains_that_are_not_there: "sched-domains" on "vm-6.18";
    net_protocols: "net-protocols" on "vm-6.18";
    cgroup_of_version_2: "cgroup" on "debian-6.1";
    cgroup_of_version_1: "cgroup" on "vm-6.18";
    writeback: "writeback" on "debian-6.1";
    writeback_without_debugfs: "writeback" on "vm-6.18";
    locks: "locks" on "vm-6.18";
    mdstat: "mdstat" on "written";
    nfs_that_is_not_mounted: "nfs" on "vm-6.18";
    gpu_that_is_not_there: "gpu" on "vm-6.18";
    smaps_that_are_not_there: "smaps" on "vm-6.18";
    thermal_that_is_not_there: "thermal" on "vm-6.18";
}

fn render_facts(name: &str) -> String {
    let facts = collect_facts(&recorded_root(name), None).unwrap();
    let lines = facts.iter().map(|(key, fact)| format!("{key} = {} ({})\n", fact.value, fact.source));
    lines.collect()
}

#[test]
fn facts_of_a_machine() {
    insta::assert_snapshot!(render_facts("vm-6.18"));
}

#[test]
fn facts_of_a_tree_with_hardly_anything() {
    insta::assert_snapshot!(render_facts("ubuntu-5.0"));
}

#[test]
fn facts_of_two_nodes_and_cgroups_of_version_2() {
    insta::assert_snapshot!(render_facts("written"));
}

#[test]
fn facts_of_a_server() {
    insta::assert_snapshot!(render_facts("written-server"));
}

#[test]
fn documents_of_a_server() {
    let documents = collect_fact_documents(&recorded_root("written-server"), None).unwrap();
    let texts = documents.iter().map(|one| format!("{} ({})\n{}\n", one.name, one.source, one.text));
    insta::assert_snapshot!(texts.collect::<String>());
}

#[test]
fn documents_of_some_families_only_and_of_a_machine_that_has_none() {
    let (server, kernel) = (recorded_root("written-server"), ["kernel".to_owned()]);
    let names = |root: &Root, families: Option<&[String]>| -> Vec<String> {
        collect_fact_documents(root, families).unwrap().into_iter().map(|one| one.name).collect()
    };
    assert_eq!(names(&server, Some(&kernel)), ["kernel-config"]);
    assert_eq!(names(&server, Some(&[])), Vec::<String>::new());
    assert_eq!(names(&recorded_root("ubuntu-5.0"), None), Vec::<String>::new());
    assert!(collect_fact_documents(&server, Some(&["kernels".to_owned()])).is_err());
}

/// What nobody may wait for or hold: FIFOs, endless files, links into a circle, more files and longer values than any kernel has.
#[test]
fn a_tree_that_somebody_made_neither_blocks_nor_fills_the_memory() {
    let root = tempfile::tempdir().unwrap();
    let make_folder = |path: &str| {
        let folder = root.path().join(path);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    };
    let (sys, cpus) = (make_folder("proc/sys/vm"), make_folder("sys/devices/system/cpu"));
    for path in [
        sys.join("fifo"),
        cpus.join("isolated"),
        root.path().join("proc/cmdline"),
        root.path().join("proc/config.gz"),
    ] {
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
    }
    std::fs::write(sys.join("swappiness"), "60\n").unwrap();
    std::fs::write(sys.join("enormous"), vec![b'1'; 8 << 20]).unwrap();
    std::os::unix::fs::symlink("/dev/zero", root.path().join("proc/cpuinfo")).unwrap();
    std::os::unix::fs::symlink(&sys, sys.join("circle")).unwrap();
    let many = make_folder("proc/sys/net");
    let value = "x".repeat(4000);
    (0..1000).for_each(|number| std::fs::write(many.join(format!("{number}")), &value).unwrap());
    let root = Root(root.path().to_owned());
    let facts = collect_facts(&root, None).unwrap();
    assert_eq!(facts.text(&fact_table::SYSCTL.key("vm.swappiness")), "60");
    assert!(
        facts.value(&fact_table::CPU_MODEL).is_none() && facts.value(&fact_table::KERNEL_CMDLINE).is_none()
    );
    let documents = collect_fact_documents(&root, None).unwrap();
    let [tunables] = documents.as_slice() else { panic!("{} documents", documents.len()) };
    assert!(tunables.text.len() < perflab_model::FactDocument::LONGEST);
    let left_out = tunables.text.lines().last().unwrap();
    assert!(left_out.starts_with('#'), "{left_out}");
}

#[test]
fn facts_of_some_families_only() {
    let wanted = ["numa".to_owned(), "clocksource".to_owned()];
    let facts = collect_facts(&recorded_root("vm-6.18"), Some(&wanted)).unwrap();
    assert!(facts.iter().all(|(key, _)| key.starts_with("numa.") || key.starts_with("clocksource.")));
    assert_eq!(facts.integer(&fact_table::NUMA_NODES), Some(1));
}

#[test]
fn a_strange_family_gets_the_nearest_one() {
    let error = collect_facts(&recorded_root("vm-6.18"), Some(&["mitigation".to_owned()])).unwrap_err();
    assert_eq!(error.to_string(), "`mitigation` is no family of facts; did you mean `mitigations`?");
}
