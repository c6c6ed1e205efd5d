//! pprof, read and written: a protobuf of samples, locations and functions, mostly gzipped.
//!
//! Format: <https://github.com/google/pprof/blob/main/proto/profile.proto>. Two values are written per sample: its
//! count, and its weight in the unit of the profile. The wire format is decoded by hand for the few fields that a
//! profile needs: it is a page long (<https://protobuf.dev/programming-guides/encoding/>), a code generator is not. A
//! message whose lengths do not fit is refused, naming the byte.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use indexmap::IndexSet;
use perflab_model::profile::DEEPEST_STACK;
use perflab_model::{CommId, FrameKind, Nanos, NodeId, StackFrame, StackSample, Unit};

use crate::ProfilePosition;
use crate::imported_profile::ProfileBuilder;
use crate::profile_selection::ProfileSelection;

/// What a compressed profile may grow to: so many times its size, and no more than this.
const RATIO: u64 = 400;

const LARGEST: u64 = 256 << 20;

/// So much may be unpacked of the smallest.
const SMALLEST: u64 = 1 << 20;

/// Messages of a profile (samples, locations, functions, texts): the largest that are known have a tenth.
const MOST_MESSAGES: usize = 1 << 22;

/// Frames of all stacks together: a few bytes can ask for the same long location again and again.
const MOST_FRAMES: usize = 1 << 27;

/// gzip, or a protobuf whose first field is one of a profile's messages.
pub(crate) fn is_pprof(bytes: &[u8]) -> bool {
    let is_sound = || ProtobufFields(bytes).take(3).filter(Result::is_ok).count() == 3;
    bytes.starts_with(GZIP) || (bytes.first() == Some(&0x0a) && is_sound())
}

const GZIP: &[u8] = &[0x1f, 0x8b];

/// A field: its number and its content.
#[derive(Debug, Clone, Copy)]
enum ProtobufField<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

pub(crate) fn read_pprof(bytes: &[u8]) -> Result<ProfileBuilder, (Option<ProfilePosition>, String)> {
    let unpacked = if bytes.starts_with(GZIP) { unpack_pprof(bytes)?.into() } else { Cow::Borrowed(bytes) };
    let mut profile = PprofMessage::default();
    let (mut broken, mut rest) = (0, ProtobufFields(&unpacked));
    for count in 0.. {
        let at = unpacked.len() - rest.0.len();
        let refused = |why: String| (Some(ProfilePosition::Offset(at as u64)), why);
        let Some(field) = rest.next() else { break };
        let (number, content) = field.map_err(|why| refused(why.into()))?;
        if count == MOST_MESSAGES {
            return Err(refused(format!(
                "more than {MOST_MESSAGES} samples, locations, functions and texts"
            )));
        }
        broken += u64::from(profile.take_field(number, content).is_none());
    }
    let mut reading = profile.to_builder()?;
    reading.about.unreadable += broken;
    if broken > 0 {
        reading.add_remark(ProfilePosition::Offset(0), format!("{broken} messages within it are not whole"));
    }
    Ok(reading)
}

fn unpack_pprof(bytes: &[u8]) -> Result<Vec<u8>, (Option<ProfilePosition>, String)> {
    let most = LARGEST.min(SMALLEST.max((bytes.len() as u64).saturating_mul(RATIO)));
    let mut out = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(most + 1).read_to_end(&mut out);
    let place = Some(ProfilePosition::Offset(out.len() as u64));
    read.map_err(|error| (place, format!("gzip, unpacked: {error}")))?;
    if out.len() as u64 > most {
        let (most, times) = (most >> 20, most / bytes.len().max(1) as u64);
        let reason =
            format!("gzip: it grows to more than {most} MiB, {times} times its size: no profile does");
        return Err((place, reason));
    }
    Ok(out)
}

/// The fields of a message, one after the other; it ends with one that is not whole.
#[derive(Debug, Clone, Copy)]
struct ProtobufFields<'a>(&'a [u8]);

impl<'a> Iterator for ProtobufFields<'a> {
    type Item = Result<(u64, ProtobufField<'a>), &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let found = split_field(&mut self.0).ok_or("a field that is longer than its message");
        if found.is_err() {
            self.0 = &[];
        }
        Some(found)
    }
}

