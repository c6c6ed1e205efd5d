//! The processes that this one started, and theirs: the workload, as a monitor finds it.

use std::collections::HashMap;
use std::fs;

use perflab_formats::kernel::tasks::TaskStat;

use crate::monitor::tasks::read_small;
use crate::root::Root;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkloadProcess {
    pub(crate) pid: u32,
    pub(crate) comm: String,
}

/// A descendant of a process, and who started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkloadChild {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
}

/// The descendants of a process that live, each behind its parent: by lists of children, which a kernel with CONFIG_PROC_CHILDREN
/// keeps, so that no other process is looked at.
pub(crate) fn list_descendants(root: &Root, process: u32) -> Vec<WorkloadChild> {
    let mut found: Vec<WorkloadChild> = Vec::new();
    let mut parents = vec![process];
    while let Some(parent) = parents.pop() {
        for thread in root.list(&format!("/proc/{parent}/task")) {
            let children = root.read(&format!("/proc/{parent}/task/{thread}/children")).unwrap_or_default();
            for pid in children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()) {
                if found.iter().all(|known| known.pid != pid) {
                    found.push(WorkloadChild { pid, parent });
                    parents.push(pid);
                }
            }
        }
    }
    found
}

/// The descendants of this process, or of the one that a recorded tree calls `self`, in the order of their numbers.
pub(crate) fn list_workload(root: &Root, buffer: &mut Vec<u8>) -> Vec<WorkloadProcess> {
    let proc = root.path("/proc");
    let own = match root.is_host() {
        true => Some(std::process::id()),
        false => {
            read_small(&proc.join("self/stat"), buffer).and_then(|text| text.split_once(' ')?.0.parse().ok())
        }
    };
    let Some(own) = own else { return Vec::new() };
    let mut parents: HashMap<u32, u32> = HashMap::new();
    let mut all = Vec::new();
    for entry in fs::read_dir(&proc).into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let Some(text) = read_small(&proc.join(format!("{pid}/stat")), buffer) else { continue };
        let Some(task) = TaskStat::parse(text) else { continue };
        parents.insert(pid, task.parent);
        all.push(WorkloadProcess { pid, comm: task.comm.to_owned() });
    }
    all.retain(|process| process.pid != own && descends_from(process.pid, own, &parents));
    all.sort_by_key(|process| process.pid);
    all
}

/// A process that ended in the meantime may leave a loop of parents, as numbers come again: no line is longer than all of them.
fn descends_from(pid: u32, ancestor: u32, parents: &HashMap<u32, u32>) -> bool {
    let line = std::iter::successors(parents.get(&pid), |parent| parents.get(*parent));
    line.take(parents.len()).any(|parent| *parent == ancestor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_children_are_of_the_workload_and_loops_end() {
        let parents: HashMap<u32, u32> = [(2, 1), (3, 2), (4, 3), (8, 9), (9, 8)].into();
        assert!([3, 4].iter().all(|pid| descends_from(*pid, 2, &parents)));
        assert!(![1, 2, 8].iter().any(|pid| descends_from(*pid, 2, &parents)));
    }

    #[test]
    fn a_child_of_this_test_is_found() {
        let mut child = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let found = list_workload(&Root::host(), &mut vec![0; 4096]);
        let children = list_descendants(&Root::host(), std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.iter().any(|process| process.pid == child.id()), "{found:?}");
        assert!(children.contains(&WorkloadChild { pid: child.id(), parent: std::process::id() }));
        assert!(!found.iter().any(|process| process.pid == std::process::id()));
    }
}
