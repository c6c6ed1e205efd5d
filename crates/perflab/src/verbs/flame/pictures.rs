//! From stored runs to what the viewer shows.

use perflab_analyze::flame::{GrowOptions, Joined, Rules, SharedCommands, join};
use perflab_archive::{Archive, RunDir};
use perflab_model::{Plan, Profile};
use perflab_present::flame::{self, Categories, Picture};

/// The runs behind one selector: one, or several that repeat each other.
#[derive(Debug)]
pub struct Selected {
    /// The label, or what was asked for.
    pub name: String,
    /// At least one.
    pub runs: Vec<RunDir>,
}

impl Selected {
    /// Finds them.
    pub fn find(archive: &Archive, selector: &str) -> anyhow::Result<Self> {
        let name = crate::sides::side(archive, selector)?.name;
        Ok(Selected { name, runs: archive.find(selector)? })
    }
}

/// One side of a picture, read.
struct Side {
    name: String,
    profiles: Vec<(Profile, GrowOptions)>,
}

impl Side {
    fn borrowed(&self) -> Vec<(&Profile, GrowOptions)> {
        self.profiles.iter().map(|(profile, how)| (profile, how.clone())).collect()
    }
}

/// All selected runs, and all of their cases or the one that is wanted, over one tree; and the commands that share a box
/// in it, which none do where commands are to stay apart.
pub fn picture(
    selected: &[Selected],
    case: Option<u32>,
    rules: Option<&Rules>,
    by_command: bool,
) -> anyhow::Result<(Picture, Option<SharedCommands>)> {
    let mut sides = Vec::new();
    for one in selected {
        sides.extend(read(one, case)?);
    }
    let shared = if by_command { None } else { share(&mut sides) };
    Ok((drawn(&sides, rules), shared))
}

/// Puts commands that are not on every side into one box, so that their functions are compared.
fn share(sides: &mut [Side]) -> Option<SharedCommands> {
    let all: Vec<Vec<&Profile>> =
        sides.iter().map(|side| side.profiles.iter().map(|(profile, _)| profile).collect()).collect();
    let shared = SharedCommands::of(&all);
    for (_, how) in sides.iter_mut().flat_map(|side| &mut side.profiles) {
        how.shared.clone_from(&shared);
    }
    shared
}

/// The profiles of a report's runs; none where none has any.
pub fn of_runs(runs: &[RunDir]) -> anyhow::Result<Option<Picture>> {
    let mut sides = Vec::new();
    for run in runs.iter().filter(|run| run.profiled().is_ok_and(|cases| !cases.is_empty())) {
        let name = run.manifest()?.label.unwrap_or_else(|| run.short().to_owned());
        sides.extend(read(&Selected { name, runs: vec![run.clone()] }, None)?);
    }
    share(&mut sides);
    let rules = colours("slab")?;
    Ok((!sides.is_empty()).then(|| drawn(&sides, rules.as_ref())))
}

/// The table that gives boxes their colours; none where kernel and user are enough.
pub fn colours(name: &str) -> anyhow::Result<Option<Rules>> {
    if name == "none" { Ok(None) } else { super::shares::rules(name).map(Some) }
}

/// What colours mean in a tree.
pub fn categories(joined: &Joined<'_>, rules: Option<&Rules>) -> Categories {
    rules.map_or_else(|| Categories::by_role(joined), |rules| Categories::by_rules(joined, rules))
}

fn drawn(sides: &[Side], rules: Option<&Rules>) -> Picture {
    let joined = join(&sides.iter().map(Side::borrowed).collect::<Vec<_>>());
    let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
    flame::picture(&names.join(" and "), &joined, &names, &categories(&joined, rules))
}

/// A side for each case. A case that a repetition lacks is read from those that have it.
fn read(selected: &Selected, case: Option<u32>) -> anyhow::Result<Vec<Side>> {
    let Some(first) = selected.runs.first() else { return Ok(Vec::new()) };
    let profiled = first.profiled()?;
    let cases = match case {
        Some(case) => vec![case],
        None if profiled.is_empty() => vec![0],
        None => profiled,
    };
    cases.iter().map(|case| side(selected, *case, cases.len() > 1)).collect()
}

fn side(selected: &Selected, case: u32, named: bool) -> anyhow::Result<Side> {
    let mut profiles = Vec::new();
    for run in &selected.runs {
        if run.profiled()?.contains(&case) || selected.runs.len() == 1 {
            let profile = run.profile(case)?;
            let how = measured(&run.manifest()?.plan, &profile);
            profiles.push((profile, how));
        }
    }
    let label = selected.runs.first().map(RunDir::manifest).transpose()?;
    let label = label.and_then(|manifest| manifest.plan.cases.get(case as usize).map(|case| case.label()));
    let name = match label {
        Some(label) if named => format!("{}: {label}", selected.name),
        _ => selected.name.clone(),
    };
    Ok(Side { name, profiles })
}

/// Commands stand under their stacks; warm-ups do not count unless there is nothing else.
pub fn measured(plan: &Plan, profile: &Profile) -> GrowOptions {
    let warmup = |slot: u32| plan.slots.get(slot as usize).is_some_and(|slot| slot.warmup);
    let slots = profile.pieces.iter().map(|piece| piece.about.slot).filter(|slot| !warmup(*slot));
    let slots: Vec<u32> = slots.collect();
    GrowOptions { slots: (!slots.is_empty()).then_some(slots), commands: true, shared: None }
}
