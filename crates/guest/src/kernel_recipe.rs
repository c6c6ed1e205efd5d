//! How a kernel is obtained: a recipe of `kernels/`, a package fetched or sources built, kept in the cache.
//!
//! A package of the distribution is downloaded, checked and unpacked into the cache, never installed on this host.
//! A build from the distribution's sources is a first configuration, fragments over it, and `make`.

use std::ffi::OsStr;
use std::fs;
use std::io::BufReader;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use perflab_model::study::TomlSource as Text;
use perflab_model::{Problem, Problems};
use perflab_observe::own_directories::{self, OwnFileAccess};
use rustix::fs::{CWD, RenameFlags, fstat, renameat_with};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::kernel::{KernelError, KernelImage};

pub use perflab_observe::own_directories::cache_directory;

/// The files of `kernels/`: file name and text, made by build.rs.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// How one kernel is had.
#[derive(Debug, Clone)]
pub struct KernelRecipe {
    /// The name of its file, without `.toml`.
    pub name: String,
    /// One line.
    pub title: String,
    /// What it is good for, for a reader who never booted it.
    pub about: String,
    /// Where it comes from.
    pub source: KernelSource,
}

/// Where a kernel comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum KernelSource {
    /// A package of the distribution, unpacked.
    Package(KernelPackage),
    /// Sources, configured and built.
    Build(KernelBuild),
}

impl KernelSource {
    /// What `perflab kernel` calls how it is obtained.
    pub fn verb(&self) -> &'static str {
        match self {
            KernelSource::Package(_) => "fetch",
            KernelSource::Build(_) => "build",
        }
    }
}

/// The kernel that the user means: an image's path, or the name of a recipe that was carried out. The modules of an
/// image may be named.
///
/// # Errors
/// There is no such kernel, or not yet.
pub fn find_kernel(name: &str, modules: Option<&Path>) -> Result<KernelImage, KernelError> {
    if Path::new(name).is_file() {
        return KernelImage::open(Path::new(name), modules);
    }
    let recipes = KernelRecipes::shipped()?;
    let recipe = recipes.get(name)?;
    recipe
        .cached_image()
        .ok_or_else(|| KernelError::NotHere { name: name.into(), verb: recipe.source.verb() })
}

/// `[package]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelPackage {
    /// A package of Debian or Ubuntu that holds the image, or depends on the newest one that does.
    pub apt: String,
}

/// `[build]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelBuild {
    /// A package of Debian or Ubuntu that holds the sources as a tar archive.
    pub apt: String,
    /// Programs that the build calls.
    pub needs: Vec<String>,
    /// The packages that hold them and the headers they want.
    pub packages: Vec<String>,
    /// The target of make that gives the first configuration: `tinyconfig`.
    pub base: String,
    /// Fragments of `kernels/`, laid over it in order.
    pub fragments: Vec<String>,
    /// Single options, laid over those: `CONFIG_SLUB=y`.
    #[serde(default)]
    pub options: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecipeDocument {
    title: String,
    about: String,
    package: Option<KernelPackage>,
    build: Option<KernelBuild>,
}

impl KernelRecipe {
    /// Reads one recipe.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn read(text: &Text) -> Result<KernelRecipe, Problems> {
        let document: RecipeDocument = text.parse()?;
        let base = text.file.rsplit('/').next().unwrap_or(&text.file);
        let source = match (document.package, document.build) {
            (Some(package), None) => KernelSource::Package(package),
            (None, Some(build)) => KernelSource::Build(build),
            _ => {
                let problem = Problem::new("package", "a kernel has either [package] or [build]");
                return Err(text.place_problems(vec![problem]));
            }
        };
        let name = base.strip_suffix(".toml").unwrap_or(base).to_owned();
        Ok(KernelRecipe { name, title: document.title, about: document.about, source })
    }

    /// The kernel, where the cache has it.
    pub fn cached_image(&self) -> Option<KernelImage> {
        cached_kernel(&self.name)
    }

    /// Fetches or builds it anew. `say` hears every command before it is run.
    ///
    /// # Errors
    /// No network, no such package, a missing program, no room.
    pub fn make_image(&self, say: &mut dyn FnMut(&str)) -> Result<KernelImage, KernelError> {
        match &self.source {
            KernelSource::Package(package) => fetch_package(&self.name, package, say),
            KernelSource::Build(build) => build_kernel(&self.name, build, say),
        }
    }
}

