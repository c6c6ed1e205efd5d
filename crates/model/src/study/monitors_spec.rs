//! `[monitors]`: which monitors are read, when, and what they may cost.

use std::fmt;
use std::ops::{Deref, DerefMut};

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::MonitorTiming;
use crate::problem::Problem;
use crate::quantity::{DurationText, Nanos, Ratio};

/// `[monitors]`: a preset, what it may cost, and single monitors by their names.
///
/// A study as it is carried out has every monitor by its name, and no preset any more.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MonitorsSpec {
    /// Monitors by the name of what one wants to know: `memory`.
    pub preset: Option<String>,
    /// The time between readings of those of the preset that are not named otherwise; a second where it is not said.
    pub every: Option<DurationText>,
    /// What all of them together may take of one CPU.
    pub budget: Option<MonitorBudget>,
    /// Monitor = when it is read; of those that cost too much, the last is slowed first.
    each: IndexMap<String, MonitorTiming>,
}

/// The time between readings of a preset's monitors.
const EVERY: Nanos = Nanos(1_000_000_000);

impl MonitorsSpec {
    /// Without any monitor.
    pub fn clear(&mut self) {
        *self = MonitorsSpec::default();
    }

    /// What is wrong with `every`, once for all monitors of the preset that get it.
    pub(crate) fn every_problem(&self) -> Option<Problem> {
        let every = MonitorTiming::Every(self.every?.0);
        every.is_too_often().then(|| {
            Problem::new(format!("monitors.{EVERY_KEY}"), "is too often")
                .with_hint(MonitorTiming::SHORTEST_HINT)
        })
    }

    /// Puts the monitors of the preset in its place: those that are named beside it stay as they are said, in the order of the
    /// preset, and those that are off go.
    pub fn resolve(&mut self, preset: &[&str]) {
        let every = self.every.take().map_or(EVERY, |text| text.0);
        let mut named = std::mem::take(&mut self.each);
        for name in preset {
            let timing = named.shift_remove(*name).unwrap_or(MonitorTiming::Every(every));
            self.each.insert((*name).to_owned(), timing);
        }
        self.each.extend(named);
        self.each.retain(|_, timing| *timing != MonitorTiming::Off);
        self.preset = None;
    }
}

impl Deref for MonitorsSpec {
    type Target = IndexMap<String, MonitorTiming>;

    fn deref(&self) -> &Self::Target {
        &self.each
    }
}

impl DerefMut for MonitorsSpec {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.each
    }
}

impl FromIterator<(String, MonitorTiming)> for MonitorsSpec {
    fn from_iter<I: IntoIterator<Item = (String, MonitorTiming)>>(monitors: I) -> Self {
        MonitorsSpec { each: monitors.into_iter().collect(), ..MonitorsSpec::default() }
    }
}

/// What monitors may cost: a share of one CPU, above 0 and at most all of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MonitorBudget(pub Ratio);

impl<'de> Deserialize<'de> for MonitorBudget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let ratio = Ratio::parse(&text).map_err(serde::de::Error::custom)?;
        if ratio.0 > 0.0 && ratio.0 <= 1.0 {
            return Ok(MonitorBudget(ratio));
        }
        Err(serde::de::Error::custom(format!(
            "`{text}` is no share of a CPU: write a part of it, such as `1%`"
        )))
    }
}

impl Serialize for MonitorBudget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}%", self.0.0 * 100.0))
    }
}

const PRESET_KEY: &str = "preset";
const EVERY_KEY: &str = "every";
const BUDGET_KEY: &str = "budget";

impl<'de> Deserialize<'de> for MonitorsSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MonitorsVisitor)
    }
}

struct MonitorsVisitor;

impl<'de> Visitor<'de> for MonitorsVisitor {
    type Value = MonitorsSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("monitors, each with the time between readings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MonitorsSpec, A::Error> {
        let mut found = MonitorsSpec::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                PRESET_KEY => found.preset = Some(map.next_value()?),
                EVERY_KEY => found.every = Some(map.next_value()?),
                BUDGET_KEY => found.budget = Some(map.next_value()?),
                _ => drop(found.each.insert(key, map.next_value()?)),
            }
        }
        Ok(found)
    }
}

impl Serialize for MonitorsSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(preset) = &self.preset {
            map.serialize_entry(PRESET_KEY, preset)?;
        }
        if let Some(every) = &self.every {
            map.serialize_entry(EVERY_KEY, every)?;
        }
        if let Some(budget) = &self.budget {
            map.serialize_entry(BUDGET_KEY, budget)?;
        }
        for (name, timing) in &self.each {
            map.serialize_entry(name, timing)?;
        }
        map.end()
    }
}

impl JsonSchema for MonitorsSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Monitors".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "description": "Which monitors are read, when, and what they may cost.",
            "properties": {
                PRESET_KEY: {
                    "type": "string",
                    "description": "Monitors by the name of what one wants to know: default, all, memory, scheduler, io, network. Single ones are added or left out (off) beside it."
                },
                EVERY_KEY: generator.subschema_for::<DurationText>(),
                BUDGET_KEY: {
                    "type": "string",
                    "description": "What all monitors together may take of one CPU: 1%. What costs more is slowed, and at last left out, from the last one on.",
                    "pattern": "^[0-9]+([.][0-9]+)? *%$"
                }
            },
            "additionalProperties": generator.subschema_for::<MonitorTiming>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<MonitorsSpec, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn a_preset_has_single_monitors_added_and_taken_away() {
        let text = "preset = 'memory'\nbudget = '1%'\nslabinfo = '1s'\nmeminfo = 'off'\nvmstat = 'edges'";
        let mut spec = parse(text).unwrap();
        assert_eq!(
            serde_json::from_value::<MonitorsSpec>(serde_json::to_value(&spec).unwrap()).unwrap(),
            spec
        );
        spec.resolve(&["vmstat", "meminfo", "pressure"]);
        let all: Vec<(&str, MonitorTiming)> =
            spec.iter().map(|(name, timing)| (name.as_str(), *timing)).collect();
        let second = MonitorTiming::Every(Nanos(1_000_000_000));
        assert_eq!(all, [("vmstat", MonitorTiming::Edges), ("pressure", second), ("slabinfo", second)]);
        assert_eq!((spec.preset, spec.budget), (None, Some(MonitorBudget(Ratio(0.01)))));
    }

    #[test]
    fn what_a_preset_is_read_by_is_wrong_once() {
        let problem =
            |every: &str| parse(&format!("preset = 'memory'\nevery = '{every}'")).unwrap().every_problem();
        for wrong in ["0s", "999us"] {
            assert_eq!(problem(wrong).map(|problem| problem.key).as_deref(), Some("monitors.every"));
        }
        assert_eq!(problem("1ms").map(|problem| problem.key), None);
    }

    #[test]
    fn a_budget_is_a_share_of_a_cpu() {
        for wrong in ["0%", "-1%", "101%", "1", "much"] {
            assert!(parse(&format!("budget = '{wrong}'")).is_err(), "{wrong}");
        }
        assert_eq!(parse("budget = '100%'").unwrap().budget, Some(MonitorBudget(Ratio(1.0))));
    }
}
