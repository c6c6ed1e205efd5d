//! Sources built into a kernel: configured, compiled out of tree, kept by the hash of everything that went in.
//!
//! The object files of a recipe stay, so that another revision compiles only what differs. The image, its symbols and its
//! configuration are kept under the hash of sources, patches, configuration, compiler, variables and flags: what was built once
//! is not built again, and what differs in anything is another kernel.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use perflab_model::Nanos;
use rustix::fs::statvfs;
use sha2::{Digest, Sha256};

use crate::kernel::{KernelBuildRecord, KernelError, KernelImage, SourceIdentity};
use crate::kernel_cache::{CacheLock, list_cached_kernels, open_work_folder, replace_cached_kernel};
use crate::kernel_layout::{KernelLayout, LayoutLinker};
use crate::kernel_package::format_hash;
use crate::kernel_recipe::{KernelBuild, KernelRecipe, SourceOrigin};
use crate::kernel_sources::{KernelPatch, KernelSources, identify_sources, prepare_sources, tell_sources};
use crate::kernel_step::{DISK_FULL, KernelListener, KernelProgress, run_command, run_step};

/// A recipe whose sources are known: what would be built, and what it would be kept as.
#[derive(Debug)]
pub(crate) struct KernelOrder<'a> {
    recipe: &'a KernelRecipe,
    build: &'a KernelBuild,
    origin: SourceOrigin,
    patches: Vec<KernelPatch>,
    /// of all that the recipe says but the layout
    config_key: String,
    recipe_key: String,
    compiler: Option<String>,
    layout: KernelLayout,
}

impl<'a> KernelOrder<'a> {
    /// Reads all that the recipe names, but the sources.
    pub(crate) fn new(
        recipe: &'a KernelRecipe,
        build: &'a KernelBuild,
        origin: SourceOrigin,
        layout: KernelLayout,
    ) -> Result<Self, KernelError> {
        let patches = build.patches.iter().map(|path| KernelPatch::read(&recipe.resolve_path(path)));
        let patches = patches.collect::<Result<Vec<_>, _>>()?;
        let mut digest = Sha256::new();
        let says = (&build.base, wanted_options(recipe, build)?, &build.compiler, &build.make, &build.flags);
        digest.update(serde_json::to_vec(&says).unwrap_or_default());
        let base = recipe.resolve_path(Path::new(&build.base));
        if base.is_file() {
            digest.update(fs::read(&base).map_err(KernelError::file_error(&base))?);
        }
        for patch in &patches {
            digest.update(&patch.text);
        }
        let config_key = format_hash(&digest.finalize());
        let recipe_key = layout.recipe_key(&config_key);
        let compiler = read_compiler(build);
        Ok(KernelOrder { recipe, build, origin, patches, config_key, recipe_key, compiler, layout })
    }

    fn key(&self, sources: &SourceIdentity) -> String {
        let compiler = self.compiler.as_deref().unwrap_or_default();
        format_hash(&Sha256::digest(format!("{}\n{}\n{compiler}", self.recipe_key, sources.id)))
    }

    /// The kernel, where it was built.
    pub(crate) fn find_kernel(
        &self,
        tell: &mut KernelListener<'_>,
    ) -> Result<Option<KernelImage>, KernelError> {
        let sources = identify_sources(&self.origin, tell)?;
        let prefix = format!("{}@", self.recipe.name);
        let kernels = list_cached_kernels(&prefix).into_iter().filter(|kernel| {
            let build = kernel.build.as_ref();
            build.is_some_and(|build| match (&sources, &self.compiler) {
                (Some(sources), Some(_)) => build.key == self.key(sources),
                // Kernels of another machine, or whose sources were deleted, are what the recipe says all the same.
                (Some(sources), None) => {
                    build.recipe_key == self.recipe_key && build.sources.id == sources.id
                }
                (None, _) => build.recipe_key == self.recipe_key,
            })
        });
        let found = kernels.into_iter().next();
        // Two commits with the same files are one kernel, but not one commit.
        Ok(found.map(|mut kernel| {
            if let (Some(build), Some(sources)) = (&mut kernel.build, sources) {
                build.sources = sources;
            }
            kernel
        }))
    }

