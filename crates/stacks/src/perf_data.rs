//! perf.data: what `perf record` writes, to a file or into a pipe, compressed or not, whole or cut.
//!
//! A cut file lacks its end, where the machine is described, and its last record; everything up to its last whole
//! record is read. Symbols of another kernel than the recorded one are refused.

use std::fmt::Write as _;
use std::time::SystemTime;

use linux_perf_event_reader::{
    AttrFlags, HardwareEventId, PerfClock, PerfEventType, SampleFormat, SamplingPolicy, SoftwareCounterType,
};
use perflab_model::fact_table;
use perflab_model::profile::ProfileSummary;
use perflab_model::{Nanos, Unit};

use crate::imported_profile::{self, ProfileBuilder, ProfilePosition};
use crate::perf_file::{PerfDataFeature, PerfDataFile, RecordedEvent};
use crate::perf_layout::{PerfDataLayout, RepairedPerfData};
use crate::perf_records::{PerfRecordReader, RecordLayouts, RequestedEvent, has_own_samples, has_samples};
use crate::recorded_files::RecordedFiles;
use crate::recorded_machine::{self, RecordedMachine, SymbolOptions};
use crate::stack_converter::StackConverter;

/// What every perf.data begins with, as it stands in memory on either kind of machine.
pub(crate) fn is_perf_data(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PERFILE2") || bytes.starts_with(b"2ELIFREP")
}

/// Reads a file that was written at `recorded`; an error is a reason.
pub(crate) fn read_perf_data(
    bytes: &[u8],
    recorded: Option<SystemTime>,
    options: &SymbolOptions,
) -> Result<ProfileBuilder, (Option<ProfilePosition>, String)> {
    let placed = |(offset, reason)| (Some(ProfilePosition::Offset(offset)), reason);
    let mut layout = PerfDataLayout::parse(bytes).map_err(placed)?;
    let whole = layout.repair_cut(bytes);
    let file = PerfDataFile::parse(bytes, &layout).map_err(placed)?;
    let mut reading = ProfileBuilder::default();
    reading.recorded = recorded;
    note_cut(&mut reading, &whole);
    convert_perf_data(file, options, &mut reading).map_err(|reason| (None, reason))?;
    Ok(reading)
}

fn note_cut(reading: &mut ProfileBuilder, whole: &RepairedPerfData) {
    let Some(cut) = &whole.cut else { return };
    reading.add_remark(ProfilePosition::Offset(cut.offset), &cut.reason);
    reading.add_note(
        format!(
            "the file is cut off at byte {}: {}; {:.1} % of its records' bytes are there",
            cut.offset,
            cut.reason,
            100.0 * cut.share
        ),
        "what is there is shown; record again, or copy the file again, for the rest",
    );
}

fn convert_perf_data(
    mut file: PerfDataFile<'_>,
    options: &SymbolOptions,
    reading: &mut ProfileBuilder,
) -> Result<(), String> {
    let chosen = choose_events(&file, options.event.as_deref())?;
    for (offset, reason) in std::mem::take(&mut file.unreadable) {
        reading.count_unreadable(ProfilePosition::Offset(offset), reason);
    }
    let symbols = recorded_machine::choose_symbols(&recorded_machine(&file), options, reading)?;
    note_stack_copies(&file, symbols.files.is_some(), reading);
    let mut converter = StackConverter::new(symbols);
    for (path, id) in file.build_ids() {
        converter.on_build_id(&String::from_utf8_lossy(path), id);
    }
    let shapes = record_layouts(&file, &chosen)?;
    let mut records = PerfRecordReader::new(&shapes);
    for (at, reason) in records.read_buffers(&mut converter, &[&file.records], &shapes) {
        let place = match file.begin {
            Some(begin) => ProfilePosition::Offset(begin + at as u64),
            None => ProfilePosition::Unpacked(at as u64),
        };
        reading.count_unreadable(place, reason);
    }
    converter.files().into_iter().for_each(|files| note_other_binaries(files, reading));
    describe_recording(&file, &chosen, &records, reading);
    reading.begun = recording_start(&file, &converter);
    reading.about.anchors = converter.find_anchors(&options.anchors);
    (reading.weaver, reading.samples) = converter.into_parts();
    Ok(())
}

