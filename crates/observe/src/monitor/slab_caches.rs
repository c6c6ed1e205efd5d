//! Series `slab-caches` (`/sys/kernel/slab`): what does not change about a cache, the names that were merged into
//! it, and the page size.
//!
//! All rows at the first tick, and all of them again at every tick at which a cache or a name came or went; none at
//! the others.
//!
//! `object_size` is what the creator asked for, `slab_size` the same padded (the `objsize` of `/proc/slabinfo`);
//! `objs_per_slab` and `order` are those of the preferred order. Every attribute is `Missing` where this kernel
//! does not have it (Documentation/ABI/testing/sysfs-kernel-slab).
//!
//! The page size is that of the machine whose `/proc` this is: AT_PAGESZ of the auxiliary vector (getauxval(3)),
//! which a recorded tree holds as the machine itself does. It is not guessed: 4096 is wrong on many.

use std::collections::HashMap;

use perflab_model::series::ColumnType;
use perflab_model::{CellRow, SeriesSchema, TableCell};

use crate::ObserveError;
use crate::monitor::registry::{Monitor, MonitorContext, MonitorDescriptor};
use crate::monitor::slab_counts::add_row_flag;
use crate::monitor::slab_tree::{SlabDirectory, SysfsSlabTree, WITHOUT_ROOT, read_slab_attribute};
use crate::monitor::text_format::DeclaredColumn;
use crate::root::Root;

pub(crate) const KIND: MonitorDescriptor = MonitorDescriptor {
    name: "slab-caches",
    source: "/sys/kernel/slab",
    about: "size, alignment, order, flags and merged names of every slab cache; again whenever caches come or go",
    needs: "root",
    without: WITHOUT_ROOT,
    columns: COLUMNS,
    open: open_slab_caches,
};

const fn flag_column(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::gauge(name, "1")
}

const COLUMNS: &[DeclaredColumn] = &[
    DeclaredColumn::key("cache"),
    DeclaredColumn::key("directory"),
    DeclaredColumn::key("aliases"),
    DeclaredColumn::gauge("page_size", "bytes"),
    DeclaredColumn::gauge("object_size", "bytes"),
    DeclaredColumn::gauge("slab_size", "bytes"),
    DeclaredColumn::gauge("objs_per_slab", "objects"),
    DeclaredColumn::gauge("order", "1"),
    DeclaredColumn::gauge("align", "bytes"),
    flag_column("reclaim_account"),
    flag_column("hwcache_align"),
    flag_column("destroy_by_rcu"),
    flag_column("cache_dma"),
    DeclaredColumn::key("ctor"),
    DeclaredColumn::gauge("cpu_partial", "objects"),
    DeclaredColumn::gauge("min_partial", "slabs"),
    DeclaredColumn::gauge("sheaf_capacity", "objects"),
    DeclaredColumn::key("flags"),
];

/// The columns that are attributes of that name.
const ATTRIBUTES: std::ops::Range<usize> = 4..17;

struct SlabCachesMonitor {
    schema: SeriesSchema,
    tree: SysfsSlabTree,
    page_size: TableCell,
    /// The cells of [`ATTRIBUTES`] and the flags, by directory and inode: they are read once.
    rows_by_cache: HashMap<(String, u64), CellRow>,
    /// Whether the rows of the tree as it is were not given yet.
    due: bool,
}

fn open_slab_caches(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let tree = SysfsSlabTree::open(opening.root)?;
    let page_size = read_page_size(opening.root).and_then(|size| i64::try_from(size).ok());
    let page_size = page_size.map_or(TableCell::Missing, TableCell::Int);
    let schema = opening.declared_schema();
    let mut caches = SlabCachesMonitor { schema, tree, page_size, rows_by_cache: HashMap::new(), due: true };
    caches.read_new_caches()?;
    Ok(Box::new(caches))
}

impl Monitor for SlabCachesMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        if self.tree.refresh()? {
            self.read_new_caches()?;
            self.due = true;
        }
        if std::mem::take(&mut self.due) {
            rows.extend(self.tree.directories().iter().filter_map(|folder| self.read_row(folder)));
        }
        Ok(())
    }
}

