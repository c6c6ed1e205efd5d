//! The monitors of `/sys/kernel/slab` on trees written here: kernels and machines that are not at hand.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use std::fs;
use std::os::unix::fs::symlink;

use perflab_model::{CellRow, Nanos, TableCell};
use perflab_observe::{Monitor, Root, find_monitor, open_monitor};

/// A tree that is gone with this value.
struct TemporarySlabTree {
    root: Root,
    _keep: tempfile::TempDir,
}

impl TemporarySlabTree {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let machine = TemporarySlabTree { root: Root(keep.path().into()), _keep: keep };
        fs::create_dir_all(machine.root.path("/sys/kernel/slab")).unwrap();
        machine
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.root.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// A cache of 10 objects a slab, with these attributes more.
    fn add_cache(&self, directory: &str, attributes: &[(&str, &str)]) {
        let usual = [("object_size", "100"), ("slab_size", "104"), ("objs_per_slab", "10"), ("order", "0")];
        for (name, text) in usual.iter().chain(attributes) {
            self.write(&format!("/sys/kernel/slab/{directory}/{name}"), format!("{text}\n"));
        }
    }

    fn add_alias(&self, name: &str, directory: &str) {
        symlink(directory, self.root.path("/sys/kernel/slab").join(name)).unwrap();
    }

    fn remove_cache(&self, directory: &str) {
        fs::remove_dir_all(self.root.path("/sys/kernel/slab").join(directory)).unwrap();
    }

    fn write_slabinfo(&self, names: &[&str]) {
        let lines: String = names
            .iter()
            .map(|name| format!("{name} 1 10 104 10 1 : tunables 0 0 0 : slabdata 1 1 0\n"))
            .collect();
        self.write("/proc/slabinfo", format!("slabinfo - version: 2.1\n# name\n{lines}"));
    }

    fn open_monitor(&self, monitor: &str) -> Box<dyn Monitor> {
        open_monitor(find_monitor(monitor).unwrap(), &self.root, Nanos(1)).unwrap()
    }

    fn read_tick(&self, monitor: &str, columns: &[&str]) -> Vec<String> {
        read_tick_columns(&mut *self.open_monitor(monitor), columns)
    }
}

/// Those columns of each row.
fn read_tick_columns(monitor: &mut dyn Monitor, columns: &[&str]) -> Vec<String> {
    let mut rows: Vec<CellRow> = Vec::new();
    monitor.read_rows(&mut rows).unwrap();
    let place =
        |name: &&str| monitor.schema().columns.iter().position(|column| column.name == *name).unwrap();
    let places: Vec<usize> = columns.iter().map(place).collect();
    let line =
        |row: &CellRow| places.iter().map(|place| format_cell(&row[*place])).collect::<Vec<_>>().join(" ");
    rows.iter().map(line).collect()
}

fn format_cell(cell: &TableCell) -> String {
    match cell {
        TableCell::Int(number) => number.to_string(),
        TableCell::Float(number) => number.to_string(),
        TableCell::Text(text) => format!("`{text}`"),
        TableCell::Missing => "-".into(),
    }
}