fn split_field<'a>(rest: &mut &'a [u8]) -> Option<(u64, ProtobufField<'a>)> {
    let key = split_varint(rest)?;
    let content = match key & 7 {
        0 => ProtobufField::Number(split_varint(rest)?),
        1 => ProtobufField::Bytes(split_bytes(rest, 8)?),
        2 => {
            let length = usize::try_from(split_varint(rest)?).ok()?;
            ProtobufField::Bytes(split_bytes(rest, length)?)
        }
        5 => ProtobufField::Bytes(split_bytes(rest, 4)?),
        _ => return None,
    };
    Some((key >> 3, content))
}

fn split_bytes<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (first, last) = rest.split_at_checked(length)?;
    *rest = last;
    Some(first)
}

fn split_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The numbers of one kind in a message, each alone or packed with others.
fn packed_numbers(message: &[u8], kind: u64) -> impl Iterator<Item = u64> + use<'_> {
    let contents = ProtobufFields(message).filter_map(Result::ok).filter(move |(number, _)| *number == kind);
    contents.flat_map(|(_, content)| {
        let (alone, mut packed) = match content {
            ProtobufField::Number(number) => (Some(number), [].as_slice()),
            ProtobufField::Bytes(bytes) => (None, bytes),
        };
        alone.into_iter().chain(std::iter::from_fn(move || split_varint(&mut packed)))
    })
}

/// Whether a message and the packed numbers of these kinds in it are whole.
fn is_whole_message(message: &[u8], packed: &[u64]) -> bool {
    let is_sound = |mut bytes: &[u8]| {
        while !bytes.is_empty() {
            if split_varint(&mut bytes).is_none() {
                return false;
            }
        }
        true
    };
    ProtobufFields(message).all(|field| match field {
        Ok((number, ProtobufField::Bytes(bytes))) if packed.contains(&number) => is_sound(bytes),
        Ok(_) => true,
        Err(_) => false,
    })
}

fn field_bytes(content: ProtobufField<'_>) -> Option<&[u8]> {
    if let ProtobufField::Bytes(bytes) = content { Some(bytes) } else { None }
}

/// What of a profile matters here, as it lies in its bytes.
#[derive(Debug, Default)]
struct PprofMessage<'a> {
    texts: Vec<&'a [u8]>,
    /// type and unit of each value, as texts
    types: Vec<(u64, u64)>,
    samples: Vec<&'a [u8]>,
    locations: HashMap<u64, &'a [u8]>,
    functions: HashMap<u64, u64>,
    mappings: HashMap<u64, u64>,
    begun: u64,
}

/// The parts of a sample that are looked at: its locations and its values.
const LOCATIONS: u64 = 1;

const VALUES: u64 = 2;

impl<'a> PprofMessage<'a> {
    /// Takes a field of the profile; `None` where it is not whole.
    fn take_field(&mut self, number: u64, content: ProtobufField<'a>) -> Option<()> {
        let inner = || field_bytes(content).filter(|message| is_whole_message(message, &[]));
        let one = |message: &'a [u8], requested| packed_numbers(message, requested).next();
        match number {
            1 => {
                let message = inner()?;
                self.types.push((one(message, 1).unwrap_or(0), one(message, 2).unwrap_or(0)));
            }
            2 => self
                .samples
                .push(field_bytes(content).filter(|sample| is_whole_message(sample, &[LOCATIONS, VALUES]))?),
            3 => {
                let message = inner()?;
                self.mappings.insert(one(message, 1)?, one(message, 5).unwrap_or(0));
            }
            4 => {
                let message = inner()?;
                let lines =
                    || ProtobufFields(message).filter_map(Result::ok).filter(|(number, _)| *number == LINE);
                lines().all(|(_, line)| line_function_id(line).is_some()).then_some(())?;
                self.locations.insert(one(message, 1)?, message);
            }
            5 => {
                let message = inner()?;
                self.functions.insert(one(message, 1)?, one(message, 2).unwrap_or(0));
            }
            6 => self.texts.push(field_bytes(content)?),
            9 => {
                self.begun = match content {
                    ProtobufField::Number(number) => number,
                    ProtobufField::Bytes(mut bytes) => split_varint(&mut bytes)?,
                }
            }
            _ => {}
        }
        Some(())
    }

