//! The conditions of a flight recorder, held against every event of the stream.
//!
//! What happens at an instant (a line, an end, a signal) is met once. A column that is beyond its bound goes on meeting its condition
//! until it is not, and is met anew only then, once it was recorded ([`TriggerWatch::note_recorded`]).

use perflab_model::{
    LatestTicks, Nanos, RunEvent, RunEventKind, SeriesSchema, Trigger, TriggerFinding, Unit,
};

use crate::trigger::column_bound::{BoundedColumn, FurthestReading, TriggerError};
use crate::trigger::condition::{ConditionKind, ExitCondition, KernelLogCondition, TriggerCondition};

/// The conditions, each with what was seen of it last.
#[derive(Debug)]
pub struct TriggerWatch {
    watched: Vec<WatchedCondition>,
    latest: LatestTicks,
}

#[derive(Debug)]
struct WatchedCondition {
    text: String,
    kind: WatchedKind,
}

#[derive(Debug)]
enum WatchedKind {
    Column(Box<WatchedColumn>),
    KernelLog(KernelLogCondition),
    Exit(ExitCondition),
    Signal,
}

#[derive(Debug)]
struct WatchedColumn {
    monitor: String,
    column: BoundedColumn,
    last: Option<FurthestReading>,
    /// Whether it has been beyond its bound ever since that was recorded.
    is_recorded: bool,
}

/// What was seen of a condition last, for whoever looks on.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedValue<'a> {
    /// The condition as written.
    pub condition: &'a str,
    /// The value and its unit, of a column that was read.
    pub value: Option<(f64, &'a Unit)>,
}

impl TriggerWatch {
    /// Watches for these conditions; `schema_of` gives the columns that a monitor has here.
    ///
    /// # Errors
    /// Those of [`crate::trigger::ColumnBound::resolve`], and of `schema_of`.
    pub fn new<E: From<TriggerError>>(
        conditions: &[TriggerCondition],
        mut schema_of: impl FnMut(&str) -> Result<SeriesSchema, E>,
    ) -> Result<Self, E> {
        let watched = conditions.iter().map(|condition| {
            let kind = match &condition.kind {
                ConditionKind::Column(bound) => {
                    let column = bound.resolve(&schema_of(bound.monitor())?)?;
                    let monitor = bound.monitor().to_owned();
                    WatchedKind::Column(Box::new(WatchedColumn {
                        monitor,
                        column,
                        last: None,
                        is_recorded: false,
                    }))
                }
                ConditionKind::KernelLog(lines) => WatchedKind::KernelLog(lines.clone()),
                ConditionKind::Exit(ends) => WatchedKind::Exit(*ends),
                ConditionKind::Signal => WatchedKind::Signal,
            };
            Ok(WatchedCondition { text: condition.to_string(), kind })
        });
        Ok(TriggerWatch { watched: watched.collect::<Result<_, E>>()?, latest: LatestTicks::default() })
    }

    /// The conditions that an event of this machine meets.
    pub fn find_triggers(&mut self, event: &RunEvent) -> Vec<Trigger> {
        if event.target.is_some() {
            return Vec::new();
        }
        match &event.what {
            RunEventKind::Rows { monitor, .. } | RunEventKind::Changed { monitor, .. } => {
                if self.needs_monitor(monitor) { self.read_tick(event) } else { Vec::new() }
            }
            RunEventKind::Output { name, text, .. } if name == RunEventKind::KERNEL_LOG => {
                self.find_all(|kind| match kind {
                    WatchedKind::KernelLog(lines) => {
                        Some(TriggerFinding::Line(lines.find_line(text)?.to_owned()))
                    }
                    _ => None,
                })
            }
            RunEventKind::IterationEnded { outcome, .. } => self.find_all(|kind| match kind {
                WatchedKind::Exit(ends) => Some(TriggerFinding::Exit(ends.describe_end(outcome)?)),
                _ => None,
            }),
            // Nobody knows its value meanwhile.
            RunEventKind::Gap(gap) if gap.to.is_none() => {
                self.columns_mut().filter(|one| one.monitor == gap.monitor).for_each(|one| one.last = None);
                Vec::new()
            }
            RunEventKind::Triggered(trigger) if trigger.found == TriggerFinding::Signal => {
                self.find_all(|kind| matches!(kind, WatchedKind::Signal).then_some(TriggerFinding::Signal))
            }
            _ => Vec::new(),
        }
    }

    /// Whether a condition is about this monitor.
    #[must_use]
    pub fn needs_monitor(&self, monitor: &str) -> bool {
        self.watched.iter().any(|one| one.monitor() == Some(monitor))
    }

    /// What meets conditions now is recorded: a column counts again once it has been within its bound.
    pub fn note_recorded(&mut self) {
        for column in self.columns_mut() {
            column.is_recorded |= column.last.as_ref().is_some_and(|last| last.is_beyond);
        }
    }

