//! Copies of /sys/kernel/slab.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use perflab_model::Scalar;
use perflab_model::fact_table;

use super::bench::{HEAD, ImportTestArchive, find_report, int_cells, text_cells, warning_messages};

/// Makes the recorded tree under `root`.
fn make_slab_tree(root: &Path) {
    fs::create_dir_all(root).unwrap();
    for line in include_str!("../recorded/sysfs.txt").lines() {
        if let Some((name, directory)) = line.split_once(" -> ") {
            symlink(directory, root.join(name)).unwrap();
        } else if let Some((path, value)) = line.split_once('=') {
            let path: PathBuf = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{value}\n")).unwrap();
        }
    }
}

fn make_folder(bench: &ImportTestArchive, name: &str) -> PathBuf {
    bench.write_file(&format!("{name}/mark"), "").parent().unwrap().to_owned()
}

#[test]
fn a_tree_gives_attributes_aliases_and_counts() {
    let bench = ImportTestArchive::new();
    let root = make_folder(&bench, "copied");
    make_slab_tree(&root.join("sys/kernel/slab"));
    let imported = bench.import(&root);
    assert_eq!(imported.kind, "sysfs");
    let run = &imported.run;
    let caches = text_cells(run, "slab-caches", "cache");
    assert_eq!(caches, ["aio_kiocb", "buffer_head", "dentry", "kmalloc-8k", "task_struct", "vm_area_struct"]);
    let aliases = text_cells(run, "slab-caches", "aliases");
    assert_eq!(aliases[1], "buffer_head,ext4_fc_dentry_update");
    assert!(aliases[0].starts_with("aio_kiocb,file_lock_cache,inet_peer"));
    assert_eq!(int_cells(run, "slab-caches", "sheaf_capacity")[5], Some(32));
    assert_eq!(int_cells(run, "slab-caches", "object_size")[4], Some(5952));
    let facts = run.read_record().unwrap().manifest.facts;
    assert_eq!(facts.value(&fact_table::MEMORY_PAGE_SIZE), Some(&Scalar::Int(4096)));
    assert_eq!(int_cells(run, "slab-exact", "node"), [Some(-1); 6], "the machine has one node");
    assert_eq!(int_cells(run, "slab-exact", "partial")[5], Some(143));
    // The kernel leaves out a node that has none (mm/slub.c, `show_slab_objects`).
    assert!(int_cells(run, "slab-exact", "objects_partial").iter().all(Option::is_some));
}

#[test]
fn missing_attributes_are_missing() {
    let bench = ImportTestArchive::new();
    let root = make_folder(&bench, "slab");
    make_slab_tree(&root);
    for name in ["sheaf_capacity", "aliases", "cpu_slabs"] {
        fs::remove_file(root.join("dentry").join(name)).unwrap();
    }
    fs::write(root.join("task_struct/slab_size"), "large\n").unwrap();
    let imported = bench.import(&root);
    assert_eq!(int_cells(&imported.run, "slab-caches", "sheaf_capacity")[2], None);
    assert_eq!(int_cells(&imported.run, "slab-caches", "slab_size")[4], None);
    let took = find_report(&imported, "slab");
    assert_eq!(took.format_counts(), "6 rows read, 6 used, 1 flagged, 0 unusable");
    insta::assert_snapshot!(took.flagged[0].reason, @"malformed: task_struct: a size is missing or no number");
}