impl SlabCachesMonitor {
    /// Reads the attributes of caches that are new, and forgets those that are gone.
    fn read_new_caches(&mut self) -> Result<(), ObserveError> {
        let mut known = HashMap::with_capacity(self.tree.directories().len());
        for folder in self.tree.directories() {
            let key = (folder.directory.clone(), folder.inode);
            let cells = self
                .rows_by_cache
                .remove(&key)
                .map_or_else(|| read_attribute_cells(folder), |cells| Ok(Some(cells)))?;
            known.extend(cells.map(|cells| (key, cells)));
        }
        self.rows_by_cache = known;
        Ok(())
    }

    fn read_row(&self, folder: &SlabDirectory) -> Option<CellRow> {
        let cells = self.rows_by_cache.get(&(folder.directory.clone(), folder.inode))?;
        let texts = [folder.cache.clone(), folder.directory.clone(), folder.members.join(",")];
        let mut row: CellRow = texts.map(TableCell::Text).into();
        row.push(self.page_size.clone());
        row.extend_from_slice(cells);
        Some(row)
    }
}

/// The cells of one cache's attributes, and its flags; nothing where the cache went since the tree was listed.
fn read_attribute_cells(folder: &SlabDirectory) -> Result<Option<CellRow>, ObserveError> {
    let columns = COLUMNS.get(ATTRIBUTES).unwrap_or_default();
    let texts = columns.iter().map(|column| {
        let path = folder.path.join(column.name);
        let kernels = format!("{}/{}/{}", KIND.source, folder.directory, column.name);
        read_slab_attribute(path).map_err(|source| ObserveError::read_failed(&kernels, source))
    });
    let texts: Vec<Option<String>> = texts.collect::<Result<_, _>>()?;
    let gone = texts.iter().all(Option::is_none) && !folder.path.is_dir();
    Ok((!gone).then(|| parse_attribute_cells(columns.iter().zip(&texts))))
}

fn parse_attribute_cells<'a>(
    texts: impl Iterator<Item = (&'a DeclaredColumn, &'a Option<String>)>,
) -> CellRow {
    let mut sound = true;
    let mut cells: CellRow = texts
        .map(|(column, text)| {
            let cell = text.as_deref().map(|text| column.parse_cell(text));
            sound &= cell != Some(None);
            cell.flatten().unwrap_or(TableCell::Missing)
        })
        .collect();
    cells.push(TableCell::Text(String::new()));
    if !sound {
        add_row_flag(&mut cells, "malformed");
    }
    cells
}

/// The row of a cache whose every attribute is `text`: what the property tests feed.
#[cfg(test)]
pub(crate) fn parse_slab_caches_row(text: &str, rows: &mut Vec<CellRow>) {
    let text = Some(text.to_owned());
    let columns = COLUMNS.get(ATTRIBUTES).unwrap_or_default();
    let mut row = vec![TableCell::Missing; ATTRIBUTES.start];
    row.extend(parse_attribute_cells(columns.iter().map(|column| (column, &text))));
    rows.push(row);
}

const _: () =
    assert!(matches!(COLUMNS[ATTRIBUTES.end].stored, ColumnType::Text), "the flags follow the attributes");

/// The key of the page size (include/uapi/linux/auxvec.h).
const AT_PAGESZ: u64 = 6;

/// In bytes; nothing where the tree does not have it.
fn read_page_size(root: &Root) -> Option<u64> {
    if root.is_host() {
        return u64::try_from(rustix::param::page_size()).ok();
    }
    find_auxv_page_size(&std::fs::read(root.path("/proc/self/auxv")).ok()?)
}

/// Pairs of key and value, as 64-bit words of this machine's byte order.
fn find_auxv_page_size(vector: &[u8]) -> Option<u64> {
    let (words, _) = vector.as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let pair = pairs.iter().find(|[key, _]| u64::from_ne_bytes(*key) == AT_PAGESZ)?;
    Some(u64::from_ne_bytes(pair[1])).filter(|size| size.is_power_of_two())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_vector_tells_what_the_machine_does() {
        let own = std::fs::read("/proc/self/auxv").unwrap();
        assert_eq!(find_auxv_page_size(&own), u64::try_from(rustix::param::page_size()).ok());
        assert_eq!(find_auxv_page_size(&own[..24]), None);
        assert_eq!(find_auxv_page_size(b"6"), None);
    }
}
