//! Which part of a run becomes which track, and the packets of each.
//!
//! A machine is a track; below it stand its iterations, a track for each traced thread, and a group for each monitor with a counter
//! for each column. All times are CLOCK_MONOTONIC of the machine that recorded. What a target reports is put on it when it comes; the
//! operations that it traced are put on it here, by what the journal says of its clock.

use std::collections::HashMap;
use std::io::{self, Write};

use perflab_analyze::operations::OperationReport;
use perflab_analyze::{CounterTrack, counter_tracks};
use perflab_model::operation::{OperationColumns, SparseColumn, TracedIteration};
use perflab_model::series::Series;
use perflab_model::{IterationRecord, Nanos, RunEvent, RunEventKind, RunRecord, Sample};
use prost::Message as _;

use crate::perfetto::packets::{
    ClockReading, ClockSnapshot, CounterDescriptor, DebugAnnotation, INCREMENTAL_STATE_CLEARED, InternedData,
    InternedName, MONOTONIC, NEEDS_INCREMENTAL_STATE, REALTIME, Trace, TracePacket, TrackDescriptor,
    TrackEvent, TrackEventType,
};

/// The one sequence of packets.
const SEQUENCE: u32 = 1;

/// What is said of a slice: a name and its value.
type Annotation<'a> = (&'a str, AnnotationValue);

enum AnnotationValue {
    Whole(i64),
    Number(f64),
    Text(String),
}

/// Writes a run packet by packet, in memory that does not grow with what is written.
pub struct PerfettoWriter<'a, W: Write> {
    out: W,
    record: &'a RunRecord,
    /// Tracks of machines and groups, by their path.
    tracks: HashMap<Vec<String>, u64>,
    last_track: u64,
    last_flow: u64,
    /// How far each target's clock was ahead, and since when that is known, in order.
    clocks: HashMap<u32, Vec<(Nanos, i64)>>,
    event_names: InternedNames,
    annotation_names: InternedNames,
}

/// Names that were written once and have a number since.
#[derive(Default)]
struct InternedNames(HashMap<String, u64>);

impl InternedNames {
    /// The number of a name; a new one is added to `fresh`, which goes with the packet that uses it first.
    fn intern(&mut self, name: &str, fresh: &mut Vec<InternedName>) -> u64 {
        if let Some(known) = self.0.get(name) {
            return *known;
        }
        let iid = self.0.len() as u64 + 1;
        self.0.insert(name.to_owned(), iid);
        fresh.push(InternedName { iid, name: name.to_owned() });
        iid
    }
}

impl<'a, W: Write> PerfettoWriter<'a, W> {
    /// Begins a trace with the run's clocks.
    ///
    /// # Errors
    /// What writing fails with.
    pub fn new(out: W, record: &'a RunRecord) -> io::Result<Self> {
        let mut writer = PerfettoWriter {
            out,
            record,
            tracks: HashMap::new(),
            last_track: 0,
            last_flow: 0,
            clocks: HashMap::new(),
            event_names: InternedNames::default(),
            annotation_names: InternedNames::default(),
        };
        let anchor = record.manifest.anchor;
        let reading = |clock_id, at: Nanos| ClockReading { clock_id, timestamp: at.0 };
        let mut clocks = vec![reading(MONOTONIC, anchor.monotonic)];
        // Of an import, the date may be unknown.
        clocks.extend((anchor.realtime.0 > 0).then(|| reading(REALTIME, anchor.realtime)));
        let clock_snapshot = ClockSnapshot { clocks, primary_trace_clock: Some(MONOTONIC) };
        writer.write_packet(TracePacket {
            clock_snapshot: Some(clock_snapshot),
            timestamp: Some(anchor.monotonic.0),
            timestamp_clock_id: Some(MONOTONIC),
            sequence_flags: Some(INCREMENTAL_STATE_CLEARED),
            ..TracePacket::default()
        })?;
        Ok(writer)
    }

    /// A slice for each iteration: its case, with how it ended and what it measured.
    ///
    /// # Errors
    /// What writing fails with.
    pub fn write_iterations(&mut self) -> io::Result<()> {
        let record = self.record;
        let mut samples: HashMap<(u32, u32, u32, Option<u32>), Vec<&Sample>> = HashMap::new();
        for sample in &record.samples {
            let key = (sample.boot, sample.case, sample.iteration, sample.target);
            samples.entry(key).or_default().push(sample);
        }
        for iteration in &record.iterations {
            self.write_iteration(iteration, &samples)?;
        }
        Ok(())
    }

