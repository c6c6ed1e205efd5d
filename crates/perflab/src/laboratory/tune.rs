//! `perflab tune`: presets set until they are put back, at the levels at which a machine is quiet.

use std::path::Path;

use clap::Args;
use perflab_model::{PresetLevel, Setting, SettingPreset, describe_error_chain};
use perflab_observe::own_directories;
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use perflab_settings::{AppliedSettings, PresetList, SettingChange, UndoJournal, UndoneSettings};

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::laboratory::setting::{PresetStanding, find_presets};
use crate::measure::run::undo_leftovers;
use crate::verb::Verb;

/// A preset at the level that it is to be tuned to.
pub struct TunedPreset {
    /// The preset, with its part.
    pub name: String,
    /// The level.
    pub level: String,
    /// What another level does, where the preset says so.
    pub why: String,
    /// What is in force, and what is in the way.
    pub standing: PresetStanding,
    setting: PresetLevel,
}

impl TunedPreset {
    /// A preset at its quiet level; none where it has none.
    fn at_quiet_level(context: &App, name: &str, preset: &SettingPreset) -> Option<Self> {
        let quiet = preset.quiet.as_ref()?;
        let setting = PresetLevel::new(name, preset, &quiet.level).ok()?;
        let standing = PresetStanding::read(context, name, preset);
        let (name, level, why) = (name.to_owned(), quiet.level.clone(), quiet.why.clone());
        Some(TunedPreset { name, level, why, standing, setting })
    }

    /// As `NAME` or `NAME=LEVEL`.
    fn parse(context: &App, text: &str) -> Result<Self, Failure> {
        let (name, level) = match text.split_once('=') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let (presets, name) = find_presets(name)?;
        let preset = presets.get(&name).map_err(|refusal| UsageError::new(refusal.what, refusal.hint))?;
        let quiet = preset.quiet.as_ref();
        let Some(level) = level.map(str::to_owned).or_else(|| Some(quiet?.level.clone())) else {
            let hint = format!("name a level: {name}={}", preset.describe_levels());
            return Err(UsageError::new(format!("`{name}` is quiet at no level of its own"), hint).into());
        };
        if preset.trigger || preset.mechanism.is_some_and(|mechanism| !mechanism.lasts()) {
            let hint = "make it part of a study, under [settings] or as a factor";
            return Err(UsageError::new(format!("`{name}` lasts no longer than perflab runs"), hint).into());
        }
        let setting = PresetLevel::new(&name, preset, &level)
            .map_err(|error| UsageError::new(error.message, error.hint))?;
        let why =
            quiet.filter(|quiet| quiet.level == level).map_or_else(String::new, |quiet| quiet.why.clone());
        let standing = PresetStanding::read(context, &name, preset);
        Ok(TunedPreset { name, level, why, standing, setting })
    }

    /// Whether it is at the level already, or at one that is as good.
    fn is_quiet(&self, preset: Option<&SettingPreset>) -> bool {
        let as_good = |level: &str| {
            let quiet = preset.and_then(|preset| preset.quiet.as_ref());
            level == self.level || quiet.is_some_and(|quiet| quiet.or.iter().any(|other| other == level))
        };
        self.standing.in_force.as_deref().is_some_and(as_good)
    }
}

/// Presets of this machine that are not at their quiet level, and can be set.
pub fn find_noisy_presets(context: &App) -> Vec<TunedPreset> {
    let all = PresetList::shipped().iter();
    let quiet = all.filter_map(|(name, preset)| {
        let tuned = TunedPreset::at_quiet_level(context, name, preset)?;
        (!tuned.is_quiet(Some(preset))).then_some(tuned)
    });
    quiet.filter(|tuned| tuned.standing.in_force.is_some()).collect()
}

fn journal_of(context: &App) -> Result<UndoJournal, Failure> {
    let boot = perflab_observe::read_boot_id(&context.root);
    Ok(UndoJournal::open_kept(&own_directories::state_directory(), &boot)?)
}

/// What is tuned, as it is to be put back: for `undo`, which leaves it alone.
pub fn count_tuned(state: &Path, context: &App) -> usize {
    let boot = perflab_observe::read_boot_id(&context.root);
    UndoJournal::open_kept(state, &boot).map_or(0, |journal| journal.pending().count())
}

