//! `perflab kernel list|show|fetch|build`.

use std::path::Path;

use perflab_conduct::kernel::{Kernel, Recipes, Source};
use perflab_present::table::{Cell, Column, Format, Grid};
use serde_json::json;

use crate::arguments::vm::{self, KernelVerb};
use crate::context::Context;
use crate::exit::{Exit, Usage};

/// Does what was asked for.
pub fn run(context: &Context, wanted: &vm::Kernel) -> anyhow::Result<Exit> {
    match &wanted.verb {
        KernelVerb::List => list(context),
        KernelVerb::Show { name } => show(context, name),
        KernelVerb::Fetch { name } => make(context, name, "fetch"),
        KernelVerb::Build { name } => make(context, name, "build"),
    }
}

fn list(context: &Context) -> anyhow::Result<Exit> {
    let mut grid = Grid::new(["kernel", "what", "here", "to get it"].map(Column::left));
    for recipe in Recipes::shipped()?.iter() {
        let here = recipe.kept().map_or_else(|| "no".into(), |kernel| kernel.release);
        let get = format!("perflab kernel {} {}", recipe.source.verb(), recipe.name);
        grid.add(
            [recipe.name.clone(), recipe.title.clone(), here, get].map(|text| Cell::from(text.as_str())),
        );
    }
    context.print(&grid)?;
    Ok(Exit::Fine)
}

fn show(context: &Context, name: &str) -> anyhow::Result<Exit> {
    let recipes = Recipes::shipped()?;
    let kernel = if Path::new(name).is_file() {
        Some(Kernel::open(Path::new(name), None)?)
    } else {
        let recipe = recipes.get(name)?;
        context.say(format!("{}: {}\n{}", recipe.name, recipe.title, recipe.about.trim()));
        let how = match &recipe.source {
            Source::Package(package) => format!("package: {}", package.apt),
            Source::Build(build) => format!("sources: {}; {}", build.apt, build.options.join(" ")),
        };
        context.say(how);
        recipe.kept()
    };
    if context.format == Format::Json {
        let recipe = recipes.get(name).ok();
        return context
            .document(&json!({
                "kernel": name,
                "title": recipe.map(|recipe| &recipe.title),
                "release": kernel.as_ref().map(|kernel| &kernel.release),
                "image": kernel.as_ref().map(|kernel| &kernel.image),
                "modules": kernel.as_ref().and_then(|kernel| kernel.modules.as_ref()),
            }))
            .map(|()| Exit::Fine);
    }
    let Some(kernel) = kernel else {
        context.say("it is not here yet");
        return Ok(Exit::Fine);
    };
    let mut grid = Grid::new(["what", "value"].map(Column::left));
    let modules = kernel.modules.as_ref().map_or_else(|| "none".into(), |path| path.display().to_string());
    let image = kernel.image.display().to_string();
    for row in [["release", &kernel.release], ["image", &image], ["modules", &modules]] {
        grid.add(row.map(Cell::from));
    }
    context.print(&grid)?;
    Ok(Exit::Fine)
}

fn make(context: &Context, name: &str, asked: &str) -> anyhow::Result<Exit> {
    let recipes = Recipes::shipped()?;
    let recipe = recipes.get(name)?;
    let verb = recipe.source.verb();
    if verb != asked {
        let what = format!("the kernel `{name}` is not to be had by `{asked}`");
        return Err(Usage::new(what, format!("run `perflab kernel {verb} {name}`")).into());
    }
    let kernel = recipe.make(&mut |line| context.say(line))?;
    context.answer("image", &kernel.image.display().to_string())?;
    context.say(format!("`perflab vm boot --kernel {name} -- uname -r` boots it"));
    Ok(Exit::Fine)
}
