//! What set-ups made in `{{ kept }}`, the folder that all cases share: one that writes over what another one made is noticed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use perflab_workload::DATA_SET_PREFIX;

/// Of a folder with more files nothing is known: looking at them would take long.
const MOST_FILES: usize = 20_000;

/// What tells that a file was written again: its inode, its size, and when it was changed.
type FileStamp = (u64, u64, i64, i64);

/// The files below the folder, but those of data sets, which are known by what makes them; none where they are too many.
pub(crate) struct KeptSnapshot(Option<BTreeMap<PathBuf, FileStamp>>);

impl KeptSnapshot {
    /// What is there now.
    pub(crate) fn take(kept: &Path) -> Self {
        let mut found = BTreeMap::new();
        let is_whole = list_files(kept, kept, &mut found);
        KeptSnapshot(is_whole.then_some(found))
    }
}

/// Adds all files below `folder`; false where there are too many. What cannot be read is left out.
fn list_files(root: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, FileStamp>) -> bool {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_data = folder == root && entry.file_name().to_string_lossy().starts_with(DATA_SET_PREFIX);
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            if !is_data && !list_files(root, &path, found) {
                return false;
            }
            continue;
        }
        if found.len() == MOST_FILES {
            return false;
        }
        let below = path.strip_prefix(root).unwrap_or(&path).to_owned();
        found.insert(below, (about.ino(), about.size(), about.mtime(), about.mtime_nsec()));
    }
    true
}

/// What a set-up wrote over: files of another case.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OverwrittenFiles {
    /// Index of the case whose set-up made them.
    pub(crate) maker: u32,
    /// The files, below the folder.
    pub(crate) files: Vec<PathBuf>,
}

/// Who made which file.
#[derive(Default)]
pub(crate) struct KeptFiles {
    makers: BTreeMap<PathBuf, u32>,
    /// What each case was set up by: what is made by the same command is the same.
    commands: BTreeMap<u32, String>,
}

impl KeptFiles {
    /// Notes what the set-up of a case did between two looks, and gives what it wrote over, by whose it was.
    pub(crate) fn note_setup(
        &mut self,
        case: u32,
        command: String,
        before: &KeptSnapshot,
        after: &KeptSnapshot,
    ) -> Vec<OverwrittenFiles> {
        let (Some(before), Some(after)) = (&before.0, &after.0) else { return Vec::new() };
        let mut overwritten: BTreeMap<u32, Vec<PathBuf>> = BTreeMap::new();
        let paths: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
        for path in paths.into_iter().filter(|path| before.get(*path) != after.get(*path)) {
            let maker = self.makers.insert(path.clone(), case).filter(|_| before.contains_key(path));
            let other = maker.filter(|maker| self.commands.get(maker).is_some_and(|own| *own != command));
            if let Some(maker) = other {
                overwritten.entry(maker).or_default().push(path.clone());
            }
        }
        self.commands.insert(case, command);
        overwritten.into_iter().map(|(maker, files)| OverwrittenFiles { maker, files }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_command_wrote_over_is_told_with_whose_it_was() {
        let kept = tempfile::tempdir().unwrap();
        let mut files = KeptFiles::default();
        let mut set_up = |case: u32, text: &str, write: &dyn Fn(&Path)| {
            let before = KeptSnapshot::take(kept.path());
            write(kept.path());
            files.note_setup(case, text.into(), &before, &KeptSnapshot::take(kept.path()))
        };
        let write = |name: &'static str, text: &'static str| {
            move |kept: &Path| {
                fs::create_dir_all(kept.join(name).parent().unwrap()).unwrap();
                fs::write(kept.join(name), text).unwrap();
            }
        };
        assert_eq!(set_up(0, "a", &write("d/lines", "1")), []);
        assert_eq!(set_up(1, "b", &write("other", "1")), []);
        assert_eq!(set_up(2, "a", &write("d/lines", "12")), [], "the same command makes the same");
        let lost = |maker, file: &str| OverwrittenFiles { maker, files: vec![file.into()] };
        assert_eq!(set_up(3, "c", &write("d/lines", "123")), [lost(2, "d/lines")]);
        let remove = |kept: &Path| fs::remove_file(kept.join("other")).unwrap();
        assert_eq!(set_up(4, "d", &remove), [lost(1, "other")]);
        assert_eq!(set_up(5, "e", &write("data-1/x", "1")), []);
        assert_eq!(set_up(6, "f", &write("data-1/x", "12")), [], "a data set is known by what makes it");
    }
}