    fn text_at(&self, index: u64) -> Cow<'a, str> {
        let found = usize::try_from(index).ok().and_then(|index| self.texts.get(index));
        String::from_utf8_lossy(found.copied().unwrap_or_default())
    }

    fn to_builder(&self) -> Result<ProfileBuilder, (Option<ProfilePosition>, String)> {
        let mut reading = ProfileBuilder::default();
        reading.about.source = "pprof".into();
        let counted =
            |requested: &str| self.types.iter().position(|(kind, _)| self.text_at(*kind) == requested);
        let count = counted("samples").or_else(|| counted("sample"));
        // The last value is the one that pprof shows.
        let weight = self.types.len().saturating_sub(1);
        let (kind, unit) = self.types.get(weight).copied().unwrap_or_default();
        reading.about.event = self.text_at(kind).into();
        let unit = self.text_at(unit);
        let unit = match &*unit {
            "nanoseconds" => "ns",
            "count" | "" => "1",
            other => other,
        };
        reading.about.unit = Unit::new(unit);
        reading.begun = (self.begun > 0).then_some(Nanos(self.begun));
        let (mut left, mut deep) = (MOST_FRAMES, 0_u64);
        for sample in &self.samples {
            let frames = self.add_sample(&mut reading, sample, count, weight);
            deep += u64::from(frames > DEEPEST_STACK);
            left = left.checked_sub(frames).ok_or_else(|| {
                let reason = format!("its stacks have more than {MOST_FRAMES} frames in all: no profile has");
                (None, reason)
            })?;
        }
        if deep > 0 {
            let message = format!("{deep} stacks are deeper than {DEEPEST_STACK} frames, and cut there");
            reading.add_note(message, "nothing is to be done where the program recurses without end");
        }
        reading.add_note(
            "pprof has no times, and does not say what was lost",
            "import what the profiler recorded where you have it",
        );
        Ok(reading)
    }

    /// Adds a sample; gives the frames of its stack, or one more than are taken.
    fn add_sample(
        &self,
        reading: &mut ProfileBuilder,
        sample: &[u8],
        count: Option<usize>,
        weight: usize,
    ) -> usize {
        // Innermost first, as the locations are; of those that are too many the outermost are left out.
        let frames = packed_numbers(sample, LOCATIONS).flat_map(|id| self.location_frames(id));
        let frames: Vec<StackFrame> = frames.take(DEEPEST_STACK + 1).collect();
        let mut leaf: Option<NodeId> = None;
        for frame in frames.iter().take(DEEPEST_STACK).rev() {
            let frame = reading.weaver.intern_frame(frame.clone());
            leaf = Some(reading.weaver.intern_node(leaf, frame));
        }
        let value = |at: usize| packed_numbers(sample, VALUES).nth(at).unwrap_or(0);
        let comm = reading.weaver.intern_comm("");
        let count = count.map_or(1, value);
        let (at, cpu, pid, tid) = (None, None, None, None);
        reading.samples.push(StackSample { at, cpu, pid, tid, comm, leaf, count, weight: value(weight) });
        frames.len()
    }

    /// The functions of a location, innermost first: all but the last are inlined.
    fn location_frames(&self, id: u64) -> impl Iterator<Item = StackFrame> {
        let location = self.locations.get(&id).copied();
        let mapping = location.and_then(|location| packed_numbers(location, 2).next()).unwrap_or(0);
        let module = self.mappings.get(&mapping).map(|file| self.text_at(*file).into_owned());
        let module = module.filter(|module| !module.is_empty());
        let is_kernel = module.as_deref().is_some_and(|module| module.contains("[kernel"));
        let kind = match location {
            None => FrameKind::Unknown,
            Some(_) if is_kernel => FrameKind::Kernel,
            Some(_) => FrameKind::User,
        };
        let lines = || {
            ProtobufFields(location.unwrap_or_default())
                .filter_map(Result::ok)
                .filter(|(number, _)| *number == LINE)
        };
        let unknown = lines()
            .next()
            .is_none()
            .then(|| StackFrame { module: module.clone(), ..StackFrame::new("[unknown]", kind) });
        let mut functions = lines().filter_map(|(_, line)| line_function_id(line)).peekable();
        let known = std::iter::from_fn(move || {
            let function = functions.next()?;
            let name = self.functions.get(&function).map_or("[unknown]".into(), |name| self.text_at(*name));
            let inlined = functions.peek().is_some();
            Some(StackFrame { module: module.clone(), inlined, ..StackFrame::new(&name, kind) })
        });
        unknown.into_iter().chain(known)
    }
}

