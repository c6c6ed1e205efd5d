//! A run that was interrupted, and those that go on with it, as the one measurement that they are.

use std::collections::{HashMap, HashSet};

use crate::environment_variables::named_variable_changes;
use crate::fact_table::{self, FactKey};
use crate::metric::Sample;
use crate::plan::Slot;
use crate::quantity::Nanos;
use crate::run::{IterationRecord, JoinedPart, Manifest, Outcome, RunRecord};
use crate::series::SeriesGap;
use crate::trigger::TriggerRecord;

/// Facts in which the parts of one measurement agree: they are of one machine, under one kernel.
pub const MEASUREMENT_FACTS: [FactKey; 3] =
    [fact_table::MACHINE_ID, fact_table::KERNEL_RELEASE, fact_table::KERNEL_VERSION];

/// Makes one record of each run and of those that go on with it, in the place of the last of them, whose id it has; other records are
/// as they were. Its plan is that of the first part. What a later part measured again counts, and what was measured before does not: it
/// is of a block that was cut. Parts of other machines, kernels or workloads stay apart.
///
/// Of more than one part that goes on with the same run, each counts on top of the one before it. A part that goes on with one that is not
/// there is joined to what was measured before that one.
#[must_use]
pub fn join_continued_runs(records: Vec<RunRecord>) -> Vec<RunRecord> {
    if records.iter().all(|record| record.manifest.continues.is_none()) {
        return records;
    }
    let mut order: Vec<usize> = (0..records.len()).collect();
    // Ids are in the order of time: a run goes on with an older one.
    order.sort_by(|a, b| {
        records.get(*a).map(|one| &one.manifest.id).cmp(&records.get(*b).map(|one| &one.manifest.id))
    });
    let mut records: Vec<Option<RunRecord>> = records.into_iter().map(Some).collect();
    // Where what was measured under an id stands now.
    let mut places: HashMap<String, usize> = HashMap::new();
    for place in order {
        let Some(record) = records.get_mut(place).and_then(Option::take) else { continue };
        let id = record.manifest.id.clone();
        let manifest = &record.manifest;
        let known = [&manifest.continues, &manifest.first_part];
        let before = known.into_iter().flatten().find_map(|id| places.get(id)).copied();
        // Of parts whose first is not there, the first that is there stands for it.
        if let Some(first) = &manifest.first_part {
            places.entry(first.clone()).or_insert(place);
        }
        let earlier = before.and_then(|before| Some((before, records.get_mut(before)?.take()?)));
        let joined = match earlier {
            Some((_, earlier)) if is_same_measurement(&earlier.manifest, &record.manifest) => {
                let joined_ids =
                    places.iter().filter(|(_, at)| Some(**at) == before).map(|(id, _)| id.clone());
                for joined_id in joined_ids.collect::<Vec<_>>() {
                    places.insert(joined_id, place);
                }
                join_parts(earlier, record)
            }
            Some((before, earlier)) => {
                if let Some(slot) = records.get_mut(before) {
                    *slot = Some(earlier);
                }
                record
            }
            None => record,
        };
        places.insert(id, place);
        if let Some(slot) = records.get_mut(place) {
            *slot = Some(joined);
        }
    }
    records.into_iter().flatten().collect()
}

/// Whether two parts were measured on one machine, under one kernel, with the same workloads, whose commands read the same variables.
fn is_same_measurement(earlier: &Manifest, later: &Manifest) -> bool {
    MEASUREMENT_FACTS.iter().all(|key| earlier.facts.value(key) == later.facts.value(key))
        && earlier.plan.cases == later.plan.cases
        && earlier.plan.definitions == later.plan.definitions
        && named_variable_changes(earlier, later).is_empty()
}

