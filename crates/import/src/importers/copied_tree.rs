//! A copy of a machine's `/proc` and `/sys`, or of parts of it: one reading of every monitor whose file is there.
//!
//! The monitors are those that record live, over another root. What only a copy cannot tell stands here: which page size
//! the machine had, whether links were lost on the way, and which of a merged cache's names a log beside it uses. A copied
//! text is read as a log of one reading, so that a damaged line costs itself only.

use std::collections::HashMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{fs, io};

use perflab_files::is_live_kernel_folder;
use perflab_formats::column::add_row_flag;
use perflab_formats::kernel::slab_counts::{LoggedMachine, MachinePageSize, PageSizeVotes, SlabShape};
use perflab_formats::kernel::sysfs_slab::{SLAB_CACHES, SLAB_EXACT, SlabCacheRow, SlabExactRow};
use perflab_formats::kernel::{KERNEL_FILES, KernelFile, KernelFileLayout, open_log_parser};
use perflab_formats::reading_parser::LineOutcome;
use perflab_model::column::stored_columns;
use perflab_model::fact_table;
use perflab_model::{CellRow, ColumnRef, Nanos, RowSchema};
use perflab_observe::{Root, collect_fact_documents, open_monitor};
use tempfile::TempDir;

use crate::dump_log::DumpLog;
use crate::error::ImportError;
use crate::import_report::{FileReport, note_unread_entries};
use crate::imported_run::{ImportedRun, RunMetadata};
use crate::importer::{ImportOptions, ImportSource, Importer, Recognition};
use crate::importers::kernel_dump;
use crate::input_folder::InputFolder;
use crate::input_lines::InputLines;
use crate::log_stream::LogStream;
use crate::machine_page_size::settle_page_size;

/// A copy of `/sys/kernel/slab`, alone or in a copied root.
pub(crate) const IMPORTER: Importer = Importer {
    name: "sysfs",
    about: "copy of /sys/kernel/slab, or of a root with files of /proc and /sys",
    knows_boots: false,
    recognises: Recognition::Folder(is_copied_tree),
    open: open_copied_tree,
};

/// Where the directory of slab caches may lie in what was copied.
const PLACES: &[&str] = &["", "slab", "kernel/slab", "sys/kernel/slab"];

/// Caches of one tree at most.
const CACHES: usize = 100_000;

/// Whether it holds a copy. The files of the machine that we run on are none.
fn is_copied_tree(folder: &InputFolder) -> bool {
    let is_copy = |path: &Path| !is_live_kernel_folder(path);
    let holds_caches = |path: &Path| {
        let mut entries = folder.list_entries(path).map(|entry| entry.path());
        is_copy(path) && entries.any(|path| is_slab_cache(&path))
    };
    let mut parts = KERNEL_FILES.iter().flat_map(|file| copied_parts(file, folder.path()));
    PLACES.iter().any(|place| holds_caches(&folder.path().join(place)))
        || parts.any(|(_, path)| is_copy(&path))
}

/// The directory of caches in `path`.
fn slab_directory(path: &Path) -> Option<PathBuf> {
    PLACES.iter().map(|place| path.join(place)).find(|path| has_slab_caches(path))
}

fn has_slab_caches(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|entries| entries.flatten().any(|entry| is_slab_cache(&entry.path())))
}

fn is_slab_cache(path: &Path) -> bool {
    ["slab_size", "object_size", "order"].iter().any(|name| path.join(name).is_file())
}

/// The directory of caches that was copied beside logs.
pub(crate) fn slab_directory_beside(path: &Path) -> Option<PathBuf> {
    PLACES
        .iter()
        .filter(|place| !place.is_empty())
        .map(|place| path.join(place))
        .find(|path| has_slab_caches(path))
}

