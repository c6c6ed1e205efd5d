//! Every state that two and three targets can bring the machine into, by any order of any messages, deaths, silences
//! and wishes to stop. Targets may say anything at any time, so whatever real ones do is among it.

use std::collections::HashMap;

use perflab_model::study::LostTargetPolicy;
use perflab_model::{Nanos, Slot};

use super::state::BarrierMember;
use super::*;

const LIMITS: StageLimits =
    StageLimits { first: Nanos(10), before: Nanos(10), after: Nanos(10), last: Nanos(10) };
const GRACE: Nanos = Nanos(3);

/// Two slots; only the first two targets take part in the second one.
fn two_slot_barrier(targets: usize, on_lost: LostTargetPolicy) -> Barrier {
    let slot = Slot { case: 0, iteration: 0, block: 0, warmup: false, boot: 0 };
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

/// All that tells worlds apart.
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

    /// Every input that can come now, with the time at which it comes: time stands still but for deadlines.
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

    /// The next state, with the clock set back to 0 so that states can be told apart; safety is checked on the way.
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
fn a_claim_out_of_turn_is_a_loss() {
    let mut machine = BarrierWorld::new(2, LostTargetPolicy::Stop).machine;
    let lost = machine.step(Nanos(1), BarrierInput::Reached { target: 1, point: BarrierPoint::After(0) });
    let loss = TargetLoss::OutOfTurn(BarrierPoint::After(0));
    let expected = [
        BarrierAction::Lose { target: 1, loss },
        BarrierAction::Go { who: vec![0], point: BarrierPoint::Last },
    ];
    assert_eq!(lost, expected);
}
