//! Which CPUs share a core, a last-level cache and a node, and which of them a [`CpuPlacement`] means.

use std::collections::BTreeMap;

use perflab_formats::kernel::small_values::parse_cpu_list;
use perflab_model::placement::{CpuPlacement, MemoryPlacement};

use crate::{ObserveError, Root};

const CPUS: &str = "/sys/devices/system/cpu";

const NODES: &str = "/sys/devices/system/node";

/// One CPU, and what it shares with others: equal values mean the same thing shared.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CpuPosition {
    cpu: u32,
    core: (String, String),
    cache: String,
    node: u32,
}

/// The CPUs that are online, in ascending order, and the nodes that have memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuTopology {
    cpus: Vec<CpuPosition>,
    memory_nodes: Vec<u32>,
}

impl CpuTopology {
    /// Reads it from below `root`.
    ///
    /// # Errors
    /// The list of CPUs that are online cannot be read.
    pub fn read(root: &Root) -> Result<Self, ObserveError> {
        let online = root.read(&format!("{CPUS}/online"))?;
        let list = |path: &str| root.read(path).map(|text| parse_cpu_list(&text)).unwrap_or_default();
        let nodes = list(&format!("{NODES}/online"));
        let node_of: BTreeMap<u32, u32> = nodes
            .iter()
            .flat_map(|node| list(&format!("{NODES}/node{node}/cpulist")).into_iter().map(|cpu| (cpu, *node)))
            .collect();
        let position = |cpu: u32| {
            let part = |what: &str| root.read(&format!("{CPUS}/cpu{cpu}/topology/{what}")).ok();
            let package = part("physical_package_id").unwrap_or_default();
            let core = part("core_id").unwrap_or_else(|| cpu.to_string());
            let cache = last_level_sharers(root, cpu).unwrap_or_else(|| package.clone());
            CpuPosition {
                cpu,
                core: (package, core),
                cache,
                node: node_of.get(&cpu).copied().unwrap_or_default(),
            }
        };
        let cpus = parse_cpu_list(&online).into_iter().map(position).collect();
        let with_memory = list(&format!("{NODES}/has_memory"));
        let memory_nodes = if with_memory.is_empty() { vec![0] } else { with_memory };
        Ok(CpuTopology { cpus, memory_nodes })
    }

    /// The CPUs that a placement means among those that are `allowed`, in ascending order; none where it leaves all. Of several
    /// groups alike, such as cores, the last is taken: CPU 0 has most interrupts.
    ///
    /// # Errors
    /// [`ObserveError::Unplaceable`]: this machine has no such CPUs, or this process may not use them.
    pub fn choose_cpus(
        &self,
        placement: &CpuPlacement,
        allowed: &[u32],
    ) -> Result<Option<Vec<u32>>, ObserveError> {
        let usable: Vec<&CpuPosition> = self.cpus.iter().filter(|one| allowed.contains(&one.cpu)).collect();
        let refuse = |reason: String| Err(ObserveError::Unplaceable { reason });
        let chosen = match placement {
            CpuPlacement::Any => return Ok(None),
            CpuPlacement::Listed(cpus) => {
                let missing = cpus.iter().find(|cpu| !usable.iter().any(|one| one.cpu == **cpu));
                if let Some(cpu) = missing {
                    return refuse(format!("CPU {cpu} is not online, or this process may not use it"));
                }
                cpus.clone()
            }
            CpuPlacement::OneCpu => usable.last().map(|one| one.cpu).into_iter().collect(),
            CpuPlacement::Siblings => last_group(&usable, |one| one.core.clone(), 2),
            CpuPlacement::SameCache => last_group(&usable, |one| one.cache.clone(), 1),
            CpuPlacement::SameNode => last_group(&usable, |one| one.node, 1),
            CpuPlacement::OnePerCore => one_per_group(&usable, |one| one.core.clone(), 1),
            CpuPlacement::CrossCache => one_per_group(&usable, |one| one.cache.clone(), 2),
            CpuPlacement::CrossNode => one_per_group(&usable, |one| one.node, 2),
        };
        if chosen.is_empty() {
            return refuse(match placement {
                CpuPlacement::Siblings => "no core has two threads that this process may use".into(),
                CpuPlacement::CrossCache => {
                    "there is one last-level cache, or this process may use one".into()
                }
                CpuPlacement::CrossNode => "there is one node, or this process may use one".into(),
                _ => "this process may use no CPU".into(),
            });
        }
        Ok(Some(chosen))
    }

