//! `cpu-max`, `memory-max`, `memory-high`, `pids-max`, `io-max`, `isolated-cpus`: a control group of the run's own, in which its workload
//! is executed, with limits, or with CPUs that nobody else runs on.
//!
//! The group lies below perflab's own where its controller is one of version 1; of version 2, in which a group with processes has no
//! groups with controllers below it, beside it. It goes with the run: whatever is left in it is moved to where perflab was.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_formats::kernel::cgroup::find_cgroup_path;
use perflab_model::placement::parse_number_list;
use perflab_model::{Bytes, PresetLevel, PresetName, Ratio, Refusal};
use perflab_observe::Root;

use crate::error::SettingError;
use crate::setting::SettingContent;
use crate::setting_file::PresetFileState;
use crate::study_disk::{StudyDisk, disk_part};
use crate::undo_entry::UndoEntry;
use crate::undo_journal::UndoJournal;

/// The level at which there is no limit.
pub(crate) const NONE: &str = "none";

/// Where control groups are mounted: all of version 2, or a folder a controller of version 1; of both, version 2 in `unified`.
const MOUNT: &str = "/sys/fs/cgroup";

/// The period of a quota, in microseconds: the kernel's own.
const PERIOD: u64 = 100_000;

/// From here on, version 1 means that there is no limit (PAGE_COUNTER_MAX, in bytes).
const UNLIMITED: u64 = 1 << 62;

/// What is limited, by the name of its preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupLimit {
    CpuMax,
    MemoryMax,
    MemoryHigh,
    PidsMax,
    IoMax,
    IsolatedCpus,
}

impl GroupLimit {
    fn of_preset(name: &str) -> Result<Self, SettingError> {
        Ok(match PresetName::new(name).preset {
            "cpu-max" => GroupLimit::CpuMax,
            "memory-max" => GroupLimit::MemoryMax,
            "memory-high" => GroupLimit::MemoryHigh,
            "pids-max" => GroupLimit::PidsMax,
            "io-max" => GroupLimit::IoMax,
            "isolated-cpus" => GroupLimit::IsolatedCpus,
            other => {
                let hint = "cpu-max, memory-max, memory-high, pids-max, io-max and isolated-cpus are there";
                return Err(refuse_limit(format!("{other}: control groups have no such limit"), hint));
            }
        })
    }

    /// The controller's names in version 2 and 1.
    fn controllers(self) -> (&'static str, &'static str) {
        match self {
            GroupLimit::CpuMax => ("cpu", "cpu"),
            GroupLimit::MemoryMax | GroupLimit::MemoryHigh => ("memory", "memory"),
            GroupLimit::PidsMax => ("pids", "pids"),
            GroupLimit::IoMax => ("io", "blkio"),
            GroupLimit::IsolatedCpus => ("cpuset", "cpuset"),
        }
    }

    /// The file that says what is in force of a group that has a limit.
    fn file(self, version: GroupVersion) -> &'static str {
        match (self, version) {
            (GroupLimit::CpuMax, GroupVersion::One) => "cpu.cfs_quota_us",
            (GroupLimit::CpuMax, GroupVersion::Two) => "cpu.max",
            (GroupLimit::MemoryMax, GroupVersion::One) => "memory.limit_in_bytes",
            (GroupLimit::MemoryMax, GroupVersion::Two) => "memory.max",
            (GroupLimit::MemoryHigh, _) => "memory.high",
            (GroupLimit::PidsMax, _) => "pids.max",
            (GroupLimit::IoMax, GroupVersion::One) => "blkio.throttle.read_bps_device",
            (GroupLimit::IoMax, GroupVersion::Two) => "io.max",
            (GroupLimit::IsolatedCpus, _) => "cpuset.cpus",
        }
    }
}

/// The version of control groups that a controller is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupVersion {
    One,
    Two,
}

/// A level, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LimitLevel {
    None,
    /// Microseconds a period.
    Quota(u64),
    Bytes(u64),
    Processes(u64),
    /// Of reads and writes: bytes and requests a second, as `io.max` calls them.
    Io([Option<u64>; 4]),
    /// A list of CPUs.
    Cpus(String),
}

