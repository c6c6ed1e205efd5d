//! Where a program of this host is.

use std::path::PathBuf;

/// The file that a name without a slash calls: on PATH, or where root's programs are. Links are not followed.
pub(crate) fn find_program_file(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut places = std::env::split_paths(&path).chain(system).map(|folder| folder.join(program));
    places.find(|file| file.is_file())
}
