//! Programs that this thread starts run on given CPUs and take their memory from given nodes: both are inherited, by their children
//! too.

use std::io;
use std::marker::PhantomData;

use perflab_model::placement::MemoryPlacement;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::memory_policy::MemoryPolicy;

/// As long as it lives, programs that this thread starts are placed; then it is as before.
#[derive(Debug)]
pub struct PlacedStart {
    cpus_before: Option<CpuSet>,
    memory_before: Option<MemoryPolicy>,
    /// Affinity and policy are a thread's own.
    of_this_thread: PhantomData<*const ()>,
}

impl PlacedStart {
    /// Places this thread: on `cpus`, where they are given, with memory from `memory_nodes` for policies that take from several.
    /// Both are read back.
    ///
    /// # Errors
    /// The kernel refuses, or gives something else: set_mempolicy(2) is refused in many containers.
    pub fn request(
        cpus: Option<&[u32]>,
        memory: &MemoryPlacement,
        memory_nodes: &[u32],
    ) -> Result<Self, io::Error> {
        let mut placed = PlacedStart { cpus_before: None, memory_before: None, of_this_thread: PhantomData };
        if let Some(cpus) = cpus {
            let wanted = cpu_set(cpus);
            placed.cpus_before = Some(sched_getaffinity(None)?);
            sched_setaffinity(None, &wanted)?;
            if sched_getaffinity(None)? != wanted {
                return Err(io::Error::other("the kernel allows only some of the CPUs"));
            }
        }
        if let Some(wanted) = MemoryPolicy::for_placement(memory, memory_nodes) {
            placed.memory_before = Some(MemoryPolicy::read()?);
            wanted.set()?;
            if MemoryPolicy::read()? != wanted {
                return Err(io::Error::other("the kernel took another memory policy"));
            }
        }
        Ok(placed)
    }
}

impl Drop for PlacedStart {
    fn drop(&mut self) {
        // What was in force a moment ago still may be.
        if let Some(before) = &self.memory_before {
            let _ = before.set();
        }
        if let Some(before) = &self.cpus_before {
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// The CPUs that this thread may use, in ascending order; empty where the kernel has more than can be asked for.
#[must_use]
pub fn list_allowed_cpus() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    let indices = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    indices.filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

fn cpu_set(cpus: &[u32]) -> CpuSet {
    let mut set = CpuSet::new();
    let indices = cpus.iter().filter_map(|cpu| usize::try_from(*cpu).ok());
    indices.filter(|cpu| *cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu));
    set
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn status_line(key: &str) -> String {
        let status = Command::new("cat").arg("/proc/self/status").output().unwrap().stdout;
        let status = String::from_utf8(status).unwrap();
        status.lines().find(|line| line.starts_with(key)).unwrap().to_owned()
    }

    #[test]
    fn a_program_runs_where_it_is_placed_and_the_next_where_it_was() {
        let before = list_allowed_cpus();
        let last = *before.last().unwrap();
        let placed = PlacedStart::request(Some(&[last]), &MemoryPlacement::Default, &[0]).unwrap();
        assert_eq!(status_line("Cpus_allowed_list"), format!("Cpus_allowed_list:\t{last}"));
        drop(placed);
        assert_eq!(list_allowed_cpus(), before);
    }

    #[test]
    fn a_cpu_that_is_not_there_leaves_everything_as_it_was() {
        let before = list_allowed_cpus();
        assert!(PlacedStart::request(Some(&[1023]), &MemoryPlacement::Default, &[0]).is_err());
        assert_eq!(list_allowed_cpus(), before);
    }

    #[test]
    fn a_program_takes_its_memory_from_where_it_is_told() {
        let Ok(before) = MemoryPolicy::read() else { return };
        let Ok(placed) = PlacedStart::request(None, &MemoryPlacement::Bind(vec![0]), &[0]) else { return };
        let maps = Command::new("cat").arg("/proc/self/numa_maps").output().unwrap().stdout;
        let maps = String::from_utf8(maps).unwrap();
        // Kernels without the file have no nodes to choose from.
        assert!(maps.lines().all(|line| line.contains(" bind:0 ") || line.ends_with(" bind:0")), "{maps}");
        drop(placed);
        assert_eq!(MemoryPolicy::read().unwrap(), before);
    }
}