/// All recipes that ship.
#[derive(Debug, Clone)]
pub struct KernelRecipes(Vec<KernelRecipe>);

impl KernelRecipes {
    /// Those of `kernels/`. They are tested, so an error is a mistake of the build.
    ///
    /// # Errors
    /// What is wrong with which.
    pub fn shipped() -> Result<KernelRecipes, KernelError> {
        let files = EMBEDDED.iter().filter(|(file, _)| file.ends_with(".toml"));
        let read = files.map(|(file, text)| KernelRecipe::read(&Text::new(format!("kernels/{file}"), *text)));
        Ok(KernelRecipes(read.collect::<Result<_, _>>()?))
    }

    /// All of them, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &KernelRecipe> + Clone {
        self.0.iter()
    }

    /// The recipe of that name.
    ///
    /// # Errors
    /// There is none; the nearest names are in the hint.
    pub fn get(&self, name: &str) -> Result<&KernelRecipe, KernelError> {
        let known = || perflab_model::suggest_name(name, self.iter().map(|recipe| recipe.name.as_str()));
        let found = self.iter().find(|recipe| recipe.name == name);
        found.ok_or_else(|| KernelError::Unknown { name: name.into(), hint: known() })
    }
}

/// A fragment of `kernels/`.
fn config_fragment(name: &str) -> Option<&'static str> {
    EMBEDDED.iter().find(|(file, _)| *file == name).map(|(_, text)| *text)
}

/// Builds it in a temporary folder of the cache; the image, its symbols and its configuration are kept.
fn build_kernel(
    name: &str,
    build: &KernelBuild,
    say: &mut dyn FnMut(&str),
) -> Result<KernelImage, KernelError> {
    check_build_tools(build)?;
    replace_cached_kernel(name, |folder| {
        let work = folder.join("work");
        fs::create_dir(&work).map_err(KernelError::file_error(&work))?;
        let tree = unpack_sources(build, &work, say)?;
        configure_sources(build, &tree, say)?;
        let jobs = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
        run_make(&tree, &[&format!("-j{jobs}"), "bzImage"], say)?;
        let kept =
            [("arch/x86/boot/bzImage", "bzImage"), ("vmlinux", "vmlinux"), ("System.map", "System.map")];
        for (from, to) in kept.into_iter().chain([(".config", "config")]) {
            fs::rename(tree.join(from), folder.join(to)).map_err(KernelError::file_error(tree.join(from)))?;
        }
        fs::remove_dir_all(&work).map_err(KernelError::file_error(&work))?;
        Ok(folder.join("bzImage"))
    })
}

fn check_build_tools(build: &KernelBuild) -> Result<(), KernelError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |program: &&String| !std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let missing: Vec<&str> = build.needs.iter().filter(has).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(KernelError::Command {
        command: "make".into(),
        reason: format!(
            "{} not installed; as root: apt-get install {}",
            missing.join(", "),
            build.packages.join(" ")
        ),
        hint: None,
    })
}

