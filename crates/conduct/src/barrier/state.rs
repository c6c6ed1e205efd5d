//! The state and its one transition function.

use std::sync::Arc;

use perflab_model::Nanos;
use perflab_model::study::LostTargetPolicy;

use super::{BarrierPoint, BarrierStage};

/// Where a target stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum BarrierMember {
    /// It has no part in this stage.
    Idle,
    /// It was told to come, and has not.
    Coming,
    /// It has come.
    There,
    /// It is out for good.
    Lost,
}

/// What was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarrierInput {
    /// A target says that it has reached a point.
    Reached {
        /// which target
        target: usize,
        /// which point
        point: BarrierPoint,
    },
    /// A target is gone: its stream ended, or cannot be understood.
    Lost(usize),
    /// Somebody asks to stop.
    Stop,
    /// Nothing but time has passed.
    Time,
}

/// Why the barrier gave a target up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetLoss {
    /// It did not come to this point within its time.
    Late(BarrierPoint),
    /// It claimed this point when it was not on the way to it.
    OutOfTurn(BarrierPoint),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BarrierAction {
    /// All of these may go on to that point, and nobody else.
    Go {
        /// which targets, none of them lost
        who: Vec<usize>,
        /// the point to reach
        point: BarrierPoint,
    },
    /// Their iteration cannot count any more, or is not wanted: they should end it now.
    Cancel(Vec<usize>),
    /// The target is given up.
    Lose {
        /// which target
        target: usize,
        /// why
        loss: TargetLoss,
    },
    /// There is nothing more to do.
    Over,
}

/// The state of a run in step.
#[derive(Debug, Clone)]
pub struct Barrier {
    pub(super) stages: Arc<[BarrierStage]>,
    pub(super) members: Vec<BarrierMember>,
    pub(super) stage: usize,
    pub(super) deadline: Nanos,
    pub(super) stopping: bool,
    on_lost: LostTargetPolicy,
    grace: Nanos,
}

impl Barrier {
    /// Before the first stage, which the first [`Barrier::step`] enters. `grace` is what ending an iteration early may
    /// take.
    pub fn new(stages: Vec<BarrierStage>, targets: usize, on_lost: LostTargetPolicy, grace: Nanos) -> Self {
        // Stage -1 in spirit: nobody is on the way, so the first input leads on.
        let nowhere = BarrierStage { point: BarrierPoint::First, who: Vec::new(), allowed: Nanos(0) };
        let stages = std::iter::once(nowhere).chain(stages).collect();
        let members = vec![BarrierMember::Idle; targets];
        Barrier { stages, members, stage: 0, deadline: Nanos(u64::MAX), stopping: false, on_lost, grace }
    }

    /// The transition function: what was heard at `now` changes the state, and something is to be done.
    pub fn step(&mut self, now: Nanos, input: BarrierInput) -> Vec<BarrierAction> {
        let mut todo = Vec::new();
        if self.point().is_none() {
            return todo;
        }
        match input {
            BarrierInput::Reached { target, point } => self.mark_reached(now, target, point, &mut todo),
            BarrierInput::Lost(target) => self.lose_target(now, target, &mut todo),
            BarrierInput::Stop => self.begin_stop(now, &mut todo),
            BarrierInput::Time => {}
        }
        if now >= self.deadline {
            self.expire_stage(now, &mut todo);
        }
        self.advance(now, &mut todo);
        todo
    }

    /// When to come back with [`BarrierInput::SampleTimes`] at the latest; `None` when all is over.
    pub fn deadline(&self) -> Option<Nanos> {
        self.point().map(|_| self.deadline)
    }

    /// The point that is being reached; `None` when all is over.
    pub fn point(&self) -> Option<BarrierPoint> {
        self.stages.get(self.stage).map(|stage| stage.point)
    }

    /// Whether the run is being ended before its time.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Who has not come yet.
    pub fn awaited_targets(&self) -> Vec<usize> {
        self.targets_where(|member| member == BarrierMember::Coming)
    }

    /// Whether the target is out for good.
    pub fn is_lost(&self, target: usize) -> bool {
        self.members.get(target).is_none_or(|member| *member == BarrierMember::Lost)
    }

