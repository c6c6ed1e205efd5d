//! What of a program's files is in memory: whether a startup is cold, looked at and not assumed.
//!
//! Files are opened with the caller's rights and asked about, never read. Opening one brings its inode into memory,
//! so this is asked before the last caches are dropped: what survives the dropping of pages survives that of
//! inodes, too.

use std::io;
use std::path::{Path, PathBuf};

use perflab_model::PageSet;
use perflab_model::io_trace::PAGE;

/// What is in memory of some files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CachedFiles {
    /// files that could be asked about
    pub files: usize,
    /// their bytes that a startup reads
    pub known: u64,
    /// of these, bytes that are in memory
    pub resident: u64,
    /// the file of which most is in memory, and its bytes there
    pub worst: Option<(PathBuf, u64)>,
}

impl CachedFiles {
    /// Of files and those of their pages that a startup reads; all pages where there are none.
    pub fn of_files<'a>(files: impl IntoIterator<Item = (&'a Path, Option<&'a PageSet>)>) -> Self {
        let mut cached = CachedFiles::default();
        for (path, pages) in files {
            if let Ok((known, resident)) = count_cached_bytes(path, pages) {
                cached.add_file(path, known, resident);
            }
        }
        cached
    }

    fn add_file(&mut self, path: &Path, known: u64, resident: u64) {
        self.files += 1;
        self.known += known;
        self.resident += resident;
        if resident > self.worst.as_ref().map_or(0, |(_, most)| *most) {
            self.worst = Some((path.into(), resident));
        }
    }
}

/// Bytes of a file that are read, and of these those in memory.
fn count_cached_bytes(path: &Path, pages: Option<&PageSet>) -> io::Result<(u64, u64)> {
    let file = perflab_observe::open_unnoticed(path)?;
    let Some(pages) = pages else {
        let known = file.metadata()?.len().div_ceil(PAGE) * PAGE;
        return Ok((known, perflab_observe::count_resident_pages(&file, 0, 0)? * PAGE));
    };
    let resident =
        |(first, count): (u64, u64)| perflab_observe::count_resident_pages(&file, first * PAGE, count * PAGE);
    let resident = pages.iter().map(resident).sum::<io::Result<u64>>()?;
    Ok((pages.page_count() * PAGE, resident * PAGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_read_are_counted_and_the_worst_file_is_named() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        std::fs::write(path("small"), vec![1; 2 * PAGE as usize]).unwrap();
        std::fs::write(path("large"), vec![1; 9 * PAGE as usize - 1]).unwrap();
        let (two, seven): (PageSet, PageSet) =
            ([(0, 2)].into_iter().collect(), [(1, 7)].into_iter().collect());
        let (small, large, gone) = (path("small"), path("large"), path("gone"));
        let cached = CachedFiles::of_files([(&*small, Some(&two)), (&*large, Some(&seven)), (&*gone, None)]);
        assert_eq!((cached.files, cached.known, cached.resident), (2, 9 * PAGE, 9 * PAGE));
        assert_eq!(cached.worst, Some((large.clone(), 7 * PAGE)));
        assert_eq!(CachedFiles::of_files([(&*large, None)]).known, 9 * PAGE);
    }
}