/// The unpacked sources.
fn unpack_sources(
    build: &KernelBuild,
    work: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<PathBuf, KernelError> {
    let package = download_package(&build.apt, work, say)?;
    unpack_package(&package, work, say)?;
    let archive = find_file_beginning(&work.join("usr/src"), &build.apt)?;
    let tree = work.join("tree");
    fs::create_dir(&tree).map_err(KernelError::file_error(&tree))?;
    let archive = archive.display().to_string();
    run_step(&tree, &["tar", "-xf", &archive, "--strip-components=1"], None, say)?;
    Ok(tree)
}

/// Lays the fragments over the first configuration, and refuses one that the sources do not follow.
fn configure_sources(build: &KernelBuild, tree: &Path, say: &mut dyn FnMut(&str)) -> Result<(), KernelError> {
    run_make(tree, &[&build.base], say)?;
    let mut wanted = String::new();
    for name in &build.fragments {
        wanted.push_str(config_fragment(name).unwrap_or_default());
    }
    build.options.iter().for_each(|option| wanted.push_str(&format!("{option}\n")));
    let fragment = tree.join("perflab.config");
    fs::write(&fragment, &wanted).map_err(KernelError::file_error(&fragment))?;
    let merge = ["scripts/kconfig/merge_config.sh", "-m", "-O", ".", ".config", "perflab.config"];
    run_step(tree, &merge, None, say)?;
    run_make(tree, &["olddefconfig"], say)?;
    let config = tree.join(".config");
    let got = fs::read_to_string(&config).map_err(KernelError::file_error(&config))?;
    check_options_taken(&wanted, &got)
}

/// Whether every requested `CONFIG_X=y` is in the resulting configuration.
fn check_options_taken(wanted: &str, got: &str) -> Result<(), KernelError> {
    let options = wanted.lines().map(str::trim).filter(|line| line.starts_with("CONFIG_"));
    let ignored: Vec<&str> = options.filter(|option| !got.lines().any(|line| line == *option)).collect();
    if ignored.is_empty() {
        return Ok(());
    }
    Err(KernelError::Command {
        command: "make olddefconfig".into(),
        reason: format!("these sources do not take {}", ignored.join(", ")),
        hint: Some(
            "the recipe asks for an option that this version does not have, or whose needs are not met",
        ),
    })
}

fn run_make(tree: &Path, arguments: &[&str], say: &mut dyn FnMut(&str)) -> Result<(), KernelError> {
    let argv: Vec<&str> = ["make", "-s"].iter().chain(arguments).copied().collect();
    run_step(
        tree,
        &argv,
        Some("its whole output is not kept; run `perflab kernel build` again to see where it stops"),
        say,
    )
    .map(drop)
}

/// Fetches the newest image that the package index knows.
fn fetch_package(
    name: &str,
    package: &KernelPackage,
    say: &mut dyn FnMut(&str),
) -> Result<KernelImage, KernelError> {
    let image = newest_image_package(&package.apt, say)?;
    replace_cached_kernel(name, |folder| {
        let archive = download_package(&image, folder, say)?;
        unpack_package(&archive, folder, say)?;
        fs::remove_file(&archive).map_err(KernelError::file_error(&archive))?;
        find_file_beginning(&folder.join("boot"), "vmlinuz-")
    })
}

/// What the package names: itself, or the image that a package of the kind "the newest" depends on.
fn newest_image_package(package: &str, say: &mut dyn FnMut(&str)) -> Result<String, KernelError> {
    let output = run_step(Path::new("/"), &["apt-cache", "depends", package], Some(NO_INDEX), say)?;
    let dependencies = output.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let image = dependencies.map(str::trim).find(|name| name.starts_with("linux-image-"));
    Ok(image.unwrap_or(package).to_owned())
}

const NO_INDEX: &str = "is this Debian or Ubuntu, and was `apt-get update` run?";

/// Downloads a package into `folder`, and holds it to the index's checksum: a proxy may have another one.
fn download_package(package: &str, folder: &Path, say: &mut dyn FnMut(&str)) -> Result<PathBuf, KernelError> {
    // In a folder that apt's own user cannot reach, root downloads itself; said on stderr, and harmless.
    run_step(folder, &["apt-get", "download", "-qq", package], Some(NO_INDEX), say)?;
    let archive = find_file_beginning(folder, package)?;
    let version = archive.file_name().and_then(|name| name.to_str()).and_then(|name| name.split('_').nth(1));
    // In file names a colon is written %3a.
    let wanted = format!("{package}={}", version.unwrap_or_default().replace("%3a", ":"));
    let record = run_step(folder, &["apt-cache", "show", &wanted], Some(NO_INDEX), say)?;
    let promised = record.lines().find_map(|line| line.strip_prefix("SHA256: ")).unwrap_or_default();
    check_sha256(&archive, promised.trim())?;
    Ok(archive)
}

fn check_sha256(archive: &Path, wanted: &str) -> Result<(), KernelError> {
    let content = fs::read(archive).map_err(KernelError::file_error(archive))?;
    let found: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
    if found == wanted {
        return Ok(());
    }
    fs::remove_file(archive).map_err(KernelError::file_error(archive))?;
    Err(KernelError::Checksum { path: archive.into(), found, wanted: wanted.into() })
}

/// Unpacks a Debian package.
fn unpack_package(archive: &Path, folder: &Path, say: &mut dyn FnMut(&str)) -> Result<(), KernelError> {
    let argv = ["dpkg", "-x", &archive.display().to_string(), &folder.display().to_string()];
    run_step(folder, &argv, None, say).map(drop)
}

/// The one file of `folder` whose name begins so.
fn find_file_beginning(folder: &Path, beginning: &str) -> Result<PathBuf, KernelError> {
    let entries = fs::read_dir(folder).map_err(KernelError::file_error(folder))?;
    let named = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(beginning))
    };
    let found = entries.flatten().map(|entry| entry.path()).find(named);
    found.ok_or_else(|| KernelError::file_error(folder.join(beginning))(std::io::ErrorKind::NotFound.into()))
}

