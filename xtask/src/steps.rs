//! The steps of `cargo xtask test`, in order.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::needs;
use crate::tally::Tally;

/// One step.
pub struct Step {
    /// What it is called in the output.
    pub name: &'static str,
    command: &'static [&'static str],
    directory: &'static str,
    /// A program without which the step is skipped.
    program: &'static str,
    /// Whether the output has lines that count tests; otherwise the step itself is one test.
    counts: bool,
}

const fn step(name: &'static str, command: &'static [&'static str], program: &'static str) -> Step {
    Step { name, command, directory: ".", program, counts: false }
}

const fn web(name: &'static str, command: &'static [&'static str]) -> Step {
    Step { name, command, directory: "web", program: "npm", counts: false }
}

/// All steps.
pub const ALL: &[Step] = &[
    step("format", &["cargo", "fmt", "--all", "--check"], "cargo-fmt"),
    step(
        "lints",
        &["cargo", "clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"],
        "cargo-clippy",
    ),
    web("front end: modules", &["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"]),
    web("front end: the committed bundle is fresh", &["npm", "run", "--silent", "check-fresh"]),
    step("build", &["cargo", "build", "--quiet", "--workspace", "--all-targets"], "cargo"),
    step(
        "what a killed run left on this machine",
        &["cargo", "run", "--quiet", "--package", "perflab", "--", "undo"],
        "cargo",
    ),
    Step {
        counts: true,
        ..step("tests", &["cargo", "test", "--workspace", "--no-fail-fast", "--", "--show-output"], "cargo")
    },
    web("front end: tests, some in Chromium", &["npm", "test", "--silent"]),
];

impl Step {
    /// Runs the step, shows its output, and counts.
    pub fn run(&self, lacking: &[&str], root: bool) -> Result<Tally> {
        let browserless =
            self.directory == "web" && self.name.contains("Chromium") && lacking.contains(&"chromium");
        if !needs::has(self.program) || browserless {
            let what = if browserless { "chromium" } else { self.program };
            println!("SKIP {}: {what} is not installed", self.name);
            return Ok(Tally { skipped: 1, ..Tally::default() });
        }
        let mut tally = Tally::default();
        let good = self.stream(root, |line| tally.read(line))?;
        if !self.counts {
            tally = Tally { skipped: tally.skipped, ..Tally::one(good) };
        } else if !good && tally.failed == 0 {
            // It did not even compile.
            tally.failed = 1;
        }
        Ok(tally)
    }

    fn stream(&self, root: bool, mut each: impl FnMut(&str)) -> Result<bool> {
        let (program, arguments) = self.command.split_first().context("a step without a command")?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.directory).env("INSTA_UPDATE", "no").stdin(Stdio::null());
        if root {
            command.env("PERFLAB_REQUIRE_ALL", "1");
        }
        let mut child =
            command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {program}"))?;
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).lines() {
                let line = line?;
                println!("{line}");
                each(&line);
            }
        }
        Ok(child.wait()?.success())
    }
}

/// Builds one static file, which starts on any Linux of this processor. `--target` is what lets build scripts and procedural
/// macros stay dynamic.
pub fn dist() -> Result<()> {
    let about = Command::new("rustc").arg("-vV").output()?;
    let about = String::from_utf8_lossy(&about.stdout).into_owned();
    let host =
        about.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--package", "perflab", "--profile", "dist", "--target", host]);
    needs::run(cargo.env("RUSTFLAGS", "-C target-feature=+crt-static"))?;
    println!("target/{host}/dist/perflab");
    Ok(())
}

/// Rebuilds the committed bundle.
pub fn bundle() -> Result<()> {
    let npm = |arguments: &[&str]| needs::run(Command::new("npm").args(arguments).current_dir("web"));
    npm(&["ci", "--no-audit", "--no-fund"])?;
    npm(&["run", "build"])
}
