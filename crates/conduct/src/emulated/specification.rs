//! What is known of each disk that can be emulated, as its maker or those who measured it say.

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
        /// Half a turn.
        rotation: Duration,
        /// Bytes from first to last.
        capacity: u64,
        /// What lies this near ahead is waited for, not sought: the platter brings it. Bytes.
        near: u64,
    },
    /// Any place is as near as any other.
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
    /// ours are of one disk: 0.8 ms to the next track, 15 ms across, 4.17 ms for half a turn. `ssd-sata` is a SATA drive
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
