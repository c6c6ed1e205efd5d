//! What a target reports, checked against the plan before it is believed.
//!
//! A target is somebody else's machine: it may name no slot, metric or monitor that the plan does not give it, its
//! times lie between the beginning and now, and its texts carry no control characters. No message holds a path that
//! this side would open.

use perflab_model::column::{CellRow, TableCell};
use perflab_model::io_trace::IO_TRACER;
use perflab_model::operation::OPERATION_TRACER;
use perflab_model::profile::{ProfileSummary, StackBatch};
use perflab_model::series::SeriesGap;
use perflab_model::{
    EdgeReading, Fact, FactDocument, Facts, Manifest, Nanos, Overhead, RunEvent, RunEventKind, RunStatus,
    Sample, Scalar, SharedStr, StackSample, remove_control_characters,
};

use crate::open_slot::OpenSlot;
use crate::protocol::{AgentHello, TraceFilePart};
use crate::targets::TargetSession;

/// Columns of a monitor: the widest known has under 300.
const COLUMNS: usize = 4096;

/// Characters of the name of an output.
const NAME: usize = 64;

/// Characters of a warning, and of its advice.
const SENTENCE: usize = 2000;

/// What one sample may weigh, for each nanosecond that the run has lasted: no processor counts so many cycles,
const WEIGHT_EACH: u64 = 64;

/// and what is counted or spent in a run that has hardly begun.
const SHORTEST: Nanos = Nanos(1_000_000_000);

/// What becomes of an event.
#[derive(Debug)]
pub(crate) enum ValidatedReport {
    /// Belongs to the open slot.
    Hold(RunEvent),
    /// To be sent at once.
    Pass(RunEvent),
    /// The target is done.
    Ended {
        /// failed where what it had set up could not be put away
        status: RunStatus,
        /// what the agent's own work cost
        overhead: Overhead,
    },
    /// Known already.
    Drop,
}

/// Which target reports, and what it may report now.
pub(crate) struct ReportValidator<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) target: usize,
    pub(crate) open: Option<&'a OpenSlot>,
    /// No time is before this one,
    pub(crate) begun: Nanos,
    /// or after this one.
    pub(crate) now: Nanos,
}

