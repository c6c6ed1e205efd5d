//! Profiles of several runs, or of the levels of a factor within runs, lined up by case.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Args;
use indexmap::{IndexMap, IndexSet};
use perflab_analyze::ComparisonSide;
use perflab_analyze::flame::ProfiledRun;
use perflab_archive::{Archive, RunDir};
use perflab_model::{Case, Manifest, Profile, RunRecord, fact_table};

use crate::failure::{Failure, UsageError};
use crate::selection::{self, varied_factors};

/// One case of a run, with its profile.
#[derive(Debug)]
pub struct CaseProfile {
    /// The run.
    pub record: Arc<RunRecord>,
    /// The case's number in it.
    pub case: u32,
    /// Its stacks.
    pub profile: Profile,
}

impl CaseProfile {
    fn read(record: &Arc<RunRecord>, directory: &RunDir, case: u32) -> Result<Self, Failure> {
        Ok(CaseProfile { record: record.clone(), case, profile: directory.read_profile(case)? })
    }

    /// The case in the plan.
    pub fn planned_case(&self) -> Option<&Case> {
        self.record.manifest.plan.case(self.case)
    }

    /// What of the profile counts.
    pub fn profiled_run(&self) -> ProfiledRun<'_> {
        ProfiledRun::from_manifest(&self.profile, &self.record.manifest)
    }
}

/// One side: profiles that repeat each other.
#[derive(Debug)]
pub struct ProfiledLevel {
    /// The level, or what names the runs.
    pub name: String,
    /// At least one.
    pub profiles: Vec<CaseProfile>,
}

