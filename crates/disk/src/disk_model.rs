//! Data sheets of disks that can be emulated, and when such a disk would be done: no clock, no I/O.
//!
//! The figures are those of the maker or of published measurements; a disk's mechanics are a state machine over
//! them.

use std::time::Duration;

use perflab_model::study::DiskModel;

/// How a disk comes to the first byte of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DiskPositioning {
    /// An arm moves, a platter turns; one request at a time.
    Arm {
        /// To the next track.
        shortest: Duration,
        /// What the longest way costs beyond that; between them it grows as the root of the distance.
        full_seek: Duration,
        /// Half a revolution.
        rotation: Duration,
        /// Bytes from first to last.
        capacity: u64,
        /// What lies this near ahead is waited for, not sought: the platter brings it. Bytes.
        near: u64,
    },
    /// Any position is as near as any other.
    Flash {
        /// To the first byte, reading.
        read: Duration,
        /// Until a write is accepted.
        write: Duration,
        /// Requests in work at a time.
        units: usize,
    },
}

/// A disk by its data sheet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskDataSheet {
    /// How it comes to the first byte.
    pub positioning: DiskPositioning,
    /// Bytes a second from there on.
    pub rate: u64,
    /// The scheduler that kernels give it.
    pub scheduler: &'static str,
}

impl DiskDataSheet {
    /// The data sheet of a model.
    ///
    /// `hdd-7200` is the 164 GB disk of the 2007 prefetching study (Deskstar, ATA-100, 60 MB/s), so that its figures and
    /// ours are of one disk: 0.8 ms to the next track, 15 ms across, 4.17 ms for half a revolution. `ssd-sata` is a SATA drive
    /// of about 10,000 random 4 KiB reads a second one at a time, 95,000 in parallel, 540 MB/s. `nvme` is a
    /// middle-class drive, as far as a file system in user space can follow it. `emmc` is the flash of small boards.
    pub fn of_model(model: DiskModel) -> DiskDataSheet {
        let micros = Duration::from_micros;
        match model {
            DiskModel::Hdd7200 => DiskDataSheet {
                positioning: DiskPositioning::Arm {
                    shortest: micros(800),
                    full_seek: micros(14_200),
                    rotation: micros(4_170),
                    capacity: 164_000_000_000,
                    near: 256 << 10,
                },
                rate: 60_000_000,
                scheduler: "mq-deadline",
            },
            DiskModel::SsdSata => flash_data_sheet(micros(95), micros(60), 10, 540_000_000, "mq-deadline"),
            DiskModel::Nvme => flash_data_sheet(micros(80), micros(25), 32, 2_500_000_000, "none"),
            DiskModel::Emmc => flash_data_sheet(micros(300), micros(900), 2, 250_000_000, "mq-deadline"),
        }
    }

    /// Whether an arm moves.
    pub fn is_rotating(&self) -> bool {
        matches!(self.positioning, DiskPositioning::Arm { .. })
    }
}

fn flash_data_sheet(
    read: Duration,
    write: Duration,
    units: usize,
    rate: u64,
    scheduler: &'static str,
) -> DiskDataSheet {
    DiskDataSheet { positioning: DiskPositioning::Flash { read, write, units }, rate, scheduler }
}

/// What the kernel wants of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRequest {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Whether it writes.
    pub writes: bool,
}

/// A disk at work. Times count from any beginning, and must not go back.
#[derive(Debug, Clone)]
pub struct DiskMechanics {
    specification: DiskDataSheet,
    /// When each part that works on one request at a time is free again.
    units: Vec<Duration>,
    /// When the wire is.
    wire: Duration,
    /// Where the arm is.
    arm: u64,
}

impl DiskMechanics {
    /// A disk at rest.
    pub fn new(specification: DiskDataSheet) -> Self {
        let units = match specification.positioning {
            DiskPositioning::Arm { .. } => 1,
            DiskPositioning::Flash { units, .. } => units.max(1),
        };
        DiskMechanics { specification, units: vec![Duration::ZERO; units], wire: Duration::ZERO, arm: 0 }
    }

    /// When a request that arrives `now` is done.
    pub fn completion(&mut self, now: Duration, request: DiskRequest) -> Duration {
        let free = self.units.iter().copied().enumerate().min_by_key(|(_, at)| *at);
        let (unit, free) = free.unwrap_or_default();
        let found = free.max(now) + self.positioning_time(request);
        let transfer = self.transfer_time(request.length);
        let done = match self.specification.positioning {
            DiskPositioning::Arm { .. } => found + transfer,
            DiskPositioning::Flash { .. } => {
                self.wire = self.wire.max(found) + transfer;
                self.wire
            }
        };
        self.arm = request.offset.saturating_add(request.length);
        let busy = if self.specification.is_rotating() { done } else { found };
        if let Some(slot) = self.units.get_mut(unit) {
            *slot = busy;
        }
        done
    }