/// `perflab tune`
pub fn tune_machine(context: &App, args: &TuneArgs) -> Result<Exit, Failure> {
    if args.undo || args.apply {
        // What a killed run left is over what is tuned: put back later, it would come again.
        undo_leftovers(context);
    }
    if args.undo {
        return put_back(context);
    }
    let chosen: Vec<TunedPreset> = if args.names.is_empty() {
        find_noisy_presets(context)
    } else {
        args.names.iter().map(|name| TunedPreset::parse(context, name)).collect::<Result<_, _>>()?
    };
    if !args.apply {
        if !chosen.is_empty() || context.format != OutputFormat::Table {
            print_tuned(context, &chosen, &[])?;
        }
        let tuned = journal_of(context)?.pending().count();
        if tuned > 0 {
            context.note(format!("{tuned} files are tuned; `perflab tune --undo` puts them back"));
        }
        context.note(match chosen.is_empty() {
            true => "no setting that perflab knows makes this machine noisy; `perflab setting list` shows them all",
            false => "nothing was changed: add --apply to set these",
        });
        return Ok(Exit::Fine);
    }
    let mut applied = AppliedSettings::resume(journal_of(context)?).with_root(context.root.clone());
    let settings: Vec<Setting> =
        chosen.iter().map(|tuned| Setting::Preset(Box::new(tuned.setting.clone()))).collect();
    refuse_held(&applied.find_held_by_runs(&settings), "a run has set")?;
    let mark = applied.journal().next_number();
    let mut changes = Vec::new();
    for (setting, tuned) in settings.iter().zip(&chosen) {
        match applied.apply(std::slice::from_ref(setting)) {
            Ok(changed) => changes.extend(changed),
            Err(error) => {
                // All of them or none.
                let undone = applied.undo_since(mark);
                applied.keep()?;
                undone?;
                return Err(Failure::from(error).context(format!("{}={}", tuned.name, tuned.level)));
            }
        }
    }
    applied.keep()?;
    print_tuned(context, &chosen, &changes)?;
    context.note(if changes.is_empty() {
        "all of it was so already: nothing was changed, and nothing is to be undone"
    } else {
        "in force until `perflab tune --undo`, or the next boot"
    });
    Ok(Exit::Fine)
}

fn print_tuned(context: &App, chosen: &[TunedPreset], changes: &[SettingChange]) -> Result<(), Failure> {
    let columns = ["setting", "was", "level", "now", "why"];
    let mut grid = Grid::new(columns.map(GridColumn::left));
    for tuned in chosen {
        let change = changes.iter().find(|change| change.setting == tuned.name);
        let was = tuned.standing.in_force.clone().unwrap_or_default();
        let now = PresetStanding::of_name(context, &tuned.name).and_then(|standing| standing.in_force);
        let now = now.unwrap_or_default();
        let why = match &tuned.standing.obstacle {
            Some(obstacle) if change.is_none() => obstacle.clone(),
            _ => tuned.why.clone(),
        };
        grid.add_row([tuned.name.as_str(), &was, &tuned.level, &now, &why].map(GridCell::from));
    }
    context.print_grid(&grid)
}

fn put_back(context: &App) -> Result<Exit, Failure> {
    let applied = AppliedSettings::resume(journal_of(context)?).with_root(context.root.clone());
    refuse_held(&applied.find_pending_held_by_runs(), "a run has set")?;
    let UndoneSettings { undone, left, failed } = applied.undo_all();
    let mut grid = Grid::new(["put back"].map(GridColumn::left));
    for setting in &undone {
        grid.add_row([setting.as_str()].map(GridCell::from));
    }
    context.print_grid(&grid)?;
    if undone.is_empty() && failed.is_empty() && left.is_empty() {
        context.note("nothing is tuned");
    }
    for setting in &left {
        stderr_line!("warning: left as somebody else has set it: before tuning it was {setting}");
    }
    failed.iter().for_each(|error| stderr_line!("warning: not put back: {}", describe_error_chain(error)));
    Ok(if failed.is_empty() { Exit::Fine } else { Exit::SETTINGS_LEFT })
}

/// A run puts back at its end what was there before it: what is changed meanwhile would come again.
fn refuse_held(held: &[std::path::PathBuf], what: &str) -> Result<(), Failure> {
    match held.first() {
        None => Ok(()),
        Some(path) => {
            let hint = "wait until it has ended; `perflab undo` ends what killed runs left";
            Err(UsageError::new(format!("{what} {}", path.display()), hint).into())
        }
    }
}

/// Set the levels at which this machine is quiet, and put them back
#[derive(Debug, Args)]
pub struct TuneArgs {
    /// Presets, NAME or NAME=LEVEL (default: all that are not at their quiet level)
    #[arg(value_name = "NAME[=LEVEL]")]
    names: Vec<String>,
    /// Set them, until `perflab tune --undo` or the next boot
    #[arg(long)]
    apply: bool,
    /// Put back everything that `--apply` has set
    #[arg(long, conflicts_with_all = ["apply", "names"])]
    undo: bool,
}

impl Verb for TuneArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        tune_machine(app, self)
    }
}
