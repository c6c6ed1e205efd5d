//! Files of a folder by their plain names, packed or not: what MMTests packed at the end (`.gz`, `.xz`) has the name it
//! had before.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::import_report::FileReport;
use crate::input_lines::name_link_target;

/// Endings of packed files.
const PACKED: [&str; 3] = [".gz", ".xz", ".zst"];

/// The files of a folder, sorted by name as people do: 2 before 10. Whatever has a file's name is one: a link to nowhere is
/// named where its log is looked for.
#[derive(Debug, Default)]
pub(crate) struct PackedFolder {
    files: Vec<(String, PathBuf)>,
}

/// A log whose name says what it is of: `benchlog-4-_-2` has the keys 4, _ and 2.
#[derive(Debug, PartialEq)]
pub(crate) struct NumberedLog<'a> {
    pub(crate) keys: Vec<&'a str>,
    pub(crate) path: &'a Path,
}

impl PackedFolder {
    /// The files of `path`; none where it is not there. One that cannot be read is noted in `report`.
    pub(crate) fn open(path: &Path, report: &mut Vec<FileReport>) -> Self {
        let mut files = match list_plain_names(path) {
            Ok(files) => files,
            Err(error) => {
                report.push(FileReport::unreadable(path, error));
                return PackedFolder::default();
            }
        };
        // Of a log and its packed copy the log comes first, and the copy goes; unless the log is none.
        files.sort_by(|a, b| {
            compare_natural(&a.0, &b.0).then_with(|| (!a.1.is_file(), &a.1).cmp(&(!b.1.is_file(), &b.1)))
        });
        files.dedup_by(|later, first| later.0 == first.0);
        PackedFolder { files }
    }

    /// The file of that name, packed or not.
    pub(crate) fn file(&self, name: &str) -> Option<&Path> {
        self.files.iter().find(|(known, _)| known == name).map(|(_, path)| path.as_path())
    }

    /// The names of all files.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(name, _)| name.as_str())
    }

    /// All files with their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.files.iter().map(|(name, path)| (name.as_str(), path.as_path()))
    }

    /// The same without files of these names.
    pub(crate) fn without(&self, is_left_out: impl Fn(&str) -> bool) -> Self {
        PackedFolder { files: self.files.iter().filter(|(name, _)| !is_left_out(name)).cloned().collect() }
    }

    /// The logs that begin with `prefix-`, with what stands between the hyphens behind it, `.log` left out.
    pub(crate) fn numbered_logs(&self, prefix: &str) -> Vec<NumberedLog<'_>> {
        let of = |(name, path): &'_ (String, PathBuf)| -> Option<(usize, usize)> {
            let _ = path;
            let rest = name.strip_prefix(prefix)?.strip_prefix('-')?;
            let end = rest.strip_suffix(".log").unwrap_or(rest).len();
            Some((name.len() - rest.len(), end))
        };
        let log = |file| {
            let (begin, length) = of(file)?;
            let keys = file.0.get(begin..begin + length)?.split('-').collect();
            Some(NumberedLog { keys, path: file.1.as_path() })
        };
        self.files.iter().filter_map(log).collect()
    }
}

impl<'a> NumberedLog<'a> {
    /// The key at that place, if it is a whole number.
    pub(crate) fn number_at(&self, place: usize) -> Option<&'a str> {
        self.keys.get(place).copied().filter(|key| key.parse::<u32>().is_ok())
    }
}

/// What lies in a folder, by plain name; nothing where it is not there.
fn list_plain_names(path: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(Vec::new());
    }
    let named = |entry: fs::DirEntry| {
        (strip_packed_ending(&entry.file_name().to_string_lossy()).to_owned(), entry.path())
    };
    let entries = fs::read_dir(path).map_err(|error| name_link_target(path, error))?;
    entries.map(|entry| entry.map(named)).collect()
}

/// A name without the ending that packing gave it.
pub(crate) fn strip_packed_ending(name: &str) -> &str {
    PACKED.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// Compares numbers within names as numbers.
pub(crate) fn compare_natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let ((x, rest_x), (y, rest_y)) = (split_name_chunk(a), split_name_chunk(b));
        let order = match (x.parse::<u128>(), y.parse::<u128>()) {
            (Ok(m), Ok(n)) => m.cmp(&n).then_with(|| x.cmp(y)),
            _ => x.cmp(y),
        };
        if order != Ordering::Equal || (x.is_empty() && y.is_empty()) {
            return order;
        }
        (a, b) = (rest_x, rest_y);
    }
}

/// The digits, or all but digits, that a text begins with, and the rest.
fn split_name_chunk(text: &str) -> (&str, &str) {
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count() {
        let mut names = ["b-10", "b-9", "b-9.gz", "a", "b-9-1"];
        names.sort_by(|a, b| compare_natural(a, b));
        assert_eq!(names, ["a", "b-9", "b-9-1", "b-9.gz", "b-10"]);
        assert_eq!(strip_packed_ending("fio.log.gz"), "fio.log");
    }
}
