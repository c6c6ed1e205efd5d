//! A kernel image and what its own files say: release and memory by its boot header, its modules in loading order.
//!
//! What a module needs is read from the module itself (`depends=` in its section `.modinfo`): a package that was
//! unpacked and not installed has no `modules.dep`. Loading happens inside the guest, in `guest::init`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use elf::ElfBytes;
use elf::endian::AnyEndian;
use lzma_rust2::XzReader;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Why a kernel cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// No recipe of that name, no file either.
    #[error("there is no kernel `{name}`: no file, and no recipe; {hint}")]
    Unknown {
        /// what was asked for
        name: String,
        /// near names, or where to look
        hint: String,
    },
    /// There is a recipe that has not been carried out.
    #[error("the kernel `{name}` is not here yet: `perflab kernel {verb} {name}` gets it")]
    NotHere {
        /// its name
        name: String,
        /// `fetch` or `build`
        verb: &'static str,
    },
    /// The file is not a kernel for this processor.
    #[error("{path} is no kernel image: {reason}")]
    NotAKernel {
        /// the file
        path: PathBuf,
        /// what it lacks
        reason: &'static str,
    },
    /// A module is neither a file nor built in.
    #[error("kernel {release} has no module {module}, and it is not built in; {hint}")]
    NoModule {
        /// the kernel
        release: String,
        /// the module
        module: String,
        /// what to do without
        hint: &'static str,
    },
    /// A module's file cannot be understood.
    #[error("{path}: {reason}")]
    BadModule {
        /// the file
        path: PathBuf,
        /// why
        reason: String,
    },
    /// The sources do not compile.
    #[error("the kernel does not compile: {message}; the whole output is in {}", log.display())]
    Compile {
        /// the compiler's first error, with file and line
        message: String,
        /// where all of them are
        log: PathBuf,
    },
    /// A patch does not fit its sources.
    #[error("the patch {} does not apply: {reason}", patch.display())]
    Patch {
        /// its file
        patch: PathBuf,
        /// the hunks that found no place
        reason: String,
    },
    /// A repository has no such revision.
    #[error("{} has no revision `{revision}`; `git -C {} log --oneline` lists some", repository.display(), repository.display())]
    NoRevision {
        /// the repository
        repository: PathBuf,
        /// what was asked for
        revision: String,
    },
    /// A folder holds no sources of a kernel.
    #[error("{} holds no kernel sources: it has no file `Kbuild`", path.display())]
    NoSources {
        /// the folder, or the archive
        path: PathBuf,
    },
    /// A folder is part of a repository whose revisions are those of all of it.
    #[error("{} is a folder inside of a git repository, whose revisions hold it as a folder only; build it as it is, without `@`", path.display())]
    Subfolder {
        /// the folder
        path: PathBuf,
    },
    /// Several commits were named where one kernel is meant.
    #[error(
        "`{text}` names several commits, and a kernel is of one; `perflab kernel build` builds them all, and each is named `...@COMMIT`"
    )]
    ManyRevisions {
        /// what was asked for
        text: String,
    },
    /// A recipe that builds whatever tree it is given got none.
    #[error(
        "the recipe `{recipe}` names no sources; name a tree: `{recipe}:/home/me/linux`, or a revision of it: `{recipe}:/home/me/linux@v6.5`"
    )]
    NeedsTree {
        /// the recipe
        recipe: String,
    },
    /// Revisions were asked for of something that has none.
    #[error(
        "the sources of `{recipe}` have no revisions; a recipe with `git = \"PATH\"` has, or name a repository: `{recipe}:/home/me/linux@v6.5`"
    )]
    NoRepository {
        /// the recipe
        recipe: String,
    },
    /// A tree, a revision or a layout was named for what is fetched as a package, or is an image.
    #[error(
        "`{recipe}` is not built from sources here: it takes no tree, revision or layout; `perflab kernel list` shows recipes that do"
    )]
    NotBuilt {
        /// the recipe
        recipe: String,
    },
    /// The configuration lacks what an agent needs.
    #[error(
        "a guest with the kernel `{recipe}` could not be spoken to: its configuration lacks {options}; add `fragments = [\"guest.config\"]`, or these as `options`"
    )]
    LacksOptions {
        /// the recipe
        recipe: String,
        /// names, with commas
        options: String,
    },
    /// A program of the system failed.
    #[error("`{command}` failed: {reason}{}", hint.map_or_else(String::new, |hint| format!("; {hint}")))]
    Command {
        /// the command line
        command: String,
        /// the end of its output
        reason: String,
        /// what to do
        hint: Option<&'static str>,
    },
    /// An archive is not the one that the recipe means.
    #[error("{place}: SHA-256 is {found} instead of {wanted}, as the recipe says")]
    WrongArchive {
        /// its path or address
        place: String,
        /// the archive's
        found: String,
        /// the recipe's
        wanted: String,
    },
    /// What was fetched is not what the index of packages names.
    #[error("{path}: SHA-256 is {found} instead of {wanted}; the file was removed")]
    Checksum {
        /// the package
        path: PathBuf,
        /// the file's
        found: String,
        /// the index's
        wanted: String,
    },
    /// A file of the cache, or of the kernel's, cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// which
        path: PathBuf,
        /// the system's reason
        source: std::io::Error,
    },
    /// A recipe is wrong.
    #[error(transparent)]
    Recipe(#[from] perflab_model::Problems),
}

