//! What goes where in a guest's initramfs.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use super::{Cpio, InitramfsError, closure, trim};
use crate::init::Orders;
use crate::kernel::Module;

/// Where a guest has perflab, its libraries, its modules and its orders. In /run, as it is of the running system
/// only: whatever root the guest gets, this is mounted into it, and perflab finds its own libraries there and not
/// the root's.
pub const HOME: &str = "/run/perflab";

/// The file system to be packed.
#[derive(Debug)]
pub struct Initramfs<'a> {
    /// The perflab binary.
    pub perflab: &'a Path,
    /// Modules in the order of loading.
    pub modules: &'a [Module],
    /// What the first process is to do.
    pub orders: &'a Orders,
    /// Further programs, each at its own path with its libraries.
    pub programs: &'a [String],
}

impl Initramfs<'_> {
    /// Writes it.
    ///
    /// # Errors
    /// A program is missing or cannot be packed; the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), InitramfsError> {
        let out = BufWriter::new(File::create(path).map_err(InitramfsError::file(path))?);
        let mut archive = Cpio::new(out);
        let failed = || InitramfsError::file(path);
        archive.device(Path::new("/dev/console"), 5, 1).map_err(failed())?;
        self.itself(&mut archive, path)?;
        for module in self.modules {
            let place = home("modules").join(format!("{}.ko", module.name));
            archive.file(&place, &module.content).map_err(failed())?;
        }
        let orders = serde_json::to_vec(self.orders).map_err(|error| failed()(error.into()))?;
        archive.file(&home("orders.json"), &orders).map_err(failed())?;
        self.programs.iter().try_for_each(|program| add(&mut archive, path, program, 0))?;
        archive.finish().map_err(failed())?;
        Ok(())
    }

    fn itself(&self, archive: &mut Archive, path: &Path) -> Result<(), InitramfsError> {
        for (name, content) in portable(self.perflab, Path::new(HOME))? {
            archive.file(&home(&name), &content).map_err(InitramfsError::file(path))?;
        }
        Ok(())
    }
}

/// perflab with a loader and libraries that are its own, as files of `folder`: there it starts whatever the system around
/// it is, older or without any library. The folder's path must be short ([`trim::interpret_with`]).
pub(crate) fn portable(perflab: &Path, folder: &Path) -> Result<Vec<(String, Vec<u8>)>, InitramfsError> {
    let needed = closure(&perflab.display().to_string())?;
    let mut program = loaded_part(&needed.program)?;
    trim::interpret_with(&needed.program, &mut program, &folder.join("ld.so").display().to_string())?;
    if folder != Path::new(HOME) {
        // A first process could not: a loader knows where its program is by /proc, which nobody has mounted yet.
        trim::libraries_beside(&mut program);
    }
    let mut files = vec![("perflab".to_owned(), program)];
    if let Some(interpreter) = &needed.interpreter {
        files.push(("ld.so".into(), loaded_part(interpreter)?));
    }
    for (name, library) in &needed.libraries {
        files.push((format!("lib/{name}"), loaded_part(library)?));
    }
    Ok(files)
}

type Archive = Cpio<BufWriter<File>>;

fn home(name: &str) -> PathBuf {
    Path::new(HOME).join(name)
}

fn loaded_part(path: &Path) -> Result<Vec<u8>, InitramfsError> {
    let content = fs::read(path).map_err(InitramfsError::file(path))?;
    trim::trimmed(path, &content)
}

/// Scripts may name programs that are scripts.
const DEPTH: u32 = 4;

/// Adds a program at its own path, with what it needs to start; of a script, its interpreter too.
fn add(archive: &mut Archive, out: &Path, program: &str, depth: u32) -> Result<(), InitramfsError> {
    let path = closure::found(program)?;
    let content = fs::read(&path).map_err(InitramfsError::file(&path))?;
    let failed = || InitramfsError::file(out);
    if let Some(interpreter) = script(&content).filter(|_| depth < DEPTH) {
        archive.file(&path, &content).map_err(failed())?;
        named(archive, &path, program)?;
        return add(archive, out, &interpreter, depth + 1);
    }
    let needed = closure(program)?;
    archive.file(&needed.program, &trim::trimmed(&path, &content)?).map_err(failed())?;
    named(archive, &path, program)?;
    for file in needed.interpreter.iter().chain(needed.libraries.values()) {
        archive.file(file, &loaded_part(file)?).map_err(failed())?;
    }
    Ok(())
}

/// The name by which it is called, where that is a link to the file (`/bin/sh` to `/usr/bin/dash`).
fn named(archive: &mut Archive, path: &Path, program: &str) -> Result<(), InitramfsError> {
    let name = closure::place(program)?;
    if name == path {
        return Ok(());
    }
    archive.link(&name, &path.display().to_string()).map_err(InitramfsError::file(name))
}

/// The interpreter of `#!/bin/sh -e`.
fn script(content: &[u8]) -> Option<String> {
    let line = content.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    line.split_whitespace().next().map(str::to_owned)
}
