//! The points that all targets must reach before any goes on, as a state machine without I/O.
//!
//! It knows which target is on the way to which point, until when, and what follows from that; there are no clocks,
//! streams or threads in it: its driver passes in the time and what was received, and does what it returns.
//! `docs/barrier.md` describes it for people; its test walks through every state that three targets can bring it
//! into.
//!
//! A run is a list of [`BarrierStage`]s. Each that waits for other machines has a deadline, so that its state is left
//! after a bounded time: a target that has not come by then is lost, and the others go on or stop, as the study says.
//! This host is a member with stages of its own, which have none.

use std::fmt;
use std::sync::Arc;

use perflab_model::study::LostTargetPolicy;
use perflab_model::{Nanos, Slot};
use serde::{Deserialize, Serialize};

/// A point that all must reach before any goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BarrierPoint {
    /// Before the first workload: everything is prepared, the monitors run.
    First,
    /// Before the iteration of that slot: settings are in force, nothing is left but to start.
    Before(u32),
    /// After the iteration of that slot, with everything that it gave.
    After(u32),
    /// After the last iteration: settings are undone, the monitors still run.
    Last,
    /// At the end: the monitors have stopped, nothing is left behind.
    End,
}

impl fmt::Display for BarrierPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BarrierPoint::First => f.write_str("the beginning"),
            BarrierPoint::Before(slot) => write!(f, "the start of iteration {slot}"),
            BarrierPoint::After(slot) => write!(f, "the end of iteration {slot}"),
            BarrierPoint::Last => f.write_str("the undoing of settings"),
            BarrierPoint::End => f.write_str("the end"),
        }
    }
}

/// A point, who has to come to it, and how long they may take.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BarrierStage {
    /// Where to.
    pub point: BarrierPoint,
    /// Indices of the targets that take part.
    pub who: Vec<usize>,
    /// The longest that they may take, from the moment when they are sent.
    pub allowed: perflab_model::Nanos,
}

/// How long each kind of stage may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageLimits {
    /// To check, prepare and begin to watch.
    pub first: Nanos,
    /// To bring settings about before an iteration.
    pub before: Nanos,
    /// For an iteration: its time limit, and what ending it takes.
    pub after: Nanos,
    /// To undo everything, and again to stop watching.
    pub last: Nanos,
}

/// All stages for `slots`, each with its index in the plan and the targets that take part in it, of `targets` in all.
pub fn round_stages(
    slots: &[(u32, Slot, Vec<usize>)],
    targets: usize,
    limits: StageLimits,
) -> Vec<BarrierStage> {
    let all = || (0..targets).collect::<Vec<_>>();
    let mut stages = vec![BarrierStage { point: BarrierPoint::First, who: all(), allowed: limits.first }];
    for (index, _, who) in slots {
        let (before, after) = (BarrierPoint::Before(*index), BarrierPoint::After(*index));
        stages.push(BarrierStage { point: before, who: who.clone(), allowed: limits.before });
        stages.push(BarrierStage { point: after, who: who.clone(), allowed: limits.after });
    }
    for point in [BarrierPoint::Last, BarrierPoint::End] {
        stages.push(BarrierStage { point, who: all(), allowed: limits.last });
    }
    stages
}

impl StageLimits {
    /// No limits: on his own machine, nobody's command is cut off.
    pub(crate) const NONE: StageLimits =
        StageLimits { first: UNLIMITED, before: UNLIMITED, after: UNLIMITED, last: UNLIMITED };
}

/// Longer than any run.
pub(crate) const UNLIMITED: Nanos = Nanos(u64::MAX);

/// The stages with one before each [`BarrierPoint::Before`] in which `host` alone comes there, in its own time: targets
/// change their settings under those of the host.
pub(crate) fn with_host_stages(stages: Vec<BarrierStage>, host: usize) -> Vec<BarrierStage> {
    let before = |point| BarrierStage { point, who: vec![host], allowed: UNLIMITED };
    let both = |stage: BarrierStage| {
        let own = matches!(stage.point, BarrierPoint::Before(_)).then(|| before(stage.point));
        own.into_iter().chain([stage])
    };
    stages.into_iter().flat_map(both).collect()
}

