//! An event of a study as the BPF program counts it on this machine: which tracepoints, and where in their records the fields lie.

use perflab_model::study::{
    DEFAULT_EVENT_KEYS, DEFAULT_IN_FLIGHT, EventOwner, EventSpec, FieldNames, KeptOfEvents, TracepointSpec,
    split_tracepoint_name,
};

use crate::events::event_field::{EventField, FieldSource};
use crate::events::event_filter::{FilterStep, MOST_STEPS, NextStep, StepComparison, compile_event_filter};
use crate::io::trace_records::TraceEventFormat;
use crate::root::Root;
use crate::tracepoint::{MissingTracepoint, Tracepoint};

/// Programs of the object that begin a pair.
const BEGINS: [&str; 4] = ["begin0", "begin1", "begin2", "begin3"];

/// A program of the object, and the tracepoint that it goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgramPlace {
    pub(crate) program: &'static str,
    pub(crate) tracepoint: u64,
}

/// Why an event cannot be counted as a study has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFault {
    /// The key of the event at which it stands (`filter`, `begin`); none where this machine could not be asked.
    pub part: Option<&'static str>,
    /// What is wrong.
    pub message: String,
}

impl EventFault {
    fn at(part: &'static str) -> impl FnOnce(String) -> Self {
        move |message| EventFault { part: Some(part), message }
    }

    fn missing(part: &'static str) -> impl FnOnce(MissingTracepoint) -> Self {
        move |missing| EventFault { part: missing.is_known.then_some(part), message: missing.reason }
    }
}

impl From<EventFault> for String {
    fn from(fault: EventFault) -> String {
        fault.message
    }
}

/// An event of a study, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventProgram {
    /// Where each program goes, in the order in which they are attached: what ends a pair before what begins it.
    pub(crate) places: Vec<ProgramPlace>,
    /// `struct config` of events.bpf.c.
    pub(crate) config: Vec<u8>,
    pub(crate) kept: KeptOfEvents,
    /// What is told apart; as it is shown.
    pub(crate) keys: Vec<EventField>,
    pub(crate) most_keys: u32,
    pub(crate) in_flight: u32,
    pub(crate) is_pair: bool,
    /// Whether values have a sum.
    pub(crate) has_values: bool,
    pub(crate) owner: EventOwner,
}

/// A tracepoint with what is looked at of its records.
#[derive(Debug, Default)]
struct EventPoint {
    by: Vec<EventField>,
    key: Vec<EventField>,
    value: Option<EventField>,
    task: Option<EventField>,
    steps: Vec<FilterStep>,
}

/// A tracepoint that was found.
struct FoundPoint {
    event: String,
    tracepoint: Tracepoint,
    format: TraceEventFormat,
}

impl FoundPoint {
    fn find(root: &Root, event: &str, part: &'static str) -> Result<Self, EventFault> {
        let name = split_tracepoint_name(event).ok_or(format!("`{event}` is no tracepoint"));
        let (group, name) = name.map_err(EventFault::at(part))?;
        let tracepoint = Tracepoint::find(root, group, name).map_err(EventFault::missing(part))?;
        let format = tracepoint.read_format().map_err(|message| EventFault { part: None, message })?;
        Ok(FoundPoint { event: event.into(), tracepoint, format })
    }

    fn fields(&self, names: &FieldNames) -> Result<Vec<EventField>, String> {
        names.0.iter().map(|name| EventField::find(name, &self.event, &self.format)).collect()
    }

    fn has_fields(&self, names: &FieldNames) -> bool {
        names.0.iter().all(|name| name == FieldNames::TASK || self.format.has_field(name))
    }

    fn optional_field(&self, name: Option<&String>) -> Result<Option<EventField>, String> {
        name.map(|name| EventField::find(name, &self.event, &self.format)).transpose()
    }