/// What `io.max` limits, each with its file of version 1.
const IO_LIMITS: [(&str, &str); 4] = [
    ("rbps", "blkio.throttle.read_bps_device"),
    ("wbps", "blkio.throttle.write_bps_device"),
    ("riops", "blkio.throttle.read_iops_device"),
    ("wiops", "blkio.throttle.write_iops_device"),
];

impl LimitLevel {
    fn parse(name: &str, limit: GroupLimit, level: &str) -> Result<Self, SettingError> {
        if level == NONE {
            return Ok(LimitLevel::None);
        }
        let (found, hint) = match limit {
            GroupLimit::CpuMax => {
                let share = Ratio::parse_within(level, 0.01..=10_000.0).ok();
                let quota = share.map(|share| (share.percent() / 100.0 * PERIOD as f64).round() as u64);
                (quota.map(LimitLevel::Quota), "none, or a share of one CPU from 1%: 50%, 250%")
            }
            GroupLimit::MemoryMax | GroupLimit::MemoryHigh => {
                let size = Bytes::parse(level).ok().filter(|size| (1..UNLIMITED).contains(&size.0));
                (size.map(|size| LimitLevel::Bytes(size.0)), "none, or a size: 512MiB")
            }
            GroupLimit::PidsMax => {
                let count = level.parse().ok().filter(|count| (1..=1 << 22).contains(count));
                (count.map(LimitLevel::Processes), "none, or a number of processes and threads: 100")
            }
            GroupLimit::IsolatedCpus => {
                let cpus = parse_number_list(level).ok().filter(|cpus| !cpus.is_empty());
                (cpus.map(|_| LimitLevel::Cpus(level.to_owned())), "none, or a list of CPUs: 1, or 2-3")
            }
            GroupLimit::IoMax => (
                parse_io(level).map(LimitLevel::Io),
                "none, or `rbps=10MiB wiops=100`: rbps, wbps, riops, wiops",
            ),
        };
        found.ok_or_else(|| refuse_limit(format!("{name}: `{level}` is no limit"), &format!("write {hint}")))
    }
}

fn parse_io(level: &str) -> Option<[Option<u64>; 4]> {
    let mut found = [None; 4];
    for word in level.split_whitespace() {
        let (key, value) = word.split_once('=')?;
        let place = IO_LIMITS.iter().position(|(name, _)| *name == key)?;
        let is_size = key.ends_with("bps");
        let number = if is_size { Bytes::parse(value).ok()?.0 } else { value.parse().ok()? };
        let slot = found.get_mut(place).filter(|slot| slot.is_none() && number > 0)?;
        *slot = Some(number);
    }
    found.iter().any(Option::is_some).then_some(found)
}

fn refuse_limit(what: String, hint: &str) -> SettingError {
    SettingError::Refused(Refusal { what, hint: hint.into() })
}

/// Where a controller's groups are, and which is perflab's own.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GroupHome {
    version: GroupVersion,
    /// perflab's own group.
    own: PathBuf,
    /// The folder in which the run's group is made.
    parent: PathBuf,
}