    /// What was seen of each condition last.
    pub fn last_values(&self) -> impl Iterator<Item = WatchedValue<'_>> {
        self.watched.iter().map(|one| {
            let value = match &one.kind {
                WatchedKind::Column(column) => {
                    column.last.as_ref().map(|last| (last.value, column.column.unit()))
                }
                _ => None,
            };
            WatchedValue { condition: &one.text, value }
        })
    }

    fn read_tick(&mut self, event: &RunEvent) -> Vec<Trigger> {
        let at: Nanos = event.at;
        let Some((monitor, rows)) = self.latest.apply(event.clone()) else { return Vec::new() };
        let mut met = Vec::new();
        for WatchedCondition { text, kind } in &mut self.watched {
            let WatchedKind::Column(watched) = kind else { continue };
            if watched.monitor != monitor {
                continue;
            }
            let reading = watched.column.read_tick(at, rows);
            let is_beyond = reading.as_ref().is_some_and(|reading| reading.is_beyond);
            watched.is_recorded &= is_beyond || reading.is_none();
            if let Some(FurthestReading { row, value, .. }) =
                reading.as_ref().filter(|_| is_beyond && !watched.is_recorded)
            {
                let unit = watched.column.unit().clone();
                let found = TriggerFinding::Value { row: row.clone(), value: *value, unit };
                met.push(Trigger { condition: text.clone(), found });
            }
            watched.last = reading.or(watched.last.take());
        }
        met
    }

    fn find_all(&self, find: impl Fn(&WatchedKind) -> Option<TriggerFinding>) -> Vec<Trigger> {
        let found = self.watched.iter().filter_map(|one| Some((one, find(&one.kind)?)));
        found.map(|(one, found)| Trigger { condition: one.text.clone(), found }).collect()
    }

    fn columns_mut(&mut self) -> impl Iterator<Item = &mut WatchedColumn> {
        self.watched.iter_mut().filter_map(|one| match &mut one.kind {
            WatchedKind::Column(column) => Some(&mut **column),
            _ => None,
        })
    }
}

impl WatchedCondition {
    fn monitor(&self) -> Option<&str> {
        match &self.kind {
            WatchedKind::Column(column) => Some(&column.monitor),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::series::StoredRows;
    use perflab_model::{ColumnSpec, Outcome, TableCell};

    use super::*;

    fn watch(conditions: &[&str]) -> TriggerWatch {
        let parsed: Vec<TriggerCondition> = conditions.iter().map(|text| text.parse().unwrap()).collect();
        let schema = |monitor: &str| {
            Ok::<_, TriggerError>(SeriesSchema {
                monitor: monitor.into(),
                source: "/proc/meminfo".into(),
                interval: Nanos(100),
                columns: vec![ColumnSpec::gauge("Shmem", "bytes"), ColumnSpec::gauge("Dirty", "bytes")],
                stored: StoredRows::Every,
            })
        };
        TriggerWatch::new(&parsed, schema).unwrap()
    }

    fn event(what: RunEventKind) -> RunEvent {
        RunEvent::new(Nanos(7), what)
    }

    fn tick(shared: i64) -> RunEvent {
        let rows = vec![vec![TableCell::Int(shared), TableCell::Int(0)]];
        event(RunEventKind::Rows { monitor: "meminfo".into(), rows, took: Nanos(0) })
    }

    #[test]
    fn a_column_counts_again_once_it_was_within_its_bound() {
        let mut watch = watch(&["meminfo.Shmem > 100B", "signal"]);
        let met = |watch: &mut TriggerWatch, shared| watch.find_triggers(&tick(shared)).len();
        assert_eq!([50, 150, 151].map(|shared| met(&mut watch, shared)), [0, 1, 1], "nobody recorded it yet");
        watch.note_recorded();
        assert_eq!([150, 200, 100, 101].map(|shared| met(&mut watch, shared)), [0, 0, 0, 1]);
        watch.note_recorded();
        assert_eq!([90, 80].map(|shared| met(&mut watch, shared)), [0, 0]);
        watch.note_recorded();
        assert_eq!(met(&mut watch, 500), 1, "it was within its bound when others were recorded");
        let last: Vec<_> = watch.last_values().map(|seen| seen.value.map(|(value, _)| value)).collect();
        assert_eq!(last, [Some(500.0), None]);
    }

    #[test]
    fn changes_of_a_tick_are_read_as_the_whole_tick() {
        let mut watch = watch(&["meminfo.Shmem > 100B"]);
        assert_eq!(watch.find_triggers(&tick(50)), []);
        let rows = vec![(0, vec![TableCell::Int(300), TableCell::Int(0)])];
        let changed = RunEventKind::Changed { monitor: "meminfo".into(), step: 1, rows, took: Nanos(0) };
        let unit = Unit::new("bytes");
        let found = TriggerFinding::Value { row: None, value: 300.0, unit };
        let condition = "meminfo.Shmem > 100B".to_owned();
        assert_eq!(watch.find_triggers(&event(changed)), [Trigger { condition, found }]);
    }

    #[test]
    fn lines_ends_and_signals_are_met_by_their_events() {
        let mut watch = watch(&["kernel-log:any", "exit:failed", "signal", "exit"]);
        let mut met = |what| -> Vec<String> {
            watch.find_triggers(&event(what)).iter().map(|trigger| trigger.condition.clone()).collect()
        };
        let printed = |name: &str| RunEventKind::Output {
            slot: None,
            name: name.into(),
            text: "<4>[    6.000000] WARNING: CPU: 0\n".into(),
        };
        assert_eq!(met(printed(RunEventKind::KERNEL_LOG)), ["kernel-log:any"]);
        assert!(met(printed("stdout")).is_empty());
        let ended =
            |outcome| RunEventKind::IterationEnded { slot: 0, outcome, start: Nanos(0), end: Nanos(1) };
        assert_eq!(met(ended(Outcome::Ok)), ["exit"]);
        assert_eq!(met(ended(Outcome::Failed { reason: "exit code 1".into() })), ["exit:failed", "exit"]);
        let signal = Trigger { condition: "signal".into(), found: TriggerFinding::Signal };
        assert_eq!(met(RunEventKind::Triggered(signal)), ["signal"]);
        let other = Trigger { condition: "exit".into(), found: TriggerFinding::Exit("exit code 1".into()) };
        assert!(met(RunEventKind::Triggered(other)).is_empty(), "what another found is no signal");
    }
}