#[test]
fn counts_that_contradict_each_other_are_torn() {
    let bench = ImportTestArchive::new();
    let root = make_folder(&bench, "slab");
    make_slab_tree(&root);
    fs::write(root.join("dentry/objects"), "999999999 N0=999999999\n").unwrap();
    let imported = bench.import(&root);
    let flags = text_cells(&imported.run, "slab-exact", "flags");
    assert_eq!(flags.iter().filter(|flag| *flag == "torn").count(), 1);
    insta::assert_snapshot!(warning_messages(&imported).join("\n"), @r#"
slab: 6 rows read, 6 used, 1 flagged, 0 unusable; the first: torn: dentry: objects do not agree with slabs, or an attribute is no count
not read of slab: mark
the files give no time: the run is dated by the file's last change
"#);
}

#[test]
fn a_copy_without_links_says_so() {
    let bench = ImportTestArchive::new();
    let root = make_folder(&bench, "slab");
    make_slab_tree(&root);
    for entry in fs::read_dir(&root).unwrap().map(Result::unwrap) {
        if entry.path().is_symlink() {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    let imported = bench.import(&root);
    insta::assert_snapshot!(warning_messages(&imported).join("\n"), @r#"
slab: no name is a link: the copy lost which caches are merged (copy with `cp -a`)
not read of slab: mark
the files give no time: the run is dated by the file's last change
"#);
}

/// A merged cache stands in /proc/slabinfo under one of its names: then that is its name.
#[test]
fn a_copied_root_tells_names_and_counts_together() {
    let bench = ImportTestArchive::new();
    let root = make_folder(&bench, "root");
    make_slab_tree(&root.join("sys/kernel/slab"));
    let row = |name: &str| format!("{name} 10 42 192 21 1 : tunables 0 0 0 : slabdata 2 2 0\n");
    bench.write_file("root/proc/slabinfo", format!("{HEAD}{}{}", row("file_lock_cache"), row("dentry")));
    let imported = bench.import(&root);
    let names = text_cells(&imported.run, "slab-caches", "cache");
    assert_eq!(names[..3], ["file_lock_cache", "buffer_head", "dentry"]);
    assert_eq!(text_cells(&imported.run, "slab-caches", "directory")[0], ":0000192");
    assert_eq!(imported.run.list_monitors().unwrap(), ["slab-caches", "slab-exact", "slabinfo"]);
}

/// The counts say which nodes there are, where the tree does not.
#[test]
fn a_machine_of_two_nodes_has_a_row_for_each() {
    let bench = ImportTestArchive::new();
    let root = make_folder(&bench, "slab");
    make_slab_tree(&root);
    fs::write(root.join("dentry/slabs"), "5 N0=2 N1=3\n").unwrap();
    let imported = bench.import(&root);
    assert!(int_cells(&imported.run, "slab-exact", "node").contains(&Some(1)));
}

#[test]
fn every_file_of_a_monitor_in_a_copied_root_is_a_series() {
    let bench = ImportTestArchive::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../observe/tests/fixtures/vm-6.18");
    let names = [
        "meminfo",
        "vmstat",
        "stat",
        "loadavg",
        "diskstats",
        "pressure/cpu",
        "pressure/io",
        "pressure/memory",
    ];
    let mut copied = Vec::new();
    for name in names {
        let text = fs::read_to_string(fixtures.join("proc").join(name)).unwrap();
        bench.write_file(&format!("root/proc/{name}"), text);
        copied.push(name.split('/').next().unwrap().to_owned());
    }
    let release = bench.write_file("root/proc/sys/kernel/osrelease", "6.18.44\n");
    copied.sort();
    copied.dedup();
    let imported = bench.import(release.ancestors().nth(4).unwrap());
    assert_eq!(imported.kind, "sysfs");
    let mut monitors = imported.run.list_monitors().unwrap();
    monitors.sort();
    assert_eq!(monitors, copied);
    let facts = imported.run.read_record().unwrap().manifest.facts;
    assert_eq!(facts.value(&fact_table::KERNEL_RELEASE).map(ToString::to_string).as_deref(), Some("6.18.44"));
    assert!(
        imported.file_reports.iter().all(|report| report.rows_unusable == 0),
        "{:?}",
        imported.file_reports
    );
}

/// Nothing in a tree is waited for or read for ever.
#[test]
fn a_tree_with_pipes_and_devices_in_it_ends() {
    let bench = ImportTestArchive::new();
    let root = make_folder(&bench, "slab");
    make_slab_tree(&root);
    for name in ["objects", "ctor"] {
        fs::remove_file(root.join("dentry").join(name)).unwrap();
        symlink("/dev/zero", root.join("dentry").join(name)).unwrap();
    }
    let pipe = root.join("task_struct/partial");
    fs::remove_file(&pipe).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let imported = bench.import(&root);
    assert_eq!(text_cells(&imported.run, "slab-caches", "cache").len(), 6);
}
