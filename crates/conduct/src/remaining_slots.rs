//! What an interrupted run has not done of its plan.

use std::collections::{HashMap, HashSet};

use perflab_model::{IterationRecord, Outcome, RunPlan, Slot};

/// The slots of `plan` that have no result in `iterations`, in the order of the plan, and the warm-ups before them: those of each case
/// and boot that has something left. An iteration that failed has a result; one that was stopped has none. Of a complete block all
/// slots are left or none: halves of two times would not be one.
pub fn find_remaining_slots(plan: &RunPlan, iterations: &[IterationRecord]) -> Vec<Slot> {
    let done = find_done_slots(plan, iterations);
    let numbered = || plan.slots.iter().enumerate().filter(|(_, slot)| !slot.warmup);
    let cut: HashSet<(u32, u32)> = numbered()
        .filter(|(index, _)| plan.has_complete_blocks() && !done.contains(index))
        .map(|(_, slot)| (slot.boot, slot.block))
        .collect();
    let is_left =
        |index: usize, slot: &Slot| !done.contains(&index) || cut.contains(&(slot.boot, slot.block));
    let left = numbered().filter(|(index, slot)| is_left(*index, slot));
    let warmed: HashSet<(u32, u32)> = left.map(|(_, slot)| (slot.boot, slot.case)).collect();
    let is_wanted = |(index, slot): &(usize, &Slot)| match slot.warmup {
        true => warmed.contains(&(slot.boot, slot.case)),
        false => is_left(*index, slot),
    };
    plan.slots.iter().enumerate().filter(is_wanted).map(|(_, slot)| *slot).collect()
}

/// Slots in which every target has ended by itself.
fn find_done_slots(plan: &RunPlan, iterations: &[IterationRecord]) -> HashSet<usize> {
    let mut ended: HashMap<u32, usize> = HashMap::new();
    let mut stopped = HashSet::new();
    for iteration in iterations {
        *ended.entry(iteration.slot).or_default() += 1;
        if iteration.outcome == Outcome::Interrupted {
            stopped.insert(iteration.slot);
        }
    }
    // A target that was lost is missing in the slots after that; only of the last one nobody knows whether others would have followed.
    let last = ended.keys().copied().max();
    let is_whole = |slot: u32, count: usize| Some(slot) != last || count >= count_participants(plan, slot);
    let whole = ended.into_iter().filter(|(slot, count)| !stopped.contains(slot) && is_whole(*slot, *count));
    whole.map(|(slot, _)| slot as usize).collect()
}

/// How many targets take part in a slot; this host counts as one where there are none.
fn count_participants(plan: &RunPlan, slot: u32) -> usize {
    let case = plan.slots.get(slot as usize).and_then(|slot| plan.case(slot.case));
    let chosen = case.and_then(|case| plan.case_participation(case)).map(|one| one.targets as usize);
    chosen.unwrap_or(plan.targets.len()).max(1)
}

#[cfg(test)]
mod tests {
    use perflab_model::Nanos;

    use super::*;

    /// Two cases in blocks: a warm-up and `blocks` measured ones in each of `boots`.
    fn make_plan(order: &str, blocks: u32, boots: u32) -> RunPlan {
        let block = |boot, block, warmup| {
            (0..2).map(move |case| Slot { case, iteration: block, block, warmup, boot, layout: None })
        };
        let boot =
            |boot| block(boot, 0, true).chain((0..blocks).flat_map(move |number| block(boot, number, false)));
        RunPlan { order: order.into(), slots: (0..boots).flat_map(boot).collect(), ..RunPlan::default() }
    }

    fn ended(slot: u32, outcome: Outcome) -> IterationRecord {
        IterationRecord { target: None, slot, outcome, start: Nanos(0), end: Nanos(1) }
    }

    /// Boot, case, iteration, whether it is a warm-up.
    fn find(plan: &RunPlan, ended: &[IterationRecord]) -> Vec<(u32, u32, u32, bool)> {
        let slots = find_remaining_slots(plan, ended);
        slots.iter().map(|slot| (slot.boot, slot.case, slot.iteration, slot.warmup)).collect()
    }

    #[test]
    fn what_has_a_result_is_not_run_again_and_what_follows_is_warmed_up() {
        let plan = make_plan("randomised", 3, 1);
        let mut records: Vec<IterationRecord> = (0..4).map(|slot| ended(slot, Outcome::Ok)).collect();
        records.push(ended(4, Outcome::Failed { reason: "it broke".into() }));
        records.push(ended(5, Outcome::Interrupted));
        let warmups = [(0, 0, 0, true), (0, 1, 0, true)];
        let blocks = [(0, 0, 1, false), (0, 1, 1, false), (0, 0, 2, false), (0, 1, 2, false)];
        assert_eq!(find(&plan, &records), [&warmups[..], &blocks].concat());
        // Without blocks, each iteration stands by itself.
        let sequential = RunPlan { order: "sequential".into(), ..plan.clone() };
        assert_eq!(find(&sequential, &records), [&warmups[..], &blocks[1..]].concat());
        assert_eq!(find_remaining_slots(&plan, &[]), plan.slots);
        let all: Vec<IterationRecord> = (0..8).map(|slot| ended(slot, Outcome::Ok)).collect();
        assert_eq!(find(&plan, &all), []);
        // One case is through: the other alone is warmed up.
        assert_eq!(find(&sequential, &all[..7]), [(0, 1, 0, true), (0, 1, 2, false)]);
    }

    #[test]
    fn each_boot_is_warmed_up_that_has_something_left() {
        let plan = make_plan("randomised", 1, 2);
        let records: Vec<IterationRecord> = (0..6).map(|slot| ended(slot, Outcome::Ok)).collect();
        assert_eq!(find(&plan, &records), find(&plan, &[])[4..]);
    }

    #[test]
    fn two_that_run_at_once_stay_together() {
        let plan = make_plan(RunPlan::DUET, 2, 1);
        let records: Vec<IterationRecord> = (0..5).map(|slot| ended(slot, Outcome::Ok)).collect();
        let left = [(0, 0, 0, true), (0, 1, 0, true), (0, 0, 1, false), (0, 1, 1, false)];
        assert_eq!(find(&plan, &records), left);
    }

    #[test]
    fn an_iteration_of_several_targets_ends_with_the_last_of_them() {
        let mut plan = make_plan("sequential", 2, 1);
        let target = |name: &str| serde_json::json!({ "name": name, "spec": { "kind": "process" } });
        plan.targets = serde_json::from_value([target("a"), target("b")].into()).unwrap();
        let of = |target, slot| IterationRecord { target: Some(target), ..ended(slot, Outcome::Ok) };
        // `b` was lost in slot 3, and `a` alone went on.
        let mut records: Vec<IterationRecord> = (0..3).flat_map(|slot| [of(0, slot), of(1, slot)]).collect();
        records.extend([of(0, 3), of(0, 4)]);
        assert_eq!(find(&plan, &records)[2..], [(0, 0, 1, false), (0, 1, 1, false)]);
        records.push(of(1, 4));
        assert_eq!(find(&plan, &records), [(0, 1, 0, true), (0, 1, 1, false)]);
    }
}