impl GroupHome {
    /// Of a controller, as `/proc/self/cgroup` of this machine says.
    fn find(name: &str, limit: GroupLimit, root: &Root) -> Result<Self, SettingError> {
        let own = root.read("/proc/self/cgroup").unwrap_or_default();
        let (two, one) = limit.controllers();
        let below = |mount: PathBuf, path: &str| mount.join(path.trim_start_matches('/'));
        if let Some(path) = find_cgroup_path(&own, one) {
            // Version 1 takes CPUs from others only by moving all of them, and they lose their affinity by it.
            let (what, hint) = match limit {
                GroupLimit::MemoryHigh => ("slow nobody down", "memory-max is there"),
                GroupLimit::IsolatedCpus => (
                    "isolate no CPUs",
                    "boot with isolcpus=, and name the CPUs as a placement of the workload",
                ),
                _ => ("", ""),
            };
            if !what.is_empty() {
                return Err(refuse_limit(
                    format!("{name}: control groups of version 1, which has `{one}` here, {what}"),
                    hint,
                ));
            }
            let own = below(root.path(&format!("{MOUNT}/{one}")), path);
            if own.join("cgroup.procs").exists() {
                return Ok(GroupHome { version: GroupVersion::One, parent: own.clone(), own });
            }
        }
        let mounts = ["", "/unified"].map(|folder| root.path(&format!("{MOUNT}{folder}")));
        let mounted = mounts.into_iter().find(|mount| mount.join("cgroup.controllers").exists());
        let Some((mount, path)) = mounted.zip(find_cgroup_path(&own, "")) else {
            let what =
                format!("{name}: there are no control groups below {MOUNT} with the controller `{two}`");
            return Err(refuse_limit(what, "leave it out on this machine"));
        };
        let own = below(mount.clone(), path);
        // The root has no limits, and processes beside its groups.
        let parent = if own == mount { mount } else { own.parent().map_or(mount, Path::to_owned) };
        let controllers = fs::read_to_string(parent.join("cgroup.controllers")).unwrap_or_default();
        if !controllers.split_whitespace().any(|controller| controller == two) {
            let what = format!(
                "{name}: the controller `{two}` of control groups is not here: {} has `{}`",
                parent.display(),
                controllers.trim()
            );
            return Err(refuse_limit(
                what,
                "leave it out on this machine: another version of control groups may have it, or the kernel lacks it",
            ));
        }
        Ok(GroupHome { version: GroupVersion::Two, own, parent })
    }
}

/// The machine: the root of /proc and /sys, and the study's own disk, where it is there.
pub(crate) type GroupSite<'a> = (&'a Root, Option<&'a StudyDisk>);

/// Whether a level can be had here, without making a group.
///
/// # Errors
/// Why not.
pub(crate) fn check_limit(level: &PresetLevel, site: GroupSite<'_>) -> Result<(), SettingError> {
    let limit = GroupLimit::of_preset(&level.name)?;
    LimitLevel::parse(&level.name, limit, &level.level)?;
    GroupHome::find(&level.name, limit, site.0)?;
    if limit == GroupLimit::IoMax {
        read_disk_number(level, site)?;
    }
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(refuse_limit(
        format!("{}: a control group cannot be made: only root may", level.name),
        "run as root, or leave it out",
    ))
}

/// `MAJOR:MINOR` of a preset's disk.
fn read_disk_number(level: &PresetLevel, site: GroupSite<'_>) -> Result<String, SettingError> {
    let part = level.part.as_deref();
    let name = if level.of_disk { disk_part(part, site.1)? } else { part.unwrap_or_default().to_owned() };
    let path = site.0.path(&format!("/sys/block/{name}/dev"));
    Ok(SettingContent::read(&path)?.value)
}

/// The run's groups: what was made, and what is in force.
#[derive(Debug, Default)]
pub(crate) struct RunGroups {
    folders: Vec<PathBuf>,
    /// By preset: its level.
    levels: indexmap::IndexMap<String, String>,
}

/// What became of a limit.
pub(crate) struct AppliedLimit {
    /// What it was.
    pub from: String,
    /// The file that says it, and what that holds; none where several do.
    pub file: Option<(PathBuf, String)>,
}

