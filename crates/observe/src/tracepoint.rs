//! A tracepoint of the kernel, as tracefs describes it.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::problem::suggest_name;

use crate::io::trace_records::TraceEventFormat;
use crate::io::tracefs::TraceFs;
use crate::root::Root;

/// Why a tracepoint is not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingTracepoint {
    pub(crate) reason: String,
    /// Whether the machine said so; else it could not be asked.
    pub(crate) is_known: bool,
}

impl From<MissingTracepoint> for String {
    fn from(missing: MissingTracepoint) -> String {
        missing.reason
    }
}

/// A tracepoint that this machine has.
#[derive(Debug, Clone)]
pub(crate) struct Tracepoint {
    /// By which perf events name it.
    pub(crate) id: u64,
    folder: PathBuf,
    /// A mount that only this process has goes with whoever reads below it.
    _tracefs: Option<TraceFs>,
}

impl Tracepoint {
    /// Finds it, as tracefs has it; in a recorded tree, where that is usually mounted.
    ///
    /// # Errors
    /// This machine has none of that name, with the nearest; or tracefs cannot be read.
    pub(crate) fn find(root: &Root, group: &str, name: &str) -> Result<Self, MissingTracepoint> {
        let unknown = |reason: String| MissingTracepoint { reason, is_known: false };
        let tracefs = match root.is_host().then(TraceFs::find) {
            Some(Ok(tracefs)) => Some(tracefs),
            Some(Err(error)) => {
                let reason = match rustix::process::geteuid().is_root() {
                    true => perflab_model::describe_error_chain(&error),
                    false => "only root may read tracefs, which has the tracepoints".to_owned(),
                };
                return Err(unknown(reason));
            }
            None => None,
        };
        let events = tracefs
            .as_ref()
            .map_or_else(|| root.path("/sys/kernel/tracing/events"), |tracefs| tracefs.path("events"));
        let folder = events.join(group).join(name);
        if let Ok(text) = fs::read_to_string(folder.join("id")) {
            let id = text
                .trim()
                .parse()
                .map_err(|_| unknown(format!("the number of `{group}:{name}` is `{}`", text.trim())))?;
            return Ok(Tracepoint { id, folder, _tracefs: tracefs });
        }
        let list = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            folders.filter_map(|entry| entry.file_name().into_string().ok()).collect()
        };
        let (groups, names) = (list(&events), list(&events.join(group)));
        if groups.is_empty() {
            return Err(unknown(format!("{} cannot be read, or holds nothing", events.display())));
        }
        let reason = if names.is_empty() {
            let hint = suggest_name(group, groups.iter().map(String::as_str));
            format!("this kernel has no group `{group}` of tracepoints; {hint}")
        } else {
            let hint = suggest_name(name, names.iter().map(String::as_str));
            format!("this kernel has no tracepoint `{group}:{name}`; {hint}")
        };
        Err(MissingTracepoint { reason, is_known: true })
    }

    /// Where in its records each field lies.
    ///
    /// # Errors
    /// The description cannot be read, or is not understood.
    pub(crate) fn read_format(&self) -> Result<TraceEventFormat, String> {
        let path = self.folder.join("format");
        let shown = path.to_string_lossy();
        let text = fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}"))?;
        TraceEventFormat::parse(&shown, &text).map_err(|error| perflab_model::describe_error_chain(&error))
    }
}
