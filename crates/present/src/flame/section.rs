//! The section Flame graph: the call stacks of all runs over one tree, in the viewer.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use perflab_analyze::flame::{
    CallTreeOptions, CategoryRules, CategoryShareOptions, ComparedShareRow, JoinedProfiles, ProfiledRun,
    ShareLevelData, SharedCommands, compare_categories, join_profiles,
};
use perflab_model::{Manifest, Profile, RunData};

use crate::flame::compared_shares::{compared_share_grid, compared_share_sentences};
use crate::flame::viewer::{FlameCategories, FlameViewerData, flame_viewer_data};
use crate::packed_column::embed_json;
use crate::run_viewer::run_display_name;
use crate::section::{
    ReportData, Section, SectionBlock, SectionError, SectionViewer, ViewerData, fold_parts, no_conclusions,
};

/// Where the time goes.
pub(crate) const SECTION: Section =
    Section { id: "flame", title: "Flame graph", conclusions: no_conclusions, blocks: flame_blocks };

/// The rule table that gives boxes their colours in a report.
const REPORT_RULES: &str = "slab";

fn flame_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    let mut sides = Vec::new();
    for run in &data.runs {
        sides.extend(run_sides(run.as_ref())?);
    }
    if sides.is_empty() {
        return Ok(Vec::new());
    }
    share_commands(&mut sides);
    let rules = CategoryRules::load_shipped(REPORT_RULES).transpose()?;
    let mut blocks = vec![SectionBlock::Viewer(flame_viewer(&draw_sides(&sides, rules.as_ref()))?)];
    if let ([run], Some(rules)) = (&data.runs[..], &rules) {
        blocks.extend(share_blocks(run.as_ref(), rules)?);
    }
    Ok(blocks)
}

/// What share of the samples each category of the table has at the levels of the run's first factor, case by case.
fn share_blocks(run: &dyn RunData, rules: &CategoryRules) -> Result<Vec<SectionBlock>, SectionError> {
    let (record, profiled) = (run.record(), run.profiled_cases()?);
    let plan = &record.manifest.plan;
    let Some((factor, _)) = plan.factors.iter().find(|(_, levels)| levels.len() > 1) else {
        return Ok(Vec::new());
    };
    let mut groups: IndexMap<String, Vec<(&str, u32, Profile)>> = IndexMap::new();
    for (number, case) in profiled.iter().filter_map(|number| Some((*number, plan.case(*number)?))) {
        let Some(level) = case.levels.get(factor) else { continue };
        groups.entry(case.label_without(factor)).or_default().push((level, number, run.profile(number)?));
    }
    let mut parts = Vec::new();
    for (label, mut profiles) in groups.into_iter().filter(|(_, profiles)| profiles.len() > 1) {
        let order = |level: &str| plan.factors[factor].iter().position(|known| known == level);
        profiles.sort_by_key(|(level, ..)| order(level));
        let level = |(name, number, profile)| ShareLevelData {
            name: str::to_owned(name),
            runs: vec![(record, number, ProfiledRun::from_manifest(profile, &record.manifest))],
            kernels: Vec::new(),
            counts: BTreeMap::new(),
        };
        let levels: Vec<ShareLevelData<'_>> =
            profiles.iter().map(|(name, number, profile)| level((*name, *number, profile))).collect();
        let compared = compare_categories(Some(factor), &levels, rules, &CategoryShareOptions::default());
        // A level without a sample has no shares.
        let shares = |row: &ComparedShareRow| row.levels.iter().any(|level| level.value > Some(0.0));
        let Some(found) = compared.ok().filter(|found| found.rows.iter().any(shares)) else { continue };
        let caption = format!("{label}: shares by {factor}, and differences in points");
        let mut blocks = vec![SectionBlock::Grid { caption, grid: compared_share_grid(&found) }];
        blocks.extend(compared_share_sentences(&found).into_iter().map(SectionBlock::Hint));
        parts.push((Some(format!("The allocator's share: {label}")), blocks));
    }
    Ok(fold_parts("cases", parts))
}

/// A side for each case of a run that was profiled.
fn run_sides(run: &dyn RunData) -> Result<Vec<ProfiledSide>, SectionError> {
    let (record, cases) = (run.record(), run.profiled_cases()?);
    let side = |case: &u32| {
        let profile = run.profile(*case)?;
        let options = measured_tree_options(&record.manifest, &profile);
        let label = record.manifest.plan.case(*case).filter(|_| cases.len() > 1);
        let name = run_display_name(record);
        let name = label.map_or_else(|| name.clone(), |case| format!("{name}: {}", case.label()));
        Ok(ProfiledSide { name, profiles: vec![(profile, options)] })
    };
    cases.iter().map(side).collect()
}

/// The viewer of joined profiles.
pub(crate) fn flame_viewer(picture: &FlameViewerData) -> Result<SectionViewer, serde_json::Error> {
    Ok(SectionViewer {
        name: "flame",
        data_id: "flame-data".into(),
        data: ViewerData::Json(embed_json(picture)?),
        without_script: "The flame graph needs JavaScript. `perflab flame show` prints the table, `perflab flame svg` draws a picture that needs none.",
        still: None,
    })
}

/// One side of a picture: profiles that are repetitions of one another.
#[derive(Debug)]
pub struct ProfiledSide {
    /// What it is called.
    pub name: String,
    /// Each with how its tree is made.
    pub profiles: Vec<(Profile, CallTreeOptions)>,
}

/// Commands stand under their stacks; warm-ups do not count unless there is nothing else.
#[must_use]
pub fn measured_tree_options(manifest: &Manifest, profile: &Profile) -> CallTreeOptions {
    let ProfiledRun { slots, boots, .. } = ProfiledRun::from_manifest(profile, manifest);
    CallTreeOptions { slots, commands: true, shared: None, boots }
}

/// Puts commands that are not on every side into one box, so that their functions are compared.
pub fn share_commands(sides: &mut [ProfiledSide]) -> Option<SharedCommands> {
    let all: Vec<Vec<&Profile>> =
        sides.iter().map(|side| side.profiles.iter().map(|(profile, _)| profile).collect()).collect();
    let shared = SharedCommands::from_sides(&all);
    for (_, options) in sides.iter_mut().flat_map(|side| &mut side.profiles) {
        options.shared.clone_from(&shared);
    }
    shared
}

/// What a tree of sides is made of.
#[must_use]
pub fn side_profiles(sides: &[ProfiledSide]) -> Vec<Vec<(&Profile, CallTreeOptions)>> {
    sides
        .iter()
        .map(|side| side.profiles.iter().map(|(profile, options)| (profile, options.clone())).collect())
        .collect()
}

/// All sides over one tree.
#[must_use]
pub fn draw_sides(sides: &[ProfiledSide], rules: Option<&CategoryRules>) -> FlameViewerData {
    let joined = join_profiles(&side_profiles(sides));
    let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
    flame_viewer_data(&names.join(" and "), &joined, &names, &colour_categories(&joined, rules))
}

/// What colours mean in a tree: by a rule table, or by where functions ran.
#[must_use]
pub fn colour_categories(joined: &JoinedProfiles<'_>, rules: Option<&CategoryRules>) -> FlameCategories {
    rules.map_or_else(|| FlameCategories::by_role(joined), |rules| FlameCategories::by_rules(joined, rules))
}
