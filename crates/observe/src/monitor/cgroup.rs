//! Series `cgroup` on a clock: a row a control group, of perflab's own and of each that the workload was put into.
//!
//! Version 2 is read where it has controllers, else version 1. A group that vanished has no row any more.

use std::path::PathBuf;

use perflab_formats::kernel::cgroup::{
    CGROUP1_FILES, CGROUP2_FILES, CgroupFile, CgroupText, discover_cgroup_column, find_cgroup_path,
    parse_cgroup_text,
};
use perflab_model::{CellRow, ColumnSpec, SeriesSchema, TableCell};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::folder::SmallFile;
use crate::monitor::tasks::read_small;
use crate::monitor::wide_row::WideColumns;
use crate::monitor::workload_tree::list_workload;
use crate::root::Root;

/// Where hierarchies are mounted.
const MOUNTED: &str = "/sys/fs/cgroup";

/// Groups of a workload at most.
const MOST_GROUPS: usize = 64;

/// Readings after which is looked where the workload's processes are.
const LISTED_EVERY: u32 = 32;

/// One group.
struct OpenGroup {
    /// Its path in the hierarchy, or in that of the first controller of version 1.
    name: String,
    files: Vec<(SmallFile, CgroupText)>,
}

struct CgroupMonitor {
    root: Root,
    schema: SeriesSchema,
    /// Where version 2 is mounted; nothing where version 1 is read.
    unified: Option<String>,
    groups: Vec<OpenGroup>,
    columns: WideColumns,
    until_listed: u32,
    buffer: Vec<u8>,
}

pub(crate) fn open_cgroup(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let own = opening.root.read(opening.file.source)?;
    let unified = find_unified(opening.root);
    let mut schema = opening.schema_with_columns(Vec::new());
    schema.source = match &unified {
        Some(mounted) => format!("{mounted} (cgroup v2)"),
        None => format!("{MOUNTED} (cgroup v1)"),
    };
    let mut monitor = CgroupMonitor {
        root: opening.root.clone(),
        schema,
        unified,
        groups: Vec::new(),
        columns: WideColumns::default(),
        until_listed: 0,
        buffer: vec![0; 16 << 10],
    };
    monitor.open_groups(vec![own]);
    let mut first = Vec::new();
    monitor.read_groups(&mut first);
    if first.is_empty() {
        return Err(ObserveError::read_failed(opening.file.source, rustix::io::Errno::NODEV.into()));
    }
    monitor.columns.settle();
    monitor.schema.columns =
        [ColumnSpec::key("cgroup")].into_iter().chain(monitor.columns.columns()).collect();
    Ok(Box::new(monitor))
}

/// The mount of version 2: alone, or beside those of version 1 where it has controllers.
fn find_unified(root: &Root) -> Option<String> {
    let controllers = |mounted: &str| root.read(&format!("{mounted}/cgroup.controllers")).ok();
    let beside = format!("{MOUNTED}/unified");
    match controllers(MOUNTED) {
        Some(_) => Some(MOUNTED.to_owned()),
        None => controllers(&beside).filter(|text| !text.trim().is_empty()).map(|_| beside),
    }
}

impl CgroupMonitor {
    /// Opens the groups of these `/proc/PID/cgroup`, each once.
    fn open_groups(&mut self, texts: Vec<String>) {
        self.until_listed = LISTED_EVERY;
        let mut before = std::mem::take(&mut self.groups);
        for text in texts {
            let Some(name) = self.group_name(&text) else { continue };
            if self.groups.len() >= MOST_GROUPS || self.groups.iter().any(|group| group.name == name) {
                continue;
            }
            let known =
                before.iter().position(|group| group.name == name).map(|index| before.swap_remove(index));
            let group = known.unwrap_or_else(|| OpenGroup { files: self.group_files(&text), name });
            self.groups.push(group);
        }
    }

    fn group_name(&self, text: &str) -> Option<String> {
        let mut controllers = match self.unified {
            Some(_) => &[""][..],
            None => &["cpuacct", "cpu", "memory", "blkio", "pids"],
        }
        .iter();
        // The group that is not the root of its hierarchy names the row.
        let paths: Vec<&str> = controllers.by_ref().filter_map(|one| find_cgroup_path(text, one)).collect();
        let first = paths.iter().find(|path| **path != "/").or_else(|| paths.first())?;
        Some((*first).to_owned())
    }

    fn group_files(&self, text: &str) -> Vec<(SmallFile, CgroupText)> {
        let files: &[CgroupFile] = if self.unified.is_some() { CGROUP2_FILES } else { CGROUP1_FILES };
        let open = |(controller, name, kind): &CgroupFile| {
            let group = find_cgroup_path(text, controller)?.trim_end_matches('/');
            let mounted = match &self.unified {
                Some(mounted) => mounted.clone(),
                None => format!("{MOUNTED}/{controller}"),
            };
            let path: PathBuf = self.root.path(&format!("{mounted}{group}/{name}"));
            Some((SmallFile::new(path), *kind))
        };
        files.iter().filter_map(open).collect()
    }

    fn read_groups(&mut self, rows: &mut Vec<CellRow>) {
        for group in &mut self.groups {
            let mut row = self.columns.begin_row([TableCell::Text(group.name.clone())]);
            for (file, kind) in &mut group.files {
                let Ok(text) = file.read(&mut self.buffer) else { continue };
                let prefix = match *kind {
                    CgroupText::Number(prefix)
                    | CgroupText::Lines(prefix)
                    | CgroupText::DeviceFields(prefix)
                    | CgroupText::DeviceWords(prefix)
                    | CgroupText::Pressure(prefix) => prefix,
                };
                parse_cgroup_text(*kind, text, |name, rest| {
                    row.set(&mut self.columns, prefix, name, rest, discover_cgroup_column);
                });
            }
            rows.extend(row.finish(&self.columns));
        }
    }

    /// The groups of perflab and of the workload's processes.
    fn list_groups(&mut self) {
        let own = self.root.read("/proc/self/cgroup").unwrap_or_default();
        let workload = list_workload(&self.root, &mut self.buffer);
        let proc = self.root.path("/proc");
        let of_workload = workload.iter().filter_map(|process| {
            read_small(&proc.join(format!("{}/cgroup", process.pid)), &mut self.buffer).map(str::to_owned)
        });
        let texts: Vec<String> = std::iter::once(own).chain(of_workload).collect();
        self.open_groups(texts);
    }
}

impl Monitor for CgroupMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        self.until_listed = self.until_listed.saturating_sub(1);
        if self.until_listed == 0 {
            self.list_groups();
        }
        self.read_groups(rows);
        Ok(())
    }
}
