//! pprof: a protobuf of samples, locations and functions, mostly gzipped.
//!
//! Owns the few fields that a profile needs, decoded by hand: the wire format is numbers and lengths. Refuses a message
//! whose lengths do not fit, naming the byte.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use perflab_model::profile::{Frame, FrameKind, NodeId, StackSample};
use perflab_model::{Nanos, Unit};

use crate::Place;
use crate::imported::Reading;

/// The most that a compressed profile may grow to.
const LARGEST: u64 = 4 << 30;

/// gzip, or a protobuf whose first field is one of a profile's messages.
pub(crate) fn looks(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
        || (bytes.first() == Some(&0x0a) && message(bytes).is_ok_and(|fields| fields.len() > 2))
}

/// A field: its number and its content.
#[derive(Debug, Clone, Copy)]
enum Content<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

pub(crate) fn read(bytes: &[u8]) -> Result<Reading, (Option<Place>, String)> {
    let unpacked = if bytes.starts_with(&[0x1f, 0x8b]) { unpacked(bytes)? } else { bytes.to_vec() };
    let fields = message(&unpacked).map_err(|(at, why)| (Some(Place::Offset(at)), why.to_owned()))?;
    let mut profile = Pprof::default();
    let mut broken = 0;
    for (number, content) in fields {
        broken += u64::from(profile.take(number, content).is_none());
    }
    let mut reading = profile.reading();
    reading.about.unreadable += broken;
    if broken > 0 {
        reading.remark(Place::Offset(0), format!("{broken} messages within it are not whole"));
    }
    Ok(reading)
}

fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, (Option<Place>, String)> {
    let mut out = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(LARGEST).read_to_end(&mut out);
    read.map_err(|error| (Some(Place::Offset(out.len() as u64)), format!("gzip, unpacked: {error}")))?;
    Ok(out)
}

/// The fields of a message; an error is the byte and the reason.
fn message(bytes: &[u8]) -> Result<Vec<(u64, Content<'_>)>, (u64, &'static str)> {
    let mut fields = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let at = (bytes.len() - rest.len()) as u64;
        let field = field(&mut rest).ok_or((at, "a field that is longer than its message"))?;
        fields.push(field);
    }
    Ok(fields)
}

fn field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Content<'a>)> {
    let key = varint(rest)?;
    let content = match key & 7 {
        0 => Content::Number(varint(rest)?),
        1 => Content::Bytes(split(rest, 8)?),
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            Content::Bytes(split(rest, length)?)
        }
        5 => Content::Bytes(split(rest, 4)?),
        _ => return None,
    };
    Some((key >> 3, content))
}

fn split<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (first, last) = rest.split_at_checked(length)?;
    *rest = last;
    Some(first)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
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

/// Numbers, packed into bytes or alone.
fn numbers(content: Content<'_>) -> Option<Vec<u64>> {
    match content {
        Content::Number(number) => Some(vec![number]),
        Content::Bytes(mut rest) => {
            let mut all = Vec::new();
            while !rest.is_empty() {
                all.push(varint(&mut rest)?);
            }
            Some(all)
        }
    }
}

fn bytes(content: Content<'_>) -> Option<&[u8]> {
    if let Content::Bytes(bytes) = content { Some(bytes) } else { None }
}

#[derive(Debug, Default)]
struct Sample {
    locations: Vec<u64>,
    values: Vec<u64>,
}

#[derive(Debug, Default)]
struct Location {
    mapping: u64,
    /// innermost first
    functions: Vec<u64>,
}

/// What of a profile matters here.
#[derive(Debug, Default)]
struct Pprof {
    texts: Vec<String>,
    /// type and unit of each value, as texts
    types: Vec<(u64, u64)>,
    samples: Vec<Sample>,
    locations: HashMap<u64, Location>,
    functions: HashMap<u64, u64>,
    mappings: HashMap<u64, u64>,
    begun: u64,
}

