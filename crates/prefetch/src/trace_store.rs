//! Traces on disk, one a program: file format, folder, finding the program.
//!
//! A file is a magic word, a version, a checksum, and compressed JSON, written under another name and renamed, so
//! that a full disk or a kill leaves the old one.
//!
//! The folder, for each user: `--store`, else `$PERFLAB_PREFETCH`, else for root `/var/lib/perflab/prefetch`, for
//! others `$XDG_STATE_HOME/perflab/prefetch`. What the daemon learns from another user's startups lies in a folder
//! `user-UID` below.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use perflab_observe::own_directories;
use sha2::{Digest as _, Sha256};

use crate::error::PrefetchError;
use crate::startup_trace::{ProgramTraces, StartupTrace};

const MAGIC: &str = "PLPREFET";

const VERSION: u32 = 1;

const SUM: usize = 16;

const HEAD: usize = MAGIC.len() + 4 + SUM;

/// No trace is longer unpacked: 100,000 files are 30 MB.
const LONGEST: usize = 256 << 20;

/// Reads a trace.
///
/// # Errors
/// A file that is missing, foreign, damaged or newer, each named as such.
pub fn read_trace_file(path: &Path) -> Result<ProgramTraces, PrefetchError> {
    let bytes = read_prefetch_file(path).map_err(PrefetchError::io_error("read", path))?;
    let damaged = |reason: &str| PrefetchError::Damaged { path: path.into(), reason: reason.into() };
    if !bytes.starts_with(MAGIC.as_bytes()) {
        return Err(PrefetchError::Foreign { path: path.into(), magic: MAGIC });
    }
    let version = bytes.get(MAGIC.len()..MAGIC.len() + 4).and_then(|version| version.try_into().ok());
    let found = u32::from_le_bytes(version.ok_or_else(|| damaged("it ends within its head"))?);
    if found > VERSION {
        return Err(PrefetchError::Newer { path: path.into(), found, known: VERSION });
    }
    let sum = bytes.get(HEAD - SUM..HEAD).ok_or_else(|| damaged("it ends within its head"))?;
    let body = bytes.get(HEAD..).unwrap_or_default();
    if trace_checksum(body) != sum {
        return Err(damaged("its checksum is another one"));
    }
    let text = zstd::bulk::decompress(body, LONGEST).map_err(|error| damaged(&error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| damaged(&error.to_string()))
}

/// Reads a file whole; a pipe would be waited for, and a device read for ever.
pub(crate) fn read_prefetch_file(path: &Path) -> io::Result<Vec<u8>> {
    perflab_files::read_finite_file(path, LONGEST as u64)
}

/// Writes a trace.
///
/// # Errors
/// A folder that cannot be written, a full disk; the old trace stays then.
pub fn write_trace_file(path: &Path, traces: &ProgramTraces) -> Result<(), PrefetchError> {
    let failed = || PrefetchError::io_error("write", path);
    let text = serde_json::to_vec(traces).map_err(|error| failed()(error.into()))?;
    let body = zstd::bulk::compress(&text, 9).map_err(failed())?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed())?;
    for part in [MAGIC.as_bytes(), &VERSION.to_le_bytes(), &trace_checksum(&body), &body] {
        file.write_all(part).map_err(failed())?;
    }
    file.as_file().sync_all().map_err(failed())?;
    file.persist(path).map(drop).map_err(|error| failed()(error.error))
}

fn trace_checksum(body: &[u8]) -> [u8; SUM] {
    let mut sum = [0; SUM];
    sum.iter_mut().zip(Sha256::digest(body)).for_each(|(to, from)| *to = from);
    sum
}

const ENDING: &str = "prefetch";

/// A folder of traces.
#[derive(Debug, Clone)]
pub struct TraceStore {
    folder: PathBuf,
    /// the user whose startups are remembered there
    user: u32,
}

/// What the name of another user's folder begins with.
const OF_USER: &str = "user-";