fn join_parts(earlier: RunRecord, mut later: RunRecord) -> RunRecord {
    let shift = clock_shift(&earlier.manifest, &later.manifest);
    let mut parts = list_parts(&earlier);
    let later_parts = list_parts(&later);
    // What was stopped has measured nothing again; what failed has.
    let ended = later.iterations.iter().filter(|iteration| iteration.outcome != Outcome::Interrupted);
    let ended = ended.filter_map(|iteration| later.manifest.plan.slots.get(iteration.slot as usize));
    let ended = ended.filter(|slot| !slot.warmup).map(|slot| (slot.boot, slot.case, slot.iteration));
    let again: HashSet<(u32, u32, u32)> = later
        .samples
        .iter()
        .map(|sample| (sample.boot, sample.case, sample.iteration))
        .chain(ended)
        .collect();
    let RunRecord { manifest, mut samples, mut iterations, mut gaps, mut warnings, mut clock_bounds, .. } =
        earlier;
    let is_kept = |sample: &Sample| !again.contains(&(sample.boot, sample.case, sample.iteration));
    let mut rest = samples.as_slice();
    for part in &mut parts {
        let (own, behind) = rest.split_at(part.samples.min(rest.len()));
        part.samples = own.iter().filter(|sample| is_kept(sample)).count();
        rest = behind;
    }
    samples.retain(is_kept);
    for sample in &mut later.samples {
        (sample.start, sample.end) = (shift(sample.start), shift(sample.end));
    }
    samples.append(&mut later.samples);
    let mut slots = manifest.plan.slots;
    let places = place_slots(&mut slots, &later.manifest.plan.slots);
    let place = |slot: u32| places.get(slot as usize).copied().unwrap_or(u32::MAX);
    parts.extend(
        later_parts
            .into_iter()
            .map(|part| JoinedPart { slots: part.slots.into_iter().map(place).collect(), ..part }),
    );
    // What went well the second time, or failed, has one result; a warm-up is behind all others.
    let slots_again: HashSet<u32> = (0_u32..)
        .zip(&slots)
        .filter(|(_, slot)| !slot.warmup && again.contains(&(slot.boot, slot.case, slot.iteration)))
        .map(|(index, _)| index)
        .collect();
    iterations.retain(|iteration| !slots_again.contains(&iteration.slot));
    let moved: Vec<IterationRecord> = later
        .iterations
        .into_iter()
        .map(|one| IterationRecord {
            slot: place(one.slot),
            start: shift(one.start),
            end: shift(one.end),
            ..one
        })
        .collect();
    iterations.extend(moved);
    gaps.extend(later.gaps.into_iter().map(|gap| SeriesGap {
        from: shift(gap.from),
        to: gap.to.map(&shift),
        ..gap
    }));
    warnings.append(&mut later.warnings);
    clock_bounds.append(&mut later.clock_bounds);
    let later_triggers =
        later.triggers.into_iter().map(|trigger| TriggerRecord { at: shift(trigger.at), ..trigger });
    let mut overwritten = earlier.overwritten;
    overwritten.extend(later.overwritten.into_iter().map(|mut one| {
        one.slot = one.slot.map(place);
        one
    }));
    let mut plan = later.manifest.plan;
    plan.slots = slots;
    let overhead = manifest.overhead.plus(later.manifest.overhead);
    RunRecord {
        manifest: Manifest {
            plan,
            overhead,
            anchor: manifest.anchor,
            continues: manifest.continues,
            ..later.manifest
        },
        samples,
        iterations,
        gaps,
        warnings,
        clock_bounds,
        overwritten,
        triggers: earlier.triggers.into_iter().chain(later_triggers).collect(),
        parts,
        documents: earlier.documents.into_iter().chain(later.documents).collect(),
    }
}

/// What a run was joined from: itself, where it is as it was recorded.
fn list_parts(run: &RunRecord) -> Vec<JoinedPart> {
    match &run.parts[..] {
        [] => {
            let slots = 0..u32::try_from(run.manifest.plan.slots.len()).unwrap_or(u32::MAX);
            vec![JoinedPart {
                id: run.manifest.id.clone(),
                slots: slots.collect(),
                samples: run.samples.len(),
                has_known_cost: run.manifest.overhead.is_known(),
            }]
        }
        parts => parts.to_vec(),
    }
}

/// Where each slot of the later plan stands in the earlier one: what is measured, in its own place; warm-ups, and what is in none, behind
/// all others.
fn place_slots(slots: &mut Vec<Slot>, later: &[Slot]) -> Vec<u32> {
    let key = |slot: &Slot| (slot.boot, slot.case, slot.iteration);
    let known: HashMap<(u32, u32, u32), u32> = (0_u32..)
        .zip(slots.iter())
        .filter(|(_, slot)| !slot.warmup)
        .map(|(index, slot)| (key(slot), index))
        .collect();
    let mut place = |slot: &Slot| match known.get(&key(slot)).filter(|_| !slot.warmup) {
        Some(index) => *index,
        None => {
            slots.push(*slot);
            u32::try_from(slots.len() - 1).unwrap_or(u32::MAX)
        }
    };
    later.iter().map(&mut place).collect()
}

/// What puts a time of the later part on the clock of the earlier one, which may have stood still, or begun anew, in between.
fn clock_shift(earlier: &Manifest, later: &Manifest) -> impl Fn(Nanos) -> Nanos + use<> {
    let is_same_clock = !earlier.boot_id.is_empty() && earlier.boot_id == later.boot_id;
    let (earlier, later) = (earlier.anchor, later.anchor);
    move |time| match is_same_clock {
        true => time,
        false => {
            let since = i128::from(time.0) - i128::from(later.monotonic.0);
            let at = i128::from(later.realtime.0) - i128::from(earlier.realtime.0)
                + i128::from(earlier.monotonic.0);
            Nanos(u64::try_from(since + at).unwrap_or(0))
        }
    }
}
