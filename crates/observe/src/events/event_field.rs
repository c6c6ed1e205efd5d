//! A field of a tracepoint's record, as a BPF program loads it.

use std::env::consts::ARCH;

use perflab_formats::kernel::system_call::name_system_call;
use perflab_model::study::FieldNames;

use crate::io::trace_records::{TraceEventFormat, TraceField, TraceFieldKind};

/// Of a record, this much is looked at; as in events.bpf.c.
const MOST_RECORD: usize = 256;

/// The kernel's own fields at the head of each record, of which a BPF program gets others.
const HEAD: usize = 8;

/// Fields that are addresses of code, by the names that the kernel has for them.
const CODE: &[&str] = &["call_site", "caller", "ip", "function"];

/// Where a field comes from; numbers as in events.bpf.c.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldSource {
    Unsigned = 1,
    Signed = 2,
    Text = 3,
    LocatedText = 4,
    /// No field: the task that runs.
    Task = 5,
}

/// A field that a program loads, and how its value is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventField {
    pub(crate) offset: u16,
    pub(crate) size: u8,
    pub(crate) source: FieldSource,
    pub(crate) meaning: FieldMeaning,
}

/// What a number stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldMeaning {
    Number,
    /// a disk, by the kernel's number of it
    Device,
    SystemCall,
    /// an address of the kernel's code
    Code,
}

impl EventField {
    /// The task that runs.
    pub(crate) const TASK: EventField =
        EventField { offset: 0, size: 4, source: FieldSource::Task, meaning: FieldMeaning::Number };

    /// A field by name, or the task that runs.
    ///
    /// # Errors
    /// The tracepoint has no such field, or it is nothing that can be compared; with those that it has.
    pub(crate) fn find(name: &str, event: &str, format: &TraceEventFormat) -> Result<Self, String> {
        if let Some(field) = format.find_field(name)
            && field.offset >= HEAD
        {
            return Self::new(name, event, field);
        }
        if [FieldNames::TASK, "common_pid"].contains(&name) {
            return Ok(Self::TASK);
        }
        let known: Vec<&str> = format.field_names().collect();
        let near = perflab_model::nearest_name(name, known.iter().copied());
        let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        Err(format!("`{event}` has no field `{name}`; {near}it has {}", known.join(", ")))
    }

    fn new(name: &str, event: &str, field: TraceField) -> Result<Self, String> {
        let source = match field.kind {
            TraceFieldKind::Unsigned | TraceFieldKind::Device => FieldSource::Unsigned,
            TraceFieldKind::Signed => FieldSource::Signed,
            TraceFieldKind::Text => FieldSource::Text,
            TraceFieldKind::LocatedText => FieldSource::LocatedText,
            TraceFieldKind::Other => {
                return Err(format!("field `{name}` of `{event}` is neither a number nor a text"));
            }
        };
        let size = if source == FieldSource::Text { field.size.min(16) } else { field.size };
        if field.offset.saturating_add(size) > MOST_RECORD {
            return Err(format!("field `{name}` of `{event}` lies beyond the first {MOST_RECORD} bytes"));
        }
        // Both are at most what a record has.
        let (offset, size) = (field.offset as u16, size as u8);
        let meaning = match field.kind {
            TraceFieldKind::Device => FieldMeaning::Device,
            _ if name == "id" && event.starts_with("raw_syscalls:") => FieldMeaning::SystemCall,
            _ if CODE.contains(&name) && field.size == 8 => FieldMeaning::Code,
            _ => FieldMeaning::Number,
        };
        Ok(EventField { offset, size, source, meaning })
    }

    /// Whether it is a text.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.source, FieldSource::Text | FieldSource::LocatedText)
    }

    /// The first byte behind it in its record.
    pub(crate) fn end(&self) -> usize {
        if self.source == FieldSource::Task { 0 } else { usize::from(self.offset) + usize::from(self.size) }
    }

    /// A loaded value, as it is shown: a number, a disk as `major:minor`, a system call, an address, or the text up to its end.
    pub(crate) fn show(&self, words: &[u64]) -> String {
        let first = words.first().copied().unwrap_or(0);
        match self.source {
            FieldSource::Text | FieldSource::LocatedText => {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
                let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
                String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
            }
            // MAJOR and MINOR of include/linux/kdev_t.h
            _ if self.meaning == FieldMeaning::Device => format!("{}:{}", first >> 20, first & 0xf_ffff),
            FieldSource::Signed => {
                let name =
                    name_system_call(ARCH, first as i64).filter(|_| self.meaning == FieldMeaning::SystemCall);
                name.map_or_else(|| (first as i64).to_string(), str::to_owned)
            }
            FieldSource::Unsigned if first > i64::MAX as u64 => format!("{first:#x}"),
            FieldSource::Unsigned | FieldSource::Task => first.to_string(),
        }
    }
}
