//! Texts of the kernel of which a function makes all rows: `sched-domains`, `nfs`.

use perflab_formats::kernel::nfs_mounts::parse_nfs_mountstats;
use perflab_formats::kernel::sched_domains::parse_sched_domains;
use perflab_formats::reading_parser::MalformedLine;
use perflab_model::{CellRow, SeriesSchema};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::text_file::ProcFile;

/// What makes a text into rows.
type ParseText = fn(&str, &mut Vec<CellRow>) -> Result<(), MalformedLine>;

struct ParsedTextMonitor {
    schema: SeriesSchema,
    file: ProcFile,
    parse: ParseText,
}

pub(crate) fn open_nfs(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    // A mount that nothing was asked of yet has no rows.
    let has_nfs = |text: &str| text.contains(" with fstype nfs");
    open_parsed_text(opening, parse_nfs_mountstats, has_nfs)
}

pub(crate) fn open_sched_domains(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    open_parsed_text(opening, parse_sched_domains, |text| text.contains("\ndomain"))
}

fn open_parsed_text(
    opening: &MonitorContext<'_>,
    parse: ParseText,
    is_there: impl Fn(&str) -> bool,
) -> Result<Box<dyn Monitor>, ObserveError> {
    let mut file = ProcFile::open(opening.root, opening.file.source)?;
    if !is_there(file.read()?) {
        return Err(ObserveError::read_failed(opening.file.source, rustix::io::Errno::NODEV.into()));
    }
    Ok(Box::new(ParsedTextMonitor { schema: opening.declared_schema(), file, parse }))
}

impl Monitor for ParsedTextMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        let (path, text) = self.file.read_with_path()?;
        (self.parse)(text, rows).map_err(|malformed| ObserveError::malformed(path, malformed))
    }
}
