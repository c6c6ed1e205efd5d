//! How slots are stored: iterations of one case that follow one another are one object with `repeat`, as hundreds of
//! thousands of them (executions of an imported benchmark) would else be most of a manifest. Owns both ways; refuses a
//! `repeat` that would fill the memory of whoever reads it.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Slot;

/// Slots of a plan at most: 10 of them a second for more than two weeks.
const MOST: usize = 1 << 24;

/// A slot and those of its case that follow it at once.
#[derive(Serialize, Deserialize)]
struct RepeatedSlot {
    case: u32,
    iteration: u32,
    block: u32,
    warmup: bool,
    #[serde(default, skip_serializing_if = "super::is_first_boot")]
    boot: u32,
    /// How many slots; in each `iteration` and `block` are one more than in the one before.
    #[serde(default = "default_repeat", skip_serializing_if = "is_unrepeated")]
    repeat: u32,
}

fn default_repeat() -> u32 {
    1
}

fn is_unrepeated(repeat: &u32) -> bool {
    *repeat == 1
}

impl RepeatedSlot {
    fn from_slot(slot: Slot) -> Self {
        let Slot { case, iteration, block, warmup, boot } = slot;
        RepeatedSlot { case, iteration, block, warmup, boot, repeat: 1 }
    }

    /// The slot so many places behind the first.
    fn nth_slot(&self, further: u32) -> Slot {
        let RepeatedSlot { case, iteration, block, warmup, boot, .. } = *self;
        let (iteration, block) = (iteration.saturating_add(further), block.saturating_add(further));
        Slot { case, iteration, block, warmup, boot }
    }
}

pub(super) fn serialize<S: Serializer>(slots: &[Slot], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(group_repeated_slots(slots))
}

fn group_repeated_slots(slots: &[Slot]) -> Vec<RepeatedSlot> {
    let mut found: Vec<RepeatedSlot> = Vec::new();
    for slot in slots {
        match found.last_mut() {
            Some(last) if last.nth_slot(last.repeat) == *slot => last.repeat += 1,
            _ => found.push(RepeatedSlot::from_slot(*slot)),
        }
    }
    found
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Slot>, D::Error> {
    let stretches = Vec::<RepeatedSlot>::deserialize(deserializer)?;
    let mut slots = Vec::with_capacity(total_slots(&stretches).ok_or_else(|| D::Error::custom(TOO_MANY))?);
    for stretch in &stretches {
        slots.extend((0..stretch.repeat).map(|further| stretch.nth_slot(further)));
    }
    Ok(slots)
}

/// As [`deserialize`], but only their number.
pub fn count_slots<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let stretches = Vec::<RepeatedSlot>::deserialize(deserializer)?;
    total_slots(&stretches).ok_or_else(|| D::Error::custom(TOO_MANY))
}

const TOO_MANY: &str = "its plan has more than 16777216 slots";

fn total_slots(stretches: &[RepeatedSlot]) -> Option<usize> {
    let sum: u64 = stretches.iter().map(|stretch| u64::from(stretch.repeat)).sum();
    usize::try_from(sum).ok().filter(|sum| *sum <= MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunPlan;

    fn make_slot(case: u32, iteration: u32, boot: u32) -> Slot {
        Slot { case, iteration, block: iteration, warmup: false, boot }
    }

    #[test]
    fn what_follows_at_once_is_stored_once_and_comes_back_whole() {
        let slots: Vec<Slot> =
            (0..5000).map(|n| make_slot(0, n, 0)).chain([make_slot(1, 0, 0), make_slot(1, 1, 1)]).collect();
        let plan = RunPlan { slots, ..RunPlan::default() };
        let text = serde_json::to_string(&plan).unwrap();
        let stored = r#"{"case":0,"iteration":0,"block":0,"warmup":false,"repeat":5000},{"case":1"#;
        assert!(text.contains(stored) && text.len() < 400, "{text}");
        assert_eq!(serde_json::from_str::<RunPlan>(&text).unwrap(), plan);
    }

    #[test]
    fn a_plan_of_the_first_format_is_read() {
        let text = r#"[{"case":0,"iteration":0,"block":0,"warmup":true},{"case":2,"iteration":7,"block":7,"warmup":false,"boot":3}]"#;
        let slots = deserialize(&mut serde_json::Deserializer::from_str(text)).unwrap();
        assert_eq!(slots, [Slot { warmup: true, ..make_slot(0, 0, 0) }, make_slot(2, 7, 3)]);
    }

    #[test]
    fn a_number_that_would_fill_the_memory_is_refused() {
        let text = r#"[{"case":0,"iteration":0,"block":0,"warmup":false,"repeat":4294967295}]"#;
        let read = deserialize(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(read.unwrap_err().to_string(), TOO_MANY);
    }
}