/// The state of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BarrierMember {
    /// It has no part in this stage.
    Idle,
    /// It was sent, and has not arrived.
    Coming,
    /// It has come.
    There,
    /// It takes no further part.
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
    OutOfOrder(BarrierPoint),
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

/// The state of a synchronised run.
#[derive(Debug, Clone)]
pub struct Barrier {
    pub(crate) stages: Arc<[BarrierStage]>,
    pub(crate) members: Vec<BarrierMember>,
    stage: usize,
    pub(crate) deadline: Nanos,
    pub(crate) stopping: bool,
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

    /// When to come back with [`BarrierInput::Time`] at the latest; `None` when all is over.
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

    /// Whether the target takes no further part.
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
                todo.push(BarrierAction::Lose { target, loss: TargetLoss::OutOfOrder(point) });
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
        // All at once: none of them is cancelled for the sake of the others.
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use perflab_model::study::LostTargetPolicy;
    use perflab_model::{Nanos, Slot};

    use super::BarrierMember;
    use super::*;

    // Every state that two and three targets can bring the machine into, by any order of any messages, deaths, silences
    // and wishes to stop. Targets may say anything at any time, so whatever real ones do is among it.

    const LIMITS: StageLimits =
        StageLimits { first: Nanos(10), before: Nanos(10), after: Nanos(10), last: Nanos(10) };

    const GRACE: Nanos = Nanos(3);

    /// Two slots; only the first two targets take part in the second one.
    fn two_slot_barrier(targets: usize, on_lost: LostTargetPolicy) -> Barrier {
        let slot = Slot { case: 0, iteration: 0, block: 0, warmup: false, boot: 0, layout: None };
        let slots = [(0, slot, (0..targets).collect()), (1, slot, (0..targets.min(2)).collect())];
        Barrier::new(round_stages(&slots, targets, LIMITS), targets, on_lost, GRACE)
    }

    fn all_points() -> [BarrierPoint; 7] {
        [
            BarrierPoint::First,
            BarrierPoint::Before(0),
            BarrierPoint::After(0),
            BarrierPoint::Before(1),
            BarrierPoint::After(1),
            BarrierPoint::Last,
            BarrierPoint::End,
        ]
    }

    /// Pairs of target and point, a bit each.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
    struct TargetPointSet(u32);

    impl TargetPointSet {
        fn pair_bit(target: usize, point: BarrierPoint) -> u32 {
            let place = all_points().iter().position(|known| *known == point).unwrap();
            1 << (target * all_points().len() + place)
        }

        fn contains(self, target: usize, point: BarrierPoint) -> bool {
            self.0 & TargetPointSet::pair_bit(target, point) != 0
        }

        /// Whether it is new.
        fn insert(&mut self, target: usize, point: BarrierPoint) -> bool {
            let new = !self.contains(target, point);
            self.0 |= TargetPointSet::pair_bit(target, point);
            new
        }
    }

    /// The machine, and what really happened: who said that it had reached what while it was asked to.
    #[derive(Debug, Clone)]
    struct BarrierWorld {
        machine: Barrier,
        said: TargetPointSet,
        gone_to: TargetPointSet,
        over: bool,
    }

    /// All that distinguishes worlds.
    type BarrierWorldKey = (Vec<BarrierMember>, usize, Nanos, bool, TargetPointSet, TargetPointSet, bool);

    impl BarrierWorld {
        fn new(targets: usize, on_lost: LostTargetPolicy) -> Self {
            let machine = two_slot_barrier(targets, on_lost);
            let world = BarrierWorld {
                machine,
                said: TargetPointSet::default(),
                gone_to: TargetPointSet::default(),
                over: false,
            };
            world.apply_input(Nanos(0), BarrierInput::Time)
        }

        fn state_key(&self) -> BarrierWorldKey {
            let machine = &self.machine;
            let (members, stage, deadline) = (machine.members.clone(), machine.stage, machine.deadline);
            (members, stage, deadline, machine.stopping, self.said, self.gone_to, self.over)
        }

