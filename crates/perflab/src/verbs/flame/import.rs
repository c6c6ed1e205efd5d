//! `perflab flame import`

use perflab_archive::import::import_profile_run;
use perflab_present::flame;
use perflab_stacks::{ProfileFormat, SymbolOptions};

use crate::arguments::flame::FlameImportArgs;
use crate::context::App;
use crate::exit::{Exit, UsageError};

/// Makes a run of a profile, and says what became of every sample.
pub fn import_profile_file(context: &App, wanted: &FlameImportArgs) -> anyhow::Result<Exit> {
    let format = wanted.from.as_deref().map(str::parse::<ProfileFormat>).transpose();
    let format = format.map_err(|error| UsageError::new(error, "leave --from out to have it guessed"))?;
    let options = SymbolOptions {
        format,
        event: wanted.event.clone(),
        kallsyms: wanted.kallsyms.clone(),
        vmlinux: wanted.vmlinux.clone(),
        anchors: perflab_analyze::flame::category_rules::shipped_anchors(),
    };
    crate::verbs::import::refuse_endless(&wanted.file)?;
    let imported = perflab_stacks::read_profile_file(&wanted.file, &options)?;
    let parts = imported.sample_parts();
    let (source, remarks) = (imported.about.source.clone(), imported.remarks.clone());
    let (run, warnings) =
        import_profile_run(&context.archive()?, &wanted.file, imported, wanted.label.clone())?;
    for remark in remarks {
        stderr_line!("warning: {}:{}: {}", wanted.file.display(), remark.place, remark.reason);
    }
    for warning in warnings {
        stderr_line!("warning: {}; {}", warning.message, warning.advice);
    }
    context.print_grid(&flame::parts_grid(&parts))?;
    context.note(format!("run: {} (taken for {source})", run.short_id()));
    Ok(Exit::Fine)
}
