//! The steps of `cargo xtask test` and `cargo xtask lint`, in order.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::needs;
use crate::tally::{FailedTests, TestCounts};

/// One step.
pub struct TestStep {
    /// What it is called in the output.
    pub name: &'static str,
    command: &'static [&'static str],
    directory: &'static str,
    /// A program without which the step is skipped.
    program: &'static str,
    /// Whether the output has lines that count tests; otherwise the step itself is one test.
    counts: bool,
    /// Whether cargo compiles by way of clippy, which lints what it compiles: two steps with the same compiler share what is built.
    lints: bool,
}

const fn declare_step(
    name: &'static str,
    command: &'static [&'static str],
    program: &'static str,
) -> TestStep {
    TestStep { name, command, directory: ".", program, counts: false, lints: false }
}

const fn declare_web_step(name: &'static str, command: &'static [&'static str]) -> TestStep {
    TestStep { name, command, directory: "web", program: "npm", counts: false, lints: false }
}

/// What looks at the sources alone: the first part of `cargo xtask lint` and of `cargo xtask test`.
pub const LINTS: &[TestStep] = &[
    declare_step("format", &["cargo", "fmt", "--all", "--check"], "cargo-fmt"),
    declare_step(
        "dependencies: duplicates, licences, sources",
        &["cargo", "deny", "--log-level", "error", "check", "bans", "licenses", "sources"],
        "cargo-deny",
    ),
    declare_step(
        "BPF programs: the committed object is fresh",
        &["cargo", "run", "--quiet", "--package", "xtask", "--", "bpf", "--check"],
        "cargo",
    ),
    declare_step("links", &["cargo", "run", "--quiet", "--package", "xtask", "--", "links"], "cargo"),
];

/// What `cargo xtask lint` does beyond that.
pub const LINTS_ALONE: &[TestStep] = &[
    declare_step(
        "lints",
        &[
            "cargo",
            "clippy",
            "--quiet",
            "--workspace",
            "--features",
            FEATURES,
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        "cargo-clippy",
    ),
    declare_step(
        "documentation of the code",
        &[
            "env",
            "RUSTDOCFLAGS=-D warnings",
            "cargo",
            "doc",
            "--quiet",
            "--workspace",
            "--features",
            FEATURES,
            "--no-deps",
            "--keep-going",
        ],
        "cargo",
    ),
    declare_step("book", &["mdbook", "build"], "mdbook"),
    // A workspace of its own: nothing else would notice that a target has the names of yesterday.
    declare_step(
        "fuzz targets",
        &["cargo", "check", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--bins", "--locked"],
        "cargo",
    ),
];

/// Stands for the perflab beside this program, in the target directory.
const BUILT_PERFLAB: &str = "target/debug/perflab";

/// What `cargo xtask test` does beyond the lints.
pub const TESTS: &[TestStep] = &[
    declare_web_step("front end: modules", &["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"]),
    declare_web_step("front end: the committed bundle is fresh", &["npm", "run", "--silent", "check-fresh"]),
    // To lint apart takes five minutes: dependencies are read once more for it, and all of ours is checked twice.
    TestStep {
        lints: true,
        ..declare_step(
            "build and lints",
            &["cargo", "build", "--quiet", "--workspace", "--features", FEATURES, "--all-targets"],
            "cargo",
        )
    },
    declare_step(
        "what a killed run left on this machine",
        // The program as the step before has built it: alone, `cargo run` would build it once more, with other features.
        &[BUILT_PERFLAB, "undo"],
        "cargo",
    ),
    TestStep { counts: true, lints: true, ..declare_step("tests", CARGO_TEST, "cargo") },
    declare_web_step("front end: tests, some in Chromium", &["npm", "test", "--silent"]),
];

const CARGO_TEST: &[&str] =
    &["cargo", "test", "--workspace", "--features", FEATURES, "--no-fail-fast", "--", "--show-output"];

/// What perflab has beyond a build by hand, in tests and in packages.
pub const FEATURES: &str = "perflab/object-storage";

impl TestStep {
    /// Runs the step, shows its output, counts, and keeps what failed.
    pub fn run(&self, lacking: &[&str], root: bool, failed: &mut FailedTests) -> Result<TestCounts> {
        let browserless =
            self.directory == "web" && self.name.contains("Chromium") && lacking.contains(&"chromium");
        if self.lints && !self.counts && !needs::is_program_installed("clippy-driver") {
            println!("SKIP lints: clippy-driver is not installed");
        }
        if !needs::is_program_installed(self.program) || browserless {
            let what = if browserless { "chromium" } else { self.program };
            println!("SKIP {}: {what} is not installed", self.name);
            return Ok(TestCounts { skipped: 1, ..TestCounts::default() });
        }
        let mut tally = TestCounts::default();
        let mut output = Vec::new();
        let good = self.stream_output(&[], root, |line| {
            tally.read_line(line);
            failed.read_line(line);
            output.push(line.to_owned());
        })?;
        if !self.counts {
            tally = TestCounts { skipped: tally.skipped, ..TestCounts::single_test(good) };
        }
        let names_what_failed = self.counts && tally.failed > 0;
        if !good && !names_what_failed {
            // One that counts tests and counted no failed one did not even compile.
            tally.failed = 1;
            failed.note_step(self.name, &output);
        }
        Ok(tally)
    }

    /// Runs the step's command with more arguments, and shows what it prints; whether it succeeded.
    fn stream_output(&self, more: &[&str], root: bool, mut each: impl FnMut(&str)) -> Result<bool> {
        let (program, arguments) = self.command.split_first().context("a step without a command")?;
        let beside = std::env::current_exe().context("cannot find this program")?.with_file_name("perflab");
        let program = if *program == BUILT_PERFLAB { beside.as_path() } else { Path::new(program) };
        let mut command = Command::new(program);
        // Built by the step before: `cargo run` would build it once more, with other features.
        let sample = beside.with_file_name("examples").join("sample_report");
        if sample.is_file() {
            command.env("PERFLAB_SAMPLE_REPORT", sample);
        }
        command
            .args(arguments)
            .args(more)
            .current_dir(self.directory)
            .env("INSTA_UPDATE", "no")
            .env("PATH", needs::search_path())
            .stdin(Stdio::null());
        if root {
            command.env("PERFLAB_REQUIRE_ALL", "1");
        }
        if std::env::var_os("RUST_TEST_THREADS").is_none() {
            // Many tests wait for guests, daemons and servers.
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            command.env("RUST_TEST_THREADS", (cores + 1).to_string());
        }
        if std::env::var_os("CI").is_some() {
            // What is built once is quicker built without notes for the next time.
            command.env("CARGO_INCREMENTAL", "0");
        }
        if self.lints && needs::is_program_installed("clippy-driver") {
            // As cargo-clippy does, for a build in place of a check.
            command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
            command.env("CLIPPY_ARGS", ["-D", "warnings", ""].join("__CLIPPY_HACKERY__"));
        }
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
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

/// Where more tests fail than this, something is broken, and none is run again.
const FEW_TESTS: usize = 3;

/// Runs a few failed tests again, each by itself, and returns those that hold then. Tests that measure share this machine's cores
/// with others, which a real change of theirs may drown in.
pub fn repeat_alone<'a>(failed: &[&'a str], root: bool) -> Result<Vec<&'a str>> {
    let mut held = Vec::new();
    if failed.len() > FEW_TESTS || failed.iter().any(|name| name.starts_with("step ")) {
        return Ok(held);
    }
    let step = TestStep { counts: true, lints: true, ..declare_step("tests", CARGO_TEST, "cargo") };
    for name in failed {
        println!("\n=== {name}, alone");
        let mut tally = TestCounts::default();
        let good =
            step.stream_output(&["--test-threads=1", "--exact", name], root, |line| tally.read_line(line))?;
        if good && tally.passed > 0 {
            held.push(*name);
        }
    }
    Ok(held)
}

/// Builds one static file, which starts on any Linux of this processor. `--target` is what lets build scripts and procedural
/// macros stay dynamic.
pub fn build_static_binary() -> Result<PathBuf> {
    let about = Command::new("rustc").arg("-vV").output()?;
    let about = String::from_utf8_lossy(&about.stdout).into_owned();
    let host =
        about.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?;
    let mut cargo = Command::new("cargo");
    cargo.args([
        "build",
        "--package",
        "perflab",
        "--features",
        FEATURES,
        "--profile",
        "dist",
        "--target",
        host,
    ]);
    needs::run_command(cargo.env("RUSTFLAGS", "-C target-feature=+crt-static"))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let built = target.join(host).join("dist/perflab");
    println!("{}", built.display());
    Ok(built)
}

/// Rebuilds the committed bundle.
pub fn rebuild_web_bundle() -> Result<()> {
    let npm = |arguments: &[&str]| needs::run_command(Command::new("npm").args(arguments).current_dir("web"));
    npm(&["ci", "--no-audit", "--no-fund"])?;
    npm(&["run", "build"])
}