/// A line of a location: which function it is of.
const LINE: u64 = 4;

fn line_function_id(line: ProtobufField<'_>) -> Option<u64> {
    let message = field_bytes(line).filter(|message| is_whole_message(message, &[]))?;
    packed_numbers(message, 1).next()
}

/// Fields of the message Profile.
mod field {

    pub(crate) const SAMPLE_TYPE: u32 = 1;

    pub(crate) const SAMPLE: u32 = 2;

    pub(crate) const LOCATION: u32 = 4;

    pub(crate) const FUNCTION: u32 = 5;

    pub(crate) const STRING_TABLE: u32 = 6;

    pub(crate) const DURATION_NANOS: u32 = 10;

    pub(crate) const PERIOD_TYPE: u32 = 11;

    pub(crate) const COMMENT: u32 = 13;
}

/// The largest value of a sample.
const LARGEST_VALUE: u64 = i64::MAX.cast_unsigned();

/// The file. A sample's command is its label `command`; a sample without a stack ends in `[no stack]`.
///
/// # Errors
/// Where it cannot be compressed in memory, which would be a mistake of ours.
pub fn write_pprof(chosen: ProfileSelection<'_>) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&pprof_message(chosen).into_bytes())?;
    encoder.finish()
}

fn pprof_message(chosen: ProfileSelection<'_>) -> ProtobufMessage {
    let mut texts = PprofStringTable::default();
    let mut profile = ProtobufMessage::default();
    let weight = weight_type(chosen);
    profile.push_message(field::SAMPLE_TYPE, value_type(&mut texts, "samples", "count"));
    profile.push_message(field::SAMPLE_TYPE, value_type(&mut texts, &weight.0, &weight.1));
    add_pprof_samples(chosen, &mut texts, &mut profile);
    add_pprof_functions(chosen, &mut texts, &mut profile);
    profile.push_number(field::DURATION_NANOS, profile_duration(chosen));
    profile.push_message(field::PERIOD_TYPE, value_type(&mut texts, &weight.0, &weight.1));
    let about = chosen.first_profiled();
    for comment in [Some(format!("{} from {}", about.event, about.source)), about.hides].into_iter().flatten()
    {
        let comment = texts.intern(&comment);
        profile.push_packed(field::COMMENT, [comment]);
    }
    texts.0.iter().for_each(|text| profile.push_bytes(field::STRING_TABLE, text.as_bytes()));
    profile
}

/// What weights are: `("cpu", "nanoseconds")`, `("cycles", "count")`.
fn weight_type(chosen: ProfileSelection<'_>) -> (String, String) {
    match chosen.first_profiled().unit.0.as_str() {
        "ns" => ("cpu".into(), "nanoseconds".into()),
        "1" | "" => ("weight".into(), "count".into()),
        unit => (unit.to_owned(), "count".into()),
    }
}

fn value_type(texts: &mut PprofStringTable, name: &str, unit: &str) -> ProtobufMessage {
    let mut value = ProtobufMessage::default();
    value.push_number(1, texts.intern(name));
    value.push_number(2, texts.intern(unit));
    value
}

