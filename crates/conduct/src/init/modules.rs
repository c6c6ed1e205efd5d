//! Modules, loaded in the order in which they were packed.

use std::fs::File;
use std::path::Path;

use rustix::io::Errno;
use rustix::system::finit_module;

use super::InitError;
use crate::initramfs::GUEST_HOME;

pub(super) fn load_modules(modules: &[String]) -> Result<(), InitError> {
    modules.iter().try_for_each(|module| load_module(module))
}

fn load_module(module: &str) -> Result<(), InitError> {
    let path = Path::new(GUEST_HOME).join("modules").join(format!("{module}.ko"));
    let file = File::open(&path).map_err(InitError::system_error("open", path.display().to_string()))?;
    match finit_module(&file, c"", 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(InitError::system_error("load", format!("module {module}"))(error)),
    }
}
