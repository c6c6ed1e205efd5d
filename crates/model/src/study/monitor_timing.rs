//! When a monitor is read: on a clock, or at the edges of iterations only.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::quantity::Nanos;

/// When a monitor is read. On a clock, one that counts is read at the edges of iterations too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MonitorTiming {
    /// each time this much has passed: `"100ms"`
    Every(Nanos),
    /// when an iteration begins and when it has ended, and not between: `"edges"`
    Edges,
    /// not at all, although its preset has it: `"off"`
    Off,
}

const OFF: &str = "off";

const EDGES: &str = "edges";

impl MonitorTiming {
    /// What to write in place of less than the shortest time between readings.
    pub const SHORTEST_HINT: &str = "1ms is the shortest interval; 100ms suits most";

    /// Whether it is read more often than any monitor can be.
    pub fn is_too_often(self) -> bool {
        self.interval().is_some_and(|interval| interval.0 < 1_000_000)
    }

    /// The time between ticks; none where there are no ticks.
    pub fn interval(self) -> Option<Nanos> {
        match self {
            MonitorTiming::Every(interval) => Some(interval),
            MonitorTiming::Edges | MonitorTiming::Off => None,
        }
    }
}

impl<'de> Deserialize<'de> for MonitorTiming {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == EDGES {
            return Ok(MonitorTiming::Edges);
        }
        if text == OFF {
            return Ok(MonitorTiming::Off);
        }
        let interval = Nanos::parse(&text);
        interval.map(MonitorTiming::Every).map_err(|error| {
            serde::de::Error::custom(format!("{error}; or `{EDGES}`: only when iterations begin and end"))
        })
    }
}

impl Serialize for MonitorTiming {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            MonitorTiming::Every(interval) => serializer.collect_str(&format_args!("{}ns", interval.0)),
            MonitorTiming::Edges => serializer.serialize_str(EDGES),
            MonitorTiming::Off => serializer.serialize_str(OFF),
        }
    }
}

impl JsonSchema for MonitorTiming {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MonitorTiming".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "The time between readings, a number with ns, us, ms, s, min, h or d; or edges: only when iterations begin and end; or off.",
            "pattern": "^([0-9]+([.][0-9]+)? *(ns|us|µs|ms|s|min|m|h|d)|edges|off)$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timing_is_a_time_or_the_edges() {
        let parse = |text: &str| serde_json::from_str::<MonitorTiming>(&format!("{text:?}"));
        assert_eq!(parse("100ms").unwrap(), MonitorTiming::Every(Nanos(100_000_000)));
        assert_eq!(parse("edges").unwrap(), MonitorTiming::Edges);
        assert!(parse("edge").is_err() && parse("").is_err());
        for timing in [MonitorTiming::Every(Nanos(7)), MonitorTiming::Edges, MonitorTiming::Off] {
            let text = serde_json::to_string(&timing).unwrap();
            assert_eq!(serde_json::from_str::<MonitorTiming>(&text).unwrap(), timing);
        }
    }
}
