//! Kernels to boot: `perflab kernel list`, `show`, `fetch`, `build`.

use std::path::Path;

use clap::{Args, Subcommand};
use perflab_guest::KernelImage;
use perflab_guest::{KernelRecipes, KernelSource};
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
    }
}

fn list_kernels(context: &App) -> Result<Exit, Failure> {
    let mut grid = Grid::new(["kernel", "what", "here", "to get it"].map(GridColumn::left));
    for recipe in KernelRecipes::shipped()?.iter() {
        let here = recipe.cached_image().map_or_else(|| "no".into(), |kernel| kernel.release);
        let get = format!("perflab kernel {} {}", recipe.source.verb(), recipe.name);
        grid.add_row(
            [recipe.name.clone(), recipe.title.clone(), here, get].map(|text| GridCell::from(text.as_str())),
        );
    }
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

fn show_kernel(context: &App, name: &str) -> Result<Exit, Failure> {
    let recipes = KernelRecipes::shipped()?;
    let kernel = if Path::new(name).is_file() {
        Some(KernelImage::open(Path::new(name), None)?)
    } else {
        let recipe = recipes.get(name)?;
        context.note(format!("{}: {}\n{}", recipe.name, recipe.title, recipe.about.trim()));
        let how = match &recipe.source {
            KernelSource::Package(package) => format!("package: {}", package.apt),
            KernelSource::Build(build) => format!("sources: {}; {}", build.apt, build.options.join(" ")),
        };
        context.note(how);
        recipe.cached_image()
    };
    if context.format == OutputFormat::Json {
        let recipe = recipes.get(name).ok();
        return context
            .print_json(&json!({
                "kernel": name,
                "title": recipe.map(|recipe| &recipe.title),
                "release": kernel.as_ref().map(|kernel| &kernel.release),
                "image": kernel.as_ref().map(|kernel| &kernel.image),
                "modules": kernel.as_ref().and_then(|kernel| kernel.modules.as_ref()),
            }))
            .map(|()| Exit::Fine);
    }
    let mut grid = Grid::new(["what", "value"].map(GridColumn::left));
    let Some(kernel) = kernel else {
        let verb = recipes.get(name)?.source.verb();
        let get = format!("perflab kernel {verb} {name}");
        for row in [["release", "not here yet"], ["to get it", &get]] {
            grid.add_row(row.map(GridCell::from));
        }
        context.print_grid(&grid)?;
        return Ok(Exit::Fine);
    };
    let modules = kernel.modules.as_ref().map_or_else(|| "none".into(), |path| path.display().to_string());
    let image = kernel.image.display().to_string();
    for row in [["release", &kernel.release], ["image", &image], ["modules", &modules]] {
        grid.add_row(row.map(GridCell::from));
    }
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

fn make_kernel(context: &App, name: &str, asked: &str) -> Result<Exit, Failure> {
    let recipes = KernelRecipes::shipped()?;
    let recipe = recipes.get(name)?;
    let verb = recipe.source.verb();
    if verb != asked {
        let what = format!("`{asked}` cannot get the kernel `{name}`");
        return Err(UsageError::new(what, format!("run `perflab kernel {verb} {name}`")).into());
    }
    let kernel = recipe.make_image(&mut |line| context.note(line))?;
    context.print_value("image", &kernel.image.display().to_string())?;
    context.note(format!("`perflab vm boot --kernel {name} -- uname -r` boots it"));
    Ok(Exit::Fine)
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
    /// Build a kernel from its recipe: takes minutes on all CPUs
    Build {
        /// The name of the kernel
        name: String,
    },
}
