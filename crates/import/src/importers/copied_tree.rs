//! A copy of `/sys/kernel/slab`: one moment of every cache.
//!
//! Names that are links become the aliases of the directory that they point to; every attribute may be missing, as
//! kernels add and drop some.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use perflab_formats::column::{add_row_flag, stored_columns};
use perflab_formats::kernel::slab_counts::{
    CountConsistency, LoggedMachine, MachinePageSize, PageSizeVotes, SlabShape,
};
use perflab_formats::kernel::slabinfo::SlabinfoParser;
use perflab_formats::kernel::sysfs_slab::{
    COUNT_ATTRIBUTES, ExactCounts, NodeCounts, SLAB_CACHES, SLAB_EXACT, cache_attributes, make_cache_row,
    parse_cache_attributes,
};
use perflab_formats::reading_parser::LineOutcome;
use perflab_model::{CellRow, TableCell};

use crate::dump_log::DumpLog;
use crate::error::ImportError;
use crate::import_report::{FileReport, note_unread_entries};
use crate::imported_run::{ImportedRun, RunMetadata};
use crate::importer::{ImportOptions, ImportSource, Importer};
use crate::importers::kernel_dump;
use crate::log_stream::LogStream;
use crate::machine_page_size::settle_page_size;
use perflab_files::open_finite_file;

/// A copy of `/sys/kernel/slab`, alone or in a copied root.
pub(crate) const IMPORTER: Importer = Importer {
    name: "sysfs",
    about: "copy of /sys/kernel/slab",
    recognises: |input| input.folder().is_some_and(is_slab_tree),
    open: open_slab_tree,
};

/// Where the directory may lie in what was copied.
const PLACES: &[&str] = &["", "slab", "kernel/slab", "sys/kernel/slab"];

/// Caches of one tree at most.
const CACHES: usize = 100_000;

/// The longest attribute that is looked at.
const LONGEST: u64 = 4096;

fn is_slab_tree(path: &Path) -> bool {
    slab_directory(path).is_some()
}

/// The directory of caches in `path`.
fn slab_directory(path: &Path) -> Option<PathBuf> {
    PLACES.iter().map(|place| path.join(place)).find(|path| has_slab_caches(path))
}

fn has_slab_caches(path: &Path) -> bool {
    let is_cache =
        |path: PathBuf| ["slab_size", "object_size", "order"].iter().any(|name| path.join(name).is_file());
    fs::read_dir(path).is_ok_and(|entries| entries.flatten().any(|entry| is_cache(entry.path())))
}

/// The directory of caches that was copied beside logs.
pub(crate) fn slab_directory_beside(path: &Path) -> Option<PathBuf> {
    PLACES
        .iter()
        .filter(|place| !place.is_empty())
        .map(|place| path.join(place))
        .find(|path| has_slab_caches(path))
}

/// The series of the tree at `root`, whose caches have the names of those in `logs`: what a merged cache stands for.
pub(crate) fn slab_tree_series(
    root: &Path,
    logs: &[LogStream],
    page: u64,
) -> Result<[LogStream; 2], ImportError> {
    let mut caches = list_copied_caches(root)?;
    let names: Vec<String> =
        logs.iter().flat_map(|stream| stream.first_texts("cache")).map(String::from).collect();
    caches.iter_mut().for_each(|cache| cache.choose_name(&names));
    Ok([slab_cache_stream(root, &caches, page), slab_exact_stream(root, &caches)])
}

/// One cache's directory.
struct CopiedCache {
    path: PathBuf,
    directory: String,
    aliases: Vec<String>,
    listed: Option<String>,
}

impl CopiedCache {
    /// The name in /proc/slabinfo, where a copy of it tells which member that is; the only member's; else
    /// the directory's.
    fn name(&self) -> &str {
        match (&self.listed, &self.aliases[..]) {
            (Some(listed), _) => listed,
            (None, [only]) if self.directory.starts_with(':') => only,
            _ => &self.directory,
        }
    }

    /// Takes its name from those of /proc/slabinfo.
    fn choose_name(&mut self, listed: &[String]) {
        let own = std::iter::once(&self.directory).chain(&self.aliases);
        self.listed = own.into_iter().find(|name| listed.contains(name)).cloned();
    }