impl ReportValidator<'_> {
    /// The event on our time axis, or why the target cannot be believed.
    pub(crate) fn validate(
        &self,
        session: &mut TargetSession,
        event: RunEvent,
    ) -> Result<ValidatedReport, String> {
        let at = self.to_run_time(session, event.at);
        let pass = |what| ValidatedReport::Pass(self.stamped_event(at, what));
        let hold = |what| ValidatedReport::Hold(self.stamped_event(at, what));
        Ok(match event.what {
            RunEventKind::Facts(facts) => {
                session.facts = clean_facts(facts);
                ValidatedReport::Drop
            }
            RunEventKind::Document(document) if !session.may_send_document(&document) => {
                ValidatedReport::Drop
            }
            RunEventKind::Document(document) => pass(RunEventKind::Document(clean_document(&document))),
            RunEventKind::IterationBegan { .. } => ValidatedReport::Drop,
            RunEventKind::Ended { status, overhead } => ValidatedReport::Ended { status, overhead },
            RunEventKind::Sample(sample) => {
                hold(RunEventKind::Sample(self.validate_sample(session, sample)?))
            }
            RunEventKind::IterationEnded { slot, outcome, start, end } => {
                self.expect_open_slot(slot)?;
                let (start, end) = (self.to_run_time(session, start), self.to_run_time(session, end));
                hold(RunEventKind::IterationEnded { slot, outcome: clean_outcome(outcome), start, end })
            }
            RunEventKind::Output { slot: Some(slot), name, text } => {
                self.expect_open_slot(slot)?;
                hold(RunEventKind::Output {
                    slot: Some(slot),
                    name: clean_label(&name),
                    text: remove_control_characters(&text),
                })
            }
            RunEventKind::Output { slot: None, text, .. } if !session.may_print(text.len()) => {
                ValidatedReport::Drop
            }
            RunEventKind::Output { slot: None, name, text } => pass(RunEventKind::Output {
                slot: None,
                name: clean_label(&name),
                text: remove_control_characters(&text),
            }),
            RunEventKind::Gap(_) if !session.may_report_gap() => ValidatedReport::Drop,
            RunEventKind::SettingApplied { .. }
            | RunEventKind::SettingUndone { .. }
            | RunEventKind::SettingOverwritten { .. }
                if !session.may_report_change() =>
            {
                ValidatedReport::Drop
            }
            RunEventKind::Edge(reading) => {
                hold(RunEventKind::Edge(self.validate_edge(session, event.at, reading)?))
            }
            // A monitor is opened twice where it is read on a clock and at edges.
            RunEventKind::SeriesOpened(schema)
                if session
                    .series
                    .get(&schema.monitor)
                    .is_some_and(|(width, _)| *width == schema.columns.len()) =>
            {
                ValidatedReport::Drop
            }
            RunEventKind::SeriesOpened(_)
            | RunEventKind::Rows { .. }
            | RunEventKind::Changed { .. }
            | RunEventKind::Gap(_) => pass(self.validate_series(session, event.what)?),
            RunEventKind::SettingOverwritten { slot: Some(slot), .. } => {
                self.expect_open_slot(slot)?;
                hold(clean_setting_event(event.what))
            }
            RunEventKind::SettingApplied { .. }
            | RunEventKind::SettingUndone { .. }
            | RunEventKind::SettingOverwritten { .. } => pass(clean_setting_event(event.what)),
            RunEventKind::Warning { .. } if !session.may_warn() => ValidatedReport::Drop,
            RunEventKind::Warning { message, advice } => {
                let message = format!("{}: {}", session.name, clean_sentence(&message));
                pass(RunEventKind::Warning { message, advice: clean_sentence(&advice) })
            }
            RunEventKind::Stacks(mut batch) => {
                self.expect_open_slot(batch.slot)?;
                self.check_samples(&batch)?;
                for at in batch.samples.iter_mut().filter_map(|sample| sample.at.as_mut()) {
                    *at = self.to_run_time(session, *at);
                }
                hold(RunEventKind::Stacks(batch))
            }
            RunEventKind::Profiled(mut about) => {
                self.expect_open_slot(about.slot)?;
                self.check_profile_size(&about)?;
                (about.source, about.event) = (clean_label(&about.source), clean_label(&about.event));
                about.hides = about.hides.as_deref().map(remove_control_characters);
                about.anchors.iter_mut().for_each(|anchor| anchor.name = clean_label(&anchor.name));
                hold(RunEventKind::Profiled(about))
            }
            _ => return Err("it reported what only the host may report".into()),
        })
    }

    fn stamped_event(&self, at: Nanos, what: RunEventKind) -> RunEvent {
        RunEvent { at, target: u32::try_from(self.target).ok(), what }
    }

    /// Refuses samples of which none can be.
    fn check_samples(&self, batch: &StackBatch) -> Result<(), String> {
        let most = self.run_duration().0.saturating_mul(WEIGHT_EACH);
        let odd = batch.samples.iter().find(|one| one.count != 1 || one.weight > most);
        let wrong = |odd: &StackSample| {
            let (count, weight) = (odd.count, odd.weight);
            format!("it reported an impossible sample: count {count}, weight {weight}")
        };
        odd.map_or(Ok(()), |odd| Err(wrong(odd)))
    }

    /// Refuses a profile that no run of this length can have: a sample each nanosecond is more than any kernel takes, or loses.
    fn check_profile_size(&self, about: &ProfileSummary) -> Result<(), String> {
        let most = self.run_duration();
        let is_possible =
            about.lost.max(about.unreadable) <= most.0 && about.cost.0 <= most.0.saturating_mul(WEIGHT_EACH);
        let ProfileSummary { lost, unreadable, cost, .. } = about;
        is_possible.then_some(()).ok_or_else(|| {
            format!(
                "it reported an impossible profile: {lost} samples lost, {unreadable} unreadable, cost {cost}"
            )
        })
    }

    /// How long the run has lasted.
    fn run_duration(&self) -> Nanos {
        self.now.since(self.begun).max(SHORTEST)
    }

    pub(crate) fn to_run_time(&self, session: &TargetSession, theirs: Nanos) -> Nanos {
        session.offset.to_ours(theirs).clamp(self.begun, self.now.max(self.begun))
    }

    /// The open slot, if the target is at it, has not ended it, and means it.
    fn expect_open_slot(&self, slot: u32) -> Result<&OpenSlot, String> {
        let mine = |open: &&OpenSlot| {
            open.has_target(self.target) && open.index == slot && !open.has_ended(self.target)
        };
        let open = self.open.filter(mine);
        open.ok_or_else(|| format!("it reported on iteration {slot}, which it is not running"))
    }

    fn validate_sample(&self, session: &TargetSession, sample: Sample) -> Result<Sample, String> {
        let open = self.open.ok_or("it reported a value outside of any iteration")?;
        self.expect_open_slot(open.index)?;
        let uses = self.manifest.plan.case(open.slot.case).map(|case| case.uses.as_str()).unwrap_or_default();
        let known = self.manifest.plan.metrics.get(uses).into_iter().flatten();
        let metric = known.into_iter().find(|metric| metric.covers(&sample.metric));
        let metric =
            metric.ok_or_else(|| format!("it measured {:?}, which is not in the plan", sample.metric))?;
        // A `*` covers whatever a target calls it.
        let is_declared = sample.metric == metric.name;
        let name = if is_declared { metric.name.clone() } else { clean_label(&sample.metric) };
        if open.slot.warmup || open.has_reported_metric(self.target, &name) {
            return Err(format!("it reported {name} once too often"));
        }
        Ok(Sample {
            boot: open.slot.boot,
            target: u32::try_from(self.target).ok(),
            case: open.slot.case,
            iteration: open.slot.iteration,
            metric: SharedStr::from(&name),
            value: sample.value,
            unit: metric.unit.clone(),
            direction: metric.direction,
            primary: metric.primary,
            start: self.to_run_time(session, sample.start),
            end: self.to_run_time(session, sample.end),
        })
    }

    /// Refuses a trace that the plan does not ask for; `is_traced` tells whether a workload writes one.
    pub(crate) fn expect_trace(
        &self,
        part: &TraceFilePart,
        is_traced: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let open = self.expect_open_slot(part.slot)?;
        let case = self.manifest.plan.case(open.slot.case);
        let is_expected = !open.slot.warmup
            && match part.tracer.as_str() {
                IO_TRACER => self.manifest.study.io.is_some(),
                OPERATION_TRACER => case.is_some_and(|case| is_traced(&case.uses)),
                _ => false,
            };
        let name = clean_label(&part.tracer);
        is_expected.then_some(()).ok_or_else(|| format!("it sent a trace {name:?} that is not in the plan"))
    }

    /// A reading of a monitor that was opened, in the iteration that runs.
    fn validate_edge(
        &self,
        session: &TargetSession,
        at: Nanos,
        reading: EdgeReading,
    ) -> Result<EdgeReading, String> {
        self.expect_open_slot(reading.slot)?;
        let known = session.series.get(&reading.monitor);
        if known.is_none_or(|(width, _)| reading.rows.iter().any(|row| row.len() != *width)) {
            return Err(column_mismatch(&reading.monitor));
        }
        let until = self.to_run_time(session, Nanos(at.0.saturating_add(reading.took.0)));
        Ok(EdgeReading {
            monitor: format!("{}.{}", reading.monitor, session.name),
            took: until.since(self.to_run_time(session, at)),
            rows: reading.rows.into_iter().map(clean_row).collect(),
            ..reading
        })
    }

    /// Rows of a monitor of the study. Their table is `MONITOR.TARGET`: another kernel may have other columns.
    fn validate_series(
        &self,
        session: &mut TargetSession,
        what: RunEventKind,
    ) -> Result<RunEventKind, String> {
        let own = |session: &TargetSession, monitor: &str| format!("{monitor}.{}", session.name);
        match what {
            RunEventKind::SeriesOpened(mut schema) => {
                let is_recorded = self.manifest.study.monitors.contains_key(&schema.monitor)
                    || self.manifest.plan.series.contains(&schema.monitor);
                if !is_recorded
                    || schema.columns.len() > COLUMNS
                    || session.series.contains_key(&schema.monitor)
                {
                    return Err(format!(
                        "it opened a monitor {:?} that the study does not have",
                        schema.monitor
                    ));
                }
                session.series.insert(schema.monitor.clone(), (schema.columns.len(), 0));
                schema.monitor = own(session, &schema.monitor);
                schema.source = remove_control_characters(&schema.source);
                schema
                    .columns
                    .iter_mut()
                    .for_each(|column| column.name = remove_control_characters(&column.name));
                Ok(RunEventKind::SeriesOpened(schema))
            }
            RunEventKind::Rows { monitor, rows, took } => {
                let known = session.series.get_mut(&monitor);
                let fit = known.filter(|(width, _)| rows.iter().all(|row| row.len() == *width));
                let (_, last) = fit.ok_or_else(|| column_mismatch(&monitor))?;
                *last = rows.len();
                let rows = rows.into_iter().map(clean_row).collect();
                Ok(RunEventKind::Rows {
                    monitor: own(session, &monitor),
                    rows,
                    took: took.min(self.run_duration()),
                })
            }
            RunEventKind::Changed { monitor, step, rows, took } => {
                let known = session.series.get(&monitor).copied();
                let fits = |(place, row): &(u32, CellRow), (width, last): (usize, usize)| {
                    row.len() == width && (*place as usize) < last
                };
                if known.is_none_or(|known| !rows.iter().all(|row| fits(row, known))) {
                    return Err(column_mismatch(&monitor));
                }
                let rows = rows.into_iter().map(|(place, row)| (place, clean_row(row))).collect();
                let took = took.min(self.run_duration());
                Ok(RunEventKind::Changed { monitor: own(session, &monitor), step, rows, took })
            }
            RunEventKind::Gap(gap) if self.manifest.study.monitors.contains_key(&gap.monitor) => {
                Ok(RunEventKind::Gap(SeriesGap {
                    monitor: own(session, &gap.monitor),
                    from: self.to_run_time(session, gap.from),
                    to: gap.to.map(|to| self.to_run_time(session, to)),
                    reason: remove_control_characters(&gap.reason),
                }))
            }
            _ => Err("it reported on a monitor that the study does not have".into()),
        }
    }
}

