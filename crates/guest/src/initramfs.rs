//! The first file system of a guest: a cpio archive with perflab itself as its first program.
//!
//! Packed are programs with the libraries that they load, modules, and the file that gives `guest::init` its
//! orders. It is not compressed: a guest under TCG unpacks slower than QEMU hands it over. The format is cpio's
//! `newc` (Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! An installed perflab is linked dynamically, and so are the programs that people measure. So a program is packed
//! as a *closure*: its interpreter and its libraries, as that very interpreter finds them. It needs no second,
//! static build of perflab, and what runs in the guest is byte for byte what runs here.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Component, Path, PathBuf};

use crate::error::InitramfsError;
use crate::init_protocol::InitConfig;
use crate::kernel::KernelModule;
use crate::portable_program::{self, find_closure};

/// Where a guest has perflab, its libraries, its modules and its orders. In /run, as it is of the running system
/// only: whatever root the guest gets, this is mounted into it, and perflab finds its own libraries there and not
/// the root's.
pub const GUEST_HOME: &str = "/run/perflab";

/// The file system to be packed.
#[derive(Debug)]
pub struct Initramfs<'a> {
    /// The perflab binary.
    pub perflab: &'a Path,
    /// Modules in the order of loading.
    pub modules: &'a [KernelModule],
    /// What the first process is to do.
    pub orders: &'a InitConfig,
    /// Further programs, each at its own path with its libraries.
    pub programs: &'a [String],
}

impl Initramfs<'_> {
    /// Writes it.
    ///
    /// # Errors
    /// A program is missing or cannot be packed; the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), InitramfsError> {
        let out = BufWriter::new(File::create(path).map_err(InitramfsError::file_error(path))?);
        let mut archive = CpioWriter::new(out);
        let failed = || InitramfsError::file_error(path);
        archive.add_device(Path::new("/dev/console"), 5, 1).map_err(failed())?;
        self.add_perflab(&mut archive, path)?;
        for module in self.modules {
            let place = guest_home_path("modules").join(format!("{}.ko", module.name));
            archive.add_file(&place, &module.content).map_err(failed())?;
        }
        let orders = serde_json::to_vec(self.orders).map_err(|error| failed()(error.into()))?;
        archive.add_file(&guest_home_path("orders.json"), &orders).map_err(failed())?;
        self.programs.iter().try_for_each(|program| add_program(&mut archive, path, program, 0))?;
        archive.finish().map_err(failed())?;
        Ok(())
    }

    fn add_perflab(&self, archive: &mut InitramfsArchive, path: &Path) -> Result<(), InitramfsError> {
        for (name, content) in pack_portable_perflab(self.perflab, Path::new(GUEST_HOME))? {
            archive.add_file(&guest_home_path(&name), &content).map_err(InitramfsError::file_error(path))?;
        }
        Ok(())
    }
}

/// perflab with a loader and libraries that are its own, as files of `folder`: there it starts whatever the system around
/// it is, older or without any library. The folder's path must be short (`set_interpreter` of `portable_program`).
pub fn pack_portable_perflab(
    perflab: &Path,
    folder: &Path,
) -> Result<Vec<(String, Vec<u8>)>, InitramfsError> {
    let needed = find_closure(&perflab.display().to_string())?;
    let mut program = read_loaded_part(&needed.program)?;
    portable_program::set_interpreter(
        &needed.program,
        &mut program,
        &folder.join("ld.so").display().to_string(),
    )?;
    if folder != Path::new(GUEST_HOME) {
        // A first process could not: a loader knows where its program is by /proc, which nobody has mounted yet.
        portable_program::set_library_path_beside(&mut program);
    }
    let mut files = vec![("perflab".to_owned(), program)];
    if let Some(interpreter) = &needed.interpreter {
        files.push(("ld.so".into(), read_loaded_part(interpreter)?));
    }
    for (name, library) in &needed.libraries {
        files.push((format!("lib/{name}"), read_loaded_part(library)?));
    }
    Ok(files)
}

