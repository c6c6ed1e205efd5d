//! Families `memory`, `numa`, `thp`, `reclaim`: sizes, nodes, transparent huge pages, and how the kernel ages and
//! reclaims pages.

use perflab_formats::kernel::meminfo::{find_meminfo_field, find_node_memory};
use perflab_formats::kernel::small_values::parse_cpu_list;
use perflab_model::Scalar;
use perflab_model::fact_table;

use crate::Root;
use crate::facts::collector::FactCollector;

const MEMINFO: &str = "/proc/meminfo";

pub(crate) fn collect_memory_facts(notes: &mut FactCollector<'_>) {
    let text = notes.read(MEMINFO).unwrap_or_default();
    let keys = [
        (fact_table::MEMORY_TOTAL, "MemTotal"),
        (fact_table::MEMORY_AVAILABLE, "MemAvailable"),
        (fact_table::MEMORY_SWAP, "SwapTotal"),
        (fact_table::MEMORY_HUGE_PAGE_SIZE, "Hugepagesize"),
        (fact_table::MEMORY_HUGE_PAGES, "HugePages_Total"),
    ];
    for (key, name) in keys {
        notes.add_optional(key, find_meminfo_field(&text, name), MEMINFO);
    }
    // Files of /proc do not have it, and a recorded tree may be of another machine.
    if notes.root.is_host() {
        let page_size = i64::try_from(rustix::param::page_size()).ok();
        notes.add_optional(fact_table::MEMORY_PAGE_SIZE, page_size, "getauxval(AT_PAGESZ)");
    }
    notes.add_file(fact_table::MEMORY_ZSWAP, "/sys/module/zswap/parameters/enabled");
    notes.add_file(fact_table::MEMORY_KSM, "/sys/kernel/mm/ksm/run");
}

/// Bytes that can be had without swapping; none where the kernel does not say (before Linux 3.14).
pub fn read_available_memory(root: &Root) -> Option<u64> {
    let text = root.read(MEMINFO).ok()?;
    u64::try_from(find_meminfo_field(&text, "MemAvailable")?).ok()
}

const NODES: &str = "/sys/devices/system/node";

pub(crate) fn collect_numa_facts(notes: &mut FactCollector<'_>) {
    let online = format!("{NODES}/online");
    let nodes = notes.read(&online).map(|list| parse_cpu_list(&list)).unwrap_or_default();
    if nodes.is_empty() {
        notes.add(fact_table::NUMA_NODES, 1, &format!("assumed: {online} says nothing"));
        return;
    }
    let several = nodes.len() > 1;
    notes.add(fact_table::NUMA_NODES, i64::try_from(nodes.len()).unwrap_or(i64::MAX), &online);
    // One node is the whole machine, and its own account may still grow where the kernel initialises memory lazily.
    for node in nodes.into_iter().filter(|_| several) {
        let meminfo = format!("{NODES}/node{node}/meminfo");
        let memory = notes.read(&meminfo).and_then(|text| find_node_memory(&text));
        notes.add_optional(fact_table::NUMA_NODE_MEMORY.key(node), memory, &meminfo);
        notes.add_text(fact_table::NUMA_NODE_DISTANCES.key(node), &format!("{NODES}/node{node}/distance"));
        let cpus = format!("{NODES}/node{node}/cpulist");
        // Always text: a list of one CPU is not a number.
        let list = notes.read(&cpus).map(Scalar::Text);
        notes.add_optional(fact_table::NUMA_NODE_CPUS.key(node), list, &cpus);
    }
}

const THP_DIRECTORY: &str = "/sys/kernel/mm/transparent_hugepage";

pub(crate) fn collect_thp_facts(notes: &mut FactCollector<'_>) {
    notes.add_choice(fact_table::THP_ENABLED, &format!("{THP_DIRECTORY}/enabled"));
    notes.add_choice(fact_table::THP_DEFRAG, &format!("{THP_DIRECTORY}/defrag"));
    notes.add_choice(fact_table::THP_SHMEM, &format!("{THP_DIRECTORY}/shmem_enabled"));
    notes.add_file(fact_table::THP_SIZE, &format!("{THP_DIRECTORY}/hpage_pmd_size"));
    notes.add_flag(fact_table::THP_ZERO_PAGE, &format!("{THP_DIRECTORY}/use_zero_page"), "1");
    notes.add_flag(fact_table::THP_KHUGEPAGED_DEFRAG, &format!("{THP_DIRECTORY}/khugepaged/defrag"), "1");
    for name in notes.root.list(THP_DIRECTORY) {
        if let Some(size) = name.strip_prefix("hugepages-") {
            notes.add_choice(fact_table::THP_OF_SIZE.key(size), &format!("{THP_DIRECTORY}/{name}/enabled"));
        }
    }
}

/// Of root alone, all of it.
const DAMON: &str = "/sys/kernel/mm/damon/admin/kdamonds";

pub(crate) fn collect_reclaim_facts(notes: &mut FactCollector<'_>) {
    notes.add_file(fact_table::RECLAIM_LRU_GEN, "/sys/kernel/mm/lru_gen/enabled");
    notes.add_flag(fact_table::RECLAIM_DAMON_RECLAIM, "/sys/module/damon_reclaim/parameters/enabled", "Y");
    for thread in notes.root.list(DAMON) {
        let directory = format!("{DAMON}/{thread}");
        if notes.read(&format!("{directory}/state")).is_some_and(|state| state == "on") {
            let actions = read_damon_actions(notes, &directory);
            notes.add_optional(fact_table::RECLAIM_DAMON.key(thread), actions, &directory);
        }
    }
}

/// What a thread of DAMON does about memory: `pageout`, `cold hugepage`; nothing where it only watches.
fn read_damon_actions(notes: &FactCollector<'_>, thread: &str) -> Option<Scalar> {
    let below = |directory: String| {
        let numbers = notes.root.list(&directory).into_iter().filter(|name| name.parse::<u32>().is_ok());
        numbers.map(|name| format!("{directory}/{name}")).collect::<Vec<_>>()
    };
    let contexts = below(format!("{thread}/contexts"));
    let schemes = contexts.iter().flat_map(|context| below(format!("{context}/schemes")));
    let mut actions: Vec<_> = schemes.filter_map(|scheme| notes.read(&format!("{scheme}/action"))).collect();
    actions.sort();
    actions.dedup();
    (!actions.is_empty()).then(|| Scalar::Text(actions.join(" ")))
}
