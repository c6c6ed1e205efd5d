//! On the machine that runs the tests: every monitor opens or says why not, and facts are there.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use std::collections::{HashMap, HashSet};

use perflab_model::{CellRow, Nanos, Scalar, SeriesSchema, TableCell};
use perflab_observe::{
    Monitor, ObserveError, Root, all_monitors, collect_facts, find_monitor, open_monitor, read_boot_id,
};

#[test]
fn every_monitor_reads_this_kernel_or_says_why_not() {
    for kind in all_monitors() {
        let mut rows = Vec::new();
        let sampled = open_monitor(kind, &Root::host(), Nanos(1_000_000_000)).and_then(|mut monitor| {
            monitor.read_rows(&mut rows)?;
            rows.clear();
            monitor.read_rows(&mut rows)?;
            Ok(monitor.schema().columns.len())
        });
        match sampled {
            Ok(columns) => assert!(rows.iter().all(|row| row.len() == columns), "{}", kind.name),
            Err(error @ ObserveError::Malformed { .. }) => panic!("{error}"),
            // They count what a study names.
            Err(ObserveError::NothingCounted { .. }) => assert!(kind.name.ends_with("counters")),
            Err(ObserveError::NoEvents) => assert_eq!(kind.name, "events"),
            Err(error) => assert!(error.to_string().starts_with(kind.source), "{error}"),
        }
    }
}

#[test]
fn this_kernel_has_the_files_that_every_linux_has() {
    for name in ["vmstat", "meminfo", "stat", "loadavg"] {
        let mut rows = Vec::new();
        open_monitor(find_monitor(name).unwrap(), &Root::host(), Nanos(1))
            .unwrap()
            .read_rows(&mut rows)
            .unwrap();
        assert!(!rows.is_empty(), "{name}");
    }
}

/// Whether we are root; says so where not, and fails where that is wanted.
fn is_root(name: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    assert!(root || std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{name}: not root");
    if !root {
        eprintln!("SKIP {name}: not root");
    }
    root
}

/// Whether this kernel has SLUB's files; says so where not.
fn has_slub(name: &str) -> bool {
    let has = ["/proc/slabinfo", "/sys/kernel/slab"].iter().all(|path| std::path::Path::new(path).exists());
    if !has {
        eprintln!("SKIP {name}: this kernel lacks /proc/slabinfo or /sys/kernel/slab");
    }
    has
}

#[test]
fn needs_root_slab_monitors_are_refused_to_others_with_what_root_would_add() {
    const NOBODY: u32 = 65_534;
    let name = "needs_root_slab_monitors_are_refused_to_others_with_what_root_would_add";
    if !is_root(name) || !has_slub(name) {
        return;
    }
    let refused = |monitor: &'static str| {
        // Only this thread becomes nobody.
        let refused = std::thread::spawn(move || {
            let nobody = rustix::process::Uid::from_raw(NOBODY);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            open_monitor(find_monitor(monitor).unwrap(), &Root::host(), Nanos(1))
                .map(|_| ())
                .unwrap_err()
                .to_string()
        });
        refused.join().unwrap()
    };
    for (monitor, source) in [
        ("slabinfo", "/proc/slabinfo"),
        ("slab-caches", "/sys/kernel/slab/"),
        ("slab-exact", "/sys/kernel/slab/"),
    ] {
        let message = refused(monitor);
        let (path, explained) = message.split_once(": permission denied; it needs root; ").unwrap();
        assert!(path.starts_with(source), "{path}");
        assert_eq!(
            explained,
            "root would add objects, sizes and slabs of every cache (/proc/slabinfo), and their alignment, order, \
             aliases and exact counts (/sys/kernel/slab); the totals remain in meminfo (Slab, SReclaimable, \
             SUnreclaim) and vmstat (nr_slab_reclaimable, nr_slab_unreclaimable)"
        );
    }
}

/// Rows by cache and the integer that follows it: the integers that come after, and whether the row has a flag.
type SlabTickRows = HashMap<(String, i64), (Vec<Option<i64>>, bool)>;

/// One tick of a monitor of the slab allocator.
fn read_slab_tick(monitor: &mut dyn Monitor) -> SlabTickRows {
    let mut rows = Vec::new();
    monitor.read_rows(&mut rows).unwrap();
    let integer = |cell: &TableCell| if let TableCell::Int(number) = cell { Some(*number) } else { None };
    let keyed = rows.into_iter().map(|row| {
        let (TableCell::Text(cache), Some(number)) = (&row[0], integer(&row[1])) else { panic!("{row:?}") };
        let flagged = row.last() != Some(&TableCell::Text(String::new()));
        ((cache.clone(), number), (row.iter().skip(2).map(integer).collect(), flagged))
    });
    keyed.collect()
}

