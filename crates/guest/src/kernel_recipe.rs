//! How a kernel is obtained: a recipe, those of `kernels/` that ship and those that users write.
//!
//! A recipe has either a package of the distribution that holds an image, or sources and how they are built: a first
//! configuration, fragments over it, single options, a compiler, variables of make, flags for single files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use perflab_files::read_finite_file;
use perflab_model::quantity::DurationText;
use perflab_model::study::TomlSource as Text;
use perflab_model::{Problem, Problems};
use serde::{Deserialize, Serialize};

use crate::kernel::KernelError;

/// More is no recipe.
const LARGEST_RECIPE: u64 = 1 << 20;

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
    /// What the paths in it are relative to; none for a recipe that ships.
    pub folder: Option<PathBuf>,
}

/// Where a kernel comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum KernelSource {
    /// A package of the distribution, unpacked.
    Package(KernelPackage),
    /// Sources, configured and built.
    Build(Box<KernelBuild>),
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

/// `[package]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelPackage {
    /// A package of Debian or Ubuntu that holds the image, or depends on the newest one that does.
    pub apt: String,
}

/// `[build]`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct KernelBuild {
    /// A package of Debian or Ubuntu that holds the sources as a tar archive.
    pub apt: Option<String>,
    /// A tar archive of the sources: a path, or an address that `curl` fetches.
    pub tarball: Option<String>,
    /// What the archive's SHA-256 is; an address needs it.
    pub sha256: Option<String>,
    /// A folder with sources, taken as it is: changes that were not committed too. It is never written to.
    pub tree: Option<PathBuf>,
    /// A git repository, of which `revision` is built. It is never written to.
    pub git: Option<PathBuf>,
    /// A commit, tag or branch of the repository; `HEAD` where nothing is said.
    pub revision: Option<String>,
    /// Patches laid over the sources with `patch -p1`, in order.
    pub patches: Vec<PathBuf>,
    /// Programs that the build calls.
    pub needs: Vec<String>,
    /// The packages that hold them and the headers they want.
    pub packages: Vec<String>,
    /// The target of make that gives the first configuration (`tinyconfig`), or the path of a configuration.
    pub base: String,
    /// Fragments laid over it in order: those of `kernels/` by name, others by path.
    pub fragments: Vec<String>,
    /// Single options, laid over those: `CONFIG_SLUB=y`, `CONFIG_MEMCG=n`.
    pub options: Vec<String>,
    /// `gcc-12`, `clang`; what make takes where nothing is said.
    pub compiler: Option<String>,
    /// Variables of make: `LLVM = "1"`, `KCFLAGS = "-g"`.
    pub make: BTreeMap<String, String>,
    /// Flags for single files: `"mm/slub.o" = "-fno-inline"`.
    pub flags: BTreeMap<String, String>,
    /// How many files a build compiles, for the time left of the first one.
    pub files: Option<u32>,
    /// How much CPU time that took where it was measured: `445s`.
    pub cpu_time: Option<DurationText>,
}

/// Variables of make that say where and how perflab builds.
const OWN_VARIABLES: [&str; 8] = [
    "O",
    "M",
    "KBUILD_OUTPUT",
    "KBUILD_EXTMOD",
    "LOCALVERSION",
    "INSTALL_MOD_PATH",
    "KBUILD_BUILD_TIMESTAMP",
    "KBUILD_BUILD_VERSION",
];