    /// Two halves of the CPUs that are `allowed`, equal as far as the topology tells: as many cores of as many threads each, and
    /// where that is possible as many of every last-level cache, so that what disturbs one disturbs the other. A core without a
    /// partner is in neither. Where there is one core, its threads are the halves.
    ///
    /// # Errors
    /// [`ObserveError::Unplaceable`]: there is one CPU, or no core is like another.
    pub fn split_in_halves(&self, allowed: &[u32]) -> Result<[Vec<u32>; 2], ObserveError> {
        let usable: Vec<&CpuPosition> = self.cpus.iter().filter(|one| allowed.contains(&one.cpu)).collect();
        let mut cores: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        for one in &usable {
            // Neighbours in this order share most.
            cores.entry((one.node, &one.cache, usable_core_number(&usable, one))).or_default().push(one.cpu);
        }
        let mut cores: Vec<Vec<u32>> = cores.into_values().collect();
        if let [threads] = cores.as_slice() {
            cores = threads.iter().map(|cpu| vec![*cpu]).collect();
        }
        let mut halves = [Vec::new(), Vec::new()];
        let mut unpaired: Vec<Vec<u32>> = Vec::new();
        for core in cores {
            match unpaired.iter().position(|other| other.len() == core.len()) {
                Some(index) => {
                    let [first, second] = &mut halves;
                    first.extend(unpaired.swap_remove(index));
                    second.extend(core);
                }
                None => unpaired.push(core),
            }
        }
        halves.iter_mut().for_each(|half| half.sort_unstable());
        if halves.iter().any(Vec::is_empty) {
            let reason = "there are no two equal cores, or threads of one, that this process may use";
            return Err(ObserveError::Unplaceable { reason: reason.into() });
        }
        Ok(halves)
    }

    /// Checks that the nodes that memory is to come from have some.
    ///
    /// # Errors
    /// [`ObserveError::Unplaceable`] names the node that has not.
    pub fn check_memory(&self, placement: &MemoryPlacement) -> Result<(), ObserveError> {
        let named = match placement {
            MemoryPlacement::Bind(nodes) => nodes.as_slice(),
            MemoryPlacement::Preferred(node) => std::slice::from_ref(node),
            MemoryPlacement::Default | MemoryPlacement::Local | MemoryPlacement::Interleave => &[],
        };
        match named.iter().find(|node| !self.memory_nodes.contains(node)) {
            None => Ok(()),
            Some(node) => Err(ObserveError::Unplaceable { reason: format!("node {node} has no memory") }),
        }
    }

    /// The nodes that have memory, in ascending order.
    pub fn memory_nodes(&self) -> &[u32] {
        &self.memory_nodes
    }
}

/// The lowest CPU of the core that a CPU belongs to, of those that may be used.
fn usable_core_number(usable: &[&CpuPosition], of: &CpuPosition) -> u32 {
    usable.iter().find(|one| one.core == of.core).map_or(of.cpu, |one| one.cpu)
}

/// The folder of the last level of a CPU's caches.
pub(crate) fn find_last_cache(root: &Root, cpu: u32) -> Option<String> {
    let directory = format!("{CPUS}/cpu{cpu}/cache");
    let indices = root.list(&directory).into_iter().filter(|name| name.starts_with("index"));
    let level = |index: &String| root.read(&format!("{directory}/{index}/level")).ok()?.parse::<u32>().ok();
    let (_, last) = indices.filter_map(|index| Some((level(&index)?, index))).max()?;
    Some(format!("{directory}/{last}"))
}

/// The list of CPUs that share the last level of a CPU's caches, as the kernel writes it.
pub(crate) fn last_level_sharers(root: &Root, cpu: u32) -> Option<String> {
    root.read(&format!("{}/shared_cpu_list", find_last_cache(root, cpu)?)).ok()
}

fn group_by<K: Ord>(usable: &[&CpuPosition], key: impl Fn(&CpuPosition) -> K) -> Vec<Vec<u32>> {
    let mut groups: BTreeMap<K, Vec<u32>> = BTreeMap::new();
    for one in usable {
        groups.entry(key(one)).or_default().push(one.cpu);
    }
    groups.into_values().collect()
}

/// Of the groups of at least so many CPUs, that with the CPU of the highest number.
fn last_group<K: Ord>(usable: &[&CpuPosition], key: impl Fn(&CpuPosition) -> K, at_least: usize) -> Vec<u32> {
    let groups = group_by(usable, key).into_iter().filter(|cpus| cpus.len() >= at_least);
    groups.max_by_key(|cpus| cpus.last().copied()).unwrap_or_default()
}

