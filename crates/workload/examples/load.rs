//! The built-in loads without the perflab binary: `load NAME --key value …`, as `perflab load NAME …`.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Definitions call `{{ perflab }} load NAME`.
    if arguments.first().is_some_and(|first| first == "load") {
        arguments.remove(0);
    }
    perflab_workload::run_load(&arguments).into()
}
