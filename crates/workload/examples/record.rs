//! Records real outputs for the parser tests: `record NAME [parameter=value …]` runs the workload with
//! its brief parameters and writes `workloads/recorded/NAME.{stdout,stderr,expected.json}`.
//!
//! Look at the expected values before you commit them, and add a line to the README there.

use std::error::Error;
use std::fs;
use std::path::Path;

use perflab_model::{Nanos, Scalar};
use perflab_workload::{Catalogue, HostPaths, find_free_port, try_workload};

#[path = "../tests/host/mod.rs"]
mod host;

/// The length of every execution for the tests that read the recordings.
const RECORDED: Nanos = Nanos(1_000_000_000);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("which workload?")?;
    let catalogue = Catalogue::embedded();
    let definition = catalogue.get(&name).ok_or("no such workload")?;
    let mut given = definition.brief.clone();
    given.extend(
        arguments.filter_map(|pair| {
            pair.split_once('=').map(|(name, value)| (name.to_owned(), Scalar::from(value)))
        }),
    );
    let parameters = definition
        .resolve_parameters(&given, &host::host_scope())
        .map_err(|problems| format!("{problems:?}"))?;
    let scratch = std::env::temp_dir().join(format!("perflab-record-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let paths = HostPaths {
        perflab: host::find_load_binary(),
        scratch: Some(scratch.clone()),
        kept: Some(scratch.join("kept")),
        case: None,
        free_port: find_free_port(),
    };
    let invocation = definition.build_invocation(&parameters, &host::host_scope(), &paths)?;
    let finished = try_workload(definition, &parameters, &host::host_scope(), &paths, Nanos(300_000_000_000));
    fs::remove_dir_all(&scratch)?;
    let finished = finished?;
    let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
    if let Some(failure) = finished.failure() {
        return Err(format!("{failure}\n{stdout}\n{stderr}").into());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/recorded");
    fs::write(folder.join(format!("{name}.stdout")), &stdout)?;
    if !stderr.is_empty() {
        fs::write(folder.join(format!("{name}.stderr")), &stderr)?;
    }
    let expected: serde_json::Map<String, serde_json::Value> = definition
        .parse_metrics(&stdout, &stderr, RECORDED)?
        .into_iter()
        .map(|one| (one.metric.name, one.value.into()))
        .collect();
    let text = serde_json::to_string_pretty(&expected)?;
    fs::write(folder.join(format!("{name}.expected.json")), format!("{text}\n"))?;
    println!(
        "| {name} | `{}` | {} |",
        invocation.argv.join(" ").chars().take(160).collect::<String>(),
        definition.read_version().unwrap_or_default()
    );
    Ok(())
}
