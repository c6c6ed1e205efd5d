//! The kernel that a user means: an image, a recipe, a recipe with a tree and a revision.
//!
//! `debian-cloud`, `mine.toml`, `/boot/vmlinuz`, `mine.toml@v6.5`, `linux-guest:/home/me/linux@HEAD~3`,
//! `linux-guest:/home/me/linux` with what was not committed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::kernel::{KernelError, KernelImage, SourceIdentity};
use crate::kernel_build::KernelOrder;
use crate::kernel_cache::{cached_kernel, list_cached_kernels};
use crate::kernel_layout::KernelLayout;
use crate::kernel_package::fetch_package;
use crate::kernel_recipe::{KernelRecipe, KernelRecipes, KernelSource, SourceOrigin};
use crate::kernel_sources::{identify_sources, list_revisions};
use crate::kernel_step::KernelListener;

/// A recipe, and which sources it is meant for.
#[derive(Debug, Clone)]
pub struct KernelRequest {
    /// As it was written.
    pub text: String,
    /// The recipe.
    pub recipe: KernelRecipe,
    /// The tree that is built in place of the recipe's own sources.
    pub tree: Option<PathBuf>,
    /// The revision of the recipe's repository, or of the tree.
    pub revision: Option<String>,
    /// Under which layout it is linked; 0 as built.
    pub layout: u32,
}

impl KernelRequest {
    /// `RECIPE[:TREE][@REVISION][#LAYOUT]`: the recipe is one that ships, or the path of a file; the layout is a number, and moves
    /// code and data by what that draws.
    ///
    /// # Errors
    /// There is no such recipe, it cannot be read, or it takes no tree.
    pub fn parse(text: &str) -> Result<KernelRequest, KernelError> {
        let (named, layout) = split_layout(text);
        if layout != 0 && Path::new(named).is_file() && !named.ends_with(".toml") {
            return Err(KernelError::NotBuilt { recipe: named.to_owned() });
        }
        let (rest, revision) = split_revision(named);
        let (name, tree) = match rest.split_once(':') {
            Some((name, tree)) => (name, Some(PathBuf::from(tree))),
            None => (rest, None),
        };
        let recipe = match name.ends_with(".toml") {
            true => KernelRecipe::open(Path::new(name))?,
            false => KernelRecipes::shipped()?.get(name)?.clone(),
        };
        if matches!(recipe.source, KernelSource::Package(_)) && (tree.is_some() || revision.is_some()) {
            return Err(KernelError::NotBuilt { recipe: recipe.name });
        }
        if matches!(recipe.source, KernelSource::Package(_)) && layout != 0 {
            return Err(KernelError::NotBuilt { recipe: recipe.name });
        }
        Ok(KernelRequest { text: text.to_owned(), recipe, tree, revision, layout })
    }

    /// Several commits, of which each would be a kernel.
    fn range(&self) -> Option<&String> {
        self.revision.as_ref().filter(|revision| revision.contains(".."))
    }

    /// One request for each revision of a range `A..B`, oldest first; a request without a range is itself.
    ///
    /// # Errors
    /// There is no such range.
    pub fn expand(&self) -> Result<Vec<KernelRequest>, KernelError> {
        let Some(range) = self.revision.as_ref().filter(|revision| revision.contains("..")) else {
            return Ok(vec![self.clone()]);
        };
        let Some(SourceOrigin::Git { repository, .. }) = self.origin()? else {
            return Ok(vec![self.clone()]);
        };
        let base = self.text.split('@').next().unwrap_or_default();
        let layout = if self.layout == 0 { String::new() } else { format!("#{}", self.layout) };
        let one = |commit: String| KernelRequest {
            text: format!("{base}@{commit}{layout}"),
            revision: Some(commit),
            ..self.clone()
        };
        Ok(list_revisions(&repository, range)?.into_iter().map(one).collect())
    }

    /// Where the sources of one kernel come from; none of a package.
    fn single_origin(&self) -> Result<Option<SourceOrigin>, KernelError> {
        match self.range() {
            Some(_) => Err(KernelError::ManyRevisions { text: self.text.clone() }),
            None => self.origin(),
        }
    }

    /// Where the sources come from; none of a package.
    fn origin(&self) -> Result<Option<SourceOrigin>, KernelError> {
        let KernelSource::Build(build) = &self.recipe.source else { return Ok(None) };
        let own = build.origin().map(|origin| match origin {
            SourceOrigin::Folder(path) => SourceOrigin::Folder(self.recipe.resolve_path(&path)),
            SourceOrigin::Git { repository, revision } => {
                SourceOrigin::Git { repository: self.recipe.resolve_path(&repository), revision }
            }
            SourceOrigin::Archive { place, sha256 } if !crate::kernel_recipe::is_address(&place) => {
                let place = self.recipe.resolve_path(Path::new(&place)).display().to_string();
                SourceOrigin::Archive { place, sha256 }
            }
            other => other,
        });
        let origin = match (&self.tree, &self.revision, own) {
            (Some(tree), None, _) => SourceOrigin::Folder(tree.clone()),
            (Some(tree), Some(revision), _) => {
                SourceOrigin::Git { repository: tree.clone(), revision: revision.clone() }
            }
            (
                None,
                Some(revision),
                Some(SourceOrigin::Git { repository, .. } | SourceOrigin::Folder(repository)),
            ) => SourceOrigin::Git { repository, revision: revision.clone() },
            (None, None, Some(own)) => own,
            (None, Some(_), Some(_)) => {
                return Err(KernelError::NoRepository { recipe: self.recipe.name.clone() });
            }
            (None, _, None) => return Err(KernelError::NeedsTree { recipe: self.recipe.name.clone() }),
        };
        Ok(Some(origin))
    }