        /// Every input that can come now, with the time at which it comes: time passes only at deadlines.
        fn possible_inputs(&self) -> Vec<(Nanos, BarrierInput)> {
            let targets = 0..self.machine.members.len();
            let mut all = vec![(Nanos(0), BarrierInput::Stop), (Nanos(0), BarrierInput::Time)];
            for target in targets {
                all.push((Nanos(0), BarrierInput::Lost(target)));
                all.extend(all_points().map(|point| (Nanos(0), BarrierInput::Reached { target, point })));
            }
            all.extend(self.machine.deadline().map(|deadline| (deadline, BarrierInput::Time)));
            all
        }

        /// The next state, with the clock set back to 0 so that states can be distinguished; safety is checked on the way.
        fn apply_input(&self, now: Nanos, input: BarrierInput) -> BarrierWorld {
            let mut next = self.clone();
            if let BarrierInput::Reached { target, point } = input
                && next.gone_to.contains(target, point)
            {
                next.said.insert(target, point);
            }
            let todo = next.machine.step(now, input);
            assert!(!self.over || todo.is_empty(), "something was done after the end: {todo:?}");
            for action in &todo {
                next.check_action(action);
            }
            next.machine.deadline = next.machine.deadline.since(now);
            next
        }

        fn check_action(&mut self, action: &BarrierAction) {
            match action {
                BarrierAction::Go { who, point } => self.check_go(who, *point),
                BarrierAction::Cancel(who) => {
                    let running = |target: &usize| {
                        (0..2).any(|slot| self.gone_to.contains(*target, BarrierPoint::After(slot)))
                    };
                    assert!(who.iter().all(running), "only who runs can be told to end it");
                }
                BarrierAction::Lose { target, .. } => assert!(self.machine.is_lost(*target)),
                BarrierAction::Over => {
                    assert!(!self.over, "it ends once");
                    self.over = true;
                }
            }
        }

        /// Nobody is told to go anywhere twice, and nobody starts an iteration before everybody who takes part in it has
        /// said that it is ready, or is lost.
        fn check_go(&mut self, who: &[usize], point: BarrierPoint) {
            for target in who {
                assert!(self.gone_to.insert(*target, point), "{target} was sent to {point} twice");
            }
            if let BarrierPoint::After(slot) = point {
                let before = BarrierPoint::Before(slot);
                let stage = self.machine.stages.iter().find(|stage| stage.point == before).unwrap();
                for target in &stage.who {
                    let ready = self.said.contains(*target, before);
                    assert!(
                        ready || self.machine.members[*target] == BarrierMember::Lost,
                        "{target} was not waited for"
                    );
                }
                assert!(who.iter().all(|target| self.said.contains(*target, before)));
            }
        }
    }

    /// All reachable worlds.
    fn explore_worlds(targets: usize, on_lost: LostTargetPolicy) -> HashMap<BarrierWorldKey, BarrierWorld> {
        let begin = BarrierWorld::new(targets, on_lost);
        let mut seen = HashMap::from([(begin.state_key(), begin.clone())]);
        let mut queue = vec![begin];
        while let Some(world) = queue.pop() {
            for (now, input) in world.possible_inputs() {
                let next = world.apply_input(now, input);
                if seen.insert(next.state_key(), next.clone()).is_none() {
                    queue.push(next);
                }
            }
        }
        seen
    }

    /// From every state time alone leads to the end, in no more steps than there are stages.
    fn assert_time_leads_to_end(worlds: &HashMap<BarrierWorldKey, BarrierWorld>) {
        for world in worlds.values() {
            let mut world = world.clone();
            for _ in 0..all_points().len() {
                let Some(deadline) = world.machine.deadline() else { break };
                assert!(deadline <= Nanos(10), "a deadline that is too far: {world:?}");
                world = world.apply_input(deadline, BarrierInput::Time);
            }
            assert!(world.over && world.machine.point().is_none(), "it hangs: {world:?}");
        }
    }

    #[test]
    fn two_targets_in_every_state_are_safe_and_never_hang() {
        for on_lost in [LostTargetPolicy::Continue, LostTargetPolicy::Stop] {
            let worlds = explore_worlds(2, on_lost);
            assert!(worlds.len() > 500, "{}", worlds.len());
            assert_time_leads_to_end(&worlds);
        }
    }