    /// Builds it, unless it is here.
    pub(crate) fn build_kernel(&self, tell: &mut KernelListener<'_>) -> Result<KernelImage, KernelError> {
        // What is here needs neither compiler nor lock.
        if let Some(kernel) = self.find_kernel(tell)? {
            return Ok(kernel);
        }
        check_build_tools(self.build)?;
        let objects_name = self.objects_name();
        let _lock = CacheLock::wait("objects", &objects_name, tell)?;
        // Whoever held the lock may have built it.
        if let Some(kernel) = self.find_kernel(tell)? {
            return Ok(kernel);
        }
        let sources = prepare_sources(&self.origin, &self.recipe.name, &self.patches, tell)?;
        tell_sources(&sources.identity, tell);
        let key = self.key(&sources.identity);
        let objects = open_work_folder("objects", &objects_name)?;
        self.configure(&sources, &objects, tell)?;
        let begun = Instant::now();
        let mut targets = vec!["bzImage"];
        let config = objects.join(".config");
        let options = fs::read_to_string(&config).map_err(KernelError::file_error(&config))?;
        let has_modules = options.lines().any(|line| line.starts_with("CONFIG_") && line.ends_with("=m"));
        if has_modules {
            targets.push("modules");
        }
        let linker = self.layout.prepare(self.build, &objects)?;
        let compiled = self.compile(&sources, (&objects, linker.as_ref()), &key, &targets, tell)?;
        linker.as_ref().map_or(Ok(()), LayoutLinker::check)?;
        let record = KernelBuildRecord {
            recipe_key: self.recipe_key.clone(),
            sources: sources.identity.clone(),
            patches: self
                .patches
                .iter()
                .filter_map(|patch| patch.path.file_name())
                .map(|name| name.to_string_lossy().into_owned())
                .collect(),
            compiler: self.compiler.clone().unwrap_or_default(),
            make: self.build.make.clone(),
            flags: self.build.flags.clone(),
            options: self.build.options.clone(),
            layout: self.layout.0,
            compiled,
            took: Nanos::from(begun.elapsed()),
            key: key.clone(),
        };
        replace_cached_kernel(&format!("{}@{}", self.recipe.name, &key[..12]), |folder| {
            let kept = [
                ("arch/x86/boot/bzImage", "bzImage"),
                ("vmlinux", "vmlinux"),
                ("System.map", "System.map"),
                (".config", "config"),
            ];
            for (from, to) in kept {
                fs::copy(objects.join(from), folder.join(to))
                    .map_err(KernelError::file_error(folder.join(to)))?;
            }
            let mut modules = None;
            if has_modules {
                let place = format!("INSTALL_MOD_PATH={}", folder.display());
                let mut make = self.make_command(&sources, &objects, &key);
                make.args(["-s", &place, "modules_install"]);
                tell(KernelProgress::Step("make modules_install"));
                run_command(make, None)?;
                let below = folder.join("lib/modules");
                modules = fs::read_dir(&below).ok().and_then(|mut found| Some(found.next()?.ok()?.path()));
            }
            let image = KernelImage::open(&folder.join("bzImage"), modules.as_deref())?;
            Ok(KernelImage { build: Some(record), ..image })
        })
    }

    /// One folder for each place of sources: object files know the paths that they were compiled from.
    fn objects_name(&self) -> String {
        let place = match &self.origin {
            SourceOrigin::Folder(path) | SourceOrigin::Git { repository: path, .. } => {
                path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string()
            }
            SourceOrigin::Package(_) | SourceOrigin::Archive { .. } => return self.recipe.name.clone(),
        };
        format!("{}-{}", self.recipe.name, &format_hash(&Sha256::digest(place))[..12])
    }