/// Which of the file's events are read: those of a name, or all that take samples.
fn choose_events(file: &PerfDataFile<'_>, requested: Option<&str>) -> Result<Vec<bool>, String> {
    let Some(requested) = requested else {
        return Ok(file.events.iter().map(|event| has_own_samples(&event.attributes)).collect());
    };
    let sampled = |event: &RecordedEvent| has_samples(&event.attributes);
    let is_wanted = |event: &RecordedEvent| sampled(event) && recorded_event_name(event) == requested;
    // `cycles` stands for `cycles:P` where nothing has that very name.
    let is_like = |event: &RecordedEvent| {
        sampled(event) && recorded_event_name(event).split(':').next().is_some_and(|name| name == requested)
    };
    for choice in [file.events.iter().map(is_wanted).collect(), file.events.iter().map(is_like).collect()] {
        let choice: Vec<bool> = choice;
        if choice.contains(&true) {
            return Ok(choice);
        }
    }
    Err(format!("it has no event `{requested}`; it has: {}", sampling_event_names(file).join(", ")))
}

/// The names of all events that give samples.
fn sampling_event_names(file: &PerfDataFile<'_>) -> Vec<String> {
    file.events.iter().filter(|event| has_samples(&event.attributes)).map(recorded_event_name).collect()
}

fn record_layouts(file: &PerfDataFile<'_>, chosen: &[bool]) -> Result<RecordLayouts, String> {
    let asked: Vec<RequestedEvent<'_>> = file
        .events
        .iter()
        .zip(chosen)
        .map(|(event, is_wanted)| RequestedEvent {
            attributes: &event.attributes,
            read_format: event.read_format,
            ids: &event.ids,
            is_wanted: *is_wanted,
        })
        .collect();
    RecordLayouts::for_events(&asked, file.endian)
}

/// Copies of stacks are of use only with the files that ran.
fn note_stack_copies(file: &PerfDataFile<'_>, has_files: bool, reading: &mut ProfileBuilder) {
    let copies = |one: &RecordedEvent| one.attributes.sample_format.contains(SampleFormat::STACK_USER);
    if !has_files && file.events.iter().any(copies) {
        reading.add_note(
            "its user stacks are copies of memory (--call-graph dwarf), which need the programs that ran: of user code \
             only the innermost function is known",
            "import it on the machine that recorded it, give a copy of its files as --symfs DIR, or import the text that \
             `perf script` prints there",
        );
    }
}

/// Functions of a binary that has changed since would have the names of others, and those of one that is not there have none.
fn note_other_binaries(files: &RecordedFiles, reading: &mut ProfileBuilder) {
    let is_copy = files.copy_root().is_some();
    let replaced = files.replaced_binaries();
    if !replaced.is_empty() {
        let message = format!(
            "not the recorded binaries, or changed since: {}; their functions have no names, and no stack is unwound by them",
            list_few(&replaced)
        );
        let advice = match is_copy {
            true => {
                "copy them from the recorded machine again, or from where the build ids that `perf buildid-list` prints are kept"
            }
            false => "give a folder with the recorded machine's files as --symfs DIR",
        };
        reading.add_note(message, advice);
    }
    let missing = files.missing_binaries();
    if !missing.is_empty() {
        let (place, advice) = match is_copy {
            true => (
                "below --symfs",
                "copy them there by their paths; a link that leads out of the folder is not followed",
            ),
            false => ("here", "give a folder with the recorded machine's files as --symfs DIR"),
        };
        let message =
            format!("binaries that are not {place}: {}; their functions have no names", list_few(&missing));
        reading.add_note(message, advice);
    }
}

/// The first of some paths, and how many more there are.
fn list_few(paths: &[String]) -> String {
    const SHOWN: usize = 3;
    let mut shown = paths.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if paths.len() > SHOWN {
        let _ = write!(shown, " and {} more", paths.len() - SHOWN);
    }
    shown
}

/// What the file says of the machine.
fn recorded_machine(file: &PerfDataFile<'_>) -> RecordedMachine {
    RecordedMachine {
        release: file.feature_text(PerfDataFeature::OsRelease),
        arch: file.feature_text(PerfDataFeature::Arch),
        host: file.feature_text(PerfDataFeature::HostName),
        kernel_build_id: file.kernel_build_id(),
    }
}