    /// What its sources are; nothing where only getting them tells, or of a package.
    ///
    /// # Errors
    /// The tree or the revision is not there.
    pub fn sources(&self, tell: &mut KernelListener<'_>) -> Result<Option<SourceIdentity>, KernelError> {
        self.single_origin()?.map_or(Ok(None), |origin| identify_sources(&origin, tell))
    }

    /// The kernel, where the cache has it.
    ///
    /// # Errors
    /// The tree or the revision is not there.
    pub fn cached_image(&self, tell: &mut KernelListener<'_>) -> Result<Option<KernelImage>, KernelError> {
        let Some(origin) = self.single_origin()? else { return Ok(cached_kernel(&self.recipe.name)) };
        let KernelSource::Build(build) = &self.recipe.source else { return Ok(None) };
        KernelOrder::new(&self.recipe, build, origin, KernelLayout(self.layout))?.find_kernel(tell)
    }

    /// How long its build takes here: as an earlier one of a kernel did, file by file, else as where the recipe was measured; nothing
    /// where neither is known.
    pub fn build_time(&self) -> Option<Duration> {
        let KernelSource::Build(build) = &self.recipe.source else { return None };
        let files = build.files?;
        let earlier = list_cached_kernels("");
        let most =
            earlier.iter().filter_map(|kernel| kernel.build.as_ref()).max_by_key(|build| build.compiled);
        let here = most.filter(|build| build.compiled >= files / 2);
        if let Some(build) = here {
            return Some(Duration::from(build.took) * files / build.compiled);
        }
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        Some(Duration::from(build.cpu_time?.0) / cpus)
    }

    /// Fetches it anew, or builds it unless it is here.
    ///
    /// # Errors
    /// No network, no such package, a missing program, sources that do not compile, no room.
    pub fn make_image(&self, tell: &mut KernelListener<'_>) -> Result<KernelImage, KernelError> {
        let origin = self.single_origin()?;
        match (&self.recipe.source, origin) {
            (KernelSource::Build(build), Some(origin)) => {
                KernelOrder::new(&self.recipe, build, origin, KernelLayout(self.layout))?.build_kernel(tell)
            }
            (KernelSource::Package(package), _) => fetch_package(&self.recipe.name, package, tell),
            (KernelSource::Build(_), None) => {
                Err(KernelError::NeedsTree { recipe: self.recipe.name.clone() })
            }
        }
    }
}

/// `KERNEL#LAYOUT` taken apart; a file whose own name ends so is one.
fn split_layout(text: &str) -> (&str, u32) {
    let is_path = |rest: &str| rest.split_once(':').map_or(rest, |(_, tree)| tree).to_owned();
    let found = text.rsplit_once('#').and_then(|(named, number)| Some((named, number.parse().ok()?)));
    found.filter(|_| !Path::new(&is_path(text)).exists()).unwrap_or((text, 0))
}

/// `TREE@REVISION` taken apart: a folder whose own name has an `@` in it is one.
fn split_revision(text: &str) -> (&str, Option<String>) {
    let is_folder = |rest: &str| rest.split_once(':').is_some_and(|(_, tree)| Path::new(tree).is_dir());
    if is_folder(text) {
        return (text, None);
    }
    let splits = text.match_indices('@').map(|(at, _)| text.split_at(at)).collect::<Vec<_>>();
    let chosen = splits.iter().rev().find(|(rest, _)| is_folder(rest)).or(splits.first());
    chosen.map_or((text, None), |(rest, revision)| (rest, Some(revision[1..].to_owned())))
}

/// The kernel that the user means, where it is here. The modules of an image may be named.
///
/// # Errors
/// There is no such kernel, or not yet.
pub fn find_kernel(name: &str, modules: Option<&Path>) -> Result<KernelImage, KernelError> {
    if Path::new(name).is_file() && !name.ends_with(".toml") {
        return KernelImage::open(Path::new(name), modules);
    }
    let request = KernelRequest::parse(name)?;
    let found = request.cached_image(&mut |_| ())?;
    let verb = request.recipe.source.verb();
    let kernel = found.ok_or_else(|| KernelError::NotHere { name: name.into(), verb })?;
    // What the user calls it, whatever folder it lies in.
    Ok(KernelImage { name: name.into(), ..kernel })
}
