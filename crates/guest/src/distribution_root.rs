//! Roots of distributions that debootstrap makes once and the cache keeps: `root = "debootstrap:trixie,fio"`, of a guest or a container.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use perflab_model::StopRequest;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_observe::own_directories::{self, OwnFileAccess, cache_directory};
use perflab_observe::{ChildOptions, child_command, spawn_child};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::kernel::KernelError;
use crate::kernel_cache::CacheLock;
use crate::kernel_package::format_hash;
use crate::kernel_step::KernelProgress;
use crate::program_path::find_program_file;

/// What a root begins with that debootstrap makes.
const PREFIX: &str = "debootstrap:";

/// Says that a root is whole: written last.
const RECORD: &str = "root.json";

/// Whether somebody asked to stop is looked at so often.
const LOOK: Duration = Duration::from_millis(100);

/// So many of debootstrap's last lines are told if it fails.
const LAST_LINES: usize = 3;

/// Mounts of debootstrap's own, /proc among them, and its processes end with it, however it ends. `unshare` starts it as
/// process 1, which no signal but KILL reaches.
const NAMESPACES: [&str; 6] = ["--mount", "--pid", "--fork", "--kill-child", "--propagation=private", "--"];

/// The root has the modes that it says, whatever those of perflab's files; root's programs may not be on the caller's PATH.
const MAKE: &str = "umask 022; PATH=$PATH:/usr/sbin:/sbin; exec debootstrap \"$@\" 2>&1";

/// A release of a distribution with packages, as a study names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DistributionRoot {
    /// As it was written: `debootstrap:trixie,fio`.
    pub text: String,
    /// What debootstrap calls the release: `trixie`, `sid`, `noble`.
    pub suite: String,
    /// Packages besides those that every system of the release has, sorted.
    pub packages: Vec<String>,
}

/// Why there is no such root.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DistributionRootError {
    /// It does not say what debootstrap is to make.
    #[error(
        "`{text}` names no root: {reason}; write debootstrap:RELEASE, as `debootstrap:trixie`, or with packages `debootstrap:trixie,fio,perl`"
    )]
    Text {
        /// as it was written
        text: String,
        /// what is wrong
        reason: String,
    },
    /// It was not made yet.
    #[error(
        "`{text}` was not made yet: `perflab run` makes it, and `perflab run --install-only STUDY` does nothing else"
    )]
    NotMade {
        /// as it was written
        text: String,
    },
    /// debootstrap is not there.
    #[error("`{text}` needs {program}, which is not installed (Debian: apt-get install {program})")]
    NotInstalled {
        /// as it was written
        text: String,
        /// what is missing
        program: &'static str,
    },
    /// Another user wants it.
    #[error(
        "only root can make `{text}`, which has device files and files of many users: name a folder that root has made (`debootstrap {suite} FOLDER`)"
    )]
    NeedsRoot {
        /// as it was written
        text: String,
        /// the release
        suite: String,
    },
    /// debootstrap failed.
    #[error("debootstrap could not make `{text}`: {reason}")]
    Failed {
        /// as it was written
        text: String,
        /// its last words
        reason: String,
    },
    /// The user asked to stop.
    #[error("stopped; nothing is left of `{text}`")]
    Stopped {
        /// as it was written
        text: String,
    },
    /// A file of the cache cannot be written or read.
    #[error("{path}: {source}")]
    File {
        /// which
        path: PathBuf,
        /// the system's reason
        source: std::io::Error,
    },
    /// The lock of the cache.
    #[error(transparent)]
    Lock(#[from] KernelError),
}

impl Classify for DistributionRootError {
    fn class(&self) -> ErrorClass {
        match self {
            DistributionRootError::Text { .. } => ErrorClass::Usage,
            DistributionRootError::NotMade { .. }
            | DistributionRootError::NotInstalled { .. }
            | DistributionRootError::NeedsRoot { .. }
            | DistributionRootError::Failed { .. } => ErrorClass::Environment,
            DistributionRootError::Stopped { .. } => ErrorClass::WorkloadFailed,
            DistributionRootError::File { source, .. } => source.class(),
            DistributionRootError::Lock(error) => error.class(),
        }
    }
}

impl DistributionRootError {
    fn file_error(path: &Path) -> impl FnOnce(std::io::Error) -> DistributionRootError {
        move |source| DistributionRootError::File { path: path.into(), source }
    }
}

/// Who is told what debootstrap does.
pub type RootListener<'a> = dyn FnMut(&str) + 'a;

/// What is kept of how a root was made.
#[derive(Debug, Serialize)]
struct RootRecord<'a> {
    root: &'a DistributionRoot,
    writer: String,
}

