//! Kernels built from the distribution's sources: a first configuration, fragments over it, `make`.

use std::fs;
use std::path::{Path, PathBuf};

use super::{KernelBuild, KernelError, KernelImage, cache, fetch, recipe};

/// Builds it in a temporary folder of the cache; the image, its symbols and its configuration are kept.
pub(super) fn build_kernel(
    name: &str,
    build: &KernelBuild,
    say: &mut dyn FnMut(&str),
) -> Result<KernelImage, KernelError> {
    check_build_tools(build)?;
    cache::replace_cached_kernel(name, |folder| {
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
    let package = fetch::download_package(&build.apt, work, say)?;
    fetch::unpack_package(&package, work, say)?;
    let archive = fetch::find_file_beginning(&work.join("usr/src"), &build.apt)?;
    let tree = work.join("tree");
    fs::create_dir(&tree).map_err(KernelError::file_error(&tree))?;
    let archive = archive.display().to_string();
    fetch::run_step(&tree, &["tar", "-xf", &archive, "--strip-components=1"], None, say)?;
    Ok(tree)
}

/// Lays the fragments over the first configuration, and refuses one that the sources do not follow.
fn configure_sources(build: &KernelBuild, tree: &Path, say: &mut dyn FnMut(&str)) -> Result<(), KernelError> {
    run_make(tree, &[&build.base], say)?;
    let mut wanted = String::new();
    for name in &build.fragments {
        wanted.push_str(recipe::config_fragment(name).unwrap_or_default());
    }
    build.options.iter().for_each(|option| wanted.push_str(&format!("{option}\n")));
    let fragment = tree.join("perflab.config");
    fs::write(&fragment, &wanted).map_err(KernelError::file_error(&fragment))?;
    let merge = ["scripts/kconfig/merge_config.sh", "-m", "-O", ".", ".config", "perflab.config"];
    fetch::run_step(tree, &merge, None, say)?;
    run_make(tree, &["olddefconfig"], say)?;
    let config = tree.join(".config");
    let got = fs::read_to_string(&config).map_err(KernelError::file_error(&config))?;
    check_options_taken(&wanted, &got)
}

/// Whether every `CONFIG_X=y` that was wanted is in the configuration that came out.
pub(super) fn check_options_taken(wanted: &str, got: &str) -> Result<(), KernelError> {
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
    fetch::run_step(
        tree,
        &argv,
        Some("its whole output is not kept; run `perflab kernel build` again to see where it stops"),
        say,
    )
    .map(drop)
}
