//! `[counters]`: events that perf_event_open counts, of the workload and on each CPU.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `[counters]`: what is counted of the workload, and on each CPU. When they are read is said as of every monitor: `counters` and
/// `cpu-counters` under `[monitors]`, at the edges of iterations where nothing is said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CountersSpec {
    /// Events of the workload and of all that it starts, by perf's names: `["instructions", "cycles", "sched:sched_switch"]`.
    #[serde(default, skip_serializing_if = "CounterGroups::is_empty")]
    pub events: CounterGroups,
    /// Events on each CPU, whoever runs there: `["cycles", "uncore_imc_0/cas_count_read/"]`.
    #[serde(default, skip_serializing_if = "CounterGroups::is_empty")]
    pub cpus: CounterGroups,
}

impl CountersSpec {
    /// The monitor of the workload's counters, which is where the workload is.
    pub const WORKLOAD_MONITOR: &str = "counters";

    /// The monitor of the CPUs' counters.
    pub const CPU_MONITOR: &str = "cpu-counters";

    /// Whether a monitor reads what a study's `[counters]` name.
    pub fn is_monitor(name: &str) -> bool {
        [Self::WORKLOAD_MONITOR, Self::CPU_MONITOR].contains(&name)
    }

    /// The monitors that read them: those of which there is anything to count.
    pub fn monitors(&self) -> impl Iterator<Item = &'static str> {
        let all = [(Self::WORKLOAD_MONITOR, &self.events), (Self::CPU_MONITOR, &self.cpus)];
        all.into_iter().filter(|(_, groups)| !groups.is_empty()).map(|(name, _)| name)
    }
}

/// Events, each alone or several in a list of their own, which are then counted at the same times: of a ratio, both sides.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CounterGroups(pub Vec<Vec<String>>);

impl CounterGroups {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads a list as perf's `-e` takes it: `task-clock,{instructions,cycles},cpu/event=0x3c,umask=0x0/`.
    ///
    /// # Errors
    /// Braces that do not match, or nothing between commas.
    pub fn parse_list(text: &str) -> Result<Self, String> {
        let mut groups = Vec::new();
        for element in split_outside(text, |letter, depth| letter == ',' && depth == 0)? {
            let inner = element.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            let group = match inner {
                Some(inner) => split_outside(inner, |letter, _| letter == ',')?,
                None => vec![element],
            };
            if group.iter().any(|name| name.is_empty() || name.contains(['{', '}'])) {
                return Err(format!(
                    "`{text}` is no list of events such as `task-clock,{{instructions,cycles}}`"
                ));
            }
            groups.push(group);
        }
        Ok(CounterGroups(groups))
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().map(String::as_str)
    }
}

/// Splits where `ends` says so of a letter outside of the slashes of a unit, given how many braces are open.
fn split_outside(text: &str, ends: impl Fn(char, i32) -> bool) -> Result<Vec<String>, String> {
    let (mut parts, mut part, mut is_in_unit, mut depth) = (Vec::new(), String::new(), false, 0);
    for letter in text.chars() {
        match letter {
            '/' => is_in_unit = !is_in_unit,
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if !is_in_unit && ends(letter, depth) {
            parts.push(part.trim().to_owned());
            part.clear();
        } else {
            part.push(letter);
        }
    }
    parts.push(part.trim().to_owned());
    if depth == 0 { Ok(parts) } else { Err(format!("`{text}`: the braces do not match")) }
}

impl<'de> Deserialize<'de> for CounterGroups {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(GroupsVisitor)
    }
}

struct GroupsVisitor;

impl<'de> Visitor<'de> for GroupsVisitor {
    type Value = CounterGroups;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events, or of lists of events that are counted at the same times")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<CounterGroups, A::Error> {
        let mut groups = Vec::new();
        while let Some(EventGroupText(group)) = seq.next_element()? {
            groups.push(group);
        }
        Ok(CounterGroups(groups))
    }
}

/// One element: a name, or a list of them.
struct EventGroupText(Vec<String>);

impl<'de> Deserialize<'de> for EventGroupText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EventGroupVisitor)
    }
}

struct EventGroupVisitor;

impl<'de> Visitor<'de> for EventGroupVisitor {
    type Value = EventGroupText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event, or a list of events")
    }

    fn visit_str<E>(self, text: &str) -> Result<EventGroupText, E> {
        Ok(EventGroupText(vec![text.to_owned()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<EventGroupText, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(EventGroupText)
    }
}

impl Serialize for CounterGroups {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for group in &self.0 {
            match group.as_slice() {
                [one] => seq.serialize_element(one)?,
                several => seq.serialize_element(several)?,
            }
        }
        seq.end()
    }
}

impl JsonSchema for CounterGroups {
    fn schema_name() -> Cow<'static, str> {
        "CounterGroups".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "array",
            "description": "Events by perf's names; those in a list of their own are counted at the same times.",
            "items": {
                "anyOf": [
                    { "type": "string" },
                    { "type": "array", "items": { "type": "string" } }
                ]
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_that_of_perf() {
        let parse = |text: &str| CounterGroups::parse_list(text).map(|groups| groups.0);
        assert_eq!(
            parse("task-clock,{instructions,cycles},cpu/event=0x3c,umask=0x0/u, sched:sched_switch").unwrap(),
            [
                vec!["task-clock"],
                vec!["instructions", "cycles"],
                vec!["cpu/event=0x3c,umask=0x0/u"],
                vec!["sched:sched_switch"]
            ]
        );
        assert!(["", "a,,b", "{a,b", "a}", "{a,{b}}"].iter().all(|text| parse(text).is_err()));
    }

    #[test]
    fn events_stand_alone_or_in_groups_and_are_written_as_they_are_read() {
        let text = r#"{"events":["task-clock",["instructions","cycles"]]}"#;
        let spec: CountersSpec = serde_json::from_str(text).unwrap();
        assert_eq!(spec.events.0, [vec!["task-clock"], vec!["instructions", "cycles"]]);
        assert_eq!(spec.events.names().count(), 3);
        assert_eq!(serde_json::to_string(&spec).unwrap(), text);
        assert_eq!(spec.monitors().collect::<Vec<_>>(), ["counters"]);
        assert!(serde_json::from_str::<CountersSpec>(r#"{"events":[1]}"#).is_err());
        assert!(serde_json::from_str::<CountersSpec>(r#"{"event":[]}"#).is_err());
    }
}