impl TraceStore {
    /// The folder that is asked for, or the usual one. Nothing is made yet.
    pub fn locate(explicit: Option<&Path>) -> Self {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let usual = || match rustix::process::geteuid().is_root() {
            true => PathBuf::from("/var/lib/perflab/prefetch"),
            false => own_directories::state_directory().join("prefetch"),
        };
        let folder =
            explicit.map(PathBuf::from).or_else(|| variable("PERFLAB_PREFETCH")).unwrap_or_else(usual);
        let named = folder.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_prefix(OF_USER));
        let user = named.and_then(|user| user.parse().ok());
        TraceStore { folder, user: user.unwrap_or_else(|| rustix::process::geteuid().as_raw()) }
    }

    /// Where starts of this user are remembered: here, or in a folder of theirs below.
    pub fn for_user(&self, user: u32) -> TraceStore {
        match user == self.user {
            true => self.clone(),
            false => TraceStore { folder: self.folder.join(format!("{OF_USER}{user}")), user },
        }
    }

    /// The file of a program: readable by its name, distinguished by its path.
    pub fn trace_path(&self, program: &Path) -> PathBuf {
        let name = program.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let plain: String = name
            .chars()
            .filter(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(*letter))
            .take(40)
            .collect();
        let digest = Sha256::digest(program.as_os_str().as_encoded_bytes());
        let hash: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{plain}-{hash}.{ENDING}"))
    }

    /// What is known of a program.
    ///
    /// # Errors
    /// [`PrefetchError::Unknown`] where that is nothing; a trace that cannot be read, or that may be of another user's startups.
    pub fn read_trace(&self, program: &Path) -> Result<ProgramTraces, PrefetchError> {
        let path = self.trace_path(program);
        if !path.exists() {
            return Err(PrefetchError::Unknown { program: program.display().to_string(), path });
        }
        let traces = read_trace_file(&path)?;
        // Before users were distinguished, any user's startup taught root's.
        if traces.user.map_or(self.user != 0, |user| user == self.user) {
            Ok(traces)
        } else {
            Err(PrefetchError::OfAnother { path })
        }
    }

    /// Adds a start to what is known of a program; a trace that is damaged is replaced.
    ///
    /// # Errors
    /// A folder that cannot be made or written.
    pub fn add_startup(&self, program: &Path, start: StartupTrace) -> Result<PathBuf, PrefetchError> {
        let fresh = || ProgramTraces::new(program.display().to_string(), self.user);
        let mut traces = match self.read_trace(program) {
            Ok(traces) => traces,
            Err(newer @ PrefetchError::Newer { .. }) => return Err(newer),
            Err(_) => fresh(),
        };
        traces.user = Some(self.user);
        traces.remember(start);
        self.create_folder()?;
        let path = self.trace_path(program);
        write_trace_file(&path, &traces)?;
        Ok(path)
    }

    /// Replaces what is known of a program.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn replace(&self, program: &Path, traces: &ProgramTraces) -> Result<(), PrefetchError> {
        write_trace_file(&self.trace_path(program), traces)
    }

    /// What an argument means that names a trace: a name that something was learnt under, a program, or a script.
    pub fn resolve_name(&self, typed: &OsStr) -> PathBuf {
        let plain = PathBuf::from(typed);
        if self.trace_path(&plain).exists() {
            return plain;
        }
        find_program_path(typed).ok().or_else(|| fs::canonicalize(typed).ok()).unwrap_or(plain)
    }

    /// What is known of every program but this one; what cannot be read is left out.
    pub fn other_programs(&self, program: &Path) -> Vec<ProgramTraces> {
        let all = self.trace_paths().into_iter().filter_map(|path| read_trace_file(&path).ok());
        all.filter(|traces| Path::new(&traces.program) != program).collect()
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the folder where there is none.
    ///
    /// # Errors
    /// A folder that cannot be made.
    pub fn create_folder(&self) -> Result<(), PrefetchError> {
        // What a user starts, and when, is private; nor may others say what is read ahead.
        own_directories::create_own_directory(&self.folder)
            .map(drop)
            .map_err(PrefetchError::io_error("create", &self.folder))
    }

    /// Forgets a program. Whether there was something to forget.
    ///
    /// # Errors
    /// A file that cannot be removed.
    pub fn forget(&self, program: &Path) -> Result<bool, PrefetchError> {
        let path = self.trace_path(program);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(PrefetchError::io_error("remove", &path)(error)),
        }
    }

    /// The files of all programs.
    pub fn trace_paths(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut all: Vec<PathBuf> =
            entries.filter(|path| path.extension().is_some_and(|ending| ending == ENDING)).collect();
        all.sort();
        all
    }
}

/// The program that an argument of a command means, as the shell would find it, without symbolic links.
///
/// # Errors
/// [`PrefetchError::NoProgram`].
pub fn find_program_path(typed: &OsStr) -> Result<PathBuf, PrefetchError> {
    let path = Path::new(typed);
    let found = if typed.as_encoded_bytes().contains(&b'/') {
        path.is_file().then(|| path.to_path_buf())
    } else {
        let all = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&all).map(|folder| folder.join(path)).find(|path| path.is_file())
    };
    let found = found.and_then(|path| fs::canonicalize(path).ok());
    found.ok_or_else(|| {
        let program = path.display().to_string();
        // A path is taken literally: no name of PATH is near it.
        let near = (!program.contains('/')).then(|| nearest_program(&program)).flatten();
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        PrefetchError::NoProgram { program, hint }
    })
}

/// The program of PATH whose name is nearest.
fn nearest_program(name: &str) -> Option<String> {
    let all = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&all).filter_map(|folder| fs::read_dir(folder).ok());
    let names: Vec<String> =
        folders.flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    perflab_model::problem::nearest_name(name, names.iter().map(String::as_str)).map(str::to_owned)
}

/// Programs that start another one, which the next argument names; without a version suffix.
const INTERPRETERS: [&str; 24] = [
    "ash", "bash", "dash", "fish", "guile", "java", "julia", "ksh", "lua", "luajit", "mksh", "node",
    "nodejs", "perl", "php", "pypy", "python", "rscript", "ruby", "sh", "tclsh", "wish", "yash", "zsh",
];

