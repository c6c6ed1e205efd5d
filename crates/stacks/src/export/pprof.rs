//! pprof's protobuf, compressed: <https://github.com/google/pprof/blob/main/proto/profile.proto>. Two values a
//! sample: its count, and its weight in the unit of the profile.

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use indexmap::IndexSet;
use perflab_model::profile::{CommId, NodeId};

use super::ProfileSelection;
use super::protobuf::ProtobufMessage;

/// Fields of the message Profile.
mod field {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const DURATION_NANOS: u32 = 10;
    pub(super) const PERIOD_TYPE: u32 = 11;
    pub(super) const COMMENT: u32 = 13;
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
