//! The state and its one transition function.

use std::sync::Arc;

use perflab_model::Nanos;
use perflab_model::study::OnLost;

use super::{Point, Stage};

/// Where a target stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Member {
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
pub enum Input {
    /// A target says that it has reached a point.
    Reached {
        /// which target
        target: usize,
        /// which point
        point: Point,
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
pub enum Loss {
    /// It did not come to this point within its time.
    Late(Point),
    /// It claimed this point when it was not on the way to it.
    OutOfTurn(Point),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// All of these may go on to that point, and nobody else.
    Go {
        /// which targets, none of them lost
        who: Vec<usize>,
        /// the point to reach
        point: Point,
    },
    /// Their iteration cannot count any more, or is not wanted: they should end it now.
    Cancel(Vec<usize>),
    /// The target is given up.
    Lose {
        /// which target
        target: usize,
        /// why
        loss: Loss,
    },
    /// There is nothing more to do.
    Over,
}

/// The state of a run in step.
#[derive(Debug, Clone)]
pub struct Barrier {
    pub(super) stages: Arc<[Stage]>,
    pub(super) members: Vec<Member>,
    pub(super) stage: usize,
    pub(super) deadline: Nanos,
    pub(super) stopping: bool,
    on_lost: OnLost,
    grace: Nanos,
}

impl Barrier {
    /// Before the first stage, which the first [`Barrier::take`] enters. `grace` is what ending an iteration early may
    /// take.
    pub fn new(stages: Vec<Stage>, targets: usize, on_lost: OnLost, grace: Nanos) -> Self {
        // Stage -1 in spirit: nobody is on the way, so the first input leads on.
        let nowhere = Stage { point: Point::First, who: Vec::new(), allowed: Nanos(0) };
        let stages = std::iter::once(nowhere).chain(stages).collect();
        let members = vec![Member::Idle; targets];
        Barrier { stages, members, stage: 0, deadline: Nanos(u64::MAX), stopping: false, on_lost, grace }
    }

    /// The transition function: what was heard at `now` changes the state, and something is to be done.
    pub fn take(&mut self, now: Nanos, input: Input) -> Vec<Action> {
        let mut todo = Vec::new();
        if self.point().is_none() {
            return todo;
        }
        match input {
            Input::Reached { target, point } => self.reached(now, target, point, &mut todo),
            Input::Lost(target) => self.lose(now, target, &mut todo),
            Input::Stop => self.stop(now, &mut todo),
            Input::Time => {}
        }
        if now >= self.deadline {
            self.expire(now, &mut todo);
        }
        self.advance(now, &mut todo);
        todo
    }

    /// When to come back with [`Input::Time`] at the latest; `None` when all is over.
    pub fn deadline(&self) -> Option<Nanos> {
        self.point().map(|_| self.deadline)
    }

    /// The point that is being reached; `None` when all is over.
    pub fn point(&self) -> Option<Point> {
        self.stages.get(self.stage).map(|stage| stage.point)
    }

    /// Whether the run is being ended before its time.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Who has not come yet.
    pub fn awaited(&self) -> Vec<usize> {
        self.having(|member| member == Member::Coming)
    }

    /// Whether the target is out for good.
    pub fn is_lost(&self, target: usize) -> bool {
        self.members.get(target).is_none_or(|member| *member == Member::Lost)
    }

    fn having(&self, wanted: impl Fn(Member) -> bool) -> Vec<usize> {
        let members = self.members.iter().enumerate();
        members.filter(|(_, member)| wanted(**member)).map(|(target, _)| target).collect()
    }

    fn reached(&mut self, now: Nanos, target: usize, point: Point, todo: &mut Vec<Action>) {
        let expected = self.point() == Some(point);
        match self.members.get_mut(target) {
            Some(member) if *member == Member::Coming && expected => *member = Member::There,
            // Whoever was on its way when the stop was asked for may still arrive where it went.
            Some(Member::Lost) | None => {}
            Some(_) if self.stopping => {}
            Some(_) => {
                todo.push(Action::Lose { target, loss: Loss::OutOfTurn(point) });
                self.lose(now, target, todo);
            }
        }
    }

    fn lose(&mut self, now: Nanos, target: usize, todo: &mut Vec<Action>) {
        let Some(member) = self.members.get_mut(target).filter(|member| **member != Member::Lost) else {
            return;
        };
        *member = Member::Lost;
        if self.on_lost == OnLost::Stop {
            self.stop(now, todo);
        } else {
            self.cancel(now, todo);
        }
    }

    fn stop(&mut self, now: Nanos, todo: &mut Vec<Action>) {
        if !self.stopping {
            self.stopping = true;
            self.cancel(now, todo);
        }
    }

    /// Ends the iteration that is going on, if one is.
    fn cancel(&mut self, now: Nanos, todo: &mut Vec<Action>) {
        let who = self.awaited();
        if self.is_running() && !who.is_empty() {
            self.deadline = self.deadline.min(Nanos(now.0.saturating_add(self.grace.0)));
            todo.push(Action::Cancel(who));
        }
    }

    fn expire(&mut self, now: Nanos, todo: &mut Vec<Action>) {
        let Some(point) = self.point() else { return };
        let late = self.awaited();
        for target in &late {
            todo.push(Action::Lose { target: *target, loss: Loss::Late(point) });
        }
        // All at once: none of them is told to cancel for the sake of the others.
        for target in &late {
            if let Some(member) = self.members.get_mut(*target) {
                *member = Member::Lost;
            }
        }
        if !late.is_empty() && self.on_lost == OnLost::Stop {
            self.stop(now, todo);
        }
    }

    fn is_running(&self) -> bool {
        matches!(self.point(), Some(Point::After(_)))
    }

    /// Enters stages as long as nobody has to be waited for.
    fn advance(&mut self, now: Nanos, todo: &mut Vec<Action>) {
        while let Some(point) = self.point() {
            let ending = matches!(point, Point::Last | Point::End);
            let leaving = self.stopping && !ending && !self.is_running();
            if !leaving && !self.awaited().is_empty() {
                return;
            }
            self.stage += 1;
            if self.stopping && !ending {
                let last = self.stages.iter().position(|stage| stage.point == Point::Last);
                self.stage = last.unwrap_or(self.stages.len());
            }
            self.enter(now, todo);
        }
        todo.push(Action::Over);
    }

    fn enter(&mut self, now: Nanos, todo: &mut Vec<Action>) {
        let stages = Arc::clone(&self.stages);
        let Some(stage) = stages.get(self.stage) else { return };
        self.deadline = Nanos(now.0.saturating_add(stage.allowed.0));
        for (target, member) in self.members.iter_mut().enumerate().filter(|(_, m)| **m != Member::Lost) {
            *member = if stage.who.contains(&target) { Member::Coming } else { Member::Idle };
        }
        let (point, who) = (stage.point, self.awaited());
        if !who.is_empty() {
            todo.push(Action::Go { who, point });
        }
    }
}
