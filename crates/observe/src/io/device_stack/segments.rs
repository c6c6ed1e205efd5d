//! Where devices that pass their requests on lie on the disks below.
//!
//! Device mapper is known by its table, as `dmsetup` prints it, or by what its uuid says; mirrors of RAID by the
//! offset of each member.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use perflab_model::io_trace::{DeviceNumber, DeviceSegment, IoRecording, SECTOR, UnmappedDevice};

use crate::root::Root;

/// Devices upon devices, at most: a tree of links that goes round must end.
const DEEPEST: usize = 16;

/// Encryption counts in blocks of up to 8 sectors: a last one that is not whole is not part of a volume.
const CRYPT_GRAIN: u64 = 8;

/// A part of a device, in sectors: its first and how many, the disk below and the first there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SectorSegment {
    first: u64,
    sectors: u64,
    disk: DeviceNumber,
    start: u64,
}

/// Adds to a recording where its file systems' devices lie, of those that pass their requests on: with requests of their own, these
/// count.
pub fn locate_stacked_devices(
    recording: &mut IoRecording,
    root: &Root,
    table: &dyn Fn(DeviceNumber) -> Result<String, String>,
) {
    let asked: BTreeSet<DeviceNumber> =
        recording.events.iter().filter(|event| event.is_disk_read()).map(|event| event.device).collect();
    let summary = &mut recording.summary;
    let systems = recording.files.iter().map(|file| file.device);
    let disks: BTreeSet<DeviceNumber> = systems
        .chain(summary.partitions.iter().map(|part| part.device))
        .map(|device| summary.disk_below(device).0)
        .collect();
    let tree = DeviceTree { root, table, disks_with_requests: &asked };
    for device in disks.into_iter().filter(|device| tree.is_stacked(*device)) {
        match tree.resolve_device(device, DEEPEST) {
            Ok(found) => summary.segments.extend(found.into_iter().map(|segment| DeviceSegment {
                device,
                from: segment.first * SECTOR,
                length: segment.sectors * SECTOR,
                disk: segment.disk,
                start: segment.start * SECTOR,
            })),
            Err(reason) => summary.unplaced.push(UnmappedDevice { device, reason }),
        }
    }
}

