//! A folder that may hold results, looked at in bounded work: how large what lies below is, where links lead and what is mounted
//! there makes no difference.

use std::cell::Cell;
use std::fs::{self, DirEntry};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use perflab_files::is_live_kernel_folder;

use crate::error::ImportError;

/// Entries of one folder, and of all below it, that an importer looks at to see whether it is its own.
const ENTRIES: usize = 5_000;

/// Entries of folders which nobody recognises that are looked at altogether, where several are searched.
const UNRECOGNISED: usize = 50_000;

/// What may still be looked at of folders which nobody recognises.
#[derive(Debug)]
pub(crate) struct SearchBudget {
    left: Cell<usize>,
}

impl Default for SearchBudget {
    fn default() -> Self {
        SearchBudget { left: Cell::new(UNRECOGNISED) }
    }
}

impl SearchBudget {
    /// Whether nothing more may be looked at.
    pub(crate) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }
}

/// A folder, and how much of it may be looked at.
#[derive(Debug)]
pub(crate) struct InputFolder<'a> {
    path: &'a Path,
    device: u64,
    /// entries that the importer which is asked may still look at
    left: Cell<usize>,
    /// entries that all of them looked at
    spent: Cell<usize>,
    budget: &'a SearchBudget,
}

impl<'a> InputFolder<'a> {
    /// # Errors
    /// It cannot be read, or it is the kernel's own.
    pub(crate) fn open(path: &'a Path, budget: &'a SearchBudget) -> Result<Self, ImportError> {
        let device = fs::metadata(path).map_err(ImportError::io("read", path))?.dev();
        drop(fs::read_dir(path).map_err(ImportError::io("read", path))?);
        if is_live_kernel_folder(path) {
            let reason = "the kernel makes it up as it is read, and it is nobody's result: copy it with `cp -a`, \
                          and name the copy (--kind sysfs reads slab caches as they are now)";
            return Err(ImportError::not_importable(path, None, reason));
        }
        Ok(InputFolder { path, device, left: Cell::new(ENTRIES), spent: Cell::new(0), budget })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        self.path
    }

    /// The next importer is asked.
    pub(crate) fn begin_search(&self) {
        self.left.set(ENTRIES);
    }

    /// What lies in `path`, which is the folder or lies below it: as much as may still be looked at.
    pub(crate) fn list_entries(&self, path: &Path) -> impl Iterator<Item = DirEntry> + use<'_, 'a> {
        fs::read_dir(path).into_iter().flatten().flatten().take_while(|_| self.spend_entry())
    }

    /// Folders in `path` that are no links, and that lie on the same file system as this one.
    pub(crate) fn list_own_folders(&self, path: &Path) -> impl Iterator<Item = PathBuf> + use<'_, 'a> {
        self.list_entries(path).filter(|entry| self.is_own_folder(entry)).map(|entry| entry.path())
    }

    /// Whether it is a folder, and no link, on the same file system as this one.
    pub(crate) fn is_own_folder(&self, entry: &DirEntry) -> bool {
        entry.file_type().is_ok_and(|kind| kind.is_dir())
            && entry.metadata().is_ok_and(|found| found.dev() == self.device)
    }

    fn spend_entry(&self) -> bool {
        let both = self.left.get().checked_sub(1).zip(self.budget.left.get().checked_sub(1));
        if let Some((own, shared)) = both {
            self.left.set(own);
            self.budget.left.set(shared);
            self.spent.set(self.spent.get() + 1);
        }
        both.is_some()
    }

    /// Gives back what was spent on a folder that somebody recognised.
    pub(crate) fn refund(&self) {
        self.budget.left.set(self.budget.left.get() + self.spent.take());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_not_entered_and_entries_are_counted() {
        let home = tempfile::tempdir().unwrap();
        (0..ENTRIES + 10).for_each(|number| fs::create_dir(home.path().join(number.to_string())).unwrap());
        let budget = SearchBudget::default();
        let folder = InputFolder::open(home.path(), &budget).unwrap();
        assert_eq!(folder.list_own_folders(home.path()).count(), ENTRIES);
        assert_eq!(folder.list_entries(home.path()).count(), 0);
        assert_eq!(budget.left.get(), UNRECOGNISED - ENTRIES);
        folder.refund();
        assert_eq!(budget.left.get(), UNRECOGNISED);
        folder.begin_search();
        assert_eq!(folder.list_entries(home.path()).count(), ENTRIES, "each importer may look at as many");
        folder.refund();

        let linked = tempfile::tempdir().unwrap();
        symlink(home.path(), linked.path().join("link")).unwrap();
        fs::create_dir(linked.path().join("own")).unwrap();
        let folder = InputFolder::open(linked.path(), &budget).unwrap();
        let own: Vec<PathBuf> = folder.list_own_folders(linked.path()).collect();
        assert_eq!(own, [linked.path().join("own")]);
    }

    #[test]
    fn the_kernels_own_are_not_entered() {
        for path in ["/proc", "/proc/self", "/sys"].map(Path::new) {
            assert!(InputFolder::open(path, &SearchBudget::default()).is_err(), "{}", path.display());
        }
        // What is mounted in a folder is not its own.
        let (root, budget) = (Path::new("/"), SearchBudget::default());
        let folder = InputFolder::open(root, &budget).unwrap();
        let entered: Vec<PathBuf> = folder.list_own_folders(root).collect();
        assert!(
            !entered.iter().any(|path| path == Path::new("/proc") || path == Path::new("/sys")),
            "{entered:?}"
        );
    }
}
