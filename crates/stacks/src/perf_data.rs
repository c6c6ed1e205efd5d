//! perf.data: what `perf record` writes, to a file or into a pipe, compressed or not.
//!
//! Owns what to make of a file that was cut off (everything up to its last whole record), and whose symbols
//! fit the recorded machine. Refuses symbols of another kernel.

use linux_perf_event_reader::{
    AttrFlags, HardwareEventId, PerfClock, PerfEventType, SampleFormat, SamplingPolicy, SoftwareCounterType,
};
use perflab_model::profile::Profiled;
use perflab_model::{Nanos, Unit};

use crate::convert::Converter;
use crate::imported::Reading;
use crate::machine::{self, Machine};
use crate::perf_file::{Feature, PerfDataFile, RecordedEvent};
use crate::perf_layout::{Layout, Whole};
use crate::records::{Asked, Records, Shapes, gives_samples, samples_itself};
use crate::{Options, Place, events};

/// What every perf.data begins with, as it stands in memory on either kind of machine.
pub(crate) fn looks(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PERFILE2") || bytes.starts_with(b"2ELIFREP")
}

/// Reads a file; an error is a reason.
pub(crate) fn read(bytes: &[u8], options: &Options) -> Result<Reading, (Option<Place>, String)> {
    let placed = |(offset, reason)| (Some(Place::Offset(offset)), reason);
    let mut layout = Layout::of(bytes).map_err(placed)?;
    let whole = layout.cut(bytes);
    let file = PerfDataFile::parse(bytes, &layout).map_err(placed)?;
    let mut reading = Reading::default();
    say_cut(&mut reading, &whole);
    convert(file, options, &mut reading).map_err(|reason| (None, reason))?;
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

fn convert(mut file: PerfDataFile<'_>, options: &Options, reading: &mut Reading) -> Result<(), String> {
    let chosen = chosen(&file, options.event.as_deref())?;
    for (offset, reason) in std::mem::take(&mut file.unreadable) {
        reading.unreadable(Place::Offset(offset), reason);
    }
    let symbols = machine::symbols(&recorded(&file), options, reading)?;
    say_copies(&file, symbols.is_local, reading);
    let mut converter = Converter::new(symbols);
    let shapes = shapes(&file, &chosen)?;
    let mut records = Records::new(&shapes);
    for (at, reason) in records.take_all(&mut converter, &[&file.records], &shapes) {
        let place = match file.begin {
            Some(begin) => Place::Offset(begin + at as u64),
            None => Place::Unpacked(at as u64),
        };
        reading.unreadable(place, reason);
    }
    describe(&file, &chosen, &records, reading);
    reading.begun = begun(&file, &converter);
    reading.about.anchors = converter.anchors(&options.anchors);
    (reading.weaver, reading.samples) = converter.into_parts();
    Ok(())
}

/// Which of the file's events are read: those of a name, or all that take samples.
fn chosen(file: &PerfDataFile<'_>, wanted: Option<&str>) -> Result<Vec<bool>, String> {
    let Some(wanted) = wanted else {
        return Ok(file.events.iter().map(|event| samples_itself(&event.attributes)).collect());
    };
    let sampled = |event: &RecordedEvent| gives_samples(&event.attributes);
    let is_wanted = |event: &RecordedEvent| sampled(event) && name(event) == wanted;
    // `cycles` stands for `cycles:P` where nothing has that very name.
    let is_like = |event: &RecordedEvent| {
        sampled(event) && name(event).split(':').next().is_some_and(|name| name == wanted)
    };
    for choice in [file.events.iter().map(is_wanted).collect(), file.events.iter().map(is_like).collect()] {
        let choice: Vec<bool> = choice;
        if choice.contains(&true) {
            return Ok(choice);
        }
    }
    Err(format!("it has no event `{wanted}`; it has: {}", names(file).join(", ")))
}

/// The names of all events that give samples.
fn names(file: &PerfDataFile<'_>) -> Vec<String> {
    file.events.iter().filter(|event| gives_samples(&event.attributes)).map(name).collect()
}

fn shapes(file: &PerfDataFile<'_>, chosen: &[bool]) -> Result<Shapes, String> {
    let asked: Vec<Asked<'_>> = file
        .events
        .iter()
        .zip(chosen)
        .map(|(event, is_wanted)| Asked {
            attributes: &event.attributes,
            read_format: event.read_format,
            ids: &event.ids,
            is_wanted: *is_wanted,
        })
        .collect();
    Shapes::of(&asked, file.endian)
}

/// Copies of stacks are of use only with the files that ran.
fn say_copies(file: &PerfDataFile<'_>, is_local: bool, reading: &mut Reading) {
    let copies = |one: &RecordedEvent| one.attributes.sample_format.contains(SampleFormat::STACK_USER);
    if !is_local && file.events.iter().any(copies) {
        reading.note(
            "its user stacks are copies of memory (--call-graph dwarf), which need the programs that ran: of user code \
             only the innermost function is known",
            "import it on the machine that recorded it, or import the text that `perf script` prints there",
        );
    }
}

/// What the file says of the machine.
fn recorded(file: &PerfDataFile<'_>) -> Machine {
    Machine {
        release: file.text(Feature::OsRelease),
        arch: file.text(Feature::Arch),
        host: file.text(Feature::HostName),
        kernel_build_id: file.kernel_build_id(),
    }
}

fn describe(file: &PerfDataFile<'_>, chosen: &[bool], records: &Records, reading: &mut Reading) {
    let machine = recorded(file);
    for (key, value) in [
        ("profile.command", &file.command().join(" ")),
        ("profile.kernel", &machine.release),
        ("profile.arch", &machine.arch),
        ("profile.hostname", &machine.host),
        ("profile.perf", &file.text(Feature::PerfVersion)),
    ] {
        if !value.is_empty() {
            reading.facts.add(key, value.as_str(), "perf.data");
        }
    }
    let read = || file.events.iter().zip(chosen).filter(|(_, is_chosen)| **is_chosen).map(|(event, _)| event);
    let about = read().next().map(of_event).unwrap_or_default();
    let (lost, unreadable) = (records.lost(), reading.about.unreadable);
    reading.about = Profiled { source: "perf.data".into(), lost, unreadable, ..about };
    let counted = |event: &&RecordedEvent| !samples_itself(&event.attributes);
    let is_counted = read().any(|event| counted(&event));
    let members = file.events.iter().filter(|event| gives_samples(&event.attributes)).filter(counted);
    let members: Vec<String> = members.map(name).collect();
    let (names, read) = (names(file), read().count());
    if is_counted {
        reading.note(
            "it was counted at the samples of its group's leader (:S): a sample stands for what came since the one before it, \
             and its stack is the leader's",
            "take it into account where the event came somewhere else than the leader's samples were taken",
        );
    } else if !members.is_empty() {
        reading.note(
            format!("{} was only counted at samples of others (:S), and is left out", members.join(", ")),
            "--event NAME shows where it came",
        );
    } else if read > 1 {
        reading.note(
            format!("{read} events are in the file ({}); their samples are put together", names.join(", ")),
            "choose one: --event NAME",
        );
    } else if records.others > 0 {
        reading.note(
            format!("{} samples of its other events are left out", records.others),
            format!("its events are {}: --event NAME chooses another", names.join(", ")),
        );
    }
}

fn of_event(chosen: &RecordedEvent) -> Profiled {
    let attributes = &chosen.attributes;
    let event = name(chosen);
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

/// The event's name; from its type where the file was cut before the names.
fn name(event: &RecordedEvent) -> String {
    let of_type = || match event.attributes.type_ {
        PerfEventType::Software(SoftwareCounterType::CpuClock) => "cpu-clock".to_owned(),
        PerfEventType::Software(SoftwareCounterType::TaskClock) => "task-clock".to_owned(),
        PerfEventType::Hardware(HardwareEventId::CpuCycles, _) => "cycles".to_owned(),
        ref other => format!("{other:?}"),
    };
    event.name.clone().unwrap_or_else(of_type)
}

/// When the first sample was taken, since 1970, where the file relates its clock to the wall's.
fn begun(file: &PerfDataFile<'_>, converter: &Converter) -> Option<Nanos> {
    let (wall, clock) = file.clock()?;
    let first = converter.first()?;
    let is_same = file.events.iter().any(|one| matches!(one.attributes.clock, PerfClock::ClockId(_)));
    let since = i128::from(wall) + i128::from(first.0) - i128::from(clock);
    u64::try_from(since).ok().filter(|_| is_same).map(Nanos)
}
