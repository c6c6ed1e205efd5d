//! Every state that two and three targets can bring the machine into, by any order of any messages, deaths, silences
//! and wishes to stop. Targets may say anything at any time, so whatever real ones do is among it.

use std::collections::HashMap;

use perflab_model::study::OnLost;
use perflab_model::{Nanos, Slot};

use super::state::Member;
use super::*;

const LIMITS: Limits = Limits { first: Nanos(10), before: Nanos(10), after: Nanos(10), last: Nanos(10) };
const GRACE: Nanos = Nanos(3);

/// Two slots; only the first two targets take part in the second one.
fn machine(targets: usize, on_lost: OnLost) -> Barrier {
    let slot = Slot { case: 0, iteration: 0, block: 0, warmup: false, boot: 0 };
    let slots = [(0, slot, (0..targets).collect()), (1, slot, (0..targets.min(2)).collect())];
    Barrier::new(stages(&slots, targets, LIMITS), targets, on_lost, GRACE)
}

fn points() -> [Point; 7] {
    [
        Point::First,
        Point::Before(0),
        Point::After(0),
        Point::Before(1),
        Point::After(1),
        Point::Last,
        Point::End,
    ]
}

/// Pairs of target and point, a bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Pairs(u32);

impl Pairs {
    fn bit(target: usize, point: Point) -> u32 {
        let place = points().iter().position(|known| *known == point).unwrap();
        1 << (target * points().len() + place)
    }

    fn has(self, target: usize, point: Point) -> bool {
        self.0 & Pairs::bit(target, point) != 0
    }

    /// Whether it is new.
    fn add(&mut self, target: usize, point: Point) -> bool {
        let new = !self.has(target, point);
        self.0 |= Pairs::bit(target, point);
        new
    }
}

/// The machine, and what really happened: who said that it had reached what while it was asked to.
#[derive(Debug, Clone)]
struct World {
    machine: Barrier,
    said: Pairs,
    gone_to: Pairs,
    over: bool,
}

/// All that tells worlds apart.
type Key = (Vec<Member>, usize, Nanos, bool, Pairs, Pairs, bool);

impl World {
    fn begin(targets: usize, on_lost: OnLost) -> Self {
        let machine = machine(targets, on_lost);
        let world = World { machine, said: Pairs::default(), gone_to: Pairs::default(), over: false };
        world.after(Nanos(0), Input::Time)
    }

    fn key(&self) -> Key {
        let machine = &self.machine;
        let (members, stage, deadline) = (machine.members.clone(), machine.stage, machine.deadline);
        (members, stage, deadline, machine.stopping, self.said, self.gone_to, self.over)
    }

    /// Every input that can come now, with the time at which it comes: time stands still but for deadlines.
    fn inputs(&self) -> Vec<(Nanos, Input)> {
        let targets = 0..self.machine.members.len();
        let mut all = vec![(Nanos(0), Input::Stop), (Nanos(0), Input::Time)];
        for target in targets {
            all.push((Nanos(0), Input::Lost(target)));
            all.extend(points().map(|point| (Nanos(0), Input::Reached { target, point })));
        }
        all.extend(self.machine.deadline().map(|deadline| (deadline, Input::Time)));
        all
    }

    /// The next state, with the clock set back to 0 so that states can be told apart; safety is checked on the way.
    fn after(&self, now: Nanos, input: Input) -> World {
        let mut next = self.clone();
        if let Input::Reached { target, point } = input
            && next.gone_to.has(target, point)
        {
            next.said.add(target, point);
        }
        let todo = next.machine.take(now, input);
        assert!(!self.over || todo.is_empty(), "something was done after the end: {todo:?}");
        for action in &todo {
            next.check(action);
        }
        next.machine.deadline = next.machine.deadline.since(now);
        next
    }

    fn check(&mut self, action: &Action) {
        match action {
            Action::Go { who, point } => self.check_go(who, *point),
            Action::Cancel(who) => {
                let running =
                    |target: &usize| (0..2).any(|slot| self.gone_to.has(*target, Point::After(slot)));
                assert!(who.iter().all(running), "only who runs can be told to end it");
            }
            Action::Lose { target, .. } => assert!(self.machine.is_lost(*target)),
            Action::Over => {
                assert!(!self.over, "it ends once");
                self.over = true;
            }
        }
    }

