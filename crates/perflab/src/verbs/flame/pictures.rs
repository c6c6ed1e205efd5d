//! From stored runs to what the viewer shows.

use perflab_analyze::flame::{CallTreeOptions, CategoryRules, JoinedProfiles, SharedCommands, join_profiles};
use perflab_archive::{Archive, RunDir};
use perflab_model::{Profile, RunPlan};
use perflab_present::flame::{self, FlameCategories, FlameViewerData};

/// The runs behind one selector: one, or several that repeat each other.
#[derive(Debug)]
pub struct SelectedProfiles {
    /// The label, or what was asked for.
    pub name: String,
    /// At least one.
    pub runs: Vec<RunDir>,
}

impl SelectedProfiles {
    /// Finds them.
    pub fn find(archive: &Archive, selector: &str) -> anyhow::Result<Self> {
        let name = crate::sides::select_side(archive, selector)?.name;
        Ok(SelectedProfiles { name, runs: archive.find_runs(selector)? })
    }
}

/// One side of a picture, read.
struct ProfiledSide {
    name: String,
    profiles: Vec<(Profile, CallTreeOptions)>,
}

impl ProfiledSide {
    fn profiles_with_options(&self) -> Vec<(&Profile, CallTreeOptions)> {
        self.profiles.iter().map(|(profile, how)| (profile, how.clone())).collect()
    }
}

/// All selected runs, and all of their cases or the one that is wanted, over one tree; and the commands that share a box
/// in it, which none do where commands are to stay apart.
pub fn join_selected_profiles(
    selected: &[SelectedProfiles],
    case: Option<u32>,
    rules: Option<&CategoryRules>,
    by_command: bool,
) -> anyhow::Result<(FlameViewerData, Option<SharedCommands>)> {
    let mut sides = Vec::new();
    for one in selected {
        sides.extend(read_profiled_sides(one, case)?);
    }
    let shared = if by_command { None } else { share_commands(&mut sides) };
    Ok((draw_sides(&sides, rules), shared))
}

/// Puts commands that are not on every side into one box, so that their functions are compared.
fn share_commands(sides: &mut [ProfiledSide]) -> Option<SharedCommands> {
    let all: Vec<Vec<&Profile>> =
        sides.iter().map(|side| side.profiles.iter().map(|(profile, _)| profile).collect()).collect();
    let shared = SharedCommands::from_sides(&all);
    for (_, how) in sides.iter_mut().flat_map(|side| &mut side.profiles) {
        how.shared.clone_from(&shared);
    }
    shared
}

/// The profiles of a report's runs; none where none has any.
pub fn join_run_profiles(runs: &[RunDir]) -> anyhow::Result<Option<FlameViewerData>> {
    let mut sides = Vec::new();
    for run in runs.iter().filter(|run| run.profiled_cases().is_ok_and(|cases| !cases.is_empty())) {
        let name = run.manifest()?.label.unwrap_or_else(|| run.short_id().to_owned());
        sides.extend(read_profiled_sides(&SelectedProfiles { name, runs: vec![run.clone()] }, None)?);
    }
    share_commands(&mut sides);
    let rules = read_colour_rules("slab")?;
    Ok((!sides.is_empty()).then(|| draw_sides(&sides, rules.as_ref())))
}

/// The table that gives boxes their colours; none where kernel and user are enough.
pub fn read_colour_rules(name: &str) -> anyhow::Result<Option<CategoryRules>> {
    if name == "none" { Ok(None) } else { super::shares::read_rule_table(name).map(Some) }
}

/// What colours mean in a tree.
pub fn colour_categories(joined: &JoinedProfiles<'_>, rules: Option<&CategoryRules>) -> FlameCategories {
    rules.map_or_else(|| FlameCategories::by_role(joined), |rules| FlameCategories::by_rules(joined, rules))
}

fn draw_sides(sides: &[ProfiledSide], rules: Option<&CategoryRules>) -> FlameViewerData {
    let joined = join_profiles(&sides.iter().map(ProfiledSide::profiles_with_options).collect::<Vec<_>>());
    let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
    flame::flame_viewer_data(&names.join(" and "), &joined, &names, &colour_categories(&joined, rules))
}

/// A side for each case. A case that a repetition lacks is read from those that have it.
fn read_profiled_sides(selected: &SelectedProfiles, case: Option<u32>) -> anyhow::Result<Vec<ProfiledSide>> {
    let Some(first) = selected.runs.first() else { return Ok(Vec::new()) };
    let profiled = first.profiled_cases()?;
    let cases = match case {
        Some(case) => vec![case],
        None if profiled.is_empty() => vec![0],
        None => profiled,
    };
    cases.iter().map(|case| read_profiled_side(selected, *case, cases.len() > 1)).collect()
}

fn read_profiled_side(selected: &SelectedProfiles, case: u32, named: bool) -> anyhow::Result<ProfiledSide> {
    let mut profiles = Vec::new();
    for run in &selected.runs {
        if run.profiled_cases()?.contains(&case) || selected.runs.len() == 1 {
            let profile = run.read_profile(case)?;
            let how = measured_tree_options(&run.manifest()?.plan, &profile);
            profiles.push((profile, how));
        }
    }
    let label = selected.runs.first().map(RunDir::manifest).transpose()?;
    let label = label.and_then(|manifest| manifest.plan.cases.get(case as usize).map(|case| case.label()));
    let name = match label {
        Some(label) if named => format!("{}: {label}", selected.name),
        _ => selected.name.clone(),
    };
    Ok(ProfiledSide { name, profiles })
}

/// Commands stand under their stacks; warm-ups do not count unless there is nothing else.
pub fn measured_tree_options(plan: &RunPlan, profile: &Profile) -> CallTreeOptions {
    let warmup = |slot: u32| plan.slots.get(slot as usize).is_some_and(|slot| slot.warmup);
    let slots = profile.iterations.iter().map(|piece| piece.summary.slot).filter(|slot| !warmup(*slot));
    let slots: Vec<u32> = slots.collect();
    CallTreeOptions { slots: (!slots.is_empty()).then_some(slots), commands: true, shared: None }
}
