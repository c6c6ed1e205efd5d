//! What a workload needs, held against this machine: programs, root, room on disk, version. Nothing is installed
//! here.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use perflab_model::fact_table::{self, FactKey};
use perflab_model::{Bytes, Facts};

use crate::definition::WorkloadDefinition;
use crate::error::WorkloadError;
use crate::install::{self, find_program};

impl WorkloadDefinition {
    /// Fine, or what is missing and what to do about it.
    pub fn check_requirements(&self) -> Result<(), WorkloadError> {
        let programs = self.missing_programs();
        if !programs.is_empty() {
            let hint = install::install_hint(self);
            return Err(WorkloadError::NotInstalled { workload: self.name.clone(), programs, hint });
        }
        if self.needs.root && !rustix::process::geteuid().is_root() {
            return Err(WorkloadError::NeedsRoot { workload: self.name.clone() });
        }
        Ok(())
    }

    /// Whether the machine has the memory, the CPUs, the nodes and the kernel that the definition asks for. What is not known of it
    /// is not held against it; `kernel_option` gives the value of an option of its kernel.
    ///
    /// # Errors
    /// [`WorkloadError::UnfitMachine`] says what it lacks.
    pub fn check_machine(
        &self,
        facts: &Facts,
        kernel_option: impl Fn(&str) -> Option<String>,
    ) -> Result<(), WorkloadError> {
        let needs = &self.needs;
        let number = |key: &FactKey| facts.integer(key).and_then(|number| u64::try_from(number).ok());
        let memory = needs.memory.zip(number(&fact_table::MEMORY_TOTAL).map(Bytes));
        let memory = memory.filter(|(needed, there)| there < needed);
        let counts =
            [("CPUs", needs.cpus, fact_table::CPU_ONLINE), ("nodes", needs.nodes, fact_table::NUMA_NODES)];
        let counts = counts.into_iter().filter_map(|(noun, needed, key)| {
            let (needed, there) = needed.zip(number(&key))?;
            (there < u64::from(needed)).then(|| format!("{needed} {noun}, and this machine has {there}"))
        });
        let options = needs.kernel_config.iter().filter_map(|option| {
            let option = option.strip_prefix("CONFIG_").unwrap_or(option);
            let (name, wanted) = option.split_once('=').map_or((option, None), |(a, b)| (a, Some(b)));
            let there = kernel_option(name)?;
            let fits = wanted.map_or(there != "n", |wanted| there == wanted);
            (!fits).then(|| format!("a kernel with CONFIG_{option}, and this one has CONFIG_{name}={there}"))
        });
        let memory =
            memory.map(|(needed, there)| format!("{needed} of memory, and this machine has {there}"));
        let lacks: Vec<String> = memory.into_iter().chain(counts).chain(options).collect();
        if lacks.is_empty() {
            return Ok(());
        }
        Err(WorkloadError::UnfitMachine { workload: self.name.clone(), lacks: lacks.join("; ") })
    }

    /// Whether `directory` has the room that the definition asks for.
    pub fn check_disk_room(&self, directory: &Path) -> Result<(), WorkloadError> {
        let (Some(needed), Ok(disk)) = (self.needs.disk, rustix::fs::statvfs(directory)) else {
            return Ok(());
        };
        let free = Bytes(disk.f_bavail.saturating_mul(disk.f_frsize));
        if free >= needed {
            return Ok(());
        }
        let directory = directory.display().to_string();
        Err(WorkloadError::DiskFull { workload: self.name.clone(), directory, needed, free })
    }

    /// The first line that its version command prints; none for built-in loads and where it fails.
    pub fn read_version(&self) -> Option<String> {
        let (program, arguments) = self.version.split_first()?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).env("LC_ALL", "C");
        if let Some(path) = install::program_search_path(self) {
            command.env("PATH", path);
        }
        let output = command.output().ok()?;
        // Some print it to stderr, and some with a failing exit code.
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let lines = text.iter().flat_map(|text| text.lines());
        lines.map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }

    fn missing_programs(&self) -> Vec<String> {
        let path = install::program_search_path(self).or_else(|| env::var("PATH").ok()).unwrap_or_default();
        let missing = |program: &&String| find_program(program, &path).is_none();
        self.needs.programs.iter().filter(missing).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::study::TomlSource;

    use super::*;

    #[test]
    fn a_machine_that_lacks_something_is_told_what() {
        let text = "title = \"t\"\nmeasures = \"m\"\nargv = [\"true\"]\n[needs]\nmemory = \"4GiB\"\ncpus = 4\nnodes = 2\n\
                    kernel-config = [\"NUMA_BALANCING\", \"HZ=1000\", \"UNSEEN\"]\n[[metric]]\nname = \"time\"\nunit = \"s\"\n\
                    direction = \"lower\"\ntime = \"wall\"\n";
        let definition = WorkloadDefinition::read(&TomlSource::new("w.toml", text)).unwrap();
        let check = |memory: i64, cpus: i64, numa: &str| {
            let mut facts = Facts::default();
            facts.add(fact_table::MEMORY_TOTAL, memory << 30, "test");
            facts.add(fact_table::CPU_ONLINE, cpus, "test");
            let option = |name: &str| match name {
                "NUMA_BALANCING" => Some(numa.to_owned()),
                "HZ" => Some("1000".to_owned()),
                _ => None,
            };
            definition.check_machine(&facts, option)
        };
        assert!(check(4, 4, "y").is_ok());
        insta::assert_snapshot!(check(2, 1, "n").unwrap_err(), @"workload `w` needs 4 GiB of memory, and this machine has 2 GiB; 4 CPUs, and this machine has 1; a kernel with CONFIG_NUMA_BALANCING, and this one has CONFIG_NUMA_BALANCING=n");
    }
}