    /// Nobody is told to go anywhere twice, and nobody starts an iteration before everybody who takes part in it has
    /// said that it is ready, or is lost.
    fn check_go(&mut self, who: &[usize], point: Point) {
        for target in who {
            assert!(self.gone_to.add(*target, point), "{target} was sent to {point} twice");
        }
        if let Point::After(slot) = point {
            let before = Point::Before(slot);
            let stage = self.machine.stages.iter().find(|stage| stage.point == before).unwrap();
            for target in &stage.who {
                let ready = self.said.has(*target, before);
                assert!(
                    ready || self.machine.members[*target] == Member::Lost,
                    "{target} was not waited for"
                );
            }
            assert!(who.iter().all(|target| self.said.has(*target, before)));
        }
    }
}

/// All reachable worlds.
fn explore(targets: usize, on_lost: OnLost) -> HashMap<Key, World> {
    let begin = World::begin(targets, on_lost);
    let mut seen = HashMap::from([(begin.key(), begin.clone())]);
    let mut queue = vec![begin];
    while let Some(world) = queue.pop() {
        for (now, input) in world.inputs() {
            let next = world.after(now, input);
            if seen.insert(next.key(), next.clone()).is_none() {
                queue.push(next);
            }
        }
    }
    seen
}

/// From every state time alone leads to the end, in no more steps than there are stages.
fn time_leads_on(worlds: &HashMap<Key, World>) {
    for world in worlds.values() {
        let mut world = world.clone();
        for _ in 0..points().len() {
            let Some(deadline) = world.machine.deadline() else { break };
            assert!(deadline <= Nanos(10), "a deadline that is too far: {world:?}");
            world = world.after(deadline, Input::Time);
        }
        assert!(world.over && world.machine.point().is_none(), "it hangs: {world:?}");
    }
}

#[test]
fn two_targets_in_every_state_are_safe_and_never_hang() {
    for on_lost in [OnLost::Continue, OnLost::Stop] {
        let worlds = explore(2, on_lost);
        assert!(worlds.len() > 500, "{}", worlds.len());
        time_leads_on(&worlds);
    }
}

#[test]
fn three_targets_in_every_state_are_safe_and_never_hang() {
    for on_lost in [OnLost::Continue, OnLost::Stop] {
        let worlds = explore(3, on_lost);
        assert!(worlds.len() > 5000, "{}", worlds.len());
        time_leads_on(&worlds);
    }
}

/// Targets that do what they are told, in every order of arrival: nobody is lost, everybody is sent everywhere.
#[test]
fn whoever_comes_in_turn_is_never_lost() {
    let mut seen: HashMap<Key, World> = HashMap::new();
    let mut queue = vec![World::begin(3, OnLost::Stop)];
    let mut ends = 0;
    while let Some(world) = queue.pop() {
        if seen.insert(world.key(), world.clone()).is_some() {
            continue;
        }
        assert!(!world.machine.members.contains(&Member::Lost), "{world:?}");
        if world.over {
            assert_eq!(world.gone_to.0.count_ones(), 3 * 5 + 2 * 2);
            ends += 1;
        }
        for target in world.machine.awaited() {
            let point = world.machine.point().unwrap();
            queue.push(world.after(Nanos(1), Input::Reached { target, point }));
        }
    }
    assert_eq!(ends, 1, "all orders end in the same state");
}

#[test]
fn a_target_lost_in_an_iteration_makes_the_others_end_it_and_go_on() {
    let mut world = World::begin(2, OnLost::Continue);
    for point in [Point::First, Point::Before(0)] {
        for target in 0..2 {
            world = world.after(Nanos(1), Input::Reached { target, point });
        }
    }
    let mut machine = world.machine.clone();
    assert_eq!(machine.take(Nanos(1), Input::Lost(1)), [Action::Cancel(vec![0])]);
    assert_eq!(machine.deadline(), Some(Nanos(4)), "ending it has a deadline of its own");
    let went = machine.take(Nanos(2), Input::Reached { target: 0, point: Point::After(0) });
    assert_eq!(went, [Action::Go { who: vec![0], point: Point::Before(1) }]);
}

#[test]
fn a_claim_out_of_turn_is_a_loss() {
    let mut machine = World::begin(2, OnLost::Stop).machine;
    let lost = machine.take(Nanos(1), Input::Reached { target: 1, point: Point::After(0) });
    let loss = Loss::OutOfTurn(Point::After(0));
    let expected = [Action::Lose { target: 1, loss }, Action::Go { who: vec![0], point: Point::Last }];
    assert_eq!(lost, expected);
}
