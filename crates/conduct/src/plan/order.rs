//! The order of slots: randomised complete blocks, or one case after the other.
//!
//! Blocks are the answer to drift: in simulation, running AAAA…BBBB under a 3 % drift gives 80 %
//! false alarms, randomised blocks 5 % (field-notes/statistics.md, section 1).

use perflab_model::Slot;
use perflab_model::study::{RunRules, SlotOrder};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// The order's name as stored.
pub(super) fn order_name(order: SlotOrder) -> &'static str {
    match order {
        SlotOrder::Randomised => "randomised",
        SlotOrder::Sequential => "sequential",
    }
}

/// All slots of `cases` cases, in every boot anew. The same seed gives the same order on every machine.
pub(super) fn order_slots(cases: u32, rules: &RunRules, seed: u64) -> Vec<Slot> {
    let boot = |boot: u32| {
        let slots = order_one_boot(cases, rules, seed.wrapping_add(u64::from(boot)));
        slots.into_iter().map(move |slot| Slot { boot, ..slot })
    };
    (0..rules.boots).flat_map(boot).collect()
}

fn order_one_boot(cases: u32, rules: &RunRules, seed: u64) -> Vec<Slot> {
    match rules.order {
        SlotOrder::Randomised if rules.boot_each_case => order_case_by_case(cases, rules, seed),
        SlotOrder::Sequential => (0..cases).flat_map(|case| one_case_slots(case, rules)).collect(),
        SlotOrder::Randomised => randomised_blocks(cases, rules, seed),
    }
}

fn one_case_slots(case: u32, rules: &RunRules) -> impl Iterator<Item = Slot> + use<> {
    let slot = move |warmup| move |iteration| Slot { case, iteration, block: iteration, warmup, boot: 0 };
    (0..rules.warmup).map(slot(true)).chain((0..rules.max_iterations()).map(slot(false)))
}

/// One case after the other, the cases shuffled: each has a start of the targets of its own, so that a block is what one
/// boot holds.
fn order_case_by_case(cases: u32, rules: &RunRules, seed: u64) -> Vec<Slot> {
    let mut order: Vec<u32> = (0..cases).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    order.into_iter().flat_map(|case| one_case_slots(case, rules)).collect()
}

fn randomised_blocks(cases: u32, rules: &RunRules, seed: u64) -> Vec<Slot> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let warm = (0..rules.warmup).map(|block| (block, true));
    let blocks = warm.chain((0..rules.max_iterations()).map(|block| (block, false)));
    blocks.flat_map(|(block, warmup)| shuffled_block(cases, block, warmup, &mut random)).collect()
}

fn shuffled_block(cases: u32, block: u32, warmup: bool, random: &mut ChaCha8Rng) -> Vec<Slot> {
    let mut slots: Vec<Slot> =
        (0..cases).map(|case| Slot { case, iteration: block, block, warmup, boot: 0 }).collect();
    slots.shuffle(random);
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_rules(order: SlotOrder) -> RunRules {
        RunRules { iterations: 20, warmup: 1, order, ..RunRules::default() }
    }

    #[test]
    fn every_block_holds_every_case_once() {
        let slots = order_slots(5, &run_rules(SlotOrder::Randomised), 7);
        assert_eq!(slots.len(), 21 * 5);
        for block in slots.chunks(5) {
            let mut cases: Vec<u32> = block.iter().map(|slot| slot.case).collect();
            cases.sort_unstable();
            assert_eq!(cases, [0, 1, 2, 3, 4]);
            assert!(block.iter().all(|slot| (slot.block, slot.warmup) == (block[0].block, block[0].warmup)));
        }
    }

    #[test]
    fn a_seed_fixes_the_order_and_another_changes_it() {
        let rules = run_rules(SlotOrder::Randomised);
        assert_eq!(order_slots(5, &rules, 7), order_slots(5, &rules, 7));
        assert_ne!(order_slots(5, &rules, 7), order_slots(5, &rules, 8));
    }

    #[test]
    fn each_case_by_itself_in_every_boot_and_in_another_order_each_time() {
        let rules = RunRules { boot_each_case: true, boots: 4, ..run_rules(SlotOrder::Randomised) };
        let slots = order_slots(3, &rules, 7);
        assert_eq!(slots.len(), 4 * 3 * 21);
        let starts: Vec<(u32, u32)> = slots.chunks(21).map(|one| (one[0].boot, one[0].case)).collect();
        for (start, chunk) in starts.iter().zip(slots.chunks(21)) {
            assert!(chunk.iter().all(|slot| (slot.boot, slot.case) == *start));
        }
        let boots: Vec<Vec<u32>> =
            starts.chunks(3).map(|boot| boot.iter().map(|one| one.1).collect()).collect();
        assert!(boots.iter().all(|cases| cases.iter().sum::<u32>() == 3));
        assert!(boots.iter().any(|cases| *cases != boots[0]), "{boots:?}");
    }

    #[test]
    fn a_sequential_order_finishes_a_case_before_the_next() {
        let slots = order_slots(2, &run_rules(SlotOrder::Sequential), 0);
        assert!(slots[..21].iter().all(|slot| slot.case == 0));
        assert!(slots[0].warmup && !slots[1].warmup && slots[21].warmup);
    }
}