/// Options that take the next argument.
const WITH_VALUE: [&str; 7] = ["-W", "-X", "-I", "-O", "-o", "--rcfile", "--init-file"];

/// Under which name a command is remembered: its program's, or where that is an interpreter that is given a script, the script's. So two
/// applications behind one interpreter have a trace each.
///
/// # Errors
/// [`PrefetchError::NoProgram`].
pub fn trace_name(command: &[OsString]) -> Result<PathBuf, PrefetchError> {
    let (typed, rest) = command
        .split_first()
        .ok_or_else(|| PrefetchError::NoProgram { program: String::new(), hint: String::new() })?;
    let program = find_program_path(typed)?;
    let interpreter = interpreter_name(Path::new(typed)).or_else(|| interpreter_name(&program));
    Ok(interpreter.and_then(|interpreter| find_script(&interpreter, rest)).unwrap_or(program))
}

/// What an interpreter is called without its version.
fn interpreter_name(program: &Path) -> Option<String> {
    let name = program.file_name()?.to_string_lossy().to_lowercase();
    let plain = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || ".-".contains(letter));
    INTERPRETERS.contains(&plain).then(|| plain.to_owned())
}

/// Whether it finds what it runs behind or in place of this option, and not in a script.
fn is_code_option(interpreter: &str, option: &str) -> bool {
    let is_python = ["python", "pypy"].contains(&interpreter);
    let is_shell = interpreter.ends_with("sh") && interpreter != "tclsh" && interpreter != "wish";
    match option {
        "-" => true,
        "-c" => is_python || is_shell,
        "-m" => is_python,
        "-e" | "-E" | "--eval" => !is_python && !is_shell,
        _ => false,
    }
}

/// The first argument of an interpreter that is not an option, where that is a file.
fn find_script(interpreter: &str, arguments: &[OsString]) -> Option<PathBuf> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        if is_code_option(interpreter, &text) {
            return None;
        }
        if WITH_VALUE.contains(&&*text) {
            arguments.next();
        } else if !text.starts_with('-') {
            return Path::new(argument).is_file().then(|| fs::canonicalize(argument).ok())?;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_long_is_refused_and_not_cut() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("long");
        std::fs::File::create(&path).unwrap().set_len(LONGEST as u64 + 1).unwrap();
        assert!(read_prefetch_file(&path).is_err());
    }

    #[test]
    fn scripts_behind_one_interpreter_have_names_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let [one, other] = ["one.py", "other"].map(|name| folder.join(name));
        fs::write(&one, "").unwrap();
        fs::write(&other, "").unwrap();
        let named = |command: &[&str]| {
            let arguments: Vec<OsString> = command.iter().map(OsString::from).collect();
            trace_name(&arguments).unwrap()
        };
        let (shell, text) =
            (find_program_path(OsStr::new("sh")).unwrap(), |path: &Path| path.display().to_string());
        assert_eq!(named(&["sh", &text(&one)]), one);
        assert_eq!(named(&["sh", "-e", "-o", "errexit", "--", &text(&other), &text(&one)]), other);
        for code in [&["sh", "-c", "exit", &text(&one)][..], &["sh", "-ec", "exit"], &["sh", "-s"], &["sh"]] {
            assert_eq!(named(code), shell, "{code:?}");
        }
        assert_eq!(
            named(&["cat", &text(&one)]),
            find_program_path(OsStr::new("cat")).unwrap(),
            "it reads it, and runs nothing"
        );
        for name in ["python3.11", "perl5.36.0", "Rscript", "lua5.4", "pypy3"] {
            assert!(interpreter_name(Path::new(name)).is_some(), "{name}");
        }
        assert!(["shred", "pythonista"].iter().all(|name| interpreter_name(Path::new(name)).is_none()));
        assert!(
            is_code_option("perl", "-e") && is_code_option("python", "-m") && !is_code_option("python", "-E")
        );
    }

    #[test]
    fn each_user_has_a_folder_and_none_reads_what_another_one_taught() {
        let folder = tempfile::tempdir().unwrap();
        let own = TraceStore::locate(Some(folder.path()));
        let start = crate::startup_trace::StartupTrace {
            when: 1,
            source: crate::startup_trace::TraceSource::Traced,
            systems: vec![],
            files: vec![],
        };
        let user = rustix::process::geteuid().as_raw();
        let other = own.for_user(user + 7);
        assert_eq!(own.for_user(user).folder(), own.folder());
        let program = Path::new("/bin/editor");
        let path = other.add_startup(program, start.clone()).unwrap();
        assert!(
            other.read_trace(program).is_ok()
                && matches!(own.read_trace(program), Err(PrefetchError::Unknown { .. }))
        );
        assert!(
            TraceStore::locate(Some(path.parent().unwrap())).read_trace(program).is_ok(),
            "its folder says whose it is"
        );
        fs::copy(&path, own.trace_path(program)).unwrap();
        assert!(matches!(own.read_trace(program), Err(PrefetchError::OfAnother { .. })));
        own.add_startup(program, start).unwrap();
        assert_eq!(own.read_trace(program).unwrap().user, Some(user), "it was learnt anew");
    }
}
