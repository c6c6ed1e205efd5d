//! Roots of distributions that debootstrap makes once and the cache keeps: `root = "debootstrap:trixie,fio"`, of a guest or a container.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, SystemTime};

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::{Nanos, StopRequest};
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

/// How a folder begins in which a root is being made.
const NEW: &str = ".new-";

/// A script for each release that debootstrap knows.
const SCRIPTS: &str = "/usr/share/debootstrap/scripts";

/// With less room than this, in bytes, a disk is full.
const LEAST_ROOM: u64 = 16 << 20;

/// Letters of debootstrap's last words that are told: it names each package of many.
const LONGEST_REASON: usize = 300;

/// Whether somebody asked to stop is looked at so often.
const LOOK: Duration = Duration::from_millis(100);

/// So many of debootstrap's last lines are told if it fails.
const LAST_LINES: usize = 3;

/// Mounts of debootstrap's own, /proc among them, and its processes end with it, however it ends. `unshare` starts it as
/// process 1, which no signal but KILL reaches.
const NAMESPACES: [&str; 6] = ["--mount", "--pid", "--fork", "--kill-child", "--propagation=private", "--"];

/// Runs debootstrap with its arguments, the first of which is where the root is made. The root has the modes that it says, whatever those
/// of perflab's files; root's programs may not be on the caller's PATH. What else is mounted is let go of, but for what programs
/// need: a file system that is unmounted meanwhile would stay in use here.
const MAKE: &str = r#"
umask 022
PATH=$PATH:/usr/sbin:/sbin
place=$1; shift
mounts=$(cat /proc/self/mounts)
while read -r _ at _; do
    case $at in
        *\\* | / | /usr* | /bin | /sbin | /lib* | /etc* | /var* | /proc* | /sys* | /dev* | /run* | /opt* | /nix*) continue ;;
    esac
    case $place/ in "$at"/*) continue ;; esac
    umount -l "$at"
done >/dev/null 2>&1 <<MOUNTS
$mounts
MOUNTS
exec debootstrap "$@" "$place" 2>&1
"#;

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
        "only root can make `{text}`, which has device files and files of many users: name a folder that root has made (`{command}`)"
    )]
    NeedsRoot {
        /// as it was written
        text: String,
        /// what root would type
        command: String,
    },
    /// debootstrap has no script for it.
    #[error("`{text}`: debootstrap knows no release `{suite}`; {hint}")]
    NoRelease {
        /// as it was written
        text: String,
        /// the release
        suite: String,
        /// one that is like it
        hint: String,
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
            | DistributionRootError::NoRelease { .. }
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

/// What somebody who waits for a root is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RootProgress<'a> {
    /// Another process makes it.
    Waiting(&'a str),
    /// What debootstrap is at: `Retrieving libc6 2.41-12`.
    Line(&'a str),
}

/// Who is told.
pub type RootListener<'a> = dyn FnMut(RootProgress<'_>) + 'a;

/// What is kept of how a root was made.
#[derive(Debug, Serialize)]
struct RootRecord<'a> {
    root: &'a DistributionRoot,
    writer: String,
    /// When, since 1970.
    made: Nanos,
    /// As [`describe_root_packages`] has them.
    packages: Option<String>,
}

/// A root that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeRoot {
    /// Its folder.
    pub path: PathBuf,
    /// Whether it was made for whoever asked, and not before or by another.
    pub is_new: bool,
}

/// A list of packages longer than this is no list of packages.
const LONGEST_STATUS: u64 = 64 << 20;

/// The packages of a root that Debian's dpkg keeps: how many, and a digest of their names and versions. None of other roots.
#[must_use]
pub fn describe_root_packages(root: &Path) -> Option<String> {
    let mut status = String::new();
    let file = File::open(root.join("var/lib/dpkg/status")).ok()?;
    file.take(LONGEST_STATUS).read_to_string(&mut status).ok()?;
    let is_told = |line: &&str| {
        ["Package: ", "Version: ", "Architecture: "].iter().any(|field| line.starts_with(field))
    };
    let fields: Vec<&str> = status.lines().filter(is_told).collect();
    let count = fields.iter().filter(|line| line.starts_with("Package: ")).count();
    let digest = format_hash(&Sha256::digest(fields.join("\n")));
    (count > 0).then(|| format!("{count} packages, {}", digest.get(..12).unwrap_or(&digest)))
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

    /// Whether another text means the same release and packages.
    #[must_use]
    pub fn is_same(&self, other: &DistributionRoot) -> bool {
        (&self.suite, &self.packages) == (&other.suite, &other.packages)
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

    /// Why it cannot be made here, as far as that is known before.
    ///
    /// # Errors
    /// That.
    pub fn check_makeable(&self) -> Result<(), DistributionRootError> {
        let text = || self.text.clone();
        if !rustix::process::geteuid().is_root() {
            return Err(DistributionRootError::NeedsRoot { text: text(), command: self.command_line() });
        }
        for program in ["debootstrap", "unshare"] {
            if find_program_file(program).is_none() {
                return Err(DistributionRootError::NotInstalled { text: text(), program });
            }
        }
        let known = fs::read_dir(SCRIPTS).into_iter().flatten().flatten();
        let known: Vec<String> = known
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_name(name))
            .collect();
        if known.is_empty() || known.contains(&self.suite) {
            return Ok(());
        }
        Err(DistributionRootError::NoRelease {
            text: text(),
            suite: self.suite.clone(),
            hint: perflab_model::suggest_name(&self.suite, known.iter().map(String::as_str)),
        })
    }

    /// What makes another like it.
    fn command_line(&self) -> String {
        let packages = match self.packages.as_slice() {
            [] => String::new(),
            packages => format!(" --include={}", packages.join(",")),
        };
        format!("debootstrap --variant=minbase{packages} {} FOLDER", self.suite)
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
    ) -> Result<MadeRoot, DistributionRootError> {
        if let Some(path) = self.find() {
            return Ok(MadeRoot { path, is_new: false });
        }
        self.check_makeable()?;
        let mut tell_waiting = |progress: KernelProgress<'_>| {
            if let KernelProgress::Step(line) = progress {
                tell(RootProgress::Waiting(line));
            }
        };
        let lock = CacheLock::wait_until("root", &self.folder_name(), stop, &mut tell_waiting)?;
        let _lock = lock.ok_or_else(|| DistributionRootError::Stopped { text: self.text.clone() })?;
        // Whoever held the lock may have made it.
        if let Some(path) = self.find() {
            return Ok(MadeRoot { path, is_new: false });
        }
        let roots = roots_directory();
        own_directories::create_own_directory(&roots).map_err(DistributionRootError::file_error(&roots))?;
        remove_half_roots(&roots);
        // Two folders, as debootstrap gives the root its mode.
        let new = roots.join(format!("{NEW}{}", self.folder_name()));
        remove_tree(&new)?;
        let made =
            self.run_debootstrap(&new, perflab, stop, tell).and_then(|()| self.put_in_place(&new, &roots));
        if made.is_err() {
            remove_tree(&new)?;
        }
        made.map(|path| MadeRoot { path, is_new: true })
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
        command.args(["sh", "-c", MAKE, "sh"]).arg(new.join("root")).arg("--variant=minbase");
        if !self.packages.is_empty() {
            command.arg(format!("--include={}", self.packages.join(",")));
        }
        command.arg(&self.suite);
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
            Ok(_) if is_full(new) => {
                Err(failed("the disk is full; $PERFLAB_CACHE may name another place".to_owned()))
            }
            Ok(_) => Err(failed(describe_failure(&last))),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    fn put_in_place(&self, new: &Path, roots: &Path) -> Result<PathBuf, DistributionRootError> {
        remove_downloads(&new.join("root"));
        let record = new.join(RECORD);
        let content = RootRecord {
            root: self,
            writer: format!("perflab {}", env!("CARGO_PKG_VERSION")),
            made: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().into(),
            packages: describe_root_packages(&new.join("root")),
        };
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

/// Removes a folder, if it is there. Somebody who is being ended may still write to it.
fn remove_tree(path: &Path) -> Result<(), DistributionRootError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty && attempts < 20 => {
                std::thread::sleep(LOOK);
            }
            removed => return removed.map_err(DistributionRootError::file_error(path)),
        }
    }
}

/// Removes what killed makers left of roots. What cannot be removed is in nobody's way.
fn remove_half_roots(roots: &Path) {
    for entry in fs::read_dir(roots).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        if let Some(name) = name.strip_prefix(NEW)
            && let Ok(Some(_lock)) = CacheLock::take("root", name)
        {
            let _ = remove_tree(&entry.path());
        }
    }
}

/// Removes packages that are installed by now: they would stay as long as the root.
fn remove_downloads(root: &Path) {
    let archives = fs::read_dir(root.join("var/cache/apt/archives")).into_iter().flatten().flatten();
    let packages =
        archives.map(|entry| entry.path()).filter(|path| path.extension() == Some(OsStr::new("deb")));
    packages.for_each(|path| drop(fs::remove_file(path)));
}

/// Whether there is no room left where a root was made.
fn is_full(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|found| found.f_bavail * found.f_frsize < LEAST_ROOM)
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
                tell(RootProgress::Line(&perflab_model::remove_control_characters(text)));
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
        text if text.contains("Failed getting release") => {
            "; is there a network, and does the mirror still have the release?"
        }
        text if text.contains("Couldn't download") => "; is there a network?",
        text if text.contains("Couldn't find these debs") => "; does the release have these packages?",
        text if text.contains("No space left") => "; $PERFLAB_CACHE may name another place",
        _ => "",
    };
    let told = perflab_model::remove_control_characters(told.trim());
    let short: String = told.chars().take(LONGEST_REASON).collect();
    format!("{short}{}{hint}", if short.len() < told.len() { "…" } else { "" })
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
    fn packages_are_told_by_names_and_versions_and_nothing_else() {
        let describe = |status: &str| {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join("var/lib/dpkg")).unwrap();
            fs::write(root.path().join("var/lib/dpkg/status"), status).unwrap();
            describe_root_packages(root.path())
        };
        let status = "Package: a\nStatus: install ok installed\nVersion: 1\n\nPackage: b\nVersion: 2\n";
        let one = describe(status).unwrap();
        assert!(one.starts_with("2 packages, "), "{one}");
        assert_eq!(describe(&status.replace("ok installed", "ok unpacked")).unwrap(), one);
        assert_ne!(describe(&status.replace("Version: 2", "Version: 3")).unwrap(), one);
        assert_eq!(describe(""), None);
        assert_eq!(describe_root_packages(Path::new("/no/such/root")), None);
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
        let missing = ["I: Checking component main", "E: Couldn't find these debs: no-such"];
        insta::assert_snapshot!(describe_failure(&lines(&missing)), @"Couldn't find these debs: no-such; does the release have these packages?");
        let many = format!("E: Couldn't download packages: {}", "libc6 ".repeat(100));
        let told = describe_failure(&lines(&[&many]));
        assert!(
            told.chars().count() < LONGEST_REASON + 50 && told.ends_with("…; is there a network?"),
            "{told}"
        );
        assert_eq!(describe_failure(&lines(&["W: a", "b\u{7}"])), "W: a | b\u{fffd}");
    }
}
