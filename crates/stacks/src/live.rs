//! What was recorded live, named: the records of every CPU put in one order of time and fed to the converter.

use byteorder::NativeEndian;
use linux_perf_event_reader::{Endianness, PerfEventAttr};
use perflab_model::Unit;
use perflab_model::profile::{Profiled, StackBatch};

use crate::convert::Symbols;
use crate::records::{Asked, Records, Shapes};
use crate::{Converter, KernelSymbols, KernelSymbolsError};

/// A piece of code in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFile {
    /// where it begins
    pub start: u64,
    /// in bytes
    pub length: u64,
    /// where that is in the file
    pub offset: u64,
    /// the file, or a name in brackets
    pub path: String,
}

/// A process as it was when recording began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// its number
    pub pid: i32,
    /// its threads and what they call themselves
    pub threads: Vec<(i32, String)>,
    /// its code
    pub files: Vec<MappedFile>,
}

/// What a recorder brings: raw records, and what stood before them.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// The `perf_event_attr` that the events were opened with, as the kernel has it.
    pub attributes: Vec<u8>,
    /// Whole records, a buffer a CPU, in order of time within each.
    pub buffers: Vec<Vec<u8>>,
    /// Samples after those, for which the recorder had no room.
    pub lost: u64,
    /// The processes when recording began.
    pub processes: Vec<Process>,
    /// The process whose children are recorded, and not itself: its samples are left out, and those of its children before
    /// their exec.
    pub recorder: Option<i32>,
}

/// The converter of live recordings; keeps its names from one to the next.
#[derive(Debug)]
pub struct Live {
    converter: Converter,
    anchors: Vec<perflab_model::profile::Anchor>,
}

impl Live {
    /// With this machine's symbols; `anchors` are kernel symbols to look up whether or not a sample hits them.
    ///
    /// # Errors
    /// [`KernelSymbolsError`] where the kernel's names are hidden.
    pub fn new(anchors: &[String]) -> Result<Live, KernelSymbolsError> {
        let kernel = KernelSymbols::parse(std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())?;
        let anchors = kernel.anchors(anchors);
        let kernel = crate::machine::with_own_vmlinux(kernel);
        let symbols = Symbols { kernel: Some(kernel), kernel_distance: 0, is_local: true, is_certain: true };
        Ok(Live { converter: Converter::of_living(symbols), anchors })
    }

    /// Names a recording. Event, frequency and cost are the recorder's to say.
    pub fn take(&mut self, recording: &Recording, slot: u32) -> (StackBatch, Profiled) {
        let anchors = self.anchors.clone();
        let mut about = Profiled {
            slot,
            source: "perf_event_open".into(),
            unit: Unit::new("1"),
            anchors,
            ..Profiled::default()
        };
        self.converter.forget_processes();
        recording.processes.iter().for_each(|process| self.tell(process));
        recording.recorder.into_iter().for_each(|pid| self.converter.leave_out(pid));
        if let Ok((attr, _)) = PerfEventAttr::parse::<_, NativeEndian>(recording.attributes.as_slice()) {
            let event = Asked { attributes: &attr, read_format: 0, ids: &[], is_wanted: true };
            if let Ok(shapes) = Shapes::of(&[event], endianness()) {
                self.take_records(recording, &shapes, &mut about);
            }
        }
        (self.converter.batch(slot), about)
    }

    fn tell(&mut self, process: &Process) {
        for (tid, name) in &process.threads {
            self.converter.named(process.pid, *tid, name, false);
        }
        for file in &process.files {
            self.converter.mapped(process.pid, file.start, file.length, file.offset, &file.path);
        }
    }

    fn take_records(&mut self, recording: &Recording, shapes: &Shapes, about: &mut Profiled) {
        let mut records = Records::new(shapes);
        let buffers: Vec<&[u8]> = recording.buffers.iter().map(Vec::as_slice).collect();
        about.unreadable += records.take_all(&mut self.converter, &buffers, shapes).len() as u64;
        about.lost += records.lost().saturating_add(recording.lost);
    }
}

fn endianness() -> Endianness {
    if cfg!(target_endian = "little") { Endianness::LittleEndian } else { Endianness::BigEndian }
}