/// The texts of a kernel file that a copied root holds: the label of each, and where it lies.
fn copied_parts(file: &KernelFile, root: &Path) -> Vec<(&'static str, PathBuf)> {
    if matches!(file.layout, KernelFileLayout::Tree) {
        return Vec::new();
    }
    let place = |(label, source): (&'static str, &str)| (label, root.join(source.trim_start_matches('/')));
    file.parts().into_iter().map(place).filter(|(_, path)| path.is_file()).collect()
}

/// The series of the slab caches in `directory`, whose caches have the names of those in `logs`: what a merged cache stands for.
pub(crate) fn slab_tree_series(
    directory: &Path,
    logs: &[LogStream],
    page: u64,
) -> Result<[LogStream; 2], ImportError> {
    let mut tree = CopiedSlabTree::read(directory)?;
    tree.choose_listed_names(logs);
    Ok(tree.into_streams(page))
}

/// A reading of the two monitors of `/sys/kernel/slab`, over a copy of it.
struct CopiedSlabTree {
    directory: PathBuf,
    caches: Vec<CellRow>,
    exact: Vec<CellRow>,
}

/// What a cache's shape is made of.
const SHAPE: [ColumnRef<SlabCacheRow, i64>; 4] =
    [SlabCacheRow::OBJECT_SIZE, SlabCacheRow::SLAB_SIZE, SlabCacheRow::OBJS_PER_SLAB, SlabCacheRow::ORDER];

impl CopiedSlabTree {
    fn read(directory: &Path) -> Result<Self, ImportError> {
        let entries = fs::read_dir(directory).map_err(ImportError::io("read", directory))?;
        if entries.count() > CACHES {
            let reason = format!("it has more than {CACHES} entries");
            return Err(ImportError::not_importable(directory, None, reason));
        }
        let links = link_root(directory).map_err(ImportError::io("read", directory))?;
        let root = Root(links.path().into());
        let (mut caches, exact) =
            (read_rows(&SLAB_CACHES, &root, directory)?, read_rows(&SLAB_EXACT, &root, directory)?);
        // A directory without sizes is flagged as one; a cache keeps its row.
        let has_shape = |row: &CellRow| SHAPE.iter().all(|column| count_of(row, *column).is_some());
        let is_flagged = |row: &CellRow| SlabCacheRow::FLAGS.get(row).is_some_and(|flags| !flags.is_empty());
        let unsound = caches.iter_mut().filter(|row| !has_shape(row) && !is_flagged(row));
        unsound.for_each(|row| add_row_flag(row, SlabCacheRow::FLAGS, "malformed"));
        Ok(CopiedSlabTree { directory: directory.into(), caches, exact })
    }

    /// A merged cache stands in a log under one of its names: then that is its name.
    fn choose_listed_names(&mut self, logs: &[LogStream]) {
        let names: Vec<&str> = logs.iter().flat_map(|stream| stream.first_texts("cache")).collect();
        let mut chosen: HashMap<String, String> = HashMap::new();
        for row in &mut self.caches {
            let aliases = SlabCacheRow::ALIASES.get(row).unwrap_or_default().split(',');
            let mut own = SlabCacheRow::DIRECTORY.get(row).into_iter().chain(aliases);
            let Some(listed) = own.find(|name| names.contains(name)).map(str::to_owned) else { continue };
            let before = SlabCacheRow::CACHE.get(row).unwrap_or_default().to_owned();
            SlabCacheRow::CACHE.set(row, listed.as_str());
            chosen.insert(before, listed);
        }
        for row in &mut self.exact {
            let listed = SlabExactRow::CACHE.get(row).and_then(|name| chosen.get(name));
            if let Some(listed) = listed {
                SlabExactRow::CACHE.set(row, listed.as_str());
            }
        }
    }

    fn fitted_page_size(&self) -> Option<MachinePageSize> {
        let mut votes = PageSizeVotes::default();
        self.caches.iter().filter_map(slab_shape).for_each(|shape| votes.add(shape));
        let source = "how many objects fill a slab";
        votes.best_page_size().map(|bytes| MachinePageSize { bytes, source: source.into() })
    }

    fn into_streams(mut self, page: u64) -> [LogStream; 2] {
        for row in &mut self.caches {
            SlabCacheRow::PAGE_SIZE.set(row, i64::try_from(page).ok());
        }
        let mut report = FileReport::new(&self.directory, SLAB_CACHES.name);
        let is_merged = |row: &CellRow| {
            SlabCacheRow::DIRECTORY.get(row).is_some_and(|directory| directory.starts_with(':'))
        };
        if self.caches.iter().any(is_merged)
            && self.caches.iter().all(|row| SlabCacheRow::ALIASES.get(row).is_none_or(str::is_empty))
        {
            report.add_note("no name is a link: the copy lost which caches are merged (copy with `cp -a`)");
        }
        let (directory, flags) = (SlabCacheRow::DIRECTORY, SlabCacheRow::FLAGS);
        let why = "a size is missing or no number";
        let caches = make_stream(&SLAB_CACHES, report, self.caches, (directory, flags), why);
        let report = FileReport::new(&self.directory, SLAB_EXACT.name);
        let why = "objects do not agree with slabs, or an attribute is no count";
        let subject = (SlabExactRow::CACHE, SlabExactRow::FLAGS);
        [caches, make_stream(&SLAB_EXACT, report, self.exact, subject, why)]
    }
}

/// A folder in which the copied directory lies where the kernel has it.
fn link_root(directory: &Path) -> io::Result<TempDir> {
    let root = tempfile::tempdir()?;
    let kernel = root.path().join("sys/kernel");
    fs::create_dir_all(&kernel)?;
    symlink(fs::canonicalize(directory)?, kernel.join("slab"))?;
    Ok(root)
}

/// One reading of a monitor over `root`.
fn read_rows(file: &'static KernelFile, root: &Root, copy: &Path) -> Result<Vec<CellRow>, ImportError> {
    let mut rows = Vec::new();
    let read = open_monitor(file, root, Nanos(0)).and_then(|mut monitor| monitor.read_rows(&mut rows));
    read.map_err(|error| ImportError::not_importable(copy, None, error.to_string()))?;
    Ok(rows)
}

fn count_of(row: &CellRow, column: ColumnRef<SlabCacheRow, i64>) -> Option<u64> {
    column.get(row).and_then(|number| u64::try_from(number).ok())
}

fn slab_shape(row: &CellRow) -> Option<SlabShape> {
    let [_, object, objects, order] = SHAPE.map(|column| count_of(row, column));
    let pages = 1_u64.checked_shl(u32::try_from(order?).ok()?)?;
    Some(SlabShape { object: object?, objects: objects?, pages })
}

/// The rows of one reading, each accounted for; `why` explains a flag, the columns are those that name and flag a row.
fn make_stream<R: RowSchema>(
    file: &KernelFile,
    mut report: FileReport,
    rows: Vec<CellRow>,
    (subject, flags): (ColumnRef<R, str>, ColumnRef<R, str>),
    why: &str,
) -> LogStream {
    for row in &rows {
        let outcome = match flags.get(row).unwrap_or_default() {
            "" => LineOutcome::Used,
            flags => {
                LineOutcome::Flagged(format!("{flags}: {}: {why}", subject.get(row).unwrap_or_default()))
            }
        };
        report.count_row(0, outcome);
    }
    report.ticks = 1;
    LogStream::from_rows(file.name, file.source, stored_columns(file.columns), rows, report)
}

/// The events of a tree.
fn open_copied_tree(path: &Path, options: &ImportOptions) -> Result<Box<dyn ImportSource>, ImportError> {
    let slabs = slab_directory(path);
    let mut metadata = RunMetadata {
        title: "Imported copy of /proc and /sys".into(),
        description: format!("Files of the kernel, imported from {}: one moment.", path.display()),
        target: "imported".into(),
        ..RunMetadata::default()
    };
    metadata.notes.extend(unread_entries(path, slabs.as_deref()));
    let mut tree = slabs.as_deref().map(CopiedSlabTree::read).transpose()?;
    let reported = options.page_size.map(kernel_dump::stated_page_size);
    let reported = reported.or_else(|| tree.as_ref()?.fitted_page_size());
    let texts = open_copied_texts(path, reported.clone(), &mut metadata)?;
    let page = match (&tree, texts.iter().any(|stream| stream.series_name() == "slabinfo")) {
        (None, false) => None,
        _ => Some(settle_page_size(reported, &texts.iter().collect::<Vec<_>>(), &mut metadata)),
    };
    tree.iter_mut().for_each(|tree| tree.choose_listed_names(&texts));
    let mut streams: Vec<LogStream> =
        tree.zip(page).into_iter().flat_map(|(tree, page)| tree.into_streams(page)).collect();
    streams.extend(texts);
    if streams.is_empty() {
        let reason = "there is no directory of slab caches and no file of the kernel in it";
        return Err(ImportError::not_importable(path, None, reason));
    }
    Ok(Box::new(ImportedRun::new(IMPORTER.name, path, options, metadata, streams)))
}

/// The texts of a copied root, each as a log of one reading.
fn open_copied_texts(
    path: &Path,
    page_size: Option<MachinePageSize>,
    metadata: &mut RunMetadata,
) -> Result<Vec<LogStream>, ImportError> {
    let kernel = first_line(&path.join("proc/sys/kernel/osrelease"));
    if let Some(release) = &kernel {
        metadata.facts.add(fact_table::KERNEL_RELEASE, release.as_str(), "/proc/sys/kernel/osrelease");
    }
    // Families are not named, so none is unknown.
    metadata.documents = collect_fact_documents(&Root(path.into()), None).unwrap_or_default();
    let machine = LoggedMachine { page_size, kernel };
    let mut streams = Vec::new();
    for file in KERNEL_FILES {
        let parts = copied_parts(file, path);
        if let [(label, place)] = &parts[..] {
            if let Some(parser) = open_log_parser(file, label, &machine) {
                let log = DumpLog::open_optional(place, parser);
                streams.push(LogStream::from_source(Box::new(log))?);
            }
        } else if let Some((_, first)) = parts.first() {
            // Files that are read together: one reading, not one each.
            let mut report = FileReport::new(first.parent().unwrap_or(first), file.name);
            match read_rows(file, &Root(path.into()), path) {
                Ok(rows) => {
                    rows.iter().for_each(|_| report.count_row(0, LineOutcome::Used));
                    report.ticks = 1;
                    let columns = stored_columns(file.columns);
                    streams.push(LogStream::from_rows(file.name, file.source, columns, rows, report));
                }
                Err(error) => metadata.report.push(FileReport::unreadable(&report.file, error)),
            }
        }
    }
    Ok(streams)
}

/// The first line of a small file, where it is there and has one.
fn first_line(file: &Path) -> Option<String> {
    let mut lines = file.is_file().then(|| InputLines::open_optional(file))?;
    let line = lines.next_line().ok()??.text.trim().to_owned();
    (!line.is_empty()).then_some(line)
}

/// What lies beside the caches, and beside the way to them.
fn unread_entries(path: &Path, slabs: Option<&Path>) -> Vec<(String, String)> {
    let of_slabs = slabs.and_then(|slabs| note_unread_entries(slabs, |name| slabs.join(name).is_dir()));
    let mut notes: Vec<_> = of_slabs.into_iter().collect();
    if slabs != Some(path) {
        let way = slabs.and_then(|slabs| slabs.strip_prefix(path).ok()?.components().next());
        let is_way = |name: &str| way.is_some_and(|way| way.as_os_str() == name);
        notes.extend(note_unread_entries(path, |name| is_way(name) || ["proc", "sys"].contains(&name)));
    }
    notes
}
