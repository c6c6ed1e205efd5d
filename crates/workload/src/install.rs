//! How a workload gets onto this host: the distribution's packages, or a source archive of known checksum (fetched
//! with curl, checked, unpacked with tar, built).
//!
//! It never runs by itself: `perflab workload install` and a study's install phase ask for it, and what would be
//! done can be shown first.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fmt, io};

use perflab_model::error_class::{Classify, ErrorClass};
use sha2::{Digest, Sha256};

use crate::definition::{InstallSpec, SourceArchive, WorkloadDefinition};

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
        /// the end of its output
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

impl Classify for InstallError {
    fn class(&self) -> ErrorClass {
        match self {
            InstallError::NoWay { .. }
            | InstallError::NeedsRoot { .. }
            | InstallError::Failed { .. }
            | InstallError::Checksum { .. }
            | InstallError::File { .. } => ErrorClass::Environment,
        }
    }
}

/// What would install `definition` here: packages where the system has them, else its source archive.
pub fn plan_install(definition: &WorkloadDefinition) -> Result<InstallSteps, InstallError> {
    let install = &definition.install;
    if *install == InstallSpec::default() {
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
        InstallSteps::Source { archive, into } => install_archive(archive, into, say),
    }
}

/// The commands as one would type them, for showing.
pub fn install_commands(steps: &InstallSteps) -> Vec<String> {
    match steps {
        InstallSteps::Nothing => Vec::new(),
        InstallSteps::Packages { manager, packages } => vec![manager.install_command(packages).join(" ")],
        InstallSteps::Source { archive, into } => {
            archive_commands(archive, into).iter().map(|argv| argv.join(" ")).collect()
        }
    }
}

/// The hint for a workload that is not installed.
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