/// Runs one command in `folder` to its end; its standard output comes back.
fn run_step(
    folder: &Path,
    argv: &[&str],
    hint: Option<&'static str>,
    say: &mut dyn FnMut(&str),
) -> Result<String, KernelError> {
    let line = argv.join(" ");
    say(&line);
    let failed = |reason: String| KernelError::Command { command: line.clone(), reason, hint };
    let (program, arguments) = argv.split_first().ok_or_else(|| failed("it is empty".into()))?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).env("LC_ALL", "C");
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let last: Vec<&str> = stderr.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    Err(failed(format!("{}: {}", output.status, last.into_iter().rev().collect::<Vec<_>>().join(" | "))))
}

/// The folder of one recipe's kernel.
fn kernel_cache_folder(name: &str) -> PathBuf {
    cache_directory().join("kernels").join(name)
}

/// What the cache has of a recipe: its kernel.json, written last, so that half a kernel is none.
fn cached_kernel(name: &str) -> Option<KernelImage> {
    cached_kernel_in(&kernel_cache_folder(name))
}

fn cached_kernel_in(home: &Path) -> Option<KernelImage> {
    loop {
        // A kernel that another user may have put there is not booted: it is fetched anew, or that is refused.
        let folder = own_directories::open_own_directory(home).ok()??;
        let kernel = read_kernel_note(&folder);
        // What was exchanged for another while we looked is removed: the other is there.
        if kernel.is_some() || is_folder_at(&folder, home) {
            return kernel;
        }
    }
}

fn read_kernel_note(folder: &OwnedFd) -> Option<KernelImage> {
    let file = own_directories::open_own_file(folder, OsStr::new("kernel.json"), OwnFileAccess::Read).ok()?;
    serde_json::from_reader(BufReader::new(file)).ok().filter(|kernel: &KernelImage| kernel.image.is_file())
}

/// Whether an open folder still has this path.
fn is_folder_at(folder: &OwnedFd, path: &Path) -> bool {
    let (Ok(opened), Ok(at_path)) = (fstat(folder), fs::symlink_metadata(path)) else { return true };
    (opened.st_dev, opened.st_ino) == (at_path.dev(), at_path.ino())
}

/// Puts a whole kernel in place of whatever was there: a reader in the meantime finds the one or the other. `fill` gets an empty
/// folder beside its final one and returns where in it the image lies.
fn replace_cached_kernel(
    name: &str,
    fill: impl FnOnce(&Path) -> Result<PathBuf, KernelError>,
) -> Result<KernelImage, KernelError> {
    replace_kernel_in(&kernel_cache_folder(name), name, fill)
}