impl Pprof {
    /// Takes a field of the profile; `None` where it is not whole.
    fn take(&mut self, number: u64, content: Content<'_>) -> Option<()> {
        let inner = || message(bytes(content)?).ok();
        let one = |fields: &[(u64, Content<'_>)], wanted| {
            fields.iter().find_map(|(number, content)| match content {
                Content::Number(value) if *number == wanted => Some(*value),
                _ => None,
            })
        };
        match number {
            1 => {
                let fields = inner()?;
                self.types.push((one(&fields, 1).unwrap_or(0), one(&fields, 2).unwrap_or(0)));
            }
            2 => self.samples.push(sample(inner()?)?),
            3 => {
                let fields = inner()?;
                self.mappings.insert(one(&fields, 1)?, one(&fields, 5).unwrap_or(0));
            }
            4 => {
                let fields = inner()?;
                self.locations.insert(one(&fields, 1)?, location(&fields, one(&fields, 2).unwrap_or(0))?);
            }
            5 => {
                let fields = inner()?;
                self.functions.insert(one(&fields, 1)?, one(&fields, 2).unwrap_or(0));
            }
            6 => self.texts.push(String::from_utf8_lossy(bytes(content)?).into_owned()),
            9 => self.begun = numbers(content)?.first().copied()?,
            _ => {}
        }
        Some(())
    }

    fn text(&self, index: u64) -> &str {
        usize::try_from(index).ok().and_then(|index| self.texts.get(index)).map_or("", String::as_str)
    }

    fn reading(&self) -> Reading {
        let mut reading = Reading::default();
        reading.about.source = "pprof".into();
        let counted = |wanted: &str| self.types.iter().position(|(kind, _)| self.text(*kind) == wanted);
        let count = counted("samples").or_else(|| counted("sample"));
        // The last value is the one that pprof shows.
        let weight = self.types.len().saturating_sub(1);
        let (kind, unit) = self.types.get(weight).copied().unwrap_or_default();
        reading.about.event = self.text(kind).into();
        let unit = match self.text(unit) {
            "nanoseconds" => "ns",
            "count" | "" => "1",
            other => other,
        };
        reading.about.unit = Unit::new(unit);
        reading.begun = (self.begun > 0).then_some(Nanos(self.begun));
        for sample in &self.samples {
            self.add(&mut reading, sample, count, weight);
        }
        reading.note(
            "pprof has no times, and does not say what was lost",
            "import what the profiler recorded where you have it",
        );
        reading
    }

    fn add(&self, reading: &mut Reading, sample: &Sample, count: Option<usize>, weight: usize) {
        let mut leaf: Option<NodeId> = None;
        for id in sample.locations.iter().rev() {
            for frame in self.frames(*id) {
                let frame = reading.weaver.frame(frame);
                leaf = Some(reading.weaver.node(leaf, frame));
            }
        }
        let value = |at: usize| sample.values.get(at).copied().unwrap_or(0);
        let comm = reading.weaver.comm("");
        let count = count.map_or(1, value);
        let (at, cpu, pid, tid) = (None, None, None, None);
        reading.samples.push(StackSample { at, cpu, pid, tid, comm, leaf, count, weight: value(weight) });
    }

    /// The functions of a location, outermost first: all but the first are inlined.
    fn frames(&self, id: u64) -> Vec<Frame> {
        let Some(location) = self.locations.get(&id) else {
            return vec![Frame::new("[unknown]", FrameKind::Unknown)];
        };
        let module = self.mappings.get(&location.mapping).map(|file| self.text(*file).to_owned());
        let module = module.filter(|module| !module.is_empty());
        let is_kernel = module.as_deref().is_some_and(|module| module.contains("[kernel"));
        let kind = if is_kernel { FrameKind::Kernel } else { FrameKind::User };
        let name = |function: &u64| self.functions.get(function).map_or("[unknown]", |name| self.text(*name));
        if location.functions.is_empty() {
            return vec![Frame { module, ..Frame::new("[unknown]", kind) }];
        }
        let frame = |(depth, function): (usize, &u64)| Frame {
            module: module.clone(),
            inlined: depth > 0,
            ..Frame::new(name(function), kind)
        };
        location.functions.iter().rev().enumerate().map(frame).collect()
    }
}

fn sample(fields: Vec<(u64, Content<'_>)>) -> Option<Sample> {
    let mut sample = Sample::default();
    for (number, content) in fields {
        match number {
            1 => sample.locations.extend(numbers(content)?),
            2 => sample.values.extend(numbers(content)?),
            _ => {}
        }
    }
    Some(sample)
}

fn location(fields: &[(u64, Content<'_>)], mapping: u64) -> Option<Location> {
    let mut functions = Vec::new();
    for (_, content) in fields.iter().filter(|(number, _)| *number == 4) {
        let line = message(bytes(*content)?).ok()?;
        let function = line.into_iter().find(|(number, _)| *number == 1).map(|(_, content)| content)?;
        functions.extend(numbers(function)?);
    }
    Some(Location { mapping, functions })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn number(field: u8, value: u8) -> Vec<u8> {
        vec![field << 3, value]
    }

    fn part(field: u8, content: &[u8]) -> Vec<u8> {
        [&[field << 3 | 2, content.len() as u8], content].concat()
    }

    /// Two samples: main;work (inlined into main) and main alone.
    fn profile() -> Vec<u8> {
        let line = |function: u8| part(4, &number(1, function));
        [
            part(1, &[number(1, 1), number(2, 2)].concat()),
            part(1, &[number(1, 3), number(2, 4)].concat()),
            part(2, &[part(1, &[1]), part(2, &[3, 90])].concat()),
            part(2, &[part(1, &[2]), part(2, &[2, 20])].concat()),
            part(3, &[number(1, 7), number(5, 7)].concat()),
            part(4, &[number(1, 1), number(2, 7), line(2), line(1)].concat()),
            part(4, &[number(1, 2), number(2, 7), line(1)].concat()),
            part(5, &[number(1, 1), number(2, 5)].concat()),
            part(5, &[number(1, 2), number(2, 6)].concat()),
            ["", "samples", "count", "cpu", "nanoseconds", "main", "work", "/bin/tool"]
                .map(|text| part(6, text.as_bytes()))
                .concat(),
        ]
        .concat()
    }

    #[test]
    fn inlined_functions_units_and_gzip_are_understood() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&profile()).unwrap();
        for bytes in [profile(), packed.finish().unwrap()] {
            assert!(looks(&bytes));
            let imported = read(&bytes).unwrap().finish();
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
        let bytes = profile();
        let (place, reason) = read(&bytes[..bytes.len() - 3]).map(drop).unwrap_err();
        assert!(matches!(place, Some(Place::Offset(at)) if at > 50), "{place:?}");
        assert!(reason.contains("longer than its message"));
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
            let _ = looks(&bytes);
        }
    }
}