    fn write_iteration(
        &mut self,
        iteration: &IterationRecord,
        samples: &HashMap<(u32, u32, u32, Option<u32>), Vec<&Sample>>,
    ) -> io::Result<()> {
        let plan = &self.record.manifest.plan;
        let Some(slot) = plan.slots.get(iteration.slot as usize) else { return Ok(()) };
        let Some(case) = plan.case(slot.case) else { return Ok(()) };
        let outcome = iteration.outcome.failure_reason().unwrap_or_else(|| "ok".into());
        let mut about: Vec<Annotation> = vec![("outcome", AnnotationValue::Text(outcome))];
        let measured = samples.get(&(slot.boot, slot.case, slot.iteration, iteration.target));
        let texts: Vec<(String, f64)> = measured
            .into_iter()
            .flatten()
            .filter(|_| !slot.warmup)
            .map(|sample| (format!("{} [{}]", sample.metric, sample.unit), sample.value))
            .collect();
        about.extend(texts.iter().map(|(name, value)| (name.as_str(), AnnotationValue::Number(*value))));
        let name = if slot.warmup { format!("{} (warm-up)", case.label()) } else { case.label() };
        let machine = self.machine_name(iteration.target);
        let track = self.find_track(&[&machine, "iterations"])?;
        self.write_slice(track, (&name, "iteration"), (iteration.start, iteration.end), &about, None)
    }

    /// An instant for each event that people read: phases, settings, lost targets, triggers, warnings. What it says of a target's
    /// clock is needed by [`PerfettoWriter::write_operations`].
    ///
    /// # Errors
    /// What writing fails with.
    pub fn write_event(&mut self, event: &RunEvent) -> io::Result<()> {
        if let (RunEventKind::Clock(clock), Some(target)) = (&event.what, event.target) {
            self.clocks.entry(target).or_default().push((event.at, clock.offset));
        }
        let text = match &event.what {
            RunEventKind::Phase(phase) => format!("phase: {phase:?}").to_lowercase(),
            RunEventKind::SettingApplied { setting, from, to, .. } => format!("{setting}: {from} -> {to}"),
            RunEventKind::SettingUndone { setting, to } => format!("{setting}: back to {to}"),
            RunEventKind::SettingOverwritten { setting, set, found, .. } => {
                format!("{setting}: overwritten, {set} -> {found}")
            }
            RunEventKind::TargetLost { reason } => format!("target lost: {reason}"),
            RunEventKind::Triggered(trigger) => format!("triggered: {}", trigger.condition),
            RunEventKind::Warning { message, .. } => format!("warning: {message}"),
            _ => return Ok(()),
        };
        let machine = self.machine_name(event.target);
        let track = self.find_track(&[&machine, "events"])?;
        // The recorder has put the event on its own clock.
        self.write_track_event(event.at, (&text, "event"), &[], |event| TrackEvent {
            r#type: TrackEventType::Instant.into(),
            track_uuid: track,
            ..event
        })
    }

    /// A counter for each column of a monitor that is ever anything but 0.
    ///
    /// # Errors
    /// What writing fails with.
    pub fn write_series(&mut self, series: &Series) -> io::Result<()> {
        let (monitor, target) = self.split_series_name(&series.schema.monitor);
        for track in counter_tracks(series) {
            self.write_counter(&monitor, target, &track)?;
        }
        Ok(())
    }

    /// `vmstat.guest1` is `vmstat` of target `guest1`.
    fn split_series_name(&self, name: &str) -> (String, Option<u32>) {
        let of_target = self.record.manifest.targets.iter().enumerate().find_map(|(index, target)| {
            let monitor = name.strip_suffix(target.name.as_str())?.strip_suffix('.')?;
            Some((monitor.to_owned(), Some(index as u32)))
        });
        of_target.unwrap_or_else(|| (name.to_owned(), None))
    }

    fn write_counter(
        &mut self,
        monitor: &str,
        target: Option<u32>,
        counter: &CounterTrack,
    ) -> io::Result<()> {
        let machine = self.machine_name(target);
        let parent = match counter.key.as_str() {
            "" => self.find_track(&[&machine, monitor])?,
            key => self.find_track(&[&machine, monitor, key])?,
        };
        let unit = counter.unit.to_string();
        let track = self.declare_track(TrackDescriptor {
            name: Some(counter.column.clone()),
            parent_uuid: Some(parent),
            counter: Some(CounterDescriptor { unit_name: (unit != "1").then_some(unit) }),
            ..TrackDescriptor::default()
        })?;
        for (at, value) in &counter.steps {
            self.write_packet(TracePacket {
                timestamp: Some(at.0),
                timestamp_clock_id: Some(MONOTONIC),
                track_event: Some(TrackEvent {
                    r#type: TrackEventType::Counter.into(),
                    track_uuid: track,
                    double_counter_value: Some(*value),
                    ..TrackEvent::default()
                }),
                ..TracePacket::default()
            })?;
        }
        Ok(())
    }

