//! What a target tells, checked before it is believed. A target is somebody else's machine: it may name no slot,
//! metric or monitor that the plan does not give it, its times lie between the beginning and now, and its texts carry no
//! control characters. No message holds a path that this side would open.

use perflab_model::profile::{ProfileSummary, StackBatch, StackSample};
use perflab_model::series::{CellRow, SeriesGap, TableCell};
use perflab_model::{
    Fact, Facts, Manifest, Nanos, Overhead, RunEvent, RunEventKind, Sample, Scalar, SharedStr,
};

use super::mate::TargetSession;
use super::open::OpenSlot;
use crate::inert::remove_control_characters;
use crate::protocol::AgentHello;

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
pub(super) enum ValidatedReport {
    /// Belongs to the open slot.
    Hold(RunEvent),
    /// To be told at once.
    Pass(RunEvent),
    /// What the agent's own work cost.
    Cost(Overhead),
    /// Known already.
    Drop,
}

/// Who tells, and what it may tell now.
pub(super) struct ReportValidator<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) target: usize,
    pub(super) open: Option<&'a OpenSlot>,
    /// No time is before this one,
    pub(super) begun: Nanos,
    /// or after this one.
    pub(super) now: Nanos,
}

impl ReportValidator<'_> {
    /// The event on our time axis, or why the target cannot be believed.
    pub(super) fn validate(
        &self,
        mate: &mut TargetSession,
        event: RunEvent,
    ) -> Result<ValidatedReport, String> {
        let at = self.to_run_time(mate, event.at);
        let pass = |what| ValidatedReport::Pass(self.stamped_event(at, what));
        let hold = |what| ValidatedReport::Hold(self.stamped_event(at, what));
        Ok(match event.what {
            RunEventKind::Facts(facts) => {
                mate.facts = clean_facts(facts);
                ValidatedReport::Drop
            }
            RunEventKind::IterationBegan { .. } => ValidatedReport::Drop,
            RunEventKind::Ended { overhead, .. } => ValidatedReport::Cost(overhead),
            RunEventKind::Sample(sample) => hold(RunEventKind::Sample(self.validate_sample(mate, sample)?)),
            RunEventKind::IterationEnded { slot, outcome, start, end } => {
                self.expect_open_slot(slot)?;
                let (start, end) = (self.to_run_time(mate, start), self.to_run_time(mate, end));
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
            RunEventKind::Output { slot: None, text, .. } if !mate.may_print(text.len()) => {
                ValidatedReport::Drop
            }
            RunEventKind::Output { slot: None, name, text } => pass(RunEventKind::Output {
                slot: None,
                name: clean_label(&name),
                text: remove_control_characters(&text),
            }),
            RunEventKind::Gap(_) if !mate.may_report_gap() => ValidatedReport::Drop,
            RunEventKind::SettingApplied { .. } | RunEventKind::SettingUndone { .. }
                if !mate.may_report_change() =>
            {
                ValidatedReport::Drop
            }
            RunEventKind::SeriesOpened(_)
            | RunEventKind::Rows { .. }
            | RunEventKind::Changed { .. }
            | RunEventKind::Gap(_) => pass(self.validate_series(mate, event.what)?),
            RunEventKind::SettingApplied { setting, from, to, asked } => {
                let (setting, from, to) = (
                    remove_control_characters(&setting),
                    remove_control_characters(&from),
                    remove_control_characters(&to),
                );
                pass(RunEventKind::SettingApplied {
                    setting,
                    from,
                    to,
                    asked: asked.map(|asked| remove_control_characters(&asked)),
                })
            }
            RunEventKind::SettingUndone { setting, to } => pass(RunEventKind::SettingUndone {
                setting: remove_control_characters(&setting),
                to: remove_control_characters(&to),
            }),
            RunEventKind::Warning { .. } if !mate.may_warn() => ValidatedReport::Drop,
            RunEventKind::Warning { message, advice } => {
                let message = format!("{}: {}", mate.name, clean_sentence(&message));
                pass(RunEventKind::Warning { message, advice: clean_sentence(&advice) })
            }
            RunEventKind::Stacks(mut batch) => {
                self.expect_open_slot(batch.slot)?;
                self.check_samples(&batch)?;
                for at in batch.samples.iter_mut().filter_map(|sample| sample.at.as_mut()) {
                    *at = self.to_run_time(mate, *at);
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
            _ => return Err("it told what only the host may tell".into()),
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
            format!("it told of a sample that counts {count} times and weighs {weight}, as none can")
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
                "it told of {lost} samples lost, {unreadable} unreadable, at a cost of {cost}, as none can be"
            )
        })
    }

    /// How long the run has lasted.
    fn run_duration(&self) -> Nanos {
        self.now.since(self.begun).max(SHORTEST)
    }

    fn to_run_time(&self, mate: &TargetSession, theirs: Nanos) -> Nanos {
        mate.offset.to_ours(theirs).clamp(self.begun, self.now.max(self.begun))
    }

    /// The open slot, if the target is at it, has not ended it, and means it.
    fn expect_open_slot(&self, slot: u32) -> Result<&OpenSlot, String> {
        let mine = |open: &&OpenSlot| {
            open.has_target(self.target) && open.index == slot && !open.has_ended(self.target)
        };
        let open = self.open.filter(mine);
        open.ok_or_else(|| format!("it told of iteration {slot}, where it is not"))
    }

    fn validate_sample(&self, mate: &TargetSession, sample: Sample) -> Result<Sample, String> {
        let open = self.open.ok_or("it told of a value outside of any iteration")?;
        self.expect_open_slot(open.index)?;
        let uses = self.manifest.plan.case(open.slot.case).map(|case| case.uses.as_str()).unwrap_or_default();
        let known = self.manifest.plan.metrics.get(uses).into_iter().flatten();
        let metric = known.into_iter().find(|metric| metric.name == sample.metric);
        let metric =
            metric.ok_or_else(|| format!("it measured {:?}, which is not in the plan", sample.metric))?;
        if open.slot.warmup || open.has_reported_metric(self.target, &metric.name) {
            return Err(format!("it told of {} once too often", metric.name));
        }
        Ok(Sample {
            boot: open.slot.boot,
            target: u32::try_from(self.target).ok(),
            case: open.slot.case,
            iteration: open.slot.iteration,
            metric: SharedStr::from(&metric.name),
            value: sample.value,
            unit: metric.unit.clone(),
            direction: metric.direction,
            primary: metric.primary,
            start: self.to_run_time(mate, sample.start),
            end: self.to_run_time(mate, sample.end),
        })
    }

    /// Rows of a monitor of the study. Their table is `MONITOR.TARGET`: another kernel may have other columns.
    fn validate_series(&self, mate: &mut TargetSession, what: RunEventKind) -> Result<RunEventKind, String> {
        let own = |mate: &TargetSession, monitor: &str| format!("{monitor}.{}", mate.name);
        match what {
            RunEventKind::SeriesOpened(mut schema) => {
                let wanted = self.manifest.study.monitors.contains_key(&schema.monitor);
                if !wanted || schema.columns.len() > COLUMNS || mate.series.contains_key(&schema.monitor) {
                    return Err(format!("it opened a monitor {:?} that is not wanted", schema.monitor));
                }
                mate.series.insert(schema.monitor.clone(), (schema.columns.len(), 0));
                schema.monitor = own(mate, &schema.monitor);
                schema.source = remove_control_characters(&schema.source);
                schema
                    .columns
                    .iter_mut()
                    .for_each(|column| column.name = remove_control_characters(&column.name));
                Ok(RunEventKind::SeriesOpened(schema))
            }
            RunEventKind::Rows { monitor, rows } => {
                let known = mate.series.get_mut(&monitor);
                let fit = known.filter(|(width, _)| rows.iter().all(|row| row.len() == *width));
                let (_, last) = fit.ok_or_else(|| column_mismatch(&monitor))?;
                *last = rows.len();
                let rows = rows.into_iter().map(clean_row).collect();
                Ok(RunEventKind::Rows { monitor: own(mate, &monitor), rows })
            }
            RunEventKind::Changed { monitor, step, rows } => {
                let known = mate.series.get(&monitor).copied();
                let fits = |(place, row): &(u32, CellRow), (width, last): (usize, usize)| {
                    row.len() == width && (*place as usize) < last
                };
                if known.is_none_or(|known| !rows.iter().all(|row| fits(row, known))) {
                    return Err(column_mismatch(&monitor));
                }
                let rows = rows.into_iter().map(|(place, row)| (place, clean_row(row))).collect();
                Ok(RunEventKind::Changed { monitor: own(mate, &monitor), step, rows })
            }
            RunEventKind::Gap(gap) if self.manifest.study.monitors.contains_key(&gap.monitor) => {
                Ok(RunEventKind::Gap(SeriesGap {
                    monitor: own(mate, &gap.monitor),
                    from: self.to_run_time(mate, gap.from),
                    to: gap.to.map(|to| self.to_run_time(mate, to)),
                    reason: remove_control_characters(&gap.reason),
                }))
            }
            _ => Err("it told of a monitor that is not wanted".into()),
        }
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

/// A warning, advice or a reason: never longer than what somebody reads.
pub(super) fn clean_sentence(text: &str) -> String {
    remove_control_characters(text).chars().take(SENTENCE).collect()
}

fn clean_label(name: &str) -> String {
    remove_control_characters(name).chars().take(NAME).collect()
}

/// What an agent says of itself.
pub(super) fn clean_hello(hello: AgentHello) -> AgentHello {
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
    Facts(facts.0.into_iter().map(|(key, found)| (clean_label(&key), fact(found))).collect())
}

#[cfg(test)]
mod tests;
