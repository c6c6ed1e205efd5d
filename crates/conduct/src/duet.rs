//! Two levels at once, each on half of the CPUs: what disturbs the machine disturbs both, and cancels in their difference.
//!
//! Whether that holds is measured before the first iteration, by one level against itself: where the halves are no equals or
//! disturb each other, and iterations in turn would tell more after the same time, the run is refused with the figures.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use perflab_model::event::RunPhase;
use perflab_model::quantity::format_share;
use perflab_model::{Case, DuetCheck, Refusal, RunEventKind, Sample, Slot, describe_error_chain};
use perflab_observe::{CpuTopology, RealtimeGuard};
use perflab_stats::{DuetNoise, DuetRound};
use perflab_workload::{WorkloadDefinition, list_allowed_cpus};

use crate::error::ConductError;
use crate::execution_place::ExecutionPlace;
use crate::executor::{
    OpenIteration, ProcessRun, ReadyIteration, SlotExecutor, StagedExecution, parse_samples, run_process,
};

/// How often one level is run against itself, at once and in turn.
const ROUNDS: u32 = 6;

/// The halves of this machine, and what is known of the pair of iterations that is next.
#[derive(Debug)]
pub(crate) struct DuetState {
    check: Box<DuetCheck>,
    /// whether the event consumer knows the check
    is_reported: bool,
    /// what was done for the two iterations that are next
    ready: Option<[ReadyIteration; 2]>,
    /// whether the second of the two that were carried out together went well
    second: Option<bool>,
}