    fn read_text(&self, attribute: &str) -> Option<String> {
        let path = self.path.join(attribute);
        // Whatever else lies in a copied tree, a pipe would be waited for.
        let file = open_finite_file(&path).ok()?;
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    fn read_number(&self, attribute: &str) -> Option<u64> {
        self.read_text(attribute)?.split_ascii_whitespace().next()?.parse().ok()
    }

    fn slab_shape(&self) -> Option<SlabShape> {
        let order = u32::try_from(self.read_number("order")?).ok()?;
        let (object, objects) = (self.read_number("slab_size")?, self.read_number("objs_per_slab")?);
        Some(SlabShape { object, objects, pages: 1_u64.checked_shl(order)? })
    }
}

/// The events of a tree.
fn open_slab_tree(path: &Path, options: &ImportOptions) -> Result<Box<dyn ImportSource>, ImportError> {
    let requested = || ImportError::not_importable(path, None, "there is no directory of a slab cache in it");
    let root = slab_directory(path).ok_or_else(requested)?;
    let mut caches = list_copied_caches(&root)?;
    let mut metadata = RunMetadata {
        title: "Imported /sys/kernel/slab".into(),
        description: format!("A copy of /sys/kernel/slab, imported from {}: one moment.", path.display()),
        target: "imported".into(),
        ..RunMetadata::default()
    };
    metadata.notes.extend(unread_entries(path, &root));
    let reported = options.page_size.map(kernel_dump::stated_page_size).or_else(|| fitted_page_size(&caches));
    let page = settle_page_size(reported.clone(), &[], &mut metadata);
    let listed = open_copied_slabinfo(path, reported)?;
    let names = listed.iter().flat_map(|stream| stream.first_texts("cache")).map(String::from);
    let names: Vec<String> = names.collect();
    caches.iter_mut().for_each(|cache| cache.choose_name(&names));
    let fixed = [slab_cache_stream(&root, &caches, page), slab_exact_stream(&root, &caches)];
    let streams = fixed.into_iter().chain(listed).collect();
    Ok(Box::new(ImportedRun::new(IMPORTER.name, path, options, metadata, streams)))
}

/// What lies beside the caches, and beside the way to them.
fn unread_entries(path: &Path, root: &Path) -> Vec<(String, String)> {
    let mut notes: Vec<_> = note_unread_entries(root, |name| root.join(name).is_dir()).into_iter().collect();
    if path != root {
        let way = root.strip_prefix(path).ok().and_then(|way| way.components().next());
        let is_way = |name: &str| way.is_some_and(|way| way.as_os_str() == name);
        let is_list = |name: &str| name == "proc" && path.join("proc/slabinfo").is_file();
        notes.extend(note_unread_entries(path, |name| is_way(name) || is_list(name)));
    }
    notes
}

/// The list of caches in a copied root.
fn open_copied_slabinfo(
    path: &Path,
    page: Option<MachinePageSize>,
) -> Result<Option<LogStream>, ImportError> {
    let file = path.join("proc/slabinfo");
    let machine = LoggedMachine { page_size: page, kernel: None };
    let log = file.is_file().then(|| DumpLog::open_optional(&file, Box::new(SlabinfoParser::new(&machine))));
    log.map(|log| LogStream::from_source(Box::new(log))).transpose()
}

fn fitted_page_size(caches: &[CopiedCache]) -> Option<MachinePageSize> {
    let mut votes = PageSizeVotes::default();
    caches.iter().filter_map(CopiedCache::slab_shape).for_each(|shape| votes.add(shape));
    let source = "how many objects fill a slab";
    votes.best_page_size().map(|bytes| MachinePageSize { bytes, source: source.into() })
}

/// All directories, with the links to each.
fn list_copied_caches(root: &Path) -> Result<Vec<CopiedCache>, ImportError> {
    let mut links: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut found = Vec::new();
    for entry in fs::read_dir(root).map_err(ImportError::io("read", root))? {
        let path = entry.map_err(ImportError::io("read", root))?.path();
        let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else { continue };
        if let Ok(target) = fs::read_link(&path) {
            let target = target.file_name().map(|name| name.to_string_lossy().into_owned());
            links.entry(target.unwrap_or_default()).or_default().push(name);
        } else if path.is_dir() {
            found.push((name, path));
        }
        if found.len() > CACHES {
            return Err(ImportError::not_importable(
                root,
                None,
                format!("it has more than {CACHES} entries"),
            ));
        }
    }
    found.sort();
    let cache = |(directory, path): (String, PathBuf)| {
        let mut aliases = links.remove(&directory).unwrap_or_default();
        aliases.sort();
        CopiedCache { path, directory, aliases, listed: None }
    };
    Ok(found.into_iter().map(cache).collect())
}

fn slab_cache_stream(root: &Path, caches: &[CopiedCache], page: u64) -> LogStream {
    let mut report = FileReport::new(root, "slab-caches");
    let merged = |cache: &CopiedCache| cache.directory.starts_with(':');
    if caches.iter().any(merged) && caches.iter().all(|cache| cache.aliases.is_empty()) {
        report.add_note("no name is a link: the copy lost which caches are merged (copy with `cp -a`)");
    }
    let row = |cache: &CopiedCache| {
        let row = make_copied_row(cache, page);
        report.count_row(0, cache_row_outcome(cache, &row));
        row
    };
    let rows = caches.iter().map(row).collect();
    report.ticks = 1;
    LogStream::from_rows(
        SLAB_CACHES.name,
        SLAB_CACHES.source,
        stored_columns(SLAB_CACHES.columns),
        rows,
        report,
    )
}

/// A directory without sizes is flagged as one; a cache keeps its row.
fn make_copied_row(cache: &CopiedCache, page: u64) -> CellRow {
    let texts: Vec<_> = cache_attributes().iter().map(|column| cache.read_text(column.name)).collect();
    let mut cells = parse_cache_attributes(&texts);
    let has_shape = SHAPE.iter().all(|name| cache.read_number(name).is_some());
    if !has_shape && cells.last() == Some(&TableCell::Text(String::new())) {
        add_row_flag(&mut cells, "malformed");
    }
    make_cache_row(cache.name(), &cache.directory, &cache.aliases, Some(page), &cells)
}

/// What a cache's shape is made of.
const SHAPE: [&str; 4] = ["object_size", "slab_size", "objs_per_slab", "order"];

fn cache_row_outcome(cache: &CopiedCache, row: &CellRow) -> LineOutcome {
    match row.last() {
        Some(TableCell::Text(flag)) if !flag.is_empty() => {
            LineOutcome::Flagged(format!("{flag}: {}: a size is missing or no number", cache.directory))
        }
        _ => LineOutcome::Used,
    }
}

fn slab_exact_stream(root: &Path, caches: &[CopiedCache]) -> LogStream {
    let mut report = FileReport::new(root, "slab-exact");
    let mut rows = Vec::new();
    for cache in caches {
        let read = |name| cache.read_text(name).map(|text| NodeCounts::parse(&text));
        let counts = ExactCounts::new(cache.read_number("objs_per_slab"), COUNT_ATTRIBUTES.map(read));
        let (flags, outcome) = judge_copied_counts(cache, &counts);
        let before = rows.len();
        counts.append_rows(cache.name(), &flags, true, &mut rows);
        (before..rows.len()).for_each(|_| report.count_row(0, outcome.clone()));
    }
    report.ticks = 1;
    LogStream::from_rows(SLAB_EXACT.name, SLAB_EXACT.source, stored_columns(SLAB_EXACT.columns), rows, report)
}

/// The flags of a cache's rows. Attributes are read one after the other, and a copy is read once: fewer objects than its slabs hold
/// say nothing.
fn judge_copied_counts(cache: &CopiedCache, counts: &ExactCounts) -> (Vec<&'static str>, LineOutcome) {
    let torn = if let CountConsistency::Torn(why) = counts.consistency() { Some(why) } else { None };
    let malformed = counts.is_malformed().then_some("malformed");
    let flags: Vec<&str> = malformed.into_iter().chain(torn.map(|_| "torn")).collect();
    let why = torn.map_or_else(
        || "an attribute is no count".into(),
        |why| format!("objects do not agree with slabs: {why}"),
    );
    let outcome = match flags.is_empty() {
        true => LineOutcome::Used,
        false => LineOutcome::Flagged(format!("{}: {}: {why}", flags.join(","), cache.directory)),
    };
    (flags, outcome)
}