    /// A slice for each operation of a traced iteration, on its thread's track, with what happened in it. Where `report` finds it
    /// slow, a flow leads to it from the name of its cause. The run's events come before.
    ///
    /// # Errors
    /// What writing fails with.
    pub fn write_operations(
        &mut self,
        iteration: TracedIteration,
        operations: &OperationColumns,
        report: Option<&OperationReport>,
    ) -> io::Result<()> {
        let machine = self.machine_name(iteration.target);
        let slow: HashMap<u32, &str> = report
            .into_iter()
            .flat_map(|report| report.outliers.iter().map(|one| (one.row, report.outlier_cause(one))))
            .collect();
        let offset = self.clock_offset(iteration);
        let shift = |theirs: Nanos| Nanos(theirs.0.saturating_add_signed(offset.saturating_neg()));
        let mut columns = AnnotationColumns::new(operations);
        let mut threads: HashMap<i32, u64> = HashMap::new();
        let causes = match slow.is_empty() {
            true => None,
            false => Some(self.find_track(&[&machine, "causes of slow operations"])?),
        };
        for row in 0..operations.len() {
            let at = |column: &Vec<i64>| column.get(row).copied().unwrap_or_default();
            let thread = operations.thread.get(row).copied().unwrap_or_default();
            let track = match threads.get(&thread) {
                Some(track) => *track,
                None => {
                    let track = self.find_track(&[&machine, &format!("thread {thread}")])?;
                    threads.insert(thread, track);
                    track
                }
            };
            let kind = operations.kind.get(row).and_then(|kind| operations.kinds.get(usize::from(*kind)));
            let start = Nanos(at(&operations.start).max(0).cast_unsigned());
            let end = Nanos(start.0.saturating_add(at(&operations.wall).max(0).cast_unsigned()));
            let span = (shift(start), shift(end));
            let about = columns.take(row as u32);
            let flow = match (slow.get(&(row as u32)), causes) {
                (Some(cause), Some(causes)) => Some(self.write_cause(causes, cause, span.0)?),
                _ => None,
            };
            let name = kind.map_or("operation", String::as_str);
            self.write_slice(track, (name, "operation"), span, &about, flow)?;
        }
        Ok(())
    }

    /// An instant that names what made an operation slow, and the flow that leaves it.
    fn write_cause(&mut self, track: u64, cause: &str, at: Nanos) -> io::Result<u64> {
        self.last_flow += 1;
        let flow = self.last_flow;
        self.write_track_event(at, (cause, "cause"), &[], |event| TrackEvent {
            r#type: TrackEventType::Instant.into(),
            track_uuid: track,
            flow_ids: vec![flow],
            ..event
        })?;
        Ok(flow)
    }

