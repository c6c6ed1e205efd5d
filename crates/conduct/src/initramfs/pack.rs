//! What goes where in a guest's initramfs.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use super::{CpioWriter, InitramfsError, closure, find_closure, trim};
use crate::init::InitConfig;
use crate::kernel::KernelModule;

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
/// it is, older or without any library. The folder's path must be short ([`trim_journal::set_interpreter`]).
pub(crate) fn pack_portable_perflab(
    perflab: &Path,
    folder: &Path,
) -> Result<Vec<(String, Vec<u8>)>, InitramfsError> {
    let needed = find_closure(&perflab.display().to_string())?;
    let mut program = read_loaded_part(&needed.program)?;
    trim::set_interpreter(&needed.program, &mut program, &folder.join("ld.so").display().to_string())?;
    if folder != Path::new(GUEST_HOME) {
        // A first process could not: a loader knows where its program is by /proc, which nobody has mounted yet.
        trim::set_library_path_beside(&mut program);
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
    trim::trim_elf(path, &content)
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
    let path = closure::resolve_program(program)?;
    let content = fs::read(&path).map_err(InitramfsError::file_error(&path))?;
    let failed = || InitramfsError::file_error(out);
    if let Some(interpreter) = script_interpreter(&content).filter(|_| depth < DEPTH) {
        archive.add_file(&path, &content).map_err(failed())?;
        add_program_link(archive, &path, program)?;
        return add_program(archive, out, &interpreter, depth + 1);
    }
    let needed = find_closure(program)?;
    archive.add_file(&needed.program, &trim::trim_elf(&path, &content)?).map_err(failed())?;
    add_program_link(archive, &path, program)?;
    for file in needed.interpreter.iter().chain(needed.libraries.values()) {
        archive.add_file(file, &read_loaded_part(file)?).map_err(failed())?;
    }
    Ok(())
}

/// The name by which it is called, where that is a link to the file (`/bin/sh` to `/usr/bin/dash`).
fn add_program_link(
    archive: &mut InitramfsArchive,
    path: &Path,
    program: &str,
) -> Result<(), InitramfsError> {
    let name = closure::find_program(program)?;
    if name == path {
        return Ok(());
    }
    archive.add_link(&name, &path.display().to_string()).map_err(InitramfsError::file_error(name))
}

/// The interpreter of `#!/bin/sh -e`.
fn script_interpreter(content: &[u8]) -> Option<String> {
    let line = content.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    line.split_whitespace().next().map(str::to_owned)
}