    /// Until the first byte.
    fn positioning_time(&self, request: DiskRequest) -> Duration {
        match self.specification.positioning {
            DiskPositioning::Flash { read, .. } if !request.writes => read,
            DiskPositioning::Flash { write, .. } => write,
            DiskPositioning::Arm { shortest, full_seek: way, rotation, capacity, near } => {
                let ahead = request.offset.checked_sub(self.arm);
                if let Some(gap) = ahead.filter(|gap| *gap <= near) {
                    return self.transfer_time(gap);
                }
                let distance = request.offset.abs_diff(self.arm) as f64 / capacity as f64;
                shortest + way.mul_f64(distance.clamp(0.0, 1.0).sqrt()) + rotation
            }
        }
    }

    fn transfer_time(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.specification.rate as f64)
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::study::DiskModel;

    use super::*;

    fn read_request(offset: u64, length: u64) -> DiskRequest {
        DiskRequest { offset, length, writes: false }
    }

    fn as_millis(time: Duration) -> f64 {
        time.as_secs_f64() * 1e3
    }

    #[test]
    fn an_arm_seeks_by_the_root_of_the_distance() {
        let mut disk = DiskMechanics::new(DiskDataSheet::of_model(DiskModel::Hdd7200));
        // Across the whole disk: 0.8 + 14.2 + 4.17 ms, and 4 KiB at 60 MB/s.
        let across = disk.completion(Duration::ZERO, read_request(164_000_000_000 - 4096, 4096));
        assert!((as_millis(across) - 19.238).abs() < 0.001, "{across:?}");
        // A quarter back: half of the way's 14.2 ms.
        let quarter = disk.completion(across, read_request(123_000_000_000 - 4096, 4096)) - across;
        assert!((as_millis(quarter) - (0.8 + 7.1 + 4.17 + 0.068)).abs() < 0.001, "{quarter:?}");
    }

    #[test]
    fn what_follows_is_only_transferred() {
        let mut disk = DiskMechanics::new(DiskDataSheet::of_model(DiskModel::Hdd7200));
        let mut now = disk.completion(Duration::ZERO, read_request(0, 1 << 20));
        let begin = now;
        for piece in 1..=60 {
            now = disk.completion(now, read_request(piece << 20, 1 << 20));
        }
        let rate = 60.0 * f64::from(1 << 20) / (now - begin).as_secs_f64();
        assert!((rate - 60e6).abs() < 1e3, "{rate}");
        // A hole of 100 KiB ahead passes under the head; the same behind it costs a revolution.
        let ahead = disk.completion(now, read_request((61 << 20) + (100 << 10), 0)) - now;
        assert!((as_millis(ahead) - 1.7067).abs() < 0.001, "{ahead:?}");
        let behind = disk.completion(now + ahead, read_request(61 << 20, 0)) - now - ahead;
        assert!(as_millis(behind) > 4.9, "{behind:?}");
    }

    #[test]
    fn flash_works_on_several_requests_and_shares_its_wire() {
        let specification = DiskDataSheet::of_model(DiskModel::SsdSata);
        let alone = DiskMechanics::new(specification).completion(Duration::ZERO, read_request(0, 4096));
        let mut disk = DiskMechanics::new(specification);
        let last =
            (0..100).map(|n| disk.completion(Duration::ZERO, read_request(n << 30, 4096))).max().unwrap();
        // Ten units: ten rounds of latency, not a hundred.
        assert!(last > 10 * Duration::from_micros(95) && last < 11 * alone, "{last:?}");
        let mut disk = DiskMechanics::new(specification);
        let whole =
            (0..100).map(|n| disk.completion(Duration::ZERO, read_request(n << 20, 1 << 20))).max().unwrap();
        let rate = 100.0 * f64::from(1 << 20) / whole.as_secs_f64();
        assert!(rate < 540e6 && rate > 530e6, "{rate}");
    }

    #[test]
    fn an_idle_disk_owes_nothing() {
        let mut disk = DiskMechanics::new(DiskDataSheet::of_model(DiskModel::Emmc));
        let later = Duration::from_secs(5);
        let write = DiskRequest { offset: 0, length: 0, writes: true };
        assert_eq!(disk.completion(later, write), later + Duration::from_micros(900));
    }
}