    /// The point of an end of a pair; what it shares with the other end is said here, or for both.
    fn pair_point(&self, spec: &TracepointSpec, shared: Option<&FieldNames>) -> Result<EventPoint, String> {
        let task = FieldNames(vec![FieldNames::TASK.to_owned()]);
        let names = spec.by.as_ref().or(shared).unwrap_or(&task);
        let by = self.fields(names)?;
        if let Some((field, name)) = by.iter().zip(&names.0).find(|(field, _)| field.is_text()) {
            return Err(format!(
                "`{}`: a pair is matched by numbers, and `{name}` (offset {}) is a text",
                self.event, field.offset
            ));
        }
        let (task, steps) = (self.optional_field(spec.task.as_ref())?, self.filter(spec.filter.as_deref())?);
        Ok(EventPoint { by, task, steps, ..EventPoint::default() })
    }

    fn filter(&self, text: Option<&str>) -> Result<Vec<FilterStep>, String> {
        text.map_or(Ok(Vec::new()), |text| compile_event_filter(text, &self.event, &self.format))
    }
}

/// The tracepoints of an event, with what is looked at of each.
struct EventPoints {
    places: Vec<ProgramPlace>,
    begins: Vec<EventPoint>,
    /// Of a pair the end; else the tracepoint.
    end: EventPoint,
    /// What is told apart, as it is shown.
    keys: Vec<EventField>,
}

impl EventPoints {
    fn of_pair(
        root: &Root,
        spec: &EventSpec,
        begins: &[TracepointSpec],
        end: &TracepointSpec,
    ) -> Result<Self, EventFault> {
        let shared = spec.by.as_ref();
        let found_end = FoundPoint::find(root, &end.event, "end")?;
        let mut end = found_end.pair_point(end, shared).map_err(EventFault::at("end"))?;
        let found: Result<Vec<FoundPoint>, EventFault> =
            begins.iter().map(|begin| FoundPoint::find(root, &begin.event, "begin")).collect();
        let found = found?;
        let points: Result<Vec<EventPoint>, String> =
            begins.iter().zip(&found).map(|(begin, found)| found.pair_point(begin, shared)).collect();
        let mut begins = points.map_err(EventFault::at("begin"))?;
        if begins.iter().any(|point| point.by.len() != end.by.len()) {
            let message = "its begin and its end are matched by different numbers of fields";
            return Err(EventFault::at("end")(message.into()));
        }
        let names = key_names(spec);
        // What is told apart is known at the end, or from the begin on.
        if found_end.has_fields(&names) {
            end.key = found_end.fields(&names).map_err(EventFault::at("key"))?;
        } else {
            for (point, found) in begins.iter_mut().zip(&found) {
                point.key = found.fields(&names).map_err(EventFault::at("key"))?;
            }
        }
        let keys = if end.key.is_empty() { begins.last().map(|point| point.key.clone()) } else { None };
        let keys = keys.unwrap_or_else(|| end.key.clone());
        let mut places = vec![ProgramPlace { program: "end", tracepoint: found_end.tracepoint.id }];
        places.extend(
            BEGINS
                .into_iter()
                .zip(&found)
                .map(|(program, found)| ProgramPlace { program, tracepoint: found.tracepoint.id }),
        );
        Ok(EventPoints { places, begins, end, keys })
    }

    fn of_tracepoint(root: &Root, spec: &EventSpec) -> Result<Self, EventFault> {
        let found = FoundPoint::find(root, spec.event.as_deref().unwrap_or_default(), "event")?;
        let value = found.optional_field(spec.value.as_ref()).map_err(EventFault::at("value"))?;
        if let Some(name) = spec.value.as_ref().filter(|_| value.is_some_and(|field| field.is_text())) {
            let message = format!("field `{name}` of `{}` is a text, not a value", found.event);
            return Err(EventFault::at("value")(message));
        }
        let keys = found.fields(&key_names(spec)).map_err(EventFault::at("key"))?;
        let steps = found.filter(spec.filter.as_deref()).map_err(EventFault::at("filter"))?;
        let places = vec![ProgramPlace { program: "one", tracepoint: found.tracepoint.id }];
        let end = EventPoint { key: keys.clone(), value, steps, ..EventPoint::default() };
        Ok(EventPoints { places, begins: Vec::new(), end, keys })
    }