#[test]
fn pages_of_64_kib_are_read_from_the_machine_and_never_guessed() {
    let machine = TemporarySlabTree::new();
    machine.add_cache("dentry", &[]);
    assert_eq!(machine.read_tick("slab-caches", &["cache", "page_size"]), ["`dentry` -"]);
    let vector: Vec<u8> = [33_u64, 7, 6, 65_536, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
    machine.write("/proc/self/auxv", vector);
    assert_eq!(machine.read_tick("slab-caches", &["cache", "page_size"]), ["`dentry` 65536"]);
}

#[test]
fn merged_caches_have_the_name_that_proc_shows_and_all_member_names() {
    let machine = TemporarySlabTree::new();
    machine.add_cache(":0000104", &[]);
    machine.add_alias("rtable", ":0000104");
    machine.add_alias("file_lock_cache", ":0000104");
    machine.add_alias("a name", ":0000104");
    machine.add_cache("dentry", &[]);
    let columns = ["cache", "directory", "aliases"];
    machine.write_slabinfo(&["rtable", "dentry"]);
    let expected = ["`rtable` `:0000104` `a name,file_lock_cache,rtable`", "`dentry` `dentry` ``"];
    assert_eq!(machine.read_tick("slab-caches", &columns), expected);
    fs::remove_file(machine.root.path("/proc/slabinfo")).unwrap();
    assert_eq!(
        machine.read_tick("slab-caches", &columns)[0],
        "`a name` `:0000104` `a name,file_lock_cache,rtable`"
    );
}

#[test]
fn attributes_that_a_kernel_does_not_have_are_missing_and_never_0() {
    let machine = TemporarySlabTree::new();
    machine.add_cache(
        "new",
        &[("sheaf_capacity", "32"), ("reclaim_account", "1"), ("ctor", "init_once+0x0/0x20")],
    );
    machine.add_cache("old", &[("cpu_partial", "13"), ("ctor", ""), ("cache_dma", "0")]);
    let columns = [
        "cache",
        "object_size",
        "cpu_partial",
        "sheaf_capacity",
        "reclaim_account",
        "cache_dma",
        "ctor",
        "flags",
    ];
    let expected = ["`new` 100 - 32 1 - `init_once+0x0/0x20` ``", "`old` 100 13 - - 0 `` ``"];
    assert_eq!(machine.read_tick("slab-caches", &columns), expected);
}

#[test]
fn an_attribute_that_is_no_number_is_missing_and_its_row_flagged() {
    let machine = TemporarySlabTree::new();
    machine.add_cache("dentry", &[("align", "eight"), ("slabs", "2 N0=x"), ("partial", "1 N0=1")]);
    let caches = machine.read_tick("slab-caches", &["cache", "align", "slab_size", "flags"]);
    assert_eq!(caches, ["`dentry` - 104 `malformed`"]);
    let exact = machine.read_tick("slab-exact", &["cache", "slabs", "partial", "flags"]);
    assert_eq!(exact, ["`dentry` - 1 `malformed`"]);
}

#[test]
fn all_caches_are_told_again_when_one_comes_or_goes_and_only_then() {
    let machine = TemporarySlabTree::new();
    machine.add_cache("a", &[]);
    machine.add_cache("b", &[]);
    let mut monitor = machine.open_monitor("slab-caches");
    let mut told = || read_tick_columns(&mut *monitor, &["cache", "object_size", "aliases"]);
    assert_eq!(told(), ["`a` 100 ``", "`b` 100 ``"]);
    assert!(told().is_empty());
    machine.add_cache("c", &[]);
    assert_eq!(told(), ["`a` 100 ``", "`b` 100 ``", "`c` 100 ``"]);
    machine.add_alias("d", "a");
    assert_eq!(told(), ["`a` 100 `d`", "`b` 100 ``", "`c` 100 ``"]);
    assert!(told().is_empty());
    machine.remove_cache("b");
    assert_eq!(told(), ["`a` 100 `d`", "`c` 100 ``"]);
    assert!(told().is_empty());
}

#[test]
fn exact_counts_follow_caches_that_come_and_go() {
    let machine = TemporarySlabTree::new();
    machine.add_cache("a", &[("slabs", "1")]);
    let mut monitor = machine.open_monitor("slab-exact");
    let mut told = || read_tick_columns(&mut *monitor, &["cache", "slabs"]);
    assert_eq!(told(), ["`a` 1"]);
    machine.add_cache("b", &[("slabs", "2")]);
    assert_eq!(told(), ["`a` 1", "`b` 2"]);
    machine.write("/sys/kernel/slab/a/slabs", "3");
    machine.remove_cache("b");
    assert_eq!(told(), ["`a` 3"]);
}

const COUNTS: [&str; 9] = [
    "cache",
    "node",
    "objects",
    "total_objects",
    "slabs",
    "objects_partial",
    "partial",
    "cpu_slabs",
    "flags",
];

#[test]
fn counts_of_two_nodes_and_a_node_left_out_has_none() {
    let machine = TemporarySlabTree::new();
    machine.write("/sys/devices/system/node/online", "0-1\n");
    machine.add_cache(
        "dentry",
        &[
            ("objects", "45 N0=30 N1=15"),
            ("total_objects", "50 N0=30 N1=20"),
            ("slabs", "5 N0=3 N1=2"),
            ("objects_partial", "5 N1=5"),
            ("partial", "1 N1=1"),
            ("cpu_slabs", "0"),
        ],
    );
    let expected =
        ["`dentry` -1 45 50 5 5 1 0 ``", "`dentry` 0 30 30 3 0 0 0 ``", "`dentry` 1 15 20 2 5 1 0 ``"];
    assert_eq!(machine.read_tick("slab-exact", &COUNTS), expected);
    machine.write("/sys/devices/system/node/online", "0\n");
    assert_eq!(
        machine.read_tick("slab-exact", &COUNTS),
        expected[..1],
        "one node's row would repeat the total"
    );
}

#[test]
fn counts_that_contradict_each_other_are_flagged_and_slabs_of_a_lower_order_are_not() {
    let machine = TemporarySlabTree::new();
    let cache = |name: &str, objects: &str, total: &str, partial: &str| {
        machine.add_cache(
            name,
            &[("objects", objects), ("total_objects", total), ("slabs", "2"), ("partial", partial)],
        );
    };
    cache("a-sound", "20", "20", "0");
    cache("b-lower-order", "15", "16", "1");
    cache("c-more-than-all", "21", "20", "0");
    cache("d-more-than-fit", "20", "21", "0");
    cache("e-more-partial-than-slabs", "20", "20", "3");
    let expected = [
        "`a-sound` ``",
        "`b-lower-order` ``",
        "`c-more-than-all` `torn`",
        "`d-more-than-fit` `torn`",
        "`e-more-partial-than-slabs` `torn`",
    ];
    assert_eq!(machine.read_tick("slab-exact", &["cache", "flags"]), expected);
}

#[test]
fn a_tree_without_counts_has_no_rows_and_one_without_directory_is_an_error() {
    let machine = TemporarySlabTree::new();
    machine.add_cache("a", &[]);
    assert!(machine.read_tick("slab-exact", &["cache"]).is_empty());
    let nowhere = Root("/nowhere".into());
    let error =
        open_monitor(find_monitor("slab-exact").unwrap(), &nowhere, Nanos(1)).map(|_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/sys/kernel/slab: no such file or directory; the kernel has it with CONFIG_SLUB and CONFIG_SYSFS"
    );
}