/// The last CPU of each group, where there are at least so many groups.
fn one_per_group<K: Ord>(
    usable: &[&CpuPosition],
    key: impl Fn(&CpuPosition) -> K,
    at_least: usize,
) -> Vec<u32> {
    let groups = group_by(usable, key);
    if groups.len() < at_least {
        return Vec::new();
    }
    let mut chosen: Vec<u32> = groups.iter().filter_map(|cpus| cpus.last().copied()).collect();
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes, each of two cores of two threads with one last-level cache: siblings are n and n + 4, as on most machines.
    fn two_node_machine() -> (tempfile::TempDir, CpuTopology) {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: String, text: &str| {
            let path = folder.path().join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(format!("{CPUS}/online"), "0-7\n");
        write(format!("{NODES}/online"), "0-1\n");
        write(format!("{NODES}/has_memory"), "0\n");
        let shared = ["0-1,4-5", "2-3,6-7"];
        for (node, cpus) in shared.iter().enumerate() {
            write(format!("{NODES}/node{node}/cpulist"), cpus);
        }
        for cpu in 0..8_usize {
            let node = cpu % 4 / 2;
            write(format!("{CPUS}/cpu{cpu}/topology/physical_package_id"), &node.to_string());
            write(format!("{CPUS}/cpu{cpu}/topology/core_id"), &(cpu % 4).to_string());
            for (index, level, cpus) in [(0, "1", ""), (3, "3", shared[node])] {
                write(format!("{CPUS}/cpu{cpu}/cache/index{index}/level"), level);
                write(format!("{CPUS}/cpu{cpu}/cache/index{index}/shared_cpu_list"), cpus);
            }
        }
        let topology = CpuTopology::read(&Root(folder.path().to_owned())).unwrap();
        (folder, topology)
    }

    #[test]
    fn each_placement_is_some_cpus_of_the_machine() {
        let (_folder, topology) = two_node_machine();
        let all: Vec<u32> = (0..8).collect();
        let chosen = |placement: CpuPlacement, allowed: &[u32]| topology.choose_cpus(&placement, allowed);
        let cpus = |placement: CpuPlacement| chosen(placement, &all).unwrap().unwrap();
        assert_eq!(chosen(CpuPlacement::Any, &all).unwrap(), None);
        assert_eq!(cpus(CpuPlacement::OneCpu), [7]);
        assert_eq!(cpus(CpuPlacement::Siblings), [3, 7]);
        assert_eq!(cpus(CpuPlacement::OnePerCore), [4, 5, 6, 7]);
        assert_eq!(cpus(CpuPlacement::SameCache), [2, 3, 6, 7]);
        assert_eq!(cpus(CpuPlacement::CrossCache), [5, 7]);
        assert_eq!(cpus(CpuPlacement::SameNode), [2, 3, 6, 7]);
        assert_eq!(cpus(CpuPlacement::CrossNode), [5, 7]);
        assert_eq!(cpus(CpuPlacement::Listed(vec![0, 6])), [0, 6]);
        // Of the second node's core 3, only one thread may be used.
        assert_eq!(chosen(CpuPlacement::Siblings, &[0, 4, 3]).unwrap().unwrap(), [0, 4]);
    }

    #[test]
    fn halves_are_whole_cores_of_every_cache() {
        let (_folder, topology) = two_node_machine();
        let halves = |allowed: &[u32]| topology.split_in_halves(allowed).unwrap();
        assert_eq!(halves(&[0, 1, 2, 3, 4, 5, 6, 7]), [vec![0, 2, 4, 6], vec![1, 3, 5, 7]]);
        assert_eq!(halves(&[0, 1, 2]), [vec![0], vec![1]], "the third core has no partner");
        assert_eq!(halves(&[0, 4, 1, 2]), [vec![1], vec![2]], "a core of two threads is none of one");
        assert_eq!(halves(&[3, 7]), [vec![3], vec![7]], "one core has two threads");
        let refusal = topology.split_in_halves(&[5]).unwrap_err().to_string();
        insta::assert_snapshot!(refusal, @"there are no two equal cores, or threads of one, that this process may use");
    }

    #[test]
    fn what_a_machine_cannot_have_is_refused() {
        let (_folder, topology) = two_node_machine();
        let refusal = |placement: CpuPlacement, allowed: &[u32]| {
            topology.choose_cpus(&placement, allowed).unwrap_err().to_string()
        };
        insta::assert_snapshot!(refusal(CpuPlacement::Siblings, &[0, 1]), @"no core has two threads that this process may use");
        insta::assert_snapshot!(refusal(CpuPlacement::CrossNode, &[0, 1]), @"there is one node, or this process may use one");
        insta::assert_snapshot!(refusal(CpuPlacement::Listed(vec![9]), &[0, 1]), @"CPU 9 is not online, or this process may not use it");
        let refusal = topology.check_memory(&MemoryPlacement::Bind(vec![0, 1])).unwrap_err().to_string();
        insta::assert_snapshot!(refusal, @"node 1 has no memory");
        assert!(topology.check_memory(&MemoryPlacement::Bind(vec![0])).is_ok());
    }
}
