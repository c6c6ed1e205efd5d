//! Series `filesystems` on a clock: a row a mounted file system, each device once.

use std::collections::BTreeSet;

use perflab_formats::kernel::filesystems::has_room;
use perflab_model::{CellRow, SeriesSchema, TableCell};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::text_file::ProcFile;

/// Rows at most.
const MOST: usize = 1_000;

struct FilesystemsMonitor {
    schema: SeriesSchema,
    mounts: ProcFile,
}

pub(crate) fn open_filesystems(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let mounts = ProcFile::open(opening.root, opening.file.source)?;
    if !opening.root.is_host() {
        let source = std::io::Error::other("a copied tree has no mounted file systems to ask");
        return Err(ObserveError::read_failed(opening.file.source, source));
    }
    let schema = SeriesSchema { source: "/proc/self/mounts, statvfs".into(), ..opening.declared_schema() };
    Ok(Box::new(FilesystemsMonitor { schema, mounts }))
}

/// A mount point as the kernel writes it, with its octal numbers for blanks made into what they stand for.
fn unescape_mount(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (code, plain)| text.replace(code, plain))
}

impl Monitor for FilesystemsMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        let text = self.mounts.read()?;
        let mut seen = BTreeSet::new();
        for line in text.lines().take(MOST) {
            let mut words = line.split(' ');
            let (Some(_), Some(mount), Some(kind)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            if !has_room(kind) {
                continue;
            }
            let mount = unescape_mount(mount);
            let Ok(found) = rustix::fs::statvfs(mount.as_str()) else { continue };
            // Older kernels give all tmpfs the same number, 0.
            let same = (found.f_fsid, if found.f_fsid == 0 { mount.clone() } else { String::new() });
            if found.f_blocks == 0 || !seen.insert(same) {
                continue;
            }
            let bytes = |blocks: u64| blocks.checked_mul(found.f_frsize);
            let cell = |number: Option<u64>| {
                number
                    .and_then(|number| i64::try_from(number).ok())
                    .map_or(TableCell::Missing, TableCell::Int)
            };
            rows.push(vec![
                TableCell::Text(mount),
                TableCell::Text(kind.to_owned()),
                cell(bytes(found.f_blocks)),
                cell(bytes(found.f_bfree)),
                cell(bytes(found.f_bavail)),
                cell(Some(found.f_files)),
                cell(Some(found.f_ffree)),
            ]);
        }
        Ok(())
    }
}