/// Samples that are alike become one; locations are frames, counted from 1.
fn add_pprof_samples(
    chosen: ProfileSelection<'_>,
    texts: &mut PprofStringTable,
    profile: &mut ProtobufMessage,
) {
    let mut alike: HashMap<(CommId, Option<NodeId>), usize> = HashMap::new();
    let mut entries: Vec<(&str, Option<NodeId>, u64, u64)> = Vec::new();
    for sample in chosen.selected_samples() {
        let at = *alike.entry((sample.comm, sample.leaf)).or_insert_with(|| {
            entries.push((chosen.comm_of(sample), sample.leaf, 0, 0));
            entries.len() - 1
        });
        if let Some(entry) = entries.get_mut(at) {
            // pprof's values are signed.
            entry.2 = entry.2.saturating_add(sample.count).min(LARGEST_VALUE);
            entry.3 = entry.3.saturating_add(sample.weight).min(LARGEST_VALUE);
        }
    }
    let key = texts.intern("command");
    let nothing = chosen.profile.frames.len() as u64 + 1;
    for (comm, leaf, count, weight) in entries {
        let frames: Vec<u64> =
            chosen.frames_innermost_first(leaf).into_iter().map(|frame| u64::from(frame.0) + 1).collect();
        let mut label = ProtobufMessage::default();
        label.push_number(1, key);
        label.push_number(2, texts.intern(comm));
        let mut sample = ProtobufMessage::default();
        sample.push_packed(1, if frames.is_empty() { vec![nothing] } else { frames });
        sample.push_packed(2, [count, weight]);
        sample.push_message(3, label);
        profile.push_message(field::SAMPLE, sample);
    }
}

/// A function and a location for each frame, and one for no stack.
fn add_pprof_functions(
    chosen: ProfileSelection<'_>,
    texts: &mut PprofStringTable,
    profile: &mut ProtobufMessage,
) {
    let known = chosen.profile.frames.iter();
    let known =
        known.map(|frame| (frame.name.as_str(), frame.raw_name(), frame.module.as_deref().unwrap_or("")));
    for (id, (name, raw, module)) in (1..).zip(known.chain([("[no stack]", "[no stack]", "")])) {
        let mut function = ProtobufMessage::default();
        function.push_number(1, id);
        function.push_number(2, texts.intern(name));
        function.push_number(3, texts.intern(raw));
        function.push_number(4, texts.intern(module));
        profile.push_message(field::FUNCTION, function);
        let mut line = ProtobufMessage::default();
        line.push_number(1, id);
        let mut location = ProtobufMessage::default();
        location.push_number(1, id);
        location.push_message(4, line);
        profile.push_message(field::LOCATION, location);
    }
}

/// From the first to the last sample, in nanoseconds; 0 where the source has no times.
fn profile_duration(chosen: ProfileSelection<'_>) -> u64 {
    let times = || chosen.selected_samples().filter_map(|sample| sample.at);
    times().max().zip(times().min()).map_or(0, |(last, first)| last.since(first).0)
}

/// The table of strings; number 0 is the empty one.
struct PprofStringTable(IndexSet<String>);

impl Default for PprofStringTable {
    fn default() -> Self {
        PprofStringTable(IndexSet::from([String::new()]))
    }
}

impl PprofStringTable {
    fn intern(&mut self, text: &str) -> u64 {
        match self.0.get_index_of(text) {
            Some(known) => known as u64,
            None => self.0.insert_full(text.to_owned()).0 as u64,
        }
    }
}