fn describe_recording(
    file: &PerfDataFile<'_>,
    chosen: &[bool],
    records: &PerfRecordReader,
    reading: &mut ProfileBuilder,
) {
    let machine = recorded_machine(file);
    for (key, value) in [
        (fact_table::PROFILE_COMMAND, &file.recording_command().join(" ")),
        (fact_table::PROFILE_KERNEL, &machine.release),
        (fact_table::PROFILE_ARCH, &machine.arch),
        (fact_table::PROFILE_HOSTNAME, &machine.host),
        (fact_table::PROFILE_PERF, &file.feature_text(PerfDataFeature::PerfVersion)),
    ] {
        if !value.is_empty() {
            reading.facts.add(key, value.as_str(), "perf.data");
        }
    }
    let read = || file.events.iter().zip(chosen).filter(|(_, is_chosen)| **is_chosen).map(|(event, _)| event);
    let about = read().next().map(profiled_event).unwrap_or_default();
    let (lost, unreadable) = (records.lost_records(), reading.about.unreadable);
    reading.about = ProfileSummary { source: "perf.data".into(), lost, unreadable, ..about };
    let counted = |event: &&RecordedEvent| !has_own_samples(&event.attributes);
    let is_counted = read().any(|event| counted(&event));
    let members = file.events.iter().filter(|event| has_samples(&event.attributes)).filter(counted);
    let members: Vec<String> = members.map(recorded_event_name).collect();
    let (names, read) = (sampling_event_names(file), read().count());
    if is_counted {
        reading.add_note(
            "it was counted at the samples of its group's leader (:S): a sample stands for what came since the one before it, \
             and its stack is the leader's",
            "take it into account where the event came somewhere else than the leader's samples were taken",
        );
    } else if !members.is_empty() {
        reading.add_note(
            format!("{} was only counted at samples of others (:S), and is left out", members.join(", ")),
            "--event NAME shows where it came",
        );
    } else if read > 1 {
        reading.add_note(
            format!("{read} events are in the file ({}); their samples are put together", names.join(", ")),
            "choose one: --event NAME",
        );
    } else if records.others > 0 {
        reading.add_note(
            format!("{} samples of its other events are left out", records.others),
            format!("its events are {}: --event NAME chooses another", names.join(", ")),
        );
    }
}

fn profiled_event(chosen: &RecordedEvent) -> ProfileSummary {
    let attributes = &chosen.attributes;
    let event = recorded_event_name(chosen);
    let frequency = match attributes.sampling_policy {
        SamplingPolicy::Frequency(rate) => Some(rate),
        _ => None,
    };
    let has_period = attributes.sample_format.contains(SampleFormat::PERIOD);
    let unit = match &attributes.type_ {
        _ if !has_period => "1",
        PerfEventType::Software(SoftwareCounterType::CpuClock | SoftwareCounterType::TaskClock) => "ns",
        PerfEventType::Hardware(..) if event.contains("cycles") => "cycles",
        _ => "events",
    };
    let is_user_only = attributes.flags.contains(AttrFlags::EXCLUDE_KERNEL);
    let hides = imported_profile::hidden_from_event(&event, is_user_only);
    ProfileSummary { event, frequency, unit: Unit::new(unit), hides, ..ProfileSummary::default() }
}

/// The event's name; from its type where the file was cut before the names.
fn recorded_event_name(event: &RecordedEvent) -> String {
    let of_type = || match event.attributes.type_ {
        PerfEventType::Software(SoftwareCounterType::CpuClock) => "cpu-clock".to_owned(),
        PerfEventType::Software(SoftwareCounterType::TaskClock) => "task-clock".to_owned(),
        PerfEventType::Hardware(HardwareEventId::CpuCycles, _) => "cycles".to_owned(),
        ref other => format!("{other:?}"),
    };
    event.name.clone().unwrap_or_else(of_type)
}

/// When the first sample was taken, since 1970, where the file relates its clock to the wall's.
fn recording_start(file: &PerfDataFile<'_>, converter: &StackConverter) -> Option<Nanos> {
    let (wall, clock) = file.clock_anchor()?;
    let first = converter.first_sample_time()?;
    let is_same = file.events.iter().any(|one| matches!(one.attributes.clock, PerfClock::ClockId(_)));
    let since = i128::from(wall) + i128::from(first.0) - i128::from(clock);
    u64::try_from(since).ok().filter(|_| is_same).map(Nanos)
}