impl DistributionRoot {
    /// Reads what a study says; none where it is another kind of root.
    ///
    /// # Errors
    /// The release or a package has no name that a distribution would give.
    pub fn parse(text: &str) -> Option<Result<Self, DistributionRootError>> {
        let mut names = text.strip_prefix(PREFIX)?.split(',').map(str::trim);
        let suite = names.next().unwrap_or_default().to_owned();
        let mut packages: Vec<String> = names.map(str::to_owned).collect();
        packages.sort();
        packages.dedup();
        let wrong = [&suite].into_iter().chain(&packages).find(|name| !is_name(name));
        Some(match wrong {
            None => Ok(DistributionRoot { text: text.into(), suite, packages }),
            Some(name) => {
                let kind = if *name == suite { "release" } else { "package" };
                let reason = format!("no {kind} is called `{name}`");
                Err(DistributionRootError::Text { text: text.into(), reason })
            }
        })
    }

    /// The folder that it was made in, if it was.
    pub fn find(&self) -> Option<PathBuf> {
        self.find_in(&roots_directory())
    }

    fn find_in(&self, roots: &Path) -> Option<PathBuf> {
        let home = roots.join(self.folder_name());
        // One that another user may have put there is not run.
        let folder = own_directories::open_own_directory(&home).ok()??;
        own_directories::open_own_file(&folder, OsStr::new(RECORD), OwnFileAccess::Read).ok()?;
        Some(home.join("root"))
    }

    /// The folder that it was made in.
    ///
    /// # Errors
    /// It was not made yet.
    pub fn require(&self) -> Result<PathBuf, DistributionRootError> {
        self.find().ok_or_else(|| DistributionRootError::NotMade { text: self.text.clone() })
    }

    /// Makes it, unless it is there; `perflab` is this program.
    ///
    /// # Errors
    /// debootstrap is missing or fails, this is not root, or it was stopped; nothing is left then.
    pub fn make(
        &self,
        perflab: &Path,
        stop: &StopRequest,
        tell: &mut RootListener<'_>,
    ) -> Result<PathBuf, DistributionRootError> {
        if let Some(found) = self.find() {
            return Ok(found);
        }
        let text = || self.text.clone();
        if !rustix::process::geteuid().is_root() {
            return Err(DistributionRootError::NeedsRoot { text: text(), suite: self.suite.clone() });
        }
        for program in ["debootstrap", "unshare"] {
            if find_program_file(program).is_none() {
                return Err(DistributionRootError::NotInstalled { text: text(), program });
            }
        }
        let _lock = CacheLock::wait("root", &self.folder_name(), &mut |progress| {
            if let KernelProgress::Step(line) = progress {
                tell(line);
            }
        })?;
        // Whoever held the lock may have made it.
        if let Some(found) = self.find() {
            return Ok(found);
        }
        let roots = roots_directory();
        own_directories::create_own_directory(&roots).map_err(DistributionRootError::file_error(&roots))?;
        // Two folders, as debootstrap gives the root its mode.
        let new = roots.join(format!(".new-{}", self.folder_name()));
        remove_tree(&new)?;
        let made =
            self.run_debootstrap(&new, perflab, stop, tell).and_then(|()| self.put_in_place(&new, &roots));
        if made.is_err() {
            remove_tree(&new)?;
        }
        made
    }

    fn run_debootstrap(
        &self,
        new: &Path,
        perflab: &Path,
        stop: &StopRequest,
        tell: &mut RootListener<'_>,
    ) -> Result<(), DistributionRootError> {
        own_directories::create_own_directory(new).map_err(DistributionRootError::file_error(new))?;
        let mut command = child_command(perflab, ChildOptions { read_only: false, stays: false });
        command.arg("unshare").args(NAMESPACES);
        command.args(["sh", "-c", MAKE, "sh", "--variant=minbase"]);
        if !self.packages.is_empty() {
            command.arg(format!("--include={}", self.packages.join(",")));
        }
        command.arg(&self.suite).arg(new.join("root"));
        command.env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        // ^C is perflab's to pass on.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let failed = |reason: String| DistributionRootError::Failed { text: self.text.clone(), reason };
        let mut child = spawn_child(command).map_err(|error| failed(error.to_string()))?;
        let Some(last) = follow_child(&mut child, stop, tell) else {
            return Err(DistributionRootError::Stopped { text: self.text.clone() });
        };
        match child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) if last.is_empty() => Err(failed(status.to_string())),
            Ok(_) => Err(failed(describe_failure(&last))),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    fn put_in_place(&self, new: &Path, roots: &Path) -> Result<PathBuf, DistributionRootError> {
        let record = new.join(RECORD);
        let content = RootRecord { root: self, writer: format!("perflab {}", env!("CARGO_PKG_VERSION")) };
        let write = |file: File| serde_json::to_writer_pretty(&file, &content).map_err(std::io::Error::from);
        File::create(&record).and_then(write).map_err(DistributionRootError::file_error(&record))?;
        let home = roots.join(self.folder_name());
        // What is there has no record: somebody removed it.
        remove_tree(&home)?;
        fs::rename(new, &home).map_err(DistributionRootError::file_error(&home))?;
        Ok(home.join("root"))
    }

    /// Short, whatever packages it has.
    fn folder_name(&self) -> String {
        match self.packages.as_slice() {
            [] => self.suite.clone(),
            packages => {
                let digest = format_hash(&Sha256::digest(packages.join(",")));
                format!("{}-{}", self.suite, digest.get(..12).unwrap_or(&digest))
            }
        }
    }
}