/// The programs that every build calls, and the packages that have them.
const NEEDS: [(&str, &str); 8] = [
    ("gcc", "gcc"),
    ("make", "make"),
    ("bc", "bc"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("xz", "xz-utils"),
    ("", "libelf-dev"),
    ("", "libssl-dev"),
];

/// Where sources come from.
#[derive(Debug, Clone, PartialEq)]
pub enum SourceOrigin {
    /// A package of the distribution.
    Package(String),
    /// An archive, and what its SHA-256 has to be.
    Archive {
        /// a path or an address
        place: String,
        /// hexadecimal
        sha256: Option<String>,
    },
    /// A folder as it is.
    Folder(PathBuf),
    /// A revision of a git repository.
    Git {
        /// where it is
        repository: PathBuf,
        /// as git names revisions
        revision: String,
    },
}

impl KernelBuild {
    /// Where its sources come from; none where whoever asks for the kernel names a tree.
    pub fn origin(&self) -> Option<SourceOrigin> {
        if let Some(package) = &self.apt {
            return Some(SourceOrigin::Package(package.clone()));
        }
        if let Some(place) = &self.tarball {
            return Some(SourceOrigin::Archive { place: place.clone(), sha256: self.sha256.clone() });
        }
        if let Some(folder) = &self.tree {
            return Some(SourceOrigin::Folder(folder.clone()));
        }
        let repository = self.git.clone()?;
        let revision = self.revision.clone().unwrap_or_else(|| "HEAD".into());
        Some(SourceOrigin::Git { repository, revision })
    }

    /// The programs that have to be there.
    pub fn needed_programs(&self) -> Vec<&str> {
        let always = NEEDS.iter().map(|(program, _)| *program).filter(|program| !program.is_empty());
        let patch = (!self.patches.is_empty()).then_some("patch");
        let git = (self.git.is_some() || self.tree.is_some()).then_some("git");
        let compiler = self.compiler.as_deref().filter(|name| !name.contains(['/', ' ']));
        always.chain(self.needs.iter().map(String::as_str)).chain(patch).chain(git).chain(compiler).collect()
    }

    /// The packages of Debian that have them.
    pub fn needed_packages(&self) -> Vec<&str> {
        let always = NEEDS.iter().map(|(_, package)| *package);
        let patch = (!self.patches.is_empty()).then_some("patch");
        let git = (self.git.is_some() || self.tree.is_some()).then_some("git");
        always.chain(self.packages.iter().map(String::as_str)).chain(patch).chain(git).collect()
    }

    fn problems(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        let origins = [
            ("apt", self.apt.is_some()),
            ("tarball", self.tarball.is_some()),
            ("tree", self.tree.is_some()),
            ("git", self.git.is_some()),
        ];
        let given: Vec<&str> = origins.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
        if let [_, second, ..] = given.as_slice() {
            found.push(
                Problem::new(
                    format!("build.{second}"),
                    format!("sources come from one place, not from {}", given.join(" and ")),
                )
                .with_hint("keep one of them"),
            );
        }
        if self.base.is_empty() {
            found.push(
                Problem::new("build", "needs `base`")
                    .with_hint("add `base = \"tinyconfig\"` (or defconfig, or the path of a .config)"),
            );
        }
        if self.base.starts_with('-') || self.base.contains('=') || self.base.contains(char::is_whitespace) {
            found.push(
                Problem::new("build.base", "is neither a target of make nor a path")
                    .with_hint("write tinyconfig, defconfig, or the path of a .config"),
            );
        }
        for variable in self.make.keys().filter(|name| OWN_VARIABLES.contains(&name.as_str())) {
            found.push(
                Problem::new("build.make", format!("`{variable}` is set by perflab itself"))
                    .with_hint("leave it out; a compiler is `compiler`, flags of a file are `flags`"),
            );
        }
        if self.revision.is_some() && self.git.is_none() {
            found.push(
                Problem::new("build.revision", "only a git repository has revisions")
                    .with_hint("add `git = \"PATH\"`"),
            );
        }
        let is_address = self.tarball.as_deref().is_some_and(is_address);
        if is_address && self.sha256.is_none() {
            found.push(
                Problem::new("build.tarball", "what is fetched from an address needs a checksum")
                    .with_hint("add `sha256 = \"...\"`"),
            );
        }
        for option in &self.options {
            if !option.starts_with("CONFIG_") || !option.contains('=') {
                found.push(
                    Problem::new("build.options", format!("`{option}` is no option"))
                        .with_hint("write CONFIG_NAME=y, =m, =n or =VALUE"),
                );
            }
        }
        for file in self.flags.keys().filter(|file| !file.ends_with(".o")) {
            found.push(
                Problem::new("build.flags", format!("`{file}` is no object file"))
                    .with_hint("name what is compiled, below the tree: \"mm/slub.o\""),
            );
        }
        found
    }
}

/// Whether a place is an address, not a path.
pub(crate) fn is_address(place: &str) -> bool {
    place.contains("://")
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecipeDocument {
    title: String,
    #[serde(default)]
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
            (None, Some(build)) => {
                let problems = build.problems();
                if !problems.is_empty() {
                    return Err(text.place_problems(problems));
                }
                KernelSource::Build(Box::new(build))
            }
            _ => {
                let problem = Problem::new("package", "a kernel has either [package] or [build]");
                return Err(text.place_problems(vec![problem]));
            }
        };
        let name = base.strip_suffix(".toml").unwrap_or(base).to_owned();
        Ok(KernelRecipe { name, title: document.title, about: document.about, source, folder: None })
    }

    /// The recipe in a file of the user's. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// It cannot be read, or says what a recipe cannot say.
    pub fn open(path: &Path) -> Result<KernelRecipe, KernelError> {
        let text = read_finite_file(path, LARGEST_RECIPE).map_err(KernelError::file_error(path))?;
        let text = String::from_utf8_lossy(&text);
        let mut recipe = KernelRecipe::read(&Text::new(path.display().to_string(), text))?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        recipe.folder = Some(folder.to_owned());
        Ok(recipe)
    }

    /// A path of the recipe, as it is found from here.
    pub(crate) fn resolve_path(&self, path: &Path) -> PathBuf {
        self.folder.as_ref().map_or_else(|| path.to_owned(), |folder| folder.join(path))
    }

    /// The text of a fragment: of `kernels/` by name, else of a file.
    ///
    /// # Errors
    /// There is none of that name, and the file cannot be read.
    pub(crate) fn read_fragment(&self, name: &str) -> Result<String, KernelError> {
        if let Some(text) = config_fragment(name) {
            return Ok(text.to_owned());
        }
        let path = self.resolve_path(Path::new(name));
        std::fs::read_to_string(&path).map_err(KernelError::file_error(&path))
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
    EMBEDDED.iter().find(|(file, _)| *file == name && name.ends_with(".config")).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_recipe_reads_and_its_fragments_are_there() {
        let recipes = KernelRecipes::shipped().unwrap();
        let names: BTreeSet<&str> = recipes.iter().map(|recipe| recipe.name.as_str()).collect();
        assert!(["debian-cloud", "linux-6.1-slob"].iter().all(|name| names.contains(name)), "{names:?}");
        for recipe in recipes.iter() {
            if let KernelSource::Build(build) = &recipe.source {
                let texts = build.fragments.iter().map(|name| recipe.read_fragment(name).unwrap());
                let texts: String = texts.collect();
                assert!(texts.lines().any(|line| line == "CONFIG_VIRTIO_CONSOLE=y"), "{}", recipe.name);
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
            assert_eq!(KernelBuild { options: slub.options.clone(), files: slub.files, ..*other }, *slub);
        }
    }

    #[test]
    fn an_unknown_kernel_has_a_hint() {
        let error = KernelRecipes::shipped().unwrap().get("debian-clod").unwrap_err().to_string();
        insta::assert_snapshot!(error, @"there is no kernel `debian-clod`: no file, and no recipe; did you mean `debian-cloud`?");
    }

    fn read_text(text: &str) -> Result<KernelRecipe, Problems> {
        KernelRecipe::read(&Text::new("kernels/x.toml", text))
    }

    #[test]
    fn a_recipe_has_one_source() {
        let refused = |text: &str| read_text(&format!("title = \"x\"\n{text}")).unwrap_err().to_string();
        let texts = [
            "",
            "[build]\napt = \"linux-source\"\ngit = \"/linux\"\nbase = \"tinyconfig\"\n",
            "[build]\ntree = \"/linux\"\nrevision = \"v6.1\"\nbase = \"tinyconfig\"\n",
            "[build]\ntarball = \"https://example.org/linux.tar\"\noptions = [\"SLUB=y\"]\nflags = { \"mm/slub.c\" = \"-O1\" }\n",
        ];
        insta::assert_snapshot!(texts.map(refused).join("\n\n"), @r#"
kernels/x.toml: `package`: a kernel has either [package] or [build]

kernels/x.toml:4:1: `build.git`: sources come from one place, not from apt and git; keep one of them

kernels/x.toml:4:1: `build.revision`: only a git repository has revisions; add `git = "PATH"`

kernels/x.toml:2:2: `build`: needs `base`; add `base = "tinyconfig"` (or defconfig, or the path of a .config)
kernels/x.toml:3:1: `build.tarball`: what is fetched from an address needs a checksum; add `sha256 = "..."`
kernels/x.toml:4:1: `build.options`: `SLUB=y` is no option; write CONFIG_NAME=y, =m, =n or =VALUE
kernels/x.toml:5:1: `build.flags`: `mm/slub.c` is no object file; name what is compiled, below the tree: "mm/slub.o"
"#);
    }

    #[test]
    fn a_users_recipe_finds_what_lies_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        std::fs::write(folder.path().join("mine.config"), "CONFIG_A=y\n").unwrap();
        let text = "title = \"Mine\"\n[build]\ngit = \"linux\"\nbase = \"defconfig\"\nfragments = [\"guest.config\", \"mine.config\"]\n";
        std::fs::write(&path, text).unwrap();
        let recipe = KernelRecipe::open(&path).unwrap();
        assert_eq!(recipe.read_fragment("mine.config").unwrap(), "CONFIG_A=y\n");
        let KernelSource::Build(build) = &recipe.source else { panic!("it is built") };
        assert_eq!(
            build.origin(),
            Some(SourceOrigin::Git { repository: "linux".into(), revision: "HEAD".into() })
        );
    }
}
