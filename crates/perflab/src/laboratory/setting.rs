//! Presets of settings: `perflab setting list`, `show`.

use std::path::Path;

use clap::{Args, Subcommand};
use perflab_model::{PresetLevel, PresetName, SettingPreset};
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use perflab_settings::{PresetFileState, PresetList, SettingSite, find_preset_refusal, read_preset};
use serde_json::json;

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::verb::Verb;

/// What a preset is on this machine.
pub struct PresetStanding {
    /// Each value that its files hold, as levels, joined; none where it is not here.
    pub in_force: Option<String>,
    /// Its files.
    pub files: Vec<PresetFileState>,
    /// Why it cannot be set here.
    pub obstacle: Option<String>,
}

impl PresetStanding {
    /// Reads a preset, or a part of it, on this machine.
    pub fn read(context: &App, name: &str, preset: &SettingPreset) -> Self {
        let part = PresetName::new(name).part;
        let chosen = |part: &str| match &preset.part {
            Some(spec) => spec.words.get(part).cloned().unwrap_or_else(|| part.to_owned()),
            None => part.to_owned(),
        };
        let default = preset.part.as_ref().and_then(|spec| spec.default.as_deref());
        // Where the study's own disk is meant, or a part has to be named, all of them are shown.
        let part = part.or(default).filter(|part| !matches!(*part, "disk" | "under")).map(chosen);
        match read_preset(name, preset, part.as_deref(), &context.root) {
            Ok(files) => {
                let obstacle = describe_obstacle(context, name, preset, &files);
                PresetStanding { in_force: join_levels(&files), files, obstacle }
            }
            Err(refusal) => {
                PresetStanding { in_force: None, files: Vec::new(), obstacle: Some(refusal.to_string()) }
            }
        }
    }

    /// Reads a preset that ships; none where there is none of that name.
    pub fn of_name(context: &App, name: &str) -> Option<Self> {
        Some(PresetStanding::read(context, name, PresetList::shipped().get(name).ok()?))
    }

    /// One text: what is in force, or why it cannot be set.
    fn describe(&self) -> String {
        match (&self.in_force, &self.obstacle) {
            (Some(now), None) => now.clone(),
            (Some(now), Some(obstacle)) => format!("{now}; {obstacle}"),
            (None, obstacle) => obstacle.clone().unwrap_or_default(),
        }
    }
}

/// Levels, each once; many different ones are not all of interest.
fn join_levels(files: &[PresetFileState]) -> Option<String> {
    let mut unique: Vec<&str> = Vec::new();
    for level in files.iter().filter_map(|file| file.level.as_deref()) {
        if !unique.contains(&level) {
            unique.push(level);
        }
    }
    let shown: Vec<&str> = unique.iter().copied().take(3).collect();
    let more = if unique.len() > shown.len() { ", …" } else { "" };
    (!unique.is_empty()).then(|| format!("{}{more}", shown.join(", ")))
}

/// Why the level that is in force could not be set again.
fn describe_obstacle(
    context: &App,
    name: &str,
    preset: &SettingPreset,
    files: &[PresetFileState],
) -> Option<String> {
    if preset.trigger {
        return None;
    }
    let site = SettingSite { root: &context.root, disk: None };
    let level = files.first()?.level.as_deref()?;
    let level = PresetLevel::new(name, preset, level).ok()?;
    find_preset_refusal(&level, site).map(|refusal| refusal.to_string())
}

/// The presets that ship, and that in a file of the user's where `name` is its path; with the name of that preset.
pub fn find_presets(name: &str) -> Result<(PresetList, String), Failure> {
    let mut presets = PresetList::shipped().clone();
    if !name.ends_with(".toml") {
        return Ok((presets, name.to_owned()));
    }
    let own = presets.add_file(Path::new(name))?;
    Ok((presets, own))
}

