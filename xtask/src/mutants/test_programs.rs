//! The programs that hold the workspace's tests, and one test of them run by itself.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::mutants::switched_source::{CHOSEN_VARIABLE, REACHED_VARIABLE};
use crate::needs;
use crate::steps::FEATURES;

/// How often a running test is looked at.
const LOOK: Duration = Duration::from_millis(3);
/// The most that a program's own pages may take.
const MOST_BYTES: u64 = 6 << 30;

/// What the compiler said of a place.
#[derive(Debug)]
pub struct CompilerError {
    pub text: String,
    /// File beside the workspace's root, first byte, and the byte behind the last.
    pub places: Vec<(PathBuf, usize, usize)>,
}

/// A program with tests.
#[derive(Debug)]
pub struct TestProgram {
    pub executable: PathBuf,
    /// The package, and its directory, in which its tests run.
    pub package: String,
    directory: PathBuf,
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestEnd {
    Passed,
    Failed,
    /// It was ended, because it took too long.
    Endless,
}

/// Builds tests of the workspace in `tree`; what the compiler did not like, where it did not like something.
pub fn build_tests(tree: &Path, packages: &[&str]) -> Result<Result<Vec<TestProgram>, Vec<CompilerError>>> {
    let mut command = Command::new("cargo");
    command.args(["build", "--all-targets", "--keep-going", "--message-format=json"]);
    if packages.is_empty() {
        command.args(["--workspace", "--features", FEATURES]);
    }
    command.args(packages.iter().flat_map(|package| ["--package", *package]));
    command.current_dir(tree).env("CARGO_TARGET_DIR", tree.join("target"));
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let lines = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let errors: Vec<CompilerError> = messages.iter().filter_map(compiler_error).collect();
    if !errors.is_empty() {
        return Ok(Err(errors));
    }
    if !output.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(Ok(messages.iter().filter_map(test_program).collect()))
}

fn compiler_error(message: &Value) -> Option<CompilerError> {
    let said = &message["message"];
    if message["reason"] != "compiler-message" || said["level"] != "error" {
        return None;
    }
    let byte = |span: &Value, key: &str| usize::try_from(span[key].as_u64()?).ok();
    let place = |span: &Value| {
        Some((PathBuf::from(span["file_name"].as_str()?), byte(span, "byte_start")?, byte(span, "byte_end")?))
    };
    let places: Vec<_> = said["spans"].as_array()?.iter().filter_map(place).collect();
    // "aborting due to ..." has no place.
    (!places.is_empty())
        .then(|| CompilerError { text: said["rendered"].as_str().unwrap_or("").to_owned(), places })
}

fn test_program(message: &Value) -> Option<TestProgram> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    // Benches are built like tests, and have none.
    if message["target"]["kind"].as_array()?.iter().any(|kind| kind == "bench") {
        return None;
    }
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let named = fs::read_to_string(manifest).ok()?.parse::<toml::Table>().ok()?;
    Some(TestProgram {
        executable: message["executable"].as_str()?.into(),
        package: named["package"]["name"].as_str()?.to_owned(),
        directory: manifest.parent()?.to_owned(),
    })
}

impl TestProgram {
    /// The names of its tests, without those that are ignored.
    pub fn list_tests(&self) -> Result<Vec<String>> {
        let list = |more: &[&str]| -> Result<Vec<String>> {
            let mut command = Command::new(&self.executable);
            command.args(["--list", "--format", "terse"]).args(more).current_dir(&self.directory);
            let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
        };
        let ignored = list(&["--ignored"])?;
        Ok(list(&[])?.into_iter().filter(|test| !ignored.contains(test)).collect())
    }

    /// Runs one test, with this mutant, or none; what it comes by stands in `reached` then.
    pub fn run_test(
        &self,
        test: &str,
        mutant: Option<usize>,
        reached: Option<&Path>,
        limit: Duration,
    ) -> Result<TestEnd> {
        self.run(&["--exact", test], mutant, reached, limit)
    }

    /// Runs all its tests but those whose names have one of these parts.
    pub fn run_all_tests(&self, left_out: &[&str], limit: Duration) -> Result<TestEnd> {
        let arguments: Vec<&str> = left_out.iter().flat_map(|part| ["--skip", *part]).collect();
        self.run(&arguments, None, None, limit)
    }

    fn run(
        &self,
        arguments: &[&str],
        mutant: Option<usize>,
        reached: Option<&Path>,
        limit: Duration,
    ) -> Result<TestEnd> {
        // A mutant may well fill the memory.
        let mut command = Command::new("prlimit");
        command.arg(format!("--data={MOST_BYTES}")).arg(&self.executable).args(arguments);
        command.current_dir(&self.directory).env("PATH", needs::search_path()).env("INSTA_UPDATE", "no");
        command.env("PERFLAB_REQUIRE_ALL", "1").env_remove(CHOSEN_VARIABLE).env_remove(REACHED_VARIABLE);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let sample = self.executable.ancestors().nth(2).map(|built| built.join("examples/sample_report"));
        command.envs(sample.map(|sample| ("PERFLAB_SAMPLE_REPORT", sample)));
        command.envs(mutant.map(|number| (CHOSEN_VARIABLE, number.to_string())));
        command.envs(reached.map(|file| (REACHED_VARIABLE, file)));
        let mut child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(if status.success() { TestEnd::Passed } else { TestEnd::Failed });
            }
            if Instant::now() > until {
                let group = format!("-{}", child.id());
                let _ = Command::new("kill").args(["-9", "--", &group]).status();
                child.wait()?;
                return Ok(TestEnd::Endless);
            }
            std::thread::sleep(LOOK);
        }
    }
}