    /// Lays the fragments over the first configuration, and refuses one that the sources do not follow. What was configured from the
    /// same things is taken as it is.
    fn configure(
        &self,
        sources: &KernelSources,
        objects: &Path,
        tell: &mut KernelListener<'_>,
    ) -> Result<(), KernelError> {
        let compiler = self.compiler.as_deref().unwrap_or_default();
        let says = format!("{}\n{}\n{compiler}", self.config_key, sources.options_id);
        let (config, note) = (objects.join(".config"), objects.join("perflab.configured"));
        if config.is_file() && fs::read_to_string(&note).is_ok_and(|known| known == says) {
            return Ok(());
        }
        let _ = fs::remove_file(&note);
        let base = self.recipe.resolve_path(Path::new(&self.build.base));
        if base.is_file() {
            fs::copy(&base, &config).map_err(KernelError::file_error(&config))?;
        } else {
            self.run_make(sources, objects, &self.build.base, tell)?;
        }
        let wanted = wanted_options(self.recipe, self.build)?;
        let fragment = objects.join("perflab.config");
        fs::write(&fragment, &wanted).map_err(KernelError::file_error(&fragment))?;
        let paths = [objects, &config, &fragment].map(|path| path.display().to_string());
        let merge = ["scripts/kconfig/merge_config.sh", "-m", "-O", &paths[0], &paths[1], &paths[2]];
        run_step(&sources.tree, &merge, None, tell)?;
        self.run_make(sources, objects, "olddefconfig", tell)?;
        let got = fs::read_to_string(&config).map_err(KernelError::file_error(&config))?;
        check_options_taken(&wanted, &got)?;
        check_agent_options(&self.recipe.name, &got)?;
        fs::write(&note, says).map_err(KernelError::file_error(&note))
    }

    fn run_make(
        &self,
        sources: &KernelSources,
        objects: &Path,
        target: &str,
        tell: &mut KernelListener<'_>,
    ) -> Result<(), KernelError> {
        tell(KernelProgress::Step(&format!("make {target}")));
        let mut make = self.make_command(sources, objects, "");
        make.args(["-s", target]);
        run_command(make, None).map(drop)
    }