type InitramfsArchive = CpioWriter<BufWriter<File>>;

fn guest_home_path(name: &str) -> PathBuf {
    Path::new(GUEST_HOME).join(name)
}

fn read_loaded_part(path: &Path) -> Result<Vec<u8>, InitramfsError> {
    let content = fs::read(path).map_err(InitramfsError::file_error(path))?;
    portable_program::trim_elf(path, &content)
}

/// Scripts may name programs that are scripts.
const DEPTH: u32 = 4;

/// Adds a program at its own path, with what it needs to start; of a script, its interpreter too.
fn add_program(
    archive: &mut InitramfsArchive,
    out: &Path,
    program: &str,
    depth: u32,
) -> Result<(), InitramfsError> {
    let path = portable_program::resolve_program(program)?;
    let content = fs::read(&path).map_err(InitramfsError::file_error(&path))?;
    let failed = || InitramfsError::file_error(out);
    if let Some(interpreter) = script_interpreter(&content).filter(|_| depth < DEPTH) {
        archive.add_file(&path, &content).map_err(failed())?;
        add_program_link(archive, &path, program)?;
        return add_program(archive, out, &interpreter, depth + 1);
    }
    let needed = find_closure(program)?;
    archive.add_file(&needed.program, &portable_program::trim_elf(&path, &content)?).map_err(failed())?;
    add_program_link(archive, &path, program)?;
    for file in needed.interpreter.iter().chain(needed.libraries.values()) {
        archive.add_file(file, &read_loaded_part(file)?).map_err(failed())?;
    }
    Ok(())
}

/// The names by which it is called, where they are links to the file: `/usr/bin/sh` to `/usr/bin/dash`, and `/bin/sh`, which scripts
/// and shells of studies ask for, where this host has its programs under both.
fn add_program_link(
    archive: &mut InitramfsArchive,
    path: &Path,
    program: &str,
) -> Result<(), InitramfsError> {
    let name = portable_program::find_program(program)?;
    let short = name.strip_prefix("/usr").ok().map(|below| Path::new("/").join(below));
    let is_same = |short: &PathBuf| fs::canonicalize(short).is_ok_and(|found| found == path);
    for link in [Some(name), short.filter(is_same)].into_iter().flatten().filter(|link| link != path) {
        archive.add_link(&link, &path.display().to_string()).map_err(InitramfsError::file_error(&link))?;
    }
    Ok(())
}

/// The interpreter of `#!/bin/sh -e`.
fn script_interpreter(content: &[u8]) -> Option<String> {
    let line = content.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    line.split_whitespace().next().map(str::to_owned)
}

const DIRECTORY: u32 = 0o040_755;

const PROGRAM: u32 = 0o100_755;

const PRIVATE: u32 = 0o100_600;

const LINK: u32 = 0o120_777;

const CHARACTER: u32 = 0o020_600;

/// Writes one. Parents of what is added are made where they are not there.
#[derive(Debug)]
pub struct CpioWriter<W> {
    out: W,
    entries: u32,
    known: BTreeSet<PathBuf>,
}

impl<W: Write> CpioWriter<W> {
    /// An archive with nothing in it.
    pub fn new(out: W) -> Self {
        CpioWriter { out, entries: 0, known: BTreeSet::new() }
    }

    /// A folder.
    pub fn add_directory(&mut self, path: &Path) -> io::Result<()> {
        self.add_entry(path, DIRECTORY, &[], (0, 0))
    }

    /// A file that all users may read and execute.
    pub fn add_file(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.add_entry(path, PROGRAM, content, (0, 0))
    }

    /// A file that only root may read.
    pub fn add_private_file(&mut self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.add_entry(path, PRIVATE, content, (0, 0))
    }

