//! Learning without root: files that the processes of a command have open or mapped are noted while it runs, and what of them
//! is in memory afterwards is taken for what it read. Pages that others had brought count too, files that were open for less
//! than a glance are missed, and nothing is known of metadata: [`Source::Residency`](crate::TraceSource) says so.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::io::{FileClass, PAGE, PageSet};
use perflab_observe::io::residency;

use crate::learn::build_trace_from_files;
use crate::{PrefetchError, StartupTrace};

/// Files that were seen in use.
#[derive(Debug, Default)]
pub struct FilesInUse {
    files: BTreeSet<PathBuf>,
}

impl FilesInUse {
    /// Looks once at what a process and its descendants have open and mapped.
    pub fn add_process_tree(&mut self, pid: u32) {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let maps = fs::read_to_string(process.join("maps")).unwrap_or_default();
        self.files.extend(maps.lines().filter_map(|line| Some(PathBuf::from(line.get(line.find('/')?..)?))));
        for entry in fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
            self.files.extend(fs::read_link(entry.path()).ok().filter(|path| path.is_absolute()));
        }
        for thread in fs::read_dir(process.join("task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            children
                .split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .for_each(|child| self.add_process_tree(child));
        }
    }

    /// What of them is in memory now.
    ///
    /// # Errors
    /// [`PrefetchError::Empty`] where that is nothing that could be asked about.
    pub fn build_trace(&self) -> Result<StartupTrace, PrefetchError> {
        let resident = |path: &PathBuf| {
            let about =
                perflab_observe::io::describe_file(path).filter(|about| about.class == FileClass::File)?;
            let pages = resident_pages(path, about.size)?;
            (!pages.is_empty()).then_some((about, pages))
        };
        build_trace_from_files(self.files.iter().filter_map(resident).collect())
    }
}

/// Pages in memory. The kernel tells that only to who owns a file or could write it, and lies to others.
fn resident_pages(path: &Path, size: u64) -> Option<PageSet> {
    let file = fs::File::open(path).ok()?;
    let own =
        std::os::unix::fs::MetadataExt::uid(&file.metadata().ok()?) == rustix::process::geteuid().as_raw();
    let may = own || rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
    let map =
        may.then(|| residency::resident_page_map(&file, 0, size.div_ceil(PAGE) * PAGE).ok()).flatten()?;
    Some((0_u64..).zip(map).filter(|(_, resident)| *resident).map(|(page, _)| (page, 1)).collect())
}
