//! Series `slab-caches` on a clock: what does not change about a cache, the names that were merged into it, and the
//! page size.
//!
//! All rows at the first tick, and all of them again at every tick at which a cache or a name came or went; none at
//! the others.
//!
//! The page size is that of the machine whose `/proc` this is: AT_PAGESZ of the auxiliary vector (getauxval(3)),
//! which a recorded tree holds as the machine itself does. It is not guessed: 4096 is wrong on many.

use std::collections::HashMap;

use perflab_formats::kernel::sysfs_slab::{
    SLAB_CACHES, cache_attributes, make_cache_row, parse_cache_attributes,
};
use perflab_model::{CellRow, SeriesSchema};

use crate::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::slab_tree::{SlabDirectory, SysfsSlabTree, read_slab_attribute};
use crate::root::Root;

struct SlabCachesMonitor {
    schema: SeriesSchema,
    tree: SysfsSlabTree,
    page_size: Option<u64>,
    /// The cells of its attributes and the flags, by directory and inode: they are read once.
    rows_by_cache: HashMap<(String, u64), CellRow>,
    /// Whether the rows of the tree as it is were not given yet.
    due: bool,
}

pub(crate) fn open_slab_caches(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let tree = SysfsSlabTree::open(opening.root)?;
    let page_size = read_page_size(opening.root);
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
        Some(make_cache_row(&folder.cache, &folder.directory, &folder.members, self.page_size, cells))
    }
}

/// The cells of one cache's attributes, and its flags; nothing where the cache went since the tree was listed.
fn read_attribute_cells(folder: &SlabDirectory) -> Result<Option<CellRow>, ObserveError> {
    let texts = cache_attributes().iter().map(|column| {
        let path = folder.path.join(column.name);
        let kernels = format!("{}/{}/{}", SLAB_CACHES.source, folder.directory, column.name);
        read_slab_attribute(path).map_err(|source| ObserveError::read_failed(&kernels, source))
    });
    let texts: Vec<Option<String>> = texts.collect::<Result<_, _>>()?;
    let gone = texts.iter().all(Option::is_none) && !folder.path.is_dir();
    Ok((!gone).then(|| parse_cache_attributes(&texts)))
}

/// The key of the page size (include/uapi/linux/auxvec.h).
const AT_PAGESZ: u64 = 6;

/// In bytes; nothing where the tree does not have it.
pub(crate) fn read_page_size(root: &Root) -> Option<u64> {
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
