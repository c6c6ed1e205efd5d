//! Where a peer is had from: a registry, by its own client, or the sources here.

/// A registry and what to ask it for.
#[derive(Debug, Clone, Copy)]
pub enum PeerSource {
    /// a package of Debian's with a program of it, which needs root
    Debian { package: &'static str, program: &'static str },
    /// a package of PyPI's with a module of it
    Python { package: &'static str, module: &'static str },
    /// a package of crates.io with a program of it
    Crates { package: &'static str, program: &'static str },
    /// a program by its path in Go's module proxy
    Go { path: &'static str, program: &'static str },
    /// a crate of this repository that is a workspace of its own, with its program
    Folder { path: &'static str, program: &'static str },
    /// a source file of C++ in this repository, with what it is linked with and the program that it becomes
    Cxx { file: &'static str, links: &'static [&'static str], program: &'static str },
}