impl SlotExecutor<'_> {
    /// Finds the halves of this machine and measures whether the plan's levels should run on them at once.
    ///
    /// # Errors
    /// The machine has no halves, or iterations in turn tell more.
    pub(crate) fn check_duet(&mut self) -> Result<Option<DuetState>, ConductError> {
        if !self.manifest.plan.is_duet() {
            return Ok(None);
        }
        let halves = CpuTopology::read(&self.host.root)?.split_in_halves(&list_allowed_cpus())?;
        self.stream.send_phase(RunPhase::CheckHalves)?;
        let check = self.measure_halves(halves)?;
        self.stream.send_phase(RunPhase::Prepare)?;
        Ok(Some(DuetState { check: Box::new(check), is_reported: false, ready: None, second: None }))
    }

    /// Runs the first case against itself.
    fn measure_halves(&mut self, halves: [Vec<u32>; 2]) -> Result<DuetCheck, ConductError> {
        let plan = &self.manifest.plan;
        let refused = |what: String, hint: &str| {
            ConductError::Refused(vec![Refusal { what: format!("run.order: {what}"), hint: hint.into() }])
        };
        let found = plan.slots.first().and_then(|slot| Some((*slot, plan.case(slot.case)?)));
        let Some((slot, case)) = found else { return Err(refused("there is nothing to run".into(), "")) };
        self.begin_iteration(&slot, case)?;
        let (mut metric, mut rounds) = (String::new(), Vec::new());
        // The first is the warm-up.
        for round in 0..=ROUNDS {
            let mut together = self.run_unrecorded((&slot, case), &halves, &[0, 1])?.into_iter();
            let alone = [
                self.run_unrecorded((&slot, case), &halves, &[0])?,
                self.run_unrecorded((&slot, case), &halves, &[0])?,
            ];
            let mut alone = alone.into_iter().flatten();
            let values = [together.next(), together.next(), alone.next(), alone.next()];
            let [Some(first), Some(second), Some(before), Some(after)] = values else { continue };
            metric = first.metric.to_string();
            if round > 0 {
                rounds.push(DuetRound {
                    together: [first.value, second.value],
                    alone: [before.value, after.value],
                });
            }
        }
        let noise = DuetNoise::from_rounds(&rounds).map_err(|error| {
            let what = format!("{metric} of `{}` against itself: {error}", case.label());
            refused(what, "`duet` compares positive values; leave `order` out")
        })?;
        if !noise.favours_duet() {
            let ratio = noise.width_ratio();
            // Of two in turn that never differ, there is none.
            let consequence = if ratio.is_finite() {
                format!(": an interval of the same time would be {ratio:.1} times as wide")
            } else {
                String::new()
            };
            let what = format!(
                "`{}` against itself: two at once differ by {} (correlation {:.2}; the first half is {} {}), two in turn by {}{}",
                case.label(),
                format_share(noise.together_spread),
                noise.correlation,
                format_share(noise.half_difference.value.abs()),
                if noise.half_difference.value < 0.0 { "lower" } else { "higher" },
                format_share(noise.alone_spread),
                consequence,
            );
            return Err(refused(
                what,
                "leave `order` out: iterations in turn, in randomised blocks, tell more on this machine",
            ));
        }
        Ok(DuetCheck {
            halves,
            case: slot.case,
            metric,
            together: rounds.iter().map(|round| round.together).collect(),
            alone: rounds.iter().map(|round| round.alone).collect(),
            correlation: noise.correlation,
            together_spread: noise.together_spread,
            alone_spread: noise.alone_spread,
        })
    }

    /// Runs a case on some of the halves at once; gives the value of its deciding metric on each.
    fn run_unrecorded(
        &mut self,
        (slot, case): (&Slot, &Case),
        halves: &[Vec<u32>; 2],
        on: &[usize],
    ) -> Result<Vec<Sample>, ConductError> {
        let Some(definition) = self.host.catalogue.get(&case.uses) else { return Ok(Vec::new()) };
        let failed = |what: String| {
            let what = format!("run.order: `{}` against itself: {what}", case.label());
            ConductError::Refused(vec![Refusal { what, hint: "run it by `perflab workload try`".into() }])
        };
        let mut staged = Vec::new();
        for half in on {
            // Iterations have numbers below these.
            let number = u32::MAX - u32::try_from(*half).unwrap_or_default();
            let ready = self.make_ready(number, slot, case)?;
            let open = OpenIteration::unrecorded(number, slot, case, definition);
            let ready = open.take_failure(self, ready)?.map_err(failed)?;
            let cpus = halves.get(*half).cloned().unwrap_or_default();
            staged.push((open, open.stage(self, ready)?.on(ExecutionPlace::on_cpus(cpus))));
        }
        if self.stop.is_requested() {
            return Err(ConductError::StoppedEarly);
        }
        let executions: Vec<&StagedExecution> = staged.iter().map(|(_, execution)| execution).collect();
        let runs = match executions.as_slice() {
            [first, second] => Vec::from(self.run_together([first, second], &|| None)),
            _ => executions.into_iter().map(|one| self.run_alone(one)).collect(),
        };
        let mut deciding = Vec::new();
        for ((open, StagedExecution { host, server, .. }), run) in staged.into_iter().zip(runs) {
            let watched = open.conclude(self, (host, server), run, None)?;
            if self.stop.is_requested() {
                return Err(ConductError::StoppedEarly);
            }
            let failure = watched.finished.failure_beyond(&definition.allow_exit).or(watched.concluded);
            if let Some(reason) = failure {
                return Err(failed(reason));
            }
            let samples = parse_samples(case, slot, definition, &watched.finished, self);
            let mut samples = samples.map_err(|error| failed(error.to_string()))?;
            let index = samples.iter().position(|sample| sample.primary).unwrap_or_default();
            if index >= samples.len() {
                return Err(failed("it has no metric".into()));
            }
            deciding.push(samples.swap_remove(index));
        }
        Ok(deciding)
    }

    /// Makes everything ready for a slot and, where that is the first of two at once, for the other.
    pub(crate) fn prepare_duet(&mut self, duet: &mut DuetState, index: u32) -> Result<(), ConductError> {
        if !index.is_multiple_of(2) {
            return Ok(()); // done with the one before
        }
        let mut ready = Vec::new();
        for number in [index, index.saturating_add(1)] {
            let plan = &self.manifest.plan;
            let slot = plan.slots.get(number as usize).copied();
            let Some((slot, case)) = slot.and_then(|slot| Some((slot, plan.case(slot.case)?))) else {
                return Ok(());
            };
            self.prepare_slot(number, &slot, case)?;
            ready.push(self.take_ready().unwrap_or_default());
        }
        duet.ready = <[ReadyIteration; 2]>::try_from(ready).ok();
        Ok(())
    }

    /// Carries out a slot and, where that is the first of two at once, the other. `false` where the slot's own iteration failed.
    pub(crate) fn carry_out_duet(
        &mut self,
        duet: &mut DuetState,
        index: u32,
        begin: &dyn Fn() -> Option<RealtimeGuard>,
    ) -> Result<bool, ConductError> {
        if let Some(second) = duet.second.take() {
            return Ok(second);
        }
        let Some(ready) = duet.ready.take() else { return Ok(false) };
        let halves = duet.check.halves.clone();
        if !std::mem::replace(&mut duet.is_reported, true) {
            let check = duet.check.clone();
            self.stream.send(RunEventKind::DuetChecked(check))?;
        }
        let [good, second] = self.run_pair(index, ready, halves, begin)?;
        duet.second = Some(second);
        Ok(good)
    }

    fn run_pair(
        &mut self,
        index: u32,
        ready: [ReadyIteration; 2],
        halves: [Vec<u32>; 2],
        begin: &dyn Fn() -> Option<RealtimeGuard>,
    ) -> Result<[bool; 2], ConductError> {
        let (plan, host) = (&self.manifest.plan, self.host);
        let mut opened = Vec::new();
        for (number, (ready, half)) in (index..).zip(ready.into_iter().zip(halves)) {
            let slot = plan.slots.get(number as usize);
            let slot = slot.and_then(|slot| Some((slot, plan.case(slot.case)?)));
            let found: Option<(&Slot, &Case, &WorkloadDefinition)> =
                slot.and_then(|(slot, case)| Some((slot, case, host.catalogue.get(&case.uses)?)));
            let Some((slot, case, definition)) = found else { return Ok([false; 2]) };
            let open = OpenIteration::begin(self, (number, slot, case), definition)?;
            let staged = match open.take_failure(self, ready)? {
                Ok(ready) => open.stage(self, ready),
                Err(reason) => Err(ConductError::Early { reason }),
            };
            opened.push((open, staged.map(|staged| staged.on(ExecutionPlace::on_cpus(half)))));
        }
        let failure =
            opened.iter().find_map(|(_, staged)| Some(describe_error_chain(staged.as_ref().err()?)));
        let mut good = Vec::new();
        if let Some(failure) = failure {
            for (open, staged) in opened {
                let error = match staged {
                    Err(error) => error,
                    Ok(StagedExecution { host, server, .. }) => {
                        let ready = ReadyIteration::failed(host, server, String::new());
                        let _ = open.take_failure(self, ready)?;
                        let reason = format!(
                            "the iteration that was to run at the same time could not begin: {failure}"
                        );
                        ConductError::Early { reason }
                    }
                };
                good.push(open.end(self, Err(error))?);
            }
        } else {
            let staged: Vec<(OpenIteration<'_>, StagedExecution)> =
                opened.into_iter().filter_map(|(open, staged)| Some((open, staged.ok()?))).collect();
            let [(_, first), (_, second)] = staged.as_slice() else { return Ok([false; 2]) };
            let runs = self.run_together([first, second], begin);
            for ((open, StagedExecution { host, server, .. }), run) in staged.into_iter().zip(runs) {
                let watched = open.conclude(self, (host, server), run, None);
                good.push(open.end(self, watched)?);
            }
        }
        Ok(<[bool; 2]>::try_from(good).unwrap_or([false; 2]))
    }

    fn run_alone(&self, staged: &StagedExecution) -> ProcessRun {
        let limit = self.manifest.study.run.time_limit.0;
        run_process(staged, self.fixes_addresses, (limit, &self.stop.flag()), || (), |_| ())
    }

    /// Starts two processes at one moment, each from a thread of its own; the one of the first half after `begin`.
    fn run_together(
        &self,
        [first, second]: [&StagedExecution; 2],
        begin: &dyn Fn() -> Option<RealtimeGuard>,
    ) -> [ProcessRun; 2] {
        let (limit, fixes) = (self.manifest.study.run.time_limit.0, self.fixes_addresses);
        let stop = self.stop.flag();
        let stop: &AtomicBool = &stop;
        // Whoever cannot start goes without a word: then the other's wait is over, too.
        let (to_second, from_first) = channel::<()>();
        let (to_first, from_second) = channel::<()>();
        std::thread::scope(|scope| {
            let partner = scope.spawn(move || {
                let begin = move || {
                    let _ = to_first.send(());
                    let _ = from_first.recv();
                };
                run_process(second, fixes, (limit, stop), begin, |_| ())
            });
            let begin = move || {
                let _ = from_second.recv();
                let urgent = begin();
                let _ = to_second.send(());
                urgent
            };
            let first = run_process(first, fixes, (limit, stop), begin, |_| ());
            let second = partner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            [first, second]
        })
    }
}