/// PATH with what the workload was built as first and the folders that it names last; none where it has neither.
pub(crate) fn program_search_path(definition: &WorkloadDefinition) -> Option<String> {
    let built = definition.install.source.as_ref().map(|_| build_folder(definition).join("bin"));
    let named: Vec<PathBuf> =
        definition.needs.program_folders.iter().flat_map(|one| find_folders(one)).collect();
    if built.is_none() && named.is_empty() {
        return None;
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = built.into_iter().chain(env::split_paths(&path)).chain(named);
    // A folder with a colon in its name cannot be said in PATH; what is there already then has to do.
    env::join_paths(folders).ok()?.into_string().ok()
}

/// The folders of a pattern, the highest version first.
fn find_folders(pattern: &str) -> Vec<PathBuf> {
    let numbers = |path: &PathBuf| -> Vec<u64> {
        let text = path.display().to_string();
        text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
    };
    // The definition was refused if the pattern is none; what cannot be read has no programs for us.
    let mut found: Vec<PathBuf> =
        glob::glob(pattern).into_iter().flatten().flatten().filter(|path| path.is_dir()).collect();
    found.sort_by_key(|path| std::cmp::Reverse(numbers(path)));
    found
}

/// Where `program` is, searched as the system would.
pub(crate) fn find_program(program: &str, path: &str) -> Option<PathBuf> {
    let executable = |file: &PathBuf| {
        file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(executable);
    }
    env::split_paths(path).map(|folder| folder.join(program)).find(executable)
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
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let last: Vec<&str> = stderr.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Err(failed(format!("{}: {}", output.status, last.join(" | "))))
}

fn install_archive(
    archive: &SourceArchive,
    into: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<(), InstallError> {
    let source = into.join("source");
    // A build that failed half-way must not leak into the next.
    if source.exists() {
        fs::remove_dir_all(&source).map_err(|error| file_error(&source, error))?;
    }
    for folder in [&source, &into.join("bin")] {
        fs::create_dir_all(folder).map_err(|error| file_error(folder, error))?;
    }
    let mut commands = archive_commands(archive, into).into_iter();
    if let Some(fetch) = commands.next() {
        run_command(&fetch, None, say)?;
    }
    verify_checksum(archive, &into.join("archive"))?;
    if let Some(unpack) = commands.next() {
        run_command(&unpack, None, say)?;
    }
    commands.try_for_each(|build| run_command(&build, Some(&source), say))?;
    copy_built_program(archive, into)
}

/// Fetch, unpack, then the builds.
fn archive_commands(archive: &SourceArchive, into: &Path) -> Vec<Vec<String>> {
    let file = into.join("archive").display().to_string();
    let source = into.join("source").display().to_string();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let fetch =
        words(&["curl", "--fail", "--silent", "--show-error", "--location", "--output", &file, &archive.url]);
    let unpack =
        words(&["tar", "--extract", "--file", &file, "--directory", &source, "--strip-components=1"]);
    [fetch, unpack].into_iter().chain(archive.build.iter().cloned()).collect()
}

fn verify_checksum(archive: &SourceArchive, path: &Path) -> Result<(), InstallError> {
    let mut hash = Sha256::new();
    let copied = File::open(path).and_then(|mut opened| io::copy(&mut opened, &mut HashWriter(&mut hash)));
    copied.map_err(|error| file_error(path, error))?;
    let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if found.eq_ignore_ascii_case(&archive.sha256) {
        return Ok(());
    }
    Err(InstallError::Checksum { url: archive.url.clone(), wanted: archive.sha256.clone(), found })
}

fn copy_built_program(archive: &SourceArchive, into: &Path) -> Result<(), InstallError> {
    let built = into.join("source").join(&archive.installs);
    let name = built.file_name().unwrap_or_default().to_owned();
    fs::copy(&built, into.join("bin").join(name)).map(drop).map_err(|error| file_error(&built, error))
}

fn file_error(path: &Path, source: io::Error) -> InstallError {
    InstallError::File { path: path.into(), source }
}

/// A hash as something to write to.
struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A distribution's package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageManager {
    /// Debian, Ubuntu
    Apt,
    /// Fedora, RHEL
    Dnf,
    /// SUSE
    Zypper,
    /// Arch Linux
    Pacman,
}

const ALL: [PackageManager; 4] =
    [PackageManager::Apt, PackageManager::Dnf, PackageManager::Zypper, PackageManager::Pacman];

impl PackageManager {
    /// The one of this system, by what is on PATH.
    pub fn detect() -> Option<PackageManager> {
        let path = env::var("PATH").unwrap_or_default();
        ALL.into_iter().find(|manager| {
            find_program(manager.command_prefix().first().copied().unwrap_or_default(), &path).is_some()
        })
    }

    /// argv that installs `packages`, without asking.
    pub fn install_command(self, packages: &[String]) -> Vec<String> {
        self.command_prefix().iter().map(|word| (*word).to_owned()).chain(packages.iter().cloned()).collect()
    }

    fn packages_of(self, install: &InstallSpec) -> &[String] {
        match self {
            PackageManager::Apt => &install.apt,
            PackageManager::Dnf => &install.dnf,
            PackageManager::Zypper => &install.zypper,
            PackageManager::Pacman => &install.pacman,
        }
    }

    fn command_prefix(self) -> &'static [&'static str] {
        match self {
            PackageManager::Apt => &["apt-get", "install", "--yes", "--no-install-recommends"],
            PackageManager::Dnf => &["dnf", "install", "--assumeyes"],
            PackageManager::Zypper => &["zypper", "--non-interactive", "install"],
            PackageManager::Pacman => &["pacman", "--sync", "--needed", "--noconfirm"],
        }
    }
}