/// What `dmsetup table` prints of a device.
///
/// # Errors
/// Why it prints nothing.
pub fn read_dmsetup_table(device: DeviceNumber) -> Result<String, String> {
    let (major, minor) = (device.major().to_string(), device.minor().to_string());
    let mut command = Command::new("dmsetup");
    command.args(["table", "--major", &major, "--minor", &minor]).stdin(Stdio::null()).env("LC_ALL", "C");
    let output =
        command.output().map_err(|error| format!("dmsetup, which would, cannot be run ({error})"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() && !text.trim().is_empty() {
        return Ok(text);
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    Err(format!("dmsetup, which would, says: {}", printed.lines().next().unwrap_or("nothing").trim()))
}

/// The devices of a machine, and which of them are asked by name.
struct DeviceTree<'a> {
    root: &'a Root,
    table: &'a dyn Fn(DeviceNumber) -> Result<String, String>,
    disks_with_requests: &'a BTreeSet<DeviceNumber>,
}

impl DeviceTree<'_> {
    /// Whether a device lies upon others and has no requests of its own.
    fn is_stacked(&self, device: DeviceNumber) -> bool {
        let slaves = self.root.list(&format!("/sys/dev/block/{device}/slaves"));
        !self.disks_with_requests.contains(&device) && !slaves.is_empty()
    }

    /// Where all of a device lies.
    fn resolve_device(&self, device: DeviceNumber, depth: usize) -> Result<Vec<SectorSegment>, String> {
        let folder = format!("/sys/dev/block/{device}");
        let size = self
            .read_number(&format!("{folder}/size"))
            .ok_or_else(|| format!("{device} does not say its size"))?;
        if depth == 0 {
            return Err(format!("{device} lies upon itself"));
        }
        if let Some(start) = self.read_number(&format!("{folder}/start")) {
            let disk =
                self.root.read(&format!("{folder}/../dev")).ok().and_then(|text| DeviceNumber::parse(&text));
            let disk = disk.ok_or_else(|| format!("the disk of partition {device} is not known"))?;
            return self.resolve_below(&[SectorSegment { first: 0, sectors: size, disk, start }], depth);
        }
        if !self.is_stacked(device) {
            return Ok(vec![SectorSegment { first: 0, sectors: size, disk: device, start: 0 }]);
        }
        let direct = match self.root.read(&format!("{folder}/md/level")) {
            Ok(level) => self.resolve_mirror(device, &level, size)?,
            Err(_) => self.resolve_mapped_volume(device, size)?,
        };
        self.resolve_below(&direct, depth)
    }

    fn read_number(&self, path: &str) -> Option<u64> {
        // 2^52 sectors are 2 EiB.
        self.root.read(path).ok()?.parse().ok().filter(|number| *number < 1 << 52)
    }

    fn read_device_number(&self, path: &str) -> Option<DeviceNumber> {
        DeviceNumber::parse(&self.root.read(path).ok()?)
    }

    /// The same parts on what their disks lie on in turn.
    fn resolve_below(&self, parts: &[SectorSegment], depth: usize) -> Result<Vec<SectorSegment>, String> {
        let mut all = Vec::new();
        for part in parts {
            for lower in self.resolve_device(part.disk, depth - 1)? {
                let (first, end) = (
                    part.start.max(lower.first),
                    (part.start + part.sectors).min(lower.first + lower.sectors),
                );
                if first < end {
                    let (start, skipped) = (lower.start + first - lower.first, first - part.start);
                    all.push(SectorSegment {
                        first: part.first + skipped,
                        sectors: end - first,
                        disk: lower.disk,
                        start,
                    });
                }
            }
        }
        Ok(all)
    }

    /// A mirror has all of its blocks on each member, behind the member's offset.
    fn resolve_mirror(
        &self,
        device: DeviceNumber,
        level: &str,
        sectors: u64,
    ) -> Result<Vec<SectorSegment>, String> {
        if level != "raid1" {
            return Err(format!("it is of level {level}, which spreads its blocks over its disks"));
        }
        let folder = format!("/sys/dev/block/{device}/md");
        let members = self.root.list(&folder).into_iter().filter(|name| name.starts_with("dev-"));
        let member = |name: String| {
            let start = self.read_number(&format!("{folder}/{name}/offset"));
            let disk = self.read_device_number(&format!("{folder}/{name}/block/dev"));
            let both = start.zip(disk).map(|(start, disk)| SectorSegment { first: 0, sectors, disk, start });
            both.ok_or_else(|| format!("its member {name} does not say where its data begin"))
        };
        members.map(member).collect()
    }

    /// A volume of device mapper.
    fn resolve_mapped_volume(
        &self,
        device: DeviceNumber,
        sectors: u64,
    ) -> Result<Vec<SectorSegment>, String> {
        let folder = format!("/sys/dev/block/{device}");
        let Ok(uuid) = self.root.read(&format!("{folder}/dm/uuid")) else {
            return Err("it is neither of device mapper nor of RAID".into());
        };
        let refused = match (self.table)(device) {
            Ok(table) => return parse_dmsetup_table(&table),
            Err(refused) => refused,
        };
        let slaves = self.root.list(&format!("{folder}/slaves"));
        let slaves: Option<Vec<(DeviceNumber, u64)>> = slaves
            .iter()
            .map(|name| {
                let slave = format!("{folder}/slaves/{name}");
                Some((
                    self.read_device_number(&format!("{slave}/dev"))?,
                    self.read_number(&format!("{slave}/size"))?,
                ))
            })
            .collect();
        let kind = uuid.split('-').next().unwrap_or_default();
        match (kind, slaves.as_deref()) {
            // The volume reaches to the end of what it lies on; its header lies before it.
            ("CRYPT", Some([(disk, size)])) if *size >= sectors => {
                let start = (size - sectors) / CRYPT_GRAIN * CRYPT_GRAIN;
                Ok(vec![SectorSegment { first: 0, sectors, disk: *disk, start }])
            }
            // Paths to one disk.
            ("mpath", Some(paths)) => Ok(paths
                .iter()
                .map(|(disk, _)| SectorSegment { first: 0, sectors, disk: *disk, start: 0 })
                .collect()),
            ("LVM", _) => {
                Err(format!("it is a volume of LVM, of which /sys does not say where it lies; {refused}"))
            }
            _ => Err(format!(
                "it is a volume of device mapper ({uuid}), of which /sys does not say where it lies; {refused}"
            )),
        }
    }
}

/// `0 409600 linear 8:2 2048`, `0 409600 crypt CIPHER KEY IV 8:2 32768`
fn parse_dmsetup_table(table: &str) -> Result<Vec<SectorSegment>, String> {
    let mut all = Vec::new();
    for line in table.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse().ok().filter(|number: &u64| *number < 1 << 52);
        let segment = |disk: usize, start: usize| {
            let disk = DeviceNumber::parse(words.get(disk)?)?;
            Some(SectorSegment { first: number(0)?, sectors: number(1)?, disk, start: number(start)? })
        };
        let found = match words.get(2) {
            Some(&"linear") => segment(3, 4),
            Some(&"crypt") => segment(6, 7),
            Some(&target) => {
                return Err(format!("its target `{target}` does not say in its table where its blocks lie"));
            }
            None => None,
        };
        all.push(found.ok_or_else(|| format!("a line of its table is not understood: `{}`", line.trim()))?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use perflab_model::Nanos;
    use perflab_model::io_trace::{FileClass, IoEvent, IoEventKind, IoFile};

    use super::*;
    use crate::io::device_stack::tree::create_sysfs_tree;

    const SDA: DeviceNumber = DeviceNumber(8 << 20);

    const SDB: DeviceNumber = DeviceNumber(8 << 20 | 16);

    const VOLUME: DeviceNumber = DeviceNumber(253 << 20);

    const LOCKED: DeviceNumber = DeviceNumber(253 << 20 | 1);

    const MIRROR: DeviceNumber = DeviceNumber(9 << 20);

    /// A volume of LVM on an encrypted partition; a mirror of two partitions; a striped array. Sizes in sectors.
    fn create_stacked_machine() -> (tempfile::TempDir, Root) {
        create_sysfs_tree(
            &[
                ("block/sda", &[("dev", "8:0"), ("size", "1000000")]),
                ("block/sda/sda1", &[("dev", "8:1"), ("start", "2048"), ("size", "500005")]),
                ("block/sdb", &[("dev", "8:16"), ("size", "600000")]),
                ("block/sdb/sdb1", &[("dev", "8:17"), ("start", "63"), ("size", "400000")]),
                ("block/dm-0", &[("dev", "253:0"), ("size", "40000")]),
                ("block/dm-0/dm", &[("uuid", "LVM-abc"), ("name", "vg-root")]),
                ("block/dm-1", &[("dev", "253:1"), ("size", "467232")]),
                ("block/dm-1/dm", &[("uuid", "CRYPT-LUKS2-abc-cr"), ("name", "cr")]),
                ("block/md0", &[("dev", "9:0"), ("size", "300000")]),
                ("block/md0/md", &[("level", "raid1")]),
                ("block/md0/md/dev-sda1", &[("offset", "4096")]),
                ("block/md0/md/dev-sdb1", &[("offset", "264")]),
                ("block/md1", &[("dev", "9:1"), ("size", "300000")]),
                ("block/md1/md", &[("level", "raid5")]),
            ],
            &[
                ("dev/block/8:0", "block/sda"),
                ("dev/block/8:1", "block/sda/sda1"),
                ("dev/block/8:16", "block/sdb"),
                ("dev/block/8:17", "block/sdb/sdb1"),
                ("dev/block/253:0", "block/dm-0"),
                ("dev/block/253:1", "block/dm-1"),
                ("dev/block/9:0", "block/md0"),
                ("dev/block/9:1", "block/md1"),
                ("block/dm-0/slaves/dm-1", "block/dm-1"),
                ("block/dm-1/slaves/sda1", "block/sda/sda1"),
                ("block/md0/slaves/sda1", "block/sda/sda1"),
                ("block/md0/slaves/sdb1", "block/sdb/sdb1"),
                ("block/md0/md/dev-sda1/block", "block/sda/sda1"),
                ("block/md0/md/dev-sdb1/block", "block/sdb/sdb1"),
                ("block/md1/slaves/sdb", "block/sdb"),
            ],
        )
    }

    /// The summary of a file system on this device, where these disks have requests.
    fn locate_in_recording(
        device: DeviceNumber,
        asked: &[DeviceNumber],
        table: &dyn Fn(DeviceNumber) -> Result<String, String>,
    ) -> IoRecording {
        let (_home, root) = create_stacked_machine();
        let event = |device: &DeviceNumber| IoEvent {
            at: Nanos(0),
            pid: 1,
            kind: IoEventKind::Issued,
            device: *device,
            inode: 0,
            first: 0,
            count: 8,
            name: Some("R".into()),
        };
        let file = IoFile {
            device,
            inode: 2,
            generation: None,
            class: FileClass::File,
            path: None,
            size: 0,
            changed: 0,
            extents: Vec::new(),
        };
        let mut recording = IoRecording {
            events: asked.iter().map(event).collect(),
            files: vec![file],
            ..IoRecording::default()
        };
        locate_stacked_devices(&mut recording, &root, table);
        recording
    }

    fn device_segment(
        device: DeviceNumber,
        from: u64,
        length: u64,
        disk: DeviceNumber,
        start: u64,
    ) -> DeviceSegment {
        let bytes = |sectors: u64| sectors * SECTOR;
        DeviceSegment { device, from: bytes(from), length: bytes(length), disk, start: bytes(start) }
    }

    fn refuse_dmsetup(_: DeviceNumber) -> Result<String, String> {
        Err("no dmsetup".into())
    }

    #[test]
    fn a_volume_on_an_encrypted_partition_is_placed_by_tables() {
        let table = |device: DeviceNumber| match device {
            // A volume in two segments, as LVM makes when one grows.
            VOLUME => Ok("0 30000 linear 253:1 2048\n30000 10000 linear 253:1 100000\n".into()),
            LOCKED => {
                Ok("0 467232 crypt aes-xts-plain64 :64:logon:cryptsetup:x 0 8:1 32768 1 allow_discards\n"
                    .into())
            }
            other => Err(format!("{other} is not of device mapper")),
        };
        let summary = locate_in_recording(VOLUME, &[SDA], &table).summary;
        let base = 2048 + 32768;
        let expected = [
            device_segment(VOLUME, 0, 30_000, SDA, base + 2048),
            device_segment(VOLUME, 30_000, 10_000, SDA, base + 100_000),
        ];
        assert_eq!((summary.segments.as_slice(), summary.unplaced), (expected.as_slice(), Vec::new()));
    }

    #[test]
    fn encrypted_volumes_and_mirrors_are_placed_without_a_table() {
        // 500,005 sectors, of which the last 5 are not a whole block of the encryption: the head has 32,768.
        let summary = locate_in_recording(LOCKED, &[SDA], &refuse_dmsetup).summary;
        assert_eq!(summary.segments, [device_segment(LOCKED, 0, 467_232, SDA, 2048 + 32_768)]);
        let summary = locate_in_recording(MIRROR, &[SDA, SDB], &refuse_dmsetup).summary;
        let expected = [
            device_segment(MIRROR, 0, 300_000, SDA, 2048 + 4096),
            device_segment(MIRROR, 0, 300_000, SDB, 63 + 264),
        ];
        assert_eq!(summary.segments, expected);
    }

    #[test]
    fn what_cannot_be_placed_says_why() {
        let reason = |device, table: &dyn Fn(DeviceNumber) -> Result<String, String>| {
            let summary = locate_in_recording(device, &[SDA], table).summary;
            assert_eq!((summary.segments.len(), summary.unplaced.len()), (0, 1), "{summary:?}");
            summary.unplaced[0].reason.clone()
        };
        let reasons = [
            reason(VOLUME, &refuse_dmsetup),
            reason(DeviceNumber::new(9, 1), &refuse_dmsetup),
            reason(VOLUME, &|_| Ok("0 40000 thin 253:7 1\n".into())),
            reason(VOLUME, &|_| Ok("0 40000 linear /dev/sda 1\n".into())),
            reason(VOLUME, &|_| Ok("0 40000 linear 253:0 0\n".into())),
        ];
        insta::assert_snapshot!(reasons.join("\n"), @"
        it is a volume of LVM, of which /sys does not say where it lies; no dmsetup
        it is of level raid5, which spreads its blocks over its disks
        its target `thin` does not say in its table where its blocks lie
        a line of its table is not understood: `0 40000 linear /dev/sda 1`
        253:0 lies upon itself
        ");
    }

    #[test]
    fn devices_with_requests_of_their_own_stay_where_they_are() {
        for (device, asked) in [(LOCKED, LOCKED), (SDA, SDA), (SDB, SDA)] {
            let summary = locate_in_recording(device, &[asked], &refuse_dmsetup).summary;
            assert_eq!((summary.segments, summary.unplaced), (Vec::new(), Vec::new()), "{device}");
        }
    }
}