fn replace_kernel_in(
    home: &Path,
    name: &str,
    fill: impl FnOnce(&Path) -> Result<PathBuf, KernelError>,
) -> Result<KernelImage, KernelError> {
    let parent = home.parent().unwrap_or(Path::new("."));
    own_directories::create_own_directory(parent).map_err(KernelError::file_error(parent))?;
    let new = tempfile::Builder::new()
        .prefix(".new-")
        .tempdir_in(parent)
        .map_err(KernelError::file_error(parent))?;
    let found = KernelImage::open(&fill(new.path())?, None)?;
    let at_home = |path: &Path| path.strip_prefix(new.path()).map_or(path.into(), |inside| home.join(inside));
    let (image, modules) = (at_home(&found.image), found.modules.as_deref().map(at_home));
    let kernel = KernelImage { name: name.into(), image, modules, ..found };
    let note = new.path().join("kernel.json");
    let text =
        serde_json::to_vec_pretty(&kernel).map_err(|error| KernelError::file_error(&note)(error.into()))?;
    fs::write(&note, text).map_err(KernelError::file_error(&note))?;
    // What was there goes with the temporary folder, into which it comes.
    if renameat_with(CWD, new.path(), CWD, home, RenameFlags::EXCHANGE).is_err() {
        // There was nothing, or the file system cannot exchange.
        if home.exists() {
            fs::remove_dir_all(home).map_err(KernelError::file_error(home))?;
        }
        fs::rename(new.keep(), home).map_err(KernelError::file_error(home))?;
    }
    Ok(kernel)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn every_recipe_reads_and_its_fragments_are_there() {
        let recipes = KernelRecipes::shipped().unwrap();
        let names: BTreeSet<&str> = recipes.iter().map(|recipe| recipe.name.as_str()).collect();
        assert!(names.contains("debian-cloud") && names.contains("linux-6.1-slob"), "{names:?}");
        for recipe in recipes.iter() {
            if let KernelSource::Build(build) = &recipe.source {
                for fragment in &build.fragments {
                    assert!(
                        super::config_fragment(fragment)
                            .is_some_and(|text| text.contains("CONFIG_VIRTIO_CONSOLE=y"))
                    );
                }
            }
        }
    }

    #[test]
    fn the_allocators_recipes_differ_in_the_allocator_alone() {
        let recipes = KernelRecipes::shipped().unwrap();
        let build = |name: &str| match &recipes.get(name).unwrap().source {
            KernelSource::Build(build) => build.clone(),
            KernelSource::Package(_) => panic!("{name} is built"),
        };
        let slub = build("linux-6.1-slub");
        for other in ["slab", "slob"] {
            let other = build(&format!("linux-6.1-{other}"));
            assert_ne!(other.options, slub.options);
            assert_eq!(KernelBuild { options: slub.options.clone(), ..other }, slub);
        }
    }

    #[test]
    fn an_unknown_kernel_has_a_hint() {
        let error = KernelRecipes::shipped().unwrap().get("debian-clod").unwrap_err().to_string();
        assert!(error.contains("did you mean `debian-cloud`?"), "{error}");
    }

    #[test]
    fn a_recipe_has_one_source() {
        let text = perflab_model::study::TomlSource::new("kernels/x.toml", "title = \"x\"\nabout = \"x\"\n");
        let error = KernelRecipe::read(&text).unwrap_err().to_string();
        assert!(error.contains("either [package] or [build]"), "{error}");
    }

    #[test]
    fn what_is_no_kernel_is_refused() {
        let error = KernelImage::open(&std::env::current_exe().unwrap(), None).unwrap_err().to_string();
        assert!(error.contains("it has no boot header"), "{error}");
    }

    /// An image with its modules, as a package unpacks them; the image.
    fn unpack_example_kernel(folder: &Path) -> PathBuf {
        let image = folder.join("boot/vmlinuz");
        std::fs::create_dir(folder.join("boot")).unwrap();
        let mut head = vec![0_u8; 0x1000];
        head[0x202..0x206].copy_from_slice(b"HdrS");
        head[0x20e..0x210].copy_from_slice(&0x600_u16.to_le_bytes());
        head[0x800..0x80c].copy_from_slice(b"6.1.0-test (");
        std::fs::write(&image, &head).unwrap();
        std::fs::create_dir_all(folder.join("lib/modules/6.1.0-test/kernel")).unwrap();
        image
    }

    #[test]
    fn the_release_is_read_from_the_boot_header() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = KernelImage::open(&unpack_example_kernel(folder.path()), None).unwrap();
        let modules = folder.path().join("lib/modules/6.1.0-test");
        assert_eq!((kernel.release.as_str(), kernel.modules), ("6.1.0-test", Some(modules)));
    }

    #[test]
    fn a_kernel_that_is_fetched_again_is_there_all_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("kernels/own");
        let put = || super::replace_kernel_in(&home, "own", |new| Ok(unpack_example_kernel(new))).unwrap();
        let first = put();
        assert_eq!(first.image, home.join("boot/vmlinuz"));
        assert_eq!(first.modules, Some(home.join("lib/modules/6.1.0-test")));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..300).for_each(|_| assert_eq!(put(), first));
                done.store(true, Ordering::Release);
            });
            while !done.load(Ordering::Acquire) {
                assert_eq!(super::cached_kernel_in(&home).as_ref(), Some(&first));
            }
        });
        let left: Vec<_> = std::fs::read_dir(folder.path().join("kernels")).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn options_that_were_not_taken_are_named() {
        let error = super::check_options_taken("CONFIG_A=y\n# why\nCONFIG_B=y\n", "CONFIG_A=y\n")
            .unwrap_err()
            .to_string();
        assert!(error.contains("CONFIG_B=y") && !error.contains("CONFIG_A"), "{error}");
        super::check_options_taken("CONFIG_A=y\n", "CONFIG_A=y\nCONFIG_C=m\n").unwrap();
    }
}
