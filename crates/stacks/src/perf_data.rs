//! perf.data: what `perf record` writes, to a file or into a pipe, compressed or not.
//!
//! Owns what to make of a file that was cut off (everything up to its last whole record), and whose symbols
//! fit the recorded machine. Refuses symbols of another kernel.

use std::io::{Cursor, Read};

use linux_perf_data::linux_perf_event_reader::{
    AttrFlags, HardwareEventId, PerfClock, PerfEventType, RecordParseInfo, SampleFormat, SamplingPolicy,
    SoftwareCounterType,
};
use linux_perf_data::{
    AttributeDescription, DsoKey, PerfFile, PerfFileReader, PerfFileRecord, PerfRecordIter,
};
use perflab_model::profile::Profiled;
use perflab_model::{Nanos, Unit};

use crate::convert::Converter;
use crate::imported::Reading;
use crate::machine::{self, Machine};
use crate::perf_layout::{Layout, Whole};
use crate::records::Records;
use crate::{Options, Place, events};

/// What every perf.data begins with, as it stands in memory on either kind of machine.
pub(crate) fn looks(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PERFILE2") || bytes.starts_with(b"2ELIFREP")
}

/// Reads a file; an error is a reason.
pub(crate) fn read(mut bytes: Vec<u8>, options: &Options) -> Result<Reading, (Option<Place>, String)> {
    let layout = Layout::of(&bytes).map_err(|(offset, reason)| (Some(Place::Offset(offset)), reason))?;
    let whole = layout.cut(&mut bytes);
    let is_pipe = layout.is_pipe;
    let cursor = Cursor::new(bytes.as_slice());
    let opened =
        if is_pipe { PerfFileReader::parse_pipe(cursor) } else { PerfFileReader::parse_file(cursor) };
    let reader = opened.map_err(|error| (None, format!("perf.data that cannot be read: {error}")))?;
    let mut reading = Reading::default();
    say_cut(&mut reading, &whole);
    let records = layout.records(&bytes);
    convert(reader, records, options, &mut reading).map_err(|reason| (None, reason))?;
    Ok(reading)
}

fn say_cut(reading: &mut Reading, whole: &Whole) {
    let Some(cut) = &whole.cut else { return };
    reading.remark(Place::Offset(cut.offset), &cut.reason);
    reading.note(
        format!(
            "the file is cut off at byte {}: {}; {:.1} % of its records' bytes are there",
            cut.offset,
            cut.reason,
            100.0 * cut.share
        ),
        "what is there is shown; record again, or copy the file again, for the rest",
    );
}

fn convert<R: Read>(
    reader: PerfFileReader<R>,
    plain: Option<(u64, &[u8])>,
    options: &Options,
    reading: &mut Reading,
) -> Result<(), String> {
    let PerfFileReader { mut perf_file, mut record_iter } = reader;
    let symbols = machine::symbols(&recorded(&perf_file), options, reading)?;
    say_copies(&perf_file, symbols.is_local, reading);
    let mut converter = Converter::new(symbols);
    let records = match plain.zip(one_shape(&perf_file)) {
        Some(((begin, bytes), info)) => {
            let mut records = asked(&perf_file);
            for (at, reason) in records.take_all(&mut converter, &[bytes], info) {
                reading.unreadable(Place::Offset(begin + at as u64), reason);
            }
            records
        }
        None => one_by_one(&mut perf_file, &mut record_iter, &mut converter, reading),
    };
    describe(&perf_file, records.lost(), reading);
    reading.begun = begun(&perf_file, &converter);
    reading.about.anchors = converter.anchors(&options.anchors);
    (reading.weaver, reading.samples) = converter.into_parts();
    Ok(())
}

/// Copies of stacks are of use only with the files that ran.
fn say_copies(file: &PerfFile, is_local: bool, reading: &mut Reading) {
    let copies =
        |one: &AttributeDescription| one.attributes().sample_format.contains(SampleFormat::STACK_USER);
    if !is_local && file.event_attributes().iter().any(copies) {
        reading.note(
            "its user stacks are copies of memory (--call-graph dwarf), which need the programs that ran: of user code \
             only the innermost function is known",
            "import it on the machine that recorded it, or import the text that `perf script` prints there",
        );
    }
}

/// How to read all records, where they can be read where they lie: not compressed, and of one shape.
fn one_shape(file: &PerfFile) -> Option<RecordParseInfo> {
    if file.compression_info().ok()?.is_some() {
        return None;
    }
    let info = |one: &AttributeDescription| RecordParseInfo::new(one.attributes(), file.endian());
    let mut sampled = file.event_attributes().iter().filter(|one| counts(one)).map(info);
    let shape = sampled.next()?;
    let is_same = |one: RecordParseInfo| {
        one.common_data_offset_from_end == shape.common_data_offset_from_end
            && one.nonsample_record_time_offset_from_end == shape.nonsample_record_time_offset_from_end
    };
    let all = file.event_attributes().iter().map(info).all(is_same);
    (all && sampled.all(|one| one == shape)).then_some(shape)
}

