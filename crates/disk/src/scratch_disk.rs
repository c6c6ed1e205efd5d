//! The scratch directory of file-system workloads: a folder, a loop-mounted image, a partition.
//!
//! Whatever is made here is written to the undo journal first, so that a killed run's image and mount go at the
//! next start. A partition is formatted only where `--apply` allows it.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use perflab_model::expression::ExpressionScope;
use perflab_model::study::{DiskKind, DiskModel, FactorKind, ScratchDisk, Study};
use perflab_model::{Bytes, Case, PlannedDisk, Problem, Refusal, Scalar, describe_error_chain};
use perflab_settings::{SettingError, UndoEntry, UndoJournal, run_command, temporary_folder};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::emulated_disk::{EmulatedDiskOptions, begin_emulated_disk, delay_switch};
use crate::error::DiskError;

/// Files in memory.
const MEMORY: &str = "/dev/shm";

/// The machine on which disks are made.
#[derive(Debug, Clone, Copy)]
pub struct DiskSite<'a> {
    /// What sizes may be worked out of.
    pub scope: &'a ExpressionScope,
    /// Where scratch directories and images are made, if not in the temporary directory.
    pub scratch: Option<&'a Path>,
}

/// The disks that the cases of a study are run on, each once: the study's own, else a directory where a workload
/// `needs_scratch`. Sizes and folders are worked out for `site`; without one, they are left to the targets.
///
/// # Errors
/// A size has no meaning here, or there is no temporary directory.
pub fn resolve_disks(
    study: &Study,
    cases: &[Case],
    needs_scratch: bool,
    site: Option<DiskSite<'_>>,
) -> Result<Vec<PlannedDisk>, Problem> {
    let mut disks: Vec<PlannedDisk> = Vec::new();
    let own = study.disk.clone();
    let Some(common) = own.or_else(|| needs_scratch.then(ScratchDisk::directory)) else { return Ok(disks) };
    let is_disk = |name: &str| study.factor.get(name).is_some_and(|factor| factor.kind == FactorKind::Disk);
    for case in cases {
        let own = case.levels.iter().filter(|(name, _)| is_disk(name));
        let levels: IndexMap<String, String> =
            own.map(|(name, level)| (name.clone(), level.clone())).collect();
        if disks.iter().any(|known| known.levels == levels) {
            continue;
        }
        let mut disk = disk_of_levels(study, &common, &levels);
        if let Some(site) = site.filter(|_| disk.kind == DiskKind::Image) {
            disk.size = Some(resolve_size(&disk, site.scope)?);
        }
        let folder = site.map(|site| resolve_folder(&disk, site.scratch)).transpose()?;
        disks.push(PlannedDisk { levels, disk, folder });
    }
    Ok(disks)
}

/// Where a disk is made: an emulated one's image in memory, so that no other disk's delays come on top.
fn resolve_folder(disk: &ScratchDisk, scratch: Option<&Path>) -> Result<PathBuf, Problem> {
    match &disk.path {
        Some(path) if disk.kind != DiskKind::Partition => return Ok(path.into()),
        None if disk.model.is_some() && Path::new(MEMORY).is_dir() => return Ok(MEMORY.into()),
        _ => {}
    }
    scratch.map_or_else(temporary_folder, |scratch| Ok(scratch.into())).map_err(|error| match error {
        SettingError::Refused(refusal) => Problem::new("disk", refusal.what).with_hint(refusal.hint),
        other => Problem::new("disk", describe_error_chain(&other)),
    })
}

/// The study's disk, with the levels of factors over it.
fn disk_of_levels(study: &Study, common: &ScratchDisk, levels: &IndexMap<String, String>) -> ScratchDisk {
    let mut disk = common.clone();
    for (name, level) in levels {
        let Some(factor) = study.factor.get(name) else { continue };
        let value = factor.levels.iter().find(|one| one.name == *level).map(|one| one.value.to_string());
        match factor.key.as_deref().unwrap_or(name) {
            "filesystem" => disk.filesystem = value,
            "mount" => disk.mount = value,
            "model" => disk.model = value.and_then(|model| model.parse().ok()),
            _ => {}
        }
    }
    disk
}

