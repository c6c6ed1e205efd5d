//! One launch of the targets, driven through the barrier: its inputs and actions carried between it and the
//! connections.

use std::collections::VecDeque;

use perflab_guest::{GuestError, find_panic};
use perflab_model::event::{RunPhase, TargetState, TargetStatus};
use perflab_model::io_trace::IO_TRACER;
use perflab_model::study::{LostTargetPolicy, SamplingSide};
use perflab_model::{
    FactDocument, IterationEdge, Nanos, PlannedParticipation, Refusal, RunEvent, RunEventKind, Slot,
    TargetRecord, remove_control_characters,
};
use perflab_observe::monotonic_now;

use crate::agent_worker::WorkerReport;
use crate::barrier::{
    Barrier, BarrierAction, BarrierInput, BarrierPoint, StageLimits, TargetLoss, UNLIMITED, round_stages,
    with_host_stages,
};
use crate::error::ConductError;
use crate::guest_sampling::GuestSamplings;
use crate::incoming_trace::{IncomingTraces, clean_io_recording};
use crate::multiplexer::ReceivedReport;
use crate::open_slot::{OpenSlot, event_memory};
use crate::preflight::join_launch_errors;
use crate::protocol::{AgentOrder, AgentReport, TraceFilePart};
use crate::report_validation::{ReportValidator, ValidatedReport, clean_hello, clean_sentence};
use crate::run_state::RunState;
use crate::target_role::TargetRole;
use crate::targets::{ConnectedTargets, TargetSession};

/// How often a wish to stop is looked at.
const TICK: Nanos = Nanos(50_000_000);

/// The same where this host works alone: its worker looks for itself, and its report ends the wait.
const TICK_ALONE: Nanos = Nanos(1_000_000_000);

/// From the greeting to a prepared target: facts, checks, a scratch directory.
const PREPARATION_LIMIT: Nanos = Nanos(120_000_000_000);

/// To bring settings about, or to undo them: commands of the user's may take their time.
const SETTINGS: Nanos = Nanos(300_000_000_000);

/// What ending an iteration takes: SIGTERM, SIGKILL, unmounting its disk, sending its output.
const ENDING: Nanos = Nanos(30_000_000_000);

/// How often observers are told what the targets are doing.
const ACTIVITY_INTERVAL: Nanos = Nanos(250_000_000);

/// How often it is reported that nothing has changed.
const ACTIVITY_REPEAT: Nanos = Nanos(2_000_000_000);

/// Between the order to start and the start: for the order to arrive and be understood,
const LEAD: Nanos = Nanos(4_000_000);

/// and for each further target, which may have to share a CPU with the others.
const LEAD_EACH: Nanos = Nanos(1_000_000);

/// How long a silent target is waited for once a wish to stop is there: its settings are undone when its stream ends.
const PATIENCE: Nanos = Nanos(5_000_000_000);

/// How many reasons of a refusing target are reported.
const MAX_REFUSAL_REASONS: usize = 20;

/// What a target may report before the run begins, in bytes of memory: it is held until then.
const MAX_EARLY_BYTES: usize = 16 << 20;

/// A round trip longer than this to one target does not hold up all the others.
const LONGEST_LEAD: Nanos = Nanos(2_000_000_000);

/// One boot.
pub(crate) struct BootRound<'c, 'a> {
    run_state: &'c mut RunState<'a>,
    targets: ConnectedTargets,
    barrier: Barrier,
    open: Option<OpenSlot>,
    incoming_traces: IncomingTraces,
    guest_samplings: GuestSamplings,
    /// Slots that were not come to yet.
    pending_slots: VecDeque<(u32, Slot)>,
    refused: Vec<Refusal>,
    last: bool,
    over: bool,
    last_shown: ShownActivity,
}

/// When observers were last told what the targets are doing, and what that was.
#[derive(Default)]
struct ShownActivity {
    at: Nanos,
    what: Vec<TargetStatus>,
}

