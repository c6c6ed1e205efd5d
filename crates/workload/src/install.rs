//! How a workload gets onto this host: the distribution's packages, or a source archive whose
//! checksum is known.
//!
//! Owns the plan and its execution. Never runs by itself: `perflab workload install` and a study's
//! install phase ask for it, and what would be done can be shown first.

mod archive;
mod manager;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use manager::PackageManager;

use crate::WorkloadDefinition;
use crate::definition::SourceArchive;

/// What has to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum InstallSteps {
    /// Nothing: a built-in load, or a part of every system.
    Nothing,
    /// Packages.
    Packages {
        /// by whom
        manager: PackageManager,
        /// their names
        packages: Vec<String>,
    },
    /// A source archive is fetched, checked and built.
    Source {
        /// what
        archive: SourceArchive,
        /// the workload's own folder
        into: PathBuf,
    },
}

/// Why it cannot be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// No package for this system and no source.
    #[error("workload `{workload}` has no packages for this system ({found}); {homepage}")]
    NoWay {
        /// the workload
        workload: String,
        /// the package manager that is there
        found: String,
        /// where to look
        homepage: String,
    },
    /// Packages need root.
    #[error("installing packages needs root; run: sudo {command}")]
    NeedsRoot {
        /// what would be run
        command: String,
    },
    /// A command failed.
    #[error("`{command}` failed: {reason}")]
    Failed {
        /// the command
        command: String,
        /// the end of what it said
        reason: String,
    },
    /// The archive is not the one that the definition means.
    #[error("{url}: SHA-256 is {found}, and the definition says {wanted}; nothing was built")]
    Checksum {
        /// the archive
        url: String,
        /// the definition's
        wanted: String,
        /// the file's
        found: String,
    },
    /// A file of ours cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// which
        path: PathBuf,
        /// the system's reason
        source: std::io::Error,
    },
}

/// What would install `definition` here: packages where the system has them, else its source archive.
pub fn plan_install(definition: &WorkloadDefinition) -> Result<InstallSteps, InstallError> {
    let install = &definition.install;
    if *install == crate::definition::InstallSpec::default() {
        return Ok(InstallSteps::Nothing);
    }
    let manager = PackageManager::detect();
    let packages =
        manager.map(|manager| (manager, manager.packages_of(install))).filter(|(_, list)| !list.is_empty());
    if let Some((manager, packages)) = packages {
        return Ok(InstallSteps::Packages { manager, packages: packages.to_vec() });
    }
    match &install.source {
        Some(archive) => {
            Ok(InstallSteps::Source { archive: archive.clone(), into: build_folder(definition) })
        }
        None => Err(InstallError::NoWay {
            workload: definition.name.clone(),
            found: manager.map_or_else(|| "no known package manager".into(), |manager| manager.to_string()),
            homepage: homepage_hint(definition),
        }),
    }
}

/// Does it. `say` hears every command before it is run.
pub fn run_install(steps: &InstallSteps, say: &mut dyn FnMut(&str)) -> Result<(), InstallError> {
    match steps {
        InstallSteps::Nothing => Ok(()),
        InstallSteps::Packages { manager, packages } => install_packages(*manager, packages, say),
        InstallSteps::Source { archive, into } => archive::install_archive(archive, into, say),
    }
}

/// The commands as one would type them, for showing.
pub fn install_commands(steps: &InstallSteps) -> Vec<String> {
    match steps {
        InstallSteps::Nothing => Vec::new(),
        InstallSteps::Packages { manager, packages } => vec![manager.install_command(packages).join(" ")],
        InstallSteps::Source { archive, into } => {
            archive::archive_commands(archive, into).iter().map(|argv| argv.join(" ")).collect()
        }
    }
}

/// What to tell somebody who lacks a workload.
pub(crate) fn install_hint(definition: &WorkloadDefinition) -> String {
    let general = format!("run `perflab workload install {}`", definition.name);
    match plan_install(definition) {
        Ok(InstallSteps::Packages { manager, packages }) => {
            format!("{general}, or `{}`", manager.install_command(&packages).join(" "))
        }
        Ok(InstallSteps::Source { .. }) => general,
        Ok(InstallSteps::Nothing) => "its definition says nothing about installing it".into(),
        Err(_) => homepage_hint(definition),
    }
}

fn homepage_hint(definition: &WorkloadDefinition) -> String {
    match &definition.homepage {
        Some(homepage) => format!("see {homepage}"),
        None => "its definition names no homepage either".into(),
    }
}

/// PATH with the workload's own programs first; none where it is not built from source.
pub(crate) fn program_search_path(definition: &WorkloadDefinition) -> Option<String> {
    definition.install.source.as_ref()?;
    let own = build_folder(definition).join("bin").display().to_string();
    Some(env::var("PATH").map_or_else(|_| own.clone(), |path| format!("{own}:{path}")))
}

/// `$XDG_DATA_HOME/perflab/workloads/NAME`, where source archives are built.
fn build_folder(definition: &WorkloadDefinition) -> PathBuf {
    let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    let data = data.or_else(home).unwrap_or_else(|| "/var/tmp".into());
    data.join("perflab/workloads").join(&definition.name)
}

fn install_packages(
    manager: PackageManager,
    packages: &[String],
    say: &mut dyn FnMut(&str),
) -> Result<(), InstallError> {
    let argv = manager.install_command(packages);
    if !rustix::process::geteuid().is_root() {
        return Err(InstallError::NeedsRoot { command: argv.join(" ") });
    }
    run_command(&argv, None, say)
}

/// Runs one command to its end, silent unless it fails.
fn run_command(
    argv: &[String],
    directory: Option<&Path>,
    say: &mut dyn FnMut(&str),
) -> Result<(), InstallError> {
    let line = argv.join(" ");
    say(&line);
    let failed = |reason: String| InstallError::Failed { command: line.clone(), reason };
    let (program, arguments) = argv.split_first().ok_or_else(|| failed("it is empty".into()))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).env("DEBIAN_FRONTEND", "noninteractive");
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last: Vec<&str> = said.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Err(failed(format!("{}: {}", output.status, last.join(" | "))))
}

#[cfg(test)]
mod tests;