    /// Adds the programs that follow the tasks of a workload; gives what is looked at of a fork.
    fn follow_tasks(&mut self, root: &Root) -> Result<EventPoint, EventFault> {
        let found = FoundPoint::find(root, "sched:sched_process_fork", "of")?;
        let names = FieldNames(["parent_pid", "child_pid"].map(str::to_owned).into());
        let by = found.fields(&names).map_err(EventFault::at("of"))?;
        for (program, event) in [("leave", "sched:sched_process_exit"), ("start", "sched:sched_process_exec")]
        {
            let tracepoint = FoundPoint::find(root, event, "of")?.tracepoint.id;
            self.places.push(ProgramPlace { program, tracepoint });
        }
        self.places.push(ProgramPlace { program: "fork", tracepoint: found.tracepoint.id });
        Ok(EventPoint { by, ..EventPoint::default() })
    }
}

fn key_names(spec: &EventSpec) -> FieldNames {
    spec.key.clone().unwrap_or_default()
}

impl EventProgram {
    /// Finds the tracepoints and fields of an event, in which what its recipe says stands already.
    ///
    /// # Errors
    /// What of it this machine lacks, or what the study names wrongly.
    pub(crate) fn resolve(root: &Root, spec: &EventSpec) -> Result<Self, EventFault> {
        let mut points = match (&spec.begin, &spec.end) {
            (Some(begins), Some(end)) => EventPoints::of_pair(root, spec, &begins.0, end)?,
            _ => EventPoints::of_tracepoint(root, spec)?,
        };
        let owner = spec.of.unwrap_or_default();
        let fork = match owner {
            EventOwner::Workload => points.follow_tasks(root)?,
            EventOwner::Machine => EventPoint::default(),
        };
        let EventPoints { places, begins, end, keys } = points;
        let mut config = ConfigBytes::default();
        let kept = spec.kept();
        config.push_u32(u32::from(kept == KeptOfEvents::Histogram));
        config.push_u32(u32::from(!keys.is_empty()));
        config.push_u32(u32::from(owner == EventOwner::Workload));
        config.push_u32(0);
        let mut begins = begins.into_iter();
        for _ in BEGINS {
            config.push_point(&begins.next().unwrap_or_default());
        }
        config.push_point(&end);
        config.push_point(&fork);
        Ok(EventProgram {
            places,
            config: config.0,
            kept,
            keys,
            most_keys: spec.keys.unwrap_or(DEFAULT_EVENT_KEYS),
            in_flight: spec.in_flight.unwrap_or(DEFAULT_IN_FLIGHT),
            is_pair: spec.is_pair(),
            has_values: spec.is_pair() || spec.value.is_some(),
            owner,
        })
    }

    /// A key as it is shown: its fields one after the other.
    pub(crate) fn show_key(&self, words: [u64; 2]) -> String {
        match self.keys.as_slice() {
            [only] => only.show(&words),
            [first, second, ..] => {
                let [low, high] = words;
                format!("{},{}", first.show(&[low]), second.show(&[high]))
            }
            [] => String::new(),
        }
    }
}

/// `struct config` of events.bpf.c, member by member, in the order of the machine's bytes.
#[derive(Default)]
struct ConfigBytes(Vec<u8>);

impl ConfigBytes {
    fn push_u32(&mut self, number: u32) {
        self.0.extend(number.to_ne_bytes());
    }

    /// `struct field`
    fn push_field(&mut self, field: Option<&EventField>) {
        let (offset, size, source) = match field {
            Some(field) => (field.offset, field.size, field.source as u8),
            None => (0, 0, 0),
        };
        self.0.extend(offset.to_ne_bytes());
        self.0.extend([size, source]);
    }

    /// `struct point`
    fn push_point(&mut self, point: &EventPoint) {
        let steps = point.steps.iter().map(|step| &step.field);
        let fields = point.by.iter().chain(&point.key).chain(&point.value).chain(&point.task).chain(steps);
        let record =
            fields.filter(|field| field.source != FieldSource::Text).map(EventField::end).max().unwrap_or(0);
        // At most 256, as no field lies beyond.
        self.push_u32(record as u32);
        self.push_u32(point.steps.len() as u32);
        self.push_field(point.by.first());
        self.push_field(point.by.get(1));
        self.push_field(point.key.first());
        self.push_field(point.key.get(1));
        self.push_field(point.value.as_ref());
        self.push_field(point.task.as_ref());
        let mut steps = point.steps.iter();
        for _ in 0..MOST_STEPS {
            self.push_step(steps.next());
        }
    }

