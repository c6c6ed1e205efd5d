//! `perflab flame import`

use perflab_archive::import::import_profile;
use perflab_present::flame;
use perflab_stacks::{Format, Options};

use crate::arguments::flame::Import;
use crate::context::Context;
use crate::exit::{Exit, Usage};

/// Makes a run of a profile, and says what became of every sample.
pub fn import(context: &Context, wanted: &Import) -> anyhow::Result<Exit> {
    let format = wanted.from.as_deref().map(str::parse::<Format>).transpose();
    let format = format.map_err(|error| Usage::new(error, "leave --from out to have it guessed"))?;
    let options = Options {
        format,
        event: wanted.event.clone(),
        kallsyms: wanted.kallsyms.clone(),
        vmlinux: wanted.vmlinux.clone(),
        anchors: perflab_analyze::flame::rules::anchors(),
    };
    crate::verbs::import::refuse_endless(&wanted.file)?;
    let imported = perflab_stacks::read(&wanted.file, &options)?;
    let parts = imported.parts();
    let (source, remarks) = (imported.about.source.clone(), imported.remarks.clone());
    let (run, warnings) = import_profile(&context.archive()?, &wanted.file, imported, wanted.label.clone())?;
    for remark in remarks {
        stderr_line!("warning: {}:{}: {}", wanted.file.display(), remark.place, remark.reason);
    }
    for warning in warnings {
        stderr_line!("warning: {}; {}", warning.message, warning.advice);
    }
    context.print(&flame::parts_grid(&parts))?;
    context.say(format!("run: {} (taken for {source})", run.short()));
    Ok(Exit::Fine)
}