/// What a target says of a setting, without what a terminal would obey.
fn clean_setting_event(what: RunEventKind) -> RunEventKind {
    let clean = |text: String| remove_control_characters(&text);
    match what {
        RunEventKind::SettingApplied { setting, from, to, asked } => RunEventKind::SettingApplied {
            setting: clean(setting),
            from: clean(from),
            to: clean(to),
            asked: asked.map(clean),
        },
        RunEventKind::SettingUndone { setting, to } => {
            RunEventKind::SettingUndone { setting: clean(setting), to: clean(to) }
        }
        RunEventKind::SettingOverwritten { slot, setting, file, set, found, by } => {
            RunEventKind::SettingOverwritten {
                slot,
                setting: clean_label(&setting),
                file: clean(file),
                set: clean(set),
                found: clean(found),
                by: by.map(clean),
            }
        }
        other => other,
    }
}

fn column_mismatch(monitor: &str) -> String {
    format!("its rows of {monitor:?} do not fit what it opened")
}

fn clean_row(row: CellRow) -> CellRow {
    let cell = |cell| match cell {
        TableCell::Text(text) => TableCell::Text(remove_control_characters(&text)),
        other => other,
    };
    row.into_iter().map(cell).collect()
}

fn clean_outcome(outcome: perflab_model::Outcome) -> perflab_model::Outcome {
    match outcome {
        perflab_model::Outcome::Failed { reason } => {
            perflab_model::Outcome::Failed { reason: remove_control_characters(&reason) }
        }
        other => other,
    }
}