impl Classify for KernelError {
    fn class(&self) -> ErrorClass {
        match self {
            KernelError::Unknown { .. }
            | KernelError::Recipe(_)
            | KernelError::NoRevision { .. }
            | KernelError::NeedsTree { .. }
            | KernelError::Subfolder { .. }
            | KernelError::ManyRevisions { .. }
            | KernelError::NoRepository { .. }
            | KernelError::NotBuilt { .. }
            | KernelError::NoSources { .. } => ErrorClass::Usage,
            KernelError::NotHere { .. }
            | KernelError::NotAKernel { .. }
            | KernelError::NoModule { .. }
            | KernelError::BadModule { .. }
            | KernelError::Command { .. }
            | KernelError::Checksum { .. }
            | KernelError::Compile { .. }
            | KernelError::Patch { .. }
            | KernelError::LacksOptions { .. }
            | KernelError::WrongArchive { .. }
            | KernelError::File { .. } => ErrorClass::Environment,
        }
    }

    fn problems(&self) -> Option<&perflab_model::Problems> {
        match self {
            KernelError::Recipe(problems) => Some(problems),
            _ => None,
        }
    }
}

impl KernelError {
    pub(crate) fn file_error(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> KernelError {
        let path = path.into();
        move |source| KernelError::File { path, source }
    }
}

/// A kernel that can be booted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelImage {
    /// What the user calls it: a recipe's name, or the file's path.
    pub name: String,
    /// The image: `vmlinuz`, `bzImage`.
    pub image: PathBuf,
    /// `6.1.0-56-cloud-amd64`.
    pub release: String,
    /// The folder of its modules, with `kernel/…` below it; none where it has none.
    pub modules: Option<PathBuf>,
    /// How it was built, where perflab did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<KernelBuildRecord>,
}

/// How a kernel was built: what a run keeps of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelBuildRecord {
    /// The hash of everything that went in.
    pub key: String,
    /// The hash of what the recipe alone says.
    pub recipe_key: String,
    /// The sources.
    pub sources: SourceIdentity,
    /// The names of the patches in them.
    pub patches: Vec<String>,
    /// The compiler's own first line; empty where it has none.
    pub compiler: String,
    /// Variables of make.
    pub make: BTreeMap<String, String>,
    /// Flags for single files.
    pub flags: BTreeMap<String, String>,
    /// Options that the recipe itself names, beside its fragments.
    pub options: Vec<String>,
    /// Under which layout it was linked; 0 as built.
    #[serde(default, skip_serializing_if = "is_as_built")]
    pub layout: u32,
    /// How many files were compiled; those of an earlier build are not.
    pub compiled: u32,
    /// How long that took.
    pub took: Nanos,
}

