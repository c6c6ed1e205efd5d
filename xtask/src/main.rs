//! perflab's own chores.
//!
//! `cargo xtask test` installs what the tests need (as root), builds, runs every test, and ends with a
//! line of counts. `cargo xtask lint` is what needs no test. `cargo xtask docs` rewrites the reference pages that are generated from the code.

mod attack;
mod bpf;
mod causes;
mod docs;
mod fuzz;
mod layouts;
mod links;
mod mutants;
mod needs;
mod package;
mod page_block;
mod peers;
mod reliability;
mod simulate;
mod steps;
mod tally;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

const USAGE: &str = "\
cargo xtask test     install what the tests need (as root), build, run every test, count
cargo xtask lint     format, lints, dependencies and their licences, links, and the book, without tests
cargo xtask links    look at the links of the book and of the pages beside it
cargo xtask docs     rewrite docs/reference/ from the code
cargo xtask dist     build one static file that starts on any Linux of this processor
cargo xtask package [--binary PATH] [--output DIR]
                     build the packages of a release into target/packages: .deb, .rpm, an archive, a wheel; of a static perflab that
                     is built for it, or of the one named
cargo xtask bpf [--check]
                     rebuild the BPF programs into crates/observe/bpf (needs clang and llvm), or check that they are fresh
cargo xtask bundle   rebuild the report's front end into crates/present/assets (needs node)
cargo xtask long attack [--brief] [--only NAME]
                     try to do harm through perflab, count what held into docs/reliability.md (as root)
cargo xtask long fuzz [--seconds N] [--only TARGET] [--again] [--no-table]
                     fuzz every decoder of foreign bytes (600 s each), count into docs/reliability.md
cargo xtask long mutants [--count N] [--seed N] [--only SAMPLE]
                     change the code at random places (200 a sample), count into docs/reliability.md what the tests catch
cargo xtask long causes [--sample N] [--seed N] [--only NAME] [--placebos N] [--iterations N] [--again] [--ask] [--no-table]
                     put known causes into real runs, count into docs/why.md how often `perflab why` names them (as root)
cargo xtask long layouts [--seeds N]
                     run the study `layout` with seeds 1 to N (10), count into docs/statistics.md how often code that only moves is
                     the same, and code that is 3 % slower is found
cargo xtask long packages [--binary PATH]
                     build the packages twice, install each into a clean root, use and remove it, count what held into
                     docs/reliability.md (as root)
cargo xtask long peers [--only ROW] [--pairs N] [--binary PATH] [--no-table]
                     do the same work with perflab and with those who do it too, in turns, write the ratios into docs/peers.md
                     (peers are fetched from registries; as root those of Debian, too)
cargo xtask long simulate [--seed N] [--repetitions N] [--table truth|guard|decided|bisect|shift]
                     make the simulated tables of docs/statistics.md and docs/decisions/location-shift.md again";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.first().copied() {
        Some("test") => run_test_steps(),
        Some("lint") => run_lint_steps(),
        Some("links") => links::check_links(Path::new(".")),
        Some("docs") => docs::write_reference().map(|()| true),
        Some("dist") => steps::build_static_binary().map(|_| true),
        Some("package") => {
            package::release_packages::PackageOrder::parse(arguments.get(1..).unwrap_or_default())
                .and_then(|order| package::release_packages::build_packages(&order))
                .map(|_| true)
        }
        Some("bpf") if words.get(1) == Some(&"--check") => bpf::check_object(),
        Some("bpf") => bpf::rebuild_object().map(|()| true),
        Some("bundle") => steps::rebuild_web_bundle().map(|()| true),
        Some("long") if words.get(1) == Some(&"attack") => {
            attack::run_attacks(arguments.get(2..).unwrap_or_default())
        }
        Some("long") if words.get(1) == Some(&"causes") => {
            causes::inject_causes(arguments.get(2..).unwrap_or_default())
        }
        Some("long") if words.get(1) == Some(&"fuzz") => {
            fuzz::fuzz_decoders(arguments.get(2..).unwrap_or_default())
        }
        Some("long") if words.get(1) == Some(&"layouts") => {
            layouts::count_layout_verdicts(arguments.get(2..).unwrap_or_default())
        }
        Some("long") if words.get(1) == Some(&"mutants") => {
            mutants::test_mutants(arguments.get(2..).unwrap_or_default())
        }
        Some("long") if words.get(1) == Some(&"packages") => {
            package::trial::try_packages(arguments.get(2..).unwrap_or_default())
        }
        Some("long") if words.get(1) == Some(&"peers") => {
            peers::measure_peers(arguments.get(2..).unwrap_or_default())
        }
        Some("long") if words.get(1) == Some(&"simulate") => {
            simulate::simulate_tables(arguments.get(2..).unwrap_or_default())
        }
        // What attacks put in QEMU's place.
        Some("fake-guest") => attack::run_fake_guest(arguments.get(1..).unwrap_or_default()),
        // A load with known causes of time, and what runs beside it.
        Some("cause-load") => causes::load::run_load(arguments.get(1..).unwrap_or_default()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Every step runs even if an earlier one failed, so that one run shows all that is wrong.
fn run_test_steps() -> Result<bool> {
    let root = needs::is_root();
    let lacking = needs::install_prerequisites(root)?;
    needs::install_lint_tools(root)?;
    run_steps(steps::LINTS.iter().chain(steps::TESTS), &lacking, root)
}

fn run_lint_steps() -> Result<bool> {
    let root = needs::is_root();
    needs::install_lint_tools(root)?;
    needs::install_mdbook(root)?;
    run_steps(steps::LINTS.iter().chain(steps::LINTS_ALONE), &[], root)
}

fn run_steps<'a>(
    steps: impl Iterator<Item = &'a steps::TestStep>,
    lacking: &[&str],
    root: bool,
) -> Result<bool> {
    let mut tally = tally::TestCounts::default();
    let mut failed = tally::FailedTests::default();
    let mut durations = Vec::new();
    for step in steps {
        println!("\n=== {}", step.name);
        let begun = Instant::now();
        tally.add(step.run(lacking, root, &mut failed)?);
        durations.push(format!("{} {}", begun.elapsed().as_secs(), step.name));
    }
    failed.print_report();
    let held = steps::repeat_alone(&failed.names(), root)?;
    if !held.is_empty() {
        println!("\nfailed beside others and held alone: {}", held.join(", "));
        tally.forgive(held.len());
    }
    println!("\nseconds: {}", durations.join("; "));
    tally.print_report();
    Ok(tally.failed == 0)
}