    /// `struct step`
    fn push_step(&mut self, step: Option<&FilterStep>) {
        let Some(step) = step else {
            self.0.extend([0; 40]);
            return;
        };
        self.push_field(Some(&step.field));
        let comparison = match step.comparison {
            StepComparison::Equal => 0,
            StepComparison::Less => 1,
            StepComparison::LessSigned => 2,
            StepComparison::AnyBit => 3,
        };
        let next = |next| match next {
            NextStep::Accept => 0xff,
            NextStep::Reject => 0xfe,
            // At most MOST_STEPS.
            NextStep::Step(step) => step as u8,
        };
        self.0.extend([comparison, next(step.yes), next(step.no), 0]);
        for word in step.value.iter().chain(&step.mask) {
            self.0.extend(word.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded_tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let home = tempfile::tempdir().unwrap();
        for (event, fields) in files {
            let folder = home.path().join("sys/kernel/tracing/events").join(event);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("id"), "7\n").unwrap();
            std::fs::write(folder.join("format"), format!("ID: 7\n{fields}")).unwrap();
        }
        let root = Root(home.path().into());
        (home, root)
    }

    const SWITCH: &str = "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n";

    const WAKEUP: &str = "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n";

    fn resolve(root: &Root, text: &str) -> Result<EventProgram, EventFault> {
        EventProgram::resolve(root, &serde_json::from_str(text).unwrap())
    }

    #[test]
    fn fields_are_where_the_format_says_and_the_configuration_is_as_large_as_the_program_has_it() {
        let (_home, root) = recorded_tree(&[("sched/sched_switch", SWITCH), ("sched/sched_wakeup", WAKEUP)]);
        let pair = r#"{"begin":{"event":"sched:sched_wakeup","by":"pid"},
            "end":{"event":"sched:sched_switch","by":"next_pid"},"key":"target_cpu"}"#;
        let program = resolve(&root, pair).unwrap();
        assert_eq!(program.config.len(), 0xc10);
        let places: Vec<&str> = program.places.iter().map(|place| place.program).collect();
        assert_eq!(places, ["end", "begin0"]);
        // The key is known at the begin only, whose record is read up to it.
        assert_eq!(program.config[16..24], [36, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(program.config[24..28], [24, 0, 4, 2]);
        assert_eq!(program.config[32..36], [32, 0, 4, 2]);
        assert_eq!(program.show_key([3, 0]), "3");
    }

    #[test]
    fn a_field_that_is_not_there_is_named_with_those_that_are() {
        let (_home, root) = recorded_tree(&[("sched/sched_switch", SWITCH), ("sched/sched_wakeup", WAKEUP)]);
        let said = [
            r#"{"event":"sched:sched_swich"}"#,
            r#"{"event":"sched:sched_switch","key":"next_pd"}"#,
            r#"{"event":"sched:sched_switch","value":"prev_comm"}"#,
            r#"{"begin":"sched:sched_wakeup","end":"sched:sched_switch","by":"pid"}"#,
            r#"{"begin":{"event":"sched:sched_wakeup","by":["pid","target_cpu"]},"end":{"event":"sched:sched_switch","by":"next_pid"}}"#,
            r#"{"event":"sched:sched_wakeup","filter":"pid > x"}"#,
            r#"{"event":"sched:sched_wakeup","of":"workload"}"#,
        ];
        let faults = said.map(|text| resolve(&root, text).unwrap_err());
        let parts = faults.each_ref().map(|fault| fault.part.unwrap());
        assert_eq!(parts, ["event", "key", "value", "end", "end", "filter", "of"]);
        insta::assert_snapshot!(faults.map(|fault| fault.message).join("\n"));
    }
}