impl ProfiledLevel {
    /// Which kernels it ran on, each once.
    pub fn kernels(&self) -> Vec<String> {
        let of = |one: &CaseProfile| case_kernels(&one.record.manifest, one.planned_case());
        self.profiles.iter().flat_map(of).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// The kernels of the targets that a case ran on, else of the machine that recorded.
fn case_kernels(manifest: &Manifest, case: Option<&Case>) -> Vec<String> {
    let is_own = |levels: &IndexMap<String, String>| {
        case.is_some_and(|case| levels.iter().all(|(factor, level)| case.levels.get(factor) == Some(level)))
    };
    let variant = manifest.variants.iter().filter(|variant| is_own(&variant.levels));
    let variant = variant.max_by_key(|variant| variant.levels.len());
    let targets = variant.map_or(&manifest.targets, |variant| &variant.targets);
    if targets.is_empty() {
        let release = manifest.facts.value(&fact_table::KERNEL_RELEASE);
        return release.map(ToString::to_string).into_iter().collect();
    }
    targets.iter().map(|target| target.kernel.clone()).filter(|kernel| !kernel.is_empty()).collect()
}

/// Cases that are the same but for what is compared.
#[derive(Debug)]
pub struct ProfiledCaseGroup {
    /// The case without what is compared.
    pub name: String,
    /// The first is the baseline.
    pub levels: Vec<ProfiledLevel>,
}

/// Which profiles are looked at, and what of them is compared.
#[derive(Debug, Clone, Args)]
pub struct ProfiledLevelArgs {
    /// The runs, the baseline first; a label that several share is their repetitions
    #[arg(default_value = "@latest", value_name = "RUN")]
    pub runs: Vec<String>,
    /// Compare the levels of this factor, the first being the baseline
    #[arg(long, value_name = "FACTOR")]
    pub by: Option<String>,
    /// The level that others are compared with (default: the factor's first)
    #[arg(long, value_name = "LEVEL", requires = "by")]
    pub baseline: Option<String>,
    /// Only this level is compared with it (repeatable; default: all others)
    #[arg(long, value_name = "LEVEL", requires = "by")]
    pub versus: Vec<String>,
    /// Only this case, by its number, and those that are the same but for the factor
    #[arg(long, value_name = "CASE")]
    pub case: Option<u32>,
}

impl ProfiledLevelArgs {
    /// Runs beside each other; all their cases, or one.
    pub fn of_runs(runs: Vec<String>, case: Option<u32>) -> Self {
        ProfiledLevelArgs { runs, by: None, baseline: None, versus: Vec::new(), case }
    }

    /// Whether a level is among those that are compared.
    fn includes(&self, level: &String, declared: &IndexSet<String>) -> bool {
        let baseline = self.baseline.as_ref().or(declared.first());
        self.versus.is_empty() || self.versus.contains(level) || baseline == Some(level)
    }

    fn check_levels(&self, factor: &str, declared: &IndexSet<String>) -> Result<(), UsageError> {
        let named = self.versus.iter().chain(&self.baseline);
        match named.into_iter().find(|level| !declared.contains(*level)) {
            None => Ok(()),
            Some(unknown) => {
                let known: Vec<&str> = declared.iter().map(String::as_str).collect();
                let hint = format!("its levels are {}", known.join(", "));
                Err(UsageError::new(format!("`{unknown}` is no level of {factor}"), hint))
            }
        }
    }
}

/// Reads the profiles that were named, lined up by case.
///
/// # Errors
/// Runs that are not there, that have no profile, or that do not vary the factor.
pub fn read_profiled_levels(
    archive: &Archive,
    args: &ProfiledLevelArgs,
) -> Result<Vec<ProfiledCaseGroup>, Failure> {
    let sides = selection::select_sides(&args.runs, |name| selection::select_side_of_parts(archive, name))?;
    let mut named = Vec::new();
    for (side, selector) in sides.into_iter().zip(&args.runs) {
        let directories = selection::find_named_runs(archive, std::slice::from_ref(selector))?;
        named.push(leave_out_unprofiled_parts(side, directories)?);
    }
    match &args.by {
        Some(factor) => read_factor_levels(named, factor, args),
        None => read_run_levels(named, args.case),
    }
}

type NamedRunFolders = (ComparisonSide, Vec<RunDir>);

/// Leaves out runs that were cut before they had a profile, where others have one. Parts of one run are profiled as runs of their own.
fn leave_out_unprofiled_parts(
    side: ComparisonSide,
    directories: Vec<RunDir>,
) -> Result<NamedRunFolders, Failure> {
    if let Some(part) = side.runs.iter().find(|run| run.manifest.continues.is_some()) {
        stderr_line!(
            "note: run {} is a part of another one: their profiles count as those of two runs",
            part.manifest.id
        );
    }
    let mut is_kept = Vec::new();
    for (record, directory) in side.runs.iter().zip(&directories) {
        is_kept.push(!record.manifest.status.is_cut() || !directory.profiled_cases()?.is_empty());
    }
    if !is_kept.contains(&true) {
        return Ok((side, directories));
    }
    let pairs = side.runs.into_iter().zip(directories).zip(is_kept).filter(|(_, is_kept)| *is_kept);
    let (runs, directories) = pairs.map(|(pair, _)| pair).unzip();
    Ok((ComparisonSide { name: side.name, runs }, directories))
}

/// The cases of a run that were profiled, or the one that was asked for; the error of reading it where there is none.
fn chosen_cases(directory: &RunDir, case: Option<u32>) -> Result<Vec<u32>, Failure> {
    let profiled = directory.profiled_cases()?;
    let chosen = match case {
        Some(case) => vec![case],
        None if profiled.is_empty() => vec![0],
        None => profiled.clone(),
    };
    if let Some(missing) = chosen.iter().find(|case| !profiled.contains(case)) {
        directory.read_profile(*missing)?;
    }
    Ok(chosen)
}

/// Each name is a level. Cases are lined up by their labels, unless every level has one only.
fn read_run_levels(
    named: Vec<NamedRunFolders>,
    case: Option<u32>,
) -> Result<Vec<ProfiledCaseGroup>, Failure> {
    let mut levels = Vec::new();
    for (side, directories) in named {
        let mut cases: IndexMap<String, Vec<CaseProfile>> = IndexMap::new();
        for (record, directory) in side.runs.into_iter().map(Arc::new).zip(directories) {
            for case in chosen_cases(&directory, case)? {
                let label = record.manifest.plan.case(case).map(Case::label).unwrap_or_default();
                cases.entry(label).or_default().push(CaseProfile::read(&record, &directory, case)?);
            }
        }
        levels.push((side.name, cases));
    }
    if levels.len() > 1 && levels.iter().all(|(_, cases)| cases.len() == 1) {
        let labels: BTreeSet<&String> = levels.iter().flat_map(|(_, cases)| cases.keys()).collect();
        let name = labels.into_iter().cloned().collect::<Vec<_>>().join(" | ");
        let only = |(name, cases): (String, IndexMap<String, Vec<CaseProfile>>)| ProfiledLevel {
            name,
            profiles: cases.into_values().flatten().collect(),
        };
        return Ok(vec![ProfiledCaseGroup { name, levels: levels.into_iter().map(only).collect() }]);
    }
    let mut groups: IndexMap<String, Vec<ProfiledLevel>> = IndexMap::new();
    for (name, cases) in levels {
        for (label, profiles) in cases {
            groups.entry(label).or_default().push(ProfiledLevel { name: name.clone(), profiles });
        }
    }
    Ok(groups.into_iter().map(|(name, levels)| ProfiledCaseGroup { name, levels }).collect())
}

/// The levels of a factor over all runs together, in the order of the study.
fn read_factor_levels(
    named: Vec<NamedRunFolders>,
    factor: &str,
    args: &ProfiledLevelArgs,
) -> Result<Vec<ProfiledCaseGroup>, Failure> {
    let label = |case: &Case| case.label_without(factor);
    let sides: Vec<&ComparisonSide> = named.iter().map(|(side, _)| side).collect();
    check_factor(&sides, factor)?;
    let declared: IndexSet<String> = sides
        .iter()
        .flat_map(|side| &side.runs)
        .flat_map(|run| run.manifest.plan.factors.get(factor))
        .flatten()
        .cloned()
        .collect();
    args.check_levels(factor, &declared)?;
    let mut groups: IndexMap<String, IndexMap<String, Vec<CaseProfile>>> = IndexMap::new();
    let mut read: BTreeSet<String> = BTreeSet::new();
    let plans = || sides.iter().flat_map(|side| &side.runs).map(|run| &run.manifest.plan);
    if let Some(number) = args.case.filter(|number| plans().all(|plan| plan.case(*number).is_none())) {
        let hint = "`perflab show RUN` lists the cases";
        return Err(UsageError::new(format!("there is no case {number}"), hint).into());
    }
    for (side, directories) in named {
        for (record, directory) in side.runs.into_iter().map(Arc::new).zip(directories) {
            if !read.insert(record.manifest.id.clone()) {
                continue;
            }
            let plan = &record.manifest.plan;
            let chosen = args.case.and_then(|case| plan.case(case)).map(label);
            for number in chosen_cases(&directory, None)? {
                let Some(case) = plan.case(number) else { continue };
                let (Some(level), name) = (case.levels.get(factor), label(case)) else { continue };
                if chosen.as_ref().is_some_and(|chosen| *chosen != name) || !args.includes(level, &declared) {
                    continue;
                }
                let levels = groups.entry(name).or_default();
                let profile = CaseProfile::read(&record, &directory, number)?;
                levels.entry(level.clone()).or_default().push(profile);
            }
        }
    }
    let ordered = |(name, mut levels): (String, IndexMap<String, Vec<CaseProfile>>)| {
        levels.sort_by_cached_key(|level, _| {
            (Some(level) != args.baseline.as_ref(), declared.get_index_of(level))
        });
        let level = |(name, profiles)| ProfiledLevel { name, profiles };
        ProfiledCaseGroup { name, levels: levels.into_iter().map(level).collect() }
    };
    let groups: Vec<ProfiledCaseGroup> = groups.into_iter().map(ordered).collect();
    if let Some(alone) = groups.iter().find(|group| group.levels.len() < 2) {
        let only = alone.levels.first().map(|level| level.name.as_str()).unwrap_or_default();
        let message = format!("only {factor}={only} of {} was profiled", alone.name);
        return Err(UsageError::new(message, "record the other levels with [profile], too").into());
    }
    if groups.is_empty() {
        let message = format!("no case that varies {factor} was profiled");
        return Err(UsageError::new(message, "name the case by its number: see `perflab show RUN`").into());
    }
    Ok(groups)
}

fn check_factor(sides: &[&ComparisonSide], factor: &str) -> Result<(), UsageError> {
    let known: BTreeSet<String> = sides.iter().flat_map(|side| varied_factors(side)).collect();
    if known.contains(factor) {
        return Ok(());
    }
    let known: Vec<String> = known.into_iter().collect();
    let hint = match known.is_empty() {
        true => "no factor has several levels here: name two runs without --by".into(),
        false => format!("the factors with several levels are {}", known.join(", ")),
    };
    Err(UsageError::new(format!("`{factor}` is no factor with several levels here"), hint))
}