    #[test]
    fn three_targets_in_every_state_are_safe_and_never_hang() {
        for on_lost in [LostTargetPolicy::Continue, LostTargetPolicy::Stop] {
            let worlds = explore_worlds(3, on_lost);
            assert!(worlds.len() > 5000, "{}", worlds.len());
            assert_time_leads_to_end(&worlds);
        }
    }

    /// Targets that do what they are told, in every order of arrival: nobody is lost, everybody is sent everywhere.
    #[test]
    fn whoever_comes_in_turn_is_never_lost() {
        let mut seen: HashMap<BarrierWorldKey, BarrierWorld> = HashMap::new();
        let mut queue = vec![BarrierWorld::new(3, LostTargetPolicy::Stop)];
        let mut ends = 0;
        while let Some(world) = queue.pop() {
            if seen.insert(world.state_key(), world.clone()).is_some() {
                continue;
            }
            assert!(!world.machine.members.contains(&BarrierMember::Lost), "{world:?}");
            if world.over {
                assert_eq!(world.gone_to.0.count_ones(), 3 * 5 + 2 * 2);
                ends += 1;
            }
            for target in world.machine.awaited_targets() {
                let point = world.machine.point().unwrap();
                queue.push(world.apply_input(Nanos(1), BarrierInput::Reached { target, point }));
            }
        }
        assert_eq!(ends, 1, "all orders end in the same state");
    }

    #[test]
    fn a_target_lost_in_an_iteration_makes_the_others_end_it_and_go_on() {
        let mut world = BarrierWorld::new(2, LostTargetPolicy::Continue);
        for point in [BarrierPoint::First, BarrierPoint::Before(0)] {
            for target in 0..2 {
                world = world.apply_input(Nanos(1), BarrierInput::Reached { target, point });
            }
        }
        let mut machine = world.machine.clone();
        assert_eq!(machine.step(Nanos(1), BarrierInput::Lost(1)), [BarrierAction::Cancel(vec![0])]);
        assert_eq!(machine.deadline(), Some(Nanos(4)), "ending it has a deadline of its own");
        let went = machine.step(Nanos(2), BarrierInput::Reached { target: 0, point: BarrierPoint::After(0) });
        assert_eq!(went, [BarrierAction::Go { who: vec![0], point: BarrierPoint::Before(1) }]);
    }

    #[test]
    fn this_host_goes_first_in_its_own_time_and_has_no_part_in_the_rest() {
        let slot = Slot { case: 0, iteration: 0, block: 0, warmup: false, boot: 0, layout: None };
        let stages = with_host_stages(round_stages(&[(0, slot, vec![0])], 1, LIMITS), 1);
        let mut machine = Barrier::new(stages, 2, LostTargetPolicy::Stop, GRACE);
        let go = |target, point| vec![BarrierAction::Go { who: vec![target], point }];
        let (before, after) = (BarrierPoint::Before(0), BarrierPoint::After(0));
        let late = Nanos(u64::MAX - 20);
        assert_eq!(machine.step(Nanos(0), BarrierInput::Time), go(0, BarrierPoint::First));
        let first = BarrierInput::Reached { target: 0, point: BarrierPoint::First };
        assert_eq!(machine.step(Nanos(1), first), go(1, before));
        assert_eq!(machine.step(late, BarrierInput::Time), [], "nobody waits too long for it");
        let mut reached = |target, point| machine.step(late, BarrierInput::Reached { target, point });
        assert_eq!(reached(1, before), go(0, before));
        assert_eq!(reached(0, before), go(0, after));
        assert_eq!(reached(0, after), go(0, BarrierPoint::Last));
        assert_eq!(reached(0, BarrierPoint::Last), go(0, BarrierPoint::End));
        assert_eq!(reached(0, BarrierPoint::End), [BarrierAction::Over]);
    }

    #[test]
    fn a_claim_out_of_turn_is_a_loss() {
        let mut machine = BarrierWorld::new(2, LostTargetPolicy::Stop).machine;
        let lost = machine.step(Nanos(1), BarrierInput::Reached { target: 1, point: BarrierPoint::After(0) });
        let loss = TargetLoss::OutOfOrder(BarrierPoint::After(0));
        let expected = [
            BarrierAction::Lose { target: 1, loss },
            BarrierAction::Go { who: vec![0], point: BarrierPoint::Last },
        ];
        assert_eq!(lost, expected);
    }
}