fn resolve_size(disk: &ScratchDisk, scope: &ExpressionScope) -> Result<Scalar, Problem> {
    let size = match &disk.size {
        Some(Scalar::Text(text)) if Bytes::parse(text).is_err() => {
            let value = scope.evaluate(text).ok();
            value.and_then(|value| value.as_number()).map(|bytes| Scalar::Int(bytes as i64))
        }
        size => size.clone(),
    };
    let resolved = ScratchDisk { size: size.or_else(|| disk.size.clone()), ..disk.clone() };
    match disk_size(&resolved) {
        Ok(bytes) => Ok(i64::try_from(bytes).map_or(Scalar::Text(bytes.to_string()), Scalar::Int)),
        Err(refusal) => Err(Problem::new("disk.size", refusal.what).with_hint(refusal.hint)),
    }
}

/// The disks of a plan that are not there.
pub fn emulated_models(disks: &[PlannedDisk]) -> Vec<DiskModel> {
    let mut models: Vec<DiskModel> = disks.iter().filter_map(|planned| planned.disk.model).collect();
    models.sort_by_key(|model| model.name());
    models.dedup();
    models
}

/// What a disk lacks here; `may_format` is whether a partition may be formatted. Nothing is changed.
pub fn check_disk(planned: &PlannedDisk, may_format: bool) -> Vec<Refusal> {
    let disk = &planned.disk;
    let mut found = Vec::new();
    let mut refuse = |bad: bool, what: String, hint: &str| {
        if bad {
            found.push(Refusal { what, hint: hint.into() });
        }
    };
    let path = disk.path.clone().unwrap_or_default();
    let mounts = disk.kind != DiskKind::Directory;
    refuse(
        mounts && !is_root(),
        "mounting a disk needs root".into(),
        "run as root, or use kind = \"directory\"",
    );
    let unsafe_partition = disk.kind == DiskKind::Partition && !may_format;
    refuse(
        unsafe_partition,
        format!("{path} would be formatted: everything on it is lost"),
        "say --apply if that is meant",
    );
    let busy = disk.kind == DiskKind::Partition && is_device_claimed(&path);
    refuse(
        busy,
        format!("{path} is in use: mounted, swapped to, or part of a RAID or volume"),
        "give it up first, or name another partition",
    );
    if let Some(folder) = &planned.folder {
        let what = format!("the scratch directory {} is not there", folder.display());
        refuse(!folder.is_dir(), what, "create it, or name another");
    }
    let program = format!("mkfs.{}", disk_file_system(disk));
    let no_mkfs = mounts && !is_on_path(&program);
    refuse(no_mkfs, format!("{program} is not installed"), "install e2fsprogs, xfsprogs or btrfs-progs");
    if disk.model.is_some() {
        let no_fuse = !Path::new("/dev/fuse").exists();
        refuse(no_fuse, "an emulated disk needs /dev/fuse".into(), "load it: modprobe fuse");
        refuse(!is_on_path("losetup"), "losetup is not installed".into(), "install util-linux");
    }
    found
}

/// Makes the scratch directory of a disk in its folder. Its undoing is in the journal before each step.
pub fn prepare_scratch_disk(
    planned: &PlannedDisk,
    id: &str,
    perflab: &Path,
    journal: &mut UndoJournal,
) -> Result<PathBuf, DiskError> {
    let disk = &planned.disk;
    let folder = planned.folder.as_deref().ok_or_else(|| DiskError::Refused(unresolved_disk()))?;
    let home = make_scratch_folder(folder, id, journal)?;
    match disk.kind {
        DiskKind::Directory => Ok(home),
        DiskKind::Image => {
            let image = create_image(&home, disk_size(disk).map_err(DiskError::Refused)?)?;
            let Some(model) = disk.model else {
                return format_and_mount(disk, &image, &home, &["loop"], journal);
            };
            let options = EmulatedDiskOptions { perflab, model, image: &image, home: &home };
            // Made before it is slow: what mkfs writes is not part of any measurement.
            run_command(&mkfs_command(disk, &image))?;
            let device = begin_emulated_disk(options, journal)?;
            let mount = mount_scratch_disk(disk, &device, &home, &[], journal)?;
            journal.promise(UndoEntry::EndDelays { switch: delay_switch(&mount) })?;
            Ok(mount)
        }
        DiskKind::Partition => {
            let device = PathBuf::from(disk.path.clone().unwrap_or_default());
            format_and_mount(disk, &device, &home, &[], journal)
        }
    }
}