impl RunGroups {
    /// The files that a workload writes itself to, to be in the groups.
    pub(crate) fn member_files(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|folder| folder.join("cgroup.procs")).collect()
    }

    /// Forgets what went with the journal's entries.
    pub(crate) fn forget_gone(&mut self) {
        self.folders.retain(|folder| folder.exists());
        if self.folders.is_empty() {
            self.levels.clear();
        }
    }

    /// Brings a limit to a level; the group is made where it is not there. None where it is at that level already.
    ///
    /// # Errors
    /// The kernel refuses, or makes something else of it.
    pub(crate) fn apply(
        &mut self,
        level: &PresetLevel,
        site: GroupSite<'_>,
        journal: &mut UndoJournal,
    ) -> Result<Option<AppliedLimit>, SettingError> {
        let from = self.levels.get(&level.name).cloned();
        if from.as_ref() == Some(&level.level) {
            return Ok(None);
        }
        check_limit(level, site)?;
        let limit = GroupLimit::of_preset(&level.name)?;
        let wanted = LimitLevel::parse(&level.name, limit, &level.level)?;
        let home = GroupHome::find(&level.name, limit, site.0)?;
        let folder = self.make_group(&home, limit, journal)?;
        let file = match limit {
            GroupLimit::IoMax => {
                let number = read_disk_number(level, site)?;
                set_io_limits(&folder, home.version, &number, &wanted)?;
                None
            }
            GroupLimit::IsolatedCpus => Some(isolate_cpus(&folder, &wanted)?),
            _ => Some(set_limit(&folder, home.version, limit, &wanted)?),
        };
        self.levels.insert(level.name.clone(), level.level.clone());
        Ok(Some(AppliedLimit { from: from.unwrap_or_else(|| NONE.into()), file }))
    }

    /// Levels that somebody else has changed are set again next time.
    pub(crate) fn forget_level(&mut self, name: &str) {
        self.levels.shift_remove(name);
    }

    fn make_group(
        &mut self,
        home: &GroupHome,
        limit: GroupLimit,
        journal: &mut UndoJournal,
    ) -> Result<PathBuf, SettingError> {
        let folder = home.parent.join(format!("perflab-{}", journal.run()));
        if home.version == GroupVersion::Two {
            enable_controller(&home.parent, limit.controllers().0, journal)?;
        }
        if self.folders.contains(&folder) {
            return Ok(folder);
        }
        journal.promise(UndoEntry::RemoveControlGroup { path: folder.clone(), home: home.own.clone() })?;
        fs::create_dir(&folder).map_err(|source| SettingError::Folder { path: folder.clone(), source })?;
        self.folders.push(folder.clone());
        Ok(folder)
    }
}

/// Has groups of version 2 below a folder get a controller.
fn enable_controller(parent: &Path, controller: &str, journal: &mut UndoJournal) -> Result<(), SettingError> {
    let path = parent.join("cgroup.subtree_control");
    let is_on = |text: &str| text.split_whitespace().any(|word| word == controller);
    if is_on(&SettingContent::read(&path)?.value) {
        return Ok(());
    }
    let undo = UndoEntry::DisableController { group: parent.into(), controller: controller.into() };
    journal.promise(undo)?;
    let asked = format!("+{controller}");
    fs::write(&path, &asked).map_err(|source| SettingError::ValueRefused {
        path: path.clone(),
        asked: asked.clone(),
        source,
    })?;
    let now = SettingContent::read(&path)?.value;
    if is_on(&now) { Ok(()) } else { Err(SettingError::ValueIgnored { path, asked, now }) }
}

fn set_limit(
    folder: &Path,
    version: GroupVersion,
    limit: GroupLimit,
    wanted: &LimitLevel,
) -> Result<(PathBuf, String), SettingError> {
    let path = folder.join(limit.file(version));
    let no_limit = if version == GroupVersion::One && limit != GroupLimit::PidsMax { "-1" } else { "max" };
    let asked = match (wanted, version) {
        (LimitLevel::Quota(quota), GroupVersion::Two) => format!("{quota} {PERIOD}"),
        (LimitLevel::Quota(number) | LimitLevel::Bytes(number) | LimitLevel::Processes(number), _) => {
            number.to_string()
        }
        (LimitLevel::None | LimitLevel::Io(_) | LimitLevel::Cpus(_), _) => no_limit.to_owned(),
    };
    write_group_file(&path, &asked)?;
    let now = SettingContent::read(&path)?.value;
    let number = now.split_whitespace().next().and_then(|word| word.parse::<i64>().ok());
    let is_right = match wanted {
        LimitLevel::Quota(number_asked) | LimitLevel::Processes(number_asked) => {
            number.is_some_and(|now| u64::try_from(now) == Ok(*number_asked))
        }
        // Whole pages, of which the largest have 64 KiB.
        LimitLevel::Bytes(asked) => number
            .and_then(|now| u64::try_from(now).ok())
            .is_some_and(|now| now <= *asked && asked - now < 1 << 16),
        LimitLevel::None | LimitLevel::Io(_) | LimitLevel::Cpus(_) => {
            number.is_none_or(|now| now < 0 || now.unsigned_abs() >= UNLIMITED)
        }
    };
    if is_right { Ok((path, now)) } else { Err(SettingError::ValueAltered { path, asked, now }) }
}