fn is_as_built(layout: &u32) -> bool {
    *layout == 0
}

/// What sources are known by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceIdentity {
    /// Of the content: package and version, an archive's SHA-256, a tree of git's.
    pub id: String,
    /// Where they are from: `linux-source-6.1_6.1.192-2`, `/home/me/linux`.
    pub place: String,
    /// The commit, of a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The commit's first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Whether there are changes over that commit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
}

impl KernelImage {
    /// The kernel in this file. Its modules are `modules` where given, else found beside the image, as packages
    /// unpack them, or where this host has its own.
    ///
    /// # Errors
    /// The file cannot be read, or is not an image that QEMU boots.
    pub fn open(image: &Path, modules: Option<&Path>) -> Result<KernelImage, KernelError> {
        let release = read_release(image)?;
        let folder = Path::new("lib/modules").join(&release);
        let around = image.parent().and_then(Path::parent).map(|home| home.join(&folder));
        let mut folders = around.into_iter().chain([Path::new("/").join(&folder)]);
        let found = folders.find(|place| !release.is_empty() && place.join("kernel").is_dir());
        Ok(KernelImage {
            name: image.display().to_string(),
            image: image.into(),
            release,
            modules: modules.map(Path::to_owned).or(found),
            build: None,
        })
    }

    /// How much memory it takes while it boots, as its header says; nothing where that is too old to say it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn boot_memory(&self) -> Result<Bytes, KernelError> {
        let head = read_boot_header(&self.image)?;
        Ok(Bytes(header_word(&head, NEEDS).unwrap_or_default().into()))
    }

    /// Its modules, by name.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn modules(&self) -> Result<KernelModules, KernelError> {
        KernelModules::find(&self.release, self.modules.as_deref())
    }
}

/// Where the boot header says what it is (Documentation/arch/x86/boot.rst).
const MAGIC: usize = 0x202;

const VERSION: usize = 0x20e;

const SETUP: usize = 0x200;

/// `init_size`, 0 before version 2.10.
const NEEDS: usize = 0x260;

/// The header, and what follows it.
fn read_boot_header(image: &Path) -> Result<Vec<u8>, KernelError> {
    let mut head = Vec::new();
    let read = File::open(image).and_then(|file| file.take(64 << 10).read_to_end(&mut head));
    read.map_err(KernelError::file_error(image))?;
    Ok(head)
}

fn header_word(head: &[u8], at: usize) -> Option<u32> {
    head.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

/// The release that a bzImage names in its header.
fn read_release(image: &Path) -> Result<String, KernelError> {
    let head = read_boot_header(image)?;
    let wrong = |reason| KernelError::NotAKernel { path: image.into(), reason };
    if head.get(MAGIC..MAGIC + 4) != Some(b"HdrS") {
        return Err(wrong("it has no boot header; give the vmlinuz or bzImage of an x86-64 kernel"));
    }
    let offset =
        head.get(VERSION..VERSION + 2).map_or(0, |word| usize::from(word[0]) | usize::from(word[1]) << 8);
    let text = head.get(offset + SETUP..).filter(|_| offset != 0).unwrap_or_default();
    let release: Vec<u8> = text.iter().copied().take_while(|byte| byte.is_ascii_graphic()).collect();
    String::from_utf8(release).map_err(|_| wrong("its header names no release"))
}

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
    pub(crate) fn find(release: &str, folder: Option<&Path>) -> Result<KernelModules, KernelError> {
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

    /// The requested modules and all that they need, each after what it needs. What is built in is left out.
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
