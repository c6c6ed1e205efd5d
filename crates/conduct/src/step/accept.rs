//! What a target tells, checked before it is believed. A target is somebody else's machine: it may name no slot,
//! metric or monitor that the plan does not give it, its times lie between the beginning and now, and its texts carry no
//! control characters. No message holds a path that this side would open.

use perflab_model::profile::{Profiled, StackBatch, StackSample};
use perflab_model::series::{Cell, Gap, Row};
use perflab_model::{Event, Fact, Facts, Manifest, Name, Nanos, Overhead, Sample, Value, What};

use super::mate::Mate;
use super::open::Open;
use crate::inert::inert;
use crate::protocol::Hello;

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
pub(super) enum Verdict {
    /// Belongs to the open slot.
    Hold(Event),
    /// To be told at once.
    Pass(Event),
    /// What the agent's own work cost.
    Cost(Overhead),
    /// Known already.
    Drop,
}

/// Who tells, and what it may tell now.
pub(super) struct Ear<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) target: usize,
    pub(super) open: Option<&'a Open>,
    /// No time is before this one,
    pub(super) begun: Nanos,
    /// or after this one.
    pub(super) now: Nanos,
}

impl Ear<'_> {
    /// The event on our time axis, or why the target cannot be believed.
    pub(super) fn judge(&self, mate: &mut Mate, event: Event) -> Result<Verdict, String> {
        let at = self.ours(mate, event.at);
        let pass = |what| Verdict::Pass(self.event(at, what));
        let hold = |what| Verdict::Hold(self.event(at, what));
        Ok(match event.what {
            What::Facts(facts) => {
                mate.facts = inert_facts(facts);
                Verdict::Drop
            }
            What::IterationBegan { .. } => Verdict::Drop,
            What::Ended { overhead, .. } => Verdict::Cost(overhead),
            What::Sample(sample) => hold(What::Sample(self.sample(mate, sample)?)),
            What::IterationEnded { slot, outcome, start, end } => {
                self.open_at(slot)?;
                let (start, end) = (self.ours(mate, start), self.ours(mate, end));
                hold(What::IterationEnded { slot, outcome: inert_outcome(outcome), start, end })
            }
            What::Output { slot: Some(slot), name, text } => {
                self.open_at(slot)?;
                hold(What::Output { slot: Some(slot), name: label(&name), text: inert(&text) })
            }
            What::Output { slot: None, text, .. } if !mate.may_print(text.len()) => Verdict::Drop,
            What::Output { slot: None, name, text } => {
                pass(What::Output { slot: None, name: label(&name), text: inert(&text) })
            }
            What::Gap(_) if !mate.may_gap() => Verdict::Drop,
            What::SettingApplied { .. } | What::SettingUndone { .. } if !mate.may_change() => Verdict::Drop,
            What::SeriesOpened(_) | What::Rows { .. } | What::Changed { .. } | What::Gap(_) => {
                pass(self.series(mate, event.what)?)
            }
            What::SettingApplied { setting, from, to, asked } => {
                let (setting, from, to) = (inert(&setting), inert(&from), inert(&to));
                pass(What::SettingApplied { setting, from, to, asked: asked.map(|asked| inert(&asked)) })
            }
            What::SettingUndone { setting, to } => {
                pass(What::SettingUndone { setting: inert(&setting), to: inert(&to) })
            }
            What::Warning { .. } if !mate.may_warn() => Verdict::Drop,
            What::Warning { message, advice } => {
                let message = format!("{}: {}", mate.name, sentence(&message));
                pass(What::Warning { message, advice: sentence(&advice) })
            }
            What::Stacks(mut batch) => {
                self.open_at(batch.slot)?;
                self.believe_samples(&batch)?;
                for at in batch.samples.iter_mut().filter_map(|sample| sample.at.as_mut()) {
                    *at = self.ours(mate, *at);
                }
                hold(What::Stacks(batch))
            }
            What::Profiled(mut about) => {
                self.open_at(about.slot)?;
                self.believe_profile(&about)?;
                (about.source, about.event) = (label(&about.source), label(&about.event));
                about.hides = about.hides.as_deref().map(inert);
                about.anchors.iter_mut().for_each(|anchor| anchor.name = label(&anchor.name));
                hold(What::Profiled(about))
            }
            _ => return Err("it told what only the host may tell".into()),
        })
    }

    fn event(&self, at: Nanos, what: What) -> Event {
        Event { at, target: u32::try_from(self.target).ok(), what }
    }

    /// Refuses samples of which none can be.
    fn believe_samples(&self, batch: &StackBatch) -> Result<(), String> {
        let most = self.lasted().0.saturating_mul(WEIGHT_EACH);
        let odd = batch.samples.iter().find(|one| one.count != 1 || one.weight > most);
        let wrong = |odd: &StackSample| {
            let (count, weight) = (odd.count, odd.weight);
            format!("it told of a sample that counts {count} times and weighs {weight}, as none can")
        };
        odd.map_or(Ok(()), |odd| Err(wrong(odd)))
    }

    /// Refuses a profile that no run of this length can have: a sample each nanosecond is more than any kernel takes, or loses.
    fn believe_profile(&self, about: &Profiled) -> Result<(), String> {
        let most = self.lasted();
        let is_possible =
            about.lost.max(about.unreadable) <= most.0 && about.cost.0 <= most.0.saturating_mul(WEIGHT_EACH);
        let Profiled { lost, unreadable, cost, .. } = about;
        is_possible.then_some(()).ok_or_else(|| {
            format!(
                "it told of {lost} samples lost, {unreadable} unreadable, at a cost of {cost}, as none can be"
            )
        })
    }

    /// How long the run has lasted.
    fn lasted(&self) -> Nanos {
        self.now.since(self.begun).max(SHORTEST)
    }

    fn ours(&self, mate: &Mate, theirs: Nanos) -> Nanos {
        mate.offset.ours(theirs).clamp(self.begun, self.now.max(self.begun))
    }

    /// The open slot, if the target is at it, has not ended it, and means it.
    fn open_at(&self, slot: u32) -> Result<&Open, String> {
        let mine = |open: &&Open| open.has(self.target) && open.index == slot && !open.ended(self.target);
        let open = self.open.filter(mine);
        open.ok_or_else(|| format!("it told of iteration {slot}, where it is not"))
    }

    fn sample(&self, mate: &Mate, sample: Sample) -> Result<Sample, String> {
        let open = self.open.ok_or("it told of a value outside of any iteration")?;
        self.open_at(open.index)?;
        let uses = self.manifest.plan.case(open.slot.case).map(|case| case.uses.as_str()).unwrap_or_default();
        let known = self.manifest.plan.metrics.get(uses).into_iter().flatten();
        let metric = known.into_iter().find(|metric| metric.name == sample.metric);
        let metric =
            metric.ok_or_else(|| format!("it measured {:?}, which is not in the plan", sample.metric))?;
        if open.slot.warmup || open.has_told(self.target, &metric.name) {
            return Err(format!("it told of {} once too often", metric.name));
        }
        Ok(Sample {
            boot: open.slot.boot,
            target: u32::try_from(self.target).ok(),
            case: open.slot.case,
            iteration: open.slot.iteration,
            metric: Name::from(&metric.name),
            value: sample.value,
            unit: metric.unit.clone(),
            direction: metric.direction,
            primary: metric.primary,
            start: self.ours(mate, sample.start),
            end: self.ours(mate, sample.end),
        })
    }

    /// Rows of a monitor of the study. Their table is `MONITOR.TARGET`: another kernel may have other columns.
    fn series(&self, mate: &mut Mate, what: What) -> Result<What, String> {
        let own = |mate: &Mate, monitor: &str| format!("{monitor}.{}", mate.name);
        match what {
            What::SeriesOpened(mut schema) => {
                let wanted = self.manifest.study.monitors.contains_key(&schema.monitor);
                if !wanted || schema.columns.len() > COLUMNS || mate.series.contains_key(&schema.monitor) {
                    return Err(format!("it opened a monitor {:?} that is not wanted", schema.monitor));
                }
                mate.series.insert(schema.monitor.clone(), (schema.columns.len(), 0));
                schema.monitor = own(mate, &schema.monitor);
                schema.source = inert(&schema.source);
                schema.columns.iter_mut().for_each(|column| column.name = inert(&column.name));
                Ok(What::SeriesOpened(schema))
            }
            What::Rows { monitor, rows } => {
                let known = mate.series.get_mut(&monitor);
                let fit = known.filter(|(width, _)| rows.iter().all(|row| row.len() == *width));
                let (_, last) = fit.ok_or_else(|| misfit(&monitor))?;
                *last = rows.len();
                let rows = rows.into_iter().map(inert_row).collect();
                Ok(What::Rows { monitor: own(mate, &monitor), rows })
            }
            What::Changed { monitor, step, rows } => {
                let known = mate.series.get(&monitor).copied();
                let fits = |(place, row): &(u32, Row), (width, last): (usize, usize)| {
                    row.len() == width && (*place as usize) < last
                };
                if known.is_none_or(|known| !rows.iter().all(|row| fits(row, known))) {
                    return Err(misfit(&monitor));
                }
                let rows = rows.into_iter().map(|(place, row)| (place, inert_row(row))).collect();
                Ok(What::Changed { monitor: own(mate, &monitor), step, rows })
            }
            What::Gap(gap) if self.manifest.study.monitors.contains_key(&gap.monitor) => Ok(What::Gap(Gap {
                monitor: own(mate, &gap.monitor),
                from: self.ours(mate, gap.from),
                to: gap.to.map(|to| self.ours(mate, to)),
                reason: inert(&gap.reason),
            })),
            _ => Err("it told of a monitor that is not wanted".into()),
        }
    }
}