#[test]
fn needs_root_proc_and_sysfs_agree_on_every_cache_that_stands_still() {
    let name = "needs_root_proc_and_sysfs_agree_on_every_cache_that_stands_still";
    if !is_root(name) || !has_slub(name) {
        return;
    }
    let opened = |monitor| open_monitor(find_monitor(monitor).unwrap(), &Root::host(), Nanos(1)).unwrap();
    let (mut proc, mut sysfs) = (opened("slabinfo"), opened("slab-exact"));
    let (mut agreed, mut parted) = (HashSet::new(), HashMap::new());
    // A cache may move and come back between two looks: it has many occasions to agree.
    for _ in 0..30 {
        let (before, exact, after) =
            (read_slab_tick(&mut *proc), read_slab_tick(&mut *sysfs), read_slab_tick(&mut *proc));
        let still = before.iter().filter(|(key, row)| key.1 == 0 && !row.1 && after.get(*key) == Some(*row));
        for ((cache, _), (row, _)) in still {
            let Some((counts, _)) = exact.get(&(cache.clone(), -1)) else { continue };
            // active_objs, num_objs, num_slabs against objects, total_objects, slabs
            match [row[0], row[1], row[6]] == [counts[0], counts[1], counts[2]] {
                true => drop(agreed.insert(cache.clone())),
                false => drop(parted.insert(cache.clone(), (row.clone(), counts.clone()))),
            }
        }
    }
    parted.retain(|cache, _| !agreed.contains(cache));
    assert!(parted.is_empty(), "{parted:?}");
    assert!(agreed.len() > 50, "only {} caches stood still", agreed.len());
}

#[test]
fn needs_root_sizes_and_names_of_sysfs_are_those_of_proc() {
    let name = "needs_root_sizes_and_names_of_sysfs_are_those_of_proc";
    if !is_root(name) || !has_slub(name) {
        return;
    }
    let rows = |monitor| {
        let mut monitor = open_monitor(find_monitor(monitor).unwrap(), &Root::host(), Nanos(1)).unwrap();
        let mut rows = Vec::new();
        monitor.read_rows(&mut rows).unwrap();
        (monitor.schema().clone(), rows)
    };
    // Caches of other tests' mounts come and go: what stood there before and after is compared.
    let ((proc, before), (sysfs, caches), (_, after)) =
        (rows("slabinfo"), rows("slab-caches"), rows("slabinfo"));
    let at = |schema: &SeriesSchema, row: &CellRow, name: &str| {
        row[schema.columns.iter().position(|column| column.name == name).unwrap()].clone()
    };
    for row in before.iter().filter(|row| after.iter().any(|later| later[..2] == row[..2])) {
        let same_name = |cache: &&CellRow| cache[0] == row[0];
        let Some(cache) = caches.iter().find(same_name) else { panic!("{:?} is not in sysfs", row[0]) };
        assert_eq!(at(&sysfs, cache, "slab_size"), at(&proc, row, "objsize"), "{:?}", row[0]);
        assert_eq!(at(&sysfs, cache, "objs_per_slab"), at(&proc, row, "objperslab"), "{:?}", row[0]);
        let (TableCell::Int(order), TableCell::Int(pages)) =
            (at(&sysfs, cache, "order"), at(&proc, row, "pagesperslab"))
        else {
            panic!("{cache:?}")
        };
        assert_eq!(1 << order, pages, "{:?}", row[0]);
    }
}

#[test]
fn expressions_get_their_variables() {
    let facts = collect_facts(&Root::host(), None).unwrap();
    let variables = facts.expression_names();
    for name in ["cpus", "memory", "numa_nodes", "page_size"] {
        assert!(
            matches!(variables.get(name), Some(Scalar::Int(number)) if *number > 0),
            "{name}: {variables:?}"
        );
    }
    assert!(facts.iter().all(|(_, fact)| !fact.source.is_empty()));
}

#[test]
fn facts_that_do_not_vary_are_the_same_twice() {
    let (first, second) =
        (collect_facts(&Root::host(), None).unwrap(), collect_facts(&Root::host(), None).unwrap());
    let differences = first.changes_to(&second);
    // Other tests on this machine may mount a disk meanwhile.
    let of_ours: Vec<_> =
        differences.iter().filter(|difference| !difference.key.starts_with("disk.")).collect();
    assert!(of_ours.is_empty(), "{of_ours:?}");
}

#[test]
fn a_boot_has_an_id() {
    assert_eq!(read_boot_id(&Root::host()), read_boot_id(&Root::host()));
    assert_eq!(read_boot_id(&Root("/nowhere".into())), "");
}
