//! Kernels to boot: files of the user's, or recipes that fetch or build one.
//!
//! Owns the recipes of `kernels/`, the cache that they fill, and what a kernel's own files say about it: its
//! release, which modules it has and which of them need which. Refuses to install anything on this host: a
//! package is unpacked into the cache, never installed.

mod build;
mod cache;
mod fetch;
mod image;
mod modules;
mod recipe;

pub use cache::cache_directory;
pub use image::KernelImage;
pub use modules::{KernelModule, KernelModules};
pub use recipe::{KernelBuild, KernelPackage, KernelRecipe, KernelRecipes, KernelSource, find_kernel};

use std::path::PathBuf;

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
    /// There is a recipe, and nobody has carried it out.
    #[error("the kernel `{name}` is not here yet: `perflab kernel {verb} {name}` gets it")]
    NotHere {
        /// its name
        name: String,
        /// `fetch` or `build`
        verb: &'static str,
    },
    /// The file is no kernel for this processor.
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
    /// A program of the system failed.
    #[error("`{command}` failed: {reason}{}", hint.map_or_else(String::new, |hint| format!("; {hint}")))]
    Command {
        /// the command line
        command: String,
        /// the end of what it said
        reason: String,
        /// what to do
        hint: Option<&'static str>,
    },
    /// What was fetched is not what the index of packages promises.
    #[error("{path}: SHA-256 is {found}, and {wanted} is promised; it was removed")]
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

impl KernelError {
    pub(crate) fn file_error(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> KernelError {
        let path = path.into();
        move |source| KernelError::File { path, source }
    }
}

#[cfg(test)]
mod tests;
