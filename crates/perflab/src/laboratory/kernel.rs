//! Kernels to boot: `perflab kernel list`, `show`, `fetch`, `build`.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use perflab_guest::kernel_recipe::SourceOrigin;
use perflab_guest::{
    KernelBuildRecord, KernelError, KernelImage, KernelProgress, KernelRecipes, KernelRequest, KernelSource,
    SourceIdentity, list_built_kernels,
};
use perflab_model::Nanos;
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use serde_json::json;

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::verb::Verb;

/// Does what was asked for.
pub fn run_kernel_verb(context: &App, args: &KernelArgs) -> Result<Exit, Failure> {
    match &args.verb {
        KernelVerb::List => list_kernels(context),
        KernelVerb::Show { name } => show_kernel(context, name),
        KernelVerb::Fetch { name } => make_kernel(context, name, "fetch"),
        KernelVerb::Build { name } => make_kernel(context, name, "build"),
        KernelVerb::Diff { a, b } => diff_kernels(context, a, b),
    }
}

fn list_kernels(context: &App) -> Result<Exit, Failure> {
    let mut grid = Grid::new(["kernel", "what", "here", "to get it, or where it is"].map(GridColumn::left));
    for recipe in KernelRecipes::shipped()?.iter() {
        let (name, verb) = (&recipe.name, recipe.source.verb());
        let (here, get) = match KernelRequest::parse(name)?.cached_image(&mut |_| ()) {
            Ok(Some(kernel)) => (kernel.release, format!("perflab kernel {verb} {name}")),
            Ok(None) => ("no".into(), format!("perflab kernel {verb} {name}")),
            // It builds what it is given.
            Err(_) => ("-".into(), format!("perflab kernel {verb} {name}:TREE[@REVISION]")),
        };
        grid.add_row([name, &recipe.title, &here, &get].map(|text| GridCell::from(text.as_str())));
    }
    for kernel in list_built_kernels() {
        let what = kernel.build.as_ref().map_or_else(String::new, describe_build);
        let image = kernel.image.display().to_string();
        grid.add_row([kernel.name.as_str(), &what, &kernel.release, &image].map(GridCell::from));
    }
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

/// What a kernel was built from.
fn describe_build(build: &KernelBuildRecord) -> String {
    let SourceIdentity { place, commit, subject, changed, .. } = &build.sources;
    let commit = commit.as_deref().map(|commit| format!(" at {}", commit.get(..12).unwrap_or(commit)));
    let subject = subject.as_deref().map(|subject| format!(" ({subject})"));
    let changed = if *changed { ", with changes" } else { "" };
    format!("built from {place}{}{}{changed}", commit.unwrap_or_default(), subject.unwrap_or_default())
}

fn show_kernel(context: &App, name: &str) -> Result<Exit, Failure> {
    let (recipe, kernel) = if Path::new(name).is_file() && !name.ends_with(".toml") {
        (None, Some(KernelImage::open(Path::new(name), None)?))
    } else {
        let request = KernelRequest::parse(name)?;
        let kernel = match request.cached_image(&mut |_| ()) {
            // Without a tree there is only the recipe to show.
            Err(KernelError::NeedsTree { .. }) => None,
            found => found?,
        };
        (Some(request.recipe), kernel)
    };
    if let Some(recipe) = &recipe {
        context.note(format!("{}: {}\n{}", recipe.name, recipe.title, recipe.about.trim()));
        context.note(describe_source(&recipe.source));
    }
    if context.format == OutputFormat::Json {
        return context
            .print_json(&json!({
                "kernel": name,
                "title": recipe.as_ref().map(|recipe| &recipe.title),
                "release": kernel.as_ref().map(|kernel| &kernel.release),
                "image": kernel.as_ref().map(|kernel| &kernel.image),
                "modules": kernel.as_ref().and_then(|kernel| kernel.modules.as_ref()),
                "build": kernel.as_ref().and_then(|kernel| kernel.build.as_ref()),
            }))
            .map(|()| Exit::Fine);
    }
    let mut grid = Grid::new(["what", "value"].map(GridColumn::left));
    let Some(kernel) = kernel else {
        let verb = recipe.map_or("build", |recipe| recipe.source.verb());
        let get = format!("perflab kernel {verb} {name}");
        for row in [["release", "not here yet"], ["to get it", &get]] {
            grid.add_row(row.map(GridCell::from));
        }
        context.print_grid(&grid)?;
        return Ok(Exit::Fine);
    };
    let modules = kernel.modules.as_ref().map_or_else(|| "none".into(), |path| path.display().to_string());
    let mut rows = vec![
        ("release", kernel.release.clone()),
        ("image", kernel.image.display().to_string()),
        ("modules", modules),
    ];
    if let Some(build) = &kernel.build {
        let sources = &build.sources;
        let changed = if sources.changed { ", changed" } else { "" };
        let commit = sources.commit.as_ref().map(|commit| format!(" at {commit}{changed}"));
        rows.push(("sources", format!("{}{}", sources.place, commit.unwrap_or_default())));
        rows.extend(sources.subject.clone().map(|subject| ("commit", subject)));
        rows.extend((!build.patches.is_empty()).then(|| ("patches", build.patches.join(", "))));
        rows.push(("compiler", build.compiler.clone()));
        rows.extend(build.make.iter().map(|(name, value)| ("make", format!("{name}={value}"))));
        rows.extend(build.flags.iter().map(|(file, flags)| ("flags", format!("{file}: {flags}"))));
        rows.push(("compiled", format!("{} in {}", format_args!("{} files", build.compiled), build.took)));
    }
    for (what, value) in &rows {
        grid.add_row([GridCell::from(*what), GridCell::from(value.as_str())]);
    }
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

fn describe_source(source: &KernelSource) -> String {
    match source {
        KernelSource::Package(package) => format!("package: {}", package.apt),
        KernelSource::Build(build) => {
            let place = match build.origin() {
                None => "whatever tree it is given".into(),
                Some(SourceOrigin::Package(package)) => package,
                Some(SourceOrigin::Archive { place, .. }) => place,
                Some(SourceOrigin::Folder(path)) => path.display().to_string(),
                Some(SourceOrigin::Git { repository, revision }) => {
                    format!("{} at {revision}", repository.display())
                }
            };
            format!(
                "sources: {place}; {} and {}; {}",
                build.base,
                build.fragments.join(", "),
                build.options.join(" ")
            )
        }
    }
}

fn make_kernel(context: &App, name: &str, asked: &str) -> Result<Exit, Failure> {
    let request = KernelRequest::parse(name)?;
    let verb = request.recipe.source.verb();
    if verb != asked {
        let what = format!("`{asked}` cannot get the kernel `{name}`");
        return Err(UsageError::new(what, format!("run `perflab kernel {verb} {name}`")).into());
    }
    let all = request.expand()?;
    if all.is_empty() {
        return Err(UsageError::new(
            format!("`{name}` names no revision"),
            "write OLD..NEW, the older one first",
        )
        .into());
    }
    for (number, one) in all.iter().enumerate() {
        if all.len() > 1 {
            context.note(format!("{} of {}: {}", number + 1, all.len(), one.text));
        }
        let kernel = get_kernel(context, one)?;
        context.print_value("image", &kernel.image.display().to_string())?;
    }
    let last = all.last().map_or(name, |one| one.text.as_str());
    context.note(format!("`perflab vm boot --kernel {last} -- uname -r` boots it"));
    Ok(Exit::Fine)
}

/// Fetches or builds a kernel, with a bar and the time left while it compiles.
pub fn get_kernel(context: &App, request: &KernelRequest) -> Result<KernelImage, KernelError> {
    let shown = std::io::stderr().is_terminal() && !context.quiet;
    let target = if shown { ProgressDrawTarget::stderr_with_hz(4) } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(None, target);
    let mut told = Duration::ZERO;
    let made = request.make_image(&mut |progress| match progress {
        KernelProgress::Step(text) => bar.suspend(|| context.note_line(text)),
        KernelProgress::Compiled { done, expected, elapsed } => {
            if let Some(expected) = expected.filter(|expected| *expected >= done) {
                bar.set_length(expected.into());
                bar.set_style(bar_style("{bar:32.cyan/dim} {pos}/{len} files  {elapsed} so far, {eta} left"));
            } else {
                bar.set_style(bar_style("{spinner:.dim} {pos} files  {elapsed} so far"));
            }
            bar.set_position(done.into());
            // Where there is no bar to look at, a line a minute.
            if !shown && elapsed - told >= Duration::from_secs(60) {
                told = elapsed;
                let of = expected.map_or_else(String::new, |expected| format!(" of about {expected}"));
                context.note(format!("{done}{of} files compiled in {}", Nanos::from(elapsed)));
            }
        }
        _ => (),
    });
    bar.finish_and_clear();
    made
}

fn bar_style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("━━─")
}

/// Shows what was put into two kernels differently.
fn diff_kernels(context: &App, a: &str, b: &str) -> Result<Exit, Failure> {
    let kernels = [perflab_guest::find_kernel(a, None)?, perflab_guest::find_kernel(b, None)?];
    let mut grid = Grid::new(["what", a, b].map(GridColumn::left));
    let row = |what: &str, texts: [String; 2]| {
        let [a, b] = texts.each_ref().map(|text| GridCell::from(text.as_str()));
        (texts[0] != texts[1]).then(|| [GridCell::from(what), a, b])
    };
    let of_build = |text: &dyn Fn(&KernelBuildRecord) -> String| {
        kernels.each_ref().map(|kernel| kernel.build.as_ref().map(text).unwrap_or_default())
    };
    let rows = [
        row("release", kernels.each_ref().map(|kernel| kernel.release.clone())),
        row("sources", of_build(&|build| build.sources.place.clone())),
        row("commit", of_build(&|build| build.sources.commit.clone().unwrap_or_default())),
        row("content", of_build(&|build| build.sources.id.clone())),
        row("patches", of_build(&|build| build.patches.join(", "))),
        row("compiler", of_build(&|build| build.compiler.clone())),
        row("make", of_build(&|build| format_pairs(&build.make))),
        row("flags", of_build(&|build| format_pairs(&build.flags))),
        row("layout", of_build(&|build| build.layout.to_string())),
    ];
    for row in rows.into_iter().flatten() {
        grid.add_row(row);
    }
    let configs = kernels.each_ref().map(perflab_guest::read_kernel_config_file);
    match configs {
        [Some(a), Some(b)] => {
            for (option, a, b) in perflab_guest::compare_configs(&a, &b) {
                grid.add_row([option, a, b].each_ref().map(|text| GridCell::from(text.as_str())));
            }
        }
        _ => context.note("the configuration of one is not here, so that options are not compared"),
    }
    if grid.is_empty() {
        context.note(format!("`{a}` and `{b}` are built from the same things"));
    }
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

fn format_pairs(pairs: &BTreeMap<String, String>) -> String {
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// Get kernels to boot: fetched as packages, or built
#[derive(Debug, Args)]
pub struct KernelArgs {
    #[command(subcommand)]
    pub verb: KernelVerb,
}

impl Verb for KernelArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        run_kernel_verb(app, self)
    }
}

/// The verbs of kernels.
#[derive(Debug, Subcommand)]
pub enum KernelVerb {
    /// List the kernels that perflab can get, and which are here
    List,
    /// Show one kernel: what it is good for, where it is stored
    Show {
        /// The name of the kernel, or the path of an image
        name: String,
    },
    /// Fetch a distribution's kernel: its package is unpacked into the cache, never installed
    Fetch {
        /// The name of the kernel
        name: String,
    },
    /// Build a kernel: of a recipe, of a revision of your own tree, of a range
    ///
    /// RECIPE is one of `perflab kernel list` or the path of a file, MINE.toml. RECIPE:TREE builds your own tree as it is, changes that
    /// were not committed too; RECIPE:TREE@REVISION a commit, tag or branch of it; RECIPE:TREE@OLD..NEW every commit after OLD up to NEW.
    /// Your tree is only read. What was built once is not built again, and another revision compiles only what differs.
    Build {
        /// `RECIPE[:TREE][@REVISION][#LAYOUT]`
        name: String,
    },
    /// Show in what two kernels differ: sources, compiler, flags, every option of their configurations
    Diff {
        /// The name of the one kernel
        a: String,
        /// The name of the other
        b: String,
    },
}