    /// Ends the trace, and gives what it was written to.
    ///
    /// # Errors
    /// What writing fails with.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn machine_name(&self, target: Option<u32>) -> String {
        let manifest = &self.record.manifest;
        let target = target.and_then(|target| manifest.targets.get(target as usize));
        target.map_or_else(|| manifest.target.clone(), |target| target.name.clone())
    }

    /// How far the clock of an iteration's target was ahead when that ended: each boot has a clock of its own.
    fn clock_offset(&self, iteration: TracedIteration) -> i64 {
        let Some(target) = iteration.target else { return 0 };
        let is_own = |one: &&IterationRecord| (one.slot, one.target) == (iteration.slot, iteration.target);
        let end = self.record.iterations.iter().find(is_own).map(|one| one.end);
        let known = self.clocks.get(&target).into_iter().flatten();
        let latest = known.take_while(|(at, _)| end.is_some_and(|end| *at <= end)).last();
        let at_first = || self.record.manifest.targets.get(target as usize).map_or(0, |one| one.clock.offset);
        latest.map_or_else(at_first, |(_, offset)| *offset)
    }

    /// The track of this path, whose parts are declared when they are first used.
    fn find_track(&mut self, path: &[&str]) -> io::Result<u64> {
        let key: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
        if let Some(known) = self.tracks.get(&key) {
            return Ok(*known);
        }
        let Some((name, parents)) = path.split_last() else { return Ok(0) };
        let parent_uuid = if parents.is_empty() { None } else { Some(self.find_track(parents)?) };
        let about = format!("perflab run {}", self.record.manifest.id);
        let track = self.declare_track(TrackDescriptor {
            name: Some((*name).to_owned()),
            parent_uuid,
            description: parents.is_empty().then_some(about),
            ..TrackDescriptor::default()
        })?;
        self.tracks.insert(key, track);
        Ok(track)
    }

    fn declare_track(&mut self, track: TrackDescriptor) -> io::Result<u64> {
        self.last_track += 1;
        let uuid = self.last_track;
        let track_descriptor = Some(TrackDescriptor { uuid, ..track });
        self.write_packet(TracePacket { track_descriptor, ..TracePacket::default() })?;
        Ok(uuid)
    }

    fn write_slice(
        &mut self,
        track: u64,
        (name, category): (&str, &str),
        (begin, end): (Nanos, Nanos),
        about: &[Annotation],
        flow: Option<u64>,
    ) -> io::Result<()> {
        self.write_track_event(begin, (name, category), about, |event| TrackEvent {
            r#type: TrackEventType::SliceBegin.into(),
            track_uuid: track,
            terminating_flow_ids: flow.into_iter().collect(),
            ..event
        })?;
        self.write_packet(TracePacket {
            timestamp: Some(end.0.max(begin.0)),
            timestamp_clock_id: Some(MONOTONIC),
            track_event: Some(TrackEvent {
                r#type: TrackEventType::SliceEnd.into(),
                track_uuid: track,
                ..TrackEvent::default()
            }),
            ..TracePacket::default()
        })
    }

    /// An event with a name; what is left of it is for `finish` to fill in.
    fn write_track_event(
        &mut self,
        at: Nanos,
        (name, category): (&str, &str),
        about: &[Annotation],
        finish: impl FnOnce(TrackEvent) -> TrackEvent,
    ) -> io::Result<()> {
        let mut fresh = InternedData::default();
        let name_iid = self.event_names.intern(name, &mut fresh.event_names);
        let mut debug_annotations = Vec::with_capacity(about.len());
        for (name, value) in about {
            let name_iid = self.annotation_names.intern(name, &mut fresh.debug_annotation_names);
            let annotation = DebugAnnotation { name_iid, ..DebugAnnotation::default() };
            debug_annotations.push(match value {
                AnnotationValue::Whole(value) => DebugAnnotation { int_value: Some(*value), ..annotation },
                AnnotationValue::Number(value) => {
                    DebugAnnotation { double_value: Some(*value), ..annotation }
                }
                AnnotationValue::Text(value) => {
                    DebugAnnotation { string_value: Some(value.clone()), ..annotation }
                }
            });
        }
        let event = TrackEvent {
            name_iid: Some(name_iid),
            categories: vec![category.to_owned()],
            debug_annotations,
            ..TrackEvent::default()
        };
        self.write_packet(TracePacket {
            timestamp: Some(at.0),
            timestamp_clock_id: Some(MONOTONIC),
            sequence_flags: Some(NEEDS_INCREMENTAL_STATE),
            interned_data: (fresh != InternedData::default()).then_some(fresh),
            track_event: Some(finish(event)),
            ..TracePacket::default()
        })
    }

    fn write_packet(&mut self, packet: TracePacket) -> io::Result<()> {
        // A trace of one packet: such messages, one behind the other, are a trace of all their packets.
        let packet = TracePacket { trusted_packet_sequence_id: SEQUENCE, ..packet };
        self.out.write_all(&Trace { packet: vec![packet] }.encode_to_vec())
    }
}

/// What operations carry, read row by row.
struct AnnotationColumns<'a> {
    columns: Vec<(String, &'a SparseColumn)>,
    /// How many values of each column are read.
    read: Vec<usize>,
}

impl<'a> AnnotationColumns<'a> {
    fn new(operations: &'a OperationColumns) -> Self {
        let kernel = [
            ("preempted [ns]", &operations.preempted),
            ("waited [ns]", &operations.waited),
            ("page faults", &operations.faults),
        ];
        let mut columns: Vec<(String, &SparseColumn)> =
            kernel.into_iter().map(|(name, column)| (name.to_owned(), column)).collect();
        for span in &operations.spans {
            columns.push((format!("{} [ns]", span.name), &span.time));
            columns.push((format!("{} [times]", span.name), &span.count));
        }
        columns.extend(operations.numbers.iter().map(|number| (number.name.clone(), &number.values)));
        columns.retain(|(_, column)| !column.is_empty());
        let read = vec![0; columns.len()];
        AnnotationColumns { columns, read }
    }