impl fmt::Display for PackageManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PackageManager::Apt => "apt",
            PackageManager::Dnf => "dnf",
            PackageManager::Zypper => "zypper",
            PackageManager::Pacman => "pacman",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use perflab_model::study::TomlSource;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn programs_are_found_in_the_folder_of_the_highest_version() {
        let place = tempfile::tempdir().unwrap();
        for folder in ["9.6/bin", "15/bin", "9.10/bin", "15/lib"] {
            fs::create_dir_all(place.path().join(folder)).unwrap();
        }
        fs::write(place.path().join("16"), "").unwrap();
        let found = find_folders(&format!("{}/*/bin", place.path().display()));
        let found: Vec<_> = found.iter().map(|path| path.strip_prefix(place.path()).unwrap()).collect();
        assert_eq!(found, ["15/bin", "9.10/bin", "9.6/bin"].map(Path::new));
        let pattern = format!("[needs]\nprogram-folders = [\"{}/1?/bin\"]", place.path().display());
        let path = program_search_path(&definition_with_install(&pattern)).unwrap();
        assert_eq!(env::split_paths(&path).last().unwrap(), place.path().join("15/bin"));
        assert_eq!(program_search_path(&definition_with_install("")), None);
    }

    fn definition_with_install(install: &str) -> WorkloadDefinition {
        let text = format!(
            "title = \"a\"\nmeasures = \"b\"\nhomepage = \"https://example.org\"\nlicence = \"d\"\nargv = [\"no-such-tool\"]\n\
         {install}\n[[metric]]\nname = \"m\"\nunit = \"s\"\ndirection = \"lower\"\ntime = \"wall\"\n"
        );
        WorkloadDefinition::read(&TomlSource::new("tool.toml", text))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// A source archive whose build copies a script, and its checksum.
    fn build_source_archive(directory: &Path) -> SourceArchive {
        let top = directory.join("tool-1.0");
        fs::create_dir_all(&top).unwrap();
        fs::write(top.join("tool.in"), "#!/bin/sh\necho tool 1.0\n").unwrap();
        let file = directory.join("tool.tar");
        let made =
            Command::new("tar").arg("-C").arg(directory).arg("-cf").arg(&file).arg("tool-1.0").status();
        assert!(made.unwrap().success());
        let sha256 =
            Sha256::digest(fs::read(&file).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect();
        let build = ["cp tool.in tool", "chmod 755 tool"];
        SourceArchive {
            url: format!("file://{}", file.display()),
            sha256,
            build: build.map(|line| line.split(' ').map(str::to_owned).collect()).to_vec(),
            installs: "tool".into(),
        }
    }

    #[test]
    fn a_source_archive_is_checked_built_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let into = directory.path().join("installed");
        let steps =
            InstallSteps::Source { archive: build_source_archive(directory.path()), into: into.clone() };
        let mut output = Vec::new();
        run_install(&steps, &mut |line| output.push(line.to_owned())).unwrap();
        run_install(&steps, &mut |_| {}).unwrap();
        assert_eq!(output, install_commands(&steps));
        let output = Command::new(into.join("bin/tool")).output().unwrap();
        assert_eq!(output.stdout, b"tool 1.0\n");
    }

    #[test]
    fn another_archive_is_refused_before_anything_is_built() {
        let directory = tempfile::tempdir().unwrap();
        let into = directory.path().join("installed");
        let wrong = SourceArchive { sha256: "0".repeat(64), ..build_source_archive(directory.path()) };
        let error = run_install(&InstallSteps::Source { archive: wrong, into: into.clone() }, &mut |_| {})
            .unwrap_err();
        assert!(matches!(error, InstallError::Checksum { .. }), "{error}");
        assert_eq!(fs::read_dir(into.join("source")).unwrap().count(), 0);
    }

    #[test]
    fn a_build_that_fails_says_what_it_said() {
        let directory = tempfile::tempdir().unwrap();
        let build = vec![vec!["cat".to_owned(), "nothing".to_owned()]];
        let archive = SourceArchive { build, ..build_source_archive(directory.path()) };
        let steps = InstallSteps::Source { archive, into: directory.path().join("installed") };
        let error = run_install(&steps, &mut |_| {}).unwrap_err().to_string();
        assert!(
            error.starts_with("`cat nothing` failed: exit status: 1: cat: nothing: No such file"),
            "{error}"
        );
    }

    #[test]
    fn packages_are_asked_for_in_the_managers_own_words() {
        let packages = ["fio".to_owned()];
        assert_eq!(
            PackageManager::Apt.install_command(&packages).join(" "),
            "apt-get install --yes --no-install-recommends fio"
        );
        assert_eq!(
            PackageManager::Pacman.install_command(&packages).join(" "),
            "pacman --sync --needed --noconfirm fio"
        );
    }

    #[test]
    fn what_is_not_installed_says_how() {
        let steps = plan_install(&definition_with_install(""));
        assert_eq!(steps.unwrap(), InstallSteps::Nothing);
        let everywhere = "[install]\napt = [\"p\"]\ndnf = [\"p\"]\nzypper = [\"p\"]\npacman = [\"p\"]";
        let error = definition_with_install(everywhere).check_requirements().unwrap_err().to_string();
        if PackageManager::detect().is_some() {
            // What is to be typed is the machine's own.
            insta::assert_snapshot!(error.split(", or `").next().unwrap(), @"workload `tool`: no-such-tool not installed; run `perflab workload install tool`");
        }
    }
}
