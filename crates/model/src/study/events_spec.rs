//! `[events.NAME]`: tracepoints of the kernel whose values, or the times between two of them, are counted where they happen.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The monitor that reads what a study's `[events]` count.
pub const EVENTS_MONITOR: &str = "events";

/// Keys that an event keeps apart where the study does not say how many.
pub const DEFAULT_EVENT_KEYS: u32 = 64;

/// Pairs that have begun and not ended, where the study does not say how many.
pub const DEFAULT_IN_FLIGHT: u32 = 16_384;

/// `[events.NAME]`: a tracepoint, a pair of them, or a recipe by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EventSpec {
    /// A pair or tracepoint that perflab knows by name (`perflab event list`); what stands beside it takes the place of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// What is kept of each: how many there were, or their values too. By default values where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<KeptOfEvents>,
    /// The tracepoint: `"block:block_rq_issue"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Which of them count, as the kernel's event filters say it: `"bytes > 4096 && rwbs == \"W\""`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The field whose values are kept: `"bytes"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The unit of these values (default: 1); times of pairs are nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// What a pair begins with: a tracepoint, or several of which each begins one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<PairBegins>,
    /// What it ends with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<TracepointSpec>,
    /// What begin and end have in common: a field that both have, or two, or `"task"`: the task that runs (default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<FieldNames>,
    /// What is told apart: a field, or two, of the end or else of the begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<FieldNames>,
    /// How many keys are told apart (default: 64); what comes after is `other`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<u32>,
    /// Whose events count (default: the machine's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<EventOwner>,
    /// How many pairs may have begun and not ended at a time (default: 16384); more are counted as lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<u32>,
}

/// What is kept of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeptOfEvents {
    /// how many there were, and their sum and largest where they have a value
    Count,
    /// how often each value was there, in buckets of which 16 cover a power of two: percentiles are right to 3.2 %
    Histogram,
}

/// Whose events count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventOwner {
    /// everybody's, the kernel's own included
    #[default]
    Machine,
    /// those that happen while a task of the workload runs: of a pair, its begin
    Workload,
}

impl EventOwner {
    /// As a study has it.
    pub fn name(self) -> &'static str {
        match self {
            EventOwner::Machine => "machine",
            EventOwner::Workload => "workload",
        }
    }
}

/// One end of a pair: a tracepoint, by its name alone or with what is particular to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TracepointSpec {
    /// `GROUP:NAME`.
    pub event: String,
    /// What it has in common with the other end, where that has another name here.
    pub by: Option<FieldNames>,
    /// Which of them count.
    pub filter: Option<String>,
    /// The field that says whose it is, where that is not the task that runs: `pid` of `sched:sched_wakeup`.
    pub task: Option<String>,
}

/// As it is written in full.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TracepointTable {
    event: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<FieldNames>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filter: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<String>,
}

impl Serialize for TracepointSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let TracepointSpec { event, by, filter, task } = self.clone();
        match (&by, &filter, &task) {
            (None, None, None) => event.serialize(serializer),
            _ => TracepointTable { event, by, filter, task }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for TracepointSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TracepointVisitor)
    }
}

/// Written by hand, because an untagged enum would answer every slip with "did not match any variant".
struct TracepointVisitor;

impl<'de> Visitor<'de> for TracepointVisitor {
    type Value = TracepointSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tracepoint, GROUP:NAME, or a table with `event`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<TracepointSpec, E> {
        Ok(TracepointSpec { event: text.into(), ..TracepointSpec::default() })
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<TracepointSpec, A::Error> {
        let table = TracepointTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
        let TracepointTable { event, by, filter, task } = table;
        Ok(TracepointSpec { event, by, filter, task })
    }
}

impl JsonSchema for TracepointSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TracepointSpec".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<TracepointTable>();
        json_schema!({
            "description": "A tracepoint: GROUP:NAME, or a table with `event`, and what is particular to it here.",
            "anyOf": [{ "type": "string" }, table],
        })
    }
}

/// What a pair begins with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PairBegins(pub Vec<TracepointSpec>);

impl Serialize for PairBegins {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_one_or_list(&self.0, serializer)
    }
}

/// A single one is written without a list.
fn serialize_one_or_list<S: Serializer>(items: &[impl Serialize], serializer: S) -> Result<S::Ok, S::Error> {
    match items {
        [one] => one.serialize(serializer),
        several => several.serialize(serializer),
    }
}

impl<'de> Deserialize<'de> for PairBegins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PairBeginsVisitor)
    }
}

struct PairBeginsVisitor;

