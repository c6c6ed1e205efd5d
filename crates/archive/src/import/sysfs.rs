//! A copy of `/sys/kernel/slab`: one moment of every cache. Names that are links become the aliases of the
//! directory that they point to; every attribute may be missing, as kernels add and drop some.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use perflab_model::{Cell, Column, Row};

use super::feed::Feed;
use super::log::Log;
use super::page_size::{self, PageSize, Shape, Votes};
use super::session::Session;
use super::slabinfo::Slabinfo;
use super::story::Story;
use super::took::{Read, Took, unread};
use super::{Kind, Options, Source, column, dump};
use crate::ArchiveError;
use crate::finite_file::open_finite;

/// Where the directory may lie in what was copied.
const PLACES: &[&str] = &["", "slab", "kernel/slab", "sys/kernel/slab"];
/// Caches of one tree at most.
const CACHES: usize = 100_000;
/// The longest attribute that is looked at.
const LONGEST: u64 = 4096;

pub(crate) fn looks(path: &Path) -> bool {
    place(path).is_some()
}

/// The directory of caches in `path`.
fn place(path: &Path) -> Option<PathBuf> {
    PLACES.iter().map(|place| path.join(place)).find(|path| holds_caches(path))
}

fn holds_caches(path: &Path) -> bool {
    let is_cache =
        |path: PathBuf| ["slab_size", "object_size", "order"].iter().any(|name| path.join(name).is_file());
    fs::read_dir(path).is_ok_and(|entries| entries.flatten().any(|entry| is_cache(entry.path())))
}

/// The directory of caches that was copied beside logs.
pub(super) fn beside(path: &Path) -> Option<PathBuf> {
    PLACES
        .iter()
        .filter(|place| !place.is_empty())
        .map(|place| path.join(place))
        .find(|path| holds_caches(path))
}

/// The series of the tree at `root`, whose caches have the names of those in `logs`: what a merged cache stands for.
pub(super) fn series(root: &Path, logs: &[Feed], page: u64) -> Result<[Feed; 2], ArchiveError> {
    let mut caches = caches(root)?;
    let names: Vec<String> =
        logs.iter().flat_map(|feed| feed.first_texts("cache")).map(String::from).collect();
    caches.iter_mut().for_each(|cache| cache.find(&names));
    Ok([attributes(root, &caches, page), counts(root, &caches)])
}

/// One cache's directory.
struct Cache {
    path: PathBuf,
    directory: String,
    aliases: Vec<String>,
    listed: Option<String>,
}

impl Cache {
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
    fn find(&mut self, listed: &[String]) {
        let own = std::iter::once(&self.directory).chain(&self.aliases);
        self.listed = own.into_iter().find(|name| listed.contains(name)).cloned();
    }