fn list_settings(context: &App) -> Result<Exit, Failure> {
    let columns = ["setting", "what it sets", "levels", "tried on", "here"];
    let mut grid = Grid::new(columns.map(GridColumn::left));
    for (name, preset) in PresetList::shipped().iter() {
        let standing = PresetStanding::read(context, name, preset);
        let (levels, here) = (preset.describe_levels(), standing.describe());
        grid.add_row([name, &preset.title, &levels, &preset.tried, &here].map(GridCell::from));
    }
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

fn show_setting(context: &App, name: &str) -> Result<Exit, Failure> {
    let (presets, name) = find_presets(name)?;
    let preset = presets.get(&name).map_err(|refusal| UsageError::new(refusal.what, refusal.hint))?;
    preset.check_part(&name).map_err(|error| UsageError::new(error.message, error.hint))?;
    let standing = PresetStanding::read(context, &name, preset);
    context.note(format!("{name}: {}", preset.title));
    if !preset.about.is_empty() {
        context.note(preset.about.trim());
    }
    let mut facts = vec![("levels", preset.describe_levels())];
    if let Some(part) = &preset.part {
        let words: Vec<&str> = part.words.keys().map(String::as_str).collect();
        let default = part.default.as_ref().map(|part| format!("; `{part}` where none is named"));
        let words = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
        let bare = PresetName::new(&name).preset;
        facts.push(("part", format!("{bare}:PART is {}{words}{}", part.about, default.unwrap_or_default())));
    }
    facts.extend(preset.file.first().map(|file| ("value", file.tolerance.to_string())));
    let needs = preset.needs.option.iter().map(|option| format!("CONFIG_{option}"));
    let needs: Vec<String> = needs.chain(preset.needs.hardware.clone()).collect();
    facts.extend((!needs.is_empty()).then(|| ("needs", needs.join(", "))));
    facts.extend((!preset.conflicts.is_empty()).then(|| ("not with", preset.conflicts.join(", "))));
    facts.extend(
        preset.quiet.as_ref().map(|quiet| ("quiet", format!("{}: otherwise {}", quiet.level, quiet.why))),
    );
    facts.push(("tried on", preset.tried.clone()));
    facts.extend(standing.in_force.clone().map(|now| ("in force", now)));
    facts.extend(standing.obstacle.clone().map(|obstacle| ("cannot be set here", obstacle)));
    let mut files = Grid::new(["file", "holds", "offers"].map(GridColumn::left));
    for file in &standing.files {
        let (path, held) = (file.path.display().to_string(), file.value.clone().unwrap_or_default());
        files.add_row([path.as_str(), &held, &file.offered.join(" ")].map(GridCell::from));
    }
    if context.format == OutputFormat::Json {
        let facts: serde_json::Map<String, serde_json::Value> =
            facts.into_iter().map(|(key, text)| (key.into(), text.into())).collect();
        context.print_json(&json!({
            "setting": name,
            "title": preset.title,
            "about": preset.about.trim(),
            "facts": facts,
            "files": files.records(),
        }))?;
        return Ok(Exit::Fine);
    }
    let mut grid = Grid::new(["what", "value"].map(GridColumn::left));
    for (what, text) in &facts {
        grid.add_row([GridCell::from(*what), GridCell::from(text.as_str())]);
    }
    context.print_grid(&grid)?;
    if !standing.files.is_empty() {
        context.print_grid(&files)?;
    }
    Ok(Exit::Fine)
}

/// Look at settings: presets, their levels, what is in force here
#[derive(Debug, Args)]
pub struct SettingArgs {
    #[command(subcommand)]
    verb: SettingVerb,
}

impl Verb for SettingArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        match &self.verb {
            SettingVerb::List => list_settings(app),
            SettingVerb::Show { name } => show_setting(app, name),
        }
    }
}

/// What there is to ask of settings.
#[derive(Debug, Subcommand)]
enum SettingVerb {
    /// List the presets, what is in force, and why one cannot be set here
    List,
    /// Show a preset: its files here, what they hold and offer
    Show {
        /// Its name, with a part where one is meant (io-scheduler:vda), or a TOML file
        name: String,
    },
}
