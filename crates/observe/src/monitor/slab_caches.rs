//! `/sys/kernel/slab`: what does not change about each cache, and the names that were merged into it. All rows at the
//! first tick, and all of them again at every tick at which a cache or a name came or went; none at the others.
//!
//! `object_size` is what the creator asked for, `slab_size` the same padded (the `objsize` of `/proc/slabinfo`);
//! `objs_per_slab` and `order` are those of the preferred order. Every attribute is `Missing` where this kernel does
//! not have it (Documentation/ABI/testing/sysfs-kernel-slab).

use std::collections::HashMap;

use perflab_model::series::ColumnType;
use perflab_model::{Cell, Row, SeriesSchema};

use super::column::Declared;
use super::kind::{Monitor, MonitorKind, Opening};
use super::slab::{Place, Tree, WITHOUT_ROOT, flag, page_size, said};
use crate::ObserveError;

pub(super) const KIND: MonitorKind = MonitorKind {
    name: "slab-caches",
    source: "/sys/kernel/slab",
    about: "size, alignment, order, flags and merged names of every slab cache; again whenever caches come or go",
    needs: "root",
    without: WITHOUT_ROOT,
    columns: COLUMNS,
    open,
};

const fn yes(name: &'static str) -> Declared {
    Declared::gauge(name, "1")
}

const COLUMNS: &[Declared] = &[
    Declared::key("cache"),
    Declared::key("directory"),
    Declared::key("aliases"),
    Declared::gauge("page_size", "bytes"),
    Declared::gauge("object_size", "bytes"),
    Declared::gauge("slab_size", "bytes"),
    Declared::gauge("objs_per_slab", "objects"),
    Declared::gauge("order", "1"),
    Declared::gauge("align", "bytes"),
    yes("reclaim_account"),
    yes("hwcache_align"),
    yes("destroy_by_rcu"),
    yes("cache_dma"),
    Declared::key("ctor"),
    Declared::gauge("cpu_partial", "objects"),
    Declared::gauge("min_partial", "slabs"),
    Declared::gauge("sheaf_capacity", "objects"),
    Declared::key("flags"),
];

/// The columns that are attributes of that name.
const ATTRIBUTES: std::ops::Range<usize> = 4..17;

struct SlabCaches {
    schema: SeriesSchema,
    tree: Tree,
    page_size: Cell,
    /// The cells of [`ATTRIBUTES`] and the flags, by directory and inode: they are read once.
    known: HashMap<(String, u64), Row>,
    /// Whether the rows of the tree as it is were not given yet.
    due: bool,
}

fn open(opening: &Opening<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let tree = Tree::open(opening.root)?;
    let page_size = page_size(opening.root).and_then(|size| i64::try_from(size).ok());
    let page_size = page_size.map_or(Cell::Missing, Cell::Int);
    let schema = opening.declared();
    let mut caches = SlabCaches { schema, tree, page_size, known: HashMap::new(), due: true };
    caches.learn()?;
    Ok(Box::new(caches))
}

impl Monitor for SlabCaches {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn sample(&mut self, rows: &mut Vec<Row>) -> Result<(), ObserveError> {
        if self.tree.refresh()? {
            self.learn()?;
            self.due = true;
        }
        if std::mem::take(&mut self.due) {
            rows.extend(self.tree.places().iter().filter_map(|place| self.row(place)));
        }
        Ok(())
    }
}

impl SlabCaches {
    /// Reads the attributes of caches that are new, and forgets those that are gone.
    fn learn(&mut self) -> Result<(), ObserveError> {
        let mut known = HashMap::with_capacity(self.tree.places().len());
        for place in self.tree.places() {
            let key = (place.directory.clone(), place.inode);
            let cells = self.known.remove(&key).map_or_else(|| attributes(place), |cells| Ok(Some(cells)))?;
            known.extend(cells.map(|cells| (key, cells)));
        }
        self.known = known;
        Ok(())
    }

    fn row(&self, place: &Place) -> Option<Row> {
        let cells = self.known.get(&(place.directory.clone(), place.inode))?;
        let texts = [place.cache.clone(), place.directory.clone(), place.members.join(",")];
        let mut row: Row = texts.map(Cell::Text).into();
        row.push(self.page_size.clone());
        row.extend_from_slice(cells);
        Some(row)
    }
}

/// The cells of one cache's attributes, and its flags; nothing where the cache went since the tree was listed.
fn attributes(place: &Place) -> Result<Option<Row>, ObserveError> {
    let columns = COLUMNS.get(ATTRIBUTES).unwrap_or_default();
    let texts = columns.iter().map(|column| {
        let path = place.path.join(column.name);
        let kernels = format!("{}/{}/{}", KIND.source, place.directory, column.name);
        said(path).map_err(|source| ObserveError::read(&kernels, source))
    });
    let texts: Vec<Option<String>> = texts.collect::<Result<_, _>>()?;
    let gone = texts.iter().all(Option::is_none) && !place.path.is_dir();
    Ok((!gone).then(|| cells(columns.iter().zip(&texts))))
}

fn cells<'a>(texts: impl Iterator<Item = (&'a Declared, &'a Option<String>)>) -> Row {
    let mut sound = true;
    let mut cells: Row = texts
        .map(|(column, text)| {
            let cell = text.as_deref().map(|text| column.cell(text));
            sound &= cell != Some(None);
            cell.flatten().unwrap_or(Cell::Missing)
        })
        .collect();
    cells.push(Cell::Text(String::new()));
    if !sound {
        flag(&mut cells, "malformed");
    }
    cells
}

/// The row of a cache whose every attribute says `text`: what the property tests feed.
#[cfg(test)]
pub(super) fn parse(text: &str, rows: &mut Vec<Row>) {
    let text = Some(text.to_owned());
    let columns = COLUMNS.get(ATTRIBUTES).unwrap_or_default();
    let mut row = vec![Cell::Missing; ATTRIBUTES.start];
    row.extend(cells(columns.iter().map(|column| (column, &text))));
    rows.push(row);
}

const _: () =
    assert!(matches!(COLUMNS[ATTRIBUTES.end].stored, ColumnType::Text), "the flags follow the attributes");