fn misfit(monitor: &str) -> String {
    format!("its rows of {monitor:?} do not fit what it opened")
}

fn inert_row(row: Row) -> Row {
    let cell = |cell| match cell {
        Cell::Text(text) => Cell::Text(inert(&text)),
        other => other,
    };
    row.into_iter().map(cell).collect()
}

fn inert_outcome(outcome: perflab_model::Outcome) -> perflab_model::Outcome {
    match outcome {
        perflab_model::Outcome::Failed { reason } => {
            perflab_model::Outcome::Failed { reason: inert(&reason) }
        }
        other => other,
    }
}

/// A warning, advice or a reason: never longer than what somebody reads.
pub(super) fn sentence(text: &str) -> String {
    inert(text).chars().take(SENTENCE).collect()
}

fn label(name: &str) -> String {
    inert(name).chars().take(NAME).collect()
}

/// What an agent says of itself.
pub(super) fn inert_hello(hello: Hello) -> Hello {
    let (program, kernel, boot_id) = (label(&hello.program), label(&hello.kernel), label(&hello.boot_id));
    Hello { program, kernel, boot_id, cpus: hello.cpus }
}

fn inert_facts(facts: Facts) -> Facts {
    let value = |value| match value {
        Value::Text(text) => Value::Text(inert(&text)),
        other => other,
    };
    let fact = |fact: Fact| Fact { value: value(fact.value), source: inert(&fact.source) };
    Facts(facts.0.into_iter().map(|(key, found)| (label(&key), fact(found))).collect())
}

#[cfg(test)]
mod tests;