    /// What the row carries; rows are asked for in order.
    fn take(&mut self, row: u32) -> Vec<Annotation<'_>> {
        let mut found = Vec::new();
        for ((name, column), read) in self.columns.iter().zip(&mut self.read) {
            if let Some((_, value)) = column.nth(*read).filter(|(at, _)| *at == row) {
                *read += 1;
                found.push((name.as_str(), AnnotationValue::Whole(value)));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::RunBuilder;
    use perflab_model::column::ColumnSpec;
    use perflab_model::run::{ClockOffset, TargetRecord};
    use perflab_model::series::{SeriesSchema, StoredRows};
    use perflab_model::{Facts, Outcome, TableCell};

    use super::*;

    fn guest(name: &str, offset: i64) -> TargetRecord {
        TargetRecord {
            name: name.into(),
            kind: "vm".into(),
            kernel: String::new(),
            boot_id: String::new(),
            clock: ClockOffset { offset, ..ClockOffset::default() },
            facts: Facts::default(),
        }
    }

    fn times_of(trace: &Trace) -> Vec<u64> {
        let is_event = |packet: &&TracePacket| packet.track_event.is_some();
        trace.packet.iter().filter(is_event).filter_map(|packet| packet.timestamp).collect()
    }

    /// Rows were put on our clock when they came.
    #[test]
    fn what_a_target_recorded_stands_below_it_at_the_times_that_are_stored() {
        let mut record = RunBuilder::new("run").build_run(|_| Some(1.0));
        record.manifest.targets = vec![guest("guest1", 400)];
        let schema = SeriesSchema {
            stored: StoredRows::Every,
            monitor: "loadavg.guest1".into(),
            source: "/proc/loadavg".into(),
            interval: Nanos(100),
            columns: vec![ColumnSpec::gauge("runnable", "1")],
        };
        let rows: Vec<_> =
            [(1_000, 3), (1_100, 4)].map(|(at, value)| (Nanos(at), vec![TableCell::Int(value)])).into();
        let mut writer = PerfettoWriter::new(Vec::new(), &record).unwrap();
        writer.write_series(&Series::from_rows(schema, &rows)).unwrap();
        let trace = Trace::decode(writer.finish().unwrap().as_slice()).unwrap();
        let tracks: Vec<&str> = trace
            .packet
            .iter()
            .filter_map(|packet| packet.track_descriptor.as_ref()?.name.as_deref())
            .collect();
        assert_eq!(tracks, ["guest1", "loadavg", "runnable"]);
        assert_eq!(times_of(&trace), [1_000, 1_100]);
    }

    /// Operations are stored as the target's clock had them: 400 ns ahead in the first boot, 900 ns behind in the second.
    #[test]
    fn operations_of_a_target_are_put_on_our_clock_by_the_clock_of_their_boot() {
        let mut record = RunBuilder::new("run").build_run(|_| Some(1.0));
        record.manifest.targets = vec![guest("guest1", 400)];
        let ended = |slot, end| IterationRecord {
            target: Some(0),
            slot,
            outcome: Outcome::Ok,
            start: Nanos(0),
            end: Nanos(end),
        };
        record.iterations = vec![ended(0, 5_000), ended(1, 9_000)];
        let mut writer = PerfettoWriter::new(Vec::new(), &record).unwrap();
        let clock = RunEventKind::Clock(ClockOffset { offset: -900, ..ClockOffset::default() });
        writer.write_event(&RunEvent { at: Nanos(8_000), target: Some(0), what: clock }).unwrap();
        let operations = OperationColumns {
            kinds: vec!["insert".into()],
            kind: vec![0],
            thread: vec![7],
            start: vec![1_000],
            wall: vec![10],
            ..OperationColumns::default()
        };
        for slot in [0, 1] {
            let iteration = TracedIteration { slot, target: Some(0) };
            writer.write_operations(iteration, &operations, None).unwrap();
        }
        let trace = Trace::decode(writer.finish().unwrap().as_slice()).unwrap();
        assert_eq!(times_of(&trace), [600, 610, 1_900, 1_910]);
    }
}
