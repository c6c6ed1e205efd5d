//! Family `numa`: nodes, with memory and CPUs of each.

use perflab_model::Scalar;

use super::notes::{FactCollector, parse_cpu_list};

const NODES: &str = "/sys/devices/system/node";

pub(super) fn collect_numa_facts(notes: &mut FactCollector<'_>) {
    let online = format!("{NODES}/online");
    let nodes = notes.read(&online).map(|list| parse_cpu_list(&list)).unwrap_or_default();
    if nodes.is_empty() {
        notes.add("numa.nodes", 1, &format!("assumed: {online} says nothing"));
        return;
    }
    let several = nodes.len() > 1;
    notes.add("numa.nodes", i64::try_from(nodes.len()).unwrap_or(i64::MAX), &online);
    // One node is the whole machine, and its own account may still grow where the kernel initialises memory lazily.
    for node in nodes.into_iter().filter(|_| several) {
        let meminfo = format!("{NODES}/node{node}/meminfo");
        let memory = notes.read(&meminfo).and_then(|text| parse_node_total(&text));
        notes.add_optional(&format!("numa.node{node}.memory"), memory, &meminfo);
        let cpus = format!("{NODES}/node{node}/cpulist");
        // Always text: a list of one CPU is no number.
        let list = notes.read(&cpus).map(Scalar::Text);
        notes.add_optional(&format!("numa.node{node}.cpus"), list, &cpus);
    }
}

/// `Node 0 MemTotal:  24682416 kB`, in bytes.
fn parse_node_total(text: &str) -> Option<i64> {
    let line = text.lines().find(|line| line.contains("MemTotal:"))?;
    line.split_ascii_whitespace().nth(3)?.parse::<i64>().ok()?.checked_mul(1024)
}