    /// `make` in the sources, with the objects elsewhere. Whoever kills us ends it as well.
    fn make_command(&self, sources: &KernelSources, objects: &Path, key: &str) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let can_follow = std::env::split_paths(&path).any(|folder| folder.join("setpriv").is_file());
        let mut make = match can_follow {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--pdeathsig", "TERM", "make"]);
                command
            }
            false => Command::new("make"),
        };
        make.current_dir(&sources.tree).arg(format!("O={}", objects.display()));
        if let Some(compiler) = &self.build.compiler {
            make.arg(format!("CC={compiler}"));
        }
        make.args(self.build.make.iter().map(|(name, value)| format!("{name}={value}")));
        for (file, flags) in &self.build.flags {
            let name = file.rsplit('/').next().unwrap_or(file);
            make.arg(format!("CFLAGS_{name}={flags}"));
        }
        // The same things make the same kernel, whoever builds it where and when; its release tells kernels apart.
        make.arg(format!("LOCALVERSION=-perflab-{}", key.get(..8).unwrap_or_default()));
        make.args(["KBUILD_BUILD_USER=perflab", "KBUILD_BUILD_HOST=perflab", "KBUILD_BUILD_VERSION=1"]);
        make.arg("KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 1970");
        for variable in
            ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "ARCH", "CROSS_COMPILE", "KCFLAGS", "KBUILD_OUTPUT"]
        {
            make.env_remove(variable);
        }
        make.env("LC_ALL", "C").stdin(Stdio::null());
        make
    }

    /// Compiles; how many files that took.
    fn compile(
        &self,
        sources: &KernelSources,
        (objects, linker): (&Path, Option<&LayoutLinker>),
        key: &str,
        targets: &[&str],
        tell: &mut KernelListener<'_>,
    ) -> Result<u32, KernelError> {
        self.check_flags(sources)?;
        let jobs = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
        let log = objects.join("perflab-build.log");
        let errors = File::create(&log).map_err(KernelError::file_error(&log))?;
        let mut make = self.make_command(sources, objects, key);
        make.args(linker.map(LayoutLinker::make_variable));
        make.arg(format!("-j{jobs}")).args(targets).stdout(Stdio::piped()).stderr(errors);
        tell(KernelProgress::Step(&format!("make -j{jobs} {}", targets.join(" "))));
        let failed = |reason: String, hint| KernelError::Command { command: "make".into(), reason, hint };
        let mut child = make.spawn().map_err(|error| failed(error.to_string(), None))?;
        let (begun, mut compiled) = (Instant::now(), 0);
        // A first build compiles all files, a later one some: how many is known only of the first.
        let is_first = !objects.join("System.map").is_file();
        let expected = if is_first { self.expected_files() } else { None };
        if let Some(output) = child.stdout.take() {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                if line.starts_with(b"  CC ") || line.starts_with(b"  AS ") {
                    compiled += 1;
                    tell(KernelProgress::Compiled { done: compiled, expected, elapsed: begun.elapsed() });
                }
            }
        }
        let status = child.wait().map_err(|error| failed(error.to_string(), None))?;
        if status.success() {
            return Ok(compiled);
        }
        let text =
            fs::read(&log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        // A full disk leaves no room for the message, either.
        let is_full =
            statvfs(objects).is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) < LEAST_ROOM);
        if is_full || text.contains("No space left on device") {
            return Err(failed("No space left on device".into(), Some(DISK_FULL)));
        }
        if let Some(message) = find_compiler_error(&text) {
            return Err(KernelError::Compile { message, log });
        }
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        Err(failed(format!("{status}: {last} ({})", log.display()), None))
    }

    fn expected_files(&self) -> Option<u32> {
        let earlier = list_cached_kernels(&format!("{}@", self.recipe.name));
        let most = earlier.iter().filter_map(|kernel| Some(kernel.build.as_ref()?.compiled)).max();
        most.max(self.build.files)
    }

    /// A variable of make on its command line would replace what the tree's own makefile says of that file.
    fn check_flags(&self, sources: &KernelSources) -> Result<(), KernelError> {
        for file in self.build.flags.keys() {
            let (folder, name) = file.rsplit_once('/').unwrap_or((".", file));
            let makefile = sources.tree.join(folder).join("Makefile");
            let text = fs::read_to_string(&makefile).map_err(KernelError::file_error(&makefile))?;
            let own = text.lines().find(|line| line.starts_with(&format!("CFLAGS_{name}")));
            if let Some(own) = own {
                return Err(KernelError::Command {
                    command: "make".into(),
                    reason: format!(
                        "the flags of {file} would replace those of the tree's {folder}/Makefile: `{own}`"
                    ),
                    hint: Some("add these to the recipe's own flags of the file in a patch of the makefile"),
                });
            }
        }
        Ok(())
    }
}

/// Less room than this ends a build.
const LEAST_ROOM: u64 = 4 << 20;

/// The options that the fragments and the recipe ask for; the last that names one counts.
fn wanted_options(recipe: &KernelRecipe, build: &KernelBuild) -> Result<String, KernelError> {
    let mut lines: Vec<String> = Vec::new();
    for name in &build.fragments {
        lines.extend(recipe.read_fragment(name)?.lines().map(str::to_owned));
    }
    lines.extend(build.options.iter().cloned());
    // The kernel's release is ours.
    lines.push("CONFIG_LOCALVERSION_AUTO=n".into());
    let mut wanted: Vec<(String, String)> = Vec::new();
    for line in &lines {
        let Some((option, value)) = parse_option(line) else { continue };
        wanted.retain(|(known, _)| known != option);
        wanted.push((option.to_owned(), value.to_owned()));
    }
    let line = |(option, value): &(String, String)| match value.as_str() {
        "n" => format!("# {option} is not set\n"),
        _ => format!("{option}={value}\n"),
    };
    Ok(wanted.iter().map(line).collect())
}