/// Compressed records, those of a pipe, and those of several shapes.
fn one_by_one<R: Read>(
    file: &mut PerfFile,
    iter: &mut PerfRecordIter<R>,
    converter: &mut Converter,
    reading: &mut Reading,
) -> Records {
    let mut records = Records::default();
    for number in 1.. {
        let parsed = match iter.next_record(file) {
            Ok(Some(PerfFileRecord::EventRecord { record, .. })) => {
                record.parse().map_err(|error| error.to_string())
            }
            Ok(Some(PerfFileRecord::UserRecord(_))) => continue,
            Ok(None) => break,
            Err(error) => {
                reading.unreadable(Place::Record(number), error.to_string());
                break;
            }
        };
        if !records.is_ready() {
            records = asked(file);
        }
        match parsed {
            Ok(parsed) => records.take(converter, &parsed),
            Err(error) => reading.unreadable(Place::Record(number), error),
        }
    }
    records
}

/// How the samples were asked for.
fn asked(file: &PerfFile) -> Records {
    let all = file.event_attributes();
    let has_chains = all.iter().any(|one| one.attributes().sample_format.contains(SampleFormat::CALLCHAIN));
    let period = match all.iter().find(|one| counts(one)).map(|one| &one.attributes().sampling_policy) {
        Some(SamplingPolicy::Period(period)) => period.get(),
        _ => 1,
    };
    Records::new(has_chains, period)
}

/// What the file says of the machine.
fn recorded(file: &PerfFile) -> Machine {
    let text = |found: Result<Option<&str>, _>| found.ok().flatten().map(str::to_owned).unwrap_or_default();
    let ids = file.build_ids().unwrap_or_default();
    let kernel =
        ids.iter().find(|(key, _)| matches!(key, DsoKey::Kernel)).map(|(_, dso)| dso.build_id.clone());
    Machine {
        release: text(file.os_release()),
        arch: text(file.arch()),
        host: text(file.hostname()),
        kernel_build_id: kernel.unwrap_or_default(),
    }
}

fn describe(file: &PerfFile, lost: u64, reading: &mut Reading) {
    let cmdline = file.cmdline().ok().flatten().unwrap_or_default().join(" ");
    let machine = recorded(file);
    let version = file.perf_version().ok().flatten().unwrap_or_default();
    for (key, value) in [
        ("profile.command", cmdline.as_str()),
        ("profile.kernel", &machine.release),
        ("profile.arch", &machine.arch),
        ("profile.hostname", &machine.host),
        ("profile.perf", version),
    ] {
        if !value.is_empty() {
            reading.facts.add(key, value, "perf.data");
        }
    }
    let unreadable = reading.about.unreadable;
    reading.about = Profiled { source: "perf.data".into(), lost, unreadable, ..of_event(file) };
    let names: Vec<String> = file.event_attributes().iter().filter(|one| counts(one)).map(name).collect();
    if names.len() > 1 {
        let (events, all) = (names.len(), names.join(", "));
        let message = format!("{events} events are in the file ({all}); their samples are put together");
        reading.note(message, "record one event at a time to tell them apart");
    }
}

fn of_event(file: &PerfFile) -> Profiled {
    let Some(first) = file.event_attributes().iter().find(|one| counts(one)) else {
        return Profiled::default();
    };
    let attributes = first.attributes();
    let event = name(first);
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
    let hides = events::hides(&event, is_user_only);
    Profiled { event, frequency, unit: Unit::new(unit), hides, ..Profiled::default() }
}

/// Whether an event gives samples: perf opens a dummy one beside, for mappings and names.
fn counts(event: &AttributeDescription) -> bool {
    !matches!(event.attributes().type_, PerfEventType::Software(SoftwareCounterType::Dummy))
}

/// The event's name; from its type where the file was cut before the names.
fn name(event: &AttributeDescription) -> String {
    let of_type = || match event.attributes().type_ {
        PerfEventType::Software(SoftwareCounterType::CpuClock) => "cpu-clock".to_owned(),
        PerfEventType::Software(SoftwareCounterType::TaskClock) => "task-clock".to_owned(),
        PerfEventType::Hardware(HardwareEventId::CpuCycles, _) => "cycles".to_owned(),
        ref other => format!("{other:?}"),
    };
    event.name().map_or_else(of_type, str::to_owned)
}

/// When the first sample was taken, since 1970, where the file relates its clock to the wall's.
fn begun(file: &PerfFile, converter: &Converter) -> Option<Nanos> {
    let clock = file.clock_data().ok().flatten()?;
    let first = converter.first()?;
    let is_same =
        file.event_attributes().iter().any(|one| matches!(one.attributes().clock, PerfClock::ClockId(_)));
    let since = i128::from(clock.wall_clock_ns) + i128::from(first.0) - i128::from(clock.clockid_time_ns);
    u64::try_from(since).ok().filter(|_| is_same).map(Nanos)
}