impl<'c, 'a> BootRound<'c, 'a> {
    /// Starts all targets, hears their greeting, and compares clocks.
    pub(crate) fn launch(
        run_state: &'c mut RunState<'a>,
        slots: Vec<(u32, Slot)>,
        last: bool,
    ) -> Result<Self, ConductError> {
        run_state.stack_merger.restart();
        let waker = run_state.host.waker().map_err(|source| ConductError::Speak { source })?;
        let (mut targets, failed) = match run_state.role {
            TargetRole::Everything => (ConnectedTargets::none(waker)?, Vec::new()),
            _ => {
                let show = |all| run_state.report_activity(all);
                let planned = run_state.targets_of_slot(slots.first().map(|(_, slot)| slot));
                let machine = run_state.machine;
                ConnectedTargets::launch_all(planned, machine, waker, run_state.stop, &show)?
            }
        };
        targets.set_all_activity(TargetState::Prepares);
        let pending_slots = slots.iter().copied().collect();
        let barrier = make_barrier(run_state, &slots, targets.sessions.len());
        let shown = ShownActivity::default();
        let mut boot = BootRound {
            run_state,
            targets,
            barrier,
            open: None,
            incoming_traces: IncomingTraces::default(),
            guest_samplings: GuestSamplings::default(),
            pending_slots,
            refused: Vec::new(),
            last,
            over: false,
            last_shown: shown,
        };
        boot.continue_without(failed)?;
        boot.await_hellos()?;
        Ok(boot)
    }