/// `CONFIG_X=y`, `# CONFIG_X is not set`; the option and its value, `n` where it is not set.
fn parse_option(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if let Some(option) = line.strip_prefix("# ").and_then(|rest| rest.strip_suffix(" is not set")) {
        return option.starts_with("CONFIG_").then_some((option, "n"));
    }
    line.split_once('=').filter(|(option, _)| option.starts_with("CONFIG_"))
}

/// Whether every requested option is in the resulting configuration.
fn check_options_taken(wanted: &str, got: &str) -> Result<(), KernelError> {
    let got: BTreeMap<&str, &str> = got.lines().filter_map(parse_option).collect();
    let has = |(option, value): &(&str, &str)| got.get(option).copied().unwrap_or("n") == *value;
    let ignored = wanted.lines().filter_map(parse_option).filter(|one| !has(one));
    let ignored: Vec<String> = ignored.map(|(option, value)| format!("{option}={value}")).collect();
    if ignored.is_empty() {
        return Ok(());
    }
    Err(KernelError::Command {
        command: "make olddefconfig".into(),
        reason: format!("these sources do not take {}", ignored.join(", ")),
        hint: Some(
            "the recipe asks for an option that this version does not have, whose needs are not met, or that another one selects",
        ),
    })
}

/// What the agent of a guest cannot do without.
const AGENT_OPTIONS: [&str; 9] = [
    "CONFIG_BLK_DEV_INITRD",
    "CONFIG_BINFMT_ELF",
    "CONFIG_DEVTMPFS",
    "CONFIG_PROC_FS",
    "CONFIG_SYSFS",
    "CONFIG_TMPFS",
    "CONFIG_PCI",
    "CONFIG_VIRTIO_PCI",
    "CONFIG_VIRTIO_CONSOLE",
];

/// Whether a guest with this configuration can be spoken to.
fn check_agent_options(recipe: &str, config: &str) -> Result<(), KernelError> {
    let got: BTreeMap<&str, &str> = config.lines().filter_map(parse_option).collect();
    let lacking: Vec<&str> =
        AGENT_OPTIONS.into_iter().filter(|option| !matches!(got.get(option), Some(&"y" | &"m"))).collect();
    match lacking.is_empty() {
        true => Ok(()),
        false => Err(KernelError::LacksOptions { recipe: recipe.into(), options: lacking.join(", ") }),
    }
}

/// The options in which two configurations differ, with the value of each; `n` where one is not set.
pub fn compare_configs(a: &str, b: &str) -> Vec<(String, String, String)> {
    let [a, b]: [BTreeMap<&str, &str>; 2] =
        [a, b].map(|text| text.lines().filter_map(parse_option).collect());
    let options: std::collections::BTreeSet<&str> = a.keys().chain(b.keys()).copied().collect();
    let value = |of: &BTreeMap<&str, &str>, option| of.get(option).copied().unwrap_or("n").to_owned();
    let pairs = options.into_iter().map(|option| (option.to_owned(), value(&a, option), value(&b, option)));
    pairs.filter(|(_, a, b)| a != b).collect()
}

/// The first error that a compiler, an assembler or a linker reports: with its place, and the source line where that was printed.
fn find_compiler_error(log: &str) -> Option<String> {
    let lines: Vec<&str> = log.lines().collect();
    let is_error = |line: &&str| {
        line.contains(": error: ")
            || line.contains(": fatal error: ")
            || line.contains(": Error: ")
            || line.contains("undefined reference to")
    };
    let first = lines.iter().position(is_error)?;
    // gcc and clang print the line below: `  130 |     int x = y;`.
    let source =
        lines.get(first + 1).filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()));
    let source = source.and_then(|line| line.split_once('|')).map(|(_, text)| text.trim());
    let error = lines[first].trim();
    Some(source.map_or_else(|| error.to_owned(), |text| format!("{error}: `{text}`")))
}