fn unresolved_disk() -> Refusal {
    Refusal {
        what: "the plan does not say where the disk is made".into(),
        hint: "resolve the plan on the machine that makes it".into(),
    }
}

fn make_scratch_folder(base: &Path, id: &str, journal: &mut UndoJournal) -> Result<PathBuf, DiskError> {
    // It may be undone from another directory, and mounts are known by their real paths.
    let base = fs::canonicalize(base).map_err(|source| DiskError::Scratch { path: base.into(), source })?;
    let path = base.join(format!("perflab-{id}"));
    journal.promise(UndoEntry::Remove { path: path.clone() })?;
    fs::create_dir(&path).map_err(|source| DiskError::Scratch { path: path.clone(), source })?;
    Ok(path)
}

/// An image that takes room only where it is written.
fn create_image(home: &Path, size: u64) -> Result<PathBuf, DiskError> {
    let path = home.join("disk.img");
    let made = fs::File::create(&path).and_then(|file| file.set_len(size));
    made.map_err(|source| DiskError::Scratch { path: path.clone(), source })?;
    Ok(path)
}

fn format_and_mount(
    disk: &ScratchDisk,
    device: &Path,
    home: &Path,
    options: &[&str],
    journal: &mut UndoJournal,
) -> Result<PathBuf, DiskError> {
    run_command(&mkfs_command(disk, device))?;
    mount_scratch_disk(disk, device, home, options, journal)
}

fn mount_scratch_disk(
    disk: &ScratchDisk,
    device: &Path,
    home: &Path,
    options: &[&str],
    journal: &mut UndoJournal,
) -> Result<PathBuf, DiskError> {
    let place = home.join("mount");
    fs::create_dir(&place).map_err(|source| DiskError::Scratch { path: place.clone(), source })?;
    journal.promise(UndoEntry::Unmount { path: place.clone() })?;
    let options: Vec<&str> = options.iter().copied().chain(disk.mount.as_deref()).collect();
    let mut argv: Vec<String> = vec!["mount".into()];
    if !options.is_empty() {
        argv.extend(["-o".into(), options.join(",")]);
    }
    argv.extend([device.display().to_string(), place.display().to_string()]);
    run_command(&argv)?;
    Ok(place)
}

fn mkfs_command(disk: &ScratchDisk, device: &Path) -> Vec<String> {
    let force = if disk_file_system(disk) == "ext4" { "-F" } else { "-f" };
    let mut argv = vec![format!("mkfs.{}", disk_file_system(disk)), "-q".into(), force.into()];
    if disk.model.is_some() && disk_file_system(disk) == "ext4" {
        // Else the kernel would go on making it while starts are measured, at the pace of a slow disk.
        argv.extend(["-E", "lazy_itable_init=0,lazy_journal_init=0"].map(String::from));
    }
    argv.extend(disk.mkfs.iter().cloned());
    argv.push(device.display().to_string());
    argv
}

fn disk_file_system(disk: &ScratchDisk) -> &str {
    disk.filesystem.as_deref().unwrap_or("ext4")
}

fn disk_size(disk: &ScratchDisk) -> Result<u64, Refusal> {
    let wanted = disk.size.clone().unwrap_or(Scalar::Int(0));
    let size = match &wanted {
        Scalar::Text(text) => Bytes::parse(text).ok().map(|bytes| bytes.0),
        other => other.as_number().filter(|number| *number > 0.0).map(|number| number as u64),
    };
    size.filter(|size| *size >= 1 << 20).ok_or_else(|| Refusal {
        what: format!("`disk.size` = `{wanted}` is not a size of at least 1 MiB"),
        hint: "write \"1GiB\", or an expression in bytes".into(),
    })
}

/// Whether the kernel or another program has claimed the disk, or a part of it: mounted anywhere, swapped to, part of a RAID or of
/// a volume of device mapper. Nothing is opened that is not a block device.
fn is_device_claimed(device: &str) -> bool {
    let is_block = fs::metadata(device).is_ok_and(|node| node.file_type().is_block_device());
    let claims = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NONBLOCK;
    is_block && open(device, claims, Mode::empty()).err() == Some(Errno::BUSY)
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).any(|directory| directory.join(program).is_file())
}

/// Whether this process may do what root may.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