    fn text(&self, attribute: &str) -> Option<String> {
        let path = self.path.join(attribute);
        // Whatever else lies in a copied tree, a pipe would be waited for.
        let file = open_finite(&path).ok()?;
        let mut bytes = Vec::new();
        file.take(LONGEST).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    fn number(&self, attribute: &str) -> Option<i64> {
        self.text(attribute)?.split_ascii_whitespace().next()?.parse().ok()
    }

    fn shape(&self) -> Option<Shape> {
        let order = u32::try_from(self.number("order")?).ok()?;
        let (object, objects) = (self.number("slab_size")?, self.number("objs_per_slab")?);
        Some(Shape { object, objects, pages: 1_i64.checked_shl(order).filter(|pages| *pages > 0)? })
    }
}

/// The events of a tree.
pub(crate) fn open(path: &Path, options: &Options) -> Result<Box<dyn Source>, ArchiveError> {
    let wanted = || ArchiveError::foreign(path, None, "there is no directory of a slab cache in it");
    let root = place(path).ok_or_else(wanted)?;
    let mut caches = caches(&root)?;
    let mut story = Story {
        title: "Imported /sys/kernel/slab".into(),
        description: format!("A copy of /sys/kernel/slab, imported from {}: one moment.", path.display()),
        target: "imported".into(),
        ..Story::default()
    };
    story.notes.extend(not_read(path, &root));
    let told = options.page_size.map(dump::told).or_else(|| fitted(&caches));
    let page = page_size::settle(told.clone(), &[], &mut story);
    let listed = listed(path, told)?;
    let names = listed.iter().flat_map(|feed| feed.first_texts("cache")).map(String::from);
    let names: Vec<String> = names.collect();
    caches.iter_mut().for_each(|cache| cache.find(&names));
    let fixed = [attributes(&root, &caches, page), counts(&root, &caches)];
    let feeds = fixed.into_iter().chain(listed).collect();
    Ok(Box::new(Session::new(Kind::Sysfs, path, options, story, feeds)))
}

/// What lies beside the caches, and beside the way to them.
fn not_read(path: &Path, root: &Path) -> Vec<(String, String)> {
    let mut notes: Vec<_> = unread(root, |name| root.join(name).is_dir()).into_iter().collect();
    if path != root {
        let way = root.strip_prefix(path).ok().and_then(|way| way.components().next());
        let is_way = |name: &str| way.is_some_and(|way| way.as_os_str() == name);
        let is_list = |name: &str| name == "proc" && path.join("proc/slabinfo").is_file();
        notes.extend(unread(path, |name| is_way(name) || is_list(name)));
    }
    notes
}

/// The list of caches in a copied root.
fn listed(path: &Path, page: Option<PageSize>) -> Result<Option<Feed>, ArchiveError> {
    let file = path.join("proc/slabinfo");
    let log = file.is_file().then(|| Log::among(&file, Slabinfo::new(page, None)));
    log.map(|log| Feed::open(Box::new(log))).transpose()
}

fn fitted(caches: &[Cache]) -> Option<PageSize> {
    let mut votes = Votes::default();
    caches.iter().filter_map(Cache::shape).for_each(|shape| votes.add(shape));
    let source = "how many objects fill a slab";
    votes.winner().map(|bytes| PageSize { bytes, source: source.into() })
}

/// All directories, with the links to each.
fn caches(root: &Path) -> Result<Vec<Cache>, ArchiveError> {
    let mut links: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut found = Vec::new();
    for entry in fs::read_dir(root).map_err(ArchiveError::io("read", root))? {
        let path = entry.map_err(ArchiveError::io("read", root))?.path();
        let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else { continue };
        if let Ok(target) = fs::read_link(&path) {
            let target = target.file_name().map(|name| name.to_string_lossy().into_owned());
            links.entry(target.unwrap_or_default()).or_default().push(name);
        } else if path.is_dir() {
            found.push((name, path));
        }
        if found.len() > CACHES {
            return Err(ArchiveError::foreign(root, None, format!("it has more than {CACHES} entries")));
        }
    }
    found.sort();
    let cache = |(directory, path): (String, PathBuf)| {
        let mut aliases = links.remove(&directory).unwrap_or_default();
        aliases.sort();
        Cache { path, directory, aliases, listed: None }
    };
    Ok(found.into_iter().map(cache).collect())
}

fn attributes(root: &Path, caches: &[Cache], page: u64) -> Feed {
    let columns = column::slab_caches();
    let mut took = Took::of(root, "slab-caches");
    let merged = |cache: &Cache| cache.directory.starts_with(':');
    if caches.iter().any(merged) && caches.iter().all(|cache| cache.aliases.is_empty()) {
        took.note("no name is a link: the copy lost which caches are merged (copy with `cp -a`)");
    }
    let row = |cache: &Cache| {
        let row: Row = columns.iter().map(|column| attribute(cache, column, page)).collect();
        took.count(0, judged(cache, &row));
        row
    };
    let rows = caches.iter().map(row).collect();
    took.ticks = 1;
    Feed::fixed("slab-caches", "/sys/kernel/slab", columns, rows, took)
}

fn attribute(cache: &Cache, column: &Column, page: u64) -> Cell {
    match column.name.as_str() {
        "cache" => Cell::Text(cache.name().into()),
        "directory" => Cell::Text(cache.directory.clone()),
        "aliases" => Cell::Text(cache.aliases.join(",")),
        "page_size" => i64::try_from(page).map_or(Cell::Missing, Cell::Int),
        "flags" => Cell::Text(flag(cache).into()),
        "ctor" => cache.text("ctor").map_or(Cell::Missing, Cell::Text),
        name => cache.number(name).map_or(Cell::Missing, Cell::Int),
    }
}

/// What a cache's shape is made of.
const SHAPE: [&str; 4] = ["object_size", "slab_size", "objs_per_slab", "order"];

/// A directory without sizes is said to be one; a cache keeps its row.
fn flag(cache: &Cache) -> &'static str {
    if SHAPE.iter().all(|name| cache.number(name).is_some()) { "" } else { "malformed" }
}