impl<'de> Visitor<'de> for PairBeginsVisitor {
    type Value = PairBegins;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tracepoint, GROUP:NAME, a table with `event`, or a list of them")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<PairBegins, E> {
        TracepointVisitor.visit_str(text).map(|one| PairBegins(vec![one]))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<PairBegins, A::Error> {
        TracepointVisitor.visit_map(map).map(|one| PairBegins(vec![one]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<PairBegins, A::Error> {
        Vec::deserialize(de::value::SeqAccessDeserializer::new(list)).map(PairBegins)
    }
}

impl JsonSchema for PairBegins {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PairBegins".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<TracepointSpec>();
        json_schema!({
            "description": "What a pair begins with: a tracepoint, or several of which each begins one.",
            "anyOf": [one, { "type": "array", "items": one }],
        })
    }
}

/// Fields of a tracepoint: one, or a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldNames(pub Vec<String>);

impl FieldNames {
    /// The word for the task that runs, which is in no record.
    pub const TASK: &str = "task";
}

impl Serialize for FieldNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_one_or_list(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for FieldNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldNamesVisitor)
    }
}

struct FieldNamesVisitor;

impl<'de> Visitor<'de> for FieldNamesVisitor {
    type Value = FieldNames;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field, or a list of names")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<FieldNames, E> {
        Ok(FieldNames(vec![text.into()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<FieldNames, A::Error> {
        Vec::deserialize(de::value::SeqAccessDeserializer::new(list)).map(FieldNames)
    }
}

impl JsonSchema for FieldNames {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FieldNames".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A field of a tracepoint, or two.",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
        })
    }
}

/// Parts of a tracepoint's name: `sched`, `sched_switch`.
pub fn split_tracepoint_name(name: &str) -> Option<(&str, &str)> {
    name.split_once(':').filter(|(group, event)| is_kernel_file_name(group) && is_kernel_file_name(event))
}

/// Whether it may stand below a folder of sysfs or tracefs, and leads nowhere else.
pub fn is_kernel_file_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('.')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-.".contains(letter))
}

impl EventSpec {
    /// Whether it is a pair.
    pub fn is_pair(&self) -> bool {
        self.begin.is_some() || self.end.is_some()
    }

    /// What is kept, where the study does not say.
    pub fn kept(&self) -> KeptOfEvents {
        let has_values = self.is_pair() || self.value.is_some();
        self.keep.unwrap_or(if has_values { KeptOfEvents::Histogram } else { KeptOfEvents::Count })
    }

    /// The tracepoint, or those of the pair: `sched:sched_wakeup to sched:sched_switch`; empty where a recipe names them.
    pub fn describe_tracepoints(&self) -> String {
        let begins = self.begin.iter().flat_map(|begins| &begins.0).map(|begin| begin.event.as_str());
        match &self.end {
            Some(end) => format!("{} to {}", begins.collect::<Vec<_>>().join(" or "), end.event),
            None => self.event.clone().unwrap_or_default(),
        }
    }

    /// The unit of its values.
    pub fn value_unit(&self) -> &str {
        if self.is_pair() { "ns" } else { self.unit.as_deref().unwrap_or("1") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<EventSpec, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn tracepoints_are_written_short_or_in_full_and_come_back_as_they_were() {
        for text in [
            r#"{"event":"block:block_rq_issue","value":"bytes","unit":"bytes","key":["dev","rwbs"]}"#,
            r#"{"begin":"raw_syscalls:sys_enter","end":"raw_syscalls:sys_exit","by":"task","key":"id"}"#,
            r#"{"begin":["a:b",{"event":"a:c","by":"prev_pid","filter":"x == 1","task":"prev_pid"}],"end":{"event":"a:d","by":["next_pid","cpu"]}}"#,
        ] {
            let spec = parse(text).unwrap();
            assert_eq!(serde_json::to_string(&spec).unwrap(), text);
        }
        assert!(parse(r#"{"event":1}"#).is_err() && parse(r#"{"keep":"rows"}"#).is_err());
        assert!(parse(r#"{"begin":{"evnt":"a:b"}}"#).is_err());
    }

    #[test]
    fn what_is_kept_and_in_which_unit_follows_from_what_is_there() {
        let kept = |text: &str| (parse(text).unwrap().kept(), parse(text).unwrap().value_unit().to_owned());
        assert_eq!(kept(r#"{"event":"a:b"}"#), (KeptOfEvents::Count, "1".into()));
        assert_eq!(
            kept(r#"{"event":"a:b","value":"c","unit":"bytes"}"#),
            (KeptOfEvents::Histogram, "bytes".into())
        );
        assert_eq!(kept(r#"{"begin":"a:b","end":"a:c"}"#), (KeptOfEvents::Histogram, "ns".into()));
        assert_eq!(kept(r#"{"begin":"a:b","end":"a:c","keep":"count"}"#).0, KeptOfEvents::Count);
    }
}
