//! Recordings of `observe`, named: the records of every CPU put in one order of time and fed to the converter.

use byteorder::NativeEndian;
use linux_perf_event_reader::{Endianness, PerfEventAttr};
use perflab_model::Unit;
use perflab_model::profile::{ProfileSummary, StackBatch};

use crate::kernel_symbols::{KernelSymbols, KernelSymbolsError};
use crate::perf_records::{PerfRecordReader, RecordLayouts, RequestedEvent};
use crate::recorded_files::RecordedFiles;
use crate::stack_converter::{StackConverter, SymbolSources};

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
pub struct RecordedProcess {
    /// its number
    pub pid: i32,
    /// its threads and what they call themselves
    pub threads: Vec<(i32, String)>,
    /// its code
    pub files: Vec<MappedFile>,
}

/// What a recorder brings: raw records, and what stood before them.
#[derive(Debug, Clone, Default)]
pub struct PerfRecording {
    /// The `perf_event_attr` that the events were opened with, as the kernel has it.
    pub attributes: Vec<u8>,
    /// Whole records, a buffer a CPU, in order of time within each.
    pub buffers: Vec<Vec<u8>>,
    /// Samples after those, for which the recorder had no room.
    pub lost: u64,
    /// The processes when recording began.
    pub processes: Vec<RecordedProcess>,
    /// The process whose children are recorded, and not itself: its samples are left out, and those of its children before
    /// their exec.
    pub recorder: Option<i32>,
}

/// The converter of live recordings; keeps its names from one to the next.
#[derive(Debug)]
pub struct LiveProfile {
    converter: StackConverter,
    anchors: Vec<perflab_model::profile::SymbolAnchor>,
}

impl LiveProfile {
    /// With this machine's symbols; `anchors` are kernel symbols to look up whether or not a sample hits them.
    ///
    /// # Errors
    /// [`KernelSymbolsError`] where the kernel's names are hidden.
    pub fn new(anchors: &[String]) -> Result<LiveProfile, KernelSymbolsError> {
        let kernel = KernelSymbols::parse(std::fs::read_to_string("/proc/kallsyms").unwrap_or_default())?;
        let anchors = kernel.find_anchors(anchors);
        let kernel = crate::recorded_machine::with_own_vmlinux(kernel);
        let files = Some(RecordedFiles::of_this_machine());
        let symbols = SymbolSources { kernel: Some(kernel), kernel_distance: 0, files, is_certain: true };
        Ok(LiveProfile { converter: StackConverter::for_living_processes(symbols), anchors })
    }

    /// Names a recording. Event, frequency and cost are the recorder's to say.
    pub fn convert(&mut self, recording: &PerfRecording, slot: u32) -> (StackBatch, ProfileSummary) {
        let anchors = self.anchors.clone();
        let mut about = ProfileSummary {
            slot,
            source: "perf_event_open".into(),
            unit: Unit::new("1"),
            anchors,
            ..ProfileSummary::default()
        };
        self.converter.forget_processes();
        recording.processes.iter().for_each(|process| self.add_process(process));
        recording.recorder.into_iter().for_each(|pid| self.converter.exclude_process(pid));
        if let Ok((attr, _)) = PerfEventAttr::parse::<_, NativeEndian>(recording.attributes.as_slice()) {
            let event = RequestedEvent { attributes: &attr, read_format: 0, ids: &[], is_wanted: true };
            if let Ok(shapes) = RecordLayouts::for_events(&[event], native_endianness()) {
                self.convert_records(recording, &shapes, &mut about);
            }
        }
        (self.converter.take_batch(slot), about)
    }

    fn add_process(&mut self, process: &RecordedProcess) {
        for (tid, name) in &process.threads {
            self.converter.on_name(process.pid, *tid, name, false);
        }
        for file in &process.files {
            self.converter.on_map(process.pid, file.start, file.length, file.offset, &file.path);
        }
    }

    fn convert_records(
        &mut self,
        recording: &PerfRecording,
        shapes: &RecordLayouts,
        about: &mut ProfileSummary,
    ) {
        let mut records = PerfRecordReader::new(shapes);
        let buffers: Vec<&[u8]> = recording.buffers.iter().map(Vec::as_slice).collect();
        about.unreadable += records.read_buffers(&mut self.converter, &buffers, shapes).len() as u64;
        about.lost += records.lost_records().saturating_add(recording.lost);
    }
}

fn native_endianness() -> Endianness {
    if cfg!(target_endian = "little") { Endianness::LittleEndian } else { Endianness::BigEndian }
}
