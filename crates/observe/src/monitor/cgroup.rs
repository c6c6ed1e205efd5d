//! Series `cgroup` on a clock: a row a control group, of perflab's own and of each that the workload was put into.
//!
//! A controller is read in the hierarchy that has it: that of version 2, or its own of version 1; a machine may have both. A group
//! that vanished has no row any more.

use std::collections::{BTreeMap, BTreeSet};

use perflab_formats::kernel::cgroup::{
    CGROUP1_FILES, CGROUP2_FILES, CgroupText, discover_cgroup_column, find_cgroup_path, parse_cgroup_text,
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

/// How the groups are called in which perflab limits a workload; nobody is in them between iterations.
const LIMITING: &str = "perflab-";

/// One group.
struct OpenGroup {
    /// Its path in the hierarchy, or in that of the first controller of version 1.
    name: String,
    files: Vec<(SmallFile, CgroupText)>,
}

struct CgroupMonitor {
    root: Root,
    schema: SeriesSchema,
    hierarchies: CgroupHierarchies,
    /// perflab's own limits, as they were listed last.
    limiting: Vec<String>,
    groups: Vec<OpenGroup>,
    columns: WideColumns,
    until_listed: u32,
    buffer: Vec<u8>,
}

pub(crate) fn open_cgroup(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let own = opening.root.read(opening.file.source)?;
    let hierarchies = CgroupHierarchies::find(opening.root, &own);
    let mut schema = opening.schema_with_columns(Vec::new());
    schema.source = hierarchies.describe();
    let mut monitor = CgroupMonitor {
        root: opening.root.clone(),
        schema,
        hierarchies,
        limiting: Vec::new(),
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

/// Which controllers are where.
struct CgroupHierarchies {
    /// Where version 2 is mounted with controllers.
    unified: Option<String>,
    /// Whether controllers of version 1 are mounted.
    has_version_1: bool,
}

impl CgroupHierarchies {
    /// `own` is the text of a process' `/proc/PID/cgroup`.
    fn find(root: &Root, own: &str) -> Self {
        let controllers = |mounted: &str| root.read(&format!("{mounted}/cgroup.controllers")).ok();
        let beside = format!("{MOUNTED}/unified");
        let unified = match controllers(MOUNTED) {
            Some(_) => Some(MOUNTED.to_owned()),
            None => controllers(&beside).filter(|text| !text.trim().is_empty()).map(|_| beside),
        };
        let has_version_1 = CGROUP1_FILES.iter().any(|(one, ..)| find_cgroup_path(own, one).is_some());
        CgroupHierarchies { unified, has_version_1 }
    }

    fn describe(&self) -> String {
        match (&self.unified, self.has_version_1) {
            (Some(mounted), false) => format!("{mounted} (cgroup v2)"),
            (Some(mounted), true) => format!("{MOUNTED} (cgroup v1), {mounted} (cgroup v2)"),
            (None, _) => format!("{MOUNTED} (cgroup v1)"),
        }
    }

    /// The files of a process' groups, each with its folder and its kind.
    fn files(&self, text: &str) -> Vec<(String, &'static str, CgroupText)> {
        let of_version_1 = CGROUP1_FILES.iter().filter_map(|(controller, name, kind)| {
            let group = find_cgroup_path(text, controller)?.trim_end_matches('/');
            Some((format!("{MOUNTED}/{controller}{group}"), *name, *kind))
        });
        let is_in_version_1 = |name: &str| {
            let controller = name.split('.').next().unwrap_or(name);
            let of_io = if controller == "io" { "blkio" } else { controller };
            [controller, of_io].iter().any(|one| find_cgroup_path(text, one).is_some())
        };
        let of_version_2 = CGROUP2_FILES.iter().filter_map(|(_, name, kind)| {
            let mounted = self.unified.as_ref()?;
            // Pressure is told by the group, whoever has the controller.
            let is_own = matches!(kind, CgroupText::Pressure(_)) || !is_in_version_1(name);
            let group = find_cgroup_path(text, "").filter(|_| is_own)?.trim_end_matches('/');
            Some((format!("{mounted}{group}"), *name, *kind))
        });
        of_version_1.chain(of_version_2).collect()
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
        let controllers = ["cpuacct", "cpu", "memory", "blkio", "pids", ""];
        // The group that is not the root of its hierarchy names the row.
        let paths: Vec<&str> = controllers.iter().filter_map(|one| find_cgroup_path(text, one)).collect();
        let first = paths.iter().find(|path| **path != "/").or_else(|| paths.first())?;
        Some((*first).to_owned())
    }

    fn group_files(&self, text: &str) -> Vec<(SmallFile, CgroupText)> {
        let open = |(folder, name, kind): (String, &str, CgroupText)| {
            (SmallFile::new(self.root.path(&format!("{folder}/{name}"))), kind)
        };
        self.hierarchies.files(text).into_iter().map(open).collect()
    }

    /// The groups beside or below perflab's own in which it limits workloads, as processes in them would have them.
    fn list_limiting_groups(&self, own: &str) -> Vec<String> {
        let mut found: BTreeMap<String, String> = BTreeMap::new();
        let version_2 = self.hierarchies.unified.clone().map(|mounted| (mounted, ""));
        let version_1 = ["cpu", "memory", "cpuset", "pids"].map(|one| (format!("{MOUNTED}/{one}"), one));
        for (mounted, controller) in version_2.into_iter().chain(version_1) {
            let Some(path) = find_cgroup_path(own, controller) else { continue };
            let path = path.trim_end_matches('/');
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            for folder in BTreeSet::from([path, parent]) {
                for name in self.root.list(&format!("{mounted}{folder}")) {
                    if name.starts_with(LIMITING) {
                        let group = format!("{folder}/{name}");
                        let line = format!("0:{controller}:{group}\n");
                        found.entry(group).or_default().push_str(&line);
                    }
                }
            }
        }
        found.into_values().collect()
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
        let mut texts: Vec<String> = std::iter::once(own.clone()).chain(of_workload).collect();
        self.limiting = self.list_limiting_groups(&own);
        texts.extend(self.limiting.iter().cloned());
        self.open_groups(texts);
    }
}

impl Monitor for CgroupMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        self.until_listed = self.until_listed.saturating_sub(1);
        let own = self.root.read("/proc/self/cgroup").unwrap_or_default();
        // A level of a limit may have made one since.
        if self.until_listed == 0 || self.list_limiting_groups(&own) != self.limiting {
            self.list_groups();
        }
        self.read_groups(rows);
        Ok(())
    }
}
