//! A recipe: one TOML file that says how a kernel is had.

use std::path::Path;

use perflab_model::study::TomlSource as Text;
use perflab_model::{Problem, Problems, nearest};
use serde::Deserialize;

use super::{KernelError, KernelImage, build, cache, fetch};

/// The files of `kernels/`: file name and text, made by build.rs.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// How one kernel is had.
#[derive(Debug, Clone)]
pub struct KernelRecipe {
    /// The name of its file, without `.toml`.
    pub name: String,
    /// One line.
    pub title: String,
    /// What it is good for, for somebody who never booted it.
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
    /// What `perflab kernel` calls the way to it.
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
    /// What is wrong, in its place.
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
        cache::cached_kernel(&self.name)
    }

    /// Fetches or builds it anew. `say` hears every command before it is run.
    ///
    /// # Errors
    /// No network, no such package, a missing program, no room.
    pub fn make_image(&self, say: &mut dyn FnMut(&str)) -> Result<KernelImage, KernelError> {
        match &self.source {
            KernelSource::Package(package) => fetch::fetch_package(&self.name, package, say),
            KernelSource::Build(build) => build::build_kernel(&self.name, build, say),
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
        let known = || nearest::suggest_name(name, self.iter().map(|recipe| recipe.name.as_str()));
        let found = self.iter().find(|recipe| recipe.name == name);
        found.ok_or_else(|| KernelError::Unknown { name: name.into(), hint: known() })
    }
}

/// A fragment of `kernels/`.
pub(super) fn config_fragment(name: &str) -> Option<&'static str> {
    EMBEDDED.iter().find(|(file, _)| *file == name).map(|(_, text)| *text)
}