    /// Those that could not be started end the run, unless the study says that the others go on.
    fn continue_without(&mut self, failed: Vec<(usize, ConductError)>) -> Result<(), ConductError> {
        if failed.len() == self.targets.sessions.len() || !self.may_lose_targets() {
            return join_launch_errors(failed.into_iter().map(|(_, error)| error).collect());
        }
        for (target, error) in failed {
            match error {
                ConductError::Target { reason, .. } => {
                    // The console's output is behind the first line.
                    let (line, output) = reason.split_once('\n').unwrap_or((&reason, ""));
                    self.drop_target(target, &remove_control_characters(line.trim_end_matches(':')))?;
                    self.run_state.report_stderr(target, output.to_owned())?;
                }
                error => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether the loss of a target is not a reason to end the run.
    fn may_lose_targets(&self) -> bool {
        self.run_state.manifest.study.run.on_lost_target == LostTargetPolicy::Continue
            && !self.run_state.stop.is_requested()
    }

    /// Waits until everybody has said hello.
    fn await_hellos(&mut self) -> Result<(), ConductError> {
        let deadline = Nanos(monotonic_now().0 + PREPARATION_LIMIT.0);
        let is_silent = |session: &TargetSession| session.hello.is_none() && session.lost.is_none();
        while let Some(silent) = self.targets.sessions.iter().position(is_silent) {
            let now = monotonic_now();
            if self.run_state.stop.is_requested() {
                let target = self.target_name(silent);
                return Err(ConductError::Target { target, reason: "stopped before it had greeted".into() });
            }
            if now > deadline {
                self.launch_failure(silent, format!("no greeting within {PREPARATION_LIMIT}"))?;
                continue;
            }
            for heard in self.receive(Nanos(now.0 + TICK.0).min(deadline))? {
                match (heard.report, self.targets.sessions.get_mut(heard.index)) {
                    (_, Some(session)) if session.lost.is_some() => {}
                    (Ok(AgentReport::Hello(hello)), Some(session)) => {
                        session.hello = Some(clean_hello(hello))
                    }
                    (Err(reason), _) => self.launch_failure(heard.index, reason)?,
                    _ => self.launch_failure(heard.index, "it sent something before its greeting".into())?,
                }
            }
        }
        let all: Vec<usize> = (0..self.targets.sessions.len()).collect();
        self.synchronise_clocks(&all)
    }

    /// A target that never came to be one ends the run, unless the study says that the others go on.
    fn launch_failure(&mut self, target: usize, reason: String) -> Result<(), ConductError> {
        let is_left = |(other, session): (usize, &TargetSession)| other != target && session.lost.is_none();
        if self.may_lose_targets() && self.targets.sessions.iter().enumerate().any(is_left) {
            return self.drop_target(target, &remove_control_characters(&reason));
        }
        let output = self.targets.drop_target(target, &reason);
        let last: Vec<&str> = output.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
        let tail = last.into_iter().rev().map(clean_sentence).collect::<Vec<_>>().join(" | ");
        let reason = if tail.is_empty() { reason } else { format!("{reason}: {tail}") };
        Err(ConductError::Target {
            target: self.target_name(target),
            reason: remove_control_characters(&reason),
        })
    }

    /// Goes through all stages.
    pub(crate) fn run(mut self) -> Result<(), ConductError> {
        let is_lost = |(target, session): (usize, &TargetSession)| session.lost.is_some().then_some(target);
        for target in self.targets.sessions.iter().enumerate().filter_map(is_lost).collect::<Vec<_>>() {
            self.advance(BarrierInput::Lost(target))?;
        }
        self.advance(BarrierInput::Time)?;
        let tick = if self.targets.sessions.is_empty() { TICK_ALONE } else { TICK };
        loop {
            self.heed_stop()?;
            // Before the wait: any other wait may have read its waker.
            while let Some(report) = self.run_state.host.next_report() {
                self.heed_stop()?;
                self.accept_host_report(report)?;
            }
            if self.over {
                return self.shut_down();
            }
            self.targets.send_due_pings();
            let next = Nanos(monotonic_now().0 + tick.0);
            let until = self.barrier.deadline().map_or(next, |deadline| deadline.min(next));
            for heard in self.receive(until)? {
                self.accept_report(heard)?;
            }
            self.drop_silent()?;
            self.advance(BarrierInput::Time)?;
            self.report_activity()?;
        }
    }

    /// Lets the barrier know that a stop was requested: before anything that was reported after it.
    fn heed_stop(&mut self) -> Result<(), ConductError> {
        let is_new = self.run_state.stop.is_requested() && !self.barrier.is_stopping();
        if is_new { self.advance(BarrierInput::Stop) } else { Ok(()) }
    }

    /// The number of this host among the members of the barrier.
    fn host_member(&self) -> usize {
        self.targets.sessions.len()
    }

    fn accept_host_report(&mut self, report: WorkerReport) -> Result<(), ConductError> {
        match report {
            WorkerReport::Reached { point, good } => {
                if matches!(point, BarrierPoint::After(_)) {
                    self.run_state.count_slot(good)?;
                }
                self.advance(BarrierInput::Reached { target: self.host_member(), point })
            }
            WorkerReport::Unbegun { index } => {
                let point = BarrierPoint::After(index);
                self.advance(BarrierInput::Reached { target: self.host_member(), point })
            }
            WorkerReport::Failed(error) => self.end_for_host(error),
            WorkerReport::Changed(changes) => {
                changes.into_iter().try_for_each(|change| self.run_state.report_host(change))
            }
        }
    }

    /// This host cannot go on: all others leave, and the run ends.
    fn end_for_host(&mut self, error: ConductError) -> Result<(), ConductError> {
        self.run_state.failure.get_or_insert(error);
        self.advance(BarrierInput::Stop)?;
        let target = self.host_member();
        match self.barrier.point() {
            // It comes no further.
            Some(point) if self.barrier.awaited_targets().contains(&target) => {
                self.advance(BarrierInput::Reached { target, point })
            }
            _ => Ok(()),
        }
    }

    /// Tells observers what the targets are doing, where that changed.
    fn report_activity(&mut self) -> Result<(), ConductError> {
        let now = monotonic_now();
        if self.targets.sessions.is_empty() || now.since(self.last_shown.at) < ACTIVITY_INTERVAL {
            return Ok(());
        }
        let what: Vec<TargetStatus> = self.targets.sessions.iter().map(TargetSession::status).collect();
        if what != self.last_shown.what || now.since(self.last_shown.at) > ACTIVITY_REPEAT {
            self.run_state.report_activity(what.clone())?;
            self.last_shown = ShownActivity { at: now, what };
        }
        Ok(())
    }

    fn receive(&mut self, until: Nanos) -> Result<Vec<ReceivedReport>, ConductError> {
        self.targets.receive(until).map_err(|source| ConductError::Speak { source })
    }

    fn synchronise_clocks(&mut self, who: &[usize]) -> Result<(), ConductError> {
        self.targets.synchronise_clocks(who).map_err(|source| ConductError::Speak { source })
    }

    fn drop_silent(&mut self) -> Result<(), ConductError> {
        let (now, limit) = (monotonic_now(), self.run_state.manifest.study.run.lost_after.0);
        let limit = if self.run_state.stop.is_requested() { limit.min(PATIENCE) } else { limit };
        for target in 0..self.targets.sessions.len() {
            let silent = self.targets.sessions.get(target).map_or(Nanos(0), |session| session.silence(now));
            if silent > limit {
                self.lose_target(target, format!("it did not answer for {limit}"))?;
            }
        }
        Ok(())
    }

    fn accept_report(&mut self, heard: ReceivedReport) -> Result<(), ConductError> {
        let target = heard.index;
        if self.targets.sessions.get(target).is_none_or(|session| session.lost.is_some()) {
            return Ok(());
        }
        match heard.report {
            Ok(AgentReport::Event(event)) => self.accept_event(target, event),
            Ok(AgentReport::Reached(point)) => {
                self.targets.set_activity(&[target], activity_at(point));
                self.guest_samplings.end_iteration(target);
                self.advance(BarrierInput::Reached { target, point })
            }
            Ok(AgentReport::Refused(reasons)) => self.accept_refusal(target, reasons),
            Ok(AgentReport::TraceFile(part)) => self.accept_trace_part(target, part),
            Ok(AgentReport::KernelSymbols { text, last }) => self.accept_symbols(target, &text, last),
            Ok(_) => self.lose_target(target, "it answered what nobody had asked".into()),
            Err(reason) => self.lose_target(target, reason),
        }
    }

    fn accept_refusal(&mut self, target: usize, reasons: Vec<String>) -> Result<(), ConductError> {
        let name = self.target_name(target);
        let is_guest = self.targets.sessions.get(target).is_some_and(|session| session.kind == "vm");
        let mut reported: Vec<String> =
            reasons.iter().take(MAX_REFUSAL_REASONS).map(|reason| clean_sentence(reason)).collect();
        if reasons.len() > MAX_REFUSAL_REASONS {
            reported.push(format!("and {} further reasons", reasons.len() - MAX_REFUSAL_REASONS));
        }
        if is_guest && reported.iter().any(|reason| reason.contains("/tmp/")) {
            reported.push("a guest has a /tmp of its own: what lies in this host's is not there".into());
        }
        let refusal = |reason: &String| Refusal { what: format!("{name}: {reason}"), hint: String::new() };
        if !self.run_state.has_begun() {
            self.refused.extend(reported.iter().map(refusal));
        }
        self.lose_target(target, reported.join("; "))
    }

    /// Takes a part of a guest's symbols; with the last one, its sampler from outside is made ready.
    fn accept_symbols(&mut self, target: usize, text: &str, last: bool) -> Result<(), ConductError> {
        let rules = self.run_state.manifest.study.profile.as_ref();
        let Some(rules) = rules.filter(|rules| rules.from == SamplingSide::Outside) else {
            return self.lose_target(target, "it sent symbols that nobody had asked for".into());
        };
        let Some(session) = self.targets.sessions.get(target) else { return Ok(()) };
        if let Err(reason) = self.guest_samplings.take_symbols(target, text) {
            return self.lose_target(target, reason);
        }
        if !last {
            return Ok(());
        }
        match self.guest_samplings.attach(target, session, rules, self.run_state.stop) {
            Ok(()) => Ok(()),
            Err(GuestError::NotSampled { source, .. }) => {
                self.accept_refusal(target, vec![format!("it cannot be sampled from outside: {source}")])
            }
            Err(error) => self.accept_refusal(target, vec![error.to_string()]),
        }
    }

    /// Takes a part of a tracer's file; with its last one, the file is held with what else was reported of the slot.
    fn accept_trace_part(&mut self, target: usize, part: TraceFilePart) -> Result<(), ConductError> {
        let Some(session) = self.targets.sessions.get(target) else { return Ok(()) };
        let (manifest, begun, now) = (self.run_state.manifest, self.run_state.earliest, monotonic_now());
        let validator = ReportValidator { manifest, target, open: self.open.as_ref(), begun, now };
        let is_expected = validator.expect_trace(&part, |uses| self.run_state.is_traced(uses));
        let taken = is_expected
            .and_then(|()| self.incoming_traces.take_part(target, &part, || self.run_state.traces_folder()));
        let file = match taken {
            Ok(None) => return Ok(()),
            Ok(Some(file)) => file,
            Err(reason) => return self.lose_target(target, reason),
        };
        if part.tracer == IO_TRACER
            && let Err(reason) = clean_io_recording(&file, |at| validator.to_run_time(session, at))
        {
            return self.lose_target(target, reason);
        }
        let what = RunEventKind::Traced { slot: part.slot, tracer: part.tracer, file };
        let event = RunEvent { at: now, target: u32::try_from(target).ok(), what };
        let held = self.open.as_mut().map_or(Ok(()), |open| open.hold(target, event));
        held.or_else(|reason| self.lose_target(target, reason))
    }

    fn accept_event(&mut self, target: usize, event: RunEvent) -> Result<(), ConductError> {
        let Some(session) = self.targets.sessions.get_mut(target) else { return Ok(()) };
        let (manifest, begun, now) = (self.run_state.manifest, self.run_state.earliest, monotonic_now());
        let validator = ReportValidator { manifest, target, open: self.open.as_ref(), begun, now };
        match validator.validate(session, event) {
            Ok(ValidatedReport::Hold(event)) => {
                let held = self.open.as_mut().map_or(Ok(()), |open| open.hold(target, event));
                if let Err(reason) = held {
                    self.lose_target(target, reason)?;
                }
            }
            Ok(ValidatedReport::Pass(event)) => {
                if !self.run_state.has_begun() {
                    session.early_bytes = session.early_bytes.saturating_add(event_memory(&event));
                    if session.early_bytes > MAX_EARLY_BYTES {
                        let reason =
                            format!("it sent more than {MAX_EARLY_BYTES} bytes before the run began");
                        return self.lose_target(target, reason);
                    }
                }
                self.run_state.send_or_hold(event)?
            }
            Ok(ValidatedReport::Ended { status, overhead }) => self.run_state.end_target(status, &overhead),
            Ok(ValidatedReport::Drop) => {}
            Err(reason) => self.lose_target(target, reason)?,
        }
        Ok(())
    }

    /// Hands the barrier an input, and does what it says until it says no more.
    fn advance(&mut self, input: BarrierInput) -> Result<(), ConductError> {
        let mut todo: VecDeque<BarrierAction> = self.barrier.step(monotonic_now(), input).into();
        while let Some(action) = todo.pop_front() {
            match action {
                BarrierAction::Go { who, point } => {
                    for input in self.send_to_point(&who, point)? {
                        todo.extend(self.barrier.step(monotonic_now(), input));
                    }
                }
                BarrierAction::Cancel(who) => {
                    who.iter().for_each(|target| self.targets.send(*target, &AgentOrder::Cancel))
                }
                BarrierAction::Lose { target, loss } => self.drop_target(target, &loss_reason(loss))?,
                BarrierAction::Over => self.over = true,
            }
        }
        Ok(())
    }

    /// A target that is lost for a reason of its own.
    fn lose_target(&mut self, target: usize, reason: String) -> Result<(), ConductError> {
        self.drop_target(target, &remove_control_characters(&reason))?;
        self.advance(BarrierInput::Lost(target))
    }

    fn drop_target(&mut self, target: usize, reason: &str) -> Result<(), ConductError> {
        if self.targets.sessions.get(target).is_none_or(|session| session.lost.is_some()) {
            return Ok(());
        }
        self.guest_samplings.forget(target);
        let output = self.targets.drop_target(target, reason);
        let is_guest = self.targets.sessions.get(target).is_some_and(|session| session.kind == "vm");
        let panicked = find_panic(&output)
            .filter(|_| is_guest)
            .map(|line| format!("the guest's kernel panicked: {line}"));
        // What an agent complained of last; a console's last line is any.
        let tail = output.lines().rev().find(|line| !is_guest && !line.trim().is_empty());
        let tail = tail.map(|line| format!("{reason}; its last output: {}", clean_sentence(line.trim())));
        let reason = panicked.or(tail).unwrap_or_else(|| reason.to_owned());
        let reason = reason.as_str();
        if let Some(open) = &mut self.open {
            open.lose_target(target, reason);
        }
        self.warn_dropped_output(target)?;
        self.run_state.report_lost(target, &self.target_name(target), reason)?;
        self.run_state.report_stderr(target, output)
    }

    /// Reports what was dropped of a target's reports.
    fn warn_dropped_output(&mut self, target: usize) -> Result<(), ConductError> {
        let dropped = self.targets.sessions.get(target).and_then(TargetSession::dropped_summary);
        let Some(message) = dropped else { return Ok(()) };
        self.run_state.report_target(
            target,
            RunEventKind::Warning { message, advice: "look into the target itself".into() },
        )
    }

    fn target_name(&self, target: usize) -> String {
        self.targets.sessions.get(target).map(|session| session.name.clone()).unwrap_or_default()
    }

    /// Sends these targets on to a point. Gives what that makes the barrier hear: a wish to stop, or
    /// that they are there already because there is nothing to do.
    fn send_to_point(
        &mut self,
        who: &[usize],
        point: BarrierPoint,
    ) -> Result<Vec<BarrierInput>, ConductError> {
        self.targets.set_activity(who, activity_towards(point));
        match point {
            BarrierPoint::First => self.configure(who),
            BarrierPoint::Before(index) if who == [self.host_member()] => return self.prepare_host(index),
            BarrierPoint::Before(index) => return self.prepare_slot(who, index),
            // It is on its way already.
            BarrierPoint::After(_) if who == [self.host_member()] => {}
            BarrierPoint::After(_) if self.open.as_ref().is_some_and(OpenSlot::is_lacking) => {
                let now = monotonic_now();
                self.open.iter_mut().for_each(|open| open.set_released(now));
                return Ok(reached_inputs(who, point));
            }
            BarrierPoint::After(index) => self.release_iteration(who, index)?,
            BarrierPoint::Last => {
                self.close_slot()?;
                if !self.barrier.is_stopping() {
                    self.skip_slots(None)?;
                }
                self.run_state.report_phase(RunPhase::Undo)?;
                who.iter().for_each(|target| self.targets.send(*target, &AgentOrder::Undo));
            }
            BarrierPoint::End => {
                if self.last {
                    self.run_state.wait_quiet_time();
                }
                who.iter().for_each(|target| self.targets.send(*target, &AgentOrder::Leave));
            }
        }
        Ok(Vec::new())
    }

    fn configure(&mut self, who: &[usize]) {
        let first = self.pending_slots.front().map(|(_, slot)| *slot);
        for target in who {
            let Some(session) = self.targets.sessions.get(*target) else { continue };
            let config = self.run_state.agent_run_config(&session.name, &session.kind, first.as_ref());
            self.targets.send(*target, &AgentOrder::Configure(Box::new(config)));
        }
    }

    /// Everything before a slot that is not the targets': whether it is carried out at all, and this host's settings.
    fn prepare_host(&mut self, index: u32) -> Result<Vec<BarrierInput>, ConductError> {
        let there = reached_inputs(&[self.host_member()], BarrierPoint::Before(index));
        let Some(slot) = self.run_state.slot(index) else { return Ok(vec![BarrierInput::Stop]) };
        let who = self.remaining_participants(&slot);
        if who.is_empty() {
            return Ok(there);
        }
        self.close_slot()?;
        self.begin_run()?;
        self.skip_slots(Some(index))?;
        if self.run_state.stop.is_requested()
            || self.run_state.is_time_over()?
            || self.run_state.is_goal_reached(index)?
        {
            return Ok(vec![BarrierInput::Stop]);
        }
        if let Some(why) = self.missing_targets_reason(&who, &slot) {
            self.open = Some(OpenSlot::new_lacking(index, slot, who, why));
            return Ok(there);
        }
        self.run_state.enter_slot(index, slot)?;
        Ok(if self.run_state.role == TargetRole::Everything { there } else { Vec::new() })
    }

    /// Those who take part in a slot and are not lost.
    fn remaining_participants(&self, slot: &Slot) -> Vec<usize> {
        let count = self.targets.sessions.len();
        if count == 0 {
            return vec![self.host_member()];
        }
        let is_left = |target: &usize| !self.barrier.is_lost(*target);
        self.run_state.participants(slot, count).into_iter().filter(is_left).collect()
    }

    fn prepare_slot(&mut self, who: &[usize], index: u32) -> Result<Vec<BarrierInput>, ConductError> {
        let Some(slot) = self.run_state.slot(index) else { return Ok(vec![BarrierInput::Stop]) };
        // One may have been lost while this host changed its settings.
        if self.open.is_none()
            && let Some(why) = self.missing_targets_reason(who, &slot)
        {
            self.open = Some(OpenSlot::new_lacking(index, slot, who.to_vec(), why));
        }
        if self.open.is_some() {
            return Ok(reached_inputs(who, BarrierPoint::Before(index)));
        }
        self.open = Some(OpenSlot::new(index, slot, who.to_vec()));
        let order = AgentOrder::Prepare { index, slot };
        who.iter().for_each(|target| self.targets.send(*target, &order));
        Ok(Vec::new())
    }

    /// Reports the slots before `until` that the barrier has passed over because all their targets are lost.
    fn skip_slots(&mut self, until: Option<u32>) -> Result<(), ConductError> {
        while let Some((index, slot)) =
            self.pending_slots.pop_front().filter(|(index, _)| Some(*index) != until)
        {
            if let Some(why) = self.missing_targets_reason(&[], &slot) {
                let who = self.run_state.participants(&slot, self.targets.sessions.len());
                let mut open = OpenSlot::new_lacking(index, slot, who, why);
                open.set_released(monotonic_now());
                self.open = Some(open);
                self.close_slot()?;
            }
        }
        Ok(())
    }

    /// Why the slot's level cannot be met by those who are left; none where it can, or where no level says how many.
    fn missing_targets_reason(&self, who: &[usize], slot: &Slot) -> Option<String> {
        let PlannedParticipation { factor, level, .. } = self.run_state.participation(slot)?;
        let participants = self.run_state.participants(slot, self.targets.sessions.len());
        let missing: Vec<String> = participants
            .into_iter()
            .filter(|target| !who.contains(target))
            .map(|target| self.target_name(target))
            .collect();
        let were = match missing.as_slice() {
            [] => return None,
            [one] => format!("{one} was"),
            several => format!("{} were", several.join(", ")),
        };
        Some(format!("not begun: {were} lost before, and `{factor}={level}` cannot be met"))
    }

    /// The run begins when every target is prepared; a later boot only says what is new.
    fn begin_run(&mut self) -> Result<(), ConductError> {
        let now = monotonic_now();
        if !self.run_state.has_begun() {
            if !self.refused.is_empty() {
                return Err(ConductError::Refused(std::mem::take(&mut self.refused)));
            }
            let lost: Vec<&TargetSession> =
                self.targets.sessions.iter().filter(|session| session.lost.is_some()).collect();
            let too_many = !self.may_lose_targets() || lost.len() == self.targets.sessions.len();
            if let Some(lost) = lost.first().filter(|_| too_many) {
                let reason = lost.lost.clone().unwrap_or_default();
                return Err(ConductError::Target { target: lost.name.clone(), reason });
            }
            self.run_state.begin(self.target_records(now))?;
        }
        self.report_kernel_configs()?;
        let planned = self.pending_slots.front().and_then(|(_, slot)| self.run_state.new_variant(slot));
        match planned {
            Some(planned) => self.run_state.report_variant(planned, self.target_records(now)),
            None => Ok(()),
        }
    }

    /// Reports the configuration of each guest's kernel that its guest has not.
    fn report_kernel_configs(&mut self) -> Result<(), ConductError> {
        let started = self.run_state.targets_of_slot(self.pending_slots.front().map(|(_, slot)| slot));
        let sessions = self.targets.sessions.iter().enumerate();
        let silent = sessions.filter(|(_, session)| !session.has_sent_document(FactDocument::KERNEL_CONFIG));
        let config = |(index, session): (usize, &TargetSession)| {
            let target = started.iter().find(|target| target.name() == session.name)?;
            Some((index, target.read_kernel_config()?))
        };
        for (index, document) in silent.filter_map(config).collect::<Vec<_>>() {
            self.run_state.report_target(index, RunEventKind::Document(document))?;
        }
        Ok(())
    }

    fn target_records(&self, now: Nanos) -> Vec<TargetRecord> {
        let started = self.run_state.targets_of_slot(self.pending_slots.front().map(|(_, slot)| slot));
        let record = |session: &TargetSession| {
            let mut record = session.target_record(now);
            if let Some(target) = started.iter().find(|target| target.name() == session.name) {
                target.add_kernel_facts(&mut record.facts);
                target.add_node_facts(&mut record.facts);
            }
            record
        };
        self.targets.sessions.iter().map(record).collect()
    }

    /// Lets the iteration begin at one instant, a little later, everywhere.
    fn release_iteration(&mut self, who: &[usize], index: u32) -> Result<(), ConductError> {
        self.synchronise_clocks(who)?;
        let trips = who
            .iter()
            .filter_map(|target| self.targets.sessions.get(*target))
            .map(|session| session.longest.0);
        let lead =
            LEAD.0 + who.len() as u64 * LEAD_EACH.0 + (4 * trips.max().unwrap_or(0)).min(LONGEST_LEAD.0);
        let start = Nanos(monotonic_now().0 + lead);
        for target in who {
            let Some(session) = self.targets.sessions.get(*target) else { continue };
            let at = session.offset.to_theirs(start);
            self.targets.send(*target, &AgentOrder::Start { index, at });
        }
        // While they wait for the instant.
        self.run_state.read_edge(index, IterationEdge::Begin);
        for target in who {
            let clock =
                self.targets.sessions.get(*target).map(|session| session.clock(start)).unwrap_or_default();
            self.run_state.report_target(*target, RunEventKind::Clock(clock))?;
        }
        for target in who {
            if let Err(error) = self.guest_samplings.begin_iteration(*target) {
                self.warn_of_sampling(*target, &error.to_string())?;
            }
        }
        self.open.iter_mut().for_each(|open| open.set_released(start));
        self.run_state.report_host(RunEventKind::IterationBegan { slot: index })?;
        let targets = u32::try_from(who.len()).unwrap_or(u32::MAX);
        self.run_state.report_host(RunEventKind::Released { slot: index, start, targets })
    }

    /// Sends what was held of the iteration that is over.
    fn close_slot(&mut self) -> Result<(), ConductError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        if open.is_released() {
            self.run_state.read_edge(open.index, IterationEdge::End);
        }
        let names: Vec<String> = self.targets.sessions.iter().map(|session| session.name.clone()).collect();
        let (mut events, good) = open.close(monotonic_now(), &names);
        for target in 0..names.len() {
            let Some(recorded) = self.guest_samplings.add_stacks(target, &mut events) else { continue };
            let sum = self.run_state.cost.guest_stops.unwrap_or_default();
            self.run_state.cost.guest_stops = Some(sum.plus(recorded.stops));
            if let Some(failure) = recorded.failure {
                self.warn_of_sampling(target, &failure)?;
            }
        }
        self.run_state.close_slot(events, good, &names)
    }

    /// A guest could not be sampled, or not to the end of an iteration.
    fn warn_of_sampling(&mut self, target: usize, reason: &str) -> Result<(), ConductError> {
        let message = format!("{} is sampled from outside no longer: {reason}", self.target_name(target));
        let advice = "its later iterations of this boot have no stacks".into();
        self.run_state.report_target(target, RunEventKind::Warning { message, advice })
    }

    /// Ends the targets; what they printed beside their streams is kept.
    fn shut_down(mut self) -> Result<(), ConductError> {
        self.close_slot()?;
        // What it is still busy with belongs to this round.
        if let Err(error) = self.run_state.host.await_idle() {
            self.run_state.failure.get_or_insert(error);
        }
        for (target, output) in self.targets.shut_down() {
            self.warn_dropped_output(target)?;
            self.run_state.report_stderr(target, output)?;
        }
        self.begin_run()
    }
}

/// The barrier of a round with `count` targets; this host is its last member.
fn make_barrier(run_state: &RunState<'_>, slots: &[(u32, Slot)], count: usize) -> Barrier {
    let rules = &run_state.manifest.study.run;
    let numbered = |who: &dyn Fn(&Slot) -> Vec<usize>| -> Vec<(u32, Slot, Vec<usize>)> {
        slots.iter().map(|(index, slot)| (*index, *slot, who(slot))).collect()
    };
    let (stages, grace) = if run_state.role == TargetRole::Everything {
        (round_stages(&numbered(&|_| vec![count]), count, StageLimits::NONE), UNLIMITED)
    } else {
        let after = Nanos(rules.time_limit.0.0.saturating_add(ENDING.0));
        // What a workload does before its iterations and after them has the time of an iteration each.
        let limit = run_state.manifest.study.run.time_limit.0;
        let settings = Nanos(SETTINGS.0.saturating_add(limit.0.saturating_mul(2)));
        let limits = StageLimits { first: PREPARATION_LIMIT, before: settings, after, last: settings };
        let slots = numbered(&|slot| run_state.participants(slot, count));
        (with_host_stages(round_stages(&slots, count, limits), count), ENDING)
    };
    Barrier::new(stages, count + 1, rules.on_lost_target, grace)
}

/// They all have come.
fn reached_inputs(who: &[usize], point: BarrierPoint) -> Vec<BarrierInput> {
    who.iter().map(|target| BarrierInput::Reached { target: *target, point }).collect()
}

/// What a target does on its way to a point,
fn activity_towards(point: BarrierPoint) -> TargetState {
    match point {
        BarrierPoint::First => TargetState::Prepares,
        BarrierPoint::Before(_) => TargetState::Sets,
        BarrierPoint::After(_) => TargetState::Works,
        BarrierPoint::Last | BarrierPoint::End => TargetState::Leaves,
    }
}

/// and when it is there.
fn activity_at(point: BarrierPoint) -> TargetState {
    match point {
        BarrierPoint::First | BarrierPoint::Before(_) => TargetState::Ready,
        BarrierPoint::After(_) => TargetState::Done,
        BarrierPoint::Last | BarrierPoint::End => TargetState::Gone,
    }
}

fn loss_reason(loss: TargetLoss) -> String {
    match loss {
        TargetLoss::Late(point) => format!("it did not come to {point} in time"),
        TargetLoss::OutOfOrder(point) => format!("it claims to be at {point}, where it cannot be"),
    }
}