fn set_io_limits(
    folder: &Path,
    version: GroupVersion,
    number: &str,
    wanted: &LimitLevel,
) -> Result<(), SettingError> {
    let limits = if let LimitLevel::Io(limits) = wanted { *limits } else { [None; 4] };
    let all = IO_LIMITS.into_iter().zip(limits);
    // The line of a disk in a file that has one for each.
    let line = |path: &Path| -> Result<String, SettingError> {
        let text = SettingContent::read(path)?.value;
        let of_disk = text.lines().find_map(|line| line.strip_prefix(number)?.strip_prefix(' '));
        Ok(of_disk.unwrap_or_default().to_owned())
    };
    match version {
        GroupVersion::One => {
            for ((_, file), limit) in all {
                let path = folder.join(file);
                let asked = limit.unwrap_or(0);
                write_group_file(&path, &format!("{number} {asked}"))?;
                let now = line(&path)?;
                if now.parse().unwrap_or(0) != asked {
                    return Err(SettingError::ValueAltered { path, asked: asked.to_string(), now });
                }
            }
            Ok(())
        }
        GroupVersion::Two => {
            let path = folder.join("io.max");
            let words = all.map(|((key, _), limit)| match limit {
                Some(limit) => format!("{key}={limit}"),
                None => format!("{key}=max"),
            });
            let words: Vec<String> = words.collect();
            write_group_file(&path, &format!("{number} {}", words.join(" ")))?;
            let now = line(&path)?;
            let is_there = |word: &String| now.split_whitespace().any(|found| found == word);
            let is_right = if limits == [None; 4] { now.is_empty() } else { words.iter().all(is_there) };
            if is_right {
                Ok(())
            } else {
                Err(SettingError::ValueAltered { path, asked: words.join(" "), now })
            }
        }
    }
}

/// Takes CPUs from all others, and from the scheduler's balancing (`isolated` of cpuset.cpus.partition).
fn isolate_cpus(folder: &Path, wanted: &LimitLevel) -> Result<(PathBuf, String), SettingError> {
    let (cpus, partition) = (folder.join("cpuset.cpus"), folder.join("cpuset.cpus.partition"));
    // From one list to another by way of none: these may be CPUs of the parent's at the moment.
    write_group_file(&partition, "member")?;
    let LimitLevel::Cpus(list) = wanted else {
        write_group_file(&cpus, "\n")?;
        return Ok((partition.clone(), SettingContent::read(&partition)?.value));
    };
    write_group_file(&cpus, list)?;
    write_group_file(&partition, "isolated")?;
    let now = SettingContent::read(&partition)?.value;
    if now == "isolated" {
        return Ok((partition, now));
    }
    // `isolated invalid (Cpu list in cpuset.cpus not exclusive)`
    Err(SettingError::ValueAltered { path: partition, asked: format!("isolated {list}"), now })
}

fn write_group_file(path: &Path, value: &str) -> Result<(), SettingError> {
    let (path, asked) = (path.to_owned(), value.to_owned());
    fs::write(&path, value).map_err(|source| SettingError::ValueRefused { path, asked, source })
}

/// What limits perflab's own group.
pub(crate) fn read_state(name: &str, root: &Root) -> Result<Vec<PresetFileState>, Refusal> {
    let limit = GroupLimit::of_preset(name);
    let found = limit.and_then(|limit| Ok((limit, GroupHome::find(name, limit, root)?)));
    let (limit, home) = found.map_err(|error| match error {
        SettingError::Refused(refusal) => refusal,
        other => Refusal { what: perflab_model::describe_error_chain(&other), hint: String::new() },
    })?;
    let path = home.own.join(limit.file(home.version));
    let value = SettingContent::read(&path).ok().map(|content| content.value);
    let level = value.as_deref().map_or_else(|| NONE.to_owned(), |value| level_of_value(limit, value));
    Ok(vec![PresetFileState { path, level: Some(level), value, offered: Vec::new() }])
}