fn check_build_tools(build: &KernelBuild) -> Result<(), KernelError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let lacks = |program: &&str| !std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let missing: Vec<&str> = build.needed_programs().into_iter().filter(lacks).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(KernelError::Command {
        command: "make".into(),
        reason: format!(
            "{} not installed; as root: apt-get install {}",
            missing.join(", "),
            build.needed_packages().join(" ")
        ),
        hint: None,
    })
}

/// What the compiler says of itself; none where it is not here.
fn read_compiler(build: &KernelBuild) -> Option<String> {
    let llvm = build.make.get("LLVM").map(|_| "clang");
    let name = build.compiler.as_deref().or(llvm).unwrap_or("gcc");
    let mut command = Command::new(name);
    command.arg("--version");
    let output = run_command(command, None).ok()?;
    output.lines().next().map(str::to_owned)
}

/// The configuration of a kernel of the cache: what was built has it beside the image, as packages have.
///
/// # Errors
/// It cannot be read.
pub fn read_kernel_config_file(kernel: &KernelImage) -> Option<String> {
    let beside = [
        kernel.image.with_file_name("config"),
        kernel.image.with_file_name(format!("config-{}", kernel.release)),
    ];
    beside.iter().find_map(|path: &PathBuf| fs::read_to_string(path).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_were_not_taken_are_named() {
        let said =
            |wanted: &str, got: &str| check_options_taken(wanted, got).map_err(|error| error.to_string());
        insta::assert_snapshot!(
            said("CONFIG_A=y\n# why\nCONFIG_B=y\n# CONFIG_C is not set\n", "CONFIG_A=y\nCONFIG_C=y\n").unwrap_err(),
            @"`make olddefconfig` failed: these sources do not take CONFIG_B=y, CONFIG_C=n; the recipe asks for an option that this version does not have, whose needs are not met, or that another one selects"
        );
        said("CONFIG_A=y\n# CONFIG_B is not set\n", "CONFIG_A=y\nCONFIG_C=m\n").unwrap();
    }

    #[test]
    fn a_kernel_that_no_agent_could_speak_from_is_refused_before_it_is_compiled() {
        let all: String = AGENT_OPTIONS.iter().map(|option| format!("{option}=y\n")).collect();
        check_agent_options("mine", &all).unwrap();
        let error =
            check_agent_options("mine", &all.replace("CONSOLE=y", "CONSOLE=n")).unwrap_err().to_string();
        insta::assert_snapshot!(error, @r#"a guest with the kernel `mine` could not be spoken to: its configuration lacks CONFIG_VIRTIO_CONSOLE; add `fragments = ["guest.config"]`, or these as `options`"#);
    }

    #[test]
    fn configurations_differ_by_options() {
        let differing = compare_configs(
            "CONFIG_SLUB=y\nCONFIG_HZ=250\n",
            "CONFIG_HZ=1000\n# CONFIG_SLUB is not set\nCONFIG_A=n\n",
        );
        let differing: Vec<String> =
            differing.iter().map(|(option, a, b)| format!("{option}: {a}, {b}")).collect();
        assert_eq!(differing, ["CONFIG_HZ: 250, 1000", "CONFIG_SLUB: y, n"]);
    }

    #[test]
    fn a_compilers_error_comes_with_its_line() {
        let log = "../mm/slub.c: In function 'kfree':\n../mm/slub.c:130:5: error: expected ';' before 'return'\n  130 |     return x\n      |     ^\nmake[2]: *** [mm/slub.o] Error 1\n";
        assert_eq!(
            find_compiler_error(log).as_deref(),
            Some("../mm/slub.c:130:5: error: expected ';' before 'return': `return x`")
        );
        assert_eq!(find_compiler_error("make: *** No rule\n"), None);
    }
}