    fn targets_where(&self, wanted: impl Fn(BarrierMember) -> bool) -> Vec<usize> {
        let members = self.members.iter().enumerate();
        members.filter(|(_, member)| wanted(**member)).map(|(target, _)| target).collect()
    }

    fn mark_reached(
        &mut self,
        now: Nanos,
        target: usize,
        point: BarrierPoint,
        todo: &mut Vec<BarrierAction>,
    ) {
        let expected = self.point() == Some(point);
        match self.members.get_mut(target) {
            Some(member) if *member == BarrierMember::Coming && expected => *member = BarrierMember::There,
            // Whoever was on its way when the stop was asked for may still arrive where it went.
            Some(BarrierMember::Lost) | None => {}
            Some(_) if self.stopping => {}
            Some(_) => {
                todo.push(BarrierAction::Lose { target, loss: TargetLoss::OutOfTurn(point) });
                self.lose_target(now, target, todo);
            }
        }
    }

    fn lose_target(&mut self, now: Nanos, target: usize, todo: &mut Vec<BarrierAction>) {
        let Some(member) = self.members.get_mut(target).filter(|member| **member != BarrierMember::Lost)
        else {
            return;
        };
        *member = BarrierMember::Lost;
        if self.on_lost == LostTargetPolicy::Stop {
            self.begin_stop(now, todo);
        } else {
            self.cancel_iteration(now, todo);
        }
    }

    fn begin_stop(&mut self, now: Nanos, todo: &mut Vec<BarrierAction>) {
        if !self.stopping {
            self.stopping = true;
            self.cancel_iteration(now, todo);
        }
    }

    /// Ends the iteration that is going on, if one is.
    fn cancel_iteration(&mut self, now: Nanos, todo: &mut Vec<BarrierAction>) {
        let who = self.awaited_targets();
        if self.is_running() && !who.is_empty() {
            self.deadline = self.deadline.min(Nanos(now.0.saturating_add(self.grace.0)));
            todo.push(BarrierAction::Cancel(who));
        }
    }

    fn expire_stage(&mut self, now: Nanos, todo: &mut Vec<BarrierAction>) {
        let Some(point) = self.point() else { return };
        let late = self.awaited_targets();
        for target in &late {
            todo.push(BarrierAction::Lose { target: *target, loss: TargetLoss::Late(point) });
        }
        // All at once: none of them is told to cancel for the sake of the others.
        for target in &late {
            if let Some(member) = self.members.get_mut(*target) {
                *member = BarrierMember::Lost;
            }
        }
        if !late.is_empty() && self.on_lost == LostTargetPolicy::Stop {
            self.begin_stop(now, todo);
        }
    }

    fn is_running(&self) -> bool {
        matches!(self.point(), Some(BarrierPoint::After(_)))
    }

    /// Enters stages as long as nobody has to be waited for.
    fn advance(&mut self, now: Nanos, todo: &mut Vec<BarrierAction>) {
        while let Some(point) = self.point() {
            let ending = matches!(point, BarrierPoint::Last | BarrierPoint::End);
            let leaving = self.stopping && !ending && !self.is_running();
            if !leaving && !self.awaited_targets().is_empty() {
                return;
            }
            self.stage += 1;
            if self.stopping && !ending {
                let last = self.stages.iter().position(|stage| stage.point == BarrierPoint::Last);
                self.stage = last.unwrap_or(self.stages.len());
            }
            self.enter_stage(now, todo);
        }
        todo.push(BarrierAction::Over);
    }

    fn enter_stage(&mut self, now: Nanos, todo: &mut Vec<BarrierAction>) {
        let stages = Arc::clone(&self.stages);
        let Some(stage) = stages.get(self.stage) else { return };
        self.deadline = Nanos(now.0.saturating_add(stage.allowed.0));
        for (target, member) in
            self.members.iter_mut().enumerate().filter(|(_, m)| **m != BarrierMember::Lost)
        {
            *member = if stage.who.contains(&target) { BarrierMember::Coming } else { BarrierMember::Idle };
        }
        let (point, who) = (stage.point, self.awaited_targets());
        if !who.is_empty() {
            todo.push(BarrierAction::Go { who, point });
        }
    }
}