/// A warning, advice or a reason: never longer than what a person reads.
pub(crate) fn clean_sentence(text: &str) -> String {
    remove_control_characters(text).chars().take(SENTENCE).collect()
}

fn clean_label(name: &str) -> String {
    remove_control_characters(name).chars().take(NAME).collect()
}

/// What an agent says of itself.
pub(crate) fn clean_hello(hello: AgentHello) -> AgentHello {
    let (program, kernel, boot_id) =
        (clean_label(&hello.program), clean_label(&hello.kernel), clean_label(&hello.boot_id));
    AgentHello { program, kernel, boot_id, cpus: hello.cpus }
}

fn clean_facts(facts: Facts) -> Facts {
    let value = |value| match value {
        Scalar::Text(text) => Scalar::Text(remove_control_characters(&text)),
        other => other,
    };
    let fact =
        |fact: Fact| Fact { value: value(fact.value), source: remove_control_characters(&fact.source) };
    facts.into_iter().map(|(key, found)| (clean_label(&key), fact(found))).collect()
}

fn clean_document(document: &FactDocument) -> FactDocument {
    FactDocument {
        name: clean_label(&document.name),
        source: clean_label(&document.source),
        text: remove_control_characters(&document.text),
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::column::{ColumnKind, ColumnType};
    use perflab_model::event::RunPhase;
    use perflab_model::run::ClockAnchor;
    use perflab_model::series::SeriesSchema;
    use perflab_model::study::TomlSource;
    use perflab_model::{
        Case, ColumnSpec, CommId, Direction, FORMAT_VERSION, Facts, IterationEdge, Metric, Outcome,
        ProfileSummary, RunPlan, Slot, StackBatch, StackSample, Unit,
    };

    use super::*;

    fn example_manifest() -> Manifest {
        let text = "title = \"t\"\n[workload.echo]\n[target.guest]\nkind = \"process\"\ncount = 2\n[monitors]\nvmstat = \"1s\"\n";
        let metric = Metric {
            name: "speed".into(),
            unit: Unit::new("ops/s"),
            direction: Direction::Higher,
            primary: true,
        };
        let case = Case {
            workload: "echo".into(),
            uses: "echo".into(),
            point: Default::default(),
            parameters: Default::default(),
            environment: Default::default(),
            levels: Default::default(),
        };
        let plan = RunPlan {
            cases: vec![case],
            slots: vec![example_slot()],
            metrics: [("echo".to_owned(), vec![metric])].into_iter().collect(),
            ..RunPlan::default()
        };
        Manifest {
            format: FORMAT_VERSION,
            writer: "test".into(),
            id: "RUN".into(),
            label: None,
            study: TomlSource::new("s.toml", text).parse_study().unwrap(),
            study_text: String::new(),
            study_file: String::new(),
            brief: false,
            plan,
            facts: Facts::default(),
            boot_id: String::new(),
            target: "host".into(),
            targets: Vec::new(),
            variants: Vec::new(),
            duet: None,
            continues: None,
            first_part: None,
            anchor: ClockAnchor::default(),
            status: RunStatus::Running,
            overhead: Overhead::default(),
        }
    }

    fn example_slot() -> Slot {
        Slot { case: 0, iteration: 0, block: 0, warmup: false, boot: 0, layout: None }
    }

    #[derive(Debug)]
    struct NoAgent;

    impl crate::launcher::agent_handle::AgentHandle for NoAgent {
        fn end(&mut self) -> String {
            String::new()
        }
    }

    struct ValidatorFixture {
        manifest: Manifest,
        open: OpenSlot,
        session: TargetSession,
    }

    impl ValidatorFixture {
        fn new() -> Self {
            let session = TargetSession::new("guest1".into(), "process".into(), Some(Box::new(NoAgent)));
            ValidatorFixture {
                manifest: example_manifest(),
                open: OpenSlot::new(0, example_slot(), vec![0]),
                session,
            }
        }

        /// What becomes of `what` when target `target` reports it with a time far in the future.
        fn validate(&mut self, target: usize, what: RunEventKind) -> Result<ValidatedReport, String> {
            let (begun, now) = (Nanos(100), Nanos(200));
            let validator =
                ReportValidator { manifest: &self.manifest, target, open: Some(&self.open), begun, now };
            validator.validate(&mut self.session, RunEvent::new(Nanos(u64::MAX), what))
        }
    }

    fn example_sample(metric: &str) -> Sample {
        Sample {
            boot: 7,
            target: Some(9),
            case: 5,
            iteration: 4,
            metric: metric.into(),
            value: 1.0,
            unit: Unit::new("lies"),
            direction: Direction::Lower,
            primary: false,
            start: Nanos(0),
            end: Nanos(u64::MAX),
        }
    }

    fn opened_series(monitor: &str) -> RunEventKind {
        let column = ColumnSpec {
            name: "n\u{1b}[2J".into(),
            unit: Unit::new("1"),
            kind: ColumnKind::Gauge,
            stored: ColumnType::Int,
            nullable: true,
            meaning: String::new(),
        };
        let (monitor, source) = (monitor.to_owned(), "/proc/x".to_owned());
        RunEventKind::SeriesOpened(SeriesSchema {
            stored: perflab_model::series::StoredRows::Every,
            monitor,
            source,
            interval: Nanos(1),
            columns: vec![column],
        })
    }

    #[test]
    fn a_value_is_put_where_the_plan_has_it_whatever_it_claims() {
        let mut world = ValidatorFixture::new();
        let Ok(ValidatedReport::Hold(event)) =
            world.validate(0, RunEventKind::Sample(example_sample("speed")))
        else {
            panic!("not held")
        };
        let RunEventKind::Sample(found) = &event.what else { panic!("{event:?}") };
        assert_eq!((found.boot, found.target, found.case, found.iteration), (0, Some(0), 0, 0));
        assert_eq!(
            (found.unit.0.as_str(), found.direction, found.primary),
            ("ops/s", Direction::Higher, true)
        );
        assert_eq!((event.at, found.start, found.end), (Nanos(200), Nanos(100), Nanos(200)));
        world.open.hold(0, event).unwrap();
        let refused = ["speed", "../../etc"].map(|metric| {
            let sample = RunEventKind::Sample(example_sample(metric));
            world.validate(0, sample).unwrap_err()
        });
        insta::assert_snapshot!(refused.join("\n"), @r#"
        it reported speed once too often
        it measured "../../etc", which is not in the plan
        "#);
        assert!(
            world.validate(1, RunEventKind::Sample(example_sample("speed"))).is_err(),
            "it has no part in the slot"
        );
    }

    #[test]
    fn an_iteration_ends_once_and_only_the_one_that_is_open() {
        let mut world = ValidatorFixture::new();
        let end = |slot| RunEventKind::IterationEnded {
            slot,
            outcome: Outcome::Ok,
            start: Nanos(0),
            end: Nanos(1),
        };
        assert!(world.validate(0, end(1)).is_err());
        let Ok(ValidatedReport::Hold(event)) = world.validate(0, end(0)) else { panic!("not held") };
        world.open.hold(0, event).unwrap();
        assert!(world.validate(0, end(0)).is_err());
        assert!(world.validate(0, RunEventKind::Sample(example_sample("speed"))).is_err(), "too late");
    }

    #[test]
    fn only_monitors_of_the_study_and_rows_that_fit() {
        let mut world = ValidatorFixture::new();
        assert!(world.validate(0, opened_series("../../../etc/passwd")).is_err());
        let rows = |monitor: &str, width| RunEventKind::Rows {
            took: Nanos(0),
            monitor: monitor.into(),
            rows: vec![vec![TableCell::Int(1); width]],
        };
        assert!(world.validate(0, rows("vmstat", 1)).is_err(), "it was not opened");
        let Ok(ValidatedReport::Pass(event)) = world.validate(0, opened_series("vmstat")) else {
            panic!("not passed")
        };
        let RunEventKind::SeriesOpened(schema) = event.what else { panic!("no schema") };
        assert_eq!(
            (schema.monitor.as_str(), schema.columns[0].name.as_str()),
            ("vmstat.guest1", "n\u{fffd}[2J")
        );
        let again = world.validate(0, opened_series("vmstat"));
        assert!(matches!(again, Ok(ValidatedReport::Drop)), "on a clock and at edges");
        let mut wider = opened_series("vmstat");
        if let RunEventKind::SeriesOpened(schema) = &mut wider {
            schema.columns.push(schema.columns[0].clone());
        }
        assert!(world.validate(0, wider).is_err(), "as another");
        let edge = |slot, width| {
            let (monitor, rows) = ("vmstat".to_owned(), vec![vec![TableCell::Int(1); width]]);
            let (edge, took) = (IterationEdge::Begin, Nanos(50));
            RunEventKind::Edge(EdgeReading { slot, edge, monitor, took, rows })
        };
        let Ok(ValidatedReport::Hold(event)) = world.validate(0, edge(0, 1)) else { panic!("not held") };
        let RunEventKind::Edge(reading) = event.what else { panic!("no edge") };
        assert_eq!(reading.monitor, "vmstat.guest1");
        assert!(world.validate(0, edge(1, 1)).is_err(), "it does not run that");
        assert!(world.validate(0, edge(0, 2)).is_err());
        assert!(world.validate(0, rows("vmstat", 1)).is_ok());
        assert!(world.validate(0, rows("vmstat", 2)).is_err());
        let changed = |place| RunEventKind::Changed {
            took: Nanos(0),
            monitor: "vmstat".into(),
            step: 1,
            rows: vec![(place, vec![TableCell::Int(1)])],
        };
        assert!(world.validate(0, changed(0)).is_ok());
        assert!(world.validate(0, changed(u32::MAX)).is_err());
    }

    #[test]
    fn what_a_target_says_of_itself_is_inert_too() {
        let mut world = ValidatorFixture::new();
        let text = |text: &str| format!("{text}\u{1b}[2J");
        let hello = AgentHello { program: text("p"), kernel: text("6.1"), boot_id: text("id"), cpus: 1 };
        world.session.hello = Some(clean_hello(hello));
        let processor = Fact { value: Scalar::Text(text("a processor")), source: text("/proc/cpuinfo") };
        let number = Fact { value: Scalar::Int(7), source: String::new() };
        let facts = Facts::from_iter([(text("cpu.model"), processor), ("k".repeat(1000), number)]);
        assert!(matches!(world.validate(0, RunEventKind::Facts(facts)), Ok(ValidatedReport::Drop)));
        let record = world.session.target_record(Nanos(0));
        assert!(!serde_json::to_string(&record).unwrap().contains("\\u001b"), "{record:?}");
        assert_eq!(
            record.facts.iter().find(|(key, _)| key.starts_with("cpu.model")).unwrap().1.value,
            Scalar::Text("a processor\u{fffd}[2J".into())
        );
        assert!(record.facts.iter().all(|(key, _)| key.chars().count() <= NAME));
    }

    #[test]
    fn documents_are_inert_and_each_comes_once() {
        let mut world = ValidatorFixture::new();
        let document = |name: &str, text: String| {
            RunEventKind::Document(FactDocument { name: name.into(), source: "/proc/sys".into(), text })
        };
        let sent = document(FactDocument::SYSCTL, "vm.swappiness = \u{1b}[2J\n".into());
        let Ok(ValidatedReport::Pass(event)) = world.validate(0, sent.clone()) else { panic!("not passed") };
        assert_eq!(event.what, document(FactDocument::SYSCTL, "vm.swappiness = \u{fffd}[2J\n".into()));
        let long = document(FactDocument::KERNEL_CONFIG, "x".repeat(FactDocument::LONGEST + 1));
        for refused in [sent, long, document("../shadow", String::new())] {
            assert!(matches!(world.validate(0, refused), Ok(ValidatedReport::Drop)));
        }
    }

    #[test]
    fn texts_are_inert_and_what_only_the_host_may_tell_is_refused() {
        let mut world = ValidatorFixture::new();
        let text = "\u{1b}[31mred\u{202e}\r\nline\n".into();
        let output = RunEventKind::Output { slot: None, name: "../a\0b".into(), text };
        let Ok(ValidatedReport::Pass(event)) = world.validate(0, output) else { panic!("not passed") };
        assert_eq!(event.target, Some(0));
        let expected = RunEventKind::Output {
            slot: None,
            name: "../a\u{fffd}b".into(),
            text: "\u{fffd}[31mred\u{fffd}\nline\n".into(),
        };
        assert_eq!(event.what, expected);
        assert!(world.validate(0, RunEventKind::Phase(RunPhase::Finish)).is_err());
        assert!(world.validate(0, RunEventKind::Began(Box::new(example_manifest()))).is_err());
        assert!(world.validate(0, RunEventKind::TargetLost { reason: String::new() }).is_err());
    }

    #[test]
    fn warnings_and_prints_without_end_are_counted_and_not_passed_on() {
        let mut world = ValidatorFixture::new();
        let warning = || RunEventKind::Warning { message: "w".repeat(1 << 20), advice: String::new() };
        let mut passed = 0;
        for _ in 0..150 {
            if let ValidatedReport::Pass(RunEvent { what: RunEventKind::Warning { message, .. }, .. }) =
                world.validate(0, warning()).unwrap()
            {
                assert!(message.len() < 3000, "{}", message.len());
                passed += 1;
            }
        }
        assert_eq!(passed, 100);
        let text = "o".repeat(1 << 20);
        let output = || RunEventKind::Output { slot: None, name: "stdout".into(), text: text.clone() };
        let passed =
            (0..10).filter(|_| matches!(world.validate(0, output()), Ok(ValidatedReport::Pass(_)))).count();
        assert_eq!(passed, 4);
        let gap = || {
            RunEventKind::Gap(SeriesGap {
                monitor: "vmstat".into(),
                from: Nanos(0),
                to: None,
                reason: "r".into(),
            })
        };
        let passed =
            (0..1500).filter(|_| matches!(world.validate(0, gap()), Ok(ValidatedReport::Pass(_)))).count();
        assert_eq!(passed, 1000);
        let change = || RunEventKind::SettingUndone { setting: "sysctl s".into(), to: "1".into() };
        let passed = (0..100_001)
            .filter(|_| matches!(world.validate(0, change()), Ok(ValidatedReport::Pass(_))))
            .count();
        assert_eq!(passed, 100_000);
        insta::assert_snapshot!(world.session.dropped_summary().unwrap(), @"guest1: 50 further warnings, 500 further gaps, 1 further changes of settings, some of what it printed outside of iterations were dropped, for there were too many");
    }

    #[test]
    fn what_an_open_iteration_holds_of_a_target_has_an_end() {
        let batches = |comms: usize| {
            let batch = perflab_model::StackBatch { comms: vec![String::new(); comms], ..Default::default() };
            RunEvent::new(Nanos(0), RunEventKind::Stacks(Box::new(batch)))
        };
        let outputs = |length: usize| {
            let text = "o".repeat(length);
            RunEvent::new(Nanos(0), RunEventKind::Output { slot: Some(0), name: "stdout".into(), text })
        };
        for event in [batches(100_000), outputs(3 << 20)] {
            let mut open = OpenSlot::new(0, example_slot(), vec![0, 1]);
            let times = (0..1000).take_while(|_| open.hold(0, event.clone()).is_ok()).count();
            assert!((50..150).contains(&times), "{times}");
            open.hold(1, event.clone()).unwrap();
        }
    }

    #[test]
    fn a_profile_that_no_run_of_that_length_can_have_is_not_believed() {
        let sample = |count, weight| {
            let (at, cpu, pid, tid, comm, leaf) = (Some(Nanos(u64::MAX)), None, None, None, CommId(0), None);
            StackSample { at, cpu, pid, tid, comm, leaf, count, weight }
        };
        let batch = |count, weight| {
            RunEventKind::Stacks(Box::new(StackBatch {
                samples: vec![sample(count, weight)],
                ..StackBatch::default()
            }))
        };
        let about = |lost, unreadable, cost| {
            RunEventKind::Profiled(Box::new(ProfileSummary {
                lost,
                unreadable,
                cost: Nanos(cost),
                ..ProfileSummary::default()
            }))
        };
        let mut world = ValidatorFixture::new();
        for honest in [batch(1, 0), batch(1, 10_000_000), about(1000, 1000, 50_000_000)] {
            assert!(matches!(world.validate(0, honest), Ok(ValidatedReport::Hold(_))));
        }
        let most = u64::MAX;
        let lies = [
            batch(2, 1),
            batch(0, 1),
            batch(1, most),
            about(most, 0, 0),
            about(0, most, 0),
            about(0, 0, most),
        ];
        for lie in lies {
            assert!(world.validate(0, lie.clone()).is_err(), "{lie:?}");
        }
    }
}