/// Letters, digits and a few signs; never an option, a path or a mirror.
fn is_name(name: &str) -> bool {
    let is_sign = |sign: char| matches!(sign, '+' | '-' | '.' | '_');
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|one| one.is_ascii_alphanumeric() || is_sign(one))
}

fn roots_directory() -> PathBuf {
    cache_directory().join("roots")
}

fn remove_tree(path: &Path) -> Result<(), DistributionRootError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(DistributionRootError::file_error(path)),
    }
}

/// Tells what it prints until it ends, and returns the last lines; none where it was stopped, and is ended.
fn follow_child(
    child: &mut Child,
    stop: &StopRequest,
    tell: &mut RootListener<'_>,
) -> Option<VecDeque<String>> {
    let lines = read_lines(child);
    let mut last = VecDeque::new();
    loop {
        match lines.recv_timeout(LOOK) {
            Ok(line) => {
                let text = line.strip_prefix("I: ").unwrap_or(&line).trim();
                tell(&perflab_model::remove_control_characters(text));
                if last.len() == LAST_LINES {
                    last.pop_front();
                }
                last.push_back(line);
            }
            Err(RecvTimeoutError::Disconnected) => return Some(last),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if stop.is_requested() {
            // unshare dies, and has the kernel end all that it started.
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
    }
}

/// Lines as they come, so that a silent child can be stopped, too. What is no UTF-8 is replaced.
fn read_lines(child: &mut Child) -> Receiver<String> {
    let (found, lines) = channel();
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                if found.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
            }
        });
    }
    lines
}

/// debootstrap's errors, or what it said last.
fn describe_failure(last: &VecDeque<String>) -> String {
    let errors: Vec<&str> = last.iter().filter_map(|line| line.strip_prefix("E: ")).collect();
    let all: Vec<&str> = last.iter().map(String::as_str).collect();
    let told = if errors.is_empty() { all } else { errors }.join(" | ");
    let hint = match told.as_str() {
        text if text.contains("No such script") => {
            "; it knows no such release (`ls /usr/share/debootstrap/scripts`)"
        }
        text if text.contains("Failed getting release") || text.contains("Couldn't download") => {
            "; is there a network, and does the release have these packages?"
        }
        text if text.contains("No space left") => "; $PERFLAB_CACHE may name another place",
        _ => "",
    };
    format!("{}{hint}", perflab_model::remove_control_characters(told.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_a_release_and_packages_in_any_order() {
        let parse = |text: &str| DistributionRoot::parse(text).unwrap().unwrap();
        let plain = parse("debootstrap:trixie");
        assert_eq!((plain.suite.as_str(), plain.packages.len()), ("trixie", 0));
        assert_eq!(plain.folder_name(), "trixie");
        let (one, other) = (parse("debootstrap:trixie,perl, fio"), parse("debootstrap:trixie,fio,perl,fio"));
        assert_eq!(one.packages, ["fio", "perl"]);
        assert_eq!(one.folder_name(), other.folder_name());
        assert_ne!(one.folder_name(), parse("debootstrap:trixie,fio").folder_name());
        assert!(parse("debootstrap:sid,g++,libstdc++6").packages.contains(&"g++".to_owned()));
    }

    #[test]
    fn what_could_be_an_option_a_path_or_a_mirror_is_refused() {
        for text in
            ["", "-x", "..", "a/b", "trixie,", "trixie,--foreign", "trixie,../x", "trixie http://m", "a\nb"]
        {
            let error = DistributionRoot::parse(&format!("{PREFIX}{text}")).unwrap().unwrap_err();
            assert!(matches!(error, DistributionRootError::Text { .. }), "{text}: {error}");
        }
        for text in ["host", "bare", "/srv/trixie", "image.qcow2:1", "debootstrap"] {
            assert!(DistributionRoot::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn half_a_root_is_none() {
        let roots = tempfile::tempdir().unwrap();
        let root = DistributionRoot::parse("debootstrap:trixie,fio").unwrap().unwrap();
        let new = roots.path().join("new");
        fs::create_dir_all(new.join("root/etc")).unwrap();
        fs::create_dir_all(roots.path().join(root.folder_name()).join("root")).unwrap();
        assert_eq!(root.find_in(roots.path()), None);
        let made = root.put_in_place(&new, roots.path()).unwrap();
        assert_eq!(root.find_in(roots.path()), Some(made.clone()));
        assert!(made.join("etc").is_dir() && !new.exists());
    }

    #[test]
    fn errors_of_debootstrap_are_told_without_what_went_before() {
        let lines = |all: &[&str]| all.iter().map(|line| (*line).to_owned()).collect::<VecDeque<_>>();
        let unknown = ["I: Target architecture", "E: No such script: /usr/share/debootstrap/scripts/trixi"];
        insta::assert_snapshot!(describe_failure(&lines(&unknown)), @"No such script: /usr/share/debootstrap/scripts/trixi; it knows no such release (`ls /usr/share/debootstrap/scripts`)");
        assert_eq!(describe_failure(&lines(&["W: a", "b\u{7}"])), "W: a | b\u{fffd}");
    }
}
