//! What leaves memory though a test dropped nothing: some machines' kernels page out what nobody maps (DAMON, on virtual machines,
//! every few seconds), also what was read just now, and others drop everybody's caches. What was taken so may be read again,
//! and nothing else; where nothing was, nothing may.

use std::io::BufRead as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perflab_observe::io::tracefs::{TraceFs, TraceInstance};

const EVENT: &str = "events/filemap/mm_filemap_delete_from_page_cache";

/// How long it may take until a machine leaves memory alone for as long as something is looked at.
const PATIENCE: Duration = Duration::from_secs(120);

/// Prepares and does something, as often as it takes until nothing left memory meanwhile of the file system at `place`: what came of it
/// then is judged strictly.
pub fn repeat_until_undisturbed<T>(place: &Path, prepare: impl FnMut(), does: impl FnMut() -> T) -> T {
    repeat_until_nothing_evicted(|| EvictedPages::on_file_system(place), prepare, does)
}

/// The same for what drops caches itself before it begins.
pub fn repeat_until_undisturbed_by_others<T>(place: &Path, does: impl FnMut() -> T) -> T {
    repeat_until_nothing_evicted(|| EvictedPages::by_others(place), || (), does)
}

fn repeat_until_nothing_evicted<T>(
    count: impl Fn() -> EvictedPages,
    mut prepare: impl FnMut(),
    mut does: impl FnMut() -> T,
) -> T {
    let begun = Instant::now();
    loop {
        prepare();
        let taken = count();
        let found = does();
        match taken.evicted_bytes() {
            0 => return found,
            bytes => assert!(begun.elapsed() < PATIENCE, "each time something left memory, {bytes} at last"),
        }
    }
}

/// A process that maps a file, so that nothing takes it from memory. Gone when dropped.
pub struct MappingProcess(Child);

impl MappingProcess {
    /// All of it, which is in memory then; none where there is no python3.
    pub fn map_whole(path: &Path) -> Option<Self> {
        let map = "import mmap, sys, time\nf = open(sys.argv[1])\nm = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n\
                   sum(m[::4096])\nprint('mapped', flush=True)\ntime.sleep(600)";
        let mut keeper = Command::new("python3");
        keeper.args(["-c", map]).arg(path).stdout(Stdio::piped());
        let mut keeper = keeper.spawn().ok()?;
        let mut line = String::new();
        std::io::BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "mapped", "{}", path.display());
        Some(MappingProcess(keeper))
    }
}

impl Drop for MappingProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Counts what leaves memory of one file system, since it was made.
pub struct EvictedPages(TraceInstance);

impl EvictedPages {
    /// Of the file system that is mounted at `place`: pages of its files, and of its device.
    pub fn on_file_system(place: &Path) -> Self {
        EvictedPages::count_evictions(place, "")
    }

    /// The same, but for what perflab itself drops, as it does before a cold start.
    pub fn by_others(place: &Path) -> Self {
        EvictedPages::count_evictions(place, " && comm != \"perflab\"")
    }

    fn count_evictions(place: &Path, whose: &str) -> Self {
        let device = std::fs::metadata(place).unwrap().dev();
        // As the kernel numbers devices. Its device's own pages are those of a file of this number.
        let device = u64::from(rustix::fs::major(device)) << 20 | u64::from(rustix::fs::minor(device));
        let instance = TraceFs::find().unwrap().create_instance("taken").unwrap();
        let filter = format!("(s_dev == {device} || i_ino == {device}){whose}");
        instance.set(&format!("{EVENT}/filter"), &filter).unwrap();
        instance.set(&format!("{EVENT}/enable"), "1").unwrap();
        EvictedPages(instance)
    }

    /// Bytes that may be read again for it: with a page that is missing the kernel brings 128 KiB. None where nothing left.
    pub fn readable_again_bytes(&self) -> u64 {
        32 * self.evicted_bytes()
    }

    /// Bytes that left.
    pub fn evicted_bytes(&self) -> u64 {
        assert_eq!(self.0.lost_events(), 0);
        let seen = self.0.read("trace").unwrap();
        let orders = seen.lines().filter_map(|line| line.rsplit_once(" order="));
        orders.map(|(_, order)| 4096 << order.trim().parse::<u32>().unwrap()).sum()
    }
}

#[test]
fn what_leaves_memory_is_counted() {
    let Some(image) = crate::image::MountedImage::new("what_leaves_memory_is_counted") else { return };
    let path = image.write_pages("file", 9);
    rustix::fs::sync();
    let taken = EvictedPages::on_file_system(&image.mount_point());
    assert_eq!(taken.evicted_bytes(), 0);
    let file = std::fs::File::open(&path).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    assert!(taken.evicted_bytes() >= 9 << 12, "{}", taken.evicted_bytes());
}

#[test]
fn what_perflab_drops_is_not_taken_by_others() {
    let Some(image) = crate::image::MountedImage::new("what_perflab_drops_is_not_taken_by_others") else {
        return;
    };
    let (program, store) = (image.write_script("start", "true"), image.mount_point().join("store"));
    let laboratory = crate::laboratory::Sandbox::new();
    let learn = ["prefetch", "--store", store.to_str().unwrap(), "learn", "--cold", "--", &program];
    let (taken, of_it) = repeat_until_undisturbed_by_others(&image.mount_point(), || {
        let (all, others) = (
            EvictedPages::on_file_system(&image.mount_point()),
            EvictedPages::by_others(&image.mount_point()),
        );
        laboratory.run_successfully(&learn);
        (all.evicted_bytes(), others.evicted_bytes())
    });
    assert!(taken > 0 && of_it == 0, "{of_it} of {taken}");
}
