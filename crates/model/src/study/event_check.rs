//! What is wrong with a study's `[events]`, as far as its text says.

use indexmap::IndexMap;

use crate::problem::{Problem, suggest_name};
use crate::study::event_recipe::{EVENT_RECIPES, find_event_recipe};
use crate::study::events_spec::{EventSpec, KeptOfEvents, TracepointSpec, split_tracepoint_name};

/// Keys that are told apart, at most: each has a histogram a CPU.
const MOST_KEYS: u32 = 1024;

/// Pairs that have begun, at most.
const MOST_IN_FLIGHT: u32 = 1 << 20;

/// Tracepoints that a pair may begin with.
const MOST_BEGINS: usize = 4;

/// What is wrong with the event called `name`.
fn problems_of_event(name: &str, event: &EventSpec) -> Vec<Problem> {
    let key = |part: &str| format!("events.{name}.{part}");
    let mut found = Vec::new();
    let mut add = |part: &str, message: String, hint: &str| {
        found.push(Problem::new(key(part), message).with_hint(hint));
    };
    if let Some(recipe) = event.recipe.as_deref().filter(|recipe| find_event_recipe(recipe).is_none()) {
        let hint = suggest_name(recipe, EVENT_RECIPES.iter().map(|recipe| recipe.name));
        add("recipe", format!("there is no recipe `{recipe}`"), &hint);
        return found;
    }
    let spec = event.resolve();
    let pair_hint = "`event` is one tracepoint, `begin` and `end` are a pair";
    match (&spec.event, &spec.begin, &spec.end) {
        (None, None, None) => {
            add(
                "event",
                "nothing is named that could be counted".into(),
                "event = \"GROUP:NAME\", a pair of `begin` and `end`, or a `recipe`",
            );
        }
        (Some(_), None, None) | (None, Some(_), Some(_)) => {}
        (Some(_), ..) => add("event", "does not go with a pair".into(), pair_hint),
        (None, Some(_), None) => add("begin", "has no `end`".into(), pair_hint),
        (None, None, Some(_)) => add("end", "has no `begin`".into(), pair_hint),
    }
    let begins = spec.begin.iter().flat_map(|begins| &begins.0);
    let points = begins.map(|point| ("begin", point)).chain(spec.end.iter().map(|point| ("end", point)));
    let names = points.map(|(part, point)| (part, point.event.as_str()));
    for (part, event) in names.chain(spec.event.iter().map(|event| ("event", event.as_str()))) {
        if split_tracepoint_name(event).is_none() {
            add(part, format!("`{event}` is no tracepoint"), "GROUP:NAME, as in sched:sched_switch");
        }
    }
    if let Some(begins) = &spec.begin
        && !(1..=MOST_BEGINS).contains(&begins.0.len())
    {
        add("begin", format!("names {} tracepoints", begins.0.len()), "a pair begins with one of 1 to 4");
    }
    if spec.is_pair() && spec.value.is_some() {
        add("value", "does not go with a pair".into(), "the value of a pair is the time between its ends");
    }
    if spec.is_pair() && spec.filter.is_some() {
        add(
            "filter",
            "does not go with a pair".into(),
            "begin = { event = \"…\", filter = \"…\" }, or so at its end",
        );
    }
    if spec.is_pair() && spec.unit.is_some() {
        add("unit", "does not go with a pair".into(), "the time between its ends is in nanoseconds");
    }
    if spec.keep == Some(KeptOfEvents::Histogram) && !spec.is_pair() && spec.value.is_none() {
        add(
            "keep",
            "a histogram is one of values".into(),
            "name the field with `value`, or keep = \"count\"",
        );
    }
    let own_fields = begin_and_end(&spec).filter_map(|point| point.by.as_ref());
    let lists = [("by", &spec.by), ("key", &spec.key)];
    let lists = lists.into_iter().filter_map(|(part, names)| Some((part, names.as_ref()?)));
    for (part, names) in lists.chain(own_fields.map(|names| ("by", names))) {
        if !(1..=2).contains(&names.0.len()) || names.0.iter().any(String::is_empty) {
            add(part, format!("names {} fields", names.0.len()), "one field, or a list of two");
        }
    }
    if spec.by.is_some() && !spec.is_pair() {
        add("by", "belongs to a pair".into(), "`key` tells the events of one tracepoint apart");
    }
    let bounds = [("keys", spec.keys, MOST_KEYS), ("in-flight", spec.in_flight, MOST_IN_FLIGHT)];
    for (part, number, most) in bounds {
        if number.is_some_and(|number| number == 0 || number > most) {
            add(part, "is out of bounds".into(), &format!("from 1 to {most}"));
        }
    }
    found
}

/// The ends of a pair.
fn begin_and_end(spec: &EventSpec) -> impl Iterator<Item = &TracepointSpec> {
    spec.begin.iter().flat_map(|begins| &begins.0).chain(&spec.end)
}

/// What is wrong with a study's events as far as its text says.
pub(crate) fn event_problems(events: &IndexMap<String, EventSpec>) -> Vec<Problem> {
    let mut found = Vec::new();
    for (name, spec) in events {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        if name.is_empty() || !name.chars().all(is_plain) {
            let problem = Problem::new(format!("events.{name}"), "is no name of a column");
            found.push(problem.with_hint("letters, digits, `-` and `_`"));
        }
        found.extend(problems_of_event(name, spec));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> EventSpec {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_does_not_go_together_is_said_by_key() {
        let keys = |text: &str| -> Vec<String> {
            problems_of_event("n", &parse(text)).into_iter().map(|problem| problem.key).collect()
        };
        assert_eq!(keys("{}"), ["events.n.event"]);
        assert_eq!(keys(r#"{"recipe":"run-queue-dely"}"#), ["events.n.recipe"]);
        assert_eq!(keys(r#"{"event":"a:b","begin":"a:c"}"#), ["events.n.event"]);
        assert_eq!(keys(r#"{"begin":"a:c"}"#), ["events.n.begin"]);
        assert_eq!(keys(r#"{"event":"../b"}"#), ["events.n.event"]);
        assert_eq!(keys(r#"{"event":"a:b","keep":"histogram"}"#), ["events.n.keep"]);
        assert_eq!(
            keys(r#"{"event":"a:b","keys":0,"key":["a","b","c"]}"#),
            ["events.n.key", "events.n.keys"]
        );
        assert_eq!(keys(r#"{"begin":"a:b","end":"a:c","value":"v"}"#), ["events.n.value"]);
        assert_eq!(keys(r#"{"begin":[],"end":"a:c"}"#), ["events.n.begin"]);
    }

    #[test]
    fn every_recipe_is_an_event_as_a_study_may_write_it() {
        let all = EVENT_RECIPES.iter().map(|recipe| (recipe.name.to_owned(), recipe.spec())).collect();
        assert_eq!(event_problems(&all), []);
    }
}
