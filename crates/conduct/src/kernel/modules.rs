//! The modules of a kernel: which there are, and in which order those that are wanted must be loaded.
//!
//! What a module needs is read from the module itself (`depends=` in its section `.modinfo`): a package that was
//! unpacked and not installed has no `modules.dep`. Refuses to load; that is [`crate::init`]'s, inside the guest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use elf::ElfBytes;
use elf::endian::AnyEndian;
use lzma_rust2::XzReader;

use super::KernelError;

/// Modules by name.
#[derive(Debug, Clone, Default)]
pub struct KernelModules {
    release: String,
    files: BTreeMap<String, PathBuf>,
    built_in: Option<BTreeSet<String>>,
}

/// One module, ready to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelModule {
    /// `virtio_console`.
    pub name: String,
    /// The ELF file, unpacked.
    pub content: Vec<u8>,
}

impl KernelModules {
    pub(super) fn find(release: &str, folder: Option<&Path>) -> Result<KernelModules, KernelError> {
        let mut modules = KernelModules { release: release.into(), ..KernelModules::default() };
        if let Some(folder) = folder {
            find_module_files(&folder.join("kernel"), &mut modules.files)?;
            let list = folder.join("modules.builtin");
            let text = fs::read_to_string(&list).map_err(KernelError::file_error(&list))?;
            modules.built_in = Some(text.lines().filter_map(|line| module_name(Path::new(line))).collect());
        }
        Ok(modules)
    }

    /// Whether the kernel can do what this module does. A kernel that comes without modules is believed.
    pub fn has(&self, module: &str) -> bool {
        self.files.contains_key(module) || self.is_built_in(module)
    }

    fn is_built_in(&self, module: &str) -> bool {
        self.built_in.as_ref().is_none_or(|list| list.contains(module))
    }

    /// The wanted modules and all that they need, each after what it needs. What is built in is left out.
    ///
    /// # Errors
    /// A module is not there, or its file is damaged.
    pub fn loading_order(&self, wanted: &[&str]) -> Result<Vec<KernelModule>, KernelError> {
        let mut order = Vec::new();
        wanted.iter().try_for_each(|module| self.add_with_dependencies(module, &mut order))?;
        Ok(order)
    }

    fn add_with_dependencies(&self, module: &str, order: &mut Vec<KernelModule>) -> Result<(), KernelError> {
        if order.iter().any(|known| known.name == module) {
            return Ok(());
        }
        let Some(path) = self.files.get(module) else { return self.check_built_in(module) };
        let content = read_module(path)?;
        let bad = |reason: String| KernelError::BadModule { path: path.clone(), reason };
        // The kernel's build refuses cycles; a damaged file ends here, not in a loop.
        let needs = parse_module_dependencies(&content).map_err(bad)?;
        if needs.iter().any(|needed| needed == module) {
            return Err(bad("it needs itself".into()));
        }
        needs.iter().try_for_each(|needed| self.add_with_dependencies(needed, order))?;
        order.push(KernelModule { name: module.into(), content });
        Ok(())
    }

    fn check_built_in(&self, module: &str) -> Result<(), KernelError> {
        if self.is_built_in(module) {
            return Ok(());
        }
        let hint = match module {
            "virtio_pci" | "virtio_console" => {
                "use a kernel with virtio (Debian's `cloud` kernels have it), or build one: `perflab kernel list`"
            }
            _ => "use a kernel that has it, or name the folder of its modules (`--modules DIR`)",
        };
        Err(KernelError::NoModule { release: self.release.clone(), module: module.into(), hint })
    }
}

/// The name by which modules are asked for: `virtio-rng.ko.xz` is `virtio_rng`.
fn module_name(path: &Path) -> Option<String> {
    let (name, _) = path.file_name()?.to_str()?.split_once(".ko")?;
    Some(name.replace('-', "_"))
}

fn find_module_files(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<(), KernelError> {
    for entry in fs::read_dir(folder).map_err(KernelError::file_error(folder))? {
        let entry = entry.map_err(KernelError::file_error(folder))?;
        let path = entry.path();
        // Not followed: `build` and `source` are links out of the folder.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find_module_files(&path, files)?;
        } else if let Some(name) = module_name(&path) {
            files.insert(name, path);
        }
    }
    Ok(())
}

/// The module's bytes; distributions pack them with what their kernel unpacks.
fn read_module(path: &Path) -> Result<Vec<u8>, KernelError> {
    let packed = fs::read(path).map_err(KernelError::file_error(path))?;
    let unpacked = match path.extension().and_then(|ending| ending.to_str()) {
        Some("zst") => zstd::decode_all(packed.as_slice()),
        Some("gz") => {
            let mut content = Vec::new();
            flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut content).map(|_| content)
        }
        Some("xz") => {
            let mut content = Vec::new();
            XzReader::new(packed.as_slice(), true).read_to_end(&mut content).map(|_| content)
        }
        _ => Ok(packed),
    };
    unpacked.map_err(KernelError::file_error(path))
}

/// The modules that this one names.
fn parse_module_dependencies(content: &[u8]) -> Result<Vec<String>, String> {
    let file = ElfBytes::<AnyEndian>::minimal_parse(content).map_err(|error| error.to_string())?;
    let section = file.section_header_by_name(".modinfo").map_err(|error| error.to_string())?;
    let section = section.ok_or("it has no section .modinfo")?;
    let (information, _) = file.section_data(&section).map_err(|error| error.to_string())?;
    let mut entries = information.split(|byte| *byte == 0);
    let list = entries.find_map(|entry| entry.strip_prefix(b"depends=")).unwrap_or_default();
    let list = String::from_utf8_lossy(list);
    Ok(list.split(',').filter(|name| !name.is_empty()).map(|name| name.replace('-', "_")).collect())
}