/// A message that is being written.
#[derive(Debug, Default)]
struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    /// A number; 0 is what a missing field means, and is left out.
    fn push_number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.push_varint(u64::from(field) << 3);
            self.push_varint(value);
        }
    }

    /// Bytes: a text, or another message.
    fn push_bytes(&mut self, field: u32, value: &[u8]) {
        self.push_varint(u64::from(field) << 3 | 2);
        self.push_varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// A message within this one.
    fn push_message(&mut self, field: u32, value: ProtobufMessage) {
        self.push_bytes(field, &value.0);
    }

    /// Many numbers in one field.
    fn push_packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut packed = ProtobufMessage::default();
        values.into_iter().for_each(|value| packed.push_varint(value));
        self.push_message(field, packed);
    }

    fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn push_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 & 0x7f | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn encode_number_field(field: u8, value: u8) -> Vec<u8> {
        vec![field << 3, value]
    }

    fn encode_bytes_field(field: u8, content: &[u8]) -> Vec<u8> {
        [&[field << 3 | 2, content.len() as u8], content].concat()
    }

    /// Two samples: main;work (inlined into main) and main alone.
    fn encode_profile() -> Vec<u8> {
        let line = |function: u8| encode_bytes_field(4, &encode_number_field(1, function));
        [
            encode_bytes_field(1, &[encode_number_field(1, 1), encode_number_field(2, 2)].concat()),
            encode_bytes_field(1, &[encode_number_field(1, 3), encode_number_field(2, 4)].concat()),
            encode_bytes_field(2, &[encode_bytes_field(1, &[1]), encode_bytes_field(2, &[3, 90])].concat()),
            encode_bytes_field(2, &[encode_bytes_field(1, &[2]), encode_bytes_field(2, &[2, 20])].concat()),
            encode_bytes_field(3, &[encode_number_field(1, 7), encode_number_field(5, 7)].concat()),
            encode_bytes_field(
                4,
                &[encode_number_field(1, 1), encode_number_field(2, 7), line(2), line(1)].concat(),
            ),
            encode_bytes_field(4, &[encode_number_field(1, 2), encode_number_field(2, 7), line(1)].concat()),
            encode_bytes_field(5, &[encode_number_field(1, 1), encode_number_field(2, 5)].concat()),
            encode_bytes_field(5, &[encode_number_field(1, 2), encode_number_field(2, 6)].concat()),
            ["", "samples", "count", "cpu", "nanoseconds", "main", "work", "/bin/tool"]
                .map(|text| encode_bytes_field(6, text.as_bytes()))
                .concat(),
        ]
        .concat()
    }

    #[test]
    fn inlined_functions_units_and_gzip_are_understood() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&encode_profile()).unwrap();
        for bytes in [encode_profile(), packed.finish().unwrap()] {
            assert!(is_pprof(&bytes));
            let imported = read_pprof(&bytes).unwrap().finish();
            let frames: Vec<_> =
                imported.batch.frames.iter().map(|one| (one.name.as_str(), one.inlined)).collect();
            assert_eq!(frames, [("main", false), ("work", true)]);
            assert_eq!(imported.batch.frames[0].module.as_deref(), Some("/bin/tool"));
            let samples: Vec<_> = imported.batch.samples.iter().map(|one| (one.count, one.weight)).collect();
            assert_eq!(samples, [(3, 90), (2, 20)]);
            assert_eq!((imported.about.event.as_str(), imported.about.unit.0.as_str()), ("cpu", "ns"));
        }
    }

    #[test]
    fn a_cut_profile_names_the_byte() {
        let bytes = encode_profile();
        let (place, reason) = read_pprof(&bytes[..bytes.len() - 3]).map(drop).unwrap_err();
        assert!(matches!(place, Some(ProfilePosition::Offset(at)) if at > 50), "{place:?}");
        insta::assert_snapshot!(reason, @"a field that is longer than its message");
    }

    #[test]
    fn a_few_bytes_that_grow_without_end_are_refused() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&vec![0; 8 << 20]).unwrap();
        let (_, reason) = read_pprof(&packed.finish().unwrap()).map(drop).unwrap_err();
        assert!(reason.starts_with("gzip: it grows to more than 3 MiB, 400 times its size"), "{reason}");
        // One location of many lines, asked for again and again by one sample.
        let long = |field: u8, content: &[u8]| {
            let length = content.len();
            let varint = [length & 0x7f | 0x80, length >> 7 & 0x7f | 0x80, length >> 14].map(|one| one as u8);
            [&[field << 3 | 2], varint.as_slice(), content].concat()
        };
        let lines = encode_bytes_field(4, &encode_number_field(1, 1)).repeat(20_000);
        let location = long(4, &[encode_number_field(1, 1), lines].concat());
        let deep =
            [location, long(2, &encode_bytes_field(1, &[1; 100]).repeat(1000)), encode_profile()].concat();
        let imported = read_pprof(&deep).unwrap().finish();
        assert!(imported.batch.nodes.len() <= DEEPEST_STACK + 3, "{}", imported.batch.nodes.len());
        assert!(imported.notes[0].message.starts_with("1 stacks are deeper than 4096 frames"));
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_pprof(&bytes);
            let _ = is_pprof(&bytes);
        }
    }
}