fn judged(cache: &Cache, row: &Row) -> Read {
    match row.last() {
        Some(Cell::Text(flag)) if !flag.is_empty() => {
            Read::Flagged(format!("{flag}: {}: a size is missing or no number", cache.directory))
        }
        _ => Read::Used,
    }
}

fn counts(root: &Path, caches: &[Cache]) -> Feed {
    let mut took = Took::of(root, "slab-exact");
    let mut rows = Vec::new();
    for cache in caches {
        for row in nodes(cache) {
            let torn = row.last() == Some(&Cell::Text("torn".into()));
            let why = || format!("torn: {}: objects do not agree with slabs", cache.directory);
            took.count(0, if torn { Read::Flagged(why()) } else { Read::Used });
            rows.push(row);
        }
    }
    took.ticks = 1;
    Feed::fixed("slab-exact", "/sys/kernel/slab", column::slab_exact(), rows, took)
}

/// A row for all nodes, and one for each that the kernel names: `278754 N0=278754`.
fn nodes(cache: &Cache) -> Vec<Row> {
    const COUNTS: [&str; 6] =
        ["objects", "total_objects", "slabs", "objects_partial", "partial", "cpu_slabs"];
    let texts = COUNTS.map(|name| cache.text(name).unwrap_or_default());
    let mut known: Vec<i64> =
        texts.iter().flat_map(|text| text.split_ascii_whitespace()).filter_map(node).collect();
    known.sort_unstable();
    known.dedup();
    let each = cache.number("objs_per_slab");
    let row = |node: i64| {
        let counts = texts.each_ref().map(|text| count(text, node));
        let flag = if torn(&counts, each) { "torn" } else { "" };
        let cells = counts.into_iter().map(|count| count.map_or(Cell::Missing, Cell::Int));
        let head = [Cell::Text(cache.name().into()), Cell::Int(node)];
        head.into_iter().chain(cells).chain([Cell::Text(flag.into())]).collect()
    };
    std::iter::once(-1).chain(known).map(row).collect()
}

/// The node of `N0=278754`.
fn node(word: &str) -> Option<i64> {
    word.strip_prefix('N')?.split_once('=')?.0.parse().ok()
}

fn count(text: &str, node_wanted: i64) -> Option<i64> {
    let mut words = text.split_ascii_whitespace();
    if node_wanted < 0 {
        return words.next()?.parse().ok();
    }
    words.find(|word| node(word) == Some(node_wanted))?.split_once('=')?.1.parse().ok()
}

/// Attributes are read one after the other: more objects than there is room for were never there at once.
fn torn([objects, total, slabs, ..]: &[Option<i64>; 6], each: Option<i64>) -> bool {
    let beyond = |more: Option<i64>, less: Option<i64>| matches!((more, less), (Some(more), Some(less)) if more > less);
    let room = slabs.and_then(|slabs| slabs.checked_mul(each?));
    beyond(*objects, *total) || beyond(*objects, room) || beyond(*total, room)
}