    /// A symbolic link.
    pub fn add_link(&mut self, path: &Path, to: &str) -> io::Result<()> {
        self.add_entry(path, LINK, to.as_bytes(), (0, 0))
    }

    /// A character device.
    pub fn add_device(&mut self, path: &Path, major: u32, minor: u32) -> io::Result<()> {
        self.add_entry(path, CHARACTER, &[], (major, minor))
    }

    /// Ends the archive.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_entry(b"TRAILER!!!", 0, &[], (0, 0))?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Adds an entry once; the first one wins.
    fn add_entry(&mut self, path: &Path, mode: u32, content: &[u8], device: (u32, u32)) -> io::Result<()> {
        let path: PathBuf = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        if path.as_os_str().is_empty() || self.known.contains(&path) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.add_directory(parent)?;
        }
        self.write_entry(path.as_os_str().as_encoded_bytes(), mode, content, device)?;
        self.known.insert(path);
        Ok(())
    }

    fn write_entry(
        &mut self,
        name: &[u8],
        mode: u32,
        content: &[u8],
        (major, minor): (u32, u32),
    ) -> io::Result<()> {
        let size = u32::try_from(content.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.entries += 1;
        let length = name.len() as u32 + 1;
        // inode, mode, uid, gid, links, mtime, size, device, device of the node, length of the name, checksum
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, major, minor, length, 0];
        let mut head = b"070701".to_vec();
        fields.iter().for_each(|field| head.extend(format!("{field:08x}").into_bytes()));
        head.extend_from_slice(name);
        head.push(0);
        self.write_padded(&head)?;
        self.write_padded(content)
    }

    /// Headers and contents begin at multiples of four.
    fn write_padded(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.out.write_all(&[0; 3][..(4 - bytes.len() % 4) % 4])
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;
    use crate::portable_program;

    /// Name, mode and size of each entry, by the format's description.
    fn list_cpio_entries(archive: &[u8]) -> Vec<(String, u32, usize)> {
        let (mut at, mut found) = (0, Vec::new());
        loop {
            let field = |index: usize| {
                let text = &archive[at + 6 + index * 8..at + 14 + index * 8];
                usize::from_str_radix(std::str::from_utf8(text).unwrap(), 16).unwrap()
            };
            assert_eq!(&archive[at..at + 6], b"070701");
            let (mode, size, length) = (field(1), field(6), field(11));
            let name = std::str::from_utf8(&archive[at + 110..at + 110 + length - 1]).unwrap();
            if name == "TRAILER!!!" {
                return found;
            }
            found.push((name.to_owned(), mode as u32, size));
            at = (at + 110 + length).next_multiple_of(4);
            at = (at + size).next_multiple_of(4);
        }
    }

    #[test]
    fn an_archive_has_parents_before_children_and_nothing_twice() {
        let mut archive = CpioWriter::new(Vec::new());
        archive.add_file(Path::new("/a/b/c"), b"hello").unwrap();
        archive.add_file(Path::new("/a/b/d"), b"").unwrap();
        archive.add_file(Path::new("/a/b/c"), b"another").unwrap();
        archive.add_link(Path::new("/a/l"), "b/c").unwrap();
        archive.add_device(Path::new("/dev/console"), 5, 1).unwrap();
        let found = list_cpio_entries(&archive.finish().unwrap());
        let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["a", "a/b", "a/b/c", "a/b/d", "a/l", "dev", "dev/console"]);
        assert_eq!(found[2], ("a/b/c".into(), 0o100_755, 5));
        assert_eq!(found[6].1, 0o020_600);
    }

    #[test]
    fn a_closure_is_what_the_loader_finds() {
        let needed = find_closure("sh").unwrap();
        assert!(needed.libraries.keys().any(|name| name.starts_with("libc.so")), "{needed:?}");
        assert!(needed.libraries.values().chain(&needed.interpreter).all(|path| path.is_file()));
    }

    #[test]
    fn what_is_missing_is_said() {
        assert!(matches!(find_closure("no-such-program"), Err(InitramfsError::NoProgram { .. })));
        let error = find_closure(&format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"))).unwrap_err();
        assert!(matches!(error, InitramfsError::NotAProgram { .. }), "{error}");
    }

    #[test]
    fn a_static_program_is_packed_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("static");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-static-pie", "-x", "c", "-o"])
            .arg(&path)
            .arg("-")
            .stdin(std::process::Stdio::piped());
        let mut compiler = compiler.spawn().unwrap();
        std::io::Write::write_all(&mut compiler.stdin.take().unwrap(), b"int main(void) { return 0; }")
            .unwrap();
        assert!(compiler.wait().unwrap().success(), "Rust links with cc, too");
        let files = pack_portable_perflab(&path, Path::new(GUEST_HOME)).unwrap();
        let [(name, content)] = &files[..] else { panic!("{} files", files.len()) };
        assert_eq!(name, "perflab");
        assert!(is_runnable(folder.path(), content));
    }

    fn is_runnable(folder: &Path, content: &[u8]) -> bool {
        let path = folder.join("program");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Command::new(&path).status().is_ok_and(|status| status.success())
    }

    #[test]
    fn a_trimmed_program_still_runs_and_is_smaller() {
        let folder = tempfile::tempdir().unwrap();
        let path = Path::new("/bin/true");
        let whole = fs::read(path).unwrap();
        let kept = portable_program::trim_elf(path, &whole).unwrap();
        assert!(kept.len() < whole.len());
        assert!(is_runnable(folder.path(), &kept));
    }

    #[test]
    fn another_interpreter_is_taken_where_its_path_fits() {
        let folder = tempfile::tempdir().unwrap();
        let path = Path::new("/bin/true");
        let mut program = fs::read(path).unwrap();
        let loader = portable_program::elf_interpreter(path, &program).unwrap().unwrap();
        let short = PathBuf::from("/tmp").join(format!("p{}", std::process::id()));
        std::os::unix::fs::symlink(&loader, &short).unwrap();
        assert!(portable_program::set_interpreter(path, &mut program, short.to_str().unwrap()).unwrap());
        let ran = is_runnable(folder.path(), &program);
        fs::remove_file(&short).unwrap();
        assert!(ran, "with its interpreter there");
        assert!(!is_runnable(folder.path(), &program), "and not without");
        assert!(portable_program::set_interpreter(path, &mut program, &"x".repeat(200)).is_err());
    }

    #[test]
    fn this_program_finds_its_libraries_in_a_guests_folder() {
        // Not perflab itself, but what it is packed with: the loader and each library at the expected path.
        let orders = crate::init_protocol::InitConfig {
            name: "test".into(),
            modules: vec!["one".into()],
            root: crate::init_protocol::GuestRoot::Bare,
            vsock: None,
            network: crate::guest_network::GuestAddresses::default(),
            work: crate::init_protocol::GuestWork::Agent,
        };
        let modules = [crate::kernel::KernelModule { name: "one".into(), content: b"module".to_vec() }];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("initramfs");
        let itself = std::env::current_exe().unwrap();
        let packed =
            Initramfs { perflab: &itself, modules: &modules, orders: &orders, programs: &["sh".into()] };
        packed.write(&path).unwrap();
        let found = list_cpio_entries(&fs::read(&path).unwrap());
        for name in [
            "run/perflab/perflab",
            "run/perflab/ld.so",
            "run/perflab/modules/one.ko",
            "run/perflab/orders.json",
        ] {
            assert!(found.iter().any(|(entry, ..)| entry == name), "{name} in {found:?}");
        }
        let libraries = found
            .iter()
            .filter(|(entry, mode, _)| entry.starts_with("run/perflab/lib/") && *mode == 0o100_755);
        assert_eq!(libraries.count(), find_closure(itself.to_str().unwrap()).unwrap().libraries.len());
    }
}