fn level_of_value(limit: GroupLimit, value: &str) -> String {
    let mut words = value.split_whitespace();
    let number =
        words.next().and_then(|word| word.parse::<i64>().ok()).and_then(|number| u64::try_from(number).ok());
    let period = words.next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(PERIOD);
    match (limit, number.filter(|number| *number < UNLIMITED)) {
        (GroupLimit::IoMax | GroupLimit::IsolatedCpus, _) if !value.is_empty() => value.replace('\n', "; "),
        (_, None) => NONE.into(),
        (GroupLimit::CpuMax, Some(quota)) => format!("{}%", quota as f64 * 100.0 / period.max(1) as f64),
        (GroupLimit::MemoryMax | GroupLimit::MemoryHigh, Some(size)) => Bytes(size).to_study_text(),
        (_, Some(number)) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_shares_sizes_numbers_and_rates() {
        let parse = |name: &str, level: &str| {
            LimitLevel::parse(name, GroupLimit::of_preset(name).unwrap(), level).ok()
        };
        assert_eq!(parse("cpu-max", "50%"), Some(LimitLevel::Quota(50_000)));
        assert_eq!(parse("cpu-max", "250%"), Some(LimitLevel::Quota(250_000)));
        assert_eq!(parse("memory-max", "64MiB"), Some(LimitLevel::Bytes(64 << 20)));
        assert_eq!(parse("pids-max", "7"), Some(LimitLevel::Processes(7)));
        let io = LimitLevel::Io([Some(10 << 20), None, None, Some(100)]);
        assert_eq!(parse("io-max:vda", "wiops=100 rbps=10MiB"), Some(io));
        assert_eq!(parse("isolated-cpus", "2-3"), Some(LimitLevel::Cpus("2-3".into())));
        assert_eq!(parse("isolated-cpus", "two"), None);
        for name in ["cpu-max", "memory-max", "memory-high", "pids-max", "io-max"] {
            assert_eq!(parse(name, "none"), Some(LimitLevel::None));
            for level in ["", "0", "-1", "much", "0.1%"] {
                assert_eq!(parse(name, level), None, "{name} {level}");
            }
        }
        for level in ["rbps", "rbps=1MiB rbps=2MiB", "rbps=0B", "x=1", "riops=1MiB"] {
            assert_eq!(parse("io-max", level), None, "{level}");
        }
    }

    /// Version 2 as systemd has it, of which a group lies beside perflab's own.
    #[test]
    fn of_version_2_the_group_lies_beside_perflabs_own_and_its_controllers_are_named() {
        let home = tempfile::tempdir().unwrap();
        let root = Root(home.path().to_owned());
        let mount = home.path().join("sys/fs/cgroup");
        let own = mount.join("user.slice/session-1.scope");
        fs::create_dir_all(&own).unwrap();
        fs::create_dir_all(home.path().join("proc/self")).unwrap();
        fs::write(home.path().join("proc/self/cgroup"), "0::/user.slice/session-1.scope\n").unwrap();
        for folder in [&mount, &mount.join("user.slice"), &own] {
            fs::write(folder.join("cgroup.controllers"), "cpu memory\n").unwrap();
        }
        let found = GroupHome::find("cpu-max", GroupLimit::CpuMax, &root).unwrap();
        let parent = mount.join("user.slice");
        assert_eq!(found, GroupHome { version: GroupVersion::Two, own, parent });
        assert!(matches!(
            GroupHome::find("pids-max", GroupLimit::PidsMax, &root),
            Err(SettingError::Refused(_))
        ));
        for (limit, value, level) in [
            (GroupLimit::CpuMax, "50000 100000", "50%"),
            (GroupLimit::CpuMax, "max 100000", "none"),
            (GroupLimit::CpuMax, "-1", "none"),
            (GroupLimit::MemoryMax, "9223372036854771712", "none"),
            (GroupLimit::MemoryMax, "1048576", "1MiB"),
            (GroupLimit::PidsMax, "max", "none"),
        ] {
            assert_eq!(level_of_value(limit, value), level, "{value}");
        }
    }
}
