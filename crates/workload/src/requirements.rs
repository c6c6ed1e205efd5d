//! What a workload needs, held against this machine: programs, root, room on disk, version. Nothing is installed
//! here.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use perflab_model::Bytes;

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
