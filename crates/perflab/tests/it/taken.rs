//! What leaves memory though a test dropped nothing: some machines' kernels page out what nobody maps (DAMON), and others drop
//! everybody's caches. What was taken so may be read again, and nothing else.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use perflab_observe::io::tracefs::{Instance, TraceFs};

const EVENT: &str = "events/filemap/mm_filemap_delete_from_page_cache";

/// Counts what leaves memory of one file system, since it was made.
pub struct Taken(Instance);

impl Taken {
    /// Of the file system that is mounted at `place`: pages of its files, and of its device.
    pub fn of(place: &Path) -> Self {
        let device = std::fs::metadata(place).unwrap().dev();
        // As the kernel numbers devices. Its device's own pages are those of a file of this number.
        let device = u64::from(rustix::fs::major(device)) << 20 | u64::from(rustix::fs::minor(device));
        let instance = TraceFs::find().unwrap().instance("taken").unwrap();
        let filter = format!("s_dev == {device} || i_ino == {device}");
        instance.set(&format!("{EVENT}/filter"), &filter).unwrap();
        instance.set(&format!("{EVENT}/enable"), "1").unwrap();
        Taken(instance)
    }

    /// Bytes that may be read again for it: with a page that is missing the kernel brings 128 KiB. None where nothing left.
    pub fn may_be_read(&self) -> u64 {
        32 * self.bytes()
    }

    /// Bytes that left.
    pub fn bytes(&self) -> u64 {
        assert_eq!(self.0.lost(), 0);
        let seen = self.0.read("trace").unwrap();
        let orders = seen.lines().filter_map(|line| line.rsplit_once(" order="));
        orders.map(|(_, order)| 4096 << order.trim().parse::<u32>().unwrap()).sum()
    }
}

#[test]
fn what_leaves_memory_is_counted() {
    let Some(image) = crate::image::Image::new("what_leaves_memory_is_counted") else { return };
    let path = image.write("file", 9);
    rustix::fs::sync();
    let taken = Taken::of(&image.place());
    assert_eq!(taken.bytes(), 0);
    let file = std::fs::File::open(&path).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    assert!(taken.bytes() >= 9 << 12, "{}", taken.bytes());
}
